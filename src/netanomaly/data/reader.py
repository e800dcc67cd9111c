"""Strict reading: a CSV, a Parquet file or a DataFrame becomes text and number columns, or a clear error.

pandas parses fast but forgives much (short lines, `True` as 1, text columns that slip through). What it
forgives is checked here, and a slow pass with the csv module finds the line to name in the message.
"""

from __future__ import annotations

import csv
import difflib
import warnings
import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.data.cells import Where, to_numbers
from netanomaly.data.text_files import codec, open_text
from netanomaly.errors import ConfigError, DataError


@dataclass(frozen=True)
class TableFormat:
    """How cells are written, and which columns to take from a file.

    Attributes:
        text: columns kept as text (time, series, label).
        numbers: metric columns, made floats; NaN where missing.
        percent: those of `numbers` whose cells may end in a percent sign.
    """

    text: tuple[str, ...]
    numbers: tuple[str, ...]
    percent: frozenset[str] = frozenset()
    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    missing: tuple[str, ...] = ("", "NaN", "nan")
    skip_bad_lines: bool = False


@dataclass(frozen=True)
class Source:
    """The wanted columns of one file or frame.

    Attributes:
        name: the path, or what a frame is called.
        frame: `text` columns as given, `numbers` as float64; one row per input row.
        where: the place of a row as messages name it, `links.csv: line 12`; looked up when an error needs it.
        skipped: bad lines left out on request.
    """

    name: str
    frame: pd.DataFrame
    where: Where
    skipped: int = 0


def read_header(path: Path, separator: str, encoding: str) -> list[str]:
    """The column names of a CSV, spaces around them removed.

    Raises:
        DataError: the file is missing, empty, unreadable, or names a column twice.
    """
    with open_text(path, encoding) as stream:
        header = [name.strip() for name in _first_line(csv.reader(stream, delimiter=separator))]
    if not header:
        raise DataError(f"{path}: the file is empty; expected a header line and rows")
    for name in header:
        if name and header.count(name) > 1:
            raise DataError(f"{path}: line 1: the column '{name}' stands twice in the header")
    return header


def _first_line(reader: Iterator[list[str]]) -> list[str]:
    """The fields of the first line that is not blank; none if there is no such line."""
    return next((fields for fields in reader if fields), [])


def read_file(path: Path, form: TableFormat) -> Source:
    """The wanted columns of a CSV, CSV.gz or Parquet file.

    Raises:
        DataError: the file breaks the format; the message names file, line and column.
    """
    if path.suffix == ".parquet":
        return take_frame(_read_parquet(path), form, str(path))
    header = read_header(path, form.separator, form.encoding)
    check_columns(header, form, f"{path}: line 1", _other_separator(header, form.separator))
    if form.skip_bad_lines:
        return _read_slowly(path, header, form)
    frame = _read_fast(path, header, form)
    if frame is None:
        return _read_slowly(path, header, form)
    if frame.empty:
        raise DataError(f"{path}: only a header and no rows")
    return Source(str(path), frame, _line_finder(path, form))


def take_frame(frame: pd.DataFrame, form: TableFormat, name: str = "frame") -> Source:
    """The wanted columns of a DataFrame, copied; metric columns may hold numbers or text.

    Raises:
        DataError: a column is missing or a cell is no finite number.
    """
    check_columns([str(column) for column in frame.columns], form, name, None)
    if frame.empty:
        raise DataError(f"{name}: no rows")
    index = frame.index

    def where(row: int) -> str:
        return f"{name}: row {index[row]}"

    columns: dict[str, object] = {column: frame[column].reset_index(drop=True) for column in form.text}
    for column in form.numbers:
        values = frame[column]
        if pd.api.types.is_bool_dtype(values):
            raise DataError(f"{name}: column '{column}': found true/false, expected numbers")
        if pd.api.types.is_numeric_dtype(values):
            numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
            infinite = np.flatnonzero(np.isinf(numbers))
            if len(infinite):
                place = where(int(infinite[0]))
                raise DataError(f"{place}, column '{column}': found an infinite value; use NaN for 'not measured'")
        else:
            numbers = to_numbers(values, form.missing, form.decimal, column in form.percent, column, where)
        columns[column] = numbers
    return Source(name, pd.DataFrame(columns), where)


def check_columns(header: Collection[str], form: TableFormat, name: str, hint: str | None) -> None:
    """Raise a DataError unless every wanted column is in the header."""
    for column in (*form.text, *form.numbers):
        if column not in header:
            close = difflib.get_close_matches(column, header, n=1)
            seen = ", ".join(list(header)[:12]) + (", ..." if len(header) > 12 else "")
            advice = hint or (
                f"did you mean '{close[0]}'?" if close else "name it in data.metrics, timestamp or series"
            )
            raise DataError(f"{name}: no column '{column}'; found {seen}; {advice}")


