"""The look-up written out, against loops over single rows and PyTorch's attention."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from lookups import TOLERANCE, Table, assert_same_look_up, by_hand, gradients, tables
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from netanomaly.model.lookup import Relative, hide, lookup
from netanomaly.model.masks import MaskRule

SHAPES = [(1, 1, 1, 2), (2, 3, 7, 4), (3, 4, 33, 8)]  # N, H, L, d


def _table(shape: tuple[int, int, int, int] = (2, 3, 7, 4), share: float = 0.5, **changes: Any) -> Table:
    """Every row asks; the newest is always valid unless none is."""
    draw = torch.Generator().manual_seed(0)
    queries, keys, values = (
        torch.randn(shape, generator=draw, dtype=torch.float64, requires_grad=True) for _ in range(3)
    )
    valid = torch.rand(shape[0], shape[2], generator=draw) < share
    valid[:, -1] |= share > 0
    return replace(Table(queries, keys, values, valid), **changes)


@settings(max_examples=60, deadline=None)
@given(tables(vectors=True))
def test_every_answer_is_that_of_its_own_loop(table: Table) -> None:
    expected = by_hand(table)
    found = table.found(lookup)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    for ours, theirs in zip(gradients(found, table), gradients(expected, table), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("share", [1.0, 0.5, 0.1])
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_scaled_dot_product_attention(shape: tuple[int, int, int, int], dtype: torch.dtype, share: float) -> None:
    table = _table(shape, share).as_type(dtype)

    def theirs(queries: Tensor, keys: Tensor, values: Tensor, valid: Tensor, **_: object) -> Tensor:
        return scaled_dot_product_attention(queries, keys, values, attn_mask=valid[:, None, None], scale=1.0)

    assert_same_look_up(lookup, theirs, table)


@pytest.mark.parametrize("relative", [False, True])
def test_weights_of_a_look_up_sum_to_one(relative: bool) -> None:
    bias = torch.randn(3, 13, dtype=torch.float64)
    table = _table(relative=Relative(bias) if relative else None, mask=MaskRule(causal=True))
    found = replace(table, values=torch.ones_like(table.values)).found(lookup)
    torch.testing.assert_close(found, torch.ones_like(found), rtol=0, atol=1e-12)


@pytest.mark.parametrize("normalise", ["softmax", "none"])
def test_rows_that_are_not_valid_have_no_influence(normalise: str) -> None:
    table = _table(normalise=normalise)
    hidden = ~table.valid[:, None, :, None]
    changed = replace(table, keys=table.keys.masked_fill(hidden, 1e6), values=table.values.masked_fill(hidden, 1e6))
    assert torch.equal(changed.found(lookup), table.found(lookup))


def test_without_any_valid_row_it_is_the_mean_of_all() -> None:
    table = _table(share=0.0)
    mean = table.values.mean(2, keepdim=True)
    torch.testing.assert_close(table.found(lookup), mean.expand_as(table.values), rtol=0, atol=1e-12)


def test_without_any_valid_row_and_without_softmax_it_finds_nothing() -> None:
    table = _table(share=0.0, normalise="none")
    assert torch.equal(table.found(lookup), torch.zeros_like(table.values))


def test_a_query_that_sees_no_valid_row_gets_the_mean_of_what_it_may_see() -> None:
    table = _table(mask=MaskRule(causal=True))
    table.valid[:, :3] = False
    found = table.found(lookup)
    torch.testing.assert_close(found[:, :, 2], table.values[:, :, :3].mean(2), rtol=0, atol=1e-12)


def test_what_is_hidden_is_finite_where_it_was_not_measured_and_not_outside_the_mask() -> None:
    valid, allowed = torch.tensor([True, False, False, True]), torch.tensor([True, True, False, False])
    lowest = torch.finfo(torch.float64).min
    hidden = hide(torch.ones(4, dtype=torch.float64), valid, allowed)
    assert hidden.tolist() == [1.0, lowest, -torch.inf, -torch.inf]


@pytest.mark.parametrize("normalise", ["softmax", "none"])
def test_gradcheck(normalise: str) -> None:
    draw = torch.Generator().manual_seed(0)
    parts = [
        torch.randn(shape, generator=draw, dtype=torch.float64, requires_grad=True)
        for shape in [(2, 2, 2, 2), (2, 1, 3, 2), (2, 1, 3, 3), (2, 5), (5, 2), (5, 3)]
    ]
    valid = torch.tensor([[True, False, True], [False, False, False]])

    def run(queries: Tensor, keys: Tensor, values: Tensor, *relative: Tensor) -> Tensor:
        mask = MaskRule(causal=True, prefix=1)
        table = Table(queries, keys, values, valid, Relative(*relative), mask, normalise)  # type: ignore[arg-type]
        return table.found(lookup)

    assert torch.autograd.gradcheck(run, parts)
