"""Long tables: a line per reading, with a column that names the metric and one with its value."""

from __future__ import annotations

import csv
import io

import pandas as pd

from netanomaly.errors import DataError
from netanomaly.exports.wide import Reading, wide_table

_TIMES = ("timestamp", "time", "_time", "datetime", "date", "ts", "epoch")
_METRICS = ("metric", "metric_name", "__name__", "_field", "field", "variable", "parameter", "measure", "item", "key")
_VALUES = ("value", "_value", "values")


def matches(head: str) -> bool:
    """Whether the header has a time, a name of a metric and a value."""
    return _places(next(csv.reader([head.partition("\n")[0]], delimiter=_separator(head)), [])) is not None


def convert(text: str, name: str) -> pd.DataFrame:
    """A column per metric; all other columns tell series apart."""
    lines = [fields for fields in csv.reader(io.StringIO(text), delimiter=_separator(text)) if any(fields)]
    header = lines[0]
    places = _places(header)
    if places is None or len(lines) < 2:
        raise DataError(f"{name}: only a header and no rows")
    time, metric, value = places
    others = [i for i in range(len(header)) if i not in places]
    for number, fields in enumerate(lines):
        if len(fields) != len(header):
            raise DataError(f"{name}: row {number}: {len(fields)} fields, the header has {len(header)}")
    return wide_table(
        Reading(fields[time], {header[i]: fields[i] for i in others}, fields[metric], fields[value])
        for fields in lines[1:]
    )


def _separator(text: str) -> str:
    header = text.partition("\n")[0]
    return max(",;\t", key=header.count)


def _places(header: list[str]) -> tuple[int, int, int] | None:
    """Where time, metric and value stand."""
    names = [column.strip().lower() for column in header]
    found = [next((names.index(n) for n in wanted if n in names), None) for wanted in (_TIMES, _METRICS, _VALUES)]
    time, metric, value = found
    return None if time is None or metric is None or value is None else (time, metric, value)
