"""Cross-entropy as a sum and the weight it stands for."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import cross_entropy

from netanomaly.training.losses import LARGEST_SHARE, class_weights, weighted_cross_entropy

CLASSES, IGNORED = 4, -1
WEIGHTS = torch.tensor([0.2, 1.0, 1.8, 3.0])
smoothings = pytest.mark.parametrize("smoothing", [0.0, 0.1])


def _batch(stretches: int = 8, rows: int = 5, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Logits and targets, some of them ignored, the first one never."""
    draw = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(stretches, rows, CLASSES, generator=draw)
    targets = torch.randint(-1, CLASSES, (stretches, rows), generator=draw)
    targets[0, 0] = CLASSES - 1
    return logits.requires_grad_(), targets


def _mean(logits: Tensor, targets: Tensor, smoothing: float, sizes: list[int]) -> Tensor:
    """The loss of a batch given in parts."""
    parts = zip(logits.split(sizes), targets.split(sizes), strict=True)
    sums = [weighted_cross_entropy(*part, WEIGHTS, smoothing, IGNORED) for part in parts]
    return sum(total for total, _ in sums) / sum(weight for _, weight in sums)


@smoothings
def test_sum_over_weight_is_the_weighted_mean_of_pytorch(smoothing: float) -> None:
    logits, targets = _batch()
    expected = cross_entropy(
        logits.flatten(0, 1), targets.flatten(), WEIGHTS, ignore_index=IGNORED, label_smoothing=smoothing
    )
    torch.testing.assert_close(_mean(logits, targets, smoothing, [8]), expected, rtol=0, atol=1e-6)


@smoothings
@settings(max_examples=50, deadline=None)
@given(cuts=st.sets(st.integers(1, 7)), seed=st.integers(0, 2**16))
def test_parts_of_any_size_add_up_to_the_whole_batch(smoothing: float, cuts: set[int], seed: int) -> None:
    logits, targets = _batch(seed=seed)
    bounds = [0, *sorted(cuts), 8]
    sizes = [stop - start for start, stop in pairwise(bounds)]
    whole, parts = _mean(logits, targets, smoothing, [8]), _mean(logits, targets, smoothing, sizes)
    torch.testing.assert_close(parts, whole, rtol=1e-6, atol=1e-6)
    expected = torch.autograd.grad(whole, logits)[0]
    torch.testing.assert_close(torch.autograd.grad(parts, logits)[0], expected, rtol=0, atol=1e-6)


def test_averaging_the_means_of_parts_would_be_wrong() -> None:
    logits, targets = _batch()
    means = [_mean(logits[i : i + 1], targets[i : i + 1], 0.0, [1]) for i in range(8)]
    assert (torch.stack(means).mean() - _mean(logits, targets, 0.0, [8])).abs() > 1e-3


@smoothings
def test_ignored_rows_have_no_influence(smoothing: float) -> None:
    logits, targets = _batch()
    changed = logits.detach().masked_fill((targets == IGNORED)[..., None], 100.0)
    found = weighted_cross_entropy(changed, targets, WEIGHTS, smoothing, IGNORED)
    expected = weighted_cross_entropy(logits, targets, WEIGHTS, smoothing, IGNORED)
    assert [value.item() for value in found] == [value.item() for value in expected]


@smoothings
def test_ignored_rows_have_no_gradient(smoothing: float) -> None:
    logits, targets = _batch()
    weighted_cross_entropy(logits, targets, WEIGHTS, smoothing, IGNORED)[0].backward()
    assert logits.grad is not None
    assert (logits.grad[targets == IGNORED] == 0).all()
    assert (logits.grad[targets != IGNORED].abs().amax(-1) > 0).all()


def test_nothing_to_learn_weighs_nothing() -> None:
    logits, targets = _batch()
    total, weight = weighted_cross_entropy(logits, torch.full_like(targets, IGNORED), WEIGHTS, 0.1, IGNORED)
    assert (total.item(), weight.item()) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("none", [1.0, 1.0, 1.0]),
        ("balanced", [1 / 15, 4 / 15, 16 / 15]),  # in proportion to 1 / 160, 1 / 40, 1 / 10
        ("sqrt", [1 / 7, 2 / 7, 4 / 7]),
    ],
)
def test_weights_of_classes(kind: str, expected: list[float]) -> None:
    found = class_weights(torch.tensor([160.0, 40.0, 10.0], dtype=torch.float64), kind)
    scale = 1.0 if kind == "none" else 3 / sum(expected)
    torch.testing.assert_close(found, torch.tensor(expected) * scale)


@settings(max_examples=50, deadline=None)
@given(counts=st.lists(st.integers(0, 10**9), min_size=2, max_size=12).filter(lambda some: sum(map(bool, some)) > 1))
def test_capped_no_class_counts_for_more_than_its_share_and_the_others_are_left_alone(counts: list[int]) -> None:
    rows = torch.tensor(counts, dtype=torch.float64)
    weights = class_weights(rows, "capped").double()
    shares = rows * weights / (rows * weights).sum()
    assert shares.max() <= LARGEST_SHARE + 1e-6
    over = rows > LARGEST_SHARE * rows.sum()
    assert (weights[~over] == 1).all()
    if over.any():
        torch.testing.assert_close(shares[over], torch.full((1,), LARGEST_SHARE, dtype=torch.float64))


def test_one_class_alone_keeps_its_weight() -> None:
    assert class_weights(torch.tensor([9.0, 0.0]), "capped").tolist() == [1.0, 1.0]


@pytest.mark.parametrize("kind", ["none", "balanced", "sqrt"])
@settings(max_examples=50, deadline=None)
@given(counts=st.lists(st.integers(0, 10**9), min_size=2, max_size=12).filter(any))
def test_weights_of_classes_with_rows_are_positive_with_a_mean_of_one(kind: str, counts: list[int]) -> None:
    weights = class_weights(torch.tensor(counts, dtype=torch.float64), kind)
    assert weights.dtype == torch.float32
    present = torch.tensor(counts) > 0 if kind != "none" else torch.ones(len(counts), dtype=torch.bool)
    assert ((weights > 0) == present).all()
    assert weights[present].double().mean().item() == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("kind", ["balanced", "sqrt"])
def test_a_class_without_rows_weighs_nothing_and_changes_no_other_weight(kind: str) -> None:
    found = class_weights(torch.tensor([50.0, 0.0, 1.0], dtype=torch.float64), kind)
    assert found[1] == 0
    torch.testing.assert_close(found[[0, 2]], class_weights(torch.tensor([50.0, 1.0], dtype=torch.float64), kind))
