"""From the section `model` of the config to a classifier with fresh weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import torch

from netanomaly.config_model import AttentionConfig, LanguageModelConfig, ModelConfig
from netanomaly.errors import ConfigError
from netanomaly.model.attention import Attention
from netanomaly.model.blocks import LookupBlock
from netanomaly.model.choices import Windowed
from netanomaly.model.classifier import NetworkAnomalyClassifier
from netanomaly.model.encoder import MetricEncoder
from netanomaly.model.language_families import complete, longest
from netanomaly.model.language_model import LanguageModel, make_transformer, read_architecture, try_out
from netanomaly.model.lookup_model import LookupModel
from netanomaly.model.masks import MaskRule
from netanomaly.model.positions import (
    binary_table,
    linear_table,
    linear_unit_table,
    sine_table,
    sinusoidal_table,
)
from netanomaly.model.schemes import (
    AdditivePositions,
    NoPositions,
    RelativeBias,
    RelativeVectors,
    RotaryPositions,
)
from netanomaly.model.sequence_model import SequenceModel

LONG = 2048
"""Rows of a window from which on `auto` prefers tiles to the fused kernels."""

TABLES = {"sine": sine_table, "binary": binary_table, "linear": linear_table, "linear_unit": linear_unit_table}


def build_classifier(
    config: ModelConfig, window: int, stem: int, channels: int, classes: int, *, pretrained: bool = False
) -> NetworkAnomalyClassifier:
    """A classifier of the config's shape.

    Args:
        window, stem: rows, as the config's are in the data's interval.
        channels: per row.
        pretrained: a language model with a `path` gets its weights from there; else all weights are fresh.

    Raises:
        ConfigError: sizes do not go together once the window is known in rows.
    """
    encoder = MetricEncoder(channels, config.width, stem, row_layer=config.row_layer, dropout=config.dropout)
    if isinstance(config.sequence_model, LanguageModelConfig):
        sequence_model: SequenceModel = _language_model(config, config.sequence_model, window, pretrained)
    else:
        sequence_model = _lookup_model(config, config.sequence_model, window)
    return NetworkAnomalyClassifier(encoder, sequence_model, classes)


def _lookup_model(config: ModelConfig, choice: AttentionConfig, window: int) -> LookupModel:
    tokens = _tokens(window, choice.patch)
    for key, value in (("prefix", choice.prefix), ("local", choice.local)):
        if value is not None and value > tokens:
            raise ConfigError(f"model.sequence_model.{key}: {value} is more than the {tokens} tokens of a window")
    appended = config.read_out == "cls" and choice.memory == "blocks"  # the token is one more row of the table
    length = tokens + appended
    execution = _best(choice.able(config.read_out), length) if choice.execution == "auto" else choice.execution
    both_ways = choice.mask != "causal" and not choice.one_asks(config.read_out)
    mask = MaskRule(choice.mask != "bidirectional", choice.prefix or 0, choice.local)
    on_input = _positions(choice, length, config.width, both_ways) if choice.added_to_input else None

    def make_block() -> LookupBlock:
        positions = (
            NoPositions()
            if choice.added_to_input
            else _positions(choice, length, config.width // choice.n_heads, both_ways)
        )
        attention = Attention(
            config.width,
            choice.n_heads,
            length,
            positions,
            n_kv_heads=choice.n_kv_heads,
            score=choice.score,
            scale=choice.scale,
            normalise=choice.normalise,
            mask=mask,
            way="reference" if execution == "sliding" else execution,
        )
        return LookupBlock(config.width, attention, choice.feed_forward, choice.memory, config.dropout)

    return LookupModel(
        make_block,
        depth=choice.depth,
        window=window,
        width=config.width,
        read_out=config.read_out,
        memory=choice.memory,
        sliding=execution == "sliding",
        projects_once=execution != "reference",
        share_weights=choice.share_weights,
        patch=choice.patch,
        on_input=on_input,
    )


def _best(able: Sequence[Windowed | Literal["sliding"]], length: int) -> Windowed | Literal["sliding"]:
    """The first that can; in long windows tiles, as PyTorch's kernels hold a map of all pairs once rows are missing."""
    if length > LONG and able[0] == "sdpa" and "tiled" in able:
        return "tiled"
    return able[0]


