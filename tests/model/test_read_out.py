"""From the rows of a window to one vector."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from netanomaly.model.choices import ReadOut as Kind
from netanomaly.model.read_out import ReadOut

WIDTH = 4
kinds = pytest.mark.parametrize("kind", ["last", "cls", "mean", "attention"])


def _rows(share: float = 0.6) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    return torch.randn(3, 7, WIDTH, generator=draw), torch.rand(3, 7, generator=draw) < share


def _read_out(kind: Kind) -> ReadOut:
    torch.manual_seed(1)
    return ReadOut(kind, WIDTH)


@pytest.mark.parametrize("kind", ["last", "mean", "attention"])
def test_without_a_token_the_rows_stay_as_they_are(kind: Kind) -> None:
    rows, valid = _rows()
    prepared = _read_out(kind).prepare(rows, valid)
    assert prepared[0] is rows
    assert prepared[1] is valid


def test_a_token_stands_behind_the_newest_row_and_is_valid() -> None:
    rows, valid = _rows(share=0.0)
    read_out = _read_out("cls")
    prepared, held = read_out.prepare(rows, valid)
    assert torch.equal(prepared[:, :-1], rows)
    assert torch.equal(prepared[:, -1], read_out.token.expand(3, -1))
    assert held.tolist() == [[False] * 7 + [True]] * 3


@pytest.mark.parametrize("kind", ["last", "cls"])
def test_last_and_cls_read_what_stands_last(kind: Kind) -> None:
    rows, valid = _rows()
    assert torch.equal(_read_out(kind)(rows, valid), rows[:, -1])


def test_mean_is_that_of_the_valid_rows() -> None:
    rows, valid = _rows()
    expected = torch.stack([window[held].mean(0) for window, held in zip(rows, valid, strict=True)])
    torch.testing.assert_close(_read_out("mean")(rows, valid), expected, rtol=0, atol=1e-6)


def test_attention_weighs_the_valid_rows_by_what_they_hold() -> None:
    rows, valid = _rows()
    read_out = _read_out("attention")
    expected = []
    for window, held in zip(rows, valid, strict=True):
        weights = (window[held] @ read_out.weigh.weight[0]).softmax(0)
        expected.append(weights @ window[held])
    torch.testing.assert_close(read_out(rows, valid), torch.stack(expected), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ["mean", "attention"])
def test_the_order_of_the_rows_does_not_matter(kind: Kind) -> None:
    rows, valid = _rows()
    order = torch.randperm(7, generator=torch.Generator().manual_seed(2))
    read_out = _read_out(kind)
    torch.testing.assert_close(read_out(rows[:, order], valid[:, order]), read_out(rows, valid), rtol=0, atol=1e-6)


@kinds
def test_without_any_valid_row_it_is_finite(kind: Kind) -> None:
    rows, valid = _rows(share=0.0)
    assert _read_out(kind)(rows, valid).isfinite().all()
