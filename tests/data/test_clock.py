"""Steps between rows are the same however the rows are cut into pieces."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netanomaly.data.clock import Clock, jumps, rounded
from streams import times_near_halves

PROPERTY = settings(max_examples=80, deadline=None)
INTERVALS = st.sampled_from([1, 2, 5, 10, 1_000_000_007, 10**9])


def ns(*times: int) -> np.ndarray:
    return np.array(times, dtype=np.int64)


def in_pieces(times: np.ndarray, interval: int, cuts: list[int]) -> tuple[list[int], Clock | None]:
    """The jumps and the clock of rows that come piece by piece."""
    steps: list[int] = []
    clock: Clock | None = None
    for piece in np.split(times, sorted({cut for cut in cuts if 0 < cut < len(times)})):
        found, clock = jumps(piece, interval, clock)
        steps += found.tolist()
    return steps, clock


@PROPERTY
@given(INTERVALS, st.data(), st.lists(st.integers(1, 40), max_size=8))
def test_pieces_give_the_steps_and_the_clock_of_all_rows_at_once(
    interval: int, data: st.DataObject, cuts: list[int]
) -> None:
    times = data.draw(times_near_halves(interval))
    whole, clock = jumps(times, interval)
    assert in_pieces(times, interval, cuts) == (whole.tolist(), clock)
    assert in_pieces(times, interval, list(range(len(times)))) == (whole.tolist(), clock)


@PROPERTY
@given(INTERVALS, st.integers(-(10**18), 10**18))
def test_differences_are_rounded_exactly_and_halves_upwards(interval: int, difference: int) -> None:
    exact = math.floor(Fraction(difference, interval) + Fraction(1, 2))
    assert rounded(difference, interval) == exact
    assert rounded(ns(difference), interval).tolist() == [exact]


@PROPERTY
@given(INTERVALS, st.integers(-(10**17), 10**17), st.lists(st.integers(1, 2**30), max_size=20))
def test_rows_with_steps_of_their_own_are_measured_from_the_row_before(
    interval: int, start: int, apart: list[int]
) -> None:
    at_least_half = [interval - interval // 2 + more % (3 * interval) for more in apart]
    times = ns(*np.cumsum([start, *at_least_half]).tolist())
    steps, clock = jumps(times, interval)
    assert steps.tolist() == [0, *(math.floor(Fraction(a, interval) + Fraction(1, 2)) for a in at_least_half)]
    assert clock == Clock(int(times[-1]), shared=False)


@pytest.mark.parametrize(
    ("times", "steps", "clock"),
    [
        ([7], [0], Clock(7, False)),
        ([7, 7], [0, 0], Clock(7, True)),
        ([0, 14, 28, 42], [0, 1, 1, 1], Clock(42, False)),  # drifts, and never collides
        ([0, 4, 8], [0, 0, 1], Clock(10, False)),  # after a shared step the clock decides: 8 counts as 10
        ([0, 4, 8, 14], [0, 0, 1, 0], Clock(10, True)),
        ([0, 4, 8, 15], [0, 0, 1, 1], Clock(15, False)),
        ([3, 6, 8, 9], [0, 0, 1, 0], Clock(10, True)),
        ([6, 7, 11], [0, 0, 1], Clock(10, False)),  # a row that leaves the step leaves it, whatever the clock says
        ([3, 6, 96], [0, 0, 10], Clock(100, False)),
        ([2, 4, 8, 9, 14], [0, 0, 1, 0, 0], Clock(10, True)),
    ],
)
def test_after_a_shared_step_the_clock_decides(times: list[int], steps: list[int], clock: Clock) -> None:
    found, after = jumps(ns(*times), 10)
    assert (found.tolist(), after) == (steps, clock)


def test_the_first_row_of_later_pieces_may_share_a_step() -> None:
    _, clock = jumps(ns(0, 10), 10)
    assert jumps(ns(14, 15, 24), 10, clock)[0].tolist() == [0, 1, 0]  # 15 counts as 20


def test_nothing_that_was_given_is_changed() -> None:
    times = ns(0, 4, 8)
    before = Clock(-10, shared=True)
    jumps(times, 10, before)
    assert times.tolist() == [0, 4, 8]
    assert before == Clock(-10, shared=True)
