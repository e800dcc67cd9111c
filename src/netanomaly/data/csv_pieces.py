"""A CSV as one text or as pieces of whole lines, each with the header in front: read alike, whatever its size."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
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


def pieces(path: Path, encoding: str, lines: int, separator: str) -> Iterator[CsvText]:
    """Pieces of about this many lines; a line break within quotes ends none. A file without rows has no piece.

    Raises:
        DataError: the file cannot be read.
    """
    with open_text(path, encoding) as stream:
        all_lines = short_lines(stream, path)
        header, shift = _header(all_lines), 0
        while taken := list(islice(all_lines, lines)):
            if any('"' in line for line in taken):
                taken += _rest_of_row(taken, all_lines, separator)
            yield CsvText(path, encoding, header + "".join(taken), shift)
            shift += len(taken)


def _rest_of_row(taken: Sequence[str], following: Iterator[str], separator: str) -> list[str]:
    """The lines that the last row of those taken goes on over; only the csv module knows which quotes are open."""
    rest: list[str] = []

    def lines() -> Iterator[str]:
        yield from taken
        for line in following:
            rest.append(line)
            yield line

    rows = csv.reader(lines(), delimiter=separator, strict=True)
    with suppress(csv.Error):  # whoever reads the piece says what is wrong, and where
        while rows.line_num < len(taken) and next(rows, None) is not None:
            pass
    return rest


def _header(all_lines: Iterator[str]) -> str:
    """The lines up to and with the header."""
    lines, quotes = [], 0
    for line in all_lines:
        lines.append(line)
        quotes += line.count('"')
        if line.strip().strip('"').strip() and quotes % 2 == 0:
            break
    return "".join(lines)
