"""A small recipe for training."""

from __future__ import annotations

from typing import Any

from netanomaly.training.recipe import Recipe


def recipe(**changes: Any) -> Recipe:
    """Four epochs with early stopping, two stretches of 16 rows a step."""
    standard: dict[str, Any] = {
        "epochs": 4,
        "min_steps": 0,
        "batch_size": 2,
        "stretch": 16,
        "stride": 1,
        "learning_rate": 0.01,
        "warmup": 0.1,
        "weight_decay": 0.05,
        "gradient_clip": 1.0,
        "label_smoothing": 0.0,
        "class_weights": "none",
        "jitter": 0.1,
        "metric_dropout": 0.0,
        "patience": 10,
        "save_steps": None,
    }
    return Recipe(**{**standard, **changes})
