"""Grafana's CSV of a panel (inspect, data, "Series joined by time"): a time and a column for each series.

With "Download for Excel" a line `sep=,` stands above the header.
Source: https://grafana.com/docs/grafana/latest/panels-visualizations/panel-inspector/
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

import pandas as pd

from netanomaly.errors import DataError
from netanomaly.exports.labelled_names import split_name
from netanomaly.exports.wide import Reading, wide_table

_SEPARATOR_LINE = re.compile(r"\ufeff?\"?sep=(.)\"?\r?\n", re.IGNORECASE)
_TIMES = ("time", "date", "timestamp")


def matches(head: str) -> bool:
    """Whether a line for Excel stands above the header, or columns are called by labels."""
    return _SEPARATOR_LINE.match(head) is not None or bool(_labelled(_header(head)))


def matches_plain(head: str) -> bool:
    """Whether the columns may be series: a time, and names that say nothing of a metric."""
    header = _header(head)
    return len(header) > 2 and header[0] == "Time" and not set(header[1:]) & {"Value", "Series", "Metric"}


def convert(text: str, name: str) -> pd.DataFrame:
    """The columns as series: those with labels by them, others by their names. Raises DataError without rows."""
    header, *rows = list(_lines(text)) or [[]]
    if len(header) < 2 or not rows:
        raise DataError(f"{name}: only a header and no rows")
    labelled = _labelled(header)
    if not labelled and _SEPARATOR_LINE.match(text):  # a plain table under the line for Excel
        return pd.DataFrame([row for row in rows if len(row) == len(header)], columns=header, dtype="str")
    places = [(i, *(labelled.get(i) or ("value", {"series": column}))) for i, column in enumerate(header) if i]
    return wide_table(
        Reading(row[0], labels, metric, row[i])
        for row in rows
        for i, metric, labels in places
        if i < len(row) and row[0]
    )


def _labelled(header: list[str]) -> dict[int, tuple[str, dict[str, str]]]:
    """Metric and labels of the columns that have some, in a table that starts with a time."""
    if not header or not header[0].lower().startswith(_TIMES):
        return {}
    return {i: found for i, column in enumerate(header) if i and (found := split_name(column))}


def _header(text: str) -> list[str]:
    return next(_lines("\n".join(text.splitlines()[:3])), [])


def _lines(text: str) -> Iterator[list[str]]:
    """The lines that are not empty, without the one for Excel; the header tells the separator."""
    separator, text = ",", text.removeprefix("\ufeff")
    if match := _SEPARATOR_LINE.match(text):
        separator, text = match[1], text[match.end() :]
    elif ";" in text.partition("\n")[0] and "," not in text.partition("\n")[0]:
        separator = ";"
    return (fields for fields in csv.reader(io.StringIO(text), delimiter=separator) if any(fields))
