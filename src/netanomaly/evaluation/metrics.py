"""Scores of predicted labels; scikit-learn does the counting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.object_]


def macro_f1(truth: Labels, predicted: Labels) -> float:
    """The mean F1 of the classes that occur in the truth.

    A class the model has never seen counts with an F1 of 0: it cannot be named. A class that does not occur in
    the truth has no F1; rows wrongly given to it cost their own class recall.
    """
    from sklearn.metrics import f1_score

    classes = sorted(set(truth))
    return float(f1_score(truth.astype(str), predicted.astype(str), labels=classes, average="macro", zero_division=0))


def accuracy(truth: Labels, predicted: Labels) -> float:
    """The share of rows with the right label."""
    return float(np.mean(truth == predicted))


def per_class(truth: Labels, predicted: Labels, classes: Sequence[str]) -> dict[str, dict[str, float | int | None]]:
    """Precision, recall, F1, support and number of predicted rows of each class.

    Recall and F1 are null for a class that does not occur in the truth, precision for one never predicted.
    """
    from sklearn.metrics import precision_recall_fscore_support

    precision, recall, f1, support = precision_recall_fscore_support(
        truth.astype(str), predicted.astype(str), labels=list(classes), zero_division=0
    )
    result: dict[str, dict[str, float | int | None]] = {}
    for i, name in enumerate(classes):
        named, present = int((predicted == name).sum()), bool(support[i])
        result[name] = {
            "precision": float(precision[i]) if named else None,
            "recall": float(recall[i]) if present else None,
            "f1": float(f1[i]) if present else None,
            "support": int(support[i]),
            "predicted": named,
        }
    return result


def confusion(truth: Labels, predicted: Labels, classes: Sequence[str]) -> dict[str, Any]:
    """Counts of true (rows) against predicted (columns) labels; `classes` has to hold every label of both."""
    from sklearn.metrics import confusion_matrix

    missing = (set(truth) | set(predicted)) - set(classes)
    if missing:
        raise ValueError(f"labels outside the confusion matrix: {sorted(missing)}")
    matrix = confusion_matrix(truth.astype(str), predicted.astype(str), labels=list(classes))
    return {"labels": list(classes), "matrix": matrix.tolist()}
