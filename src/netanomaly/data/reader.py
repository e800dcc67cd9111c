"""A file or a DataFrame becomes the wanted columns, or a clear error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.data.cells import CellFormat, Columns, Source, Where, check_columns, missing_numbers, to_numbers
from netanomaly.data.csv_reader import read_csv, read_csv_pieces, read_header
from netanomaly.errors import ConfigError, DataError
from netanomaly.files import other_kind

PARQUET = ".parquet"


def read_file(path: Path, columns: Columns, cells: CellFormat) -> Source:
    """The wanted columns of a CSV, CSV.gz or Parquet file.

    Raises:
        DataError: the file breaks the format; the message names file, row and column.
    """
    if path.suffix != PARQUET:
        return read_csv(path, columns, cells)
    with _parquet_errors(path):
        frame = pd.read_parquet(path).reset_index(drop=True)  # messages name rows of the file
    return take_frame(frame, columns, cells, str(path))


def read_file_pieces(path: Path, columns: Columns, cells: CellFormat, rows: int) -> Iterator[Source]:
    """The same, about this many rows at a time: a file may be larger than the memory.

    Raises:
        DataError: as `read_file`, when the reading gets there.
    """
    if path.suffix != PARQUET:
        yield from read_csv_pieces(path, columns, cells, rows)
        return
    with _parquet_errors(path):
        from pyarrow.parquet import ParquetFile

        file = ParquetFile(path)
    check_columns([str(name) for name in file.schema_arrow.names], columns, str(path), None)
    if file.metadata.num_rows == 0:
        raise DataError(f"{path}: no rows")
    with file:
        for first, frame in _parquet_pieces(path, file, columns, rows):
            frame.index = pd.RangeIndex(first, first + len(frame))  # messages name rows of the file
            yield take_frame(frame, columns, cells, str(path))


def _parquet_pieces(path: Path, file: Any, columns: Columns, rows: int) -> Iterator[tuple[int, pd.DataFrame]]:
    """The wanted columns of a Parquet file, with the number of each piece's first row."""
    batches, first = file.iter_batches(batch_size=rows, columns=list(dict.fromkeys(columns.all()))), 0
    while True:
        with _parquet_errors(path):
            batch = next(batches, None)
            frame = None if batch is None else batch.to_pandas()
        if frame is None:
            return
        yield first, frame
        first += len(frame)


def column_names(path: Path, cells: CellFormat) -> list[str]:
    """The columns that a CSV, CSV.gz or Parquet file has. Raises DataError as `read_file` does."""
    if path.suffix != PARQUET:
        return read_header(path, cells)
    with _parquet_errors(path):
        from pyarrow.parquet import read_schema

        return [str(name) for name in read_schema(path).names]


def take_frame(frame: pd.DataFrame, columns: Columns, cells: CellFormat, name: str = "frame") -> Source:
    """The wanted columns of a DataFrame, copied; metric columns may hold numbers or text.

    Raises:
        DataError: a column is missing or stands twice, or a cell is no finite number.
    """
    if not isinstance(frame, pd.DataFrame):
        raise DataError(f"{name}: expected a pandas DataFrame, found {type(frame).__name__}")
    header = [str(column) for column in frame.columns]
    check_columns(header, columns, name, None)
    for column in (*columns.text, *columns.numbers):
        if header.count(column) > 1:
            raise DataError(f"{name}: the column '{column}' stands twice in the frame")
    if frame.empty:
        raise DataError(f"{name}: no rows")
    index = frame.index

    def where(row: int) -> str:
        return f"{name}: row {index[row]}"

    by_name = {column: frame.iloc[:, header.index(column)].reset_index(drop=True) for column in columns.all()}
    taken: dict[str, object] = {column: by_name[column] for column in columns.text}
    for column in columns.numbers:
        taken[column] = _numbers(by_name[column], column, columns, cells, name, where)
    return Source(name, pd.DataFrame(taken), where)


def _numbers(
    values: pd.Series, column: str, columns: Columns, cells: CellFormat, name: str, where: Where
) -> NDArray[np.float64]:
    """A metric column of a frame as floats."""
    kind = values.dtype
    if pd.api.types.is_bool_dtype(kind) or pd.api.types.is_complex_dtype(kind):
        raise DataError(f"{name}: column '{column}': found values of type {kind}, expected numbers")
    if not pd.api.types.is_numeric_dtype(kind):
        return to_numbers(values, cells, column in columns.percent, column, where)
    numbers = np.array(values.to_numpy(dtype=np.float64, na_value=np.nan))  # a copy: the frame is the caller's
    numbers[np.isin(numbers, missing_numbers(cells))] = np.nan
    infinite = np.flatnonzero(np.isinf(numbers))
    if len(infinite):
        place = where(int(infinite[0]))
        raise DataError(f"{place}, column '{column}': found an infinite value; use NaN for 'not measured'")
    return numbers


@contextmanager
def _parquet_errors(path: Path) -> Iterator[None]:
    """Whatever can go wrong with a Parquet file, as an error of ours."""
    if (kind := other_kind(path)) is not None:
        raise DataError(f"{path}: is {kind}, not a regular file")
    try:
        yield
    except ImportError as error:
        raise ConfigError(f"{path}: reading Parquet needs pyarrow: pip install 'netanomaly[parquet]'") from error
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file (seen from {Path.cwd()})") from error
    except OSError as error:
        raise DataError(f"{path}: cannot read the file: {error.strerror or error}") from error
    except Exception as error:  # pyarrow's own errors share no base but Exception
        raise DataError(f"{path}: not a readable Parquet file: {' '.join(str(error).split())[:200]}") from error
