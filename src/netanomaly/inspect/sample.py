"""The first rows of files as text, with the place of each: what guesses are made from."""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.data.formula_cells import original
from netanomaly.data.reader import PARQUET
from netanomaly.data.text_files import open_text, short_lines
from netanomaly.errors import ConfigError, DataError
from netanomaly.inspect.dialect import decimal_of, sniff
from netanomaly.inspect.guesses import BadLines, Dialect


@dataclass(frozen=True)
class Sample:
    """Rows of some files with the same columns.

    Attributes:
        cells: text without spaces around it, in the order of the files. (rows, columns)
        file: which file each row is from. (rows,)
        lines: line of each row in its file, or row number in a Parquet file. (rows,)
        bad: lines with another number of fields.
        is_whole: whether these are all rows.
        obstacles: what is wrong with headers.
    """

    paths: tuple[Path, ...]
    header: tuple[str, ...]
    cells: pd.DataFrame
    file: NDArray[np.int64]
    lines: NDArray[np.int64]
    dialect: Dialect
    bad: BadLines
    is_whole: bool
    obstacles: tuple[str, ...]

    def where(self, row: int) -> str:
        """The place of a row as messages name it: `links.csv: line 12`."""
        path = self.paths[self.file[row]]
        return f"{path}: {'row' if path.suffix == PARQUET else 'line'} {self.lines[row]}"

    def place(self, row: int) -> str:
        """The same as short as it can be: `line 12` if there is one file only."""
        where = self.where(row)
        return where.rpartition(": ")[2] if len(self.paths) == 1 else where

    def __len__(self) -> int:
        return len(self.cells)


def read_sample(paths: Sequence[Path], rows: int = 0) -> Sample:
    """At most `rows` rows of the files, an equal share of each, or all for 0; columns that not all have are left out.

    Raises:
        DataError: a file cannot be read or is empty.
    """
    is_parquet = paths[0].suffix == PARQUET
    dialect = Dialect(is_text=False) if is_parquet else sniff(paths[0])
    share = max(100, rows // len(paths)) if rows else sys.maxsize
    parts = [_read_parquet(path, share) if path.suffix == PARQUET else _read(path, dialect, share) for path in paths]
    header = tuple(name for name in parts[0].header if all(name in part.header for part in parts))
    obstacles = [obstacle for part in parts for obstacle in part.obstacles]
    for path, part in zip(paths, parts, strict=True):
        lacking = [name for name in parts[0].header if name not in part.header]
        if lacking:
            obstacles.append(f"{path}: has no column '{lacking[0]}', which {paths[0]} has; inspect them apart")
    cells = pd.concat([part.cells[list(header)] for part in parts], ignore_index=True)
    decimal, notes = decimal_of(cells, dialect.separator)
    return Sample(
        paths=tuple(paths),
        header=header,
        cells=cells,
        file=np.repeat(np.arange(len(parts)), [len(part) for part in parts]),
        lines=np.concatenate([part.lines for part in parts]),
        dialect=replace(dialect, decimal=decimal, notes=(*dialect.notes, *notes)),
        bad=BadLines(sum(p.bad.count for p in parts), next((p.bad.first for p in parts if p.bad.count), "")),
        is_whole=all(part.is_whole for part in parts),
        obstacles=tuple(obstacles),
    )


def _read(path: Path, dialect: Dialect, limit: int) -> Sample:
    header: list[str] = []
    rows: list[list[str]] = []
    lines: list[int] = []
    bad, first_bad, is_whole, line = 0, "", True, 1
    with open_text(path, dialect.encoding) as stream:
        reader = csv.reader(short_lines(stream, path), delimiter=dialect.separator)
        for fields in reader:
            start, line = line, reader.line_num + 1
            if not any(fields) and len(fields) < 2:
                continue
            if not header:
                header = [original(name.strip()) for name in fields]
            elif len(fields) == len(header):
                rows.append([original(cell.strip()) for cell in fields])
                lines.append(start)
            else:
                bad += 1
                shown = dialect.separator.join(fields)[:60]
                first_bad = first_bad or f"{path}: line {start} has {len(fields)} fields, not {len(header)}: '{shown}'"
            if len(rows) + bad >= limit:
                is_whole = next(reader, None) is None
                break
    problems = _problems(path, header, len(rows), bad, first_bad)
    places = {name: place for place, name in reversed(list(enumerate(header)))}  # of several the first
    unique = list(dict.fromkeys(header))
    cells = pd.DataFrame(rows, columns=range(len(header)), dtype="str")[[places[name] for name in unique]]
    cells.columns = pd.Index(unique)
    numbers = np.array(lines, dtype=np.int64)
    zeros = np.zeros(len(rows), dtype=np.int64)
    return Sample(
        (path,), tuple(unique), cells, zeros, numbers, dialect, BadLines(bad, first_bad), is_whole, tuple(problems)
    )


def _problems(path: Path, header: Sequence[str], rows: int, bad: int, first_bad: str) -> list[str]:
    """Why a file with this header cannot be read, each with what to do."""
    if not header:
        raise DataError(f"{path}: the file is empty; expected a header line and rows")
    problems = []
    if len(header) == 1:
        problems.append(f"{path}: line 1: one column only ('{header[0][:40]}'); a wide table has a time and metrics")
    for name, count in Counter(header).items():
        if name and count > 1:
            problems.append(f"{path}: line 1: the column '{name}' stands twice in the header; rename one")
    if bad > rows:
        problems.append(
            f"{first_bad}; {bad} of {rows + bad} lines have another number of fields than the header, so values would "
            "get the wrong names; give every field its name in line 1"
        )
    elif rows == 0:
        problems.append(f"{path}: only a header and no rows")
    return problems


def _read_parquet(path: Path, limit: int) -> Sample:
    """Every cell as it would be written in a CSV; missing ones are empty."""
    try:
        from pyarrow.parquet import ParquetFile

        with ParquetFile(path) as file:
            wanted = min(limit, file.metadata.num_rows)
            batches: list[pd.DataFrame] = [file.schema_arrow.empty_table().to_pandas()]
            for batch in file.iter_batches(batch_size=max(1, wanted)):  # which may end with each row group
                batches.append(batch.to_pandas())
                if sum(map(len, batches)) >= wanted:
                    break
            frame = pd.concat([part for part in batches if len(part)] or batches).head(wanted)
            is_whole = wanted == file.metadata.num_rows
    except ImportError as error:
        raise ConfigError(f"{path}: reading Parquet needs pyarrow: pip install 'netanomaly[parquet]'") from error
    except Exception as error:  # pyarrow's own errors share no base but Exception
        raise DataError(f"{path}: not a readable Parquet file: {' '.join(str(error).split())[:200]}") from error
    header = tuple(str(name) for name in frame.columns)
    cells = frame.astype(object).where(frame.notna(), "").astype(str).astype("str")
    cells.columns = pd.Index(header)
    problems = () if len(frame) else (f"{path}: no rows",)
    rows = np.arange(len(frame))
    zeros = np.zeros(len(frame), dtype=np.int64)
    return Sample(
        (path,),
        header,
        cells.reset_index(drop=True),
        zeros,
        rows,
        Dialect(is_text=False),
        BadLines(),
        is_whole,
        problems,
    )
