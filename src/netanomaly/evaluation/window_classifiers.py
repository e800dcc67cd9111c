"""The classifiers that people build first: one on statistics of the window that ends in each row.

If the model does not beat them, it is not worth its cost.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

REGRESSION_ROWS = 20_000
"""More rows than this make the logistic regression slow and hardly better; a seeded sample is taken."""
BOOSTING_ROWS = 50_000
"""As for the logistic regression; boosted trees make use of more."""
RARE_ROWS = 200
"""Classes with no more rows than this are taken whole."""
ROUNDS = 300
"""Rounds of boosting."""


def window_statistics(values: NDArray[np.float64], window: int) -> NDArray[np.float64]:
    """Level statistics of the window that ends in each row: (T, M) metrics to (T, 6 M).

    Last value, mean, standard deviation, minimum, maximum, and last minus first, missing values left out. Only
    metrics as measured.
    """
    rows = pd.DataFrame(values)
    rolled = rows.rolling(window, min_periods=1)
    statistics = [rows, rolled.mean(), rolled.std(), rolled.min(), rolled.max(), rows - rows.shift(window - 1)]
    return np.concatenate([statistic.to_numpy() for statistic in statistics], axis=1)


class WindowClassifier:
    """A classifier of scikit-learn's kind on window statistics.

    Attributes:
        estimator: has fit, predict_proba and classes_; copes with missing values.
        window: rows of a window.
        most_rows: about how many training rows it learns from; more are sampled.
        seed: of the sample.
    """

    def __init__(self, estimator: Any, window: int, most_rows: int, seed: int) -> None:
        self.estimator = estimator
        self.window = window
        self.most_rows = most_rows
        self.seed = seed

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the columns of the probabilities."""
        return tuple(str(name) for name in self.estimator.classes_)

    def fit(
        self,
        segments: Sequence[NDArray[np.float64]],
        labels: Sequence[NDArray[np.object_]],
        training: Sequence[NDArray[np.bool_]],
    ) -> None:
        """Learn from the rows marked in `training`; (T, M), (T,) and (T,) per segment."""
        from sklearn.exceptions import ConvergenceWarning

        truth = np.concatenate([names[mask] for names, mask in zip(labels, training, strict=True)]).astype(str)
        chosen = sample_rows(truth, self.most_rows, self.seed)
        # sampled before the statistics are made: those of millions of rows would not fit in memory
        taken = np.split(chosen, np.cumsum([mask.sum() for mask in training])[:-1])
        features = np.concatenate(
            [
                _finite(window_statistics(values, self.window)[np.flatnonzero(mask)[keep]])
                for values, mask, keep in zip(segments, training, taken, strict=True)
                if keep.any()
            ]
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a baseline near its optimum is baseline enough
            self.estimator.fit(features, truth[chosen])

    def probabilities(self, values: NDArray[np.float64], wanted: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Class probabilities of the wanted rows of one segment, (T, M) and (T,) to (T, K); zeros elsewhere."""
        result = np.zeros((len(values), len(self.classes)), dtype=np.float32)
        if wanted.any():
            result[wanted] = self.estimator.predict_proba(_finite(window_statistics(values, self.window)[wanted]))
        return result


def logistic_regression(window: int, seed: int) -> WindowClassifier:
    """Multinomial logistic regression (scikit-learn), the statistics standardised and squashed by asinh."""
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    pipeline = make_pipeline(
        SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True),
        StandardScaler(),
        FunctionTransformer(np.arcsinh),
        LogisticRegression(max_iter=200, tol=1e-3),
    )
    return WindowClassifier(pipeline, window, REGRESSION_ROWS, seed)


def lightgbm_missing() -> str | None:
    """Why LightGBM, which is no dependency, cannot be used here; None if it can."""
    try:
        import lightgbm  # noqa: F401
    except ModuleNotFoundError:
        return "not installed (pip install 'netanomaly[lightgbm]')"
    except (ImportError, OSError) as error:  # its OpenMP runtime is not there, as on a bare macOS or Linux
        return f"installed, but does not load: {' '.join(str(error).split())}"
    return None


def lightgbm_classifier(window: int, seed: int, threads: int | None) -> WindowClassifier:
    """Gradient-boosted trees (LightGBM); the same answers from the same rows with any number of threads."""
    from lightgbm import LGBMClassifier

    trees = LGBMClassifier(
        n_estimators=ROUNDS,
        learning_rate=0.05,
        num_leaves=31,
        min_child_samples=20,
        random_state=seed,
        deterministic=True,
        force_row_wise=True,
        n_jobs=threads or 0,  # 0: as many as OpenMP takes
        verbosity=-1,
    )
    return WindowClassifier(trees, window, BOOSTING_ROWS, seed)


def sample_rows(labels: NDArray[np.str_], most: int, seed: int) -> NDArray[np.bool_]:
    """At most about `most` rows (rows,): the same share of every class, but rare ones whole."""
    chosen = np.ones(len(labels), dtype=bool)
    share = most / max(1, len(labels))
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
