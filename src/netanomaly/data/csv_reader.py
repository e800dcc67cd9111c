"""Strict reading of CSV files.

pandas parses fast but forgives much: short and long lines, `True` as 1, text columns that slip through. What it
forgives is checked here, and where something is wrong a slow pass with the csv module says what and on which line.
"""

from __future__ import annotations

import csv
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.data.cells import CellFormat, Columns, Source, Where, check_columns, to_numbers
from netanomaly.data.csv_pieces import CsvText, pieces
from netanomaly.data.formula_cells import original
from netanomaly.data.text_files import codec, open_text, short_lines
from netanomaly.errors import DataError

if TYPE_CHECKING:
    from _csv import Reader


def read_header(path: Path, cells: CellFormat) -> list[str]:
    """The column names of a CSV, spaces around them removed.

    Raises:
        DataError: the file is missing, empty, unreadable, or names a column twice.
    """
    with open_text(path, cells.encoding) as stream:
        header = _names(csv.reader(short_lines(stream, path), delimiter=cells.separator), path)
    if not header:
        raise DataError(f"{path}: the file is empty; expected a header line and rows")
    for name, count in Counter(header).items():
        if name and count > 1:
            raise DataError(f"{path}: line 1: the column '{name}' stands twice in the header")
    return header


def read_csv(path: Path, columns: Columns, cells: CellFormat) -> Source:
    """The wanted columns of a CSV or CSV.gz file.

    Raises:
        DataError: the file breaks the format; the message names file, line and column.
    """
    source = _read(CsvText(path, cells.encoding), _checked_header(path, columns, cells), columns, cells)
    if source.frame.empty:
        raise _no_rows(path, source.skipped)
    return source


def read_csv_pieces(path: Path, columns: Columns, cells: CellFormat, lines: int) -> Iterator[Source]:
    """The same, about this many lines at a time: a file may be larger than the memory.

    Raises:
        DataError: as `read_csv`, when the reading gets there.
    """
    header = _checked_header(path, columns, cells)
    rows = skipped = 0
    for text in pieces(path, cells.encoding, lines, cells.separator):
        source = _read(text, header, columns, cells)
        rows, skipped = rows + len(source.frame), skipped + source.skipped
        yield source
    if not rows:
        raise _no_rows(path, skipped)


def read_csv_text(text: CsvText, columns: Columns, cells: CellFormat) -> Source:
    """The wanted columns of a piece of text with its header line; it may have no rows."""
    with text.open() as stream:
        header = _names(csv.reader(stream, delimiter=cells.separator), text.path)
    check_columns(header, columns, f"{text.path}: line 1", _other_separator(header, cells.separator))
    return _read(text, header, columns, cells)


def _checked_header(path: Path, columns: Columns, cells: CellFormat) -> list[str]:
    header = read_header(path, cells)
    check_columns(header, columns, f"{path}: line 1", _other_separator(header, cells.separator))
    return header


def _read(text: CsvText, header: Sequence[str], columns: Columns, cells: CellFormat) -> Source:
    """The wanted columns of a text with this header; it may have no rows."""
    frame = None if cells.skip_bad_lines else _read_fast(text, header, columns, cells)
    if frame is None:
        source = _read_slowly(text, header, columns, cells)
    else:
        source = Source(str(text.path), frame, _line_finder(text, len(header), cells))
    if text.text is None or "'" in text.text:
        _unmark(source.frame, columns.text)
    return source


def _unmark(frame: pd.DataFrame, texts: Sequence[str]) -> None:
    """Take away the quotes that keep spreadsheets from running a text."""
    for column in texts:
        is_marked = frame[column].str.startswith("'").to_numpy(dtype=bool)
        if is_marked.any():
            frame.loc[is_marked, column] = [original(cell) for cell in frame.loc[is_marked, column]]


def _no_rows(path: Path, skipped: int) -> DataError:
    return DataError(f"{path}: only a header and no rows" + (f" ({skipped} bad lines skipped)" if skipped else ""))


def _names(reader: Reader, path: Path) -> list[str]:
    """The names in the first line that is not blank."""
    try:
        return [original(name.strip()) for name in _first_line(reader)]
    except csv.Error as error:
        raise DataError(f"{path}: line {reader.line_num}: not a readable header of a CSV: {error}") from error


def _first_line(reader: Iterator[list[str]]) -> list[str]:
    """The fields of the first line that is not blank; none if there is no such line."""
    return next((fields for fields in reader if not _is_blank(fields)), [])


def _lines(reader: Reader, text: CsvText) -> Iterator[tuple[int, list[str]]]:
    """The lines after the header that are not blank, each with the number of the line on which it starts."""
    line = 1
    try:
        _first_line(reader)
        line = reader.line_num + text.shift + 1
        for fields in reader:
            if not _is_blank(fields):
                yield line, fields
            line = reader.line_num + text.shift + 1
    except csv.Error as error:
        raise DataError(f"{text.path}: line {line}: not a readable line of a CSV: {error}") from error


def _is_blank(fields: Sequence[str]) -> bool:
    """Whether a line is empty or of spaces; one with an empty field in quotes is neither."""
    return len(fields) == 0 or (len(fields) == 1 and fields[0] != "" and not fields[0].strip())


