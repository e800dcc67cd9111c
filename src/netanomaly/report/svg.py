"""Small drawings inside the page: paths and bands, light enough to have hundreds of them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


def line(x: NDArray[np.float64], y: NDArray[np.float64]) -> str:
    """The `d` of a path through points, broken where y is NaN. (points,), (points,)"""
    parts, is_drawing = [], False
    for px, py in zip(x, y, strict=True):
        if np.isnan(py):
            is_drawing = False
            continue
        parts.append(f"{'L' if is_drawing else 'M'}{_short(px)} {_short(py)}")
        is_drawing = True
    return "".join(parts)


def bars(x: NDArray[np.floating], heights: NDArray[np.floating], base: float) -> str:
    """The `d` of a path of upright strokes from a base, up where a height is positive. (bars,), (bars,)"""
    return "".join(
        f"M{_short(px)} {_short(base)}V{_short(base - height)}"
        for px, height in zip(x, heights, strict=True)
        if abs(height) >= 0.05
    )


def scaled(values: NDArray[np.float64], low: float, high: float, size: float) -> NDArray[np.float64]:
    """Values as distances from the top of a box so high: the largest is at its top. (n,)"""
    span = high - low
    return np.full(len(values), size / 2) + values * 0 if span <= 0 else size * (high - values) / span


def joined(bands: Iterable[tuple[float, float, str]], least: float) -> list[tuple[float, float, str]]:
    """Bands (start, end, label) in order, those of one label joined where less than `least` lies between them."""
    found: list[tuple[float, float, str]] = []
    for start, end, label in bands:
        if found and found[-1][2] == label and start - found[-1][1] < least:
            found[-1] = (found[-1][0], max(end, found[-1][1]), label)
        else:
            found.append((start, end, label))
    return found


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
