"""Are rows of classes that training never had called unknown, and others not?"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray


def unknown_scores(
    truth: NDArray[np.object_], novelty: NDArray[np.float64], trained: Collection[str]
) -> dict[str, Any]:
    """Scores of the novelty of rows, as plain values; null where there is nothing to divide by.

    The other scores name every row; here it is told how many would be called `unknown` instead.

    Args:
        truth: true labels. (rows,)
        novelty: above 1 a row is called unknown; all zero if none ever is. (rows,)
        trained: classes that training had.

    Returns:
        known_called_unknown: share of the rows of trained classes.
        new_called_unknown: share of the rows of other classes.
        auroc: chance that a row of another class is more novel than one of a trained class.
    """
    from sklearn.metrics import roc_auc_score

    if not novelty.any():  # nothing is ever called unknown
        return dict.fromkeys(("known_called_unknown", "new_called_unknown", "auroc"))
    is_new = ~np.isin(truth, list(trained))
    called = novelty > 1
    return {
        "known_called_unknown": float(called[~is_new].mean()) if (~is_new).any() else None,
        "new_called_unknown": float(called[is_new].mean()) if is_new.any() else None,
        "auroc": float(roc_auc_score(is_new, novelty)) if is_new.any() and (~is_new).any() else None,
    }
