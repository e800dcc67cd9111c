"""Tables without files, and small files, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from netanomaly.data.cells import CellFormat
from netanomaly.data.ingest import NO_PART, InputFormat, Origin, Table
from netanomaly.data.schema import Kind, Metric
from netanomaly.data.timestamps import TimeFormat

SECOND = 10**9
START = pd.Timestamp("2026-03-01T00:00:00Z").value


def stamp(seconds: float) -> str:
    """An RFC 3339 time so many seconds after the start."""
    return f"{pd.Timestamp(START + round(seconds * SECOND)).isoformat()}Z"


def make_table(
    seconds: Sequence[float],
    values: Any = None,
    *,
    series: str | Sequence[str] = "a",
    labels: str | Sequence[str] = "normal",
    parts: int | Sequence[int] = NO_PART,
    kinds: Sequence[Kind] = ("gauge",),
) -> Table:
    """A table of rows at so many seconds after the start; by default row i has the value i."""
    rows = len(seconds)
    times = np.array([START + round(moment * SECOND) for moment in seconds], dtype=np.int64)
    given = np.arange(rows) if values is None else np.asarray(values, dtype=np.float64)
    filled = np.broadcast_to(given.reshape(rows, -1), (rows, len(kinds)))
    return Table(
        metrics=tuple(Metric(f"m{i}", f"m{i}", kind=kind) for i, kind in enumerate(kinds)),
        series=_column(series, rows),
        times=times,
        time_texts=np.array([stamp(moment) for moment in seconds], dtype=object),
        values=filled.astype(np.float64),
        labels=_column(labels, rows),
        parts=np.broadcast_to(np.asarray(parts, dtype=np.int8), rows).copy(),
        origins=(Origin("rows", rows, lambda row: f"rows: line {row + 2}"),),
    )


def make_format(
    *metrics: Metric, series: Sequence[str] = ("link",), label: str | None = "label", **cells: Any
) -> InputFormat:
    """Columns `time`, the series, the metrics and the label; RFC 3339 times."""
    return InputFormat(
        metrics=metrics or (Metric("rtt", "rtt"),),
        time_columns=("time",),
        times=TimeFormat(),
        series_columns=tuple(series),
        label=label,
        cells=CellFormat(**cells),
    )


def write(path: Path, content: str | bytes) -> Path:
    """The path, after writing text (as it is, line ends too) or bytes to it."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def _column(value: str | Sequence[str], rows: int) -> np.ndarray:
    return np.array([value] * rows if isinstance(value, str) else list(value), dtype=object)
