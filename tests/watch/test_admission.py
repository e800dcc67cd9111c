"""Which rows are taken, and what becomes of the others."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from netanomaly.data.ingest import Table, select_rows
from netanomaly.watch.admission import FAR_BEHIND, IN_A_ROW, Admission
from netanomaly.watch.counts import AHEAD, ANSWERED, LATE, TWICE
from streams import metrics_table

SECOND = 10**9
NOW = 1_800_000_000 * SECOND


class Times:
    """As much of a stream as is needed here."""

    def __init__(self, times: dict[str, int] | None = None) -> None:
        self.times = dict(times or {})

    def last_times(self, series: list[str]) -> tuple[np.ndarray, np.ndarray]:
        return np.array([self.times.get(name, 0) for name in series]), np.array([name in self.times for name in series])

    def begin_again(self, name: str) -> None:
        self.times.pop(name, None)

    def take(self, table: Table) -> None:
        for name, moment in zip(table.series, table.times, strict=True):
            assert moment >= self.times.get(name, 0)
            self.times[name] = int(moment)


def table(rows: list[tuple[str, int]]) -> Table:
    """Rows of these series and times."""
    found = metrics_table(np.array([time for _, time in rows], dtype=np.int64))
    series = np.array([name for name, _ in rows], dtype=object)
    return Table(
        found.metrics,
        series,
        *(getattr(found, n) for n in ("times", "time_texts", "values", "labels", "parts", "origins")),
    )


def admitted(
    rows: list[tuple[str, int]], at_once: int, stream: Times, **options: Any
) -> tuple[list[int], Counter[str]]:
    """Which rows are taken, so many judged at once, and the kinds of the others."""
    given_options = {"may_share": False, "clock": lambda: NOW, **options}
    judge = Admission(stream, SECOND, **given_options)  # type: ignore[arg-type]
    taken: list[int] = []
    kinds: Counter[str] = Counter()
    for first in range(0, len(rows), at_once):
        numbers = np.arange(first, min(first + at_once, len(rows)))
        while len(numbers):
            piece = table([rows[number] for number in numbers])
            verdict = judge.judge(piece)
            stream.take(select_rows(piece, verdict.taken))
            taken += numbers[verdict.taken].tolist()
            kinds.update(row.kind for row in verdict.left_out)
            assert all(isinstance(row.said(), str) for row in verdict.left_out)
            for name in verdict.again:
                judge.begin_again(name)
            numbers = numbers[verdict.waiting]
    assert len(taken) + kinds.total() == len(rows)  # each row has one end
    return sorted(taken), kinds


TIMES = st.one_of(st.integers(0, 40), st.sampled_from([0, 10**6, 2 * 10**6]))


@examples(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ab"), TIMES), max_size=30), st.integers(1, 30), st.booleans())
def test_rows_are_judged_alike_however_many_come_at_once(
    rows: list[tuple[str, int]], at_once: int, may_share: bool
) -> None:
    timed = [(name, NOW - 10**7 * SECOND + time * SECOND // 2) for name, time in rows]
    before = {"a": timed[0][1]} if timed else {}
    options = {"may_share": may_share, "sent_again": ["a"]}
    one = admitted(timed, 1, Times(before), **options)
    assert admitted(timed, at_once, Times(before), **options) == one


def test_late_rows_and_rows_that_come_twice_are_told_apart() -> None:
    rows = [("a", NOW), ("a", NOW), ("a", NOW - SECOND), ("a", NOW + SECOND), ("b", NOW - 5 * SECOND)]
    assert admitted(rows, 9, Times()) == ([0, 3, 4], Counter({TWICE: 1, LATE: 1}))
    assert admitted(rows, 9, Times(), may_share=True) == ([0, 1, 3, 4], Counter({LATE: 1}))


def test_rows_from_the_future_are_left_out_and_silence_nobody() -> None:
    rows = [("a", NOW), ("a", NOW + 601 * SECOND), ("a", NOW + SECOND), ("b", NOW + 600 * SECOND)]
    assert admitted(rows, 9, Times(), max_ahead=600 * SECOND) == ([0, 2, 3], Counter({AHEAD: 1}))
    assert admitted(rows, 9, Times())[1] == Counter({LATE: 1})


def test_a_series_begins_again_after_a_time_that_was_wrong() -> None:
    rows = [("a", NOW), *(("a", NOW - 2 * FAR_BEHIND + n * SECOND) for n in range(IN_A_ROW + 5))]
    taken, kinds = admitted(rows, 7, Times())
    assert taken == [0, *range(IN_A_ROW, IN_A_ROW + 6)]
    assert kinds == Counter({LATE: IN_A_ROW - 1})


def test_late_rows_that_are_near_make_nothing_begin_again() -> None:
    rows = [("a", NOW), *(("a", NOW - FAR_BEHIND + n * SECOND) for n in range(5 * IN_A_ROW))]
    assert admitted(rows, 7, Times())[0] == [0]


def test_a_good_row_between_makes_nothing_begin_again() -> None:
    far = [("a", NOW - 2 * FAR_BEHIND)] * (IN_A_ROW - 1)
    rows = [("a", NOW), *far, ("a", NOW + SECOND), *far]
    assert admitted(rows, 100, Times())[0] == [0, IN_A_ROW]


@pytest.mark.parametrize("may_share", [True, False])
def test_rows_that_are_sent_again_are_counted_apart(may_share: bool) -> None:
    rows = [("a", NOW - 2 * SECOND), ("a", NOW), ("a", NOW + SECOND), ("a", NOW), ("b", NOW)]
    options = {"may_share": may_share, "sent_again": ["a"]}
    assert admitted(rows, 9, Times({"a": NOW}), **options) == ([2, 4], Counter({ANSWERED: 2, LATE: 1}))
