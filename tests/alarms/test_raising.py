"""When rows become an alarm."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made import CLASSES, SECOND, raised, seconds
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from netanomaly.alarms.raising import AlarmCollector
from netanomaly.alarms.rule import AlarmRule

HALF = AlarmRule({"a": 0.5, "b": 0.5}, hysteresis=1.0)


@pytest.mark.parametrize(
    ("rule", "letters", "expected"),
    [
        (HALF, "0055500", [("x", "a", 2, 4, 2)]),
        (HALF, "0044400", []),
        (HALF, "00500500", [("x", "a", 2, 2, 2), ("x", "a", 5, 5, 5)]),  # a pause ends an incident
        (
            AlarmRule({"a": 0.5, "b": 0.5}, 1.0, merge_rows=2),
            "00500500",
            [("x", "a", 2, 5, 2)],
        ),  # unless it may be so long
        (AlarmRule({"a": 0.5, "b": 0.5}, 1.0, merge_rows=1), "00500500", [("x", "a", 2, 2, 2), ("x", "a", 5, 5, 5)]),
        (AlarmRule({"a": 0.8, "b": 0.5}, 0.5), "0348640", [("x", "a", 2, 5, 3)]),  # from 0.4 on, raised at 0.8
        (AlarmRule({"a": 0.8, "b": 0.5}, 0.5), "0347640", []),  # never reached
        (AlarmRule({"a": 0.5, "b": 0.5}, 1.0, min_rows=3), "0055055500", [("x", "a", 5, 7, 7)]),
        (AlarmRule({"a": 0.5, "b": 0.5}, 1.0, min_rows=3, merge_rows=1), "0055055500", [("x", "a", 2, 7, 5)]),
        (HALF, "00555GG00", [("x", "a", 2, 4, 2), ("x", "b", 5, 6, 5)]),
        (AlarmRule({"a": 0.5, "b": 0.5}, 1.0, merge_rows=2), "055G550", [("x", "a", 1, 5, 1), ("x", "b", 3, 3, 3)]),
        (HALF, "05  50", [("x", "a", 1, 1, 1), ("x", "a", 4, 4, 4)]),  # where nothing was measured nothing counts
        (AlarmRule({"a": 0.5, "b": 0.5}, 1.0, merge_rows=2), "05  50", [("x", "a", 1, 4, 1)]),
        (HALF, "", []),
    ],
)
def test_rows_become_alarms(rule: AlarmRule, letters: str, expected: list[tuple[str, str, int, int, int]]) -> None:
    assert seconds(raised(rule, x=letters)) == expected


def test_series_do_not_mix_and_alarms_come_in_order_of_the_moment_they_are_raised() -> None:
    rule = AlarmRule({"a": 0.5, "b": 0.5}, 1.0, min_rows=2, merge_rows=5)
    found = raised(rule, x="0005500", y="0505000", z="5000000")
    assert seconds(found) == [("y", "a", 1, 3, 3), ("x", "a", 3, 4, 4)]


def test_the_class_is_the_one_that_is_largest_against_its_threshold() -> None:
    collector = AlarmCollector(AlarmRule({"a": 0.9, "b": 0.2}), CLASSES, SECOND)
    collector.add(np.array(["x"], dtype=object), np.array([0]), np.array([[0.2, 0.5, 0.3]]))
    assert list(collector.alarms().labels) == ["b"]


def test_what_an_alarm_says_of_its_confidence() -> None:
    found = raised(AlarmRule({"a": 0.5, "b": 0.5}, 0.2), x="01379480")
    assert found.peaks[0] == 4 * SECOND
    assert (found.peak_confidence[0], found.rows[0]) == (0.9, 6)
    assert found.mean_confidence[0] == pytest.approx((0.1 + 0.3 + 0.7 + 0.9 + 0.4 + 0.8) / 6)
    assert found.onset_certainty[0] == pytest.approx(0.1 / 0.9)


def test_rows_of_one_moment_count_once() -> None:
    collector = AlarmCollector(AlarmRule({"a": 0.5, "b": 0.5}, min_rows=2), CLASSES, SECOND)
    row = np.array([[0.1, 0.9, 0.0]])
    for _ in range(2):
        collector.add(np.array(["x"], dtype=object), np.array([5 * SECOND]), row)
    assert not len(collector.alarms())


def test_nothing_is_no_alarm() -> None:
    assert not len(AlarmCollector(HALF, CLASSES, SECOND).alarms())


LETTERS = st.text(alphabet="01234567899 ABCDEFGHIJ", max_size=40)
RULES = st.builds(
    lambda a, b, h, m, g: AlarmRule({"a": a, "b": b}, h, m, g),
    st.sampled_from([0.3, 0.5, 0.9]),
    st.sampled_from([0.3, 0.5, 0.9]),
    st.sampled_from([0.4, 1.0]),
    st.integers(1, 4),
    st.integers(0, 3),
)


@given(rule=RULES, x=LETTERS, y=LETTERS, chunks=st.integers(1, 5), seed=st.integers(0, 9))
@examples(deadline=None, max_examples=60)
def test_the_order_and_the_pieces_in_which_rows_come_change_nothing(
    rule: AlarmRule, x: str, y: str, chunks: int, seed: int
) -> None:
    assert seconds(raised(rule, chunks, seed, x=x, y=y)) == seconds(raised(rule, x=x, y=y))


@given(rule=RULES, letters=LETTERS)
@examples(deadline=None, max_examples=60)
def test_alarms_are_those_of_the_rule_row_by_row(rule: AlarmRule, letters: str) -> None:
    assert sorted(seconds(raised(rule, x=letters))) == sorted(_slowly(rule, letters))


@given(rule=RULES, letters=LETTERS, more=LETTERS)
@examples(deadline=None, max_examples=60)
def test_an_alarm_does_not_depend_on_what_comes_after_it_is_raised(rule: AlarmRule, letters: str, more: str) -> None:
    now = [(series, label, start, at) for series, label, start, _, at in seconds(raised(rule, x=letters))]
    later = [(series, label, start, at) for series, label, start, _, at in seconds(raised(rule, x=letters + more))]
    assert now == [alarm for alarm in later if alarm[3] < len(letters)]


def _slowly(rule: AlarmRule, letters: str) -> list[tuple[str, str, int, int, int]]:
    """The rule as its docstring has it, a row after the other."""
    going: dict[str, list[int]] = {}  # class -> [start, last, rows, sure, raised]
    done = []
    for second, letter in enumerate(letters):
        share = 0.0 if letter == " " else (int(letter) if letter.isdigit() else ord(letter) - ord("A")) / 10
        name = "a" if letter.isdigit() else "b"
        against = share / rule.thresholds[name]
        if against < rule.hysteresis or share == 0:
            continue
        if name in going and second - going[name][1] > rule.merge_rows + 1:
            done.append((name, going.pop(name)))
        state = going.setdefault(name, [second, second, 0, 0, -1])
        state[1], state[2], state[3] = second, state[2] + 1, max(state[3], int(against >= 1))
        if state[4] < 0 and state[3] and state[2] >= rule.min_rows:
            state[4] = second
    done += list(going.items())
    return [("x", name, start, last, at) for name, (start, last, _, _, at) in done if at >= 0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"thresholds": {"a": 0.0}}, "a: 0.0"),
        ({"thresholds": {"a": 1.1}}, "a: 1.1"),
        ({"hysteresis": 0.0}, "hysteresis"),
        ({"min_rows": 0}, "min_rows"),
        ({"merge_rows": -1}, "merge_rows"),
    ],
)
def test_values_out_of_range_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AlarmRule(**{"thresholds": {"a": 0.5}, **changes})  # type: ignore[arg-type]
