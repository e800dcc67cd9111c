"""mtr's CSV (`mtr --csv`): a block per run, a line per hop; its header has a comma more than its lines.

Source: https://github.com/traviscross/mtr
"""

from __future__ import annotations

import csv
import io

import pandas as pd

from netanomaly.errors import DataError
from netanomaly.exports.wide import SERIES, TIME

_METRICS = {
    "Loss%": "loss_percent",
    "Snt": "sent",
    "Last": "last_ms",
    "Avg": "avg_ms",
    "Best": "best_ms",
    "Wrst": "worst_ms",
    "StDev": "stdev_ms",
}
_START = ("Mtr_Version,", "Mtr_Version;", "MTR.")


def matches(head: str) -> bool:
    """Whether a text starts with the header of a run."""
    return head.startswith(_START[:2])


def convert(text: str, name: str) -> pd.DataFrame:
    """A series for each hop to each host; a hop that never answered has a loss and no times."""
    separator = ";" if text.startswith("Mtr_Version;") else ","
    header: list[str] = []
    rows = []
    for fields in csv.reader(io.StringIO(text), delimiter=separator):
        if fields[:1] == ["Mtr_Version"]:
            header = [column.strip() for column in fields]
        elif any(fields):
            cells = dict(zip(header, fields, strict=False))
            if not {"Start_Time", "Host", "Hop"} <= cells.keys():
                cut = separator.join(fields)[:60]
                raise DataError(f"{name}: a line without time, host and hop: '{cut}'; is the file cut off?")
            row = {TIME: cells["Start_Time"], SERIES: f"{cells['Host']}/{cells['Hop']}"}
            answered = cells.get("Loss%", "0").strip().rstrip("%") not in ("100", "100.0", "100.00")
            for column, metric in _METRICS.items():
                if column in cells:
                    row[metric] = cells[column] if answered or not metric.endswith("_ms") else ""
            rows.append(row)
    if not rows:
        raise DataError(f"{name}: only a header and no hops")
    return pd.DataFrame(rows, dtype="str").fillna("")
