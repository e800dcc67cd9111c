"""A list of incidents (series, start, end, label) as the ground truth of rows."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np

from netanomaly.data.cells import Columns, as_text
from netanomaly.data.ingest import InputFormat, Table, refuse_reserved
from netanomaly.data.reader import read_file
from netanomaly.data.timestamps import parse_times
from netanomaly.errors import DataError

log = logging.getLogger(__name__)


def label_rows(table: Table, path: Path, form: InputFormat, normal: str, *, all_series: bool = True) -> Table:
    """The table with labels from an incidents file: rows with start <= time < end get the incident's label.

    The file has the series columns of the data (none where the data have none), `start`, `end` and `label`,
    with times written as in the data. All other rows are `normal`.

    Args:
        all_series: the table should hold every series of the incidents; otherwise incidents of others are left out.

    Raises:
        DataError: the file breaks the format (bad lines are never skipped here), an incident ends before it starts,
            names a series that the data do not have, or overlaps another one of the same series with another label.
    """
    columns = Columns(text=(*form.series_columns, "start", "end", "label"))
    source = read_file(path, columns, replace(form.cells, skip_bad_lines=False))
    starts = parse_times(source.frame["start"], form.times, "start", source.where)
    ends = parse_times(source.frame["end"], form.times, "end", source.where)
    cells = [as_text(source.frame[column]) for column in form.series_columns]
    names = ["/".join(parts) for parts in zip(*cells, strict=True)] if cells else None
    labels = np.full(len(table), normal, dtype=object)
    owner = np.full(len(table), -1)
    others = empty = 0
    given = as_text(source.frame["label"]).to_numpy(dtype=object)
    refuse_reserved(given, "label", source.where)
    for row, label in enumerate(given):
        if not label:
            raise DataError(f"{source.where(row)}, column 'label': empty; an incident needs a label")
        if ends[row] <= starts[row]:
            raise DataError(f"{source.where(row)}: the incident ends before it starts")
        if names is None:
            rows = np.arange(len(table))
        elif names[row] in table.series_rows:
            rows = table.series_rows[names[row]]
        elif all_series:
            known = ", ".join(list(table.series_rows)[:8])
            raise DataError(f"{source.where(row)}: no series '{names[row]}' in the data; it has {known}")
        else:
            others += 1
            continue
        inside = rows[(table.times[rows] >= starts[row]) & (table.times[rows] < ends[row])]
        clash = inside[(owner[inside] >= 0) & (labels[inside] != label)]
        if len(clash):
            other = source.where(int(owner[clash[0]]))
            raise DataError(f"{source.where(row)}: overlaps the incident of {other}, which has another label")
        labels[inside], owner[inside] = label, row
        empty += len(inside) == 0
    if others:
        log.warning("%s: %d of %d incidents are of series that are not here", path, others, len(starts))
    if empty:
        log.warning("%s: %d of %d incidents cover no row of the data", path, empty, len(starts))
    return replace(table, labels=labels)
