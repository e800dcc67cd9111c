"""What a reliability diagram shows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss

from netanomaly.evaluation.reliability import BINS, reliability
from netanomaly.evaluation.rows import Answers


def _answers(rows: int = 500) -> tuple[np.ndarray, Answers]:
    rng = np.random.default_rng(0)
    share = rng.random(rows)
    truth = np.where(rng.random(rows) < share**2, "b", "a").astype(object)
    return truth, Answers.most_probable(np.stack([1 - share, share], axis=1), ("a", "b"))


def test_the_brier_score_of_two_classes_is_twice_that_of_scikit_learn() -> None:
    truth, answers = _answers()
    expected = brier_score_loss(truth == "b", answers.known_probabilities[:, 1])
    assert reliability(truth, answers)["brier"] == pytest.approx(2 * expected)


def test_the_bins_are_those_of_scikit_learn() -> None:
    truth, answers = _answers()
    right, confidence = calibration_curve(answers.labels == truth, answers.confidence, n_bins=BINS)
    bins = reliability(truth, answers)["bins"]
    np.testing.assert_allclose([entry["right"] for entry in bins], right)
    np.testing.assert_allclose([entry["confidence"] for entry in bins], confidence)
    assert sum(entry["rows"] for entry in bins) == 500


def test_a_class_that_cannot_be_named_and_a_row_without_answer_count() -> None:
    truth = np.array(["c", "a"], dtype=object)
    answers = Answers(np.array(["a", "no_data"], dtype=object), ("a", "b"), np.array([[1.0, 0.0], [0.0, 0.0]]))
    assert answers.confidence.tolist() == [1.0, 0.0]
    assert reliability(truth, answers)["brier"] == pytest.approx((1 + 1 + 1) / 2)


def test_certain_and_right_is_the_best() -> None:
    truth = np.array(["a", "b"], dtype=object)
    found = reliability(truth, Answers.most_probable(np.eye(2), ("a", "b")))
    assert found == {"ece": 0.0, "brier": 0.0, "bins": [{"rows": 2, "confidence": 1.0, "right": 1.0}]}
