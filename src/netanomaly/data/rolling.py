"""Causal rolling statistics whose result for a row depends on its last rows alone, to the last bit.

Running sums (add the new row, drop the old one) carry rounding from the start of the series, so a chunk of a
series would score a little differently from the whole. The median is an order statistic and has no such memory;
sums are taken as a fixed tree over the last rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import bottleneck
import numpy as np
from numpy.typing import NDArray


def rolling_median(values: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    """Median of the last `length` rows (fewer at the start), missing ones left out. (T, M) to (T, M)"""
    rows = min(length, len(values))
    return np.asarray(bottleneck.move_median(values, rows, min_count=1, axis=0)) if rows else values.copy()


def rolling_sum(values: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    """Sum of the last `length` rows (fewer at the start), without NaN. (T, M) to (T, M)

    Doubling: sums of 1, 2, 4, ... rows, and `length` as a sum of powers of two. O(log length) additions per
    value, always the same ones in the same order.
    """
    total = np.zeros_like(values)
    block, size, taken = values, 1, 0  # block[t] sums `size` rows up to t; `taken` newest rows are in total
    remaining = length
    while remaining:
        if remaining & 1:
            total = total + _down(block, taken)
            taken += size
        remaining >>= 1
        if remaining:
            block = block + _down(block, size)
            size *= 2
    return total


def newest_median(values: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    """The last row of `rolling_median` for N series at once, to the bit. (N, T, M) to (N, M)"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # nothing but NaN is NaN, no mistake
        return np.asarray(bottleneck.nanmedian(values[:, -length:], axis=1))


def newest_sum(values: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    """The last row of `rolling_sum` for N series at once, to the bit. (N, T, M), T >= length, to (N, M)

    The same tree: `block[:, -1 - k]` sums `size` rows up to k blocks back.
    """
    total, end = np.zeros((len(values), values.shape[2])), values.shape[1]
    remaining, size = length, 1
    while remaining:
        if remaining & 1:
            total = total + _tree(values[:, end - size : end], size)
            end -= size
        remaining >>= 1
        size *= 2
    return total


def _tree(values: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Sum of `size` rows, a power of two, neighbours first. (N, size, M) to (N, M)"""
    while size > 1:
        values = values[:, 1::2] + values[:, ::2]
        size //= 2
    return values[:, 0]


def rolling_std(values: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    """Sample standard deviation of the last `length` rows, missing ones left out; 0 for a single row. (T, M)

    Values should be centred near zero: the square of a common offset costs digits.
    """
    return _std(values, length, rolling_sum)


def newest_std(values: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    """The last row of `rolling_std` for N series at once, to the bit. (N, T, M), T >= length, to (N, M)"""
    return _std(values, length, newest_sum)


def _std(
    values: NDArray[np.float64],
    length: int,
    summed: Callable[[NDArray[np.float64], int], NDArray[np.float64]],
) -> NDArray[np.float64]:
    known = ~np.isnan(values)
    filled = np.where(known, values, 0.0)
    count = summed(known.astype(np.float64), length)
    mean = summed(filled, length) / np.maximum(count, 1)
    mean_square = summed(filled**2, length) / np.maximum(count, 1)
    variance = np.maximum(mean_square - mean**2, 0.0) * count / np.maximum(count - 1, 1)
    return np.asarray(np.sqrt(variance))


def _down(values: NDArray[np.float64], rows: int) -> NDArray[np.float64]:
    """Values moved `rows` later in time, zeros before them."""
    moved = np.zeros_like(values)
    if rows < len(values):
        moved[rows:] = values[: len(values) - rows]
    return moved
