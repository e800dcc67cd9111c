"""How often rows named with some confidence are right: what a reliability diagram shows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from netanomaly.evaluation.probabilities import calibration_error
from netanomaly.evaluation.rows import Answers

BINS = 10


def reliability(truth: NDArray[np.object_], answers: Answers) -> dict[str, Any]:
    """Whether probabilities mean what they say, as plain values.

    Returns:
        ece: see `calibration_error`.
        brier: mean over rows of the squared distance between the probabilities and the truth, sum over k of
            (p_k - 1[k is true])^2: 0 at best, 2 at worst (Brier, Monthly Weather Review 1950). A class that the
            classifier cannot name has a probability of 0.
        bins: ten of equal width by confidence, those that hold rows: `rows`, mean `confidence`, share `right`.
    """
    probabilities, confidence = answers.known_probabilities, answers.confidence
    right = answers.labels == truth
    names = np.array(answers.classes, dtype=object)
    is_true = truth[:, None] == names  # (rows, K)
    unnamed = ~is_true.any(axis=1)  # its probability of 0 is 1 away from the truth
    distance = np.square(probabilities - is_true).sum(axis=1) + unnamed
    number = np.minimum((confidence * BINS).astype(int), BINS - 1)
    counts = np.bincount(number, minlength=BINS)
    sums = (np.bincount(number, weights=values, minlength=BINS) for values in (confidence, right.astype(float)))
    bins = [
        {"rows": int(rows), "confidence": float(sure / rows), "right": float(hits / rows)}
        for rows, sure, hits in zip(counts, *sums, strict=True)
        if rows
    ]
    return {"ece": calibration_error(right, confidence), "brier": float(distance.mean()), "bins": bins}
