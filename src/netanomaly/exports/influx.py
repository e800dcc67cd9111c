"""InfluxDB's annotated CSV: tables below each other, one reading per line.

Source: https://docs.influxdata.com/influxdb/v2/reference/syntax/annotated-csv/
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping

import pandas as pd

from netanomaly.errors import DataError
from netanomaly.exports.wide import Reading, wide_table

_NO_LABELS = {"", "result", "table", "_start", "_stop", "_time", "_value", "_field", "_measurement"}


def matches(head: str) -> bool:
    """Whether a text starts with an annotation."""
    return head.startswith(("#group,", "#datatype,", "#default,"))


def convert(text: str, name: str) -> pd.DataFrame:
    """The readings as a wide table. Raises DataError if there is none with a time and a value."""
    rows = list(_rows(text))
    if not rows or not all("_time" in row and "_value" in row for row in rows):
        raise DataError(f"{name}: annotated CSV without the columns _time and _value; export it before pivot()")
    several = len({row.get("_measurement", "") for row in rows}) > 1
    return wide_table(
        Reading(
            row["_time"],
            {key: value for key, value in row.items() if key not in _NO_LABELS},
            "_".join(filter(None, (row.get("_measurement", "") if several else "", row.get("_field", "value")))),
            row["_value"],
        )
        for row in rows
    )


def _rows(text: str) -> Iterator[Mapping[str, str]]:
    """The lines of all tables by name of column, empty cells filled as `#default` says."""
    header: list[str] = []
    defaults: list[str] = []
    for fields in csv.reader(io.StringIO(text)):
        if not any(fields):
            header = []
        elif fields[0].startswith("#"):
            header = []
            defaults = fields if fields[0] == "#default" else defaults
        elif not header:
            header = fields
        else:
            filled = [cell or (defaults[i] if i < len(defaults) and i else "") for i, cell in enumerate(fields)]
            yield dict(zip(header, filled, strict=False))
