"""Answers as lines of a CSV, many at once: formatting numbers one by one would take longer than all the rest."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
from numpy.typing import NDArray

DIGITS = 7
"""After the point, of probabilities."""

_NEEDS_QUOTES = re.compile(r'[",\r\n]')


def csv_lines(frame: pd.DataFrame, texts: int) -> str:
    """The rows of a frame as CSV: `texts` columns of text, then probabilities with seven digits after the point.

    What `DataFrame.to_csv` writes with `float_format="%.7f"`, but for ties in the last digit.
    """
    columns = [frame.iloc[:, column].astype(str).tolist() for column in range(texts)]
    columns = [_quoted(column) for column in columns]
    numbers = _fixed(frame.iloc[:, texts:].to_numpy(dtype=np.float64))  # bytes, all lines equally long
    size = numbers.shape[1]
    text = numbers.tobytes().decode("ascii")
    rows = zip(*columns, strict=True)
    return "".join(
        ",".join(cells) + text[at : at + size] for at, cells in zip(range(0, len(text), size), rows, strict=True)
    )


def _quoted(cells: list[str]) -> list[str]:
    """Cells with quotes around those that need them."""
    if not _NEEDS_QUOTES.search("".join(cells)):
        return cells
    return [f'"{cell.replace(chr(34), chr(34) * 2)}"' if _NEEDS_QUOTES.search(cell) else cell for cell in cells]


def _fixed(probabilities: NDArray[np.float64]) -> NDArray[np.uint8]:
    """`,0.1234567` for each probability and a line break. (rows, n) to (rows, 10 n + 1)"""
    rows, count = probabilities.shape
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
