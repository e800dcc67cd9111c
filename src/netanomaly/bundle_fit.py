"""Whether a bundle's weights are those of the model that its config asks for, found out before either takes memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from netanomaly.build import build_spans, history_rows
from netanomaly.build_members import build_model, build_views
from netanomaly.config import Config
from netanomaly.config_model import LanguageModelConfig, SinusoidalConfig, TableConfig
from netanomaly.errors import ConfigError
from netanomaly.model.outline import Outline

MOST_BLOCKS = 10_000
"""Blocks of all members together."""
MOST_ROWS = 2**24
"""Rows that a decision looks back over."""
MOST_TABLES = 2**28
"""Numbers in tables of positions, which are computed and not saved."""
MOST_POSITIONS = 2**22
"""Tokens that a language model has positions for."""

_LAYERS = ("num_hidden_layers", "n_layers", "n_layer", "num_layers")
_POSITIONS = ("max_position_embeddings", "n_positions", "relative_attention_max_distance")
_WIDTHS = ("hidden_size", "dim", "n_embd", "d_model")

Shapes = Mapping[str, tuple[tuple[int, ...], torch.dtype]]


def expected_weights(config: Config, channels: int, classes: int, size: int) -> Shapes | None:
    """Names, shapes and types of the weights of the config's model; None where packages that make it are missing.

    Args:
        channels, classes: how many.
        size: bytes of the weights; a block takes more than a hundred, so there are not more blocks than that.

    Raises:
        ValueError, ConfigError, RuntimeError: the config asks for no model, or for one that is out of all proportion.
    """
    _check_size(config, channels, size)
    try:
        with torch.random.fork_rng(devices=[]), Outline():
            model = build_model(config, channels, classes)
    except ConfigError as error:
        if isinstance(error.__cause__, ImportError):
            return None
        raise
    weights = model.state_dict()
    if size > 2**20 + sum(1024 + _bytes(weight) for weight in weights.values()):  # 1024: name and shape in the file
        raise ValueError(f"the weights do not fit the bundle's config: {size} bytes are more than its model has")
    return {name: (tuple(weight.shape), weight.dtype) for name, weight in weights.items()}


def check_weights(weights: Mapping[str, Tensor], expected: Shapes) -> None:
    """Raise a ValueError if they have other names, shapes or types."""
    wrong = "the weights do not fit the bundle's config"
    if strange := sorted(weights.keys() - expected.keys()):
        raise ValueError(f"{wrong}: its model has no {strange[0][:80]!r}")
    for name, (shape, dtype) in expected.items():
        if name not in weights:
            raise ValueError(f"{wrong}: {name} is missing")
        found = weights[name]
        if (tuple(found.shape), found.dtype) != (shape, dtype):
            raise ValueError(f"{wrong}: {name} is {found.dtype} {list(found.shape)}, expected {dtype} {list(shape)}")


def _check_size(config: Config, channels: int, size: int) -> None:
    """Raise a ValueError if even the outline of the model would be too large, or what it looks back over."""
    model, spans = config.model.sequence_model, build_spans(config)
    if isinstance(model, LanguageModelConfig):
        depth = own = _check_architecture(model.architecture or {}, size)
    else:
        depth, own = model.depth, 1 if model.share_weights else model.depth
    members = len(build_views(config, channels)) * config.model.members
    blocks = members * depth
    if blocks > MOST_BLOCKS or members * own > size // 100:
        raise ValueError(f"the weights do not fit the bundle's config: it asks for {blocks} blocks")
    if max(history_rows(config), spans.max_gap) > MOST_ROWS:
        raise ValueError(f"the config looks back over more than {MOST_ROWS} rows")
    computed = not isinstance(model, LanguageModelConfig) and isinstance(
        model.positions, (SinusoidalConfig, TableConfig)
    )
    if computed and blocks * spans.window * config.model.width > MOST_TABLES:
        raise ValueError(f"the config asks for tables of positions of more than {MOST_TABLES} numbers")


def _check_architecture(architecture: Mapping[str, Any], size: int) -> int:
    """The layers of a language model. Raises ValueError if making its outline would take long or much memory."""

    def largest(keys: Sequence[str]) -> int:
        return max((value for key in keys if isinstance(value := architecture.get(key), int)), default=1)

    positions, width = largest(_POSITIONS), largest(_WIDTHS)
    if positions > MOST_POSITIONS:
        raise ValueError(f"the config asks for positions of {positions} tokens; at most {MOST_POSITIONS} are made")
    if architecture.get("sinusoidal_pos_embds") and positions * width > size:  # computed, and saved as well
        raise ValueError("the weights do not fit the bundle's config: its table of positions alone is larger")
    return max(largest(_LAYERS), 1)


def _bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()
