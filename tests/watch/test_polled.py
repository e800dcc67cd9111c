"""Steps of Prometheus are asked for once each, also after it did not answer."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, cast

import numpy as np
import pytest

from netanomaly import DataError
from netanomaly.data.ingest import Table
from netanomaly.prometheus.client import MOST_POINTS, Unreachable
from netanomaly.prometheus.table import PrometheusTables
from netanomaly.watch.polled import AGAIN_SECONDS, PolledRows
from streams import metrics_table

SECOND = 10**9
STEP = 10 * SECOND
START = 1_772_323_200 * SECOND


class Asked:
    """In the place of Prometheus: notes what it is asked; has a row at every step."""

    step = STEP

    def __init__(self) -> None:
        self.ranges: list[tuple[int, int]] = []
        self.fails = 0
        self.refuses: list[str] = []
        self.piece = 10**9
        """Steps of a table."""

    def tables(self, start: int, end: int, refused: Any = None) -> Iterator[Table]:
        if self.fails:
            self.fails -= 1
            raise Unreachable("no answer")
        self.ranges.append((start, end))
        for first in range(start, end + 1, self.piece * STEP):
            if self.refuses and first > start:
                raise DataError(self.refuses.pop(0))
            yield metrics_table(np.arange(first, min(end + 1, first + self.piece * STEP), STEP))


class Clock:
    """A time that goes on when somebody sleeps."""

    def __init__(self) -> None:
        self.now = START + 3 * SECOND

    def __call__(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += round(seconds * 1e9)


def polled(asked: Asked, clock: Clock, after: int | None = None) -> PolledRows:
    found = PolledRows(cast(PrometheusTables, asked), after, clock=clock, sleep=clock.sleep)
    asked.ranges.clear()  # the first question only sees whether there is an answer
    return found


def test_each_step_is_asked_for_a_step_after_its_moment() -> None:
    asked, clock = Asked(), Clock()
    source = polled(asked, clock)
    for delivery in source.deliveries():
        if delivery.rows:
            (start, end) = asked.ranges[-1]
            assert start == end and STEP <= clock.now - end < 2 * STEP + SECOND
        if len(asked.ranges) == 5:
            break
    assert [start for start, _ in asked.ranges] == [START + (number - 1) * STEP for number in range(5)]


def test_it_goes_on_after_the_last_row_that_is_known() -> None:
    asked, clock = Asked(), Clock()
    source = polled(asked, clock, START - 7 * STEP + SECOND)
    delivery = next(source.deliveries())
    assert asked.ranges == [(START - 6 * STEP, START - STEP)] and delivery.rows == 6


def test_what_has_piled_up_comes_in_pieces() -> None:
    asked, clock = Asked(), Clock()
    source = polled(asked, clock, START - (2 * MOST_POINTS + 1) * STEP)
    list(islice(source.deliveries(), 2))
    assert [(end - start) // STEP + 1 for start, end in asked.ranges] == [MOST_POINTS, MOST_POINTS]
    assert asked.ranges[1][0] == asked.ranges[0][1] + STEP


def test_while_there_is_no_answer_it_waits_and_then_asks_for_all(caplog: pytest.LogCaptureFixture) -> None:
    asked, clock = Asked(), Clock()
    source = polled(asked, clock)
    asked.fails = 4
    found = [delivery.rows for delivery in islice(source.deliveries(), 5)]
    assert found[:4] == [0] * 4 and found[4] == 1 + 4 * AGAIN_SECONDS / 10
    assert [record.message for record in caplog.records] == [
        "no answer; asked again every 10 s",
        "Prometheus answers again",
    ]


def test_a_refusal_is_told_once_and_asked_again_from_where_rows_have_come(caplog: pytest.LogCaptureFixture) -> None:
    asked, clock = Asked(), Clock()
    source = polled(asked, clock, START - 31 * STEP)
    asked.piece, asked.refuses = 10, ["HTTP 422: too many", "HTTP 422: too many", "HTTP 400: no"]
    found = [delivery.rows for delivery in islice(source.deliveries(), 8)]
    assert found[:5] == [10, 0, 10, 0, 10]  # not all of them at once
    assert sum(found) == 30 + (len(asked.ranges) - 1) * AGAIN_SECONDS / 10
    starts = [start for start, _ in asked.ranges]
    assert starts[:3] == [START - 30 * STEP, START - 20 * STEP, START - 10 * STEP]
    assert "HTTP 422: too many; asked again every 10 s" in caplog.text


def test_a_first_question_without_an_answer_is_an_error() -> None:
    asked = Asked()
    asked.fails = 1
    with pytest.raises(DataError, match="no answer"):
        polled(asked, Clock())
