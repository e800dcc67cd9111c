"""A predictor's report: the rows and their answers are gathered, and the page is written."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netanomaly.alarm_reasons import reasons_of_alarms
from netanomaly.alarms.raising import Alarms
from netanomaly.build import build_cells, build_grid_spans, build_input_format
from netanomaly.config import Config
from netanomaly.data.grid import Grid
from netanomaly.data.ingest import Table, find_files
from netanomaly.data.reader import column_names
from netanomaly.data.reference import is_reference
from netanomaly.errors import DataError
from netanomaly.files import write_text
from netanomaly.predictor import Predictor
from netanomaly.report.cards import MOST as MOST_CARDS
from netanomaly.report.clock import Clock
from netanomaly.report.content import Content, SeriesRows
from netanomaly.report.page import missing_libraries, page
from netanomaly.scoring import Scored, score

log = logging.getLogger(__name__)

NAMED = 3
"""Files that the page names at most."""

Masks = list[NDArray[np.bool_]]


def report(predictor: Predictor, bundle: Path, files: Sequence[str] = ()) -> Content:
    """What a report tells of the test part of the bundle's data, or of files, with labels or without.

    Raises:
        ConfigError, DataError: the rows cannot be read.
    """
    if files and not has_labels(predictor.config, files):
        return of_unlabelled(predictor, bundle, files)
    return of_scored(predictor, bundle, score(predictor, files=files), files)


def write_report(content: Content, path: Path) -> None:
    """Write the page, whole or not at all. Raises ConfigError if a library that it needs is not installed."""
    write_text(path, page(content))


def write_if_possible(content: Content, path: Path) -> bool:
    """As `write_report`, but a missing library or a full disk is only a word: it is not what was asked for first."""
    missing = missing_libraries()
    if missing is not None:
        log.info("no %s: %s", path.name, missing)
        return False
    try:
        write_report(content, path)
    except OSError as error:
        log.warning("%s: cannot be written: %s; all else is", path, error.strerror or error)
        return False
    return True


def has_labels(config: Config, files: Sequence[str]) -> bool:
    """Whether files have the column of labels, or labels come from a list of incidents.

    Raises:
        DataError: some have it and others have not.
    """
    label = config.data.label
    if label is None:
        return config.data.incidents is not None
    paths = find_files(files, ".")
    missing = [path for path in paths if label not in column_names(path, build_cells(config.data))]
    if missing and len(missing) < len(paths):
        raise DataError(
            f"{missing[0]}: no column '{label}', which other files have: report on them one after the other"
        )
    return not missing


def of_scored(predictor: Predictor, bundle: Path, scored: Scored, files: Sequence[str] = ()) -> Content:
    """What a report tells of scored rows and of unlabelled ones among them."""
    others = [shown & ~wanted for shown, wanted in zip(scored.shown, scored.wanted, strict=True)]
    pairs = zip(scored.per_step, predictor.answers(scored.grid.segments, others), strict=True)
    answers = [first + second for first, second in pairs]  # zeros where not asked
    content = _content(predictor, bundle, scored.table, scored.grid, scored.shown, answers, files)
    return replace(content, evaluation=scored.report, scored=(scored.rows, scored.model))


def of_unlabelled(predictor: Predictor, bundle: Path, files: Sequence[str]) -> Content:
    """What a report tells of files without labels."""
    table = predictor.read(files)
    grid = predictor.grid(table)
    shown = [np.ones(len(segment), dtype=bool) for segment in grid.segments]
    return _content(predictor, bundle, table, grid, shown, predictor.answers(grid.segments), files)


def _content(
    predictor: Predictor,
    bundle: Path,
    table: Table,
    grid: Grid,
    shown: Masks,
    answers: list[NDArray[np.float64]],
    files: Sequence[str],
) -> Content:
    """Of the shown steps (T,) and their class probabilities and novelty (T, K + 1), per segment."""
    config = predictor.config
    form = build_input_format(config.data)
    counted = grid.to_rows(shown)
    collector = predictor.collector()
    given = grid.to_rows(answers)[counted]
    collector.add(table.series[counted], table.times[counted], given[:, :-1], given[:, -1])
    alarms = collector.alarms()
    return Content(
        bundle=str(bundle),
        scope=_scope(files),
        metrics=form.metrics,
        classes=tuple(predictor.classes),
        normal=config.data.normal,
        clock=Clock(form.times, build_grid_spans(config).interval_ns),
        series=_series_rows(predictor, table, grid, shown, answers),
        alarms=alarms,
        thresholds=predictor.decisions.alarms.thresholds,
        trained=_trained(predictor),
        reference=_reference(predictor.facts),
        reasons=_reasons(predictor, table, alarms),
    )


def _reasons(predictor: Predictor, table: Table, alarms: Alarms) -> dict[int, dict[str, Any]]:
    """Why the alarms that have a card were raised, as plain values, by number of the alarm."""
    numbers = np.sort(np.argsort(-alarms.peak_confidence, kind="stable")[:MOST_CARDS])
    found = reasons_of_alarms(predictor, table, alarms[numbers])
    return {int(i): reason.to_dict() for i, reason in zip(numbers, found, strict=True)}


def _series_rows(
    predictor: Predictor, table: Table, grid: Grid, shown: Masks, answers: list[NDArray[np.float64]]
) -> tuple[SeriesRows, ...]:
    """The shown rows that lie on the grid, by series."""
    parts: dict[str, list[SeriesRows]] = {}
    for segment, mask, given in zip(grid.segments, shown, answers, strict=True):
        steps = np.flatnonzero(mask & (segment.rows >= 0))
        if not len(steps):
            continue
        rows = SeriesRows(
            name=segment.series,
            times=table.times[segment.rows[steps]],
            values=segment.values[steps],
            truth=segment.labels[steps],
            named=predictor.named(given[steps]),
        )
        parts.setdefault(segment.series, []).append(rows)
    return tuple(_joined(parts[name]) for name in sorted(parts))


def _joined(parts: list[SeriesRows]) -> SeriesRows:
    """Segments of one series as one, in order of time."""
    times = np.concatenate([part.times for part in parts])
    order = np.argsort(times, kind="stable")
    return SeriesRows(
        name=parts[0].name,
        times=times[order],
        values=np.concatenate([part.values for part in parts])[order],
        truth=np.concatenate([part.truth for part in parts])[order],
        named=np.concatenate([part.named for part in parts])[order],
    )


def _scope(files: Sequence[str]) -> str:
    if not files:
        return "The test part of the bundle's data"
    more = f" and {len(files) - NAMED} more" if len(files) > NAMED else ""
    return ", ".join(files[:NAMED]) + more


def _trained(predictor: Predictor) -> str:
    """When the bundle was trained, and on how much, as far as it says."""
    split = predictor.facts.get("split")
    train = split.get("train") if isinstance(split, Mapping) else None
    on = ""
    if isinstance(train, Mapping) and "rows" in train and isinstance(train.get("series"), list):
        on = f" on {train['rows']} rows of {len(train['series'])} series"
    return f"trained {str(predictor.facts.get('created', 'at an unknown time'))[:10]}{on}"


def _reference(facts: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What the training rows were like; None where the bundle is of a version that did not keep it, or is odd."""
    found = facts.get("reference")
    if found is None:
        return None
    if isinstance(found, Mapping) and is_reference(found):
        return found
    log.warning("the bundle's facts about its training rows are not as expected: no distance from them is told")
    return None
