"""Rows that a program holds as arrays or, a few at a time, as mappings: without a frame, which costs milliseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netanomaly.data.cells import missing_numbers
from netanomaly.data.ingest import NO_PART, UNLABELLED, InputFormat, Origin, Table
from netanomaly.data.timestamps import PLAUSIBLE
from netanomaly.data.utc_times import utc_nanoseconds
from netanomaly.durations import LONGEST
from netanomaly.errors import DataError


def table_of_arrays(series: Sequence[str], times: NDArray[Any], values: NDArray[Any], form: InputFormat) -> Table:
    """Rows that are arrays: names, (n,), times, (n,), and metrics as a file would have them, (n, M).

    Times are datetime64, or whole nanoseconds since 1970.

    Raises:
        DataError: shapes or types differ from these, a time lies outside 1990 to 2100 (it may be of another unit;
            elapsed times start anywhere), or a value is infinite.
    """
    rows = len(series)
    for row, name in enumerate(series):
        if isinstance(series, str) or not _is_plain_name(name):
            raise DataError(
                f"series: got {name!r} in row {row}, expected a list of names, one per row, printable, no spaces "
                "around them"
            )
    if times.dtype.kind == "M":
        times = times.astype("datetime64[ns]").astype(np.int64)
    if times.shape != (rows,) or (times.dtype.kind not in "iu" and rows):
        found = f"{times.dtype} of shape {times.shape}"
        raise DataError(f"times: got {found}, expected datetime64 or whole nanoseconds since 1970, ({rows},)")
    plausible = PLAUSIBLE if form.times.format != "elapsed" else (-LONGEST, LONGEST)
    for row in np.flatnonzero((times < plausible[0]) | (times > plausible[1]))[:1]:
        raise DataError(f"times: got {times[row]} in row {row}, as nanoseconds since 1970 outside 1990 to 2100")
    if values.shape != (rows, len(form.metrics)) or values.dtype.kind not in "fiu":
        raise DataError(
            f"values: got {values.dtype} of shape {values.shape}, expected numbers ({rows}, {len(form.metrics)}), "
            f"a column for each of {', '.join(metric.column for metric in form.metrics)}"
        )
    for row, column in np.argwhere(np.isinf(values))[:1]:
        raise DataError(f"values: row {row} of metric '{form.metrics[column].column}' is infinite; NaN means missing")
    return _table(form, series, times.astype(np.int64), times.tolist(), _in_base_units(values, form), "arrays")


def table_of_plain_rows(rows: Sequence[Mapping[str, Any]], form: InputFormat, name: str) -> Table | None:
    """Rows that hold nothing unusual: full UTC times, series that are text, finite numbers or NaN. None for others.

    What it returns is what `ingest.table_of_frames` makes of a frame of these rows.
    """
    if len(form.time_columns) > 1 or form.times.format != "rfc3339":
        return None
    try:
        texts = [row[form.time_columns[0]] for row in rows]
        names = [[row[column] for column in form.series_columns] or [name] for row in rows]
        cells = [[row[metric.column] if metric.is_measured else np.nan for metric in form.metrics] for row in rows]
    except (KeyError, TypeError):
        return None
    times = utc_nanoseconds(texts)
    if times is None or not all(_is_plain_name(part) for parts in names for part in parts):
        return None
    if not all(_is_plain_number(cell) for row in cells for cell in row):
        return None
    values = np.array(cells, dtype=np.float64)
    values[np.isin(values, missing_numbers(form.cells))] = np.nan
    values = _in_base_units(values, form)
    if np.isinf(values).any():
        return None
    return _table(form, ["/".join(parts) for parts in names], times, texts, values, name)


def no_rows(form: InputFormat) -> Table:
    """A table without rows."""
    return _table(form, [], np.empty(0, np.int64), [], np.empty((0, len(form.metrics))), "rows")


def _in_base_units(values: NDArray[Any], form: InputFormat) -> NDArray[np.float64]:
    converted: NDArray[np.float64] = values * np.array([metric.factor for metric in form.metrics])
    return converted


def _is_plain_name(part: object) -> bool:
    return isinstance(part, str) and part != "" and part == part.strip() and part.isprintable()


def _is_plain_number(cell: object) -> bool:
    return isinstance(cell, float) or (type(cell) is int and abs(cell) < 2**63)


def _table(
    form: InputFormat,
    series: Sequence[str],
    times: NDArray[np.int64],
    texts: Sequence[object],
    values: NDArray[np.float64],
    name: str,
) -> Table:
    return Table(
        metrics=form.metrics,
        series=np.array(series, dtype=object),
        times=times,
        time_texts=np.array(texts, dtype=object),
        values=values,
        labels=np.full(len(series), UNLABELLED, dtype=object),
        parts=np.full(len(series), NO_PART, dtype=np.int8),
        origins=(Origin(name, len(series), lambda row: f"{name}: row {row}"),),
    )
