"""From a config to labelled, split segments: what training and evaluation share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.auto_spans import with_spans
from netanomaly.build import (
    as_rfc3339,
    build_cells,
    build_grid,
    build_grid_spans,
    build_input_format,
    build_row_parts,
    build_spans,
    check_interval,
    history_rows,
    resolve_metrics,
)
from netanomaly.config import Config, SplitByFile
from netanomaly.data.grid import Grid
from netanomaly.data.incidents import label_rows
from netanomaly.data.ingest import NO_PART, UNLABELLED, InputFormat, Table, find_files, read_table, table_of_frames
from netanomaly.data.purge import Split, purge, split_report
from netanomaly.data.reader import column_names
from netanomaly.data.splits import PART_NAMES, TEST, TRAIN, VALIDATION, check_files_disjoint
from netanomaly.errors import ConfigError, DataError
from netanomaly.files import sha256
from netanomaly.label_gaps import tied_to_labels

Frames = pd.DataFrame | Mapping[str, pd.DataFrame]
"""Rows in memory: one frame, split as the config says, or frames by part: train, validation, test."""

_ADVICE = "; --data-root (data.root) says where the paths of the config start"


@dataclass(frozen=True)
class Prepared:
    """Labelled rows on the grid, each with its part.

    Attributes:
        config: resolved: no metric patterns.
        history_rows: earlier rows that a decision depends on, channels and model together.
        report: what the parts hold and share.
        fingerprint: what was read: files with their SHA-256, rows, first and last time.
    """

    config: Config
    table: Table
    grid: Grid
    split: Split
    history_rows: int
    report: dict[str, Any]
    fingerprint: dict[str, Any]

    def labelled(self, part: int) -> list[NDArray[np.bool_]]:
        """Labelled rows of a part, per segment (T,)."""
        pairs = zip(self.grid.segments, self.split.parts, strict=True)
        return [(parts == part) & (segment.labels != UNLABELLED) for segment, parts in pairs]


def prepare(config: Config, frames: Frames | None = None) -> Prepared:
    """Read, label, place on the grid and split.

    Raises:
        ConfigError, DataError: see the message.
    """
    if config.data.label is None and config.data.incidents is None:
        raise ConfigError("data: training needs labels: name the column in data.label or the file in data.incidents")
    config, form, table, fingerprint = _read(config, frames)
    check_interval(config, table)
    grid = build_grid(config, table)
    if isinstance(frames, Mapping) or isinstance(config.data.split, SplitByFile):
        check_files_disjoint(table)
    if isinstance(frames, Mapping):
        row_parts, given_purge = table.parts, None
    else:
        config, row_parts, given_purge = build_row_parts(config, table, form)
    config = _with_spans(config, grid, row_parts)
    history = history_rows(config)
    split = purge(grid, row_parts, history if given_purge is None else given_purge)
    report = split_report(grid, split, history)
    span = {"start": as_rfc3339(int(table.times.min())), "end": as_rfc3339(int(table.times.max()))}
    prepared = Prepared(config, table, grid, split, history, report, {**fingerprint, "rows": len(table), **span})
    _check_enough(prepared, build_spans(config).window)
    return prepared


def _with_spans(config: Config, grid: Grid, row_parts: NDArray[np.int8]) -> Config:
    """The config with rows for its spans, from the training rows alone."""
    training = [(segment.rows >= 0) & (row_parts[segment.rows] == TRAIN) for segment in grid.segments]
    labels = [np.where(rows, segment.labels, UNLABELLED) for rows, segment in zip(training, grid.segments, strict=True)]
    gaps = bool(tied_to_labels(grid.segments, training).any())
    return with_spans(config, labels, build_grid_spans(config), has_label_gaps=gaps)


def read_labelled(config: Config, files: Sequence[str]) -> Table:
    """The rows of other files than the config's, labelled as the config says; for evaluation.

    Paths start at the working directory, as everywhere on the command line.
    """
    form = build_input_format(config.data)
    table = read_table(dict.fromkeys(find_files(files, "."), NO_PART), form)
    return _with_incidents(config, table, form, all_series=False)


def _read(config: Config, frames: Frames | None) -> tuple[Config, InputFormat, Table, dict[str, Any]]:
    if frames is not None:
        named = _frames_by_part(config, frames)
        config = resolve_metrics(config, [str(column) for column in named[0][0].columns])
        form = build_input_format(config.data)
        return config, form, _with_incidents(config, table_of_frames(named, form), form), {"files": []}
    files = _files_by_part(config)
    first = next(iter(files), None)
    if first is None:
        raise ConfigError("data.files: no files named")
    if any(set(metric.name) & set("*?") for metric in config.data.metrics):
        config = resolve_metrics(config, column_names(first, build_cells(config.data)))
    else:
        config = resolve_metrics(config, [metric.name for metric in config.data.metrics])
    form = build_input_format(config.data)
    table = _with_incidents(config, read_table(files, form), form)
    return config, form, table, {"files": [{"path": str(path), "sha256": sha256(path)} for path in files]}


def _files_by_part(config: Config) -> dict[Path, int]:
    data = config.data
    if not isinstance(data.split, SplitByFile):
        return dict.fromkeys(find_files(data.files, data.root, _ADVICE), NO_PART)
    files: dict[Path, int] = {}
    for part, patterns in ((TRAIN, data.split.train), (VALIDATION, data.split.validation), (TEST, data.split.test)):
        for path in find_files(patterns, data.root, _ADVICE):
            if path in files:
                raise ConfigError(f"data.split: {path} is given for {PART_NAMES[files[path]]} and {PART_NAMES[part]}")
            files[path] = part
    return files


def _frames_by_part(config: Config, frames: Frames) -> list[tuple[pd.DataFrame, int, str]]:
    if isinstance(frames, pd.DataFrame):
        if isinstance(config.data.split, SplitByFile):
            raise ConfigError("data.split: by: file does not go with one frame; pass frames={'train': ..., ...}")
        return [(frames, NO_PART, "frame")]
    if not isinstance(frames, Mapping):
        raise ConfigError(f"frames: expected a DataFrame or a dict of them by part, found {type(frames).__name__}")
    unknown = set(frames) - set(PART_NAMES)
    if unknown or not {"train", "validation"} <= set(frames):
        raise ConfigError(f"frames: expected the keys train, validation and maybe test, found {', '.join(frames)}")
    return [(frame, PART_NAMES.index(part), part) for part, frame in frames.items()]


def _with_incidents(config: Config, table: Table, form: InputFormat, *, all_series: bool = True) -> Table:
    if config.data.incidents is None:
        return table
    path = Path(config.data.root) / config.data.incidents
    return label_rows(table, path, form, config.data.normal, all_series=all_series)


def _check_enough(prepared: Prepared, window: int) -> None:
    """Raise a DataError unless training and validation have what they need."""
    report, longest = prepared.report, max(len(segment) for segment in prepared.grid.segments)
    if longest < window:
        raise DataError(
            f"{prepared.table.origins[0].name}: the longest stretch without a gap over data.max_gap has {longest} "
            f"rows, one window (model.window) needs {window}"
        )
    for part in (TRAIN, VALIDATION):
        name = PART_NAMES[part]
        if not report[name]["rows"]:
            advice = "give it a larger share, or name other series or times"
            if report["purged_rows"]:
                advice += "; or split.purge: 0, for rows that look back into another part"
            taken = f" ({report['purged_rows']} rows were purged at boundaries)" if report["purged_rows"] else ""
            raise DataError(f"data.split: no labelled rows for {name}{taken}; {advice}")
        pairs = zip(prepared.grid.segments, prepared.labelled(part), strict=True)
        if not any((mask & segment.valid).any() for segment, mask in pairs):
            raise DataError(f"data: nothing was measured in any labelled row for {name}; every metric is missing there")
    classes = list(report["train"]["classes"])
    if len(classes) < 2:
        raise DataError(f"data: the training rows hold one class only ('{classes[0]}'); a classifier needs two or more")
