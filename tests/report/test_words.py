"""Times, numbers and sentences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from made import content

from alarms.hand_made import alarms, truth
from netanomaly.data.schema import Metric
from netanomaly.data.timestamps import TimeFormat
from netanomaly.report.clock import Clock, length
from netanomaly.report.incidents import incidents
from netanomaly.report.numbers import DASH, number, percent, unit
from netanomaly.report.words import sentences

SECOND = 10**9
TEN = 1_772_361_600 * SECOND  # 2026-03-01 10:40:00


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.5, "0.5 s"),
        (59, "59 s"),
        (60, "1 min"),
        (125, "2 min 5 s"),
        (3600, "1 h"),
        (90061, "1 d 1 h"),
        (1e-6, "1e-06 s"),
    ],
)
def test_lengths(seconds: float, text: str) -> None:
    assert length(round(seconds * SECOND)) == text


def test_moments_have_no_more_than_they_need() -> None:
    clock = Clock(TimeFormat(), SECOND // 2)
    assert clock.full(TEN) == "2026-03-01 10:40:00 UTC"
    assert clock.full(TEN + SECOND // 2) == "2026-03-01 10:40:00.5 UTC"
    assert clock.short(TEN + SECOND, TEN) == "10:40:01"
    assert clock.short(TEN + 86_400 * SECOND, TEN) == "2026-03-02 10:40:00"
    assert clock.between(TEN, TEN + SECOND) == "10:40:00 to 10:40:01.5"
    assert clock.between(TEN, TEN + 86_400 * SECOND) == "2026-03-01 10:40:00 to 2026-03-02 10:40:00.5"
    assert clock.axis(np.array([TEN])).tolist() == [TEN / 1e6]


def test_data_that_count_time_are_told_in_counts() -> None:
    clock = Clock(TimeFormat("elapsed", "ms"), SECOND)
    assert clock.between(5 * SECOND, 7 * SECOND) == "5000 ms to 8000 ms"
    assert clock.axis(np.array([5 * SECOND])).tolist() == [5.0]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (96.84, "96.8"), (0.01234, "0.0123"), (9999.0, "10k"), (5_571_000.0, "5.57M"), (float("nan"), DASH)],
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text


def test_shares_are_not_rounded_to_all_or_nothing() -> None:
    assert [percent(share) for share in (0.0, 0.001, 0.5, 0.999, 1.0)] == ["0 %", "< 1 %", "50 %", "> 99 %", "100 %"]
    assert percent(0.0004, 1) == "< 0.1 %"


def test_the_unit_of_a_counter_is_a_rate() -> None:
    assert unit(Metric("m", "m", "packet", "counter")) == "packet/s"
    assert unit(Metric("m", "m", "1", "counter")) == "1/s" and unit(Metric("m", "m")) == ""


def test_what_the_labels_say_of_alarms_and_what_was_missed() -> None:
    made = content("x")
    told = alarms(("x", "a", 2, 4, 2), ("x", "b", 8, 9, 8), ("x", "b", 12, 14, 12), ("x", "a", 21, 22, 21))
    rows = truth(x="..aaa...aa....bb....    ")
    found = incidents(replace(made, alarms=told, scored=(rows, made.scored[1])))  # type: ignore[index]
    assert [(one.start // SECOND, one.label, one.verdict, one.truth) for one in found] == [
        (2, "a", "right", ("a",)),
        (8, "a", "missed", ("a",)),
        (8, "b", "wrong name", ("a",)),
        (12, "b", "right", ("b",)),
        (21, "a", "no label", ()),
    ]
    assert [one.number for one in found] == [0, -1, 1, 2, 3]
    assert {one.verdict for one in incidents(replace(made, alarms=told, scored=None))} == {None}


def test_a_sentence_says_which_series_had_what_and_when() -> None:
    made = content("a", "b", labelled=False)
    first = int(made.series[0].times[0])
    told = alarms(("b", "congestion", 10, 69, 12), ("b", "packet_loss", 80, 81, 80), ("b", "congestion", 90, 94, 90))
    shifted = {name: getattr(told, name) + first for name in ("starts", "lasts", "raised", "peaks")}
    made = replace(made, alarms=replace(told, **shifted))
    b, a = sentences(made, incidents(made))
    assert (a.series, a.text) == ("a", "no alarm in 200 rows")
    assert b.series == "b" and b.longest == 0
    assert b.text == (
        "3 alarms: 2 congestion, 1 packet_loss; longest congestion 10:40:10 to 10:41:10 (1 min, confidence 1.00)"
    )
