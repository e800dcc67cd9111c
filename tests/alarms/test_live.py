"""Alarms as rows come are those of all rows together."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hand_made import CLASSES, SECOND, _probabilities, raised, seconds
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from netanomaly.alarms.live import Event, LiveAlarms, alarms_of
from netanomaly.alarms.raising import Alarms
from netanomaly.alarms.rule import AlarmRule

HALF = AlarmRule({"a": 0.5, "b": 0.5}, hysteresis=1.0)
LETTERS = st.text(alphabet="01234567899 ABCDEFGHIJ", max_size=40)
RULES = st.builds(
    lambda a, b, h, m, g: AlarmRule({"a": a, "b": b}, h, m, g),
    *[st.sampled_from([0.3, 0.5, 0.9])] * 2,
    st.sampled_from([0.4, 1.0]),
    st.integers(1, 4),
    st.integers(0, 3),
)


def lived(live: LiveAlarms, rows: list[tuple[str, int, str]], cuts: tuple[int, ...] = ()) -> list[Event]:
    """What is told of rows (series, second, letter) that come in pieces."""
    events: list[Event] = []
    for some in np.split(np.arange(len(rows)), sorted(cuts)):
        part = [rows[i] for i in some]
        events += live.take(
            np.array([name for name, _, _ in part], dtype=object),
            np.array([second for _, second, _ in part], dtype=np.int64) * SECOND,
            np.array([_probabilities(letter) for _, _, letter in part]).reshape(len(part), 3),
            np.array([2.0 if letter in "9J" else 0.0 for _, _, letter in part]),
        )
    return events


def rows_of(**series: str) -> list[tuple[str, int, str]]:
    """All seconds of the first series first, as a file has them: each series in order of time."""
    return [(name, second, letter) for name, letters in series.items() for second, letter in enumerate(letters)]


def all_of(live: LiveAlarms, events: list[Event]) -> Alarms:
    """What is over and what goes on, in the order of `AlarmCollector`."""
    told = [event.incident for event in events if event.kind == "closed"] + live.open
    return alarms_of(sorted(told, key=lambda one: (one.raised, one.series, one.label)))


@examples(max_examples=100, deadline=None)
@given(RULES, LETTERS, LETTERS, st.lists(st.integers(0, 80), max_size=4), st.booleans())
def test_they_are_those_of_all_rows_together(rule: AlarmRule, x: str, y: str, cuts: list[int], mixed: bool) -> None:
    rows = rows_of(x=x, y=y)
    if mixed:
        rows.sort(key=lambda row: row[1])
    live = LiveAlarms(rule, CLASSES, SECOND)
    events = lived(live, rows, tuple(cuts))
    wanted = raised(rule, x=x, y=y)
    found = all_of(live, events)
    for name in ("series", "labels", "starts", "lasts", "raised", "peaks", "rows"):
        assert getattr(found, name).tolist() == getattr(wanted, name).tolist(), name
    for name in ("peak_confidence", "mean_confidence", "onset_certainty"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-12)
    opened = [event.incident for event in events if event.kind == "opened"]
    assert sorted((one.series, one.label, one.start) for one in opened) == sorted(
        zip(wanted.series, wanted.labels, wanted.starts.tolist(), strict=True)
    )
    assert live.opened.total() == len(wanted)


@examples(max_examples=50, deadline=None)
@given(RULES, LETTERS, st.integers(0, 40))
def test_a_state_changes_nothing(rule: AlarmRule, x: str, cut: int) -> None:
    rows, whole = rows_of(x=x), LiveAlarms(rule, CLASSES, SECOND)
    wanted = [_plain(event) for event in lived(whole, rows)]
    first, second = LiveAlarms(rule, CLASSES, SECOND), LiveAlarms(rule, CLASSES, SECOND)
    found = [_plain(event) for event in lived(first, rows[:cut])]
    second.restore(json.loads(json.dumps(first.state())))
    found += [_plain(event) for event in lived(second, rows[cut:])]
    assert [(kind, series, label, start) for kind, series, label, start, _ in found] == [
        (kind, series, label, start) for kind, series, label, start, _ in wanted
    ]
    assert second.state() == whole.state()


def _plain(event: Event) -> tuple[str, str, str, int, int]:
    one = event.incident
    return event.kind, one.series, one.label, one.start, one.last


def test_an_alarm_is_told_at_its_row_and_its_end_at_the_first_row_that_lies_too_far_behind() -> None:
    live, told = LiveAlarms(AlarmRule({"a": 0.5, "b": 0.5}, 1.0, 2, 1), CLASSES, SECOND), []
    for second, letter in enumerate("05505000"):
        told += [(second, event.kind) for event in lived(live, [("x", second, letter)])]
    assert told == [(2, "opened"), (7, "closed")]


def test_an_alarm_says_what_was_known_at_its_row_however_many_rows_came_with_it() -> None:
    rows = rows_of(x="0699990", y="0066900")
    together = lived(LiveAlarms(HALF, CLASSES, SECOND), rows)
    alone = lived(LiveAlarms(HALF, CLASSES, SECOND), rows, tuple(range(len(rows))))
    assert sorted(map(repr, together)) == sorted(map(repr, alone))
    assert [event.incident.rows for event in together if event.kind == "opened"] == [1, 1]


def test_rows_of_one_moment_count_once() -> None:
    live = LiveAlarms(AlarmRule({"a": 0.5, "b": 0.5}, min_rows=2), CLASSES, SECOND)
    assert not lived(live, [("x", 5, "9"), ("x", 5, "9")])


def test_the_incidents_of_a_series_that_is_forgotten_are_over() -> None:
    live = LiveAlarms(HALF, CLASSES, SECOND)
    lived(live, [("x", 0, "9"), ("y", 0, "9")])
    assert [_plain(event) for event in live.forget({"y"})] == [("closed", "x", "a", 0, 0)]
    assert [one.series for one in live.open] == ["y"]
    assert [_plain(event) for event in live.begin_again("y")] == [("closed", "y", "a", 0, 0)]
    assert not live.open and not live.state()


def test_nobody_is_told_the_end_of_what_was_not_raised() -> None:
    live = LiveAlarms(AlarmRule({"a": 0.5, "b": 0.5}, 1.0, min_rows=3), CLASSES, SECOND)
    assert not lived(live, rows_of(x="055000")) and not live.begin_again("x")


def test_a_state_of_other_classes_is_refused() -> None:
    live = LiveAlarms(HALF, CLASSES, SECOND)
    lived(live, [("x", 0, "9")])
    other = LiveAlarms(AlarmRule({"c": 0.5}), ("normal", "c"), SECOND)
    with pytest.raises(ValueError, match="class 'a'"):
        other.restore(live.state())
    assert seconds(alarms_of(live.open)) == [("x", "a", 0, 0, 0)]
