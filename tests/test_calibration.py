"""Probabilities that mean what they say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

from netanomaly.calibration import Calibration, fit_calibration
from netanomaly.evaluation.probabilities import calibration_error

FINITE = st.floats(-20, 20)
LOGITS = st.lists(st.tuples(FINITE, FINITE, FINITE), min_size=1, max_size=20).map(np.array)
CALIBRATIONS = st.builds(
    lambda t, a, b: Calibration(t, (1.0, a, b)), st.floats(0.3, 5), st.floats(0.01, 5), st.floats(0.01, 5)
)


def _sampled(rows: int, temperature: float, weights: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Logits, and classes drawn from what the calibration that is sought makes of them."""
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 3, (rows, len(weights)))
    true = softmax((logits - np.log(weights)) / temperature, axis=1)
    return logits, (true.cumsum(axis=1) > rng.random((rows, 1))).argmax(axis=1)


@given(logits=LOGITS, calibration=CALIBRATIONS)
def test_probabilities_are_those_of_the_formula(logits: np.ndarray, calibration: Calibration) -> None:
    expected = softmax((logits - np.log(calibration.weights)) / calibration.temperature, axis=1)
    np.testing.assert_allclose(calibration.probabilities(logits), expected, atol=1e-12)


@given(logits=LOGITS, calibration=CALIBRATIONS)
@examples(deadline=None)
def test_undone_is_the_inverse(logits: np.ndarray, calibration: Calibration) -> None:
    own = softmax(logits, axis=1)
    np.testing.assert_allclose(calibration.undone(calibration.probabilities(logits)), own, atol=1e-9)
    np.testing.assert_allclose(calibration.done(own), calibration.probabilities(logits), atol=1e-9)


@given(logits=LOGITS, calibration=CALIBRATIONS)
def test_calibration_renames_no_row(logits: np.ndarray, calibration: Calibration) -> None:
    top = np.sort(logits, axis=1)
    clear = top[:, -1] - top[:, -2] > 1e-6
    found = calibration.named(calibration.probabilities(logits))
    np.testing.assert_array_equal(found[clear], logits.argmax(axis=1)[clear])


def test_none_leaves_the_probabilities_as_they_are() -> None:
    logits = np.random.default_rng(0).normal(0, 5, (50, 4))
    np.testing.assert_array_equal(Calibration.none(4).probabilities(logits), softmax(logits, axis=1))


def test_rows_without_an_answer_stay_without() -> None:
    calibration = Calibration(2.0, (1.0, 0.5))
    nothing = np.zeros((1, 2))
    assert not calibration.done(nothing).any()
    assert not calibration.undone(nothing).any()


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.5])
def test_the_temperature_is_found_again(temperature: float) -> None:
    found = fit_calibration(*_sampled(20_000, temperature, (1.0, 1.0, 1.0)), (1.0, 1.0, 1.0), 20_000)
    assert found.temperature == pytest.approx(temperature, rel=0.03)


class _Logits(ClassifierMixin, BaseEstimator):
    """A classifier whose decision is what it is given."""

    def __init__(self, classes: int = 3) -> None:
        self.classes = classes
        self.classes_ = np.arange(classes)

    def fit(self, logits: np.ndarray, truth: np.ndarray) -> _Logits:
        return self

    def decision_function(self, logits: np.ndarray) -> np.ndarray:
        return logits

    def predict(self, logits: np.ndarray) -> np.ndarray:
        return logits.argmax(axis=1)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.5])
def test_without_a_prior_the_temperature_is_that_of_scikit_learn(temperature: float) -> None:
    logits, truth = _sampled(2_000, temperature, (1.0, 1.0, 1.0))
    theirs = CalibratedClassifierCV(FrozenEstimator(_Logits()), method="temperature").fit(logits, truth)
    (calibrator,) = theirs.calibrated_classifiers_[0].calibrators
    ours = fit_calibration(logits, truth, (1.0, 1.0, 1.0), 10**9)  # so many rows that the prior says nothing
    assert ours.temperature == pytest.approx(1 / calibrator.beta_, abs=1e-3)
    np.testing.assert_allclose(ours.probabilities(logits), theirs.predict_proba(logits), rtol=0, atol=1e-3)


def test_weights_are_divided_out_where_that_is_right() -> None:
    weights = (0.05, 1.0, 1.0)
    logits, truth = _sampled(20_000, 1.5, weights)
    found = fit_calibration(logits, truth, weights, 20_000)
    assert found.weights == weights
    assert found.temperature == pytest.approx(1.5, rel=0.03)
    before, after = (one.probabilities(logits) for one in (Calibration.none(3), found))
    assert calibration_error(after.argmax(axis=1) == truth, after.max(axis=1)) < 0.02
    assert calibration_error(before.argmax(axis=1) == truth, before.max(axis=1)) > 0.1


def test_weights_stay_where_dividing_them_out_makes_it_worse() -> None:
    logits, truth = _sampled(20_000, 1.0, (1.0, 1.0, 1.0))
    assert fit_calibration(logits, truth, (0.05, 1.0, 1.0), 20_000).weights == (1.0, 1.0, 1.0)


def test_cross_entropy_is_never_worse_than_without() -> None:
    logits, truth = _sampled(500, 1.0, (1.0, 1.0, 1.0))
    found = fit_calibration(logits, truth, (1.0, 1.0, 1.0), 500)
    own = -log_softmax(logits, axis=1)[np.arange(500), truth].mean()
    assert -np.log(found.probabilities(logits)[np.arange(500), truth]).mean() <= own + 1e-9


def test_a_class_without_training_rows_has_no_weight_to_divide_out() -> None:
    logits, truth = _sampled(500, 1.0, (1.0, 1.0, 1.0))
    assert 0.0 not in fit_calibration(logits, truth, (0.2, 1.0, 0.0), 500).weights


def test_without_rows_nothing_is_changed() -> None:
    assert fit_calibration(np.empty((0, 2)), np.empty(0, dtype=np.int64), (1.0, 0.5), 0) == Calibration.none(2)


def test_few_stretches_move_the_temperature_little() -> None:
    logits = np.array([[2.0, 0.0], [0.0, 2.0]] * 50)
    truth = np.array([0, 1] * 50)  # all right: the surer the better, if these were a hundred independent rows
    many, few = (fit_calibration(logits, truth, (1.0, 1.0), count).temperature for count in (100, 2))
    assert many < 0.5
    assert 0.7 < few < 1.0
