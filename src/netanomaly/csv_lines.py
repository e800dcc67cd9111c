"""Answers as lines of a CSV, many at once: formatting numbers one by one would take longer than all the rest."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.data.formula_cells import neutral

DIGITS = 7
"""After the point, of probabilities."""

PADDING = 0xFF
"""No byte of UTF-8."""
_NEEDS_QUOTES = re.compile(r'[",\r\n]')


def csv_lines(frame: pd.DataFrame, texts: int, *, raw_text: bool = False) -> bytes:
    """The rows of a frame as CSV: `texts` columns of text, then probabilities with seven digits after the point.

    What `DataFrame.to_csv` writes in UTF-8 with `float_format="%.7f"`, but for ties in the last digit, quotes around a
    carriage return, and text that a spreadsheet would run (see `data/formula_cells`; with `raw_text` it stays as is).
    Probabilities are numbers from 0 to 1: nothing else has the room.
    """
    parts = [_cells(frame.iloc[:, column], raw_text) for column in range(texts)]
    numbers = _fixed(frame.iloc[:, texts:].to_numpy(dtype=np.float64))
    comma = np.full((len(frame), 1), ord(","), dtype=np.uint8)
    padded = [part for cells in parts for part in (comma, cells)][1:]  # none before the first
    everything = np.concatenate([*padded, numbers], axis=1)
    lines: NDArray[np.uint8] = everything[everything != PADDING]
    return lines.tobytes()


def csv_table(frame: pd.DataFrame, *, raw_text: bool = False) -> str:
    """A small frame as CSV with its header: numbers as `DataFrame.to_csv` writes them, text as `csv_lines` does."""
    columns = [_small(frame.iloc[:, place], raw_text) for place in range(frame.shape[1])]
    names = [_quoted(str(name), raw_text) for name in frame.columns]
    return "".join(",".join(cells) + "\n" for cells in (names, *zip(*columns, strict=True)))


def _small(column: pd.Series, raw_text: bool) -> list[str]:
    if pd.api.types.is_numeric_dtype(column):
        written: str = column.to_csv(index=False, header=False, lineterminator="\n")
        return written.replace('""', "").split("\n")[:-1]
    return [_quoted(str(cell), raw_text) for cell in column.fillna("")]


def _cells(column: pd.Series, raw_text: bool) -> NDArray[np.uint8]:
    """Cells in UTF-8, quoted where they need it, padded to the longest. (rows, n)"""
    codes, distinct = pd.factorize(column.astype(str))
    encoded = [_quoted(str(cell), raw_text).encode() for cell in distinct]
    longest = max(map(len, encoded), default=0)
    padded = b"".join(cell.ljust(longest, bytes([PADDING])) for cell in encoded)
    table = np.frombuffer(padded, dtype=np.uint8).reshape(len(encoded), longest)
    return table[codes]


def _quoted(cell: str, raw_text: bool) -> str:
    """The cell as no formula, with quotes around it if it needs them."""
    cell = cell if raw_text else neutral(cell)
    return f'"{cell.replace(chr(34), chr(34) * 2)}"' if _NEEDS_QUOTES.search(cell) else cell


def _fixed(probabilities: NDArray[np.float64]) -> NDArray[np.uint8]:
    """`,0.1234567` for each probability and a line break. (rows, n) to (rows, 10 n + 1)"""
    rows, count = probabilities.shape
    if not ((probabilities >= 0) & (probabilities < 9.5)).all():
        raise ValueError("a number has more than one digit before the point")
    left = np.rint(probabilities * 10**DIGITS).astype(np.int32)
    characters = np.empty((rows, count, DIGITS + 3), dtype=np.uint8)
    characters[..., 0], characters[..., 2] = ord(","), ord(".")
    for place in range(DIGITS + 2, 2, -1):
        left, digit = np.divmod(left, 10)
        characters[..., place] = digit + ord("0")
    characters[..., 1] = left + ord("0")
    return np.concatenate(
        [characters.reshape(rows, count * (DIGITS + 3)), np.full((rows, 1), ord("\n"), dtype=np.uint8)], axis=1
    )
