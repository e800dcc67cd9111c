"""Cells and columns of a table: what is wanted, how it is written, and strict conversion to numbers."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.errors import DataError

_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")

Where = Callable[[int], str]
"""Names the place of a row in its source: `links.csv: line 12`."""


@dataclass(frozen=True)
class CellFormat:
    """How the cells of a text file are written."""

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    missing: tuple[str, ...] = ("", "NaN", "nan")
    skip_bad_lines: bool = False


@dataclass(frozen=True)
class Columns:
    """The columns to take.

    Attributes:
        text: kept as text (time, series, label).
        numbers: metric columns, made floats; NaN where missing.
        percent: those of `numbers` whose cells may end in a percent sign.
    """

    text: tuple[str, ...]
    numbers: tuple[str, ...] = ()
    percent: frozenset[str] = frozenset()

    def all(self) -> tuple[str, ...]:
        """Every column."""
        return (*self.text, *self.numbers)


@dataclass(frozen=True)
class Source:
    """The wanted columns of one file or frame.

    Attributes:
        name: the path, or what a frame is called.
        frame: text columns as given, number columns as float64; one row per input row.
        where: the place of a row, looked up when an error needs it.
        skipped: bad lines left out on request.
    """

    name: str
    frame: pd.DataFrame
    where: Where
    skipped: int = 0


def check_columns(header: Collection[str], columns: Columns, name: str, hint: str | None) -> None:
    """Raise a DataError unless every wanted column is in the header."""
    for column in columns.all():
        if column not in header:
            close = difflib.get_close_matches(column, header, n=1)
            seen = ", ".join(list(header)[:12]) + (", ..." if len(header) > 12 else "")
            advice = (
                f"did you mean '{close[0]}'?"
                if close
                else "check data.metrics, data.timestamp, data.series and data.label"
            )
            raise DataError(f"{name}: no column '{column}'; found {seen}; {hint or advice}")


def to_numbers(texts: pd.Series, cells: CellFormat, percent: bool, column: str, where: Where) -> NDArray[np.float64]:
    """Floats of a column of text, NaN where a cell is one of `cells.missing`; shape (rows,).

    Raises:
        DataError: a cell is neither a finite number nor a missing marker; names the first one.
    """
    stripped = as_text(texts)
    is_missing = stripped.isin([marker.strip() for marker in cells.missing]).to_numpy(dtype=bool)
    bare = _with_point(stripped, cells.decimal, percent)
    is_number = bare.str.fullmatch(_NUMBER).to_numpy(dtype=bool)
    values = np.full(len(bare), np.nan)
    taken = is_number & ~is_missing
    values[taken] = bare[taken].to_numpy(dtype=np.float64)
    values[np.isin(values, missing_numbers(cells))] = np.nan
    is_missing = is_missing | (is_number & np.isnan(values))
    bad = np.flatnonzero(~is_missing & ~(is_number & np.isfinite(values)))
    if len(bad):
        row = int(bad[0])
        raise DataError(f"{where(row)}, column '{column}': {_explain(str(stripped.iloc[row]), cells.decimal, percent)}")
    return values


def missing_numbers(cells: CellFormat) -> list[float]:
    """The missing markers that are numbers, such as -1: they stand for nothing in columns of numbers as well."""
    return [float(marker) for marker in cells.missing if _NUMBER.fullmatch(marker.strip())]


def as_text(cells: pd.Series) -> pd.Series:
    """Cells of any type as text without spaces around it, empty where there is none."""
    if isinstance(cells.dtype, pd.StringDtype) and not cells.hasnans:
        return cells.str.strip()
    return cells.astype(object).where(cells.notna(), "").astype(str).str.strip()


def _with_point(stripped: pd.Series, decimal: str, percent: bool) -> pd.Series:
    """The cells as Python writes numbers; with a decimal comma a point is no decimal mark and spoils the cell."""
    if percent:
        stripped = stripped.str.removesuffix("%").str.rstrip()
    if decimal == ",":
        stripped = stripped.str.replace(".", "x", regex=False).str.replace(",", ".", regex=False)
    return stripped


def _explain(text: str, decimal: str, percent: bool) -> str:
    """What is wrong with a cell that should be a number, and what to do about it."""
    if re.fullmatch(r"[-+]?(inf|infinity)", text, re.IGNORECASE):
        return f"found '{text}', not a finite number; if it means 'not measured' add it to data.missing"
    found = f"found '{text[:40]}', expected a number"
    if _NUMBER.fullmatch(text):
        if decimal == ",":
            return f"{found} with a decimal comma; if decimals are written with a point set data.decimal: '.'"
        return f"{found} that is not too large"
    if decimal == "." and re.fullmatch(r"[-+]?[0-9]+,[0-9]+", text):
        return f"{found}; if decimals are written with a comma set data.decimal: ','"
    if text.endswith("%") and not percent:
        return f"{found}; for percentages set the metric's unit: '%'"
    if re.fullmatch(r"[-+]?[0-9.,]+\s*[a-zA-Z/]+", text):
        return f"{found} without a unit in the cell; export raw values and name the unit in data.metrics"
    return f"{found}; if it means 'not measured' add it to data.missing"
