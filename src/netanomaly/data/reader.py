"""Strict reading: a CSV, a Parquet file or a DataFrame becomes text and number columns, or a clear error.

pandas parses fast but forgives much (short lines, `True` as 1, text columns that slip through). What it
forgives is checked here, and a slow pass with the csv module finds the line to name in the message.
"""

from __future__ import annotations

import csv
import difflib
import gzip
import warnings
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.data.cells import to_numbers
from netanomaly.errors import ConfigError, DataError

csv.field_size_limit(2**20)


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
        name: the path, or `frame`.
        frame: `text` columns as given, `numbers` as float64; one row per input row.
        places: what each row is called in messages: line numbers of a file, labels of a frame's index.
        skipped: bad lines left out on request.
    """

    name: str
    frame: pd.DataFrame
    places: NDArray[np.object_] | NDArray[np.int64]
    place_word: str = "line"
    skipped: int = 0

    def where(self, row: int) -> str:
        """The place of a row, as messages name it."""
        return f"{self.name}: {self.place_word} {self.places[row]}"


def read_header(path: Path, separator: str, encoding: str) -> list[str]:
    """The column names of a CSV, spaces around them removed.

    Raises:
        DataError: the file is missing, empty, unreadable, or names a column twice.
    """
    with _open_text(path, encoding) as stream:
        header = [name.strip() for name in next(csv.reader(stream, delimiter=separator), [])]
    if not header:
        raise DataError(f"{path}: the file is empty; expected a header line and rows")
    for name in header:
        if name and header.count(name) > 1:
            raise DataError(f"{path}: line 1: the column '{name}' stands twice in the header")
    return header


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
    return Source(str(path), frame, np.arange(len(frame), dtype=np.int64) + 2)


def take_frame(frame: pd.DataFrame, form: TableFormat, name: str = "frame") -> Source:
    """The wanted columns of a DataFrame, copied; metric columns may hold numbers or text.

    Raises:
        DataError: a column is missing or a cell is no finite number.
    """
    check_columns([str(column) for column in frame.columns], form, name, None)
    if frame.empty:
        raise DataError(f"{name}: no rows")
    source = Source(name, frame[[]].reset_index(drop=True), frame.index.to_numpy(), "row")
    columns: dict[str, object] = {column: frame[column].reset_index(drop=True) for column in form.text}
    for column in form.numbers:
        values = frame[column]
        if pd.api.types.is_bool_dtype(values):
            raise DataError(f"{name}: column '{column}': found true/false, expected numbers")
        if pd.api.types.is_numeric_dtype(values):
            numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
            infinite = np.flatnonzero(np.isinf(numbers))
            if len(infinite):
                place = source.where(int(infinite[0]))
                raise DataError(f"{place}, column '{column}': found an infinite value; use NaN for 'not measured'")
        else:
            numbers = to_numbers(values, form.missing, form.decimal, column in form.percent, column, source.where)
        columns[column] = numbers
    return Source(name, pd.DataFrame(columns), source.places, "row")


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
        if _separators(path, form) != (len(header) - 1) * (len(frame) + 1):
            return None  # a line is shorter than the header, or a quoted cell holds a separator
        numbers = frame[plain].to_numpy()
        if np.isinf(numbers).any() or _holds_booleans(path, header, form, plain, numbers):
            return None
    except (ValueError, pd.errors.ParserWarning, OSError, EOFError, zlib.error):
        return None
    where = Source(str(path), frame, np.arange(len(frame)) + 2).where
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
            encoding=_codec(form.encoding),
            header=0,
            names=list(header),
            usecols=[*text, *numbers],
            dtype={**dict.fromkeys(text, "str"), **dict.fromkeys(numbers, "float64")},
            na_values={column: list(form.missing) for column in numbers},  # type: ignore[arg-type]
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
    lines: list[int] = []
    skipped = 0
    with _open_text(path, form.encoding) as stream:
        reader = csv.reader(stream, delimiter=form.separator, strict=True)
        next(reader)
        line = reader.line_num + 1
        for fields in reader:
            if len(fields) == len(header):
                cells.append([fields[place] for place in places])
                lines.append(line)
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
    source = Source(str(path), frame, np.asarray(lines, dtype=np.int64), skipped=skipped)
    for column in form.numbers:
        frame[column] = to_numbers(
            frame[column], form.missing, form.decimal, column in form.percent, column, source.where
        )
    return source


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except ImportError as error:
        raise ConfigError(f"{path}: reading Parquet needs pyarrow: pip install 'netanomaly[parquet]'") from error
    except OSError as error:
        raise DataError(f"{path}: cannot read the file: {error.strerror or error}") from error
    except Exception as error:  # pyarrow's own errors share no base but Exception
        raise DataError(f"{path}: not a readable Parquet file: {' '.join(str(error).split())[:200]}") from error


@contextmanager
def _open_text(path: Path, encoding: str) -> Iterator[TextIO]:
    """The text of a plain or gzip file; whatever can go wrong on the way becomes a DataError."""
    try:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding=_codec(encoding), newline="") as stream:
            yield stream  # type: ignore[misc]
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: not {encoding} text (byte {error.object[error.start]:#04x}); set data.encoding"
        ) from error
    except LookupError as error:
        raise ConfigError(f"data.encoding: unknown encoding '{encoding}'") from error
    except csv.Error as error:
        raise DataError(f"{path}: not a readable CSV: {error}") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: the gzip file is damaged or cut short: {error}") from error
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file; relative paths start at data.root (--data-root)") from error
    except OSError as error:
        raise DataError(f"{path}: cannot read the file: {error.strerror or error}") from error


def _codec(encoding: str) -> str:
    """The codec for an encoding; UTF-8 may start with a byte-order mark."""
    return "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding


def _separators(path: Path, form: TableFormat) -> int:
    """How often the separator stands in the file; -1 if there are quotes, where counting does not help."""
    count = 0
    with _open_text(path, form.encoding) as stream:
        while block := stream.read(2**20):
            if '"' in block:
                return -1
            count += block.count(form.separator)
    return count


def _other_separator(header: Sequence[str], separator: str) -> str | None:
    """A hint if the header looks as if another character separated its columns."""
    for other in (";", "\t", "|", ","):
        if other != separator and len(header) <= 2 and other in separator.join(header):
            return f"the header looks separated by {other!r}: set data.separator"
    return None
