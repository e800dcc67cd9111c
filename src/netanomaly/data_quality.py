"""Metrics that cannot help, or that would mislead: what training says of them, and how it mends them."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netanomaly.build import build_grid_spans
from netanomaly.data.reference import reference
from netanomaly.data.splits import TRAIN, VALIDATION
from netanomaly.label_gaps import filled, tied_to_labels
from netanomaly.prepare import Prepared

log = logging.getLogger(__name__)


def tell_useless_metrics(prepared: Prepared) -> None:
    """Name the metrics that are constant or missing in all training rows."""
    rows = _training_rows(prepared)
    names = np.array([metric.name for metric in prepared.config.data.metrics])
    empty = np.isnan(rows).all(axis=0)
    constant = np.zeros(len(names), dtype=bool)
    constant[~empty] = np.nanmin(rows[:, ~empty], axis=0) == np.nanmax(rows[:, ~empty], axis=0)
    for what, found in (("missing in every training row", empty), ("constant in the training rows", constant)):
        if found.any():
            log.warning("%d of %d metrics are %s: %s", found.sum(), len(names), what, ", ".join(names[found]))


def training_reference(prepared: Prepared) -> dict[str, Any]:
    """What the metrics of the training rows were like, as they were measured; see `data.reference`."""
    rows = _training_rows(prepared)
    measured = rows[~np.isnan(rows).all(axis=1)]
    return reference([metric.name for metric in prepared.config.data.metrics], measured)


def _training_rows(prepared: Prepared) -> NDArray[np.float64]:
    """Metrics of the training rows, labelled or not. (rows, M)"""
    masks = [parts == TRAIN for parts in prepared.split.parts]
    return np.concatenate([s.values[m] for s, m in zip(prepared.grid.segments, masks, strict=True)])


def fill_gaps_of_labels(prepared: Prepared) -> Prepared:
    """The rows to train and validate with, without gaps that give labels away (see `label_gaps`).

    There, missing values are taken from the nearest row of the same part, as far as `data.max_gap` allows.
    """
    segments, parts = prepared.grid.segments, prepared.split.parts
    tied = tied_to_labels(segments, [part == TRAIN for part in parts])
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
    mended = []
    for segment, part in zip(segments, parts, strict=True):
        values = segment.values
        for own in (TRAIN, VALIDATION):
            values = filled(values, part == own, tied, reach)
        mended.append(replace(segment, values=values))
    return replace(prepared, grid=replace(prepared.grid, segments=tuple(mended)))
