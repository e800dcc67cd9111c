"""Two simple classifiers beside the model: if it does not beat them, it is not worth its cost."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

MAX_TRAINING_ROWS = 20_000
"""More rows than this make the logistic regression slow and hardly better; a seeded sample is taken."""
RARE_ROWS = 200
"""Classes with no more rows than this are taken whole."""


def majority(training_labels: NDArray[np.object_]) -> str:
    """The most frequent training label; the first in the alphabet among equals."""
    names, counts = np.unique(training_labels.astype(str), return_counts=True)
    return str(names[np.argmax(counts)])


def window_statistics(values: NDArray[np.float64], window: int) -> NDArray[np.float64]:
    """Level statistics of the window that ends in each row: (T, M) metrics to (T, 6 M).

    Last value, mean, standard deviation, minimum, maximum, and last minus first, missing values left out. Only
    metrics as measured: this is the classifier that people build first.
    """
    rows = pd.DataFrame(values)
    rolled = rows.rolling(window, min_periods=1)
    statistics = [rows, rolled.mean(), rolled.std(), rolled.min(), rolled.max(), rows - rows.shift(window - 1)]
    return np.concatenate([statistic.to_numpy() for statistic in statistics], axis=1)


class WindowStatisticsRegression:
    """Multinomial logistic regression (scikit-learn) on window statistics, standardised and squashed by asinh."""

    def __init__(self, window: int, seed: int) -> None:
        self.window = window
        self.seed = seed
        self._pipeline: Any = None

    def fit(
        self,
        segments: Sequence[NDArray[np.float64]],
        labels: Sequence[NDArray[np.object_]],
        training: Sequence[NDArray[np.bool_]],
    ) -> None:
        """Learn from the rows marked in `training`; (T, M), (T,) and (T,) per segment."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.impute import SimpleImputer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import FunctionTransformer, StandardScaler

        truth = np.concatenate([names[mask] for names, mask in zip(labels, training, strict=True)]).astype(str)
        chosen = _sample(truth, self.seed)
        # sampled before the statistics are made: those of millions of rows would not fit in memory
        taken = np.split(chosen, np.cumsum([mask.sum() for mask in training])[:-1])
        features = np.concatenate(
            [
                _finite(window_statistics(values, self.window)[np.flatnonzero(mask)[keep]])
                for values, mask, keep in zip(segments, training, taken, strict=True)
                if keep.any()
            ]
        )
        self._pipeline = make_pipeline(
            SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True),
            StandardScaler(),
            FunctionTransformer(np.arcsinh),
            LogisticRegression(max_iter=200, tol=1e-3),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a baseline near its optimum is baseline enough
            self._pipeline.fit(features, truth[chosen])

    def predict(self, values: NDArray[np.float64], wanted: NDArray[np.bool_]) -> NDArray[np.object_]:
        """Labels of the wanted rows of one segment, (T, M) and (T,) to (T,); empty text elsewhere."""
        labels = np.full(len(values), "", dtype=object)
        if wanted.any():
            labels[wanted] = self._pipeline.predict(_finite(window_statistics(values, self.window)[wanted]))
        return labels


def _sample(labels: NDArray[np.str_], seed: int) -> NDArray[np.bool_]:
    """At most about `MAX_TRAINING_ROWS` rows (rows,): the same share of every class, but rare ones whole."""
    chosen = np.ones(len(labels), dtype=bool)
    share = MAX_TRAINING_ROWS / max(1, len(labels))
    if share >= 1:
        return chosen
    rng = np.random.default_rng(seed)
    for name in np.unique(labels):
        rows = np.flatnonzero(labels == name)
        keep = max(RARE_ROWS, round(share * len(rows)))
        if len(rows) > keep:
            chosen[rng.choice(rows, len(rows) - keep, replace=False)] = False
    return chosen


def _finite(features: NDArray[np.float64]) -> NDArray[np.float64]:
    """Features that squares do not take out of the range of floats; missing ones stay missing."""
    return np.clip(features, -1e100, 1e100)
