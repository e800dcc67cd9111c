"""Every labelled row is answered by a model that has not learnt from its series."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from netanomaly.build import threads
from netanomaly.data.ingest import NO_PART, UNLABELLED
from netanomaly.data.purge import Split, split_report
from netanomaly.data.splits import TEST, TRAIN, VALIDATION
from netanomaly.errors import DataError
from netanomaly.evaluation.rows import ScoredRows
from netanomaly.predictor import Predictor
from netanomaly.prepare import Prepared
from netanomaly.run import fit_bundle
from netanomaly.scoring import scored_rows

log = logging.getLogger(__name__)

FEWEST = 3
"""Labelled series at least: one to judge, one to validate with, one to learn from."""


@dataclass(frozen=True)
class CrossFitted:
    """Labelled rows, and what models that do not know their series say of them.

    Attributes:
        rows: all rows that are judged.
        classes: names of the K columns.
        probabilities: calibrated; 0 of a class that the model of that fold has not learnt. (rows, K)
        unjudged: rows left out, since nothing was measured or no other series has their label.
    """

    rows: ScoredRows
    classes: tuple[str, ...]
    probabilities: NDArray[np.float64]
    unjudged: int


def cross_fit(prepared: Prepared, folds: int, device: torch.device) -> CrossFitted:
    """Train as many models as there are folds, each on the labelled series of the others.

    Labels of the test part are not looked at.

    Raises:
        DataError: there are fewer than three labelled series.
    """
    names = _labelled_series(prepared)
    if len(names) < FEWEST:
        found = ", ".join(names) or "none"
        raise DataError(f"audit: {FEWEST} labelled series are needed outside the test part, found {found}")
    groups = _groups(names, min(folds, len(names)), prepared.config.seed)
    classes = sorted(
        {*prepared.report["train"]["classes"], *prepared.report["validation"]["classes"]},
        key=lambda name: (name != prepared.config.data.normal, name),
    )
    answers = np.full((len(prepared.table), len(classes)), np.nan)  # of classes that the model of a row has not learnt
    with tempfile.TemporaryDirectory() as work, threads(prepared.config):
        for number, held_out in enumerate(groups):
            log.info("fold %d of %d: %s held out", number + 1, len(groups), ", ".join(held_out))
            fold = _fold(prepared, held_out, _validation_series(names, held_out))
            bundle, outcome = fit_bundle(fold, device, Path(work) / "log.jsonl")
            if outcome.stopped_by is not None:
                raise outcome.stopped_by
            given = Predictor(bundle, device).probabilities(fold.grid.segments, fold.labelled(TEST))
            columns = [classes.index(name) for name in bundle.classes]
            rows = np.flatnonzero(fold.grid.to_rows(fold.labelled(TEST)))
            answers[rows[:, None], np.array(columns)] = fold.grid.to_rows(given)[rows]
    return _judged(prepared, tuple(classes), answers)


def _labelled_series(prepared: Prepared) -> list[str]:
    """Series with rows to train or validate with, in the order of the alphabet."""
    return sorted(
        {
            segment.series
            for segment, train, validation in zip(
                prepared.grid.segments, prepared.labelled(TRAIN), prepared.labelled(VALIDATION), strict=True
            )
            if (train | validation).any()
        }
    )


def _groups(names: Sequence[str], count: int, seed: int) -> list[list[str]]:
    """The series in so many groups of about the same size, drawn with a seed."""
    shuffled = np.random.default_rng(seed).permutation(np.array(names, dtype=object))
    return [sorted(group) for group in np.array_split(shuffled, count)]


def _validation_series(names: Sequence[str], held_out: Sequence[str]) -> list[str]:
    """One series in five of the others, those that follow the group in the alphabet."""
    first = names.index(held_out[-1]) + 1
    others = [name for name in (*names[first:], *names[:first]) if name not in held_out]
    return others[: max(1, len(others) // 5)]


def _fold(prepared: Prepared, held_out: Sequence[str], validation: Sequence[str]) -> Prepared:
    """The same rows with other parts: whole series, so that nothing has to be purged."""
    parts = []
    for segment, own in zip(prepared.grid.segments, prepared.split.parts, strict=True):
        part = TEST if segment.series in held_out else VALIDATION if segment.series in validation else TRAIN
        parts.append(np.where(np.isin(own, (TRAIN, VALIDATION)), part, NO_PART).astype(np.int8))
    split = Split(tuple(parts), 0, 0)
    report = split_report(prepared.grid, split, prepared.history_rows)
    if len(report["train"]["classes"]) < 2:  # type: ignore[index]
        raise DataError(f"audit: the series other than {', '.join(held_out)} have one class only; use fewer folds")
    return replace(prepared, split=split, report=report)


def _judged(prepared: Prepared, classes: tuple[str, ...], answers: NDArray[np.float64]) -> CrossFitted:
    """The rows that have an answer and a label that their model could give."""
    table, grid = prepared.table, prepared.grid
    pairs = zip(prepared.labelled(TRAIN), prepared.labelled(VALIDATION), strict=True)
    wanted = grid.to_rows([train | validation for train, validation in pairs]) & (table.labels != UNLABELLED)
    number = {name: i for i, name in enumerate(classes)}
    own = np.array([number.get(str(label), 0) for label in table.labels])
    # a row without any measurement has zeros only
    known = ~np.isnan(answers[np.arange(len(own)), own]) & (np.nan_to_num(answers).sum(axis=1) > 0)
    counted = wanted & known
    judged = np.nan_to_num(answers[counted])
    return CrossFitted(scored_rows(prepared.config, table, counted), classes, judged, int((wanted & ~known).sum()))
