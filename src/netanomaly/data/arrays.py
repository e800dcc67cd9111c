"""Rows that a program holds as arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from netanomaly.data.ingest import NO_PART, UNLABELLED, InputFormat, Origin, Table
from netanomaly.errors import DataError


def table_of_arrays(
    series: Sequence[str], times: NDArray[np.generic], values: NDArray[np.generic], form: InputFormat
) -> Table:
    """Rows that are arrays: names, (n,), whole nanoseconds since 1970, (n,), and metrics in base units, (n, M).

    Raises:
        DataError: shapes or types differ from these, or a value is infinite.
    """
    rows = len(series)
    if times.shape != (rows,) or times.dtype.kind not in "iu":
        raise DataError(f"times: got {times.dtype} of shape {times.shape}, expected whole nanoseconds ({rows},)")
    if values.shape != (rows, len(form.metrics)) or values.dtype.kind not in "fiu":
        raise DataError(
            f"values: got {values.dtype} of shape {values.shape}, expected numbers ({rows}, {len(form.metrics)}), "
            f"a column for each of {', '.join(metric.column for metric in form.metrics)}"
        )
    for row, column in np.argwhere(np.isinf(values))[:1]:
        raise DataError(f"values: row {row} of metric '{form.metrics[column].column}' is infinite; NaN means missing")
    return Table(
        metrics=form.metrics,
        series=np.asarray(series, dtype=object),
        times=times.astype(np.int64),
        time_texts=times.astype(object),
        values=values.astype(np.float64),
        labels=np.full(rows, UNLABELLED, dtype=object),
        parts=np.full(rows, NO_PART, dtype=np.int8),
        origins=(Origin("arrays", rows, lambda row: f"arrays: row {row}"),),
    )
