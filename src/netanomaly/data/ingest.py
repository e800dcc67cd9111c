"""Files or frames to one table of validated rows: series, time, metrics in base units, label."""

from __future__ import annotations

import glob
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.data.cells import CellFormat, Columns, Source, Where, as_text
from netanomaly.data.file_names import refuse_equal_names, series_of_file
from netanomaly.data.reader import read_file, read_file_pieces, take_frame
from netanomaly.data.schema import Metric
from netanomaly.data.timestamps import TimeFormat, parse_times
from netanomaly.errors import DataError
from netanomaly.files import other_kind

log = logging.getLogger(__name__)

UNLABELLED = ""
"""The label of a row that has none: context for others, never in loss or scores."""

NO_DATA = "no_data"
"""The predicted label of a row in which nothing was measured; no row of the input may have it."""

UNKNOWN = "unknown"
"""The predicted label of a row that is like none of training; no row of the input may have it."""

NO_PART = -1
"""The part of a row whose file belongs to no particular split."""

LONGEST_NAME = 10_000
"""Characters of the name of a series or label, at most."""


@dataclass(frozen=True)
class InputFormat:
    """Which columns of an input mean what, and how they are written.

    Attributes:
        label: column of the label, None for input without one.
    """

    metrics: tuple[Metric, ...]
    time_columns: tuple[str, ...]
    times: TimeFormat
    series_columns: tuple[str, ...] = ()
    label: str | None = None
    cells: CellFormat = CellFormat()

    def columns(self) -> Columns:
        """The columns to read."""
        label = (self.label,) if self.label is not None else ()
        return Columns(
            text=tuple(dict.fromkeys((*self.time_columns, *self.series_columns, *label))),
            numbers=tuple(dict.fromkeys(metric.column for metric in self.metrics if metric.is_measured)),
            percent=frozenset(metric.column for metric in self.metrics if metric.is_measured and metric.is_percent),
        )

    def without_label(self) -> InputFormat:
        """The same format for rows that carry no label."""
        return replace(self, label=None)


@dataclass(frozen=True)
class Origin:
    """Where some rows of a table came from."""

    name: str
    rows: int
    where: Where


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
    origins: tuple[Origin, ...]

    def where(self, row: int) -> str:
        """The place of a row as messages name it: `links.csv: line 12`."""
        for origin in self.origins:
            if row < origin.rows:
                return origin.where(row)
            row -= origin.rows
        raise IndexError(row)

    @cached_property
    def series_rows(self) -> dict[str, NDArray[np.int64]]:
        """The rows of each series, in input order; names in the order of the alphabet."""
        groups = pd.Series(self.series).groupby(self.series, sort=True).indices
        return cast("dict[str, NDArray[np.int64]]", {name: np.sort(rows) for name, rows in groups.items()})

    def __len__(self) -> int:
        return len(self.times)


def find_files(patterns: Sequence[str], root: str | Path, advice: str = "") -> list[Path]:
    """The files that paths and patterns name, each once, sorted within a pattern; `advice` ends the error's message.

    Raises:
        DataError: a path does not exist, or a pattern matches nothing.
    """
    found: dict[Path, None] = {}
    for pattern in patterns:
        path = Path(root) / pattern
        matches = [path]
        if not path.exists():
            matches = [Path(root) / name for name in sorted(glob.glob(pattern, root_dir=root, recursive=True))]
        if not matches:
            what = "no file matches this pattern" if glob.has_magic(pattern) else "no such file"
            raise DataError(f"{path}: {what} (seen from {Path.cwd()}){advice}")
        for match in matches:
            if (kind := other_kind(match)) is not None:
                what = "name files or a pattern" if match.is_dir() else "save it to a regular file first"
                raise DataError(f"{match}: is {kind}; {what}")
        for again in found.keys() & set(matches):
            log.warning("%s: named more than once, read once", again)
        found.update(dict.fromkeys(matches))
    return list(found)


def read_table(files: Mapping[Path, int], form: InputFormat) -> Table:
    """The rows of the files; `files` maps each to the part it was given for, or `NO_PART`.

    Raises:
        DataError: a file breaks the format.
    """
    if not files:
        raise DataError("no files to read: give data.files in the config, or files on the command line")
    if not form.series_columns:
        refuse_equal_names(files)
    tables = []
    for path, part in files.items():
        source = read_file(path, form.columns(), form.cells)
        if source.skipped:
            total = source.skipped + len(source.frame)
            log.warning("%s: skipped %d of %d lines: wrong number of fields", path, source.skipped, total)
        tables.append(_take_rows(source, form, part, series_of_file(path)))
    return join_tables(tables)


def read_tables(files: Sequence[Path], form: InputFormat, rows: int) -> Iterator[Table]:
    """The rows of the files in order, about this many at a time: together they may be larger than the memory.

    Raises:
        DataError: a file breaks the format; told when the reading gets there.
    """
    if not form.series_columns:
        refuse_equal_names(dict.fromkeys(files, NO_PART))
    for path in files:
        skipped = taken = 0
        for source in read_file_pieces(path, form.columns(), form.cells, rows):
            skipped, taken = skipped + source.skipped, taken + len(source.frame)
            if len(source.frame):
                yield _take_rows(source, form, NO_PART, series_of_file(path))
        if skipped:
            log.warning("%s: skipped %d of %d lines: wrong number of fields", path, skipped, skipped + taken)