def _read_fast(path: Path, header: Sequence[str], form: TableFormat) -> pd.DataFrame | None:
    """The columns as pandas parses them, or None where only a slow, exact pass can tell what is wrong."""
    plain = [column for column in form.numbers if column not in form.percent]
    text = [*form.text, *form.percent]
    try:
        frame = _parse(path, header, form, text, plain)
        if not _lines_are_whole(path, len(header), len(frame), form):
            return None
        numbers = frame[plain].to_numpy()
        if np.isinf(numbers).any() or _holds_booleans(path, header, form, plain, numbers):
            return None
    except (ValueError, pd.errors.ParserWarning, OSError, EOFError, zlib.error):
        return None
    where = _line_finder(path, form)
    for column in form.percent:
        frame[column] = to_numbers(frame[column], form.missing, form.decimal, True, column, where)
    return frame


def _parse(
    path: Path, header: Sequence[str], form: TableFormat, text: Sequence[str], numbers: Sequence[str]
) -> pd.DataFrame:
    """pandas' C parser, with nothing taken for missing in columns of text."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # it warns where it drops data
        return pd.read_csv(
            path,
            sep=form.separator,
            decimal=form.decimal,
            encoding=codec(form.encoding),
            header=0,
            names=list(header),
            usecols=[*text, *numbers],
            dtype={**dict.fromkeys(text, "str"), **dict.fromkeys(numbers, "float64")},
            na_values={column: list(form.missing) for column in numbers},
            keep_default_na=False,
            index_col=False,
        )


def _holds_booleans(
    path: Path, header: Sequence[str], form: TableFormat, columns: Sequence[str], numbers: NDArray[np.float64]
) -> bool:
    """Whether a column holds the words True and False, which pandas takes for 1 and 0 without a word."""
    is_suspect = ((numbers == 0) | (numbers == 1) | np.isnan(numbers)).all(axis=0)
    suspects = [column for column, suspect in zip(columns, is_suspect, strict=True) if suspect]
    if not suspects:
        return False
    cells = _parse(path, header, form, suspects, [])
    return any(bool(cells[column].str.strip().str.lower().isin(["true", "false"]).any()) for column in suspects)


def _read_slowly(path: Path, header: Sequence[str], form: TableFormat) -> Source:
    """Every line through the csv module: exact line numbers, every cell checked."""
    wanted = [*form.text, *form.numbers]
    places = [header.index(column) for column in wanted]
    cells: list[list[str]] = []
    skipped = 0
    with open_text(path, form.encoding) as stream:
        reader = csv.reader(stream, delimiter=form.separator, strict=True)
        _first_line(reader)
        line = reader.line_num + 1
        for fields in reader:
            if len(fields) == len(header):
                cells.append([fields[place] for place in places])
            elif form.skip_bad_lines:
                skipped += 1
            elif fields:
                raise DataError(
                    f"{path}: line {line}: found {len(fields)} fields, the header has {len(header)}"
                    f" ('{form.separator.join(fields)[:60]}'); data.bad_lines: skip leaves such lines out"
                )
            line = reader.line_num + 1
    if not cells:
        raise DataError(f"{path}: only a header and no rows" + (f" ({skipped} bad lines skipped)" if skipped else ""))
    frame = pd.DataFrame(cells, columns=wanted, dtype="str")
    where = _line_finder(path, form)
    for column in form.numbers:
        percent = column in form.percent
        frame[column] = to_numbers(frame[column], form.missing, form.decimal, percent, column, where)
    return Source(str(path), frame, where, skipped)


def _line_finder(path: Path, form: TableFormat) -> Where:
    """Finds the line on which a row starts by reading the file again: exact, with blank lines and quoted breaks."""

    def where(row: int) -> str:
        with open_text(path, form.encoding) as stream:
            reader = csv.reader(stream, delimiter=form.separator)
            fields = len(_first_line(reader))
            line = reader.line_num + 1
            for found in reader:
                row -= len(found) == fields
                if row < 0:
                    break
                line = reader.line_num + 1
        return f"{path}: line {line}"

    return where


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except ImportError as error:
        raise ConfigError(f"{path}: reading Parquet needs pyarrow: pip install 'netanomaly[parquet]'") from error
    except OSError as error:
        raise DataError(f"{path}: cannot read the file: {error.strerror or error}") from error
    except Exception as error:  # pyarrow's own errors share no base but Exception
        raise DataError(f"{path}: not a readable Parquet file: {' '.join(str(error).split())[:200]}") from error


def _lines_are_whole(path: Path, columns: int, rows: int, form: TableFormat) -> bool:
    """Whether every line has a field for each column; pandas fills short lines up without a word.

    It refuses longer lines, so a file without quotes can be checked by counting separators.
    """
    count = 0
    with open_text(path, form.encoding) as stream:
        while block := stream.read(2**20):
            if '"' in block:
                break
            count += block.count(form.separator)
        else:
            return count == (columns - 1) * (rows + 1)
        stream.seek(0)
        lines = csv.reader(stream, delimiter=form.separator, strict=True)
        return all(len(fields) == columns for fields in lines if fields)


def _other_separator(header: Sequence[str], separator: str) -> str | None:
    """A hint if the header looks as if another character separated its columns."""
    for other in (";", "\t", "|", ","):
        if other != separator and len(header) <= 2 and other in separator.join(header):
            return f"the header looks separated by {other!r}: set data.separator"
    return None
