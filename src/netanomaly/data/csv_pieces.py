"""A CSV as one text or as pieces of whole lines, each with the header in front: read alike, whatever its size."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TextIO

from netanomaly.data.text_files import open_text, short_lines


@dataclass(frozen=True)
class CsvText:
    """The text of a file, or a piece of it.

    Attributes:
        path: of the file.
        encoding: of the file.
        text: of a piece: the header line and some whole lines; None for the whole file.
        shift: lines of the file between the header and the piece.
    """

    path: Path
    encoding: str
    text: str | None = None
    shift: int = 0

    def open(self) -> AbstractContextManager[TextIO]:
        """The text as a stream."""
        return open_text(self.path, self.encoding) if self.text is None else nullcontext(io.StringIO(self.text, ""))

    def for_pandas(self) -> Path | TextIO:
        """What pandas reads it from: files fastest by itself."""
        return self.path if self.text is None else io.StringIO(self.text)


def pieces(path: Path, encoding: str, lines: int) -> Iterator[CsvText]:
    """Pieces of about this many lines; a line break within quotes ends none. A file without rows has no piece.

    Raises:
        DataError: the file cannot be read.
    """
    with open_text(path, encoding) as stream:
        all_lines = short_lines(stream, path)
        header, shift = _header(all_lines), 0
        while taken := list(islice(all_lines, lines)):
            text = "".join(taken)
            quotes, rest, room = text.count('"'), [], csv.field_size_limit()
            while quotes % 2 and room >= 0 and (line := next(all_lines, "")):  # a quote is open: its row goes on
                rest.append(line)
                quotes += line.count('"')
                room -= len(line)  # what is longer is no cell, and need not be held in memory to say so
            yield CsvText(path, encoding, header + text + "".join(rest), shift)
            shift += len(taken) + len(rest)


def _header(all_lines: Iterator[str]) -> str:
    """The lines up to and with the header."""
    lines, quotes = [], 0
    for line in all_lines:
        lines.append(line)
        quotes += line.count('"')
        if line.strip().strip('"').strip() and quotes % 2 == 0:
            break
    return "".join(lines)
