"""Tables, rotation and buckets of positions against their formulas."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from netanomaly.model.positions import (
    binary_table,
    distance_buckets,
    linear_table,
    linear_unit_table,
    rotate,
    sine_table,
    sinusoidal_table,
)

SHAPES = [(1, 2), (7, 4), (64, 16), (257, 32)]
BASES = [10.0, 10000.0]
shapes = pytest.mark.parametrize(("length", "width"), SHAPES)
bases = pytest.mark.parametrize("base", BASES)


def _sinusoidal(t: int, i: int, length: int, width: int) -> float:
    return (math.cos if i % 2 else math.sin)(t / 10000.0 ** ((i - i % 2) / width))


FORMULAS: dict[str, tuple[Callable[[int, int], Tensor], Callable[[int, int, int, int], float]]] = {
    "sinusoidal": (sinusoidal_table, _sinusoidal),
    "sine": (sine_table, lambda t, i, length, width: math.sin(t / 2**i)),
    "linear": (linear_table, lambda t, i, length, width: t),
    "linear unit": (linear_unit_table, lambda t, i, length, width: t / (length - 1) if length > 1 else 0.0),
}


@pytest.mark.parametrize("name", FORMULAS)
@shapes
def test_a_table_is_its_formula(name: str, length: int, width: int) -> None:
    table, formula = FORMULAS[name]
    expected = [[formula(t, i, length, width) for i in range(width)] for t in range(length)]
    found = table(length, width)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), torch.tensor(expected, dtype=torch.float64), rtol=1e-7, atol=1e-7)


@bases
@shapes
def test_the_base_sets_the_wavelengths(length: int, width: int, base: float) -> None:
    angles = [[t / base ** (2 * i / width) for i in range(width // 2)] for t in range(length)]
    table = sinusoidal_table(length, width, base).double()
    torch.testing.assert_close(table[:, 0::2], torch.tensor(angles, dtype=torch.float64).sin(), rtol=0, atol=1e-7)
    torch.testing.assert_close(table[:, 1::2], torch.tensor(angles, dtype=torch.float64).cos(), rtol=0, atol=1e-7)


@bases
@shapes
def test_dot_product_of_two_positions_depends_on_their_distance_alone(length: int, width: int, base: float) -> None:
    table = sinusoidal_table(length, width, base).double()
    gram = table @ table.T
    for distance in range(length):
        diagonal = gram.diagonal(distance)
        assert (diagonal - diagonal[0]).abs().max() <= 1e-5


@shapes
def test_squared_norm_of_every_row_is_half_the_width(length: int, width: int) -> None:
    norms = sinusoidal_table(length, width).double().square().sum(1)
    torch.testing.assert_close(norms, torch.full_like(norms, width / 2), rtol=0, atol=1e-5)


def test_rows_differ_from_each_other() -> None:
    assert len(sinusoidal_table(256, 4, 100.0).unique(dim=0)) == 256


@pytest.mark.parametrize(("length", "width"), [(1, 1), (2, 1), (8, 3), (9, 4), (64, 6), (64, 70), (257, 9)])
def test_the_binary_table_counts(length: int, width: int) -> None:
    table = binary_table(length, width).long()
    for t in range(length):
        assert "".join(str(bit) for bit in reversed(table[t].tolist())) == format(t, f"0{width}b")
    assert table.dtype == torch.int64
    assert len(table.unique(dim=0)) == length


@pytest.mark.parametrize(("length", "width"), [(3, 1), (9, 3), (65, 6), (257, 8)])
def test_too_few_bits_are_refused(length: int, width: int) -> None:
    with pytest.raises(ValueError, match=f"{width} bits cannot tell {length} positions apart"):
        binary_table(length, width)


@pytest.mark.parametrize("width", [1, 3, 17])
def test_odd_width_is_refused(width: int) -> None:
    with pytest.raises(ValueError, match=f"even width, got {width}"):
        sinusoidal_table(8, width)
    with pytest.raises(ValueError, match=f"even width, got {width}"):
        rotate(torch.zeros(8, width), torch.arange(8))


def _vectors(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@bases
def test_a_rotation_turns_each_pair_of_channels(base: float) -> None:
    vectors, width = _vectors(9, 6), 6
    found = rotate(vectors, torch.arange(9), base)
    for t in range(9):
        for i in range(3):
            angle = t / base ** (2 * i / width)
            x, y = vectors[t, 2 * i].item(), vectors[t, 2 * i + 1].item()
            expected = [x * math.cos(angle) - y * math.sin(angle), x * math.sin(angle) + y * math.cos(angle)]
            assert found[t, 2 * i : 2 * i + 2].tolist() == pytest.approx(expected, abs=1e-12)


def test_a_rotation_keeps_norms_and_leaves_position_zero_alone() -> None:
    vectors = _vectors(2, 3, 50, 8)
    found = rotate(vectors, torch.arange(50))
    torch.testing.assert_close(found.norm(dim=-1), vectors.norm(dim=-1), rtol=0, atol=1e-12)
    assert torch.equal(found[..., 0, :], vectors[..., 0, :])
    assert not torch.equal(found[..., 1, :], vectors[..., 1, :])


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 5000), st.integers(0, 5000), st.integers(-5000, 5000))
def test_dot_products_of_turned_vectors_depend_on_the_distance_alone(asking: int, held: int, shift: int) -> None:
    query, key = _vectors(1, 8), _vectors(1, 8, seed=1)

    def score(moved: int) -> float:
        places = (torch.tensor([asking + moved]), torch.tensor([held + moved]))
        return float(rotate(query, places[0], 100.0) @ rotate(key, places[1], 100.0).T)

    assert score(shift) == pytest.approx(score(0), abs=1e-10)


def test_a_rotation_keeps_the_precision_of_its_vectors() -> None:
    found = rotate(_vectors(4, 2).float(), torch.tensor([100_000, 100_001, 1, 2]), 10.0)
    assert found.dtype == torch.float32
    assert found.double().tolist()[0] == pytest.approx(
        rotate(_vectors(4, 2).float().double(), torch.tensor([100_000, 0, 0, 0]), 10.0).tolist()[0], abs=1e-6
    )


def _bucket(distance: int, buckets: int, furthest: int) -> int:
    """T5's rule in whole numbers: the last of the shared buckets whose first distance is not further away.

    Shared bucket b of k begins at single * (furthest / single)^(b / k).
    """
    half, single = buckets // 2, buckets // 4
    far, shared = abs(distance), half - single
    ahead = half if distance < 0 else 0
    if far < single:
        return ahead + far
    reached = [b for b in range(shared) if far**shared * single**b >= furthest**b * single**shared]
    return ahead + single + reached[-1]


@pytest.mark.parametrize("furthest", [9, 10, 50, 128, 512])
@pytest.mark.parametrize("buckets", [4, 8, 16, 32])
def test_buckets_are_those_of_t5(buckets: int, furthest: int) -> None:
    distances = range(-2 * furthest, 2 * furthest + 1)
    found = distance_buckets(torch.tensor(list(distances)), buckets, furthest)
    assert found.tolist() == [_bucket(distance, buckets, furthest) for distance in distances]


def test_buckets_written_out() -> None:
    found = distance_buckets(torch.arange(-20, 21), 8, 16).tolist()  # single distances 0 and 1, then 2, 3 share ...
    behind = [0, 1, 2, 2, 2, 2, *[3] * 15]
    assert found == [*[4 + bucket for bucket in reversed(behind[1:])], *behind]


@pytest.mark.parametrize(("buckets", "furthest"), [(4, 2), (8, 6), (32, 128)])
def test_every_bucket_is_used_and_none_but_those(buckets: int, furthest: int) -> None:
    found = set(distance_buckets(torch.arange(-1000, 1001), buckets, furthest).tolist())
    unused = {buckets // 2}  # zero steps ahead
    assert found == set(range(buckets)) - unused


def test_buckets_have_the_shape_of_the_distances() -> None:
    distances = torch.arange(-6, 6).reshape(3, 4)
    assert distance_buckets(distances, 8, 6).shape == (3, 4)
