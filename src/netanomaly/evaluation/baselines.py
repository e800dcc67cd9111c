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

        features = np.concatenate(
            [window_statistics(values, self.window)[mask] for values, mask in zip(segments, training, strict=True)]
        )
        truth = np.concatenate([names[mask] for names, mask in zip(labels, training, strict=True)]).astype(str)
        if len(truth) > MAX_TRAINING_ROWS:
            chosen = np.random.default_rng(self.seed).choice(len(truth), MAX_TRAINING_ROWS, replace=False)
            features, truth = features[chosen], truth[chosen]
        self._pipeline = make_pipeline(
            SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True),
            StandardScaler(),
            FunctionTransformer(np.arcsinh),
            LogisticRegression(max_iter=200, tol=1e-3),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a baseline near its optimum is baseline enough
            self._pipeline.fit(features, truth)

    def predict(self, values: NDArray[np.float64]) -> NDArray[np.object_]:
        """Labels of the rows of one segment, (T, M) to (T,)."""
        return np.asarray(self._pipeline.predict(window_statistics(values, self.window)), dtype=object)
