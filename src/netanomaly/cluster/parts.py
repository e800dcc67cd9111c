"""A series that is too long for one task is cut by time; each part is given the rows that its own depend on.

The cuts lie at multiples of a length of time since 1970, so they do not depend on which rows are there. A row is
labelled in one part and goes along as context in others: before their first row as far as a decision looks back, and
for an interval behind their last one, since rows on both sides of a cut may share a step of the grid.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netanomaly.data.clock import Clock, jumps, rounded
from netanomaly.data.feed import FeedRule
from netanomaly.errors import ConfigError

SETTLING = 32
"""Steps in front of the history in which clocks that started differently come to agree."""


@dataclass(frozen=True)
class Parts:
    """How series are cut.

    Attributes:
        rule: how rows lie on the grid, and how many earlier steps a row depends on.
        rows: intervals that a part spans; 0: series stay whole.
        may_share: whether several rows of a series may lie on one step.
    """

    rule: FeedRule
    rows: int
    may_share: bool

    def __post_init__(self) -> None:
        least = -(-(self.reach_ns + self._ahead_ns) // self.rule.interval_ns)
        if self.rows and self.rows < least:
            raise ConfigError(
                f"--part-rows {self.rows}: a part would be shorter than what goes along with it; give at least "
                f"{least}, or 0 for series in one piece"
            )

    @property
    def reach_ns(self) -> int:
        """How far before a part rows go along with it, nanoseconds.

        A row that is n steps after another one is less than (1.5 n + 1) intervals after it: a step of one may be up to
        one and a half intervals long. A gap that a segment bridges may come on top, in front of the oldest step.
        """
        steps = self.rule.history + SETTLING
        return (-(-3 * steps // 2) + 2 * self.rule.max_gap + 6) * self.rule.interval_ns

    @property
    def _ahead_ns(self) -> int:
        """How far behind a part rows go along with it: rows on one step are less than this apart."""
        return 2 * self.rule.interval_ns

    def copies(self, times: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Where rows go: (which row, part, whether it is only context there), once for each part that a row goes to.

        Args:
            times: nanoseconds. (rows,)
        """
        rows = np.arange(len(times))
        if not self.rows:
            return rows, np.zeros(len(times), dtype=np.int64), np.zeros(len(times), dtype=bool)
        span = self.rows * self.rule.interval_ns
        home, first, last = (np.asarray(at // span) for at in (times, times - self._ahead_ns, times + self.reach_ns))
        which, parts = [rows], [home]
        for other in (first, last):  # a part is longer than either, so there is at most one more on each side
            away = np.flatnonzero(other != home)
            which.append(away)
            parts.append(other[away])
        row, part = np.concatenate(which), np.concatenate(parts)
        return row, part, part != home[row]

    def is_exact(self, part: int, times: NDArray[np.int64], first: int) -> bool:
        """Whether the rows of a part lie on the same steps whatever rows came before those that went along.

        Args:
            part: number of the part.
            times: of its rows and those in front of them, sorted. (rows,)
            first: the first row that is labelled here.

        Where rows may share a step, the step of a row depends on the one before it, and so on: all clocks that
        earlier rows may have left behind are tried, and have to agree from the oldest step on that counts.
        """
        if not self.rows:
            return True
        horizon = part * self.rows * self.rule.interval_ns - self.reach_ns
        begins = int(times[0]) - horizon >= (self.rule.max_gap + 3) * self.rule.interval_ns  # after a gap, or first
        start, clocks = self._possible_clocks(times, begins)
        if start >= len(times) - 1:
            return begins
        runs = np.stack([jumps(times[start + 1 :], self.rule.interval_ns, clock)[0] for clock in clocks])
        differing = np.flatnonzero((runs != runs[0]).any(axis=0))
        known = start + (int(differing[-1]) + 1 if len(differing) else 0)  # steps are known from this row on
        if known > first:
            return False
        between = runs[0][known - start : first - start]
        is_whole = (between > self.rule.max_gap + 1).any() or between.sum() >= self.rule.history
        return bool((begins and known == 0) or is_whole)

    def _possible_clocks(self, times: NDArray[np.int64], begins: bool) -> tuple[int, set[Clock]]:
        """A row, and every clock with which a series may stand at it, given the rows before it that are there."""
        interval = self.rule.interval_ns
        if not self.may_share:
            return 0, {Clock(int(times[0]), shared=False)}
        row = 0 if begins else int(np.searchsorted(times, times[0] + 2 * interval))
        row = min(row, len(times) - 1)
        clocks = set()
        for opener in np.flatnonzero(times[: row + 1] > times[row] - 2 * interval):  # opened the step of the row
            time, shared = int(times[opener]), bool(opener < row)
            clocks |= {Clock(time, shared), Clock(rounded(time, interval) * interval, shared)}
        return row, clocks
