"""Metrics that are hidden while a model learns."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from netanomaly.training.metric_dropout import MetricDropout

GROUPS, METRICS, MISSING = 3, 4, 2


def _channels(stretches: int = 64) -> torch.Tensor:
    """Nothing is zero, and the missing channels are not one."""
    return 2 + torch.rand(stretches, 5, GROUPS * METRICS)


@given(st.floats(0, 0.99), st.integers(0, 99))
def test_a_metric_is_hidden_in_the_whole_stretch_or_not_at_all(share: float, seed: int) -> None:
    torch.manual_seed(seed)
    given_, before = _channels(), torch.random.get_rng_state()
    kept = given_.clone()
    found = MetricDropout(share, METRICS, MISSING)(given_).unflatten(-1, (GROUPS, METRICS))
    assert torch.equal(given_, kept) and not torch.equal(before, torch.random.get_rng_state())
    kept = kept.unflatten(-1, (GROUPS, METRICS))
    hidden = (found != kept).flatten(1, 2)  # (B, S G, M)
    assert torch.equal(hidden.all(dim=1), hidden.any(dim=1))
    wanted = torch.tensor([0.0, 0.0, 1.0])[:, None].expand_as(kept)
    assert torch.equal(found, torch.where(hidden.all(dim=1)[:, None, None], wanted, kept))
    assert not hidden.all(dim=1).all(dim=1).any()  # one stays


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_about_the_share_is_hidden_and_stretches_differ(share: float) -> None:
    torch.manual_seed(0)
    found = MetricDropout(share, 10, None)(torch.ones(2000, 1, 10))[:, 0] == 0
    assert found.double().mean().item() == pytest.approx(share, abs=0.02)
    assert found.double().mean(0).min() > share - 0.05 and len(found.unique(dim=0)) > 100


def test_without_a_missing_channel_hidden_is_zero() -> None:
    torch.manual_seed(0)
    found = MetricDropout(0.9, METRICS, None)(_channels())
    assert set(found[found < 2].tolist()) == {0.0}


def test_a_single_metric_always_stays() -> None:
    channels = torch.rand(20, 3, 2)
    assert torch.equal(MetricDropout(0.99, 1, 1)(channels), channels)
