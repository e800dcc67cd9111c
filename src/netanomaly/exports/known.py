"""All exports that are recognised, and the way from files to a wide table."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from netanomaly.errors import DataError
from netanomaly.exports import grafana, influx, iperf3, long, mtr, pings, prometheus, rrd
from netanomaly.exports.wide import SERIES, TIME

_HEAD = 2**20


@dataclass(frozen=True)
class Export:
    """A kind of export.

    Attributes:
        matches: whether the beginning of a text is one.
        convert: the wide table of a text; the second argument names it in errors.
        is_wide: it can be read as it is; converting gives another view of it.
        instead: what to do where it cannot be converted.
    """

    name: str
    matches: Callable[[str], bool]
    convert: Callable[[str, str], pd.DataFrame]
    is_wide: bool = False
    instead: str = ""


EXPORTS = (
    Export("InfluxDB annotated CSV", influx.matches, influx.convert),
    Export("iperf3 JSON", iperf3.matches, iperf3.convert),
    Export("Prometheus JSON of a range query", prometheus.matches, prometheus.convert),
    Export("mtr CSV", mtr.matches, mtr.convert),
    Export("log of ping or fping with times", pings.matches, pings.convert),
    Export("log of ping or fping without times", pings.matches_without_times, pings.refuse, instead=pings.WITH_TIMES),
    Export("smokeping, or other output of rrdtool fetch", rrd.matches, rrd.convert),
    Export("Grafana CSV with a column for each series", grafana.matches, grafana.convert),
    Export("long table, a line for each reading", long.matches, long.convert),
    Export("Grafana CSV, series joined by time", grafana.matches_plain, grafana.convert, is_wide=True),
)
"""The order counts: the first that matches."""


def recognise(path: Path) -> Export | None:
    """The kind of export that a file is; None for any other, and for what is no text in UTF-8."""
    text = _text(path, _HEAD)
    return None if text is None else next((export for export in EXPORTS if export.matches(text)), None)


def to_wide(files: Sequence[Path]) -> pd.DataFrame:
    """One wide table of files of the same kind; series of several files that name none are called by the files.

    Raises:
        DataError: a file is none of the known exports, or not a whole one.
    """
    names = [export.name for export in EXPORTS if not export.instead]
    frames = []
    for path in files:
        export = recognise(path)
        if export is None:
            raise DataError(f"{path}: none of the exports that can be converted: {', '.join(names)}")
        frame = export.convert(_text(path, -1) or "", str(path))
        if len(files) > 1 and SERIES not in frame:
            frame.insert(1, SERIES, path.stem)
        frames.append(frame)
    table = pd.concat(frames, ignore_index=True).fillna("")
    if SERIES in table and TIME in table:
        table = table.sort_values([SERIES, TIME], kind="stable", ignore_index=True)
    return table


def _text(path: Path, size: int) -> str | None:
    """The beginning of a plain or gzip file as text; None if it is none."""
    try:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rb") as stream:
            content = bytes(stream.read(size))
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot read the file: {error}") from error
    text = content.decode("utf-8-sig", errors="ignore" if size > 0 else "replace")
    return None if "\0" in text else text
