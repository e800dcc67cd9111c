"""What the cells of a column hold: numbers, percentages, missing markers, other text."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

MARKERS = frozenset(
    {"nan", "-nan", "na", "n/a", "#n/a", "null", "none", "nil", "-", "--", "---", "?", "*", ".", "u", "unknown"}
    | {
        "timeout",
        "timed out",
        "request timed out",
        "request timed out.",
        "no data",
        "nodata",
        "no reply",
        "unreachable",
    }
)
"""Cells that mean "not measured" in one export or another, in small letters."""

NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*%?")
MOSTLY = 0.5
"""Share of a column's filled cells that are numbers, from which on it is a column of numbers."""


@dataclass(frozen=True)
class Cells:
    """A column of text, told apart.

    Attributes:
        values: NaN where a cell is no number; percentages as written, without their sign. (rows,)
        is_empty: nothing stands there. (rows,)
        is_marker: a word or sign stands there that means "not measured". (rows,)
        is_odd: another text. (rows,)
        percents: cells that end in a percent sign.
    """

    values: NDArray[np.float64]
    is_empty: NDArray[np.bool_]
    is_marker: NDArray[np.bool_]
    is_odd: NDArray[np.bool_]
    percents: int

    @property
    def is_numeric(self) -> bool:
        """Whether this is a column of numbers, some other cells aside."""
        numbers = int((~np.isnan(self.values)).sum())
        return numbers > 0 and numbers >= MOSTLY * (numbers + int(self.is_odd.sum()))

    @property
    def is_void(self) -> bool:
        """Whether nothing stands in it but markers."""
        return bool((self.is_empty | self.is_marker).all())


def tell_apart(texts: pd.Series, decimal: str) -> Cells:
    """The cells of a column of text."""
    codes, distinct = pd.factorize(texts)
    unique = pd.Series(distinct, dtype="str")
    plain = unique
    if decimal == ",":
        plain = unique.str.replace(".", "x", regex=False).str.replace(",", ".", regex=False)
    is_number = plain.str.fullmatch(NUMBER).to_numpy(dtype=bool)
    ends = unique.str.endswith("%").to_numpy(dtype=bool) & is_number
    values = np.full(len(unique), np.nan)
    values[is_number] = plain[is_number].str.rstrip("% ").to_numpy(dtype=np.float64)
    is_number = is_number & np.isfinite(values)  # 1e999 is none
    values[~is_number] = np.nan
    is_empty = (unique == "").to_numpy(dtype=bool)
    is_marker = unique.str.lower().isin(MARKERS).to_numpy(dtype=bool)
    is_odd = ~(is_number | is_empty | is_marker)
    return Cells(values[codes], is_empty[codes], is_marker[codes], is_odd[codes], int(ends[codes].sum()))
