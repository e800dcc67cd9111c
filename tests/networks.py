"""Small made-up networks: links with levels of their own, whose faults show against their own recent past."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

CLASSES = ("normal", "congestion", "packet_loss")
METRICS = ("rtt_ms", "throughput_bps", "loss_ratio")


def link(name: str, rows: int = 200, *, seed: int = 0) -> pd.DataFrame:
    """One link, a row per second: four faults of 18 rows each, a few missing cells, one row without any value."""
    rng = np.random.default_rng([seed, *name.encode()])
    level = rng.uniform([5.0, 1e6, 0.001], [80.0, 9e8, 0.01])  # no two links are alike
    values = level * (1 + 0.03 * rng.standard_normal((rows, len(METRICS))))
    labels = np.full(rows, CLASSES[0], dtype=object)
    for number, start in enumerate(range(20, rows - 30, 40)):
        fault = slice(start + int(rng.integers(8)), start + 26)
        kind = 1 + number % 2
        labels[fault] = CLASSES[kind]
        values[fault] *= (3.0, 0.5, 1.0) if kind == 1 else (1.0, 0.8, 20.0)
    values[rng.random(values.shape) < 0.01] = np.nan
    values[rows // 2] = np.nan
    frame = pd.DataFrame(values, columns=list(METRICS))
    times = pd.Timestamp("2026-03-01T00:00:00Z") + pd.to_timedelta(np.arange(rows), unit="s")
    frame.insert(0, "timestamp", times.strftime("%Y-%m-%dT%H:%M:%SZ").astype(object))
    frame.insert(1, "link", name)
    frame["label"] = labels
    return frame


def network(names: Sequence[str] = "abcdef", rows: int = 200, *, seed: int = 0) -> pd.DataFrame:
    """Several links below each other."""
    return pd.concat([link(name, rows, seed=seed) for name in names], ignore_index=True)


def settings(run_dir: Path, **sections: dict[str, Any]) -> dict[str, Any]:
    """A config for `network()` that trains in about a second; `sections` change single keys of a section."""
    tree: dict[str, Any] = {
        "run_dir": str(run_dir),
        "device": "cpu",
        "data": {
            "series": ["link"],
            "label": "label",
            "interval": "1s",
            "metrics": [
                {"name": "rtt_ms", "unit": "ms"},
                {"name": "throughput_bps", "unit": "bit/s"},
                {"name": "loss_ratio", "unit": "ratio"},
            ],
            "split": {"by": "series", "validation": ["e"], "test": ["f"]},
        },
        "channels": {"baselines": [48], "levels": "both"},
        "model": {"members": 1, "window": 8, "width": 16, "sequence_model": {"n_heads": 2}, "stem": 3, "dropout": 0.1},
        "training": {"epochs": 8, "batch_size": 4, "stretch": 32, "learning_rate": 1e-2, "min_steps": 0},
    }
    for section, keys in sections.items():
        tree[section] = {**tree.get(section, {}), **keys}
    if "kinds" in sections.get("channels", {}):  # there may be no levels among them to hide
        tree["channels"] = {**tree["channels"], "levels": "seen"}
    return tree
