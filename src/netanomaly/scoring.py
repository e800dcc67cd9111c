"""Scoring a predictor on labelled rows, beside the baselines."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netanomaly.alarms.matching import alarm_scores
from netanomaly.alarms.raising import Alarms
from netanomaly.build import build_grid_spans, build_spans
from netanomaly.config import Config, load_config
from netanomaly.data.grid import Grid
from netanomaly.data.ingest import NO_DATA, UNLABELLED, Table
from netanomaly.data.splits import TEST, TRAIN
from netanomaly.errors import DataError, NetanomalyError
from netanomaly.evaluation.baselines import majority, random_answers
from netanomaly.evaluation.novelty import unknown_scores
from netanomaly.evaluation.reliability import reliability
from netanomaly.evaluation.report import evaluation_report
from netanomaly.evaluation.rows import Answers, ScoredRows
from netanomaly.evaluation.window_classifiers import (
    WindowClassifier,
    lightgbm_classifier,
    lightgbm_missing,
    logistic_regression,
)
from netanomaly.files import write_json
from netanomaly.predictor import Predictor
from netanomaly.prepare import Prepared, prepare, read_labelled

log = logging.getLogger(__name__)

Masks = list[NDArray[np.bool_]]


@dataclass(frozen=True)
class Scored:
    """An evaluation and what it was made of.

    Attributes:
        report: as `evaluate` returns it.
        shown: steps that were scored, and unlabelled ones among them: the test part, or all of some files. (T,) per
            segment
        wanted: steps that were scored. (T,) per segment
        per_step: class probabilities and novelty of those, zeros elsewhere. (T, K + 1) per segment
        rows, model: what was scored, and the answers.
    """

    report: dict[str, Any]
    table: Table
    grid: Grid
    shown: Masks
    wanted: Masks
    per_step: list[NDArray[np.float64]]
    rows: ScoredRows
    model: Answers


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
    scored = score(predictor, prepared, files)
    if out is not None:
        write_json(out, scored.report)
    return scored.report


def score(predictor: Predictor, prepared: Prepared | None = None, files: Sequence[str] = ()) -> Scored:
    """As `evaluate`, with everything that the evaluation was made of."""
    notes: dict[str, Any] = {"scored": {"files": list(files)} if files else {"part": "test"}}
    if not files:
        prepared = prepared or prepare_again(predictor, predictor.config)
        table, grid, wanted = prepared.table, prepared.grid, prepared.labelled(TEST)
        shown = [parts == TEST for parts in prepared.split.parts]
    else:
        table = read_labelled(predictor.config, files)
        grid = predictor.grid(table)
        wanted = [segment.labels != UNLABELLED for segment in grid.segments]
        shown = [np.ones(len(segment), dtype=bool) for segment in grid.segments]
        try:
            # what was changed about reading is about the files given here, all but where the others are
            root = f"data.root={json.dumps(predictor.config.data.root)}"
            prepared = prepared or prepare_again(predictor, load_config(predictor.trained_config, [root]))
        except NetanomalyError as error:
            notes["baselines_missing"] = f"the training rows cannot be read: {error}"
    # A labelled step may also hold an unlabelled row, where duplicates are allowed: that row is not counted.
    counted = grid.to_rows(wanted) & (table.labels != UNLABELLED)
    if not counted.any():
        raise DataError("evaluation: no labelled rows to score; see data.split, data.label and data.incidents")
    rows = scored_rows(predictor.config, table, counted)
    per_step = predictor.answers(grid.segments, wanted)
    answers = grid.to_rows(per_step)[counted]
    probabilities = answers[:, :-1]
    model = Answers(predictor.name(probabilities), tuple(predictor.classes), probabilities)
    baselines: dict[str, Answers] = {}
    if prepared is not None:
        answer = partial(_window_answers, prepared=prepared, grid=grid, wanted=wanted, counted=counted)
        baselines, notes["baselines_left_out"] = _baselines(prepared, predictor.config, len(rows), answer)
    report = evaluation_report(rows, model, baselines)
    report["alarms"] = alarm_scores(rows, _alarms(predictor, rows, probabilities))
    report["calibration"] = _calibration(predictor, rows, model)
    report["unknown"] = unknown_scores(rows.truth, answers[:, -1], predictor.classes)
    report.update(notes)
    _tell_training_series(report, predictor.facts["split"]["train"]["series"] if files else ())
    return Scored(report, table, grid, shown, wanted, per_step, rows, model)


def _alarms(predictor: Predictor, rows: ScoredRows, probabilities: NDArray[np.float64]) -> Alarms:
    """What the scored rows alone would raise. (rows,), (rows, K)"""
    collector = predictor.collector()
    collector.add(rows.series, rows.times, probabilities)
    return collector.alarms()


def _calibration(predictor: Predictor, rows: ScoredRows, model: Answers) -> dict[str, Any]:
    """What calibration does to the probabilities of the scored rows."""
    calibration = predictor.decisions.calibration
    before = replace(model, probabilities=calibration.undone(model.known_probabilities.astype(np.float64)))
    return {
        **calibration.state(),
        "before": reliability(rows.truth, before),
        "after": reliability(rows.truth, model),
    }


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


def prepare_again(predictor: Predictor, config: Config) -> Prepared:
    """The rows of the bundle's config, with a word if a file is not what it was in training."""
    prepared = prepare(config)
    before = {entry["path"]: entry["sha256"] for entry in predictor.facts["data"]["files"]}
    after = {entry["path"]: entry["sha256"] for entry in prepared.fingerprint["files"]}
    changed = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    if changed:
        log.warning("not the files of the training run (new, gone, moved or changed): %s", ", ".join(changed[:8]))
    return prepared


