"""The learning rate as a function of the step."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netanomaly.training.schedule import learning_rate_factor

TABLE = [0.25, 0.5, 0.75, 1.0, 1.0, 0.8535533905932737, 0.5, 0.14644660940672627, 0.0, 0.0]  # 4 of warm-up, 8 in all

steps = given(total=st.integers(1, 500), share=st.floats(0, 0.99))
moderate = settings(max_examples=60, deadline=None)


def _factors(total: int, share: float) -> tuple[list[float], int]:
    """The factor of every step and some beyond, and the warm-up's length, as training rounds it."""
    warmup = round(share * total)
    return [learning_rate_factor(step, warmup, total) for step in range(total + 20)], warmup


def test_table_of_values() -> None:
    assert [learning_rate_factor(step, 4, 8) for step in range(10)] == pytest.approx(TABLE, abs=1e-12)


@moderate
@steps
def test_first_step_is_not_without_effect(total: int, share: float) -> None:
    assert _factors(total, share)[0][0] > 0


@moderate
@steps
def test_peak_is_reached_exactly_at_the_last_step_of_the_warm_up(total: int, share: float) -> None:
    factors, warmup = _factors(total, share)
    assert factors[max(warmup - 1, 0)] == 1.0
    assert all(factor < 1 for factor in factors[: max(warmup - 1, 0)])


@moderate
@steps
def test_rises_up_to_the_peak_and_never_after(total: int, share: float) -> None:
    factors, warmup = _factors(total, share)
    peak = max(warmup - 1, 0)
    assert factors[: peak + 1] == sorted(factors[: peak + 1])
    assert factors[peak:] == sorted(factors[peak:], reverse=True)


@moderate
@steps
def test_stays_between_zero_and_one(total: int, share: float) -> None:
    assert all(0 <= factor <= 1 for factor in _factors(total, share)[0])


@moderate
@steps
def test_zero_at_the_end_and_beyond(total: int, share: float) -> None:
    assert not any(_factors(total, share)[0][total:])


@moderate
@given(order=st.permutations(range(30)))
def test_what_was_asked_before_does_not_matter(order: list[int]) -> None:
    in_order = [learning_rate_factor(step, 5, 25) for step in range(30)]
    assert [learning_rate_factor(step, 5, 25) for step in order] == [in_order[step] for step in order]
