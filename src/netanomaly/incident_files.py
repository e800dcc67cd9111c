"""Incidents as files: what `predict` writes, and planned work that it is told of."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from netanomaly.alarms.maintenance import ANY, Maintenance
from netanomaly.alarms.raising import Alarms
from netanomaly.csv_lines import csv_table
from netanomaly.data.cells import Columns, as_text
from netanomaly.data.ingest import UNKNOWN, InputFormat
from netanomaly.data.reader import read_file
from netanomaly.data.time_texts import format_times
from netanomaly.data.timestamps import TimeFormat, parse_times
from netanomaly.errors import DataError
from netanomaly.evaluation.tables import table as aligned
from netanomaly.files import write_json, write_text
from netanomaly.reason import Reason

log = logging.getLogger(__name__)

MOSTLY = 0.5
"""Share of an incident's rows that have to be like none of training for it to be called unknown."""
SHOWN = 20
"""Incidents on a terminal, at most."""
SUFFIXES = (".csv", ".json")
"""What a file of incidents may be called."""


def incident_table(
    alarms: Alarms, times: TimeFormat, interval_ns: int, reasons: Sequence[Reason] | None = None
) -> pd.DataFrame:
    """One line per incident, in order of the moment at which its alarm is raised.

    Columns: `series`, `start`, `end` (one interval after its last row, so that start <= time < end), `raised` (the row
    at which the alarm is raised), `label` (`unknown` where most rows are like none of training), `looks_like` (the
    class in any case), `peak_confidence`, `mean_confidence`, `onset_certainty`, `peak` (the row with the largest
    confidence), `rows`, `novel`, and `reason` if there are any; see `Alarms` and `Reason`. Times as RFC 3339 in UTC, or
    counts where the data count.
    """
    found = pd.DataFrame(
        {
            "series": alarms.series,
            "start": format_times(alarms.starts, times),
            "end": format_times(alarms.lasts + interval_ns, times),
            "raised": format_times(alarms.raised, times),
            "label": np.where(alarms.novel > MOSTLY, UNKNOWN, alarms.labels),
            "looks_like": alarms.labels,
            "peak_confidence": alarms.peak_confidence.round(6),
            "mean_confidence": alarms.mean_confidence.round(6),
            "onset_certainty": alarms.onset_certainty.round(6),
            "peak": format_times(alarms.peaks, times),
            "rows": alarms.rows,
            "novel": alarms.novel.round(6),
        }
    )
    return found if reasons is None else found.assign(reason=[_sentences(one) for one in reasons])


def _sentences(reason: Reason) -> str:
    """The metrics that carried it, each with its share, in one line."""
    return "; ".join(f"{one.sentence} ({100 * one.share:.0f} %)" for one in reason.metrics)


def write_incidents(table: pd.DataFrame, path: Path, *, raw_text: bool = False) -> None:
    """Write incidents as CSV or JSON (a list), by the suffix; whole or not at all. For `raw_text` see `csv_lines`."""
    if path.suffix == ".json":
        write_json(path, table.to_dict(orient="records"))
    else:
        write_text(path, csv_table(table, raw_text=raw_text))


def incidents_text(table: pd.DataFrame) -> str:
    """The incidents for a terminal, the last `SHOWN` of them."""
    last = table.tail(SHOWN)
    texts = [last[name].astype(str) for name in ("series", "start", "end", "label", "looks_like")]
    confidence = [f"{value:.2f}" for value in last["peak_confidence"]]
    rows = list(zip(*texts, confidence, strict=True))
    earlier = [f"({len(table) - len(last)} earlier ones are in the file)"] if len(table) > len(last) else []
    return "\n".join([*aligned(("series", "start", "end", "label", "looks like", "peak confidence"), rows), *earlier])


def tell_unknown_series(maintenance: Maintenance, series: Collection[str], path: Path) -> None:
    """Warn of windows of series that are not among the rows: a name may be misspelt, and somebody would be woken."""
    for name in sorted(set(maintenance.windows) - set(series) - {ANY})[:8]:
        log.warning("%s: no series '%s' in the rows; its maintenance changes nothing", path, name)


def read_maintenance(path: Path, form: InputFormat) -> Maintenance:
    """Planned work from a CSV with the series columns of the data (empty: all series), `start` and `end`.

    Raises:
        DataError: the file breaks the format, or a window ends before it starts.
    """
    columns = Columns(text=(*form.series_columns, "start", "end"))
    source = read_file(path, columns, replace(form.cells, skip_bad_lines=False))
    starts = parse_times(source.frame["start"], form.times, "start", source.where)
    ends = parse_times(source.frame["end"], form.times, "end", source.where)
    cells = [as_text(source.frame[column]) for column in form.series_columns]
    names = [ANY] * len(starts)
    if cells:
        names = ["/".join(parts) if any(parts) else ANY for parts in zip(*cells, strict=True)]
    for row in np.flatnonzero(ends <= starts)[:1]:
        raise DataError(f"{source.where(int(row))}: the maintenance ends before it starts")
    windows = np.stack([starts, ends], axis=1)
    return Maintenance({name: windows[[other == name for other in names]] for name in dict.fromkeys(names)})
