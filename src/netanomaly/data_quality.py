"""Metrics that cannot help, or that would mislead: what training says of them, and how it mends them."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.build import build_grid_spans
from netanomaly.data.ingest import UNLABELLED
from netanomaly.data.splits import TRAIN, VALIDATION
from netanomaly.prepare import Prepared

log = logging.getLogger(__name__)

TIED = 0.5
"""Difference in the share of missing rows, unlabelled against labelled ones, from which on a gap tells of labels."""
ENOUGH = 30
"""Rows of either kind that it takes to judge."""


def tell_useless_metrics(prepared: Prepared) -> None:
    """Name the metrics that are constant or missing in all training rows."""
    masks = [parts == TRAIN for parts in prepared.split.parts]
    rows = np.concatenate([s.values[m] for s, m in zip(prepared.grid.segments, masks, strict=True)])
    names = np.array([metric.name for metric in prepared.config.data.metrics])
    empty = np.isnan(rows).all(axis=0)
    constant = np.zeros(len(names), dtype=bool)
    constant[~empty] = np.nanmin(rows[:, ~empty], axis=0) == np.nanmax(rows[:, ~empty], axis=0)
    for what, found in (("missing in every training row", empty), ("constant in the training rows", constant)):
        if found.any():
            log.warning("%d of %d metrics are %s: %s", found.sum(), len(names), what, ", ".join(names[found]))


def fill_gaps_of_labels(prepared: Prepared) -> Prepared:
    """The rows to train and validate with, without gaps that give labels away.

    Some metrics are measured where rows are labelled and missing where they are not, because both were made by one
    experiment. Rows to predict do not have such gaps, and a window in which they show tells a model where in the
    timetable of the experiment its row stands, which is not what it is asked. In training and validation, the missing
    rows get the value of the nearest row that has one, as far as `data.max_gap` allows.
    """
    tied = _tied_to_labels(prepared)
    if not tied.any():
        return prepared
    names = [metric.name for metric, one in zip(prepared.config.data.metrics, tied, strict=True) if one]
    log.warning(
        "%d of %d metrics are missing where rows are unlabelled and measured where they are labelled, which gives "
        "labels away; for training, gaps are filled from the nearest row: %s",
        len(names),
        len(tied),
        ", ".join(names[:8]) + (", ..." if len(names) > 8 else ""),
    )
    reach = build_grid_spans(prepared.config).max_gap
    segments = tuple(
        replace(segment, values=_filled(segment.values, (parts == TRAIN) | (parts == VALIDATION), tied, reach))
        for segment, parts in zip(prepared.grid.segments, prepared.split.parts, strict=True)
    )
    return replace(prepared, grid=replace(prepared.grid, segments=segments))


def _tied_to_labels(prepared: Prepared) -> NDArray[np.bool_]:
    """Metrics that are measured in labelled training rows and missing in unlabelled ones. (M,)"""
    pairs = list(zip(prepared.grid.segments, prepared.split.parts, strict=True))
    inside = [(parts == TRAIN) & segment.valid for segment, parts in pairs]
    has_label = np.concatenate([s.labels[m] != UNLABELLED for (s, _), m in zip(pairs, inside, strict=True)])
    missing = np.concatenate([np.isnan(s.values[m]) for (s, _), m in zip(pairs, inside, strict=True)])  # (rows, M)
    if min(has_label.sum(), (~has_label).sum()) < ENOUGH:
        return np.zeros(missing.shape[1], dtype=np.bool_)
    return np.asarray(missing[~has_label].mean(axis=0) - missing[has_label].mean(axis=0) > TIED)


def _filled(
    values: NDArray[np.float64], rows: NDArray[np.bool_], metrics: NDArray[np.bool_], reach: int
) -> NDArray[np.float64]:
    """Values with the missing ones of some rows (T,) and metrics (M,) taken from the nearest row. (T, M) to (T, M)"""
    columns = pd.DataFrame(values[:, metrics])
    before, after = columns.ffill(limit=reach), columns.bfill(limit=reach)
    steps = pd.DataFrame(np.where(columns.isna(), np.nan, np.arange(len(values))[:, None]))
    here = np.arange(len(values))[:, None]
    is_nearer = (here - steps.ffill().fillna(-np.inf)) <= (steps.bfill().fillna(np.inf) - here)
    nearest = before.where(is_nearer, after).fillna(before).fillna(after).to_numpy()
    result = values.copy()
    result[:, metrics] = np.where(rows[:, None], nearest, values[:, metrics])
    return result
