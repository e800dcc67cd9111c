"""Which row is to be explained, and where what it tells of began."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.data.ingest import NO_DATA, InputFormat, Table
from netanomaly.data.timestamps import parse_times
from netanomaly.errors import DataError


def row_at(table: Table, form: InputFormat, series: str, at: object, interval_ns: int) -> int:
    """The last row of a series at a time or less than an interval before it.

    Args:
        at: as the table's times are written, or a datetime.

    Raises:
        DataError: the series has no such row, there is no such series, or the time is none.
    """
    rows = table.series_rows.get(series)
    if rows is None:
        names = list(table.series_rows)
        more = f" ... ({len(names)} in all)" if len(names) > 8 else ""
        raise DataError(f"series '{series}': there are no rows of it; there are {', '.join(names[:8])}{more}")
    time = parse_times(pd.Series([at]), form.times, " ".join(form.time_columns), lambda row: "the time to explain")[0]
    rows = rows[np.argsort(table.times[rows], kind="stable")]
    place = int(np.searchsorted(table.times[rows], time, side="right")) - 1
    if place < 0 or time - table.times[rows[place]] >= interval_ns:
        first, last = (table.time_texts[rows[end]] for end in (0, -1))
        raise DataError(f"series '{series}': there is no row at {at}; its rows are from {first} to {last}")
    return int(rows[place])


def onset(labels: NDArray[np.object_], step: int, normal: str) -> int:
    """The first step of the run with the label of a step; steps without data do not end it. The normal class has none.

    (T,) to a step
    """
    if labels[step] == normal:
        return step
    same = labels[: step + 1] == labels[step]
    other = np.flatnonzero(~same & (labels[: step + 1] != NO_DATA))
    start = int(other[-1]) + 1 if len(other) else 0
    return start + int(np.argmax(same[start:]))
