"""How rows follow each other: interval, gaps, rows that share a step, by the rule that the grid has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.data.clock import jumps
from netanomaly.durations import format_duration, parse_duration
from netanomaly.inspect.guesses import Rhythm

_ROUND = [
    parse_duration(f"{count}{unit}")
    for unit, counts in (
        ("us", (1, 10, 100)),
        ("ms", (1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500)),
        ("s", (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30)),
        ("m", (1, 2, 3, 4, 5, 10, 15, 20, 30)),
        ("h", (1, 2, 3, 4, 6, 8, 12)),
        ("d", (1, 7)),
    )
    for count in counts
]
NEAR = 0.04
"""How far a step may be from a round duration that it is told as."""
USUAL_GAP, LONGEST_GAP = 10, 60
"""Rows of a gap that is bridged: usually, and at most where steps are irregular."""
SELDOM = 0.02
"""Share of the steps that may be longer before long gaps count as a matter of course."""


def rhythm_of(moments: NDArray[np.int64], series: Sequence[NDArray[np.int64]]) -> Rhythm | None:
    """What the times of the rows say; None without two different times in a series.

    Args:
        moments: nanoseconds. (rows,)
        series: rows of each series, in input order.
    """
    in_order = [np.sort(moments[rows]) for rows in series if len(rows)]
    steps = np.concatenate([np.diff(times) for times in in_order])
    forward = steps[steps > 0]
    if not len(forward):
        return None
    interval = _rounded(float(np.median(forward)))
    apart = np.concatenate([jumps(times, interval)[0][1:] for times in in_order])
    max_gap = _max_gap(apart)
    missing = apart[apart > 1] - 1
    low, high = (format_duration(int(np.quantile(forward, share))) for share in (0.05, 0.95))
    return Rhythm(
        interval=format_duration(interval),
        regular=float((np.abs(forward / interval - 1) <= 0.1).mean()),
        steps=(low, high),
        shared=int((apart == 0).sum()),
        repeated=int((steps == 0).sum()),
        bridged=int(missing[missing <= max_gap].sum()),
        gaps=int((missing > max_gap).sum()),
        longest_gap=format_duration(int(forward.max())),
        backwards=sum(int((np.diff(moments[rows]) < 0).sum()) for rows in series),
        max_gap=max_gap,
        start=_written(int(moments.min())),
        end=_written(int(moments.max())),
    )


def _rounded(step: float) -> int:
    """The nearest duration that people use, if it is near; else the step to three digits, as text has it."""
    nearest = min(_ROUND, key=lambda duration: abs(np.log(duration / step)))
    if abs(nearest / step - 1) <= NEAR:
        return nearest
    return parse_duration(format_duration(max(1, round(step))))


def _max_gap(apart: NDArray[np.int64]) -> int:
    """Rows that a gap may have: the usual number, or more where longer gaps are a matter of course."""
    missing = apart - 1
    if (missing > USUAL_GAP).mean() <= SELDOM:
        return USUAL_GAP
    return int(np.clip(np.ceil(np.quantile(missing, 0.99)), USUAL_GAP, LONGEST_GAP))


def _written(nanoseconds: int) -> str:
    return f"{pd.Timestamp(nanoseconds).isoformat(timespec='seconds')}Z"
