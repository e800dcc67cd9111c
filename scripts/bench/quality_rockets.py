"""Peers that see windows through random kernels, with a ridge classifier: aeon's MiniRocket, MultiRocket, Hydra.

Runs in the peers' environment.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scripts.bench.quality_features import softmax, spread, standardised, view, windows
from scripts.bench.quality_problem import BASELINES, Places, sample
from scripts.bench.quality_search import Peer, Scorer, Task

SHORTEST = 10
"""Rows that kernels of nine rows on differences of rows (MultiRocket) need; shorter windows of the common list become
this."""
MOST_NUMBERS = 150_000_000
"""In the windows of a training: 600 MB, and their copies."""
AT_A_TIME = 2_048


def ridge_on_kernels(task: Task) -> Scorer:
    """Windows through the kernels of the choice, standardised, into RidgeClassifierCV.

    Ridge gives scores, not probabilities: their softmax stands for them.
    """
    from sklearn.linear_model import RidgeClassifierCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    choice, problem = task.choice, task.problem
    rows = standardised(problem, view(problem, choice["view"], choice.get("baseline", 0)))
    fitting = MOST_NUMBERS // (rows[0].shape[1] * choice["window"])
    training = sample(problem, task.training, fitting, task.seed)
    task.notes["training_windows"] = len(training)
    transformers = _transformers(choice["kernels"], task.seed, task.threads)
    given = windows(rows, choice["window"], training)
    features = np.concatenate([_fitted(transformer, given) for transformer in transformers], axis=1)
    del given
    classifier = RidgeClassifierCV(alphas=np.logspace(-3, 3, 10), class_weight=choice["class_weight"])
    pipeline = make_pipeline(StandardScaler(), classifier)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ill-conditioned matrices of the smallest alphas
        pipeline.fit(features, problem.targets(training))

    def score(places: Places) -> NDArray[np.float64]:
        found = []
        for some in np.array_split(places, max(1, len(places) // AT_A_TIME)):
            given = windows(rows, choice["window"], some)
            through = np.concatenate([np.asarray(t.transform(given)) for t in transformers], axis=1)
            scores = pipeline.decision_function(np.nan_to_num(through))
            both = np.stack([-scores, scores], axis=1) if scores.ndim == 1 else scores  # two classes: one score
            found.append(softmax(both))
        return spread(np.concatenate(found), pipeline.classes_, len(problem.classes))

    return score


def _transformers(kernels: str, seed: int, threads: int) -> list[Any]:
    from aeon.transformations.collection.convolution_based import HydraTransformer, MiniRocket, MultiRocket

    if kernels == "minirocket":
        return [MiniRocket(n_kernels=4_000, random_state=seed, n_jobs=threads)]
    return [
        MultiRocket(n_kernels=1_250, random_state=seed, n_jobs=threads),  # 10,000 features, as four and two make them
        HydraTransformer(n_kernels=8, n_groups=32, random_state=seed, n_jobs=threads),
    ]


def _fitted(transformer: Any, given: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.nan_to_num(np.asarray(transformer.fit_transform(given), dtype=np.float32))


_BASELINE = (BASELINES[-1], *BASELINES[:-1])
_WINDOWS = {"window": (16, SHORTEST, 32, 64)}
_WEIGHTS = {"class_weight": (None, "balanced")}
ROCKETS = {
    "minirocket": Peer(
        {"kernels": ("minirocket",), "view": ("levels",), **_WINDOWS, **_WEIGHTS},
        ridge_on_kernels,
        few=2_000,
        most=12_000,
    ),
    "minirocket_relative": Peer(
        {"kernels": ("minirocket",), "view": ("relative",), **_WINDOWS, "baseline": _BASELINE, **_WEIGHTS},
        ridge_on_kernels,
        few=2_000,
        most=12_000,
    ),
    "multirocket_hydra": Peer(
        {"kernels": ("both",), "view": ("levels", "relative"), **_WINDOWS, "baseline": _BASELINE, **_WEIGHTS},
        ridge_on_kernels,
        few=1_000,
        most=6_000,
    ),
}