def table_of_source(source: Source, form: InputFormat) -> Table:
    """The rows of a source that is read already; without series columns its name is that of the series.

    Raises:
        DataError: it breaks the format.
    """
    return _take_rows(source, form, NO_PART, series_of_file(Path(source.name)))


def table_of_frames(frames: Sequence[tuple[pd.DataFrame, int, str]], form: InputFormat) -> Table:
    """The rows of DataFrames, each given with its part and the name that messages use.

    Raises:
        DataError: a frame breaks the format.
    """
    sources = [(take_frame(frame, form.columns(), form.cells, name), part, name) for frame, part, name in frames]
    return join_tables([_take_rows(source, form, part, name) for source, part, name in sources])


def refuse_reserved(labels: NDArray[np.object_], column: str, where: Where) -> None:
    """Raise a DataError if a label is one that only predictions may have."""
    for row in np.flatnonzero((labels == NO_DATA) | (labels == UNKNOWN))[:1]:
        meant = "rows without any measurement" if labels[row] == NO_DATA else "rows like none of training"
        raise DataError(
            f"{where(int(row))}, column '{column}': the label '{labels[row]}' is reserved for {meant}; rename it, or "
            "leave it empty where the state is not known"
        )


def _refuse_odd_characters(names: NDArray[np.object_], column: str, where: Where) -> None:
    """Raise a DataError at a control character in a name, or one without end: a stray quote has swallowed rows."""
    odd = {name for name in set(names) if not name.isprintable() or len(name) > LONGEST_NAME}
    for row in np.flatnonzero([name in odd for name in names])[:1] if odd else ():
        what = "a line break or control character"
        if len(names[row]) > LONGEST_NAME:
            what = f"{len(names[row]):,} characters ({LONGEST_NAME:,} at most)"
        raise DataError(
            f"{where(int(row))}, column '{column}': {what} in '{names[row][:40]}'; "
            "is there a quote without its partner?"
        )


def _take_rows(source: Source, form: InputFormat, part: int, name: str) -> Table:
    frame = source.frame
    texts = frame[form.time_columns[0]]
    # numbers of a frame are no text: they have a point whatever the files have
    decimal = "." if pd.api.types.is_numeric_dtype(texts) else form.cells.decimal
    for column in form.time_columns[1:]:
        texts = as_text(texts) + " " + as_text(frame[column])
    labels = np.full(len(frame), UNLABELLED, dtype=object)
    if form.label is not None:
        labels = as_text(frame[form.label]).to_numpy(dtype=object)
        refuse_reserved(labels, form.label, source.where)
        _refuse_odd_characters(labels, form.label, source.where)
    return Table(
        metrics=form.metrics,
        series=_series_names(source, form.series_columns, name),
        times=parse_times(texts, form.times, " ".join(form.time_columns), source.where, decimal),
        time_texts=texts.to_numpy(dtype=object),
        values=_in_base_units(source, form.metrics),
        labels=labels,
        parts=np.full(len(frame), part, dtype=np.int8),
        origins=(Origin(source.name, len(frame), source.where),),
    )


def _in_base_units(source: Source, metrics: Sequence[Metric]) -> NDArray[np.float64]:
    values: NDArray[np.float64] = np.full((len(source.frame), len(metrics)), np.nan)
    measured = [metric.is_measured for metric in metrics]
    columns = [metric.column for metric in metrics if metric.is_measured]
    values[:, measured] = source.frame[columns].to_numpy(dtype=np.float64)
    with np.errstate(over="ignore"):
        values = values * np.array([metric.factor for metric in metrics])
    for row, column in np.argwhere(np.isinf(values))[:1]:
        raise DataError(f"{source.where(int(row))}, column '{metrics[column].column}': too large for a number")
    return values


def _series_names(source: Source, columns: Sequence[str], name: str) -> NDArray[np.object_]:
    """One name per row: the cells of the series columns joined by a slash, or the name given."""
    if not columns:
        return np.full(len(source.frame), name, dtype=object)
    texts = [as_text(source.frame[column]) for column in columns]
    for column, cells in zip(columns, texts, strict=True):
        for row in np.flatnonzero(cells == "")[:1]:
            raise DataError(f"{source.where(int(row))}, column '{column}': empty; every row belongs to a series")
        _refuse_odd_characters(cells.to_numpy(dtype=object), column, source.where)
    names = texts[0]
    for more in texts[1:]:
        names = names + "/" + more
    return names.to_numpy(dtype=object)


def join_tables(tables: Sequence[Table]) -> Table:
    """Tables of the same metrics below each other; there is at least one."""
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
        origins=tuple(origin for table in tables for origin in table.origins),
    )


def select_rows(table: Table, rows: NDArray[np.int64]) -> Table:
    """Some rows of a table."""
    return replace(
        table,
        series=table.series[rows],
        times=table.times[rows],
        time_texts=table.time_texts[rows],
        values=table.values[rows],
        labels=table.labels[rows],
        parts=table.parts[rows],
        origins=(Origin(table.origins[0].name, len(rows), lambda row: table.where(int(rows[row]))),),
    )
