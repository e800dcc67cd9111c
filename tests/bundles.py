"""Small bundles without training, and what someone who forges one would do to them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from netanomaly.alarms.rule import AlarmRule
from netanomaly.build_members import build_model
from netanomaly.bundle import Bundle
from netanomaly.bundle_files import CONTENT, MANIFEST, WEIGHTS
from netanomaly.bundle_formats import FORMAT
from netanomaly.calibration import Calibration
from netanomaly.config import parse_config
from netanomaly.data.channels import Channels
from netanomaly.decisions import Decisions
from netanomaly.files import sha256
from networks import CLASSES, METRICS, settings

Change = Callable[[dict[str, Any]], object]


def untrained(seed: int = 0) -> Bundle:
    """One with fresh weights."""
    torch.manual_seed(seed)
    config = parse_config(settings(Path("nowhere")))
    values = np.random.default_rng(seed).lognormal(0, 3, (200, len(METRICS)))
    kinds, baselines = config.channels.kinds, (48,)
    channels = Channels.fit([values], [np.full(200, True)], kinds, baselines)
    model = build_model(config, channels.count, len(CLASSES))
    decisions = Decisions(
        Calibration(1.5, (1.0, 0.25, 1.0)),
        AlarmRule({"congestion": 0.75, "packet_loss": 0.3}, 0.4, min_rows=3, merge_rows=2),
    )
    facts = {"history_rows": 56, "note": "Störung"}
    return Bundle(config, channels, CLASSES, model.state_dict(), decisions, facts)


def sign(directory: Path) -> None:
    """A manifest that fits the files as they are: what someone who forges a bundle would write."""
    files = {
        name: {"bytes": (directory / name).stat().st_size, "sha256": sha256(directory / name)}
        for name in (WEIGHTS, CONTENT)
    }
    (directory / MANIFEST).write_text(json.dumps({"format": FORMAT, "files": files}))


def change_json(path: Path, change: Change) -> None:
    """A JSON file, changed in place."""
    tree = json.loads(path.read_text(encoding="utf-8"))
    change(tree)
    path.write_text(json.dumps(tree), encoding="utf-8")
