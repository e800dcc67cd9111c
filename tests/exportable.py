"""Bundles to export: untrained, with every part that an answer has, and answers that differ from row to row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

import streams
from language_models import architecture
from netanomaly.build import build_spans, resolve_metrics, resolve_model
from netanomaly.build_members import build_model
from netanomaly.bundle import Bundle, save_bundle
from netanomaly.calibration import Calibration
from netanomaly.config import Config, load_config
from netanomaly.data.batches import ChannelSegment
from netanomaly.data.channels import Channels
from netanomaly.decisions import Decisions
from netanomaly.deploying.parity import hard_windows
from netanomaly.unknown import KnownRows
from networks import CLASSES

TINY: dict[str, Any] = {"members": 1, "window": 4, "stem": 2, "width": 8}
ROOT = Path(__file__).parents[1]
HEADER = ("timestamp", "series", "label", "rx_bps", "tx_bps", "rtt_ms", "loss")


def tiny(directory: Path, **changes: Any) -> Path:
    """A bundle that is written in a moment; `changes` as of `streams.bundle`."""
    bundle = streams.bundle(**{**TINY, **changes})
    return saved(directory, bundle.config, bundle.channels, bundle.weights)


def of_config(directory: Path, path: Path) -> Path:
    """A bundle of a shipped config's shape; columns, spans and the language model are made up."""
    found = ["channels.baselines=[256]", "channels.levels=seen", "model.window=63", "model.stem=9"]
    if path.stem == "language_model":
        sizes = json.dumps(architecture("bert"))
        found += ["model.window=64", "model.sequence_model.path=null", f"model.sequence_model.architecture={sizes}"]
    config = resolve_metrics(resolve_model(load_config(path, found)), HEADER)
    levels = np.geomspace(0.01, 1e8, len(config.data.metrics))
    rng = np.random.default_rng(0)
    values = levels * (1 + 0.1 * rng.standard_normal((600, len(levels))))
    training = [np.full(len(values), True)]
    channels = Channels.fit([values], training, config.channels.kinds, build_spans(config).baselines)
    torch.manual_seed(0)
    weights = build_model(config, channels.count, len(CLASSES)).state_dict()
    loud = {name: weight * 30 if name.endswith("head.weight") else weight for name, weight in weights.items()}
    return saved(directory, config, channels, loud)


def saved(directory: Path, config: Config, channels: Channels, weights: dict[str, torch.Tensor]) -> Path:
    """A bundle with decisions of every kind, to which some windows of `hard_windows` are unknown."""
    rng = np.random.default_rng(1)
    segments = [
        ChannelSegment(channels(rows), ~np.isnan(rows).all(axis=1), rng.integers(0, len(CLASSES), len(rows)))
        for rows in hard_windows(channels, 40, 60, seed=1)
    ]
    known = KnownRows.fit(segments, range(0, channels.count, 2), min(2, build_spans(config).stem))
    alarms = Decisions.plain(CLASSES, CLASSES[0]).alarms
    decisions = Decisions(Calibration(0.8, (0.5, 1.0, 2.0)), alarms, known.with_limit(segments, 0.2))
    save_bundle(directory, Bundle(config, channels, CLASSES, weights, decisions, {}))
    return directory
