"""Scores of one method on one data set: the project's own, the same for all methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netanomaly.data.ingest import NO_DATA, UNLABELLED
from netanomaly.data.splits import TEST
from netanomaly.evaluation.metrics import accuracy, macro_f1
from netanomaly.evaluation.report import evaluation_report
from netanomaly.evaluation.rows import Answers, ScoredRows
from netanomaly.prepare import Prepared
from netanomaly.scoring import scored_rows

MERGED = {"kddi_ipcore": {"packet_loss": "packet_loss_or_delay", "packet_delay": "packet_loss_or_delay"}}
"""Classes that the published results on a data set take together."""


@dataclass(frozen=True)
class Judged:
    """Labelled test rows and class probabilities of them, of one fold or of several together.

    Attributes:
        classes: names of the K columns.
        probabilities: (rows, K); all zero where nothing was measured.
    """

    rows: ScoredRows
    classes: tuple[str, ...]
    probabilities: NDArray[np.float64]


def judge(prepared: Prepared, classes: Sequence[str], probabilities: NDArray[np.float64]) -> Judged:
    """The labelled test rows with the probabilities (N, K) of their steps, given in the order of the segments."""
    wanted, grid, table = prepared.labelled(TEST), prepared.grid, prepared.table
    if len(probabilities) != sum(int(mask.sum()) for mask in wanted):
        raise ValueError(f"{len(probabilities)} rows are answered, {sum(int(m.sum()) for m in wanted)} were asked")
    pieces = np.split(probabilities, np.cumsum([mask.sum() for mask in wanted])[:-1])
    per_step = [np.zeros((len(mask), len(classes))) for mask in wanted]
    for step, mask, piece in zip(per_step, wanted, pieces, strict=True):
        step[mask] = piece
    counted = grid.to_rows(wanted) & (table.labels != UNLABELLED)
    rows = scored_rows(prepared.config, table, counted)
    return Judged(rows, tuple(classes), grid.to_rows(per_step)[counted])


def pooled(parts: Sequence[Judged]) -> Judged:
    """Folds as one: their rows after each other, the classes of all of them."""
    classes = list(dict.fromkeys(name for part in parts for name in part.classes))
    probabilities = []
    for part in parts:
        among_all = np.zeros((len(part.rows), len(classes)))
        among_all[:, [classes.index(name) for name in part.classes]] = part.probabilities
        probabilities.append(among_all)
    rows = replace(
        parts[0].rows,
        series=np.concatenate([part.rows.series for part in parts]),
        times=np.concatenate([part.rows.times for part in parts]),
        truth=np.concatenate([part.rows.truth for part in parts]),
    )
    return Judged(rows, tuple(classes), np.concatenate(probabilities))


def merged(judged: Judged, into: dict[str, str]) -> Judged:
    """The same with some classes taken for one: their probabilities are summed, their labels renamed."""
    names = [into.get(name, name) for name in judged.classes]
    classes = list(dict.fromkeys(names))
    to = np.array([[name == other for other in classes] for name in names], dtype=np.float64)
    truth = np.array([into.get(name, name) for name in judged.rows.truth], dtype=object)
    return Judged(replace(judged.rows, truth=truth), tuple(classes), judged.probabilities @ to)


def labels(judged: Judged) -> NDArray[np.object_]:
    """The most probable class of each row, `no_data` where there is none. (rows,)"""
    best = np.array(judged.classes, dtype=object)[judged.probabilities.argmax(axis=1)]
    return np.where(judged.probabilities.any(axis=1), best, NO_DATA)


def scores(dataset: str, judged: Judged) -> dict[str, Any]:
    """All that is told of a method on a data set, as plain values; null where there is nothing to divide by."""
    rows, named = judged.rows, labels(judged)
    found = evaluation_report(rows, Answers(named, judged.classes, judged.probabilities), {})
    of_series = {name: entry["macro_f1"] for name, entry in found["per_series"].items()}
    # a series without an incident has the F1 of its normal rows alone
    eventful = [of_series[name] for name in sorted(set(rows.series[rows.truth != rows.normal]))]
    result: dict[str, Any] = {
        **{key: found[key] for key in ("macro_f1", "accuracy", "incident_recall", "incident_precision")},
        "median_delay_s": found["delay_median_s"],
        **{key: found[key] for key in ("false_alarms_per_series_day", "pr_auc", "ece")},
        "worst_series_macro_f1": found["worst_series"]["macro_f1"] if found["worst_series"] else None,
        "mean_series_macro_f1": float(np.mean(eventful)) if eventful else None,
        "per_series": of_series,
        "per_class": {name: entry["f1"] for name, entry in found["per_class"].items() if entry["support"]},
        "rows": len(rows),
    }
    if dataset in MERGED:
        fewer = merged(judged, MERGED[dataset])
        result["merged"] = {
            "accuracy": accuracy(fewer.rows.truth, labels(fewer)),
            "macro_f1": macro_f1(fewer.rows.truth, labels(fewer)),
        }
    return result
