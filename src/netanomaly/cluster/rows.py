"""Rows on their way through a cluster: a table of validated rows as a plain frame, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from netanomaly.cluster.parts import Parts
from netanomaly.data.ingest import NO_PART, UNLABELLED, Origin, Table
from netanomaly.data.schema import Metric

KEYS = {
    "series": "string",
    "part": "long",
    "context": "boolean",
    "file_number": "long",
    "file": "string",
    "row": "long",
    "time": "long",
    "timestamp": "string",
}
"""Columns of the rows beside one `m<number>` of doubles for each metric, with the types that they have in Spark."""

ANSWER_KEYS = {"file": "string", "row": "long", "series": "string", "timestamp": "string", "label": "string"}
"""Columns of the answers that are no probabilities."""


def row_columns(metrics: int) -> dict[str, str]:
    """The columns of the rows of so many metrics, with their types."""
    return {**KEYS, **{f"m{number}": "double" for number in range(metrics)}}


def answer_columns(classes: Sequence[str]) -> dict[str, str]:
    """The columns of the answers, with their types: `file` and `row` (from 0) say which row of the input is meant."""
    numbers = ["confidence", *(f"p_{name}" for name in classes), "novelty"]
    return {**ANSWER_KEYS, **dict.fromkeys(numbers, "double")}


def rows_of_table(table: Table, parts: Parts, file: str, file_number: int, first_row: int) -> pd.DataFrame:
    """The rows of a table as a frame, each as often as there are parts of its series that need it.

    Args:
        file: what the file is called; `first_row` of it is the table's first.
    """
    which, part, context = parts.copies(table.times)
    keys = pd.DataFrame(
        {
            "series": table.series[which].astype(str),
            "part": part,
            "context": context,
            "file_number": np.full(len(which), file_number, dtype=np.int64),
            "file": np.full(len(which), file, dtype=object),
            "row": first_row + which,
            "time": table.times[which],
            "timestamp": table.time_texts[which].astype(str),
        }
    )
    metrics = pd.DataFrame(table.values[which], columns=[f"m{number}" for number in range(len(table.metrics))])
    return pd.concat([keys, metrics], axis=1)


def table_of_rows(rows: pd.DataFrame, metrics: Sequence[Metric]) -> Table:
    """A frame of rows as the table that it was; messages name the file and the number of the row in it."""
    files, numbers = rows["file"].to_numpy(dtype=object), rows["row"].to_numpy()
    return Table(
        metrics=tuple(metrics),
        series=rows["series"].to_numpy(dtype=object),
        times=rows["time"].to_numpy(dtype=np.int64),
        time_texts=rows["timestamp"].to_numpy(dtype=object),
        values=rows[[f"m{number}" for number in range(len(metrics))]].to_numpy(dtype=np.float64),
        labels=np.full(len(rows), UNLABELLED, dtype=object),
        parts=np.full(len(rows), NO_PART, dtype=np.int8),
        origins=(Origin("rows", len(rows), lambda row: f"{files[row]}: row {numbers[row]}"),),
    )
