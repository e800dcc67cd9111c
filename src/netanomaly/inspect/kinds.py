"""Gauge or counter: a running total never falls within its series, but where its device starts anew."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netanomaly.data.schema import Kind
from netanomaly.inspect.units import words_of

ENOUGH = 20
"""Steps that it takes to tell a counter by its values."""
RISES, FALLS = 0.5, 0.02
"""A counter rises in this share of its steps at least, and falls in this share at most."""
_NAMES = {
    *("total", "octets", "counter", "cumulative", "bytes", "packets", "pkts", "count"),
    *("errors", "discards", "drops", "dropped", "retrans", "retransmits", "segs", "resets"),
}
_GAUGES = {"ms", "us", "ns", "%", "ratio", "dB", "dBm", "celsius", "volt", "watt", "hertz", "bit/s", "Mbit/s", "kbit/s"}

_ROW_NUMBERS = re.compile(r"|index|row|row[_ ]?(number|no|id)|no|nr|n|#|seq|sequence|unnamed.*|level_0", re.IGNORECASE)


@dataclass(frozen=True)
class KindGuess:
    """A kind, why, and how often a counter fell."""

    kind: Kind
    reason: str
    resets: int = 0


def guess_kind(header: str, unit: str, values: NDArray[np.float64], series: Sequence[NDArray[np.int64]]) -> KindGuess:
    """Whether a column is a gauge or a counter.

    Args:
        values: NaN where missing. (rows,)
        series: the rows of each series, in order of time.
    """
    known = [values[rows][~np.isnan(values[rows])] for rows in series]
    steps = np.concatenate([np.diff(numbers) for numbers in known]) if known else np.empty(0)
    named = bool(_NAMES & set(words_of(header)))
    if len(steps) < ENOUGH or unit in _GAUGES:
        return KindGuess(
            "gauge", "the unit is not one of totals" if unit in _GAUGES else "too few rows to tell a total"
        )
    falls, rises = int((steps < 0).sum()), int((steps > 0).sum())
    if falls > FALLS * len(steps):
        return KindGuess("gauge", f"falls in {falls} of {len(steps)} steps")
    if rises < (1 if named and not falls else RISES * len(steps)):
        return KindGuess("gauge", "seldom changes" if rises else "never rises")
    befores = np.concatenate([numbers[:-1] for numbers in known])[steps < 0]
    if falls and not named and (np.concatenate([n[1:] for n in known])[steps < 0] > 0.5 * befores).any():
        return KindGuess("gauge", f"falls in {falls} of {len(steps)} steps, and not towards zero")
    reset = f", {falls} resets aside" if falls else ""
    if (wraps := int((befores > 0.9 * 2**32).sum())) and (befores < 2**32).all():
        reset = f", {falls} falls aside, {wraps} of them from just under 2^32: a 32-bit counter that wraps"
    return KindGuess("counter", f"never falls within a series{reset}", falls)


def is_row_number(header: str, values: NDArray[np.float64], series: Sequence[NDArray[np.int64]]) -> bool:
    """Whether a column is called so and counts the rows, through the file or in each series."""
    if not _ROW_NUMBERS.fullmatch(header):
        return False
    ways = (values, np.concatenate([values[rows] for rows in series])) if series else (values,)
    return len(values) > 2 and any(float((np.diff(way) == 1).mean()) > 0.98 for way in ways)
