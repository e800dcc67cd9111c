"""All windows at once against one window after the other."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from netanomaly.model.attention import lookup
from netanomaly.model.positions import sinusoidal_table
from netanomaly.model.sliding import sliding_lookup

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}


def _rows(
    batch: int, heads: int, targets: int, length: int, width: int, dtype: torch.dtype, seed: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values."""
    draw = torch.Generator().manual_seed(seed)
    rows = [targets, targets + length - 1, targets + length - 1]
    queries, keys, values = (
        torch.randn(batch, heads, n, width, generator=draw, dtype=dtype, requires_grad=True) for n in rows
    )
    return queries, keys, values


def _one_by_one(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor, valid: Tensor) -> Tensor:
    """The oracle: the newest row of each window asks a copy of the window."""
    length = len(positions)
    answers = []
    for t in range(queries.shape[2]):
        held = slice(t, t + length)
        mask = valid[:, None, held]
        answers.append(lookup(queries[:, :, t : t + 1], keys[:, :, held] + positions, values[:, :, held], mask))
    return torch.cat(answers, dim=2)


cases = given(
    batch=st.integers(1, 3),
    heads=st.integers(1, 3),
    targets=st.integers(1, 20),
    length=st.integers(1, 12),
    width=st.sampled_from([2, 4, 6]),
    block=st.integers(1, 24),
    share=st.sampled_from([1.0, 0.7, 0.2, 0.0]),
    seed=st.integers(0, 2**16),
)


@pytest.mark.parametrize("dtype", TOLERANCE)
@settings(max_examples=60, deadline=None)
@cases
def test_values_equal_window_by_window(
    dtype: torch.dtype,
    batch: int,
    heads: int,
    targets: int,
    length: int,
    width: int,
    block: int,
    share: float,
    seed: int,
) -> None:
    table = _rows(batch, heads, targets, length, width, dtype, seed)
    positions = sinusoidal_table(length, width).to(dtype)
    valid = torch.rand(batch, targets + length - 1, generator=torch.Generator().manual_seed(seed)) < share
    found = sliding_lookup(*table, positions, valid, block=block)
    torch.testing.assert_close(found, _one_by_one(*table, positions, valid), rtol=0, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
@settings(max_examples=30, deadline=None)
@cases
def test_gradients_equal_window_by_window(
    dtype: torch.dtype,
    batch: int,
    heads: int,
    targets: int,
    length: int,
    width: int,
    block: int,
    share: float,
    seed: int,
) -> None:
    table = _rows(batch, heads, targets, length, width, dtype, seed)
    positions = sinusoidal_table(length, width).to(dtype).requires_grad_()
    valid = torch.rand(batch, targets + length - 1, generator=torch.Generator().manual_seed(seed)) < share
    weight = torch.randn(batch, heads, targets, width, generator=torch.Generator().manual_seed(seed + 1), dtype=dtype)
    weight = weight * valid.unfold(1, length, 1).any(-1)[:, None, :, None]  # a window without a valid row has no loss
    inputs = (*table, positions)
    ours = torch.autograd.grad((sliding_lookup(*inputs, valid, block=block) * weight).sum(), inputs)
    theirs = torch.autograd.grad((_one_by_one(*inputs, valid) * weight).sum(), inputs)
    for found, expected in zip(ours, theirs, strict=True):
        torch.testing.assert_close(found, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("length", [1, 31, 32, 33, 64, 100])
@pytest.mark.parametrize("targets", [1, 31, 32, 33, 65])
def test_windows_shorter_and_longer_than_the_block(targets: int, length: int) -> None:
    table = _rows(2, 2, targets, length, 4, torch.float64)
    positions = sinusoidal_table(length, 4).double()
    valid = torch.rand(2, targets + length - 1, generator=torch.Generator().manual_seed(5)) < 0.8
    expected = _one_by_one(*table, positions, valid)
    torch.testing.assert_close(sliding_lookup(*table, positions, valid), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_windows_without_any_valid_row_are_finite_and_alike_in_both(dtype: torch.dtype) -> None:
    table = _rows(1, 2, 40, 8, 4, dtype)
    positions = sinusoidal_table(8, 4).to(dtype)
    valid = torch.ones(1, 47, dtype=torch.bool)
    valid[0, 5:30] = False  # longer than a window
    found = sliding_lookup(*table, positions, valid)
    assert found.isfinite().all()
    torch.testing.assert_close(found, _one_by_one(*table, positions, valid), rtol=0, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("size", [1e2, 1e4])
def test_large_scores_do_not_let_masked_rows_in(size: float) -> None:
    queries, keys, values = _rows(1, 1, 40, 8, 4, torch.float32)
    positions = sinusoidal_table(8, 4)
    valid = torch.rand(1, 47, generator=torch.Generator().manual_seed(6)) < 0.5
    found = sliding_lookup(queries * size, keys, values, positions, valid)
    hidden = ~valid[:, None, :, None]
    changed = sliding_lookup(
        queries * size, keys.masked_fill(hidden, 1e3), values.masked_fill(hidden, 1e3), positions, valid
    )
    kept = valid.unfold(1, 8, 1).any(-1)[0]
    assert torch.equal(found[:, :, kept], changed[:, :, kept])


def test_a_window_does_not_see_rows_outside_it() -> None:
    queries, keys, values = _rows(1, 1, 40, 8, 4, torch.float64)
    positions = sinusoidal_table(8, 4).double()
    valid = torch.ones(1, 47, dtype=torch.bool)
    found = sliding_lookup(queries, keys, values, positions, valid)
    outside = torch.ones(1, 1, 47, 1, dtype=torch.bool)
    outside[:, :, 20:28] = False  # the window of target 20
    changed = sliding_lookup(
        queries, keys.masked_fill(outside, 1e4), values.masked_fill(outside, 1e4), positions, valid
    )
    torch.testing.assert_close(changed[:, :, 20], found[:, :, 20], rtol=0, atol=1e-10)


def test_gradcheck() -> None:
    table = _rows(1, 1, 4, 3, 2, torch.float64)
    positions = sinusoidal_table(3, 2).double().requires_grad_()
    valid = torch.tensor([[True, False, False, True, False, True]])
    assert torch.autograd.gradcheck(lambda *inputs: sliding_lookup(*inputs, valid, block=3), (*table, positions))


def test_gradcheck_of_a_window_without_any_valid_row() -> None:
    table = _rows(1, 1, 1, 3, 2, torch.float64)
    positions = sinusoidal_table(3, 2).double().requires_grad_()
    valid = torch.zeros(1, 3, dtype=torch.bool)
    assert torch.autograd.gradcheck(lambda *inputs: sliding_lookup(*inputs, valid, block=3), (*table, positions))
