"""The table of sinusoidal positions."""

from __future__ import annotations

import math

import pytest
import torch

from netanomaly.model.attention import SlidingAttention
from netanomaly.model.classifier import NetworkAnomalyClassifier
from netanomaly.model.positions import sinusoidal_table

SHAPES = [(1, 2), (7, 4), (64, 16), (257, 32)]
BASES = [10.0, 10000.0]


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize(("length", "width"), SHAPES)
def test_table_is_the_closed_form(length: int, width: int, base: float) -> None:
    table = sinusoidal_table(length, width, base)
    expected = [
        [(math.cos if i % 2 else math.sin)(t / base ** ((i - i % 2) / width)) for i in range(width)]
        for t in range(length)
    ]
    torch.testing.assert_close(table.double(), torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-6)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize(("length", "width"), SHAPES)
def test_dot_product_of_two_positions_depends_on_their_distance_alone(length: int, width: int, base: float) -> None:
    table = sinusoidal_table(length, width, base).double()
    gram = table @ table.T
    for distance in range(length):
        diagonal = gram.diagonal(distance)
        assert (diagonal - diagonal[0]).abs().max() <= 1e-5


@pytest.mark.parametrize(("length", "width"), SHAPES)
def test_squared_norm_of_every_row_is_half_the_width(length: int, width: int) -> None:
    norms = sinusoidal_table(length, width).double().square().sum(1)
    torch.testing.assert_close(norms, torch.full_like(norms, width / 2), rtol=0, atol=1e-5)


def test_rows_differ_from_each_other() -> None:
    assert len(sinusoidal_table(256, 4, 100.0).unique(dim=0)) == 256


@pytest.mark.parametrize("width", [1, 3, 17])
def test_odd_width_is_refused(width: int) -> None:
    with pytest.raises(ValueError, match=f"even width, got {width}"):
        sinusoidal_table(8, width)


def test_every_head_has_the_whole_table_of_its_width() -> None:
    torch.testing.assert_close(SlidingAttention(16, 4, 9, 50.0).positions, sinusoidal_table(9, 4, 50.0))


def test_table_is_not_saved_with_the_weights() -> None:
    model = NetworkAnomalyClassifier(3, 2, window=5, width=8, n_heads=2, depth=2)
    assert not [name for name in model.state_dict() if "positions" in name]


def test_table_follows_the_model_to_another_dtype() -> None:
    assert SlidingAttention(8, 2, 5).double().positions.dtype == torch.float64
