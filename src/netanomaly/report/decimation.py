"""Fewer points than rows for a picture, such that no spike is lost."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def block_size(rows: int, points: int) -> int:
    """Rows that two points stand for when at most so many points may be drawn; 1: every row is a point."""
    return 1 if rows <= points else -(-2 * rows // points)


def block_starts(rows: int, block: int) -> NDArray[np.int64]:
    """Where the points of `extremes` stand: at the start and in the middle of each block of rows. (points,)"""
    if block == 1:
        return np.arange(rows)
    starts = np.arange(0, rows, block)
    return np.stack([starts, np.minimum(starts + block // 2, rows - 1)], axis=1).ravel()


def extremes(values: NDArray[np.float64], block: int) -> NDArray[np.float64]:
    """The smallest and the largest value of each block of rows, the earlier of them first. (rows,) to (points,)

    A block in which all are NaN stays NaN. The result has the range of the values, and its points lie at most one
    block away from where they were.
    """
    if block == 1:
        return values
    padded = np.concatenate([values, np.full(-len(values) % block, np.nan)]).reshape(-1, block)
    low = np.where(np.isnan(padded), np.inf, padded)
    high = np.where(np.isnan(padded), -np.inf, padded)
    is_rising = low.argmin(axis=1) <= high.argmax(axis=1)
    least, most = low.min(axis=1), high.max(axis=1)
    ends = np.where(is_rising, [least, most], [most, least]).T  # (blocks, 2)
    return np.where(np.isinf(ends), np.nan, ends).ravel()
