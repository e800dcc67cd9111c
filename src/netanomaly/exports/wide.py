"""The wide table that every export becomes: time, series, a column for each metric; cells stay text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

TIME, SERIES = "timestamp", "series"


@dataclass(frozen=True)
class Reading:
    """One value: when, of which labels, of which metric."""

    time: str
    labels: Mapping[str, str]
    metric: str
    value: str


def wide_table(readings: Iterable[Reading]) -> pd.DataFrame:
    """A row per time and series, a column per metric; of several readings of one cell the last counts.

    A series is called by those of its labels that tell it from others; see `series_of`.
    """
    found = list(readings)
    names = series_of([(reading.metric, reading.labels) for reading in found])
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for reading, name in zip(found, names, strict=True):
        rows.setdefault((name, reading.time), {})[reading.metric] = reading.value
    metrics = list(dict.fromkeys(reading.metric for reading in found))
    table = [[time, name, *(cells.get(metric, "") for metric in metrics)] for (name, time), cells in rows.items()]
    return pd.DataFrame(table, columns=[TIME, SERIES, *metrics], dtype="str")


def series_of(labelled: Sequence[tuple[str, Mapping[str, str]]]) -> list[str]:
    """A name for the labels of each metric: those that differ, of which all metrics have each if that is enough."""
    keys = dict.fromkeys(key for _, labels in labelled for key in labels)
    differing = [key for key in keys if len({labels.get(key, "") for _, labels in labelled}) > 1]
    shared = [key for key in differing if all(labels.get(key) for _, labels in labelled)]
    apart = len({(metric, tuple(labels.get(key, "") for key in keys)) for metric, labels in labelled})
    names: list[str] = []
    for chosen in (shared, differing):
        names = ["/".join(labels.get(key) or "none" for key in chosen) or "all" for _, labels in labelled]
        if len({(metric, name) for (metric, _), name in zip(labelled, names, strict=True)}) == apart:
            break
    return names
