"""From lines to tables: what can be read is, whatever stands between it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from netanomaly.data.csv_pieces import CsvText
from netanomaly.data.csv_reader import read_csv_text
from netanomaly.data.ingest import InputFormat, Table, table_of_source
from netanomaly.errors import DataError
from netanomaly.watch.counts import BROKEN, HEADER, LeftOut

BLANK = "\n"
"""In the place of a line that is left out: the others keep their numbers."""


class RowReader:
    """Reads the lines of a CSV a batch at a time.

    Args:
        name: of the input, in messages.
        header: line that names the columns.

    Attributes:
        header: of the lines that come next; another header among the lines takes its place.

    Raises:
        DataError: a column is missing in the header.
    """

    def __init__(self, name: Path, encoding: str, header: str, form: InputFormat, left_out: LeftOut) -> None:
        self.header = header
        self._name, self._encoding, self._form, self._left_out = name, encoding, form, left_out
        self._columns = form.columns()
        self._read([], 0, header)

    def tables(self, lines: Sequence[str], shift: int) -> Iterator[Table]:
        """The rows of some lines, in order.

        Args:
            shift: lines of the file between its header and these.
        """
        piece: list[str] = []
        start = shift
        for place, line in enumerate(lines):
            if '"' in line and self._fields(line) is None:  # it would swallow the lines up to the next quote
                piece.append(BLANK)
                self._left_out.add(BROKEN, self._why(line, shift + place))
            elif self._form.time_columns[0] in line and self._is_header(line):
                yield from self._rows(piece, start)
                start, piece = start + len(piece) + 1, []
                if line.strip() != self.header.strip():
                    self.header = line
                self._left_out.add(HEADER, str)
            else:
                piece.append(line)
        yield from self._rows(piece, start)

    def _is_header(self, line: str) -> bool:
        """Whether a line names the columns."""
        bare = line.removeprefix("\ufeff")
        if bare.strip() == self.header.strip():
            return True
        try:
            self._read([], 0, bare)
        except DataError:
            return False
        return True

    def _rows(self, lines: list[str], shift: int) -> Iterator[Table]:
        """The rows of lines behind one header; those that cannot be read are left out."""
        if not any(line.strip() for line in lines):
            return
        try:
            table, skipped = self._read(lines, shift, self.header)
        except DataError as error:
            if len(lines) == 1:
                self._leave_out(str(error))
                return
            yield from self._sifted(lines, shift)
            return
        for _ in range(skipped):
            self._left_out.add(BROKEN, lambda: f"{self._name}: a line with another number of fields")
        if table is not None:
            yield table

    def _leave_out(self, said: str) -> None:
        self._left_out.add(BROKEN, lambda: said)

    def _sifted(self, lines: list[str], shift: int) -> Iterator[Table]:
        """The same where a line cannot be read: first without those that surely cannot, then half by half."""
        good = list(lines)
        for place, line in enumerate(lines):
            if self._is_hopeless(line):
                good[place] = BLANK
                self._left_out.add(BROKEN, self._why(line, shift + place))
        if good != lines:
            yield from self._rows(good, shift)
            return
        middle = len(lines) // 2
        yield from self._rows(lines[:middle], shift)
        yield from self._rows(lines[middle:], shift + middle)

    def _why(self, line: str, shift: int) -> Callable[[], str]:
        def said() -> str:
            try:
                self._read([line], shift, self.header)
            except DataError as error:
                return str(error)
            return f"{self._name}: line {shift + 2}: not a row"

        return said

    def _is_hopeless(self, line: str) -> bool:
        """Whether a line surely cannot be read, which is seen at a glance; of others only the reader knows."""
        cells, header, fields = self._form.cells, self._fields(self.header), self._fields(line)
        if not line.strip() or header is None:
            return False
        if fields is None or len(fields) != len(header):
            return not cells.skip_bad_lines
        row = dict(zip((name.strip() for name in header), (field.strip() for field in fields), strict=True))
        missing = {marker.strip() for marker in cells.missing}
        number = any(row[name] not in missing and not _has_digit(row[name]) for name in self._columns.numbers)
        return number or not _has_digit(" ".join(row[name] for name in self._form.time_columns))

    def _fields(self, line: str) -> list[str] | None:
        """The fields of a line; None if a quote is left open: here a line is a row."""
        if '"' not in line:
            return line.rstrip("\r\n").split(self._form.cells.separator)
        try:
            return next(csv.reader([line], delimiter=self._form.cells.separator, strict=True), None)
        except csv.Error:
            return None

    def _read(self, lines: Sequence[str], shift: int, header: str) -> tuple[Table | None, int]:
        """The rows, None if there are none, and how many lines were skipped because they may be.

        Raises:
            DataError: a line cannot be read.
        """
        first = header if header.endswith("\n") else f"{header}\n"
        text = CsvText(self._name, self._encoding, first + "".join(lines), shift)
        _refuse_bytes(text)
        source = read_csv_text(text, self._columns, self._form.cells)
        return (None if source.frame.empty else table_of_source(source, self._form)), source.skipped


def _has_digit(text: str) -> bool:
    return any(character.isdigit() for character in text)


def _refuse_bytes(text: CsvText) -> None:
    """Raise a DataError at bytes that the encoding does not know; reading has made lone surrogates of them."""
    for number, line in enumerate(io.StringIO(text.text, "")):
        if not line.isascii() and any("\udc80" <= character <= "\udcff" for character in line):
            raise DataError(f"{text.path}: line {text.shift + number + 1}: not {text.encoding} text; set data.encoding")
