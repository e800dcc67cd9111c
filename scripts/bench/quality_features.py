"""What the peers see of a row: a view of the metrics, and the window of it that ends in the row.

Rows before the start of a segment repeat its first row, for all peers alike. Runs in the peers' environment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scripts.bench.quality_problem import TRAIN, Places, Problem

Rows = list[NDArray[np.float32]]
"""A view of every segment, (T, F) each; NaN where missing."""

_LARGEST = 1e30  # what squares do not take out of the range of floats, once standardised
_FURTHEST = 10.0  # standard deviations that windows keep: further away, one glitch rules a network or a kernel


def view(problem: Problem, name: str, baseline: int) -> Rows:
    """All segments as `levels`, `relative` channels, `both`, or `row` (level, deviation, difference)."""
    if name == "row":
        return [_row(segment.values, baseline) for segment in problem.segments]
    levels = [_float32(segment.values) for segment in problem.segments]
    if name == "levels":
        return levels
    relative = [np.asarray(segment.channels[baseline]) for segment in problem.segments]
    if name == "relative":
        return relative
    return [np.concatenate(pair, axis=1) for pair in zip(levels, relative, strict=True)]


def statistics(rows: Rows, window: int) -> Rows:
    """Statistics of the windows that end in every row: segments (T, F) to (T, 6 F); missing values left out.

    Last value, mean, standard deviation, minimum, maximum, and last minus first. A window of one row: the row alone.
    """
    return rows if window == 1 else [_statistics(segment, window) for segment in rows]


def windows(rows: Rows, window: int, places: Places) -> NDArray[np.float32]:
    """The windows that end in rows: segments (T, F) and (N, 2) to (N, F, window), oldest row first."""
    result = np.empty((len(places), rows[0].shape[1], window), dtype=np.float32)
    for number, here in _by_segment(places):
        steps = places[here, 1][:, None] + np.arange(1 - window, 1)
        result[here] = rows[number][np.maximum(steps, 0)].transpose(0, 2, 1)
    return result


def take(rows: Rows, places: Places) -> NDArray[np.float32]:
    """The rows themselves, (N, F)."""
    result = np.empty((len(places), rows[0].shape[1]), dtype=np.float32)
    for number, here in _by_segment(places):
        result[here] = rows[number][places[here, 1]]
    return result


def standardised(problem: Problem, rows: Rows) -> Rows:
    """Rows in standard deviations of the training rows; gaps keep the value before them, else the mean."""
    training = np.concatenate([r[s.parts == TRAIN] for r, s in zip(rows, problem.segments, strict=True)])
    known = pd.DataFrame(training.astype(np.float64))
    centre, scale = known.mean().fillna(0.0).to_numpy(), known.std().fillna(0.0).to_numpy()
    scale = np.where(scale > 0, scale, 1.0)
    return [_standardised(segment, centre, scale) for segment in rows]


def _standardised(
    rows: NDArray[np.float32], centre: NDArray[np.float64], scale: NDArray[np.float64]
) -> NDArray[np.float32]:
    filled = pd.DataFrame(rows.astype(np.float64)).ffill().to_numpy()
    return np.nan_to_num((filled - centre) / scale).clip(-_FURTHEST, _FURTHEST).astype(np.float32)


def _row(values: NDArray[np.float64], baseline: int) -> NDArray[np.float32]:
    frame = pd.DataFrame(values)
    deviation = frame - frame.rolling(baseline, min_periods=1).median()
    return _float32(np.concatenate([values, deviation.to_numpy(), frame.diff().to_numpy()], axis=1))


def _float32(values: NDArray[np.float64]) -> NDArray[np.float32]:
    return values.clip(-_LARGEST, _LARGEST).astype(np.float32)


def _statistics(segment: NDArray[np.float32], window: int) -> NDArray[np.float32]:
    begun = np.concatenate([np.repeat(segment[:1], window - 1, axis=0), segment])
    frame = pd.DataFrame(begun.astype(np.float64))
    rolled = frame.rolling(window, min_periods=1)
    parts = [frame, rolled.mean(), rolled.std(), rolled.min(), rolled.max(), frame - frame.shift(window - 1)]
    return np.concatenate([part.to_numpy(dtype=np.float32)[window - 1 :] for part in parts], axis=1)


def _by_segment(places: Places) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Each segment that occurs, and which of the places are in it."""
    for number in np.unique(places[:, 0]):
        yield int(number), np.flatnonzero(places[:, 0] == number)


def softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores (N, K) as shares that sum to one."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def spread(found: NDArray[np.float64], known: Sequence[int] | NDArray[np.int64], classes: int) -> NDArray[np.float64]:
    """Probabilities of the classes a peer has learnt, (N, known), among all of them, (N, classes)."""
    result = np.zeros((len(found), classes))
    result[:, np.asarray(known, dtype=np.int64)] = found
    return result
