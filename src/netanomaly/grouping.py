"""From multi-head to grouped-query or multi-query attention: heads of keys and values are pooled by their mean."""

from __future__ import annotations

import re
from dataclasses import replace

from torch import Tensor

from netanomaly.bundle import Bundle
from netanomaly.config import Config
from netanomaly.config_model import AttentionConfig
from netanomaly.errors import ConfigError

_POOLED = re.compile(r"members\.\d+\.sequence_model\.blocks\.\d+\.attention\.(key|value)\.(weight|bias)")


def group_heads(bundle: Bundle, n_kv_heads: int) -> Bundle:
    """The bundle with `n_kv_heads` heads of keys and values, each the mean of the neighbours that it stands for.

    The answers change: the source trains such a model on, for about a twentieth of the first training.
    Source: Ainslie et al., GQA (2023), section 2.1.

    Raises:
        ConfigError: the model has no heads of its own, or they cannot be grouped like that.
    """
    chosen = bundle.config.model.sequence_model
    if not isinstance(chosen, AttentionConfig):
        raise ConfigError("the bundle's sequence model is a language model: its heads stay as they are")
    heads = chosen.n_kv_heads or chosen.n_heads
    if n_kv_heads == heads:
        raise ConfigError(f"the bundle has {heads} heads of keys and values already")
    if n_kv_heads < 1 or heads % n_kv_heads:
        raise ConfigError(
            f"{heads} heads of keys and values cannot be grouped into {n_kv_heads}: give a smaller divisor"
        )
    weights = {
        name: _pooled(weight, heads, n_kv_heads) if _POOLED.fullmatch(name) else weight
        for name, weight in bundle.weights.items()
    }
    earlier = bundle.facts.get("converted", [])
    facts = {**bundle.facts, "converted": [*earlier, {"n_kv_heads": n_kv_heads, "from": heads}]}
    return replace(bundle, config=_with_kv_heads(bundle.config, chosen, n_kv_heads), weights=weights, facts=facts)


def _pooled(weight: Tensor, heads: int, n_kv_heads: int) -> Tensor:
    """(heads d, ...) to (n_kv_heads d, ...)"""
    pooled: Tensor = weight.unflatten(0, (n_kv_heads, heads // n_kv_heads, -1)).mean(1)
    return pooled.flatten(0, 1)


def _with_kv_heads(config: Config, chosen: AttentionConfig, n_kv_heads: int) -> Config:
    model = config.model.model_copy(
        update={"sequence_model": chosen.model_copy(update={"n_kv_heads": n_kv_heads})},
    )
    return config.model_copy(update={"model": model})
