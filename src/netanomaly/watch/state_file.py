"""The state of a stream on disk, written now and then: what a restart goes on from."""

from __future__ import annotations

import glob
import logging
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from netanomaly.alarms.live import LiveAlarms
from netanomaly.errors import DataError
from netanomaly.locks import held
from netanomaly.streaming import StreamingPredictor
from netanomaly.watch.place import Place

log = logging.getLogger(__name__)

MOST = 0.05
"""Share of the time that saving may take: a state that takes long is saved less often."""


class StateFile:
    """Saves what a stream knows and which incidents go on, with the place of the input that it has taken.

    While its block lasts, no other process goes on from the file or writes it.

    Args:
        every: seconds between two savings, longer if a saving takes more than `MOST` of them.

    Raises:
        ConfigError: another one does already.
    """

    def __init__(self, path: Path, stream: StreamingPredictor, alarms: LiveAlarms, every: float) -> None:
        self.path, self._stream, self._alarms, self._every = path, stream, alarms, every
        self._next = time.monotonic() + every
        self._is_new = False
        self._held = ExitStack()

    def __enter__(self) -> Self:
        directory, name = self.path.parent, self.path.name[:100]
        taken = f"--state {self.path}: another process goes on from it; wait for it, or name another file"
        self._held.enter_context(held(directory / f".{name}.lock", taken))
        for torn in directory.glob(f".{glob.escape(name)}.????????.tmp"):  # of a process that was killed
            torn.unlink(missing_ok=True)
        return self

    def __exit__(self, *error: object) -> None:
        self._held.close()

    def restore(self) -> tuple[Place | None, dict[str, int]]:
        """Go on from the file, if it is there: where the input goes on, and which series have had rows far behind.

        Raises:
            DataError: it is no state of this bundle.
        """
        if not self.path.exists():
            return None, {}
        found = self._stream.restore(self.path)
        try:
            self._alarms.restore(found.get("incidents", []))
            place = found.get("place")
            return None if place is None else Place.of_json(place), _counts(found.get("behind", {}))
        except (DataError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"{self.path}: not a saved state of watch: {error}") from error

    def save_if_due(self, place: Place | None, behind: Mapping[str, int], *, is_new: bool) -> None:
        """Save if the stream has learnt something since and the time has come; where it cannot, that is told."""
        self._is_new |= is_new
        if not self._is_new or time.monotonic() < self._next:
            return
        try:
            self.save(place, behind)
        except OSError as error:  # a full disk: rows are answered all the same
            self._next = time.monotonic() + self._every
            log.warning("%s: not written: %s", self.path, error.strerror or error)

    def save(self, place: Place | None, behind: Mapping[str, int]) -> None:
        """Save, whole or not at all."""
        begun = time.monotonic()
        words = {
            "place": None if place is None else place.as_json(),
            "behind": dict(behind),
            "incidents": self._alarms.state(),
        }
        self._stream.save(self.path, words)
        took = time.monotonic() - begun
        self._next, self._is_new = time.monotonic() + max(self._every, took / MOST), False


def _counts(behind: Any) -> dict[str, int]:
    """Rows by series, of plain values. Raises TypeError if they are something else."""
    if not isinstance(behind, dict) or not all(type(count) is int for count in behind.values()):
        raise TypeError("the rows that were far behind are no numbers by series")
    return behind
