"""The evaluation as plain values and as tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scored import labels, scored

from netanomaly.evaluation.baselines import random_answers
from netanomaly.evaluation.metrics import macro_f1
from netanomaly.evaluation.report import evaluation_report, report_text
from netanomaly.evaluation.rows import Answers, ScoredRows
from netanomaly.evaluation.tables import amount

TRAINED = ("normal", "congestion", "reboot")
SERIES = "aaaabbbbcc"
TRUTH = ("normal", "normal", "congestion", "congestion", "normal", "flood", "flood", "normal", "congestion", "normal")
NAMED = ("normal", "normal", "congestion", "normal", "normal", "normal", "reboot", "no_data", "congestion", "normal")


def _rows(truth: Sequence[str] = TRUTH) -> ScoredRows:
    return scored(truth, SERIES[: len(truth)])


def _model(named: Sequence[str] = NAMED) -> Answers:
    """Sure of what it names; says nothing where that is `no_data`."""
    probabilities = (labels(named)[:, None] == labels(TRAINED)) * 1.0
    return Answers(labels(named), TRAINED, probabilities)


def _baselines(rows: int) -> dict[str, Answers]:
    return {"majority": Answers(labels(["normal"] * rows)), "random": random_answers(labels(TRAINED), rows, seed=0)}


def _rounded(value: Any) -> Any:
    """Sums of floats in another order differ in the last digits."""
    if isinstance(value, dict):
        return {key: _rounded(entry) for key, entry in value.items()}
    return round(value, 12) if isinstance(value, float) else value


def _report(truth: Sequence[str] = TRUTH, named: Sequence[str] = NAMED) -> dict[str, Any]:
    return evaluation_report(_rows(truth), _model(named), _baselines(len(truth)))


def test_every_row_is_in_the_confusion_matrix() -> None:
    report = _report()
    assert sum(map(sum, report["confusion"]["matrix"])) == report["rows"] == len(TRUTH)


def test_classes_are_the_trained_ones_then_unseen_ones_then_no_data() -> None:
    report = _report()
    assert report["confusion"]["labels"] == ["normal", "congestion", "reboot", "flood", "no_data"]
    assert list(report["per_class"]) == report["confusion"]["labels"]


def test_no_data_is_no_class_where_every_row_has_data() -> None:
    assert "no_data" not in _report(named=["normal"] * 10)["per_class"]


def test_classes_absent_from_training_are_counted() -> None:
    report = _report()
    assert report["classes_absent_from_training"] == {"flood": 2}
    assert report["per_class"]["flood"]["f1"] == 0.0


def test_classes_absent_from_the_test_are_named() -> None:
    report = _report()
    assert report["classes_absent_from_test"] == ["reboot"]
    assert report["per_class"]["reboot"]["f1"] is None


def test_scores_of_a_series_are_those_of_its_rows_alone() -> None:
    report = _report()
    assert list(report["per_series"]) == ["a", "b", "c"]
    assert [entry["rows"] for entry in report["per_series"].values()] == [4, 4, 2]
    assert report["per_series"]["a"]["accuracy"] == 0.75
    assert report["per_series"]["a"]["macro_f1"] == macro_f1(labels(TRUTH[:4]), labels(NAMED[:4]))
    assert report["per_series"]["c"]["macro_f1"] == 1.0


def test_overall_scores() -> None:
    report = _report()
    assert report["accuracy"] == 0.6
    f1 = [2 * 4 / (2 * 4 + 2 + 1), 2 * 2 / (2 * 2 + 1), 0.0]  # normal, congestion, flood
    assert report["macro_f1"] == pytest.approx(sum(f1) / 3, abs=1e-12)


def test_baselines_are_scored_on_the_same_rows() -> None:
    assert _report()["baselines"]["majority"]["accuracy"] == 0.5


def test_report_is_plain_json() -> None:
    report = _report()
    assert json.loads(json.dumps(report, allow_nan=False)) == report


def test_order_of_rows_does_not_matter() -> None:
    order = np.random.default_rng(0).permutation(len(TRUTH))
    rows, answers = _rows(), {"": _model(), **_baselines(len(TRUTH))}
    parts = {key: getattr(rows, key)[order] for key in ("series", "times", "truth")}
    shuffled = {
        name: Answers(
            given.labels[order],
            given.classes,
            None if given.probabilities is None else given.probabilities[order],
        )
        for name, given in answers.items()
    }
    found = evaluation_report(replace(rows, **parts), shuffled.pop(""), shuffled)
    assert json.dumps(_rounded(found)) == json.dumps(_rounded(_report()))


def test_every_classifier_gets_every_score() -> None:
    report = _report()
    scores = set(report["baselines"]["random"])
    assert {"incident_recall", "false_alarms_per_series_day", "pr_auc", "ece"} <= scores
    assert set(report["baselines"]["majority"]) == scores < set(report)
    assert report["baselines"]["majority"]["pr_auc"] is report["baselines"]["majority"]["ece"] is None


def test_incidents_are_those_of_the_rows() -> None:
    report = _report()  # congestion in a and c is found, flood in b is taken for reboot
    assert report["incidents"] == 3
    assert report["incident_recall"] == pytest.approx(2 / 3, abs=1e-12) and report["incident_detected_any"] == 1.0
    assert report["incidents_per_class"]["flood"]["incident_recall"] == 0.0
    assert report["false_alarms_per_series_day"] == 0.0


def test_classes_have_their_pr_auc() -> None:
    report = _report()
    assert report["per_class"]["flood"]["average_precision"] == pytest.approx(0.2, abs=1e-12)  # its share
    assert report["per_class"]["reboot"]["average_precision"] is None  # not in the truth
    known = [entry["average_precision"] for entry in report["per_class"].values()]
    assert report["pr_auc"] == pytest.approx(np.mean([value for value in known if value is not None]), abs=1e-12)


def test_calibration_is_that_of_the_named_class() -> None:
    assert _report()["ece"] == pytest.approx(0.3, abs=1e-12)  # sure of nine rows, wrong in three; silent in one


def test_the_worst_series_is_one_with_an_incident() -> None:
    truth = ("normal",) * 4 + ("congestion",) * 4 + ("congestion", "normal")
    named = ("reboot",) * 4 + ("reboot",) * 3 + ("congestion",) + ("congestion", "normal")
    report = _report(truth, named)
    assert report["per_series"]["a"]["macro_f1"] == 0.0
    assert report["worst_series"] == {"name": "b", "macro_f1": report["per_series"]["b"]["macro_f1"]}


def test_without_any_incident_no_series_is_the_worst() -> None:
    report = _report(("normal",) * 10, NAMED)
    assert report["worst_series"] is None
    assert "worst series" not in report_text(report)


def test_text_names_every_class_series_and_classifier() -> None:
    lines = report_text(_report()).splitlines()
    firsts = {line.split()[0] for line in lines if line.strip()}
    assert {*TRAINED, "flood", "no_data", "a", "b", "c", "netanomaly", "majority", "random"} <= firsts


def test_text_says_which_classes_were_never_seen() -> None:
    text = report_text(_report())
    assert "never seen in training, counted as wrong: flood (2 rows)" in text
    assert "in training but not here: reboot" in text


def test_text_says_nothing_of_absent_classes_where_there_are_none() -> None:
    truth = ("normal", "congestion", "reboot")
    text = report_text(_report(truth, truth))
    assert "never seen" not in text
    assert "not here" not in text


def test_columns_of_a_table_are_aligned() -> None:
    parts = report_text(_report()).split("\n\n")
    for table in (parts[1], parts[4], parts[5]):
        assert len({len(line) for line in table.splitlines()}) == 1 < len(table.splitlines())


def test_scores_that_cannot_be_told_are_dashes() -> None:
    lines = report_text(_report()).splitlines()
    (line,) = [line for line in lines if line.startswith("reboot")]
    assert line.split() == ["reboot", "0.000", *"---", "0", "-", "-"]
    (line,) = [line for line in lines if line.startswith("majority")]
    assert line.split() == ["majority", "0.222", "0.500", "0.000", "-", "0.00", "-", "-"]


def test_incidents_found_are_told_of_every_class() -> None:
    (line,) = [line for line in report_text(_report()).splitlines() if line.startswith("congestion")]
    assert line.split()[-3:] == ["3", "2/2", "0.00"]


def test_a_model_that_wins_is_said_to() -> None:
    truth = ("normal", "congestion", "reboot", "normal")
    assert "\nnetanomaly wins: a macro-F1 of 1.000 against " in report_text(_report(truth, truth))


@pytest.mark.parametrize(
    ("named", "told"),
    [(("normal",) * 4, "the same macro-F1, 0.429"), (("reboot",) * 4, "a macro-F1 of 0.429 against 0.000")],
    ids=["as good", "worse"],
)
def test_a_model_that_does_not_win_is_said_not_to(named: Sequence[str], told: str) -> None:
    rows = _rows(("normal", "congestion", "normal", "normal"))
    report = evaluation_report(rows, _model(named), {"majority": Answers(labels(["normal"] * 4))})
    assert f"netanomaly does NOT win here: majority has {told}" in report_text(report).splitlines()
    assert "wins" not in report_text(report)


def test_scores_of_few_incidents_are_called_luck() -> None:
    (line,) = [line for line in report_text(_report()).splitlines() if line.startswith("fewer than 3 incidents here")]
    assert "luck: congestion" in line
    many = ("congestion", "normal") * 3
    assert "largely luck" not in report_text(evaluation_report(_rows(many), _model(many), {}))


def test_rows_in_which_nothing_was_measured_are_told() -> None:
    report = evaluation_report(_rows(("normal",) * 4), _model(("normal", "no_data", "no_data", "normal")), {})
    assert report["rows_without_data"] == 2
    assert "2 rows in which nothing was measured: no_data, counted as wrong" in report_text(report).splitlines()
    assert "nothing was measured" not in report_text(_report(("normal",) * 4, ("normal",) * 4))


def test_baselines_left_out_are_told() -> None:
    report = {**_report(), "baselines_left_out": {"lightgbm": "not installed (pip install 'netanomaly[lightgbm]')"}}
    assert "lightgbm: not installed (pip install 'netanomaly[lightgbm]')" in report_text(report).splitlines()


def test_without_baselines_it_says_why_and_names_no_winner() -> None:
    report = {**evaluation_report(_rows(), _model(), {}), "baselines_missing": "the training rows cannot be read: x"}
    text = report_text(report)
    assert "no baselines beside it: the training rows cannot be read: x" in text.splitlines()
    assert "win" not in text


def test_a_normal_class_of_another_name_is_told() -> None:
    other = evaluation_report(replace(_rows(), normal="ok"), _model(), {})
    assert "no class is called 'ok' (data.normal): every class counts as an incident" in report_text(other)
    assert "data.normal" not in report_text(_report())


@pytest.mark.parametrize(
    ("value", "expected"), [(None, "-"), (0.0, "0.00"), (9.876, "9.88"), (12.34, "12.3"), (38541.6, "38542")]
)
def test_amounts(value: float | None, expected: str) -> None:
    assert amount(value) == expected