def scored_rows(config: Config, table: Table, counted: NDArray[np.bool_]) -> ScoredRows:
    """The counted rows of a table, with what the config says of time and of the normal class."""
    spans = build_grid_spans(config)
    return ScoredRows(
        series=table.series[counted],
        times=table.times[counted],
        truth=table.labels[counted],
        interval_ns=spans.interval_ns,
        # the rows around the longest gap that a segment bridges, and half a step for clocks that are not exact
        max_gap_ns=(spans.max_gap + 1) * spans.interval_ns + spans.interval_ns // 2,
        normal=config.data.normal,
        no_data=NO_DATA,
    )


def _baselines(
    prepared: Prepared, config: Config, rows: int, answer: Callable[[WindowClassifier], Answers]
) -> tuple[dict[str, Answers], dict[str, str]]:
    """Answers by classifiers that learn from the training part, and why others are left out, by name.

    Args:
        rows: how many are scored.
        answer: lets a classifier learn and answer.
    """
    pairs = zip(prepared.grid.segments, prepared.labelled(TRAIN), strict=True)
    labels = np.concatenate([segment.labels[mask] for segment, mask in pairs])
    window = build_spans(config).window
    found = {"logistic_regression": answer(logistic_regression(window, config.seed))}
    missing = lightgbm_missing()
    if missing is None:
        found["lightgbm"] = answer(lightgbm_classifier(window, config.seed, config.threads))
    found["majority"] = Answers(np.full(rows, majority(labels), dtype=object))
    found["random"] = random_answers(labels, rows, config.seed)
    return found, {} if missing is None else {"lightgbm": missing}


def _window_answers(
    classifier: WindowClassifier, *, prepared: Prepared, grid: Grid, wanted: Masks, counted: NDArray[np.bool_]
) -> Answers:
    """The classifier's answers to the counted rows of the grid's table, learnt from the training part."""
    segments = prepared.grid.segments
    classifier.fit([s.values for s in segments], [s.labels for s in segments], prepared.labelled(TRAIN))
    per_step = [classifier.probabilities(s.values, mask) for s, mask in zip(grid.segments, wanted, strict=True)]
    return Answers.most_probable(grid.to_rows(per_step)[counted], classifier.classes)
