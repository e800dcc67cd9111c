"""Cells of a table that must be numbers: strict conversion, with an error that helps."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.errors import DataError

_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")

Where = Callable[[int], str]
"""Names the place of a row in its source: `links.csv: line 12`."""


def to_numbers(
    texts: pd.Series, missing: Sequence[str], decimal: str, percent: bool, column: str, where: Where
) -> NDArray[np.float64]:
    """Floats of a column of text, NaN where a cell is one of `missing`; shape (rows,).

    Raises:
        DataError: a cell is neither a finite number nor a missing marker; names the first one.
    """
    stripped = texts.fillna("").astype(str).str.strip()
    is_missing = stripped.isin([marker.strip() for marker in missing]).to_numpy(dtype=bool)
    bare = _with_point(stripped, decimal, percent)
    is_number = bare.str.fullmatch(_NUMBER).to_numpy(dtype=bool)
    values = np.full(len(bare), np.nan)
    taken = is_number & ~is_missing
    values[taken] = bare[taken].to_numpy(dtype=np.float64)
    bad = np.flatnonzero(~is_missing & ~(is_number & np.isfinite(values)))
    if len(bad):
        row = int(bad[0])
        raise DataError(f"{where(row)}, column '{column}': {_explain(str(stripped.iloc[row]), decimal, percent)}")
    return values


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
