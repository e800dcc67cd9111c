"""Which rows train, validate and test: a part for every row."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.data.cells import Columns, Source, as_text
from netanomaly.data.ingest import NO_PART, InputFormat, Table
from netanomaly.data.reader import read_file
from netanomaly.data.timestamps import TimeFormat, is_rfc3339, parse_times
from netanomaly.errors import ConfigError, DataError

TRAIN, VALIDATION, TEST = 0, 1, 2
PART_NAMES = ("train", "validation", "test")
_PARTS = {"train": TRAIN, "val": VALIDATION, "validation": VALIDATION, "test": TEST}


def choose_series(
    names: Sequence[str],
    train: Sequence[str] | None,
    validation: Sequence[str] | float,
    test: Sequence[str] | float,
    seed: int,
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The series of each part by name: (train, validation, test); a share is drawn with the seed.

    Raises:
        ConfigError: a series is named twice or does not exist, or none is left to train on.
    """
    chosen: dict[str, int] = {}
    for part, given in ((TRAIN, train or ()), (VALIDATION, validation), (TEST, test)):
        for name in given if not isinstance(given, float) else ():
            if name not in names:
                known = ", ".join(names[:12])
                raise ConfigError(f"data.split.{PART_NAMES[part]}: no series '{name}' in the data; it has {known}")
            if name in chosen:
                raise ConfigError(f"data.split: the series '{name}' stands in two parts")
            chosen[name] = part
    free = sorted(name for name in names if name not in chosen)
    random.Random(seed).shuffle(free)  # noqa: S311 - a draw to repeat, not a secret
    for part, share in ((TEST, test), (VALIDATION, validation)):
        if isinstance(share, float):
            count = max(1, round(share * len(names)))
            chosen.update(dict.fromkeys(free[:count], part))
            free = free[count:]
    if train is None:
        chosen.update(dict.fromkeys(free, TRAIN))
    if TRAIN not in chosen.values():
        raise ConfigError(
            f"data.split: no series is left to train on ({len(names)} in all: {', '.join(names[:12])}); "
            "name fewer for validation and test, or split with by: time"
        )
    parts = [tuple(sorted(name for name, part in chosen.items() if part == wanted)) for wanted in (0, 1, 2)]
    return parts[0], parts[1], parts[2]


def split_by_series(table: Table, parts: Sequence[Sequence[str]]) -> NDArray[np.int8]:
    """A part for each row (rows,): whole series, given by name for each part."""
    result = np.full(len(table), NO_PART, dtype=np.int8)
    for part, names in enumerate(parts):
        for name in names:
            result[table.series_rows[name]] = part
    return result


def choose_moments(
    times: NDArray[np.int64], validation: float | str, test: float | str, form: InputFormat
) -> tuple[int, int]:
    """The first moments of validation and test, in nanoseconds.

    A number is the share of the rows (for validation: of those before the test part); text is a time, written as
    in the data or as RFC 3339.

    Raises:
        ConfigError: validation does not start before test.
        DataError: no rows are left before the test part.
    """
    test_start = _moment(times, test, form, "test")
    validation_start = _moment(times[times < test_start], validation, form, "validation")
    if validation_start >= test_start:
        raise ConfigError("data.split: validation has to start before test")
    return validation_start, test_start


def split_by_time(table: Table, validation_start: int, test_start: int) -> NDArray[np.int8]:
    """A part for each row (rows,): training before validation before test, at the same moments for all series."""
    later = np.where(table.times < test_start, VALIDATION, TEST)
    return np.where(table.times < validation_start, TRAIN, later).astype(np.int8)


def _moment(times: NDArray[np.int64], boundary: float | str, form: InputFormat, key: str) -> int:
    if isinstance(boundary, str):
        written = TimeFormat() if is_rfc3339(boundary) else form.times
        return int(parse_times(pd.Series([boundary]), written, key, lambda _: f"data.split.{key}")[0])
    if len(times) == 0:
        raise DataError(f"data.split.{key}: no rows before the test part")
    return int(np.quantile(times, 1 - boundary, method="higher"))


def split_by_table(table: Table, path: Path, form: InputFormat) -> NDArray[np.int8]:
    """A part for each row (rows,) from a CSV with series, t_start, t_end, split; empty bounds are open.

    Raises:
        DataError: the file breaks the format, names an unknown series or split, or gives a row two parts.
    """
    names_of_columns = ("series", "t_start", "t_end", "split")
    source = read_file(path, Columns(text=names_of_columns), replace(form.cells, skip_bad_lines=False))
    parts = np.full(len(table), NO_PART, dtype=np.int8)
    names, starts, ends, given = (as_text(source.frame[column]).to_list() for column in names_of_columns)
    for row, name in enumerate(names):
        if given[row] not in _PARTS:
            found = f"{source.where(row)}, column 'split': found '{given[row]}'"
            raise DataError(f"{found}, expected train, validation or test")
        if name not in table.series_rows:
            known = ", ".join(list(table.series_rows)[:8])
            raise DataError(f"{source.where(row)}: no series '{name}' in the data; it has {known}")
        inside = table.series_rows[name]
        if starts[row]:
            inside = inside[table.times[inside] >= _bound(source, row, "t_start", form)]
        if ends[row]:
            inside = inside[table.times[inside] < _bound(source, row, "t_end", form)]
        if starts[row] and ends[row] and _bound(source, row, "t_end", form) <= _bound(source, row, "t_start", form):
            raise DataError(f"{source.where(row)}: t_end is not after t_start")
        if (parts[inside] != NO_PART).any():
            raise DataError(f"{source.where(row)}: gives rows a part that have one from a line above")
        parts[inside] = _PARTS[given[row]]
    return parts


def _bound(source: Source, row: int, column: str, form: InputFormat) -> int:
    cell = source.frame[column].iloc[row : row + 1]
    return int(parse_times(cell, form.times, column, lambda _: source.where(row))[0])


def check_files_disjoint(table: Table) -> None:
    """Raise a DataError if a row (series and time) stands in files of two parts."""
    rows = pd.DataFrame({"series": table.series, "time": table.times, "part": table.parts})
    parts_of_row = rows.groupby(["series", "time"])["part"].transform("nunique")
    shared = np.flatnonzero(parts_of_row > 1)
    if len(shared):
        row = int(shared[-1])
        raise DataError(
            f"{table.where(row)}: series '{table.series[row]}' at {table.time_texts[row]} stands in another part as "
            f"well ({len(rows.iloc[shared].drop_duplicates(['series', 'time']))} such rows); parts must not share rows"
        )
