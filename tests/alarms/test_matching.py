"""Which alarm was about which incident: cases made by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made import alarms, truth
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from netanomaly.alarms.matching import TrueIncidents, alarm_scores, match

Told = tuple[str, str, int, int, int]


def _matched(told: list[Told], **series: str) -> tuple[list[int], list[bool], list[float | None]]:
    found = match(TrueIncidents.of_rows(truth(**series)), alarms(*told))
    delays = [None if np.isnan(delay) else float(delay) for delay in found.delays]
    return found.incident.tolist(), found.is_false.tolist(), delays


@pytest.mark.parametrize(
    ("told", "incident", "is_false", "delays"),
    [
        ([("x", "a", 3, 5, 4)], [0], [False], [1.0, None]),  # in the incident: found a second late
        ([("x", "a", 1, 4, 1)], [0], [False], [0.0, None]),  # begun before it: found at once
        ([("x", "a", 5, 9, 7)], [-1], [False], [None, None]),  # raised after it: too late, yet no false alarm
        ([("x", "b", 3, 5, 3)], [-1], [False], [None, None]),  # the wrong name
        ([("x", "a", 7, 8, 7)], [-1], [True], [None, None]),  # in normal rows
        ([("y", "a", 3, 5, 3)], [-1], [True], [None, None]),  # of another series
        ([("x", "a", 0, 1, 0), ("x", "a", 4, 4, 4)], [-1, 0], [True, False], [1.0, None]),
        ([("x", "a", 3, 3, 3), ("x", "a", 5, 5, 5)], [0, 0], [False, False], [0.0, None]),  # the first one's delay
        ([("x", "a", 3, 15, 3)], [1], [False], [None, 0.0]),  # one that never ends finds the one it shares most with
        ([], [], [], [None, None]),
    ],
)
def test_alarms_are_matched(
    told: list[Told], incident: list[int], is_false: list[bool], delays: list[float | None]
) -> None:
    #                                  0123456789012345
    assert _matched(told, x="...aaa....aaaaa.", y="................") == (incident, is_false, delays)


def test_scores_of_a_day_made_by_hand() -> None:
    rows = truth(x="...aaa....bbb...", y="................")
    told = [("x", "a", 4, 5, 5), ("x", "a", 11, 12, 11), ("y", "b", 2, 3, 2), ("y", "b", 9, 9, 9)]
    found = alarm_scores(rows, alarms(*told))
    assert (found["incidents"], found["alarms"], found["false_alarms"], found["wrong_name"]) == (2, 4, 2, 1)
    assert (found["recall"], found["precision"]) == (0.5, 0.25)
    assert (found["delay_median_s"], found["delay_p90_s"]) == (2.0, 2.0)
    assert found["series_days"] == pytest.approx(32 / 86400)
    assert found["false_alarms_per_series_day"] == pytest.approx(2 / (32 / 86400))
    assert found["per_class"]["a"] == {
        "incidents": 1,
        "found": 1,
        "recall": 1.0,
        "alarms": 2,
        "precision": 0.5,
        "false_alarms": 0,
        "delay_median_s": 2.0,
    }
    assert found["per_class"]["b"]["recall"] == 0.0


def test_a_random_but_perfect_classifier_is_perfect() -> None:
    rows = truth(x="..aa..bbb..a", y="bb..aaaa....")
    true = TrueIncidents.of_rows(rows)
    told = [
        (series, label, start // 10**9, last // 10**9, start // 10**9)
        for series, label, start, last in zip(true.series, true.labels, true.starts, true.lasts, strict=True)
    ]
    found = alarm_scores(rows, alarms(*told))
    assert (found["recall"], found["precision"], found["false_alarms"], found["delay_p90_s"]) == (1.0, 1.0, 0, 0.0)
    assert found["intervals"]["recall"] == [1.0, 1.0]


def test_where_no_row_is_normal_there_are_no_false_alarms_to_count() -> None:
    found = alarm_scores(truth(x="aaaa"), alarms(("x", "a", 0, 3, 0)))
    assert found["false_alarms_per_series_day"] is None
    assert found["intervals"]["false_alarms_per_series_day"] is None


def test_without_alarms_and_incidents_there_is_nothing_to_divide_by() -> None:
    found = alarm_scores(truth(x="...."), alarms())
    assert (found["recall"], found["precision"], found["delay_median_s"]) == (None, None, None)
    assert found["false_alarms_per_series_day"] == 0
    assert found["intervals"]["recall"] is None


@given(letters=st.text(alphabet="..ab", min_size=30, max_size=60), seed=st.integers(0, 5))
@examples(deadline=None, max_examples=20)
def test_intervals_hold_the_score_they_are_about(letters: str, seed: int) -> None:
    rows = truth(x=letters + "aa..", y=letters[::-1] + "..bb")
    true = TrueIncidents.of_rows(rows)
    kept = np.random.default_rng(seed).random(len(true)) < 0.7
    told = [
        (str(series), str(label), int(start // 10**9), int(last // 10**9), int(start // 10**9))
        for series, label, start, last in zip(
            true.series[kept], true.labels[kept], true.starts[kept], true.lasts[kept], strict=True
        )
    ]
    found = alarm_scores(rows, alarms(*told), seed)
    low, high = found["intervals"]["recall"]
    assert low - 1e-9 <= found["recall"] <= high + 1e-9 or found["recall"] in (0.0, 1.0)


def test_the_interval_of_a_rate_is_about_as_wide_as_that_of_independent_events() -> None:
    letters = "." * 2000
    rows = truth(x=letters, y=letters)
    told = [("x", "a", second, second, second) for second in range(5, 2000, 20)]  # evenly in x, none in y
    found = alarm_scores(rows, alarms(*told))
    rate = found["false_alarms_per_series_day"]
    low, high = found["intervals"]["false_alarms_per_series_day"]
    assert low < rate < high
    assert (high - low) / rate == pytest.approx(2 * 1.96 * np.sqrt(1 / 20), rel=0.35)  # 20 blocks, half of them empty
