"""A series as its rows come, piece by piece, on the same grid as all of them at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from netanomaly.data.clock import Clock, jumps
from netanomaly.data.grid import counter_reach, values_on_grid
from netanomaly.data.schema import Metric


@dataclass(frozen=True)
class FeedRule:
    """How rows lie on the grid.

    Attributes:
        max_gap: missing steps that a segment may bridge.
        average: rows that share a step are averaged (gauges), else the last counts.
        history: earlier steps that whatever is computed of a step depends on.
    """

    metrics: Sequence[Metric]
    interval_ns: int
    max_gap: int
    average: bool
    history: int


@dataclass(frozen=True)
class Piece:
    """New steps of one segment, with the steps that they depend on in front.

    Attributes:
        values: (context + new steps, M)
        context: how many of the steps are not new.
        rows: which of the rows given lie in this piece.
        steps: where in `values` each of them lies. (rows,)
    """

    values: NDArray[np.float64]
    context: int
    rows: slice
    steps: NDArray[np.int64]


class SeriesFeed:
    """Where one series stands: its clock, and the rows that later ones depend on."""

    def __init__(self, rule: FeedRule) -> None:
        self.rule = rule
        self.clock: Clock | None = None
        self.newest: int | None = None
        """The time of the last row taken; None before the first."""
        self.length = 0
        """Steps of the segment so far."""
        self._times = np.empty(0, dtype=np.int64)
        self._values = np.empty((0, len(rule.metrics)))
        self._steps = np.empty(0, dtype=np.int64)  # of the rows kept, the last step being -1

    def apart(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Steps from the row before to each of these rows, which are not taken yet: 0 on the same step."""
        return jumps(times, self.rule.interval_ns, self.clock)[0]

    def take(self, times: NDArray[np.int64], values: NDArray[np.float64]) -> Iterator[Piece]:
        """The steps of the next rows, which are sorted and of which the first lies on a step of its own.

        Args:
            times: nanoseconds. (rows,)
            values: metrics, counters as totals. (rows, M)
        """
        is_first, self.newest = self.clock is None, int(times[-1])
        apart, self.clock = jumps(times, self.rule.interval_ns, self.clock)
        starts = apart - 1 > self.rule.max_gap
        starts[0] |= is_first
        for first, stop in pairwise([*np.flatnonzero(starts | (np.arange(len(times)) == 0)), len(times)]):
            if starts[first]:  # nothing before it counts any more
                self.length, self._times = 0, self._times[:0]
                self._values, self._steps = self._values[:0], self._steps[:0]
                apart[first] = 1
            yield self._extend(slice(int(first), int(stop)), times, values, np.cumsum(apart[first:stop]) - 1)

    def _extend(
        self, rows: slice, times: NDArray[np.int64], values: NDArray[np.float64], steps: NDArray[np.int64]
    ) -> Piece:
        """The segment goes on with these rows; `steps` count from the first new one."""
        all_times = np.concatenate([self._times, times[rows]])
        all_values = np.concatenate([self._values, values[rows]])
        all_steps = np.concatenate([self._steps, steps])
        oldest = int(all_steps[0])
        on_grid = values_on_grid(
            self.rule.metrics,
            all_values,
            all_times,
            all_steps - oldest,
            self.rule.average,
            counter_reach(self.rule.max_gap),
        )
        last = int(steps[-1])
        self.length += last + 1
        kept = all_steps > last - self.rule.history
        self._times, self._values, self._steps = all_times[kept], all_values[kept], all_steps[kept] - last - 1
        return Piece(on_grid, -oldest, rows, steps - oldest)
