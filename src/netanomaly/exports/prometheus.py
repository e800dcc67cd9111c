"""Prometheus' answer to a query over a range, as JSON (`/api/v1/query_range`, `promtool query range -o json`).

Source: https://prometheus.io/docs/prometheus/latest/querying/api/#range-queries
"""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

from netanomaly.errors import DataError
from netanomaly.exports.wide import Reading, wide_table


def matches(head: str) -> bool:
    """Whether a text is such an answer, or the list of series in it."""
    start = head.lstrip()[:1000]
    return start.startswith(("{", "[")) and '"metric"' in head[:20_000] and '"values"' in head


def convert(text: str, name: str) -> pd.DataFrame:
    """Every label that tells series apart is a part of their name. Raises DataError if the JSON is another."""
    try:
        answer: Any = json.loads(text)
        series = answer["data"]["result"] if isinstance(answer, dict) else answer
        readings = [
            Reading(
                str(time),
                {key: value for key, value in one["metric"].items() if key != "__name__"},
                one["metric"].get("__name__", "value"),
                "" if value == "NaN" else value,
            )
            for one in series
            for time, value in one["values"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{name}: not the JSON of a range query of Prometheus: {error}") from error
    if not readings:
        raise DataError(f"{name}: the answer has no values; widen the range of the query")
    return wide_table(readings)
