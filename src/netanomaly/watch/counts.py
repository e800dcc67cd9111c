"""What has come, what was answered and what was left out: counted, and told without flooding anybody."""

from __future__ import annotations

import logging
import math
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

log = logging.getLogger(__name__)

BROKEN = "broken"
"""Not a row of this format."""
LATE = "late"
"""Older than the row of its series that came last."""
TWICE = "twice"
"""Within one interval of the row before it, where rows must not share a step."""
AHEAD = "ahead of the clock"
"""Its time lies in the future."""
ANSWERED = "already answered"
"""No newer than what the state knew of its series at the start: sent again."""
HEADER = "header again"
"""A line with the names of the columns."""

BOUNDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, math.inf)
"""Seconds by which batches are counted."""
IN_FULL = 10
"""Lines of a kind that are told with all that is wrong; further ones are counted."""
SUMMARY_SECONDS = 60.0
"""How often it is told how many were left out since."""


@dataclass
class Counts:
    """Since the start of the program.

    Attributes:
        lines: that came, without the first header and blank ones.
        answered: rows by their label.
        left_out: lines by what was wrong with them.
        begun_again: series that started anew after a time that was wrong.
        too_early: series that had been forgotten when they went on where they had stopped.
        newest: time of the latest row that was answered, in ns since 1970; None: there was none yet.
        within: batches by the seconds that they took at most, of `BOUNDS`.
        slowest: seconds that a batch took at most, from its arrival to its answers.
        seconds: that all batches took.
    """

    lines: int = 0
    answered: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    begun_again: int = 0
    too_early: int = 0
    newest: int | None = None
    within: Counter[float] = field(default_factory=Counter)
    slowest: float = 0.0
    seconds: float = 0.0

    def took(self, seconds: float) -> None:
        """A batch was answered in so many seconds."""
        self.seconds, self.slowest = self.seconds + seconds, max(self.slowest, seconds)
        self.within[BOUNDS[bisect_left(BOUNDS, seconds)]] += 1


class LeftOut:
    """Tells of lines that were left out: the first ones of a kind in full, then numbers now and then."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._told: Counter[str] = Counter()  # when numbers were told last
        self._since = time.monotonic()

    def wants(self, kind: str) -> bool:
        """Whether the next line of this kind is told in full."""
        return kind not in (ANSWERED, HEADER) and self._counts.left_out[kind] < IN_FULL

    def add(self, kind: str, said: Callable[[], str]) -> None:
        """A line is left out; `said` is asked for what is wrong if it is told in full."""
        if self.wants(kind):
            log.warning("left out: %s", said())
            if self._counts.left_out[kind] + 1 == IN_FULL:
                log.warning("further lines that are left out as '%s' are only counted", kind)
        self._counts.left_out[kind] += 1

    def now_and_then(self) -> None:
        """How many were left out since it was told last, if that is long ago."""
        if time.monotonic() - self._since > SUMMARY_SECONDS:
            self._since = time.monotonic()
            if more := self._counts.left_out - self._told:
                log.warning("%s more", _sum(more))
            self._told = self._counts.left_out.copy()

    def at_the_end(self) -> None:
        """How many were left out in all."""
        if self._counts.left_out.total():
            log.warning(_sum(self._counts.left_out))


def _sum(left_out: Counter[str]) -> str:
    kinds = ", ".join(f"{count} {kind}" for kind, count in left_out.most_common())
    return f"{left_out.total()} lines left out: {kinds}"
