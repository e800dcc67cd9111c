"""Why alarms were raised: their rows are read again, with what they depend on, and explained."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from netanomaly.alarms.raising import Alarms
from netanomaly.build import build_grid, build_grid_spans, build_input_format, history_rows
from netanomaly.by_name import rows_by_name
from netanomaly.data.ingest import Table, find_files, join_tables, read_tables, select_rows
from netanomaly.predictor import Predictor
from netanomaly.reason import Reason
from netanomaly.reasons import AskedIncident


def reasons_of_files(predictor: Predictor, files: Sequence[str], alarms: Alarms, chunk_rows: int) -> list[Reason]:
    """The reason of each alarm, in order, from the files that it was raised in; memory holds the rows it takes alone.

    Args:
        chunk_rows: rows that are read at a time; 0: all.
    """
    if not len(alarms):
        return []
    form = build_input_format(predictor.config.data).without_label()
    tables: Iterable[Table] = [predictor.read(files)]
    if chunk_rows:
        tables = read_tables(find_files(files, "."), form, chunk_rows)
    return reasons_of_tables(predictor, tables, alarms)


def reasons_of_tables(predictor: Predictor, tables: Iterable[Table], alarms: Alarms) -> list[Reason]:
    """The same from tables that follow each other."""
    if not len(alarms):
        return []
    return reasons_of_alarms(predictor, join_tables(list(_needed(predictor, tables, alarms))), alarms)


def reasons_of_alarms(predictor: Predictor, table: Table, alarms: Alarms) -> list[Reason]:
    """The reason of each alarm, in order, from a table that holds its rows and `history_rows` before them."""
    if not len(alarms):
        return []
    grid = build_grid(predictor.config, table)
    firsts, peaks = (_rows_at(table, alarms.series, times) for times in (alarms.starts, alarms.peaks))
    asked = []
    for first, peak, label in zip(firsts, peaks, alarms.labels, strict=True):
        segment = int(grid.row_segment[peak])
        # an incident may go on over a gap that ends a segment: what lies before the gap is not looked at
        begun = int(grid.row_step[first]) if grid.row_segment[first] == segment else 0
        asked.append(AskedIncident(segment, begun, int(grid.row_step[peak]), str(label)))
    return predictor.reasons(grid.segments, table, asked)


def _needed(predictor: Predictor, tables: Iterable[Table], alarms: Alarms) -> Iterator[Table]:
    """Of each table the rows that some alarm's rows up to its peak depend on."""
    spans = build_grid_spans(predictor.config)
    reach = (history_rows(predictor.config) + spans.max_gap + 2) * spans.interval_ns
    wanted = {
        name: np.stack([alarms.starts[own] - reach, alarms.peaks[own]], axis=1)
        for name, own in rows_by_name(alarms.series).items()
    }
    for table in tables:
        kept = np.zeros(len(table), dtype=bool)
        first, last = table.times.min(), table.times.max()
        for name, rows in table.series_rows.items():
            spans_here = wanted.get(name, np.empty((0, 2), dtype=np.int64))
            for start, stop in spans_here[(spans_here[:, 0] <= last) & (spans_here[:, 1] >= first)]:
                kept[rows] |= (table.times[rows] >= start) & (table.times[rows] <= stop)
        if kept.any():
            yield select_rows(table, np.flatnonzero(kept))


def _rows_at(table: Table, series: NDArray[np.object_], times: NDArray[np.int64]) -> NDArray[np.int64]:
    """The row of each series at each time, which are rows of the table. (n,), (n,) to (n,)"""
    result = np.empty(len(series), dtype=np.int64)
    for name in set(series):
        own, rows = series == name, table.series_rows[name]
        order = rows[np.argsort(table.times[rows], kind="stable")]
        result[own] = order[np.searchsorted(table.times[order], times[own])]
    return result
