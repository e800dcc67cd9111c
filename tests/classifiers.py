"""Classifiers from plain choices, built as a config builds them."""

from __future__ import annotations

import json
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from netanomaly.build_model import build_classifier
from netanomaly.config_model import ModelConfig
from netanomaly.model.classifier import NetworkAnomalyClassifier
from netanomaly.model.lookup_model import LookupModel

CHANNELS, CLASSES = 3, 4
Module = TypeVar("Module", bound=nn.Module)
OWN_KEYS = set(ModelConfig.model_fields) - {"sequence_model"}


def model_config(**choices: Any) -> ModelConfig:
    """The section `model`, small; every choice by its own name, those of `sequence_model` too.

    Raises:
        pydantic.ValidationError: the choices do not go together.
    """
    own = {key: value for key, value in choices.items() if key in OWN_KEYS}
    attention = {key: value for key, value in choices.items() if key not in OWN_KEYS}
    tree = {"window": 7, "width": 16, "stem": 3, "dropout": 0.0, **own, "sequence_model": {"n_heads": 2, **attention}}
    return ModelConfig.model_validate_json(json.dumps(tree))


def classifier(
    *, channels: int = CHANNELS, classes: int = CLASSES, seed: int = 0, **choices: Any
) -> NetworkAnomalyClassifier:
    """A fresh classifier, in training mode as PyTorch makes them."""
    config = model_config(**choices)
    assert isinstance(config.window, int) and isinstance(config.stem, int)
    torch.manual_seed(seed)
    return build_classifier(config, config.window, config.stem, channels, classes)


def look_up_model(**choices: Any) -> LookupModel:
    """The sequence model of such a classifier, stirred and in double precision."""
    model = stirred(classifier(**choices)).double().eval().sequence_model
    assert isinstance(model, LookupModel)
    return model


def stirred(model: Module, seed: int = 1) -> Module:
    """Every weight moved a little, so that those that start at zero count."""
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=draw, dtype=parameter.dtype))
    return model


def segment(
    batch: int,
    count: int,
    share: float = 0.8,
    *,
    width: int = CHANNELS,
    seed: int = 0,
    dtype: torch.dtype | None = None,
) -> tuple[Tensor, Tensor]:
    """Channels (or embeddings, with `width`), and which rows are valid."""
    draw = torch.Generator().manual_seed(seed)
    content = torch.randn(batch, count, width, generator=draw, dtype=dtype)
    return content, torch.rand(batch, count, generator=draw) < share
