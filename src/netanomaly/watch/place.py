"""Up to where a file has been taken, and whether a file is still that one."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from netanomaly.errors import DataError

TAIL = 256
"""Bytes before the place that have to be the same; with the size they tell a file from one that took its name."""


@dataclass(frozen=True)
class Place:
    """A place in a file.

    Attributes:
        offset: bytes before it.
        lines: lines before it, without the header.
        header: the line that names the columns of what follows.
        before: SHA-256 of the last bytes before the place.
        name: of the file, without its directory.
        file: device and inode: a file that was renamed keeps them.
    """

    offset: int
    lines: int
    header: str
    before: str
    name: str
    file: tuple[int, int]

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    @staticmethod
    def of_json(values: Mapping[str, Any]) -> Place:
        """From plain values.

        Raises:
            DataError: they are something else.
        """
        try:
            device, inode = values["file"]
            numbers = values["offset"], values["lines"], device, inode
            texts = values["header"], values["before"], values["name"]
            if not all(type(number) is int and number >= 0 for number in numbers):
                raise TypeError("offset, lines and file are numbers")
            if not all(type(text) is str for text in texts):
                raise TypeError("header, before and name are texts")
            return Place(*numbers[:2], *texts, numbers[2:])
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"the place in a file is none: {error}") from error

    def bytes_before(self, stream: BinaryIO) -> bytes | None:
        """The last bytes before this place, if the file has it; the stream stands at it then."""
        if os.fstat(stream.fileno()).st_size < self.offset:
            return None
        length = min(TAIL, self.offset)
        stream.seek(self.offset - length)
        found = stream.read(length)
        return found if digest(found) == self.before else None


def digest(data: bytes) -> str:
    """Of the last bytes of some data."""
    return hashlib.sha256(data[-TAIL:]).hexdigest()


def file_of(stream: BinaryIO) -> tuple[int, int]:
    """Device and inode."""
    found = os.fstat(stream.fileno())
    return found.st_dev, found.st_ino


def renamed(path: Path, place: Place) -> Path | None:
    """The file beside `path` that has the place: log rotation has given it another name."""
    for other in sorted(path.parent.iterdir()):
        try:
            found = other.stat()
            if (found.st_dev, found.st_ino) != place.file or not other.is_file():
                continue
            with other.open("rb") as stream:
                if place.bytes_before(stream) is not None:
                    return other
        except OSError:  # gone meanwhile, or not ours to read
            continue
    return None
