"""Scores of whole incidents."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scored import SECOND, labels, scored

from netanomaly.evaluation.events import DAY_NS, find_incidents, incident_scores
from netanomaly.evaluation.metrics import macro_f1, per_class
from netanomaly.evaluation.rows import ScoredRows

moderate = settings(max_examples=80, deadline=None)
letters = st.text(alphabet="..AB-", min_size=1, max_size=40)


def _scores(truth: str, named: str, **more: Any) -> dict[str, Any]:
    return incident_scores(scored(truth, **more), labels(named))


def _incidents(rows: ScoredRows) -> list[tuple[str, list[int]]]:
    found = find_incidents(rows, rows.truth)
    ends = [*found.starts[1:], len(found.rows)]
    return [
        (label, found.rows[start:end].tolist())
        for label, start, end in zip(found.labels, found.starts, ends, strict=True)
    ]


def test_an_incident_is_a_longest_run_of_one_label() -> None:
    assert _incidents(scored(".AA.BBA")) == [("A", [1, 2]), ("B", [4, 5]), ("A", [6])]


def test_an_incident_ends_with_its_series() -> None:
    assert _incidents(scored("AAAA", series="xxyy", times=[0, 1, 2, 3])) == [("A", [0, 1]), ("A", [2, 3])]


@pytest.mark.parametrize(("gap", "count"), [(3, 1), (4, 2)])
def test_an_incident_ends_with_a_long_silence_or_a_long_stretch_without_labels(gap: int, count: int) -> None:
    """Rows without a label are not among those scored: a hole in them is all that shows."""
    assert len(_incidents(scored("AAA", times=[0, 1, 1 + gap]))) == count


def test_an_incident_does_not_end_with_rows_of_another_series_in_between() -> None:
    assert _incidents(scored("A.A.", series="xyxy", times=[0, 0, 1, 1])) == [("A", [0, 2])]


def test_rows_without_data_do_not_end_a_predicted_incident() -> None:
    scores = _scores("........", "AA-A.A-.")
    assert scores["predicted_incidents"] == scores["false_alarms"] == 2


@moderate
@given(truth=letters, named=letters, seed=st.integers(0, 2**16))
def test_order_of_rows_does_not_matter(truth: str, named: str, seed: int) -> None:
    length = min(len(truth), len(named))
    rows, predicted = scored(truth[:length].replace("-", "."), series="xy" * length), labels(named[:length])
    rows = replace(rows, series=rows.series[:length])
    order = np.random.default_rng(seed).permutation(length)
    parts = {key: getattr(rows, key)[order] for key in ("series", "times", "truth")}
    assert incident_scores(replace(rows, **parts), predicted[order]) == incident_scores(rows, predicted)


@moderate
@given(truth=letters, named=letters)
def test_scores_are_those_of_a_loop_over_runs(truth: str, named: str) -> None:
    length = min(len(truth), len(named))
    truth, named = truth[:length].replace("-", "B"), named[:length]
    runs, place = [], 0
    for letter, group in groupby(truth):
        rows = range(place, place + len(list(group)))
        place = rows.stop
        if letter != ".":
            runs.append(rows)
    delays = [next((row - run[0] for row in run if named[row] == truth[row]), None) for run in runs]
    known = [delay for delay in delays if delay is not None]
    found = _scores(truth, named)
    assert found["incidents"] == len(runs) and found["incidents_found"] == len(known)
    if runs:
        assert found["incident_recall"] == pytest.approx(len(known) / len(runs), abs=1e-12)
        anyhow = [any(named[row] in "AB" for row in run) for run in runs]
        assert found["incident_detected_any"] == pytest.approx(np.mean(anyhow), abs=1e-12)
    if known:
        assert found["delay_median_s"] == pytest.approx(np.median(known), abs=1e-12)
        assert found["delay_p90_s"] == pytest.approx(np.percentile(known, 90), abs=1e-12)
    claimed = [[]] if named.strip("-.") else []
    for row in (row for row in range(length) if named[row] != "-"):  # none longer than the gap that ends a run
        if claimed and claimed[-1] and (named[row] != named[claimed[-1][-1]] or row - claimed[-1][-1] > 3):
            claimed.append([])
        if claimed:
            claimed[-1].append(row)
    claimed = [run for run in claimed if run and named[run[0]] != "."]
    assert found["predicted_incidents"] == len(claimed)
    assert found["false_alarms"] == sum(all(truth[row] == "." for row in run) for run in claimed)
    if claimed:
        right = [any(truth[row] == named[row] for row in run) for run in claimed]
        assert found["incident_precision"] == pytest.approx(np.mean(right), abs=1e-12)


@moderate
@given(truth=letters)
def test_the_truth_finds_everything_at_once_and_raises_no_false_alarm(truth: str) -> None:
    rows = scored(truth.replace("-", "."))
    scores = incident_scores(rows, rows.truth)
    assert scores["incident_recall"] in (1.0, None) and scores["incident_precision"] in (1.0, None)
    assert scores["delay_p90_s"] in (0.0, None)
    assert scores["false_alarms"] == 0 and scores["incidents"] == scores["predicted_incidents"]


def test_the_delay_is_from_the_start_of_the_incident_to_the_first_right_row() -> None:
    scores = _scores("..AAAA.BBB.AA", "A.BAA..BBB..A")
    assert scores["incidents_per_class"]["A"]["delay_median_s"] == 1.0  # the middle of 1 and 1
    assert scores["incidents_per_class"]["B"]["delay_median_s"] == 0.0
    assert scores["delay_median_s"] == 1.0 and scores["delay_p90_s"] == pytest.approx(1.0, abs=1e-12)


def test_the_delay_is_in_seconds_whatever_the_interval() -> None:
    rows = replace(scored("AAA", times=[0, 60, 120]), interval_ns=60 * SECOND, max_gap_ns=90 * SECOND)
    assert incident_scores(rows, labels("..A"))["delay_median_s"] == 120.0


def test_another_class_detects_an_incident_without_finding_it() -> None:
    scores = _scores(".AA.BB.B", ".BB..B..")
    assert scores["incident_recall"] == pytest.approx(1 / 3, abs=1e-12)
    assert scores["incident_detected_any"] == pytest.approx(2 / 3, abs=1e-12)
    classes = scores["incidents_per_class"]
    assert [classes["A"][key] for key in ("incident_recall", "incident_detected_any")] == [0.0, 1.0]
    assert [classes["B"][key] for key in ("incident_recall", "incident_detected_any")] == [0.5, 0.5]
    assert scores["false_alarms"] == 0  # B at A is wrong, but an alarm that had a cause
    assert scores["incident_precision"] == 0.5


@pytest.mark.parametrize("named", ["......", "------"])
def test_who_says_nothing_finds_nothing_and_has_no_precision(named: str) -> None:
    scores = _scores(".AA.BB", named)
    assert scores["incident_recall"] == scores["incident_detected_any"] == 0.0
    assert scores["incident_precision"] is None and scores["delay_median_s"] is None
    assert scores["false_alarms_per_series_day"] == 0.0


def test_false_alarms_are_per_day_of_each_series() -> None:
    rows = scored("....", series="xxyy", times=[0, 1, 0, 1])
    rows = replace(rows, interval_ns=DAY_NS // 2, times=rows.times // SECOND * (DAY_NS // 2), max_gap_ns=DAY_NS)
    scores = incident_scores(rows, labels("A.AA"))  # a day each
    assert scores["series_days"] == 2.0
    assert scores["false_alarms"] == 2 and scores["false_alarms_per_series_day"] == 1.0


def test_an_alarm_that_touches_an_anomaly_is_no_false_one() -> None:
    assert _scores("..A..", "AAA..")["false_alarms"] == 0
    assert _scores("..A..", "AA.A.")["false_alarms"] == 2


def test_where_no_row_is_normal_there_is_no_rate_of_false_alarms() -> None:
    assert _scores("AABB", "AABB")["false_alarms_per_series_day"] is None


def test_where_every_row_is_normal_there_is_nothing_to_find() -> None:
    scores = _scores("....", ".A..")
    assert scores["incidents"] == 0 and scores["incident_recall"] is None and scores["incidents_per_class"] == {}
    assert scores["false_alarms"] == 1


def test_one_hit_finds_an_incident_and_changes_no_score_of_rows_but_that_of_its_row() -> None:
    """No point adjustment: the other 99 rows of the incident stay as wrong as they are."""
    truth = "." * 100 + "A" * 100
    hit = "." * 150 + "A" + "." * 49
    assert _scores(truth, hit)["incident_recall"] == 1.0
    entry = per_class(labels(truth), labels(hit), ["A"])["A"]
    assert entry["recall"] == 0.01 and entry["f1"] == pytest.approx(2 / 101, abs=1e-12)


def test_random_answers_do_not_look_good() -> None:
    """Point-adjusted, one alarm in twenty rows would have an F1 of about 0.9 here."""
    truth = ("." * 400 + "A" * 100) * 20
    named = np.where(np.random.default_rng(0).random(len(truth)) < 0.05, "A", "normal").astype(object)
    scores = incident_scores(scored(truth), named)
    assert scores["incident_recall"] == 1.0  # cheap: it shouts all the time
    assert scores["incident_precision"] < 0.3
    assert scores["false_alarms_per_series_day"] > 1000
    assert macro_f1(labels(truth), named) < 0.5
