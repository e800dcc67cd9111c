"""Rows onto a regular grid: a series becomes segments without long gaps, with masked steps in short ones."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.data.clock import jumps
from netanomaly.data.ingest import UNLABELLED, Table
from netanomaly.data.schema import Metric
from netanomaly.durations import format_duration
from netanomaly.errors import DataError

log = logging.getLogger(__name__)

Value = TypeVar("Value", bound=np.generic)


@dataclass(frozen=True)
class Segment:
    """A stretch of one series with no gap longer than `max_gap`, on the grid.

    Attributes:
        values: metrics, counters as rates per second, NaN where missing. (T, metrics)
        labels: `UNLABELLED` where there is none, and at masked steps. (T,)
        rows: position in the table of the last row that lies on each step, -1 at masked steps. (T,)
    """

    series: str
    values: NDArray[np.float64]
    labels: NDArray[np.object_]
    rows: NDArray[np.int64]

    @property
    def valid(self) -> NDArray[np.bool_]:
        """Steps at which anything was measured. (T,)"""
        return np.asarray(~np.isnan(self.values).all(axis=1))

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Grid:
    """All segments of a table, and where each of its rows went.

    Attributes:
        row_segment: segment of each row. (rows,)
        row_step: step of each row in its segment. (rows,)
    """

    segments: tuple[Segment, ...]
    row_segment: NDArray[np.int64]
    row_step: NDArray[np.int64]

    def to_rows(self, per_step: Sequence[NDArray[Value]]) -> NDArray[Value]:
        """Values given per step of each segment, (T, ...) each, as one array over the table's rows."""
        starts = np.cumsum([0, *(len(segment) for segment in self.segments)])
        return np.asarray(np.concatenate(per_step)[starts[self.row_segment] + self.row_step])


def place_on_grid(table: Table, interval_ns: int, max_gap: int, duplicates: str) -> Grid:
    """The table's rows as segments.

    Args:
        max_gap: missing steps that a segment may bridge; a longer gap starts a new one.
        duplicates: what to do with several rows of a series on one step: `error`, `last` (in input order at
            equal times), or `mean` (of gauges; counters and labels take the last).

    Raises:
        DataError: rows share a step and `duplicates` is `error`.
    """
    segments: list[Segment] = []
    row_segment = np.empty(len(table), dtype=np.int64)
    row_step = np.empty(len(table), dtype=np.int64)
    merged = 0
    for name, rows in _series_rows(table):
        steps_apart, _ = jumps(table.times[rows], interval_ns)
        if duplicates == "error":
            _refuse_duplicates(table, rows, steps_apart, interval_ns)
        merged += int((steps_apart[1:] == 0).sum())
        bounds = np.flatnonzero(np.r_[True, steps_apart[1:] - 1 > max_gap, True])
        for start, stop in pairwise(bounds):
            piece = rows[start:stop]
            steps = np.cumsum(np.r_[0, steps_apart[start + 1 : stop]])
            row_segment[piece], row_step[piece] = len(segments), steps
            segments.append(_build_segment(table, name, piece, steps, duplicates == "mean", counter_reach(max_gap)))
    if merged:
        log.warning("%d of %d rows share a step with another (data.duplicates: %s)", merged, len(table), duplicates)
    return Grid(tuple(segments), row_segment, row_step)


def counter_reach(max_gap: int) -> int:
    """Steps that a counter's rate looks back for the last known total: across the longest gap, and no further."""
    return max_gap + 1


def median_step(table: Table) -> int | None:
    """The usual time between rows of a series in nanoseconds; None if no series has two different times."""
    steps = np.concatenate([np.diff(table.times[rows]) for _, rows in _series_rows(table)])
    steps = steps[steps > 0]
    return int(np.median(steps)) if len(steps) else None


