"""Files or frames to one table of validated rows: series, time, metrics in base units, label."""

from __future__ import annotations

import glob
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.data.reader import Source, TableFormat, read_file, take_frame
from netanomaly.data.schema import Metric
from netanomaly.data.timestamps import TimeFormat, parse_times
from netanomaly.errors import DataError

log = logging.getLogger(__name__)

UNLABELLED = ""
"""The label of a row that has none: context for others, never in loss or scores."""

NO_PART = -1
"""The part of a row whose file belongs to no particular split."""


@dataclass(frozen=True)
class InputFormat:
    """Which columns of an input mean what, and how they are written.

    Attributes:
        label: column of the label, None for input without one.
        cells: how cells are written; its columns are filled in from the rest.
    """

    metrics: tuple[Metric, ...]
    time_columns: tuple[str, ...]
    times: TimeFormat
    series_columns: tuple[str, ...] = ()
    label: str | None = None
    cells: TableFormat = TableFormat((), ())

    def table_format(self) -> TableFormat:
        """How to read a file of this format."""
        label = (self.label,) if self.label is not None else ()
        return replace(
            self.cells,
            text=(*self.time_columns, *self.series_columns, *label),
            numbers=tuple(metric.column for metric in self.metrics),
            percent=frozenset(metric.column for metric in self.metrics if metric.is_percent),
        )

    def without_label(self) -> InputFormat:
        """The same format for rows that carry no label."""
        return replace(self, label=None)


@dataclass(frozen=True)
class Table:
    """Validated rows of one or more sources, in input order.

    Attributes:
        series: name of the series of each row, shape (rows,).
        times: nanoseconds since 1970, shape (rows,).
        time_texts: the times as they were given, shape (rows,).
        values: metrics in base units, NaN where missing; counters still running totals. (rows, metrics)
        labels: label of each row, `UNLABELLED` where it has none. (rows,)
        parts: part that the row's file was given for, `NO_PART` if none. (rows,)
    """

    metrics: tuple[Metric, ...]
    series: NDArray[np.object_]
    times: NDArray[np.int64]
    time_texts: NDArray[np.object_]
    values: NDArray[np.float64]
    labels: NDArray[np.object_]
    parts: NDArray[np.int8]
    sources: tuple[Source, ...]

    def where(self, row: int) -> str:
        """The place of a row as messages name it: `links.csv: line 12`."""
        for source in self.sources:
            if row < len(source.frame):
                return source.where(row)
            row -= len(source.frame)
        raise IndexError(row)

    def __len__(self) -> int:
        return len(self.times)


def find_files(patterns: Sequence[str], root: str | Path) -> list[Path]:
    """The files that paths and patterns name, each once, sorted within a pattern.

    Raises:
        DataError: a path does not exist, or a pattern matches nothing.
    """
    found: dict[Path, None] = {}
    for pattern in patterns:
        full = str(Path(root) / pattern)
        matches = [full] if Path(full).exists() else sorted(glob.glob(full, recursive=True))
        if not matches:
            what = "no file matches this pattern" if glob.has_magic(pattern) else "no such file"
            raise DataError(f"{full}: {what} (seen from {Path.cwd()}); data.root or --data-root says where paths start")
        found.update(dict.fromkeys(Path(match) for match in matches))
    return list(found)


def read_table(files: Mapping[Path, int], form: InputFormat) -> Table:
    """The rows of the files; `files` maps each to the part it was given for, or `NO_PART`.

    Raises:
        DataError: a file breaks the format.
    """
    if not files:
        raise DataError("no files to read: give data.files in the config, or files on the command line")
    sources = [read_file(path, form.table_format()) for path in files]
    for source in sources:
        if source.skipped:
            total = source.skipped + len(source.frame)
            log.warning("%s: skipped %d of %d lines: wrong number of fields", source.name, source.skipped, total)
    return _join(
        [
            _take_rows(s, form, part, Path(s.name).stem.split(".")[0])
            for s, part in zip(sources, files.values(), strict=True)
        ]
    )


def table_of_frames(frames: Sequence[tuple[pd.DataFrame, int, str]], form: InputFormat) -> Table:
    """The rows of DataFrames, each given with its part and the name that messages use.

    Raises:
        DataError: a frame breaks the format.
    """
    return _join([_take_rows(take_frame(f, form.table_format(), name), form, part, name) for f, part, name in frames])


def _take_rows(source: Source, form: InputFormat, part: int, stem: str) -> Table:
    frame = source.frame
    time_column = form.time_columns[0] if len(form.time_columns) == 1 else " ".join(form.time_columns)
    texts = frame[form.time_columns[0]]
    for column in form.time_columns[1:]:
        texts = texts.astype(str).str.strip() + " " + frame[column].astype(str).str.strip()
    labels = np.full(len(frame), UNLABELLED, dtype=object)
    if form.label is not None:
        labels = frame[form.label].fillna("").astype(str).str.strip().to_numpy(dtype=object)
    factors = np.array([metric.factor for metric in form.metrics])
    return Table(
        metrics=form.metrics,
        series=_series_names(source, form.series_columns, stem),
        times=parse_times(texts, form.times, time_column, source.where),
        time_texts=texts.to_numpy(dtype=object),
        values=frame[[metric.column for metric in form.metrics]].to_numpy(dtype=np.float64) * factors,
        labels=labels,
        parts=np.full(len(frame), part, dtype=np.int8),
        sources=(source,),
    )


def _series_names(source: Source, columns: Sequence[str], stem: str) -> NDArray[np.object_]:
    """One name per row: the cells of the series columns joined by a slash, or the file's name."""
    if not columns:
        return np.full(len(source.frame), stem, dtype=object)
    for column in columns:
        empty = np.flatnonzero(source.frame[column].isna() | (source.frame[column].astype(str).str.strip() == ""))
        if len(empty):
            raise DataError(f"{source.where(int(empty[0]))}, column '{column}': empty; every row belongs to a series")
    texts = [source.frame[column].astype(str).str.strip() for column in columns]
    names = texts[0]
    for more in texts[1:]:
        names = names + "/" + more
    return names.to_numpy(dtype=object)


def _join(tables: Sequence[Table]) -> Table:
    if len(tables) == 1:
        return tables[0]
    return Table(
        metrics=tables[0].metrics,
        series=np.concatenate([table.series for table in tables]),
        times=np.concatenate([table.times for table in tables]),
        time_texts=np.concatenate([table.time_texts for table in tables]),
        values=np.concatenate([table.values for table in tables]),
        labels=np.concatenate([table.labels for table in tables]),
        parts=np.concatenate([table.parts for table in tables]),
        sources=tuple(source for table in tables for source in table.sources),
    )
