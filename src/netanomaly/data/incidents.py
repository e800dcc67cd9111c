"""A list of incidents (series, start, end, label) as the ground truth of rows."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from netanomaly.data.ingest import InputFormat, Table
from netanomaly.data.reader import read_file
from netanomaly.data.timestamps import parse_times
from netanomaly.errors import DataError

log = logging.getLogger(__name__)


def label_rows(table: Table, path: Path, form: InputFormat, normal: str) -> Table:
    """The table with labels from an incidents file: rows with start <= time < end get the incident's label.

    The file has the series columns of the data (none where the data have none), `start`, `end` and `label`,
    with times written as in the data. All other rows are `normal`.

    Raises:
        DataError: the file breaks the format, an incident ends before it starts, names a series that the data
            do not have, or overlaps another one of the same series with another label.
    """
    columns = form.series_columns
    source = read_file(
        path, replace(form.cells, text=(*columns, "start", "end", "label"), numbers=(), percent=frozenset())
    )
    starts = parse_times(source.frame["start"], form.times, "start", source.where)
    ends = parse_times(source.frame["end"], form.times, "end", source.where)
    names = _names(source.frame, columns)
    known = {str(name): np.flatnonzero(table.series == name) for name in set(table.series)}
    labels = np.full(len(table), normal, dtype=object)
    owner = np.full(len(table), -1)
    unseen = 0
    for row, label in enumerate(source.frame["label"].astype(str).str.strip()):
        if not label:
            raise DataError(f"{source.where(row)}, column 'label': empty; an incident needs a label")
        if ends[row] <= starts[row]:
            raise DataError(f"{source.where(row)}: the incident ends before it starts")
        if names is not None and names[row] not in known:
            raise DataError(
                f"{source.where(row)}: no series '{names[row]}' in the data; it has {', '.join(sorted(known)[:8])}"
            )
        rows = known[names[row]] if names is not None else np.arange(len(table))
        inside = rows[(table.times[rows] >= starts[row]) & (table.times[rows] < ends[row])]
        clash = inside[(owner[inside] >= 0) & (labels[inside] != label)]
        if len(clash):
            other = source.where(int(owner[clash[0]]))
            raise DataError(f"{source.where(row)}: overlaps the incident of {other}, which has another label")
        labels[inside], owner[inside] = label, row
        unseen += len(inside) == 0
    if unseen:
        log.warning("%s: %d of %d incidents cover no row of the data", path, unseen, len(source.frame))
    return replace(table, labels=labels)


def _names(frame: pd.DataFrame, columns: Sequence[str]) -> list[str] | None:
    if not columns:
        return None
    texts = [frame[column].astype(str).str.strip() for column in columns]
    return ["/".join(parts) for parts in zip(*texts, strict=True)]
