"""The section `model` of the configuration: encoder, sequence model, read-out, head."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from netanomaly.config_fields import AutoRowsField, AutoSpanField, Listed, Section, SpanField, of_kind
from netanomaly.model.choices import (
    Execution,
    FeedForward,
    Mask,
    Memory,
    Normalise,
    ReadOut,
    Score,
    Table,
    Windowed,
    executions,
)


def _check_scale(scale: str | float) -> str | float:
    if not isinstance(scale, str) and scale <= 0:
        raise ValueError(f"{scale:g} is not more than 0; write sqrt_dim, init or a temperature")
    return scale


AddTo = Literal["projected", "input"]
ShortWindows = Annotated[tuple[SpanField, ...], Listed]


class SinusoidalConfig(Section):
    """Sines and cosines of geometric wavelengths (Attention Is All You Need)."""

    kind: Literal["sinusoidal"] = "sinusoidal"
    base: float = Field(default=10000.0, gt=1)  # the longest wavelength is nearly 2 pi times this
    add_to: AddTo = "projected"  # to q and k; input: to the embeddings, as in the Transformer


class TableConfig(Section):
    """sine: sin(t / 2^i); binary: bit i of t; linear: t; linear_unit: t from 0 to 1 over the window; learned."""

    kind: Table
    add_to: AddTo = "projected"


class RotaryConfig(Section):
    """q and k are turned by an angle that grows with the position (RoPE)."""

    kind: Literal["rotary"]
    base: float = Field(default=10000.0, gt=1)


class RelativeBiasConfig(Section):
    """A trained number per head and bucket of distances is added to the scores (T5)."""

    kind: Literal["relative_bias"]
    buckets: int = Field(default=32, ge=4, multiple_of=4)
    furthest: int = Field(default=128, ge=2)  # distances from here on share the last bucket

    @model_validator(mode="after")
    def _buckets_grow(self) -> Self:
        if self.furthest <= self.buckets // 2:
            raise ValueError(f"furthest has to be more than half of buckets ({self.buckets // 2})")
        return self


class RelativeKeyConfig(Section):
    """A trained vector per distance is added to the keys and one to the values (Shaw)."""

    kind: Literal["relative_key"]
    reach: int = Field(default=32, ge=1)  # distances beyond it share a vector


class NoPositionsConfig(Section):
    """The order of the rows does not matter."""

    kind: Literal["none"]


Positions = Annotated[
    SinusoidalConfig | TableConfig | RotaryConfig | RelativeBiasConfig | RelativeKeyConfig | NoPositionsConfig,
    Field(discriminator="kind"),
    of_kind("sinusoidal"),
]


class AttentionConfig(Section):
    """Ours: blocks of look-ups in the window."""

    kind: Literal["attention"] = "attention"
    depth: int = Field(default=1, ge=1)  # look-ups one after the other
    share_weights: bool = False  # the same block at every depth
    n_heads: int = Field(default=4, ge=1)
    n_kv_heads: int | None = Field(default=None, ge=1)  # of keys and values; default: n_heads
    score: Score = "dot"  # distance: minus the squared Euclidean distance of q and k
    scale: Annotated[Literal["sqrt_dim", "init"] | float, AfterValidator(_check_scale)] = (
        "sqrt_dim"  # a number: a temperature
    )
    normalise: Normalise = "softmax"  # none: plain exp(score) weights
    positions: Positions = SinusoidalConfig()
    mask: Mask = "bidirectional"
    prefix: int | None = Field(default=None, ge=1)  # with mask: prefix, the first tokens, seen by all
    local: int | None = Field(default=None, ge=1)  # tokens at this distance or further are not seen
    memory: Memory = "embeddings"  # blocks: keys and values from the block below, as in the Transformer
    feed_forward: FeedForward = "swiglu"
    patch: int = Field(default=1, ge=1)  # rows pooled into one token before the first block
    execution: Execution = "auto"  # how it is computed: speed and memory, not the answer

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.n_kv_heads is not None and self.n_heads % self.n_kv_heads:
            raise ValueError(f"n_heads {self.n_heads} must be a multiple of n_kv_heads ({self.n_kv_heads})")
        if (self.mask == "prefix") != (self.prefix is not None):
            raise ValueError("prefix goes with mask: prefix, which needs it")
        if self.share_weights and self.depth == 1:
            raise ValueError("share_weights needs a depth of 2 or more: one block has no other to share with")
        if self.score == "distance" and self.positions.kind == "relative_key":
            raise ValueError("positions: relative_key is defined for score: dot only")
        return self

    @property
    def added_to_input(self) -> bool:
        """Whether positions enter before the projection."""
        return getattr(self.positions, "add_to", None) == "input"

    def one_asks(self, read_out: ReadOut) -> bool:
        """Whether nothing but the newest row, or a token in its place, asks."""
        return read_out in ("last", "cls") and self.memory == "embeddings"

    def able(self, read_out: ReadOut) -> list[Windowed | Literal["sliding"]]:
        """What can compute it, the best first."""
        return executions(
            read_out=read_out,
            memory=self.memory,
            normalise=self.normalise,
            positions=self.positions.kind,
            added_to_input=self.added_to_input,
            patch=self.patch,
        )


class LanguageModelConfig(Section):
    """A Hugging Face transformer reads the embeddings (extra `lm`)."""

    kind: Literal["language_model"]
    path: str | None = Field(default=None, min_length=1)  # local directory: config.json and model.safetensors
    architecture: dict[str, Any] | None = None  # instead: model_type and sizes as in a config.json; random weights
    train: Literal["all", "head", "norms", "lora"] = "all"  # of the language model; the rest always trains
    lora_rank: int | None = Field(default=None, ge=1)  # with train: lora, which needs it
    patch: int = Field(default=1, ge=1)  # rows pooled into one token

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.path is None and self.architecture is None:
            raise ValueError("give path (a local directory) or architecture (model_type and sizes)")
        if self.architecture is not None and "model_type" not in self.architecture:
            raise ValueError("architecture needs the key model_type: bert, gpt2, llama ...")
        if (self.train == "lora") != (self.lora_rank is not None):
            raise ValueError("lora_rank goes with train: lora, which needs it")
        return self


class ModelConfig(Section):
    """The classifier's shape."""

    members: int = Field(default=3, ge=1)  # models from different draws whose answers are averaged
    window: AutoSpanField = "auto"  # rows a decision looks back over, its own included
    short_windows: ShortWindows = (8, 2)  # windows of further members, in turn; none is over `window`
    width: int = Field(default=64, ge=1)  # of a row's embedding
    row_layer: bool = True  # a linear layer and a GELU for each row, before the convolution joins rows
    stem: AutoRowsField = "auto"  # rows the causal convolution joins; 1: the row alone
    sequence_model: Annotated[
        AttentionConfig | LanguageModelConfig, Field(discriminator="kind"), of_kind("attention")
    ] = AttentionConfig()
    read_out: ReadOut = "last"
    dropout: float = Field(default=0.3, ge=0, lt=1)

    @model_validator(mode="after")
    def _attention_fits(self) -> Self:
        attention = self.sequence_model
        if not isinstance(attention, AttentionConfig):
            return self
        if self.width % attention.n_heads:
            raise ValueError(f"width {self.width} must be a multiple of n_heads ({attention.n_heads})")
        pairs = self.width if attention.added_to_input else self.width // attention.n_heads
        if attention.positions.kind in ("sinusoidal", "rotary") and pairs % 2:
            whose = "the width" if attention.added_to_input else "each head's width (width / n_heads)"
            raise ValueError(
                f"{whose} is {pairs}; {attention.positions.kind} positions take channels in pairs: make it even"
            )
        if attention.one_asks(self.read_out) and attention.mask == "prefix":
            raise ValueError(
                f"sequence_model.mask: prefix changes nothing with read_out {self.read_out}: all that asks sees the "
                "whole window anyway; use memory: blocks, or read_out mean or attention"
            )
        able = attention.able(self.read_out)
        if attention.execution not in ("auto", *able):
            raise ValueError(
                f"sequence_model.execution: {attention.execution} cannot compute this choice of read_out, memory, "
                f"normalise, positions and patch; these can: {', '.join(able)}"
            )
        return self
