"""Probabilities that mean what they say: of rows that are given a probability of 0.9, nine in ten are right.

Training may weigh classes, and a network is as a rule too sure of itself, or not sure enough. Both are undone after
training: p_k is divided by the weight of its class, and the logits by one temperature, found on the validation rows.

    p = softmax((logits - log w) / T)

Which class a row is named after stays the model's own choice, the largest logit: the weights are there to name rare
classes more often than their frequency alone would, and dividing them out says how often that is right.
Source: Guo et al., On Calibration of Modern Neural Networks, ICML 2017 (temperature); Saerens et al., Adjusting the
Outputs of a Classifier to New a Priori Probabilities, Neural Computation 2002 (weights).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

BOUNDS = (0.1, 10.0)
"""Of the temperature."""
EXPECTED = 0.5
"""Standard deviation of the logarithm of temperatures that are to be expected: a prior, for few rows tell little."""


@dataclass(frozen=True)
class Calibration:
    """How logits become probabilities.

    Attributes:
        temperature: above 1 the probabilities are less sure than the logits say, below 1 surer.
        weights: of each class in training, divided out. (K,)
    """

    temperature: float
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        positive = np.array([self.temperature, *self.weights], dtype=np.float64)
        if not (np.isfinite(positive).all() and (positive > 0).all()):
            raise ValueError("the calibration's temperature and weights have to be positive numbers")

    @classmethod
    def none(cls, classes: int) -> Calibration:
        """Leaves the model's probabilities as they are."""
        return cls(1.0, (1.0,) * classes)

    @cached_property
    def _log_weights(self) -> NDArray[np.float64]:
        return np.asarray(np.log(np.array(self.weights)))

    def probabilities(self, logits: NDArray[np.floating]) -> NDArray[np.float64]:
        """Class probabilities of finite logits, (rows, K) to (rows, K)."""
        scaled = (logits.astype(np.float64) - self._log_weights) / self.temperature
        powers = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    def named(self, probabilities: NDArray[np.float64]) -> NDArray[np.int64]:
        """The class that each row is named after, the one with the largest logit. (rows, K) to (rows,)"""
        if len(set(self.weights)) == 1:
            return np.asarray(probabilities.argmax(axis=1))
        return np.asarray(self._logits(probabilities).argmax(axis=1))

    def done(self, uncalibrated: NDArray[np.float64]) -> NDArray[np.float64]:
        """The model's own probabilities, calibrated. Rows of zeros stay. (rows, K) to (rows, K)"""
        return _of_answers(uncalibrated, lambda some: self.probabilities(as_logits(some)))

    def undone(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """The model's own probabilities: the inverse of `done`. (rows, K) to (rows, K)"""
        plain = Calibration.none(probabilities.shape[1])
        return _of_answers(probabilities, lambda some: plain.probabilities(self._logits(some)))

    def _logits(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Up to a number per row. (rows, K) to (rows, K)"""
        return as_logits(probabilities) * self.temperature + self._log_weights

    def state(self) -> dict[str, Any]:
        """As plain values; see `from_state`."""
        return {"temperature": self.temperature, "weights": list(self.weights)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Calibration:
        """From `state`. Raises KeyError, TypeError or ValueError if it is none."""
        return cls(float(state["temperature"]), tuple(float(weight) for weight in state["weights"]))


def as_logits(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logits with these probabilities, (rows, K) to (rows, K); what has underflown to zero stays the least."""
    return np.asarray(np.log(np.maximum(probabilities, np.finfo(np.float64).tiny)))


def _of_answers(
    probabilities: NDArray[np.float64], change: Callable[[NDArray[np.float64]], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Changed rows, but for those without an answer. (rows, K) to (rows, K)"""
    answered, result = probabilities.any(axis=1), np.zeros_like(probabilities)
    result[answered] = change(probabilities[answered])
    return result


def fit_calibration(
    logits: NDArray[np.floating], truth: NDArray[np.int64], weights: Sequence[float], independent: int
) -> Calibration:
    """The likeliest temperature, from the cross-entropy on rows that were not learnt from and a prior around 1.

    Neighbouring rows tell much the same, so their mean cross-entropy counts as often as there are independent ones. The
    weights are divided out if that makes the cross-entropy smaller.

    Args:
        logits: (rows, K)
        truth: number of the true class. (rows,)
        weights: of the classes in training, 0 for one without a training row. (K,)
        independent: how many rows these are worth: stretches of one label.
    """
    if not len(truth):
        return Calibration.none(len(weights))

    def loss(calibration: Calibration) -> float:
        """Minus the logarithm of how likely a calibration is, up to a number."""
        own = calibration.probabilities(logits)[np.arange(len(truth)), truth]
        prior = np.log(calibration.temperature) ** 2 / (2 * EXPECTED**2)
        return float(prior - independent * np.log(np.maximum(own, np.finfo(np.float64).tiny)).mean())

    given = tuple(weight if weight > 0 else 1.0 for weight in weights)
    candidates = dict.fromkeys([(1.0,) * len(given), given])
    return min((_with_best_temperature(loss, each) for each in candidates), key=loss)


def _with_best_temperature(loss: Callable[[Calibration], float], weights: tuple[float, ...]) -> Calibration:
    """With the temperature of the smallest loss."""
    from scipy.optimize import minimize_scalar

    def of_power(power: float) -> float:
        return loss(Calibration(float(np.exp(power)), weights))

    found = minimize_scalar(of_power, bounds=tuple(np.log(BOUNDS)), method="bounded", options={"xatol": 1e-4})
    return Calibration(round(float(np.exp(found.x)), 4), weights)
