"""Which alarm was about which incident: cases made by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made import SECOND, alarms, truth
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from netanomaly.alarms.matching import EARLY_ROWS, TrueIncidents, alarm_scores, calm_in_alarm, match
from netanomaly.alarms.raising import Alarms
from netanomaly.evaluation.rows import ScoredRows

Told = tuple[str, str, int, int, int]


def _matched(told: list[Told], **series: str) -> tuple[list[int], list[bool], list[float | None]]:
    found = match(TrueIncidents.of_rows(truth(**series)), alarms(*told), SECOND)
    delays = [None if np.isnan(delay) else float(delay) for delay in found.delays]
    return found.incident.tolist(), found.is_false.tolist(), delays


@pytest.mark.parametrize(
    ("told", "incident", "is_false", "delays"),
    [
        ([("x", "a", 13, 15, 14)], [0], [False], [1.0, None]),  # in the incident: found a second late
        ([("x", "a", 9, 14, 9)], [0], [False], [0.0, None]),  # a little before it, for labels are not exact
        ([("x", "a", 2, 14, 2)], [-1], [True], [None, None]),  # long before it: that was for nothing
        ([("x", "a", 2, 14, 13)], [0], [False], [0.0, None]),  # begun before, raised in it
        ([("x", "a", 15, 19, 17)], [-1], [False], [None, None]),  # raised after it: too late, yet no false alarm
        ([("x", "b", 13, 15, 13)], [-1], [False], [None, None]),  # the wrong name
        ([("x", "a", 17, 18, 17)], [-1], [True], [None, None]),  # in normal rows
        ([("y", "a", 13, 15, 13)], [-1], [True], [None, None]),  # of another series
        ([("x", "a", 0, 1, 0), ("x", "a", 14, 14, 14)], [-1, 0], [True, False], [1.0, None]),
        (
            [("x", "a", 13, 13, 13), ("x", "a", 15, 15, 15)],
            [0, 0],
            [False, False],
            [0.0, None],
        ),  # the first counts
        ([("x", "a", 13, 40, 13)], [0], [False], [0.0, None]),  # one that never ends finds one incident
        ([("x", "a", 0, 45, 0)], [-1], [True], [None, None]),  # one that is always there finds nothing
        ([], [], [], [None, None]),
    ],
)
def test_alarms_are_matched(
    told: list[Told], incident: list[int], is_false: list[bool], delays: list[float | None]
) -> None:
    calm = "." * 20  # the incidents last from 13 to 15 and from 26 to 30
    assert _matched(told, x="............." + "aaa.........." + "aaaaa" + calm, y=calm) == (incident, is_false, delays)


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


def _slowly(rows: ScoredRows, told: Alarms) -> tuple[list[int], list[bool]]:
    """The rule as the module has it, pair by pair."""
    true, early = TrueIncidents.of_rows(rows), EARLY_ROWS * SECOND + SECOND // 2
    incidents, is_false = [], []
    for i in range(len(told)):
        start, last, raised = told.starts[i], told.lasts[i], told.raised[i]
        own = [t for t in range(len(true)) if true.series[t] == told.series[i]]
        caused = [
            t
            for t in own
            if last >= true.starts[t] - early
            and start <= true.lasts[t]
            and any(true.starts[t] - early <= moment <= true.lasts[t] for moment in (raised, start))
        ]
        right = [
            (min(last, true.lasts[t]) - max(start, true.starts[t]), -t)
            for t in own
            if true.labels[t] == told.labels[i] and true.starts[t] - early <= raised <= true.lasts[t]
        ]
        right = [pair for pair in right if pair[0] >= 0]
        incidents.append(-max(right)[1] if right else -1)
        is_false.append(not caused)
    return incidents, is_false


@given(
    letters=st.text(alphabet="....ab", min_size=5, max_size=60),
    told=st.lists(
        st.tuples(st.sampled_from("xyz"), st.sampled_from("ab"), *[st.integers(0, 60)] * 3).map(
            lambda one: (one[0], one[1], *(sorted(one[2:])[k] for k in (0, 2, 1)))
        ),
        max_size=8,
    ),
)
@examples(deadline=None, max_examples=80)
def test_matching_is_that_of_the_rule_pair_by_pair(letters: str, told: list[Told]) -> None:
    rows, made = truth(x=letters, y=letters[::-1]), alarms(*told)
    found = match(TrueIncidents.of_rows(rows), made, SECOND)
    assert (found.incident.tolist(), found.is_false.tolist()) == _slowly(rows, made)


def test_the_calm_in_alarms_is_counted() -> None:
    rows = truth(x="....aa....", y="..........")
    assert calm_in_alarm(rows, alarms(("x", "a", 2, 7, 4))) == 4 / 18
    assert calm_in_alarm(rows, alarms(("x", "a", 2, 7, 4), ("x", "b", 3, 8, 4), ("y", "a", 0, 0, 0))) == 6 / 18
    assert calm_in_alarm(rows, alarms()) == 0
    assert calm_in_alarm(truth(x="aa"), alarms()) is None