def _read_fast(text: CsvText, header: Sequence[str], columns: Columns, cells: CellFormat) -> pd.DataFrame | None:
    """The columns as pandas parses them, or None where only a slow, exact pass can tell what is wrong."""
    plain = [column for column in columns.numbers if column not in columns.percent]
    as_text = [*columns.text, *columns.percent]
    try:
        if not _lines_are_whole(text, len(header), cells):
            return None
        frame = _parse(text, header, cells, as_text, plain)
        numbers = frame[plain].to_numpy()
        if np.isinf(numbers).any() or _holds_booleans(text, header, cells, plain, numbers):
            return None
    except (ValueError, pd.errors.ParserWarning, OSError, EOFError, zlib.error):
        return None
    for column in columns.percent:
        frame[column] = to_numbers(frame[column], cells, True, column, _line_finder(text, len(header), cells))
    return frame


def _parse(
    text: CsvText, header: Sequence[str], cells: CellFormat, as_text: Sequence[str], numbers: Sequence[str]
) -> pd.DataFrame:
    """pandas' C parser, with nothing taken for missing in columns of text."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # it warns where it drops data
        return pd.read_csv(
            text.for_pandas(),
            sep=cells.separator,
            decimal=cells.decimal,
            encoding=codec(cells.encoding),
            header=0,
            names=list(header),
            usecols=[*as_text, *numbers],
            dtype={**dict.fromkeys(as_text, "str"), **dict.fromkeys(numbers, "float64")},
            na_values={column: list(cells.missing) for column in numbers},
            keep_default_na=False,
            index_col=False,
        )


def _lines_are_whole(text: CsvText, columns: int, cells: CellFormat) -> bool:
    """Whether every line has exactly a field for each column: pandas fills short lines and cuts long ones."""
    if text.text is not None and _is_plain(text.text, columns, cells.separator):
        return True
    with text.open() as stream:
        for line in short_lines(stream, text.path):
            if '"' in line:
                break
            if line.count(cells.separator) != columns - 1 and line.strip(" \r\n"):
                return False
        else:
            return True
        stream.seek(0)  # a separator inside quotes does not count: let the csv module decide
        lines = csv.reader(short_lines(stream, text.path), delimiter=cells.separator, strict=True)
        try:
            return all(len(fields) == columns or not fields for fields in lines)
        except csv.Error:
            return False  # the slow pass tells the line


def _is_plain(text: str, columns: int, separator: str) -> bool:
    """Whether separators and line ends alternate as they do in lines that are whole and hold no quotes."""
    if '"' in text or text.count("\r") != text.count("\r\n") or not separator.isascii():
        return False
    content = np.frombuffer(text.encode(), dtype=np.uint8)
    if not text.endswith("\n"):
        content = np.append(content, np.uint8(ord("\n")))
    marks = content[(content == ord(separator)) | (content == ord("\n"))]
    line = np.array([ord(separator)] * (columns - 1) + [ord("\n")], dtype=np.uint8)
    return len(marks) % columns == 0 and bool((marks.reshape(-1, columns) == line).all())


def _holds_booleans(
    text: CsvText, header: Sequence[str], cells: CellFormat, columns: Sequence[str], numbers: NDArray[np.float64]
) -> bool:
    """Whether a column holds the words True and False, which pandas takes for 1 and 0 without a word."""
    is_suspect = ((numbers == 0) | (numbers == 1) | np.isnan(numbers)).all(axis=0)
    suspects = [column for column, suspect in zip(columns, is_suspect, strict=True) if suspect]
    if not suspects:
        return False
    texts = _parse(text, header, cells, suspects, [])
    return any(bool(texts[column].str.strip().str.lower().isin(["true", "false"]).any()) for column in suspects)


def _read_slowly(text: CsvText, header: Sequence[str], columns: Columns, cells: CellFormat) -> Source:
    """Every line through the csv module: exact line numbers, every cell checked."""
    wanted = [*columns.text, *columns.numbers]
    places = [header.index(column) for column in wanted]
    rows: list[list[str]] = []
    skipped = 0
    with text.open() as stream:
        lines = short_lines(stream, text.path)
        for line, fields in _lines(csv.reader(lines, delimiter=cells.separator, strict=True), text):
            if len(fields) == len(header):
                rows.append([fields[place] for place in places])
            elif cells.skip_bad_lines:
                skipped += 1
            else:
                raise DataError(
                    f"{text.path}: line {line}: found {len(fields)} fields, the header has {len(header)}"
                    f" ('{cells.separator.join(fields)[:60]}'); data.bad_lines: skip leaves such lines out"
                )
    frame = pd.DataFrame(rows, columns=wanted, dtype="str")
    where = _line_finder(text, len(header), cells)
    for column in columns.numbers:
        frame[column] = to_numbers(frame[column], cells, column in columns.percent, column, where)
    return Source(str(text.path), frame, where, skipped)


def _line_finder(text: CsvText, columns: int, cells: CellFormat) -> Where:
    """Finds the line on which a row starts by reading the file again: exact, with blank lines and quoted breaks."""

    def where(row: int) -> str:
        line = 0
        with text.open() as stream:
            for line, fields in _lines(csv.reader(stream, delimiter=cells.separator), text):  # noqa: B007
                row -= len(fields) == columns
                if row < 0:
                    break
        return f"{text.path}: line {line}"

    return where


def _other_separator(header: Sequence[str], separator: str) -> str | None:
    """A hint if the header looks as if another character separated its columns."""
    for other in (";", "\t", "|", ","):
        if other != separator and len(header) <= 2 and other in separator.join(header):
            return f"the header looks separated by {other!r}: set data.separator: {other!r}"
    return None
