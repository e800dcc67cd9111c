"""Scoring a predictor on labelled rows, beside the baselines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netanomaly.build import build_spans
from netanomaly.data.ingest import UNLABELLED, Table
from netanomaly.data.splits import TEST, TRAIN
from netanomaly.errors import DataError, NetanomalyError
from netanomaly.evaluation.baselines import WindowStatisticsRegression, majority
from netanomaly.evaluation.report import evaluation_report
from netanomaly.files import write_json
from netanomaly.predictor import Predictor
from netanomaly.prepare import Prepared, prepare, read_labelled


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
    missing_baselines = None
    if not files:
        prepared = prepared or prepare(predictor.config)
        table = prepared.table
        counted = prepared.grid.to_rows(prepared.labelled(TEST)).astype(bool)  # type: ignore[arg-type]
    else:
        table = read_labelled(predictor.config, files)
        counted = table.labels != UNLABELLED
        try:
            prepared = prepared or prepare(predictor.config)
        except NetanomalyError as error:
            missing_baselines = f"the training rows cannot be read: {error}"
    if not counted.any():
        raise DataError("evaluation: no labelled rows to score; see data.split, data.label and data.incidents")
    scores = predictor.score(table)
    baselines = _baselines(prepared, predictor, table) if prepared is not None else {}
    report = evaluation_report(
        table.series[counted],
        table.labels[counted],
        scores.labels[counted],
        predictor.classes,
        {name: labels[counted] for name, labels in baselines.items()},
    )
    report["scored"] = {"files": list(files)} if files else {"part": "test"}
    if missing_baselines is not None:
        report["baselines_missing"] = missing_baselines
    if out is not None:
        write_json(out, report)
    return report


def _baselines(prepared: Prepared, predictor: Predictor, table: Table) -> dict[str, NDArray[np.object_]]:
    """Labels of every row of the table by the baselines, which learn from the training part."""
    segments, training = prepared.grid.segments, prepared.labelled(TRAIN)
    most = majority(np.concatenate([s.labels[mask] for s, mask in zip(segments, training, strict=True)]))
    regression = WindowStatisticsRegression(build_spans(predictor.config).window, predictor.config.seed)
    regression.fit([s.values for s in segments], [s.labels for s in segments], training)
    grid = predictor.grid(table)
    named = grid.to_rows([regression.predict(s.values) for s in grid.segments])  # type: ignore[misc]
    return {
        "logistic_regression": np.asarray(named, dtype=object),
        "majority": np.full(len(table), most, dtype=object),
    }