def _series_rows(table: Table) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Each series, once for every part its files were given for, with its rows in order of time."""
    keys = pd.DataFrame({"part": table.parts, "series": table.series})
    groups = cast("dict[tuple[int, str], NDArray[np.int64]]", keys.groupby(["part", "series"], sort=True).indices)
    for (_, name), found in groups.items():
        rows = np.sort(found)
        yield name, rows[np.argsort(table.times[rows], kind="stable")]


def _refuse_duplicates(table: Table, rows: NDArray[np.int64], steps_apart: NDArray[np.int64], interval_ns: int) -> None:
    same = np.flatnonzero(steps_apart[1:] == 0)
    if len(same) == 0:
        return
    first, second = int(rows[same[0]]), int(rows[same[0] + 1])
    if table.times[first] == table.times[second]:
        what = f"the time {table.time_texts[second]} of {table.where(first)} again"
    else:
        what = (
            f"{table.time_texts[second]}, within one interval ({format_duration(interval_ns)}) of {table.where(first)}"
        )
    raise DataError(
        f"{table.where(second)}: series '{table.series[second]}' has {what} ({len(same)} such rows); "
        "set data.duplicates: last or mean, name the series columns, or check data.interval"
    )


def _build_segment(
    table: Table, series: str, rows: NDArray[np.int64], steps: NDArray[np.int64], average: bool, reach: int
) -> Segment:
    length = int(steps[-1]) + 1
    last = _last_on_step(steps)
    on_grid = np.full(length, -1, dtype=np.int64)
    on_grid[steps[last]] = rows[last]
    labels = np.full(length, UNLABELLED, dtype=object)
    labels[steps] = table.labels[rows]
    values = values_on_grid(table.metrics, table.values[rows], table.times[rows], steps, average, reach)
    return Segment(series, values, labels, on_grid)


def values_on_grid(
    metrics: Sequence[Metric],
    values: NDArray[np.float64],
    times: NDArray[np.int64],
    steps: NDArray[np.int64],
    average: bool,
    reach: int,
) -> NDArray[np.float64]:
    """Rows of one segment as its steps: counters become rates, steps without a row are missing.

    Args:
        values: (rows, M)
        times: sorted. (rows,)
        steps: of each row, from 0. (rows,)
        average: rows that share a step are averaged (gauges), else the last counts.
        reach: steps that a counter's rate looks back; see `counter_reach`.

    Returns:
        (steps, M)
    """
    last = _last_on_step(steps)
    measured = values[last]
    if average and len(last) < len(steps):
        gauges = [i for i, metric in enumerate(metrics) if metric.kind == "gauge"]
        measured[:, gauges] = pd.DataFrame(values[:, gauges]).groupby(steps).mean().to_numpy()
    counters = [i for i, metric in enumerate(metrics) if metric.kind == "counter"]
    if counters:
        measured[:, counters] = _rates(measured[:, counters], times[last], steps[last], reach)
    result = np.full((int(steps[-1]) + 1, len(metrics)), np.nan)
    result[steps[last]] = measured
    return result


def _last_on_step(steps: NDArray[np.int64]) -> NDArray[np.int64]:
    """The last row on each step that has one. (rows,) to (steps with rows,)"""
    return np.append(np.flatnonzero(np.diff(steps)), len(steps) - 1)


def _rates(
    totals: NDArray[np.float64], times: NDArray[np.int64], steps: NDArray[np.int64], reach: int
) -> NDArray[np.float64]:
    """Running totals to rates per second since the last known total. (rows, n) to (rows, n)

    Missing where that total lies more than `reach` steps back, and after a fall (a reset or a wrap).
    """
    known = pd.DataFrame(totals)
    previous = known.ffill().shift()
    places = pd.DataFrame(np.where(known.isna(), np.nan, np.arange(len(totals))[:, None])).ffill().shift()
    before = places.fillna(0).to_numpy(dtype=np.int64)  # row of the previous total; unused where there is none
    seconds = (times[:, None] - times[before]) / 1e9
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = (known - previous).to_numpy() / seconds
    return np.where((rates >= 0) & (steps[:, None] - steps[before] <= reach), rates, np.nan)
