"""The evaluation as plain values and as tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from netanomaly.evaluation.metrics import macro_f1
from netanomaly.evaluation.report import evaluation_report, report_text

TRAINED = ("normal", "congestion", "reboot")
SERIES = "aaaabbbbcc"
TRUTH = ("normal", "normal", "congestion", "congestion", "normal", "flood", "flood", "normal", "congestion", "normal")
NAMED = ("normal", "normal", "congestion", "normal", "normal", "normal", "reboot", "no_data", "congestion", "normal")


def _labels(names: Sequence[str]) -> NDArray[np.object_]:
    return np.array(list(names), dtype=object)


def _report(truth: Sequence[str] = TRUTH, named: Sequence[str] = NAMED) -> dict[str, Any]:
    baselines = {"majority": _labels(["normal"] * len(truth))}
    return evaluation_report(_labels(SERIES[: len(truth)]), _labels(truth), _labels(named), TRAINED, baselines)


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
    assert report["per_series"]["a"]["macro_f1"] == macro_f1(_labels(TRUTH[:4]), _labels(NAMED[:4]))
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
    shuffled = evaluation_report(
        _labels(SERIES)[order],
        _labels(TRUTH)[order],
        _labels(NAMED)[order],
        TRAINED,
        {"majority": _labels(["normal"] * len(TRUTH))},
    )
    assert shuffled == _report()


def test_text_names_every_class_series_and_classifier() -> None:
    lines = report_text(_report()).splitlines()
    firsts = {line.split()[0] for line in lines if line.strip()}
    assert {*TRAINED, "flood", "no_data", "a", "b", "c", "netanomaly", "majority"} <= firsts


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
    for table in report_text(_report()).split("\n\n")[1:4]:
        assert len({len(line) for line in table.splitlines()}) == 1


def test_scores_that_cannot_be_told_are_dashes() -> None:
    (line,) = [line for line in report_text(_report()).splitlines() if line.startswith("reboot")]
    assert line.split() == ["reboot", "0.000", "-", "-", "0"]
