"""Lines in batches: whatever has come since the batch before, with the header that they belong to."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from netanomaly.data.text_files import codec
from netanomaly.errors import DataError
from netanomaly.watch.files import InputFile, Turned
from netanomaly.watch.place import TAIL, Place, digest

AT_ONCE = 4096
"""Lines that are labelled together when more have come than could be labelled one by one."""
TICK_SECONDS = 1.0
"""How long to wait for a line before an empty batch comes: time to save what is known."""


@dataclass(frozen=True)
class Batch:
    """Some lines of a file.

    Attributes:
        lines: as text; bytes that the encoding does not know are lone surrogates.
        shift: lines of the file between its header and these.
        turned: what has happened to the file before them; they are its first ones then.
    """

    lines: list[str]
    shift: int
    turned: str | None = None


class LineSource:
    """The lines of a CSV as they come.

    Args:
        path: None: standard input.
        start: where to go on, if it is still that file.

    Attributes:
        name: of the file, in messages.
        header: line that names the columns.
        news: what has happened to the file since the state was saved.

    Raises:
        DataError: there is no header, or the file cannot be read.
    """

    def __init__(self, path: Path | None, encoding: str, *, follow: bool = False, start: Place | None = None) -> None:
        self.name = path or Path("standard input")
        self._file = InputFile(path, codec(encoding), follow=follow, start=start)
        self.encoding = self._file.encoding
        self.news = self._file.news
        self._arrived: queue.Queue[bytes | Turned | Exception | None] = queue.Queue(maxsize=4 * AT_ONCE)
        self._offset, self._shift, self._before = 0, 0, self._file.before
        self._identity = self._file.identity
        threading.Thread(target=self._read, daemon=True).start()
        if self._file.start is not None:
            self.header = self._file.start.header
            self._offset, self._shift = self._file.start.offset, self._file.start.lines
        else:
            self.header = self._first()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    @property
    def goes_on(self) -> bool:
        """Whether the lines are those after a saved state: none of them comes again."""
        return self._file.start is not None

    def _first(self) -> str:
        """The first line, once it has come."""
        line: bytes | Turned | None = None
        while not isinstance(line, bytes):
            with contextlib.suppress(queue.Empty):
                if (line := self._next(TICK_SECONDS)) is None:
                    break
        if line is None or not line.strip():
            self._file.close()
            raise DataError(f"{self.name}: no header line")
        self._count(line)
        self._shift = 0
        return self._text(line).removeprefix("\ufeff")

    def batches(self) -> Iterator[Batch]:
        """All lines that have come since the batch before, whole ones only; now and then none, if none come."""
        turned: Turned | None = None
        going = True
        while going:
            if turned is not None:  # its first line is no longer behind a header
                self._offset, self._shift, self._before, self._identity = 0, -1, b"", turned.file
            said, turned, shift = turned.said if turned else None, None, self._shift
            lines: list[str] = []
            with contextlib.suppress(queue.Empty):
                while len(lines) < AT_ONCE and going and turned is None:
                    found = self._next(0.0 if lines else TICK_SECONDS)
                    if isinstance(found, bytes):
                        lines.append(self._text(found))
                        self._count(found)
                    else:
                        turned, going = found, found is not None
            if lines or said or going:
                yield Batch(lines, shift, said)

    def place(self) -> Place | None:
        """Where the file goes on after the batch at hand; None: it has no places."""
        if not self._file.has_places:
            return None
        return Place(self._offset, self._shift, self.header, digest(self._before), self.name.name, self._identity)

    def _next(self, wait: float) -> bytes | Turned | None:
        """What has come next; raises queue.Empty if nothing has."""
        found = self._arrived.get(timeout=wait) if wait else self._arrived.get_nowait()
        if isinstance(found, Exception):
            raise found
        return found

    def _count(self, line: bytes) -> None:
        self._offset, self._shift = self._offset + len(line), self._shift + 1
        self._before = (self._before + line)[-TAIL:]

    def _text(self, line: bytes) -> str:
        return line.decode(self.encoding.removesuffix("-sig"), errors="surrogateescape")

    def _read(self) -> None:
        """Put lines into the queue, None at the end; in a thread of its own."""
        try:
            for line in self._file.lines():
                self._arrived.put(line)
            self._arrived.put(None)
        except Exception as error:  # told where it can be handled
            self._arrived.put(error)