def _positions(choice: AttentionConfig, length: int, width: int, both_ways: bool) -> NoPositions:
    """The scheme for a table of `length` rows and vectors of `width`; `both_ways`: rows see later ones."""
    positions = choice.positions
    smaller = width**-0.25 if choice.scale == "init" and not choice.added_to_input else 1.0  # as the projections start
    match positions.kind:
        case "sinusoidal":
            return AdditivePositions(sinusoidal_table(length, width, positions.base) * smaller)
        case "learned":
            return AdditivePositions(torch.randn(length, width) * 0.02 * smaller, trained=True)
        case "rotary":
            return RotaryPositions(positions.base)
        case "relative_bias":
            return RelativeBias(choice.n_heads, positions.buckets, positions.furthest, both_ways=both_ways)
        case "relative_key":
            reach = max(1, min(positions.reach, length - 1))  # no pair of rows is further apart
            scheme = RelativeVectors(width, reach, both_ways=both_ways)
            scheme.keys.data *= smaller
            return scheme
        case "none":
            return NoPositions()
    try:
        table = TABLES[positions.kind](length, width)
    except ValueError as error:
        raise ConfigError(f"model.sequence_model.positions: {error}; use a wider model or fewer heads") from error
    if positions.kind == "linear" and choice.score == "distance" and not choice.added_to_input:
        table = table - table[-1]  # the same distances, from smaller numbers: squares of large ones cost digits
    return AdditivePositions(table * smaller)


def with_architecture(config: ModelConfig) -> ModelConfig:
    """The config with the whole architecture of a language model in it, so that a bundle needs no other file.

    Raises:
        ConfigError: the directory or the architecture is not one that can be used, or the extra is not installed.
    """
    choice = config.sequence_model
    if not isinstance(choice, LanguageModelConfig):
        return config
    with _told():
        architecture = None if choice.architecture is None else complete(choice.architecture)
        found = architecture if choice.path is None else read_architecture(Path(choice.path))
        if architecture is not None and found != architecture:
            raise ValueError(f"architecture: is not that of {choice.path}; leave it out, it is read from there")
    return config.model_copy(update={"sequence_model": choice.model_copy(update={"architecture": found})})


def _language_model(config: ModelConfig, choice: LanguageModelConfig, window: int, pretrained: bool) -> LanguageModel:
    tokens = _tokens(window, choice.patch) + (config.read_out == "cls")
    with _told():
        if choice.architecture is None:
            raise ValueError("architecture: is missing; training fills it in from path")
        architecture = complete(choice.architecture)
        most = longest(architecture)
        if most is not None and tokens > most:
            raise ValueError(
                f"patch: a window of {window} rows is {tokens} tokens, the language model has positions for {most}; "
                "choose a larger patch or a shorter model.window"
            )
        path = Path(choice.path) if pretrained and choice.path is not None else None
        model = make_transformer(architecture, path, choice.train, choice.lora_rank)
        if not any(weight.is_meta for weight in model.parameters()):  # an outline has no numbers
            try_out(model)
    return LanguageModel(
        model,
        embedding=config.width,
        window=window,
        read_out=config.read_out,
        patch=choice.patch,
        dropout=config.dropout,
        asleep=choice.train == "head",
    )


@contextmanager
def _told() -> Iterator[None]:
    """What goes wrong with a language model within the block, as an error of the config."""
    try:
        yield
    except ImportError as error:
        raise ConfigError(
            "model.sequence_model.kind: language_model needs more packages: pip install 'netanomaly[lm]', in a clone "
            f"pip install -c constraints.txt -e '.[lm]' ({error})"
        ) from error
    except ValueError as error:
        raise ConfigError(f"model.sequence_model.{error}") from error


def _tokens(window: int, patch: int) -> int:
    if window % patch:
        raise ConfigError(f"model.sequence_model.patch: a window of {window} rows does not divide into {patch} each")
    return window // patch
