"""Many series row by row on the same grid as all rows at once: one new row of each of them at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netanomaly.data.clock import rounded
from netanomaly.data.feed import FeedRule
from netanomaly.data.grid import counter_reach

Arrays = dict[str, NDArray[Any]]
Standing = tuple[int, int, bool]
"""What of a series outlives its segments: the time of its last row, its clock, whether rows shared its last step."""


@dataclass(frozen=True)
class Placed:
    """Where the new rows of n series lie.

    Attributes:
        jumps: steps since the row before; 0: on the same step. (n,)
        starts: whether a segment begins with the row. (n,)
        values: metrics of the step, counters as rates, rows on one step merged. (n, M)
    """

    jumps: NDArray[np.int64]
    starts: NDArray[np.bool_]
    values: NDArray[np.float64]


class LiveGrid:
    """Clocks and counters of many series, each in a slot of its own.

    Attributes:
        state: everything it knows, per slot (S, ...): to be saved, restored, grown.
    """

    def __init__(self, rule: FeedRule, slots: int) -> None:
        self.rule = rule
        self._counters = np.array([metric.kind == "counter" for metric in rule.metrics], dtype=bool)
        metrics, counters = len(rule.metrics), int(self._counters.sum())
        self.state: Arrays = {
            "clock": np.zeros(slots, dtype=np.int64),  # what the next step is measured from
            "shared": np.zeros(slots, dtype=np.bool_),  # several rows lie on the last step
            "started": np.zeros(slots, dtype=np.bool_),
            "time": np.zeros(slots, dtype=np.int64),  # of the last row
            "step": np.zeros(slots, dtype=np.int64),  # of the last row in its segment
            "sum": np.zeros((slots, metrics)),  # of the known values on the last step
            "count": np.zeros((slots, metrics)),
            "total": np.full((slots, counters), np.nan),  # of counters on the last step
            "earlier_total": np.full((slots, counters), np.nan),  # last known one on a step before it
            "earlier_time": np.zeros((slots, counters), dtype=np.int64),
            "earlier_step": np.zeros((slots, counters), dtype=np.int64),
        }

    def grow(self, slots: int) -> None:
        """Room for more series."""
        fresh = LiveGrid(self.rule, slots).state
        self.state = {key: np.concatenate([array, fresh[key]]) for key, array in self.state.items()}

    def clear(self, slots: NDArray[np.int64]) -> None:
        """The slots are those of series without rows."""
        for key, array in LiveGrid(self.rule, 1).state.items():
            self.state[key][slots] = array[0]

    def standing(self, slot: int) -> Standing | None:
        """Where the series of a slot stands; None before its first row."""
        if not self.state["started"][slot]:
            return None
        return int(self.state["time"][slot]), int(self.state["clock"][slot]), bool(self.state["shared"][slot])

    def stand(self, slot: int, standing: Standing) -> None:
        """A series without rows of its own stands there: what it had before is missing, but its time goes on."""
        self.state["time"][slot], self.state["clock"][slot], self.state["shared"][slot] = standing
        self.state["started"][slot] = True

    def goes_back(self, slots: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether a row is older than the one before it. (n,)"""
        back: NDArray[np.bool_] = self.state["started"][slots] & (times < self.state["time"][slots])
        return back

    def apart(self, slots: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Steps since the row before, as `clock.jumps` counts them; 1 for the first row of a series. (n,)"""
        clock, interval = self.state["clock"][slots], self.rule.interval_ns
        steps = np.maximum(rounded(times - clock, interval), 0)
        on_clock = np.maximum(1, rounded(rounded(times, interval) * interval - clock, interval))
        steps = np.where((steps > 0) & self.state["shared"][slots], on_clock, steps)
        return np.where(self.state["started"][slots], steps, 1)

    def take(self, slots: NDArray[np.int64], times: NDArray[np.int64], values: NDArray[np.float64]) -> Placed:
        """One new row of each of n series, none older than its last.

        Args:
            slots: each at most once. (n,)
            times: (n,)
            values: metrics, counters as totals. (n, M)
        """
        state, interval = self.state, self.rule.interval_ns
        jumps = self.apart(slots, times)
        starts = ~state["started"][slots] | (jumps - 1 > self.rule.max_gap)
        again = (jumps == 0)[:, None]
        step = np.where(starts, 0, state["step"][slots] + jumps)
        rates = self._rates(slots, times, step, values[:, self._counters], starts, again)
        moved = np.where(state["shared"][slots] & state["started"][slots], rounded(times, interval) * interval, times)
        known = ~np.isnan(values)
        merged = values.copy()
        for key, added in (("sum", np.where(known, values, 0.0)), ("count", known.astype(np.float64))):
            state[key][slots] = np.where(again, state[key][slots], 0.0) + added
        if self.rule.average:
            with np.errstate(invalid="ignore"):
                merged = np.where(again, state["sum"][slots] / state["count"][slots], values)
        merged[:, self._counters] = rates
        state["clock"][slots] = np.where(jumps == 0, state["clock"][slots], moved)
        state["shared"][slots], state["started"][slots] = jumps == 0, True
        state["step"][slots], state["time"][slots] = step, times
        return Placed(jumps, starts, merged)

    def _rates(
        self,
        slots: NDArray[np.int64],
        times: NDArray[np.int64],
        step: NDArray[np.int64],
        totals: NDArray[np.float64],
        starts: NDArray[np.bool_],
        again: NDArray[np.bool_],
    ) -> NDArray[np.float64]:
        """Totals to rates per second since the last known total of an earlier step. (n, counters)"""
        state, first = self.state, starts[:, None]
        ended = ~again & ~first & ~np.isnan(state["total"][slots])  # the total of the last step becomes an earlier one
        for key, newer in (
            ("total", state["total"]),
            ("time", state["time"][:, None]),
            ("step", state["step"][:, None]),
        ):
            state[f"earlier_{key}"][slots] = np.where(ended, newer[slots], state[f"earlier_{key}"][slots])
        state["earlier_total"][slots] = np.where(first, np.nan, state["earlier_total"][slots])
        state["total"][slots] = totals
        seconds = (times[:, None] - state["earlier_time"][slots]) / 1e9
        with np.errstate(invalid="ignore", divide="ignore"):
            rates = (totals - state["earlier_total"][slots]) / seconds
        near = step[:, None] - state["earlier_step"][slots] <= counter_reach(self.rule.max_gap)
        return np.where((rates >= 0) & near, rates, np.nan)
