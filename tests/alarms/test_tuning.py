"""The rule is chosen on rows that were not learnt from."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made import CLASSES, truth

from netanomaly.alarms.tuning import tune
from netanomaly.evaluation.rows import ScoredRows

DAY = 86400


def _network(seed: int = 0, noise: float = 0.25) -> tuple[ScoredRows, np.ndarray]:
    """Incidents whose class is likely, and normal rows with a false peak now and then."""
    rng = np.random.default_rng(seed)
    letters = "".join("." * int(rng.integers(10, 20)) + "ab"[i % 2] * 8 for i in range(20)) + "." * 10
    rows = truth(x=letters)
    own = np.array([CLASSES.index(label) for label in rows.truth])
    logits = rng.normal(0, 0.5, (len(rows), 3))
    logits[np.arange(len(rows)), own] += 3
    peaks = (own == 0) & (rng.random(len(rows)) < noise / 5)
    logits[peaks, 1] += 5  # a false alarm of one row
    powers = np.exp(logits)
    return rows, powers / powers.sum(axis=1, keepdims=True)


def test_single_rows_that_are_wrong_raise_no_alarm_after_tuning() -> None:
    tuned = tune(*_network(), CLASSES)
    assert (tuned.recall, tuned.false_alarms, tuned.meets_target) == (1.0, 0, True)
    assert tuned.rule.min_rows > 1 or tuned.rule.thresholds["a"] > 0.5


@pytest.mark.parametrize("target", [0.0, 3000.0, 1e6])
def test_a_target_is_kept_on_the_rows_given(target: float) -> None:
    rows, probabilities = _network(noise=1.0)
    tuned = tune(rows, probabilities, CLASSES, target)
    assert tuned.meets_target
    assert tuned.false_alarms <= target * len(rows) / DAY


def test_more_false_alarms_buy_no_less_recall() -> None:
    rows, probabilities = _network(noise=1.0)
    mixed = 0.55 * probabilities + 0.45 * _network(seed=1)[1][np.random.default_rng(0).permutation(len(rows)) % 300]
    recalls = [tune(rows, mixed, CLASSES, target).recall for target in (0.0, 1000.0, 10000.0, 1e7)]
    assert recalls == sorted(recalls)


def test_a_target_that_cannot_be_kept_is_told() -> None:
    rows = truth(x="." * 50)
    probabilities = np.tile([0.0, 1.0, 0.0], (50, 1))
    tuned = tune(rows, probabilities, CLASSES, 0.0)
    assert not tuned.meets_target
    assert tuned.false_alarms == 1


def test_an_alarm_that_is_always_there_is_not_chosen() -> None:
    rows = truth(x="." * 200 + "aaaa" + "." * 200)
    probabilities = np.tile([0.7, 0.3, 0.0], (len(rows), 1))  # a model that knows nothing
    tuned = tune(rows, probabilities, CLASSES, 0.0)
    assert (tuned.recall, tuned.false_alarms) == (0.0, 0)


def test_tuning_is_the_same_every_time() -> None:
    rows, probabilities = _network(noise=1.0)
    assert tune(rows, probabilities, CLASSES, 100.0) == tune(rows, probabilities, CLASSES, 100.0)


def test_hysteresis_is_kept() -> None:
    assert tune(*_network(), CLASSES, hysteresis=0.8).rule.hysteresis == 0.8
