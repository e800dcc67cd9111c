"""Incidents as they begin and end: who is told of them, and the same as JSON lines."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol, Self

from netanomaly.alarms.live import Event, alarms_of
from netanomaly.data.timestamps import TimeFormat
from netanomaly.incident_files import incident_table
from netanomaly.terminal import printable

log = logging.getLogger(__name__)

MOST_WAITING = 10_000
"""Lines that wait for a file that cannot be written; of more, the oldest are lost."""


class Listener(Protocol):
    """Is told of incidents."""

    def hear(self, events: Sequence[Event]) -> None:
        """Take what has happened, in order; must not wait for anybody."""


class IncidentLines:
    """One JSON object for each event: `event` is `opened` or `closed`, the rest the columns of `incident_table`.

    What cannot be written (a full disk) is told, and tried again with the next event and at the end of the block.

    Args:
        path: lines are added to it; None: standard output.
        times: how the rows write theirs.
        interval_ns: time between rows.

    Attributes:
        lost: lines that will never be written, as too many waited.
    """

    def __init__(self, path: Path | None, times: TimeFormat, interval_ns: int) -> None:
        self._path, self._times, self._interval = path, times, interval_ns
        self._waiting: list[str] = []
        self._is_down = False
        self.lost = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._path is not None and self._waiting:
            self._write(self._path)
        if left := len(self._waiting) + self.lost:
            log.warning("%s: %d lines of incidents were not written", self._path, left)

    def hear(self, events: Sequence[Event]) -> None:
        """Write them and flush."""
        table = incident_table(alarms_of([event.incident for event in events]), self._times, self._interval)
        table.insert(0, "event", [event.kind for event in events])
        lines = [printable(json.dumps(record, ensure_ascii=False)) + "\n" for record in table.to_dict(orient="records")]
        if self._path is None:
            sys.stdout.write("".join(lines))
            sys.stdout.flush()
            return
        self._waiting += lines
        self._write(self._path)

    def _write(self, path: Path) -> None:
        """Write what waits, if that can be done now."""
        try:
            _append(path, "".join(self._waiting).encode())
        except OSError as error:  # rows are answered and the state is saved all the same
            if not self._is_down:
                log.warning("%s: not written, incidents wait: %s", path, error.strerror or error)
            self._is_down = True
            self.lost += max(0, len(self._waiting) - MOST_WAITING)
            self._waiting = self._waiting[-MOST_WAITING:]
            return
        if self._is_down:
            log.warning("%s: is written again", path)
        self._is_down, self._waiting = False, []


def _append(path: Path, data: bytes) -> None:
    """Add whole lines to a file, or nothing, on a line of their own whatever its end is like."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b", buffering=0) as stream:
        end = stream.seek(0, os.SEEK_END)
        if end:
            stream.seek(end - 1)
            data = data if stream.read(1) == b"\n" else b"\n" + data
        try:
            while data:
                data = data[stream.write(data) :]
        except OSError:
            with suppress(OSError):
                stream.truncate(end)
            raise
