"""Scores of class probabilities: do they rank rows well, and do they mean what they say?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

ECE_BINS = 15

Labels = NDArray[np.object_]
Probabilities = NDArray[np.floating]


def average_precisions(truth: Labels, probabilities: Probabilities, classes: Sequence[str]) -> dict[str, float]:
    """Average precision (area under precision over recall) of each class of the truth against all others.

    A class that the classifier cannot name has a score of 0 in every row, so its average precision is its share of
    the rows: what a score that knows nothing gets.

    Args:
        truth: (rows,)
        probabilities: (rows, K); zeros where a row has no answer.
        classes: names of the K columns.
    """
    from sklearn.metrics import average_precision_score

    columns = {name: probabilities[:, i] for i, name in enumerate(classes)}
    unknown = np.zeros(len(truth))
    return {
        str(name): float(average_precision_score(truth == name, columns.get(name, unknown)))
        for name in sorted(set(truth))
    }


def macro_average_precision(truth: Labels, probabilities: Probabilities, classes: Sequence[str]) -> float:
    """The mean of `average_precisions`: macro PR-AUC."""
    return float(np.mean(list(average_precisions(truth, probabilities, classes).values())))


def calibration_error(right: NDArray[np.bool_], confidence: Probabilities) -> float:
    """Expected calibration error of the named class: 0 if of rows named with confidence c a share c is right.

    Rows are put into 15 bins (0, 1/15], (1/15, 2/15] ... by their confidence; ECE = sum over bins B of
    |B| / rows x |share of B that is right - mean confidence of B|. Guo et al., On Calibration of Modern Neural
    Networks, ICML 2017. A row without an answer has confidence 0, is wrong, and counts, in the first bin.

    Args:
        right: rows whose named class is the true one. (rows,)
        confidence: probability of the named class. (rows,)
    """
    bins = np.searchsorted(np.linspace(0, 1, ECE_BINS + 1)[1:-1], confidence)
    # |B| x (share right - mean confidence) is a sum over the rows of B
    gaps = np.bincount(bins, weights=right - confidence.astype(np.float64), minlength=ECE_BINS)
    return float(np.abs(gaps).sum() / len(right))
