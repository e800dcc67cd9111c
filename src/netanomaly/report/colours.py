"""One colour for each class, the same in every part of a report.

Okabe and Ito's palette (Color Universal Design, 2008), whose colours people with any colour vision tell apart, without
its yellow and black, which vanish on white and on black; then colours of Tol's palettes (2021). Names stand beside
colours everywhere: with many classes no palette is enough.
"""

from __future__ import annotations

from collections.abc import Sequence

NORMAL = "#9aa3ad"
NO_DATA = "#5b6470"
UNKNOWN = "#c026d3"
"""Of what is like none of training."""
OTHER = "#7f7f7f"
"""Of a label that is no class of the model."""
INK = "#3b7dd8"
"""Of lines that stand for no class: readable on white and on black."""

_FAULTS = (
    "#d55e00",
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#8b6914",
    "#7a5bd0",
    "#999933",
    "#aa3377",
    "#44aa99",
    "#bb5566",
)


def class_colours(classes: Sequence[str], normal: str, others: Sequence[str] = ()) -> dict[str, str]:
    """Colours by name: of the model's classes, in their order, then of other labels."""
    faults = [name for name in classes if name != normal]
    found = {name: _FAULTS[number % len(_FAULTS)] for number, name in enumerate(faults)}
    return {normal: NORMAL, "no_data": NO_DATA, "unknown": UNKNOWN, **dict.fromkeys(others, OTHER), **found}
