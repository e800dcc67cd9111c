"""Dropout against what it promises: shares, means, gradients, and nothing outside training."""

from __future__ import annotations

import pytest
import torch

from netanomaly.model.dropout import Dropout


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_it_zeroes_the_share_and_keeps_the_mean(share: float) -> None:
    torch.manual_seed(0)
    found = Dropout(share)(torch.ones(1000, 1000))
    assert abs((found == 0).double().mean().item() - share) < 0.002  # four standard deviations
    assert abs(found.double().mean().item() - 1) < 0.02
    assert len(found.unique()) == 2


def test_numbers_that_share_random_bits_are_independent() -> None:
    torch.manual_seed(0)
    quads = (Dropout(0.5)(torch.ones(100_000, 4)) == 0).double()  # 64 bits each
    assert (torch.corrcoef(quads.T) - torch.eye(4)).abs().max() < 0.015
    assert (quads.mean(0) - 0.5).abs().max() < 0.01


@pytest.mark.parametrize("shape", [(1,), (3, 5), (2, 3, 7)])
def test_any_shape_and_the_gradient_is_the_mask(shape: tuple[int, ...]) -> None:
    rows = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    found = Dropout(0.5)(rows)
    assert found.shape == shape
    (gradient,) = torch.autograd.grad(found.sum(), rows)
    torch.testing.assert_close(gradient * rows, found)


def test_the_seed_decides() -> None:
    drop, rows = Dropout(0.5), torch.ones(100)
    torch.manual_seed(1)
    first = drop(rows)
    torch.manual_seed(1)
    assert torch.equal(drop(rows), first)
    assert not torch.equal(drop(rows), first)


def test_nothing_happens_without_training_or_share() -> None:
    rows = torch.randn(5)
    assert Dropout(0.5).eval()(rows) is rows
    assert Dropout(0.0)(rows) is rows


def test_a_share_next_to_one_stays_finite() -> None:
    torch.manual_seed(0)
    assert Dropout(0.9999999)(torch.ones(100)).isfinite().all()
