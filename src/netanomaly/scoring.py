"""Scoring a predictor on labelled rows, beside the baselines."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netanomaly.build import build_spans
from netanomaly.config import Config, load_config
from netanomaly.data.grid import Grid
from netanomaly.data.ingest import UNLABELLED
from netanomaly.data.splits import TEST, TRAIN
from netanomaly.errors import DataError, NetanomalyError
from netanomaly.evaluation.baselines import WindowStatisticsRegression, majority
from netanomaly.evaluation.report import evaluation_report
from netanomaly.files import write_json
from netanomaly.predictor import Predictor
from netanomaly.prepare import Prepared, prepare, read_labelled

log = logging.getLogger(__name__)

Masks = list[NDArray[np.bool_]]


def evaluate(
    predictor: Predictor,
    prepared: Prepared | None = None,
    files: Sequence[str] = (),
    out: Path | None = None,
) -> dict[str, Any]:
    """Score a predictor beside simple baselines, and write the result as JSON to `out`.

    Args:
        prepared: the rows of the predictor's config, read again if not given; its test part is scored.
        files: score every labelled row of these files instead. The baselines still learn from the config's
            training rows; if those cannot be read any more, they are left out and the result says why.

    Raises:
        DataError: there is no labelled row to score.
    """
    notes: dict[str, Any] = {"scored": {"files": list(files)} if files else {"part": "test"}}
    if not files:
        prepared = prepared or _prepare_again(predictor, predictor.config)
        table, grid, wanted = prepared.table, prepared.grid, prepared.labelled(TEST)
    else:
        table = read_labelled(predictor.config, files)
        grid = predictor.grid(table)
        wanted = [segment.labels != UNLABELLED for segment in grid.segments]
        try:
            # what was changed about reading is about the files given here, all but where the others are
            root = f"data.root={json.dumps(predictor.config.data.root)}"
            prepared = prepared or _prepare_again(predictor, load_config(predictor.trained_config, [root]))
        except NetanomalyError as error:
            notes["baselines_missing"] = f"the training rows cannot be read: {error}"
    # A labelled step may also hold an unlabelled row, where duplicates are allowed: that row is not counted.
    counted = grid.to_rows(wanted) & (table.labels != UNLABELLED)
    if not counted.any():
        raise DataError("evaluation: no labelled rows to score; see data.split, data.label and data.incidents")
    predicted = predictor.name(grid.to_rows(predictor.probabilities(grid.segments, wanted)))
    baselines = _baselines(prepared, predictor, grid, wanted) if prepared is not None else {}
    report = evaluation_report(
        table.series[counted],
        table.labels[counted],
        predicted[counted],
        predictor.classes,
        {name: labels[counted] for name, labels in baselines.items()},
    )
    report.update(notes)
    _tell_training_series(report, predictor.facts["split"]["train"]["series"] if files else ())
    if out is not None:
        write_json(out, report)
    return report


def _tell_training_series(report: dict[str, Any], trained: Sequence[str]) -> None:
    """Say, and note in the report, how many scored rows of other files are of series that training learnt from."""
    rows = {name: entry["rows"] for name, entry in report["per_series"].items() if name in trained}
    report["rows_of_training_series"] = sum(rows.values())
    if rows:
        log.warning(
            "%d of %d scored rows are of series that training used (%s): not a score on unseen series",
            sum(rows.values()),
            report["rows"],
            ", ".join(list(rows)[:8]),
        )


def _prepare_again(predictor: Predictor, config: Config) -> Prepared:
    """The rows of the bundle's config, with a word if a file is not what it was in training."""
    prepared = prepare(config)
    before = {entry["path"]: entry["sha256"] for entry in predictor.facts["data"]["files"]}
    after = {entry["path"]: entry["sha256"] for entry in prepared.fingerprint["files"]}
    changed = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    if changed:
        log.warning("not the files of the training run (new, gone, moved or changed): %s", ", ".join(changed[:8]))
    return prepared


def _baselines(prepared: Prepared, predictor: Predictor, grid: Grid, wanted: Masks) -> dict[str, NDArray[np.object_]]:
    """Labels of the table's rows by classifiers that learn from the training part; wanted steps only."""
    segments, training = prepared.grid.segments, prepared.labelled(TRAIN)
    most = majority(np.concatenate([s.labels[mask] for s, mask in zip(segments, training, strict=True)]))
    regression = WindowStatisticsRegression(build_spans(predictor.config).window, predictor.config.seed)
    regression.fit([s.values for s in segments], [s.labels for s in segments], training)
    named = [regression.predict(s.values, mask) for s, mask in zip(grid.segments, wanted, strict=True)]
    return {
        "logistic_regression": grid.to_rows(named),
        "majority": np.full(len(grid.row_step), most, dtype=object),
    }
