"""Metrics that are measured where rows are labelled and missing where they are not: a gap that gives labels away.

Labels and metrics were made by one experiment then, and rows to predict do not have such gaps. A window in which they
show tells a model where in the timetable of the experiment its row stands, which is not what it is asked.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.data.grid import Segment
from netanomaly.data.ingest import UNLABELLED

TIED = 0.5
"""Difference in the share of missing rows, unlabelled against labelled ones, from which on a gap tells of labels."""
ENOUGH = 30
"""Rows of either kind that it takes to judge."""


def tied_to_labels(segments: Sequence[Segment], training: Sequence[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Which metrics have such gaps in the training rows, labelled or not, (T,) per segment. (M,)"""
    pairs = [(segment, rows & segment.valid) for segment, rows in zip(segments, training, strict=True)]
    has_label = np.concatenate([segment.labels[rows] != UNLABELLED for segment, rows in pairs])
    missing = np.concatenate([np.isnan(segment.values[rows]) for segment, rows in pairs])  # (rows, M)
    if min(has_label.sum(), (~has_label).sum()) < ENOUGH:
        return np.zeros(missing.shape[1], dtype=np.bool_)
    return np.asarray(missing[~has_label].mean(axis=0) - missing[has_label].mean(axis=0) > TIED)


def filled(
    values: NDArray[np.float64], rows: NDArray[np.bool_], metrics: NDArray[np.bool_], reach: int
) -> NDArray[np.float64]:
    """Values with the missing ones of some rows (T,) and metrics (M,) taken from the nearest of these rows.

    The earlier one of two that are as near; nothing from further than `reach` rows away, and nothing from other rows:
    those of another part of a split have to stay unknown. (T, M) to (T, M)
    """
    columns = pd.DataFrame(np.where(rows[:, None], values[:, metrics], np.nan))
    here = np.arange(len(values))[:, None]
    steps = pd.DataFrame(np.where(columns.isna(), np.nan, here))
    since = here - steps.ffill().fillna(-np.inf).to_numpy()
    until = steps.bfill().fillna(np.inf).to_numpy() - here
    nearest = np.where(since <= until, columns.ffill(), columns.bfill())
    result = values.copy()
    takes = rows[:, None] & (np.minimum(since, until) <= reach)
    result[:, metrics] = np.where(takes, nearest, values[:, metrics])
    return result
