"""Scores of probabilities, against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.calibration import calibration_curve
from sklearn.metrics import average_precision_score

from netanomaly.evaluation.probabilities import (
    ECE_BINS,
    average_precisions,
    calibration_error,
    macro_average_precision,
)

CLASSES = ("a", "b", "c")
moderate = settings(max_examples=60, deadline=None)


def _drawn(rows: int, seed: int) -> tuple[NDArray[np.object_], NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    truth = np.r_[list(CLASSES), rng.choice(CLASSES, rows)].astype(object)
    return truth, rng.dirichlet([0.5] * 3, len(truth))


@moderate
@given(rows=st.integers(1, 60), seed=st.integers(0, 2**16))
def test_macro_pr_auc_is_that_of_scikit_learn_where_every_class_occurs(rows: int, seed: int) -> None:
    truth, probabilities = _drawn(rows, seed)
    binary = truth[:, None] == np.array(CLASSES, dtype=object)
    expected = average_precision_score(binary, probabilities, average="macro")
    assert macro_average_precision(truth, probabilities, CLASSES) == pytest.approx(expected, abs=1e-12)


def test_pr_auc_of_the_truth_is_one_and_of_a_class_nobody_knows_its_share() -> None:
    truth = np.array(["a", "a", "b", "new"], dtype=object)
    found = average_precisions(truth, np.array([[1, 0], [1, 0], [0, 1], [0.5, 0.5]]), ("a", "b"))
    assert found == {"a": 1.0, "b": 1.0, "new": 0.25}


def test_a_class_that_does_not_occur_has_no_pr_auc() -> None:
    truth = np.array(["a", "b"], dtype=object)
    assert set(average_precisions(truth, np.eye(3)[:2], CLASSES)) == {"a", "b"}


def test_a_row_without_an_answer_ranks_last() -> None:
    truth = np.array(["a", "a", "b"], dtype=object)
    found = average_precisions(truth, np.array([[0.0, 0.0], [0.6, 0.4], [0.5, 0.5]]), ("a", "b"))
    assert found["a"] == pytest.approx((1 + 2 / 3) / 2, abs=1e-12)


@moderate
@given(rows=st.integers(1, 200), seed=st.integers(0, 2**16))
def test_calibration_error_is_that_of_the_calibration_curve_of_scikit_learn(rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    confidence = rng.choice([*np.linspace(0, 1, ECE_BINS + 1), *rng.random(20)], rows)  # edges of bins as well
    right = rng.random(rows) < confidence
    share, mean = calibration_curve(right, confidence, n_bins=ECE_BINS, strategy="uniform")
    bins = np.digitize(confidence, np.linspace(0, 1, ECE_BINS + 1)[1:-1], right=True)
    sizes = np.bincount(bins, minlength=ECE_BINS)
    expected = np.sum(sizes[sizes > 0] / rows * np.abs(share - mean))
    assert calibration_error(right, confidence) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("right", "confidence", "expected"),
    [
        ([True, True, False, False], [0.5, 0.5, 0.5, 0.5], 0.0),
        ([True, True], [0.7, 0.7], 0.3),
        ([True, False], [0.9, 0.1], 0.1),  # two bins: over- and underconfidence do not cancel
        ([False, True], [0.9, 0.1], 0.9),
        ([False], [0.0], 0.0),  # no answer
        ([True, False], [1.0, 0.0], 0.0),
    ],
)
def test_calibration_error_by_hand(right: list[bool], confidence: list[float], expected: float) -> None:
    assert calibration_error(np.array(right), np.array(confidence)) == pytest.approx(expected, abs=1e-12)


def test_single_precision_is_enough() -> None:
    rng = np.random.default_rng(0)
    confidence = rng.random(1000)
    right = rng.random(1000) < confidence
    assert calibration_error(right, confidence.astype(np.float32)) == pytest.approx(
        calibration_error(right, confidence), abs=2e-3
    )
