"""The feed-forward layer against its formulas written out with PyTorch's functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from netanomaly.model.choices import FeedForward
from netanomaly.model.feed_forward import BEND, FeedForwardLayer

WIDTH = 6
PLAIN: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "leaky_relu": lambda x: torch.where(x > 0, x, 0.01 * x),
    "gelu": lambda x: x * torch.distributions.Normal(0.0, 1.0).cdf(x),
    "swish": lambda x: x / (1 + (-x).exp()),
    "sigmoid": functional.sigmoid,
    "tanh": functional.tanh,
}
GATES: dict[str, Callable[[Tensor], Tensor]] = {"glu": functional.sigmoid, "swiglu": PLAIN["swish"]}
KINDS = [kind for kind in get_args(FeedForward) if kind != "none"]


def _layer(kind: FeedForward) -> tuple[FeedForwardLayer, Tensor]:
    torch.manual_seed(0)
    return FeedForwardLayer(kind, WIDTH).double(), torch.randn(2, 5, WIDTH, dtype=torch.float64)


def test_every_kind_is_tested() -> None:
    assert set(KINDS) == set(PLAIN) | set(GATES) == set(BEND)


@pytest.mark.parametrize("kind", PLAIN)
def test_a_plain_layer_is_its_formula(kind: FeedForward) -> None:
    layer, rows = _layer(kind)
    wide = functional.linear(rows, layer.widen.weight, layer.widen.bias)
    expected = functional.linear(PLAIN[kind](wide), layer.narrow.weight, layer.narrow.bias)
    torch.testing.assert_close(layer(rows), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", GATES)
def test_a_gated_layer_is_its_formula(kind: FeedForward) -> None:
    layer, rows = _layer(kind)
    (value, gate), (value_bias, gate_bias) = layer.widen.weight.chunk(2), layer.widen.bias.chunk(2)
    bent = functional.linear(rows, value, value_bias) * GATES[kind](functional.linear(rows, gate, gate_bias))
    expected = functional.linear(bent, layer.narrow.weight, layer.narrow.bias)
    torch.testing.assert_close(layer(rows), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_have_the_same_number_of_weights(kind: FeedForward) -> None:
    layer, _ = _layer(kind)
    assert sum(part.weight.numel() for part in (layer.widen, layer.narrow)) == 6 * WIDTH**2


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_does_not_see_the_others(kind: FeedForward) -> None:
    layer, rows = _layer(kind)
    changed = rows.clone()
    changed[:, 2] += 1
    moved = (layer(changed) - layer(rows)).abs().amax(-1) > 0
    assert moved.tolist() == [[False, False, True, False, False]] * 2
