"""Peers that see statistics of a window: logistic regression (scikit-learn) and LightGBM; in the peers' environment."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scripts.bench.quality_features import spread, statistics, take, view
from scripts.bench.quality_problem import BASELINES, Places
from scripts.bench.quality_search import Peer, Scorer, Task, macro_f1

WINDOWS = (32, 4, 8, 16, 64)
WEIGHTS = (None, "balanced")
ROUNDS = (25, 50, 100, 200, 400)
"""Of boosting, of which validation chooses, as it chooses epochs for networks."""
TRIAL_ROUNDS = ROUNDS[:2]
"""Of a trial: with hundreds of metrics more of them would leave time for a few trials only."""


def logistic(task: Task) -> Scorer:
    """Multinomial logistic regression on statistics of the levels, standardised and squashed by asinh."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    features = _features(task)
    classifier = LogisticRegression(
        C=task.choice["C"], class_weight=task.choice["class_weight"], max_iter=200, tol=1e-3, random_state=task.seed
    )
    pipeline = make_pipeline(
        SimpleImputer(keep_empty_features=True), StandardScaler(), FunctionTransformer(np.arcsinh), classifier
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # near its optimum is good enough
        pipeline.fit(features(task.training), task.problem.targets(task.training))

    def score(places: Places) -> NDArray[np.float64]:
        return spread(pipeline.predict_proba(features(places)), pipeline.classes_, len(task.problem.classes))

    return score


def boosted(task: Task) -> Scorer:
    """LightGBM, its number of rounds chosen on validation."""
    from lightgbm import LGBMClassifier

    features = _features(task)
    choices = ROUNDS if task.final else TRIAL_ROUNDS
    model = LGBMClassifier(
        n_estimators=choices[-1],
        learning_rate=0.08,
        subsample=0.8,
        subsample_freq=1,
        colsample_bytree=0.5,
        max_bin=63,  # four times as fast with thousands of features, and as good
        class_weight=task.choice["class_weight"],
        random_state=task.seed,
        n_jobs=task.threads,
        verbose=-1,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of scikit-learn: arrays have no names of features
        model.fit(features(task.training), task.problem.targets(task.training))
    judged, truth = features(task.validation), task.problem.targets(task.validation)

    def probabilities(given: NDArray[np.float32], rounds: int) -> NDArray[np.float64]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            found = np.asarray(model.predict_proba(given, num_iteration=rounds))
        return spread(found, model.classes_, len(task.problem.classes))

    scores = {rounds: macro_f1(truth, probabilities(judged, rounds).argmax(axis=1)) for rounds in choices}
    rounds = max(scores, key=lambda key: scores[key])
    task.notes["rounds"] = rounds
    return lambda places: probabilities(features(places), rounds)


def _features(task: Task) -> Any:
    """Statistics of the windows that end in rows, as the task chooses them; made once, so their time is noted."""
    started = time.perf_counter()
    rows = statistics(view(task.problem, task.choice["view"], task.choice.get("baseline", 0)), task.choice["window"])
    task.notes["feature_seconds_per_row"] = (time.perf_counter() - started) / sum(map(len, rows))
    return lambda places: take(rows, places)


def _boosted(name: str, **axes: tuple[Any, ...]) -> Peer:
    return Peer({"view": (name,), **axes, "class_weight": WEIGHTS}, boosted, few=4_000, most=60_000)


_BASELINE = {"baseline": (BASELINES[-1], *BASELINES[:-1])}
TABLES = {
    "logistic": Peer(
        {"view": ("levels",), "window": WINDOWS, "class_weight": WEIGHTS, "C": (1.0, 0.1, 0.01)},
        logistic,
        few=4_000,
        most=20_000,
    ),
    "lightgbm": _boosted("levels", window=WINDOWS),
    "lightgbm_relative": _boosted("relative", window=WINDOWS, **_BASELINE),
    "lightgbm_both": _boosted("both", window=WINDOWS, **_BASELINE),
    "lightgbm_row": _boosted("row", window=(1,), **_BASELINE),
}
