"""Which rows train, validate and test, so that no window of one part sees a row of another.

A split gives every row a part; a purge then takes rows out of the less precious part (training before
validation before test) until no two windows of different parts share a row. Every labelled test row counts.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.data.grid import Grid
from netanomaly.data.ingest import NO_PART, UNLABELLED, InputFormat, Table
from netanomaly.data.reader import Source, TableFormat, read_file
from netanomaly.data.timestamps import parse_times
from netanomaly.errors import ConfigError, DataError

TRAIN, VALIDATION, TEST = 0, 1, 2
PART_NAMES = ("train", "validation", "test")
_PARTS = {"train": TRAIN, "val": VALIDATION, "validation": VALIDATION, "test": TEST}


def split_by_series(
    table: Table,
    train: Sequence[str] | None,
    validation: Sequence[str] | float,
    test: Sequence[str] | float,
    seed: int,
) -> NDArray[np.int8]:
    """A part for each row (rows,): whole series; a share is drawn from the series with the seed.

    Raises:
        ConfigError: a series is named twice or is not in the data, or too few series are left to draw from.
    """
    names = sorted(set(table.series))
    chosen: dict[str, int] = {}
    for part, given in ((TRAIN, train or ()), (VALIDATION, validation), (TEST, test)):
        for name in given if not isinstance(given, float) else ():
            if name not in names:
                raise ConfigError(
                    f"data.split.{PART_NAMES[part]}: no series '{name}' in the data; it has {', '.join(names[:12])}"
                )
            if name in chosen:
                raise ConfigError(f"data.split: the series '{name}' stands in two parts")
            chosen[name] = part
    free = [name for name in names if name not in chosen]
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
    return np.array([chosen.get(name, NO_PART) for name in table.series], dtype=np.int8)


def split_by_time(table: Table, validation: float | str, test: float | str, form: InputFormat) -> NDArray[np.int8]:
    """A part for each row (rows,): training before validation before test, at the same moments for all series.

    A number is the share of the rows (for validation: of those before the test part), text is a timestamp.
    """
    test_start = _moment(table.times, test, form, "test")
    validation_start = _moment(table.times[table.times < test_start], validation, form, "validation")
    if validation_start >= test_start:
        raise ConfigError("data.split: validation has to start before test")
    return np.where(table.times < validation_start, TRAIN, np.where(table.times < test_start, VALIDATION, TEST)).astype(
        np.int8
    )


def _moment(times: NDArray[np.int64], boundary: float | str, form: InputFormat, key: str) -> int:
    if isinstance(boundary, str):
        return int(parse_times(pd.Series([boundary]), form.times, key, lambda _: f"data.split.{key}")[0])
    if len(times) == 0:
        raise DataError(f"data.split.{key}: no rows before the test part")
    return int(np.quantile(times, 1 - boundary, method="higher"))


def split_by_table(table: Table, path: Path, form: InputFormat, cells: TableFormat) -> NDArray[np.int8]:
    """A part for each row (rows,) from a CSV with series, t_start, t_end, split; empty bounds are open.

    Raises:
        DataError: the file breaks the format, names an unknown series or split, or gives a row two parts.
    """
    source = read_file(path, TableFormat(("series", "t_start", "t_end", "split"), (), encoding=cells.encoding))
    parts = np.full(len(table), NO_PART, dtype=np.int8)
    known = {str(name) for name in table.series}
    names, starts, ends, given = (
        [str(cell).strip() for cell in source.frame[column]] for column in ("series", "t_start", "t_end", "split")
    )
    for row, name in enumerate(names):
        if given[row] not in _PARTS:
            found = f"{source.where(row)}, column 'split': found '{given[row]}'"
            raise DataError(f"{found}, expected train, validation or test")
        if name not in known:
            raise DataError(
                f"{source.where(row)}: no series '{name}' in the data; it has {', '.join(sorted(known)[:8])}"
            )
        inside = table.series == name
        if starts[row]:
            inside &= table.times >= _bound(source, row, "t_start", form)
        if ends[row]:
            inside &= table.times < _bound(source, row, "t_end", form)
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
    parts_of_row = rows.drop_duplicates().groupby(["series", "time"])["part"].transform("size")
    shared = parts_of_row.index[parts_of_row > 1]
    if len(shared):
        row = int(shared[0])
        raise DataError(
            f"{table.where(row)}: series '{table.series[row]}' at {table.time_texts[row]} is in the files of two parts "
            f"({len(shared) // 2} such rows); training and test files must not share rows"
        )


@dataclass(frozen=True)
class Split:
    """The part of every step of every segment after the purge.

    Attributes:
        parts: per segment, the part of each step, `NO_PART` for context. (T,) each
        purged: rows taken out of their part.
    """

    parts: tuple[NDArray[np.int8], ...]
    purged: int


def purge(grid: Grid, row_parts: NDArray[np.int8], history_rows: int) -> Split:
    """Place the parts on the grid and take out rows whose windows would meet those of a more precious part.

    The window of row t reaches `history_rows` back, so two windows share a row exactly if their last rows are
    at most `history_rows` apart.
    """
    result: list[NDArray[np.int8]] = []
    purged = 0
    for segment in grid.segments:
        parts = np.where(segment.rows >= 0, row_parts[segment.rows], NO_PART).astype(np.int8)
        for precious in (TEST, VALIDATION):
            near = _within(parts == precious, history_rows, both_ways=True)
            drop = near & (parts >= TRAIN) & (parts < precious)
            purged += int(drop.sum())
            parts[drop] = NO_PART
        result.append(parts)
    return Split(tuple(result), purged)


def split_report(grid: Grid, split: Split, history_rows: int) -> dict[str, object]:
    """What each part holds and what the parts share, as plain values for JSON.

    A row is shared if it lies in windows (with their history) that end in labelled rows of both parts.
    """
    report: dict[str, object] = {"purged_rows": split.purged, "history_rows": history_rows}
    series: dict[int, set[str]] = {}
    for part, name in enumerate(PART_NAMES):
        counts: Counter[str] = Counter()
        members = [(s, p == part) for s, p in zip(grid.segments, split.parts, strict=True)]
        for segment, inside in members:
            counts.update(segment.labels[inside])
        series[part] = {segment.series for segment, inside in members if inside.any()}
        unlabelled = counts.pop(UNLABELLED, 0)
        report[name] = {
            "series": sorted(series[part]),
            "rows": sum(counts.values()),
            "unlabelled_rows": unlabelled,
            "classes": dict(sorted(counts.items())),
        }
    report["shared"] = {
        f"{PART_NAMES[a]}_{PART_NAMES[b]}": {
            "series": len(series[a] & series[b]),
            "rows": _shared_rows(grid, split, a, b, history_rows),
        }
        for a, b in ((TRAIN, VALIDATION), (TRAIN, TEST), (VALIDATION, TEST))
    }
    return report


def _shared_rows(grid: Grid, split: Split, a: int, b: int, history_rows: int) -> int:
    count = 0
    for segment, parts in zip(grid.segments, split.parts, strict=True):
        labelled = segment.labels != UNLABELLED
        seen = [_within((parts == part) & labelled, history_rows, both_ways=False) for part in (a, b)]
        count += int((seen[0] & seen[1]).sum())
    return count


def _within(mask: NDArray[np.bool_], reach: int, both_ways: bool) -> NDArray[np.bool_]:
    """Steps at most `reach` before a marked one, and after it if `both_ways`. (T,) to (T,)"""
    marks = np.concatenate([[0], np.cumsum(mask)])
    steps = np.arange(len(mask))
    last = np.minimum(steps + reach, len(mask) - 1)
    first = np.maximum(steps - reach, 0) if both_ways else steps
    return np.asarray(marks[last + 1] > marks[first])
