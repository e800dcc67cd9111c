"""Incidents as they begin and end: who is told of them, and the same as JSON lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from netanomaly.alarms.live import Event, alarms_of
from netanomaly.data.timestamps import TimeFormat
from netanomaly.incident_files import incident_table
from netanomaly.terminal import printable


class Listener(Protocol):
    """Is told of incidents."""

    def hear(self, events: Sequence[Event]) -> None:
        """Take what has happened, in order; must not wait for anybody."""


class IncidentLines:
    """One JSON object for each event: `event` is `opened` or `closed`, the rest the columns of `incident_table`.

    Args:
        path: lines are added to it; None: standard output.
        times: how the rows write theirs.
        interval_ns: time between rows.
    """

    def __init__(self, path: Path | None, times: TimeFormat, interval_ns: int) -> None:
        self._path, self._times, self._interval = path, times, interval_ns

    def hear(self, events: Sequence[Event]) -> None:
        """Write them and flush."""
        table = incident_table(alarms_of([event.incident for event in events]), self._times, self._interval)
        table.insert(0, "event", [event.kind for event in events])
        text = "".join(
            printable(json.dumps(record, ensure_ascii=False)) + "\n" for record in table.to_dict(orient="records")
        )
        if self._path is None:
            sys.stdout.write(text)
            sys.stdout.flush()
            return
        with self._path.open("a", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
