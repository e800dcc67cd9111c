"""One member with fixed spans, no row layer and no levels: what speed and the choices of a look-up are measured with.

The block is that of the defaults; several members take as many times as long, and spans that follow from the data would
make the figures depend on them.
"""

from __future__ import annotations

WINDOW, STEM, BASELINE = 64, 9, 256
ONE_BLOCK = (
    "model.members=1",
    "model.row_layer=false",
    f"model.window={WINDOW}",
    f"model.stem={STEM}",
    f"channels.baselines={BASELINE}",
    "channels.kinds=[deviation, log_ratio, spread, change, missing]",
    "channels.levels=seen",
)
"""Changes to a config."""
EARLY_STOPPING = ("training.min_steps=0", "training.patience=10")
"""The recipe that docs/attention.md compares look-ups with: the best epoch on validation is kept."""
