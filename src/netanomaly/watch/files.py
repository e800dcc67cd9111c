"""Whole lines of a file or of standard input, through log rotation: bytes, and words where the file is another one."""

from __future__ import annotations

import io
import os
import stat
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from netanomaly.errors import DataError
from netanomaly.watch.place import TAIL, Place, file_of, renamed

POLL_SECONDS = 0.2
"""How often a file that is followed is looked at."""


ROTATED = "rotated; read on in the new file"
TRUNCATED = "truncated; read again from its start"


@dataclass(frozen=True)
class Turned:
    """What follows is from the start of another file, or of the same written anew.

    Attributes:
        said: what has happened.
        file: device and inode of what follows.
    """

    said: str
    file: tuple[int, int]


class InputFile:
    """The lines of a file, or of standard input.

    Args:
        path: None: standard input.
        encoding: of the text; one whose letters are wider than a byte is made UTF-8.
        follow: wait for more at the end, through log rotation.
        start: where to go on, if the file, or one beside it that it was renamed to, has this place.

    Attributes:
        start: where it goes on; None: at its start.
        before: the last bytes before that.
        news: what has happened to the file since the state was saved.

    Raises:
        DataError: it cannot be read.
    """

    def __init__(self, path: Path | None, encoding: str, *, follow: bool, start: Place | None) -> None:
        self._path, self._follow = path, follow
        self._wide = "\n".encode(encoding.removesuffix("-sig")) != b"\n"  # of UTF-8 only the first line has a mark
        self._encoding = encoding
        self._stream = _standard_input() if path is None else _opened(path)
        self._regular = path is not None and stat.S_ISREG(os.fstat(self._stream.fileno()).st_mode)
        self._has_left = False  # the stream is that of a file that had lost its name before
        self._is_left = False  # the file has lost its name, and was looked at once more since
        self.start = start if self.has_places else None
        self.before = b""
        self.news: str | None = None
        if self.start is not None:
            self._go_to(self.start)
        self._lines: BinaryIO | _Wide = _Wide(self._stream, encoding) if self._wide else self._stream

    @property
    def encoding(self) -> str:
        """Of the lines that are given."""
        return "utf-8" if self._wide else self._encoding

    @property
    def has_places(self) -> bool:
        """Whether a place in it can be gone back to."""
        return self._regular and not self._wide

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode of the file that is read."""
        return file_of(self._stream)

    def close(self) -> None:
        """Close the file; standard input stays open, since a thread may wait in it."""
        if self._regular:
            self._lines.close()

    def _go_to(self, place: Place) -> None:
        """Go on where a state was saved, or say why not."""
        found = place.bytes_before(self._stream)
        if self._path is None or found is not None:
            self.before = found or b""
            return
        other = renamed(self._path, place) if self._path.name == place.name else None
        if other is None:
            self._stream.seek(0)
            self.start = None
            self.news = f"{self._path}: not the file of the saved state, and no file beside it is; read from its start"
            return
        self._stream.close()
        self._stream, self._has_left = _opened(other), True
        self.before = place.bytes_before(self._stream) or b""
        self.news = f"{self._path}: rotated since the state was saved; the rest of {other.name} comes first"

    def lines(self) -> Iterator[bytes | Turned]:
        """Whole lines; one that is half written waits, the last one of a file that is not followed does not."""
        begun, before = b"", self.before  # of the line at hand; the last bytes in front of it
        waited = False
        while True:
            data = self._lines.readline()
            if waited and data and not self._goes_on(before + begun, len(data)):
                self._stream.seek(0)
                yield self._truncated(begun)
                begun, before, waited = b"", b"", False
                continue
            begun, waited = begun + data, False
            if data.endswith(b"\n"):
                yield begun
                begun, before = b"", (before + begun)[-TAIL:]
            if data:
                continue
            if self._follow:
                time.sleep(POLL_SECONDS)
            turned = self._turn()
            if turned is None and self._follow:
                waited = True
                continue
            if turned == TRUNCATED:
                yield self._truncated(begun)
            elif begun:
                yield begun
            if turned is None:
                return
            if turned == ROTATED:
                yield Turned(f"{self._path}: {turned}", self.identity)
            begun = before = b""

    def _truncated(self, begun: bytes) -> Turned:
        lost = "; half a line was lost" if begun else ""
        return Turned(f"{self._path}: {TRUNCATED}{lost}", self.identity)

    def _turn(self) -> str | None:
        """At the end of the file: what has happened to it, if something has; the stream is the next one's then."""
        if self._path is None or not self.has_places or not (self._follow or self._has_left):
            return None
        try:
            named = self._path.stat()
        except OSError:  # renamed, and there is none of its name yet
            return None
        if self._has_left or (named.st_dev, named.st_ino) != self.identity:
            return self._next(named.st_size)
        if named.st_size < self._stream.tell():
            self._stream.seek(0)
            return TRUNCATED
        return None

    def _next(self, size: int) -> str | None:
        """Go over to the file that has the name now, once it has lines and nothing more comes into the old one."""
        if self._follow and size == 0:
            return None
        if self._follow and not self._is_left:  # what came into the old one before the look is read first
            self._is_left = True
            return None
        self._stream.close()
        self._stream = self._lines = _opened(Path(str(self._path)))
        self._has_left = self._is_left = False
        return ROTATED

    def _goes_on(self, before: bytes, new: int) -> bool:
        """Whether the bytes in front of the newest ones are those that were read: the file was not written anew."""
        if not self.has_places:
            return True
        place, known = self._stream.tell(), before[-TAIL:]
        self._stream.seek(place - new - len(known))
        found = self._stream.read(len(known))
        self._stream.seek(place)
        return found == known


class _Wide:
    """Lines in UTF-8 of a text whose letters are wider than a byte."""

    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        self._text = io.TextIOWrapper(stream, encoding, errors="surrogateescape", newline="")

    def close(self) -> None:
        """Close the stream."""
        self._text.close()

    def readline(self) -> bytes:
        """The next line."""
        return self._text.readline().encode("utf-8", "surrogateescape")


def _standard_input() -> BinaryIO:
    """A stream of our own: a thread may still wait in it when the program ends."""
    return os.fdopen(os.dup(sys.stdin.fileno()), "rb")


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise DataError(f"{path}: cannot read the file: {error.strerror or error}") from error
