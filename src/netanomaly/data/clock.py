"""How many steps of the grid lie between the rows of a series.

A row lies round((its time - time of the row before) / interval) steps after the row before it. Measuring from
the row before, not from a fixed clock, lets pollers drift and jitter without colliding with themselves. Only after a
step that several rows share does the clock decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Whole = TypeVar("_Whole", int, NDArray[np.int64])


@dataclass(frozen=True)
class Clock:
    """Where a series stands after its last row.

    Attributes:
        start: what the next step is measured from, nanoseconds.
        shared: whether several rows lie on the last step.
    """

    start: int
    shared: bool


def jumps(times: NDArray[np.int64], interval_ns: int, before: Clock | None = None) -> tuple[NDArray[np.int64], Clock]:
    """Steps from the row before to each row, 0 for rows on the same step, and where the series stands after them.

    Args:
        times: sorted, at least one. (rows,)
        before: where the series stood before these rows; None: they are its first, and the first jump is 0.
    """
    first = before or Clock(int(times[0]), shared=False)
    steps = rounded(np.diff(times, prepend=first.start), interval_ns)
    counted = steps if before else steps[1:]
    if not first.shared and (counted > 0).all():
        return steps, Clock(int(times[-1]), shared=False)
    # Some rows share a step. After a step with several rows the clock counts, not the row that leaves it: a poller
    # faster than the interval would make two steps of one, and where a step ends would depend on the first row.
    start, shared = first.start, first.shared
    for i in range(0 if before else 1, len(times)):
        time = int(times[i])
        steps[i] = max(0, rounded(time - start, interval_ns))
        if steps[i] > 0:
            on_clock = rounded(time, interval_ns) * interval_ns
            if shared:
                steps[i] = max(1, rounded(on_clock - start, interval_ns))
            start, shared = on_clock if shared else time, False
        else:
            shared = True
    return steps, Clock(start, shared)


def rounded(difference: _Whole, interval_ns: int) -> _Whole:
    """A difference of times in intervals, halves upwards, without a detour over floats."""
    return difference // interval_ns + (difference % interval_ns >= interval_ns - interval_ns // 2)
