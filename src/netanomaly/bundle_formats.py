"""Older bundle formats, brought up to date one step at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

Content = dict[str, Any]
Weights = dict[str, Tensor]

FORMAT = 5
"""The format that this version writes."""


def from_1_to_2(content: Content, weights: Weights) -> tuple[Content, Weights]:
    """The look-up got choices: its keys moved from `model` to `model.sequence_model`, its weights likewise."""
    model = dict(content["config"]["model"])
    attention = {
        "kind": "attention",
        "depth": model.pop("depth"),
        "n_heads": model.pop("n_heads"),
        "positions": {"kind": "sinusoidal", "base": model.pop("position_base")},
    }
    config = {**content["config"], "model": {**model, "sequence_model": attention}}
    places = {
        "token": "sequence_model.read_out.token",
        "weigh.weight": "sequence_model.read_out.weigh.weight",
    }
    moved = {}
    for name, weight in weights.items():
        if name.startswith("blocks."):
            for layer in ("widen", "narrow"):
                name = name.replace(f".{layer}.", f".feed_forward.{layer}.")
            name = f"sequence_model.{name}"
        moved[places.get(name, name)] = weight
    return {**content, "config": config}, moved


def from_2_to_3(content: Content, weights: Weights) -> tuple[Content, Weights]:
    """A model got members, its encoder a layer for each row; the levels may be hidden."""
    config = content["config"]
    config = {
        **config,
        "channels": {**config["channels"], "levels": "seen"},
        "model": {**config["model"], "members": 1, "row_layer": False},
        "training": {**config["training"], "min_steps": 0},
    }
    moved = {f"members.0.{name}": weight for name, weight in weights.items()}
    return {**content, "config": config}, moved


def from_3_to_4(content: Content, weights: Weights) -> tuple[Content, Weights]:
    """Members may look back over short windows."""
    config = content["config"]
    config = {**config, "model": {**config["model"], "short_windows": []}}
    return {**content, "config": config}, weights


def from_4_to_5(content: Content, weights: Weights) -> tuple[Content, Weights]:
    """Probabilities are calibrated and rows become alarms: not so, and at one half, where nobody chose."""
    classes, config = content["classes"], content["config"]
    decisions = {
        "calibration": {"temperature": 1.0, "weights": [1.0] * len(classes)},
        "alarms": {
            "thresholds": {name: 0.5 for name in classes if name != config["data"]["normal"]},
            "hysteresis": 0.5,
            "min_rows": 1,
            "merge_rows": 0,
        },
        "known": None,
    }
    return {**content, "decisions": decisions}, weights


MIGRATIONS: dict[int, Callable[[Content, Weights], tuple[Content, Weights]]] = {
    1: from_1_to_2,
    2: from_2_to_3,
    3: from_3_to_4,
    4: from_4_to_5,
}
"""For each older format the step to the next."""


def up_to_date(number: int, content: Content, weights: Weights) -> tuple[Content, Weights]:
    """Content and weights of a bundle of format `number` as this version has them.

    Raises:
        KeyError, TypeError: the content is not that of the format.
    """
    for step in range(number, FORMAT):
        content, weights = MIGRATIONS[step](content, weights)
    return content, weights
