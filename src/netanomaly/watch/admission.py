"""Which rows are taken: none from the future, none from before the last of their series, none twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.data.clock import rounded
from netanomaly.data.ingest import Table
from netanomaly.durations import format_duration
from netanomaly.streaming import StreamingPredictor
from netanomaly.watch.counts import AHEAD, ANSWERED, LATE, TWICE

FAR_BEHIND = 86_400 * 10**9
"""Nanoseconds. Rows that are further behind the last of their series are a sign that its time was wrong."""
IN_A_ROW = 10
"""After so many of them a series begins again."""


@dataclass(frozen=True)
class LateRow:
    """A row that is left out.

    Attributes:
        kind: of `counts`.
        said: what is wrong, asked for when it is told.
    """

    kind: str
    said: Callable[[], str]


@dataclass
class Verdict:
    """What becomes of the rows of a table.

    Attributes:
        taken: rows to take now.
        left_out: the others, with what is wrong with them.
        again: series that begin again.
        waiting: rows of these series, to be judged once they have begun again.
    """

    taken: NDArray[np.int64]
    left_out: list[LateRow] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)


class Admission:
    """Judges rows in the order in which they came.

    Args:
        may_share: rows of a series may share a step of the grid (`data.duplicates`).
        max_ahead: nanoseconds that a row's time may be ahead of the clock; None: any time will do.
        sent_again: series of a saved state, whose rows may be sent again.
        clock: nanoseconds since 1970.
    """

    def __init__(
        self,
        stream: StreamingPredictor,
        interval_ns: int,
        *,
        may_share: bool,
        max_ahead: int | None = None,
        sent_again: Iterable[str] = (),
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._stream, self._interval, self._may_share = stream, interval_ns, may_share
        self._max_ahead, self._clock = max_ahead, clock
        self._sent_again = set(sent_again)
        self.behind: dict[str, int] = {}
        """Rows in a row that were far behind, of series that have some: a state goes on counting."""

    def judge(self, table: Table) -> Verdict:
        """What becomes of the rows of a table."""
        verdict = Verdict(np.empty(0, dtype=np.int64))
        is_fine = np.full(len(table), True)
        if self._max_ahead is not None:
            is_fine = table.times <= self._clock() + self._max_ahead
            for row in np.flatnonzero(~is_fine):
                verdict.left_out.append(LateRow(AHEAD, self._ahead(table, int(row))))
        codes, names = pd.factorize(table.series)
        last, known = self._stream.last_times([str(name) for name in names])
        rows = np.flatnonzero(is_fine)
        rows = rows[np.argsort(codes[rows], kind="stable")]  # series by series, each as it came
        suspects = self._suspects(table.times[rows], codes[rows], last, known)
        for code in suspects:
            some = rows[codes[rows] == code]
            newest = int(last[code]) if known[code] else None
            is_fine[some] = self._one_by_one(table, str(names[code]), some, newest, verdict)
        verdict.taken = np.flatnonzero(is_fine)
        if self._sent_again or self.behind:
            for name in names[np.setdiff1d(codes[rows], suspects)].tolist():  # all of their rows follow each other
                self._sent_again.discard(name)
                self.behind.pop(name, None)
        return verdict

    def _suspects(
        self, times: NDArray[np.int64], codes: NDArray[np.int64], last: NDArray[np.int64], known: NDArray[np.bool_]
    ) -> list[int]:
        """The series of which a row does not follow the row before it; rows series by series, each as it came."""
        if not len(times):
            return []
        is_first = np.diff(codes, prepend=-1) != 0
        apart = np.where(is_first, times - last[codes], np.diff(times, prepend=0))
        in_doubt = ~self._follows(apart) & ~(is_first & ~known[codes])
        if self._may_share and self._sent_again:  # the last row before the state was saved may be sent again
            in_doubt |= is_first & known[codes] & (apart == 0)
        return [int(code) for code in np.unique(codes[in_doubt])]

    def _follows(self, apart: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether rows so far behind the row before may be taken."""
        return np.asarray(apart >= 0 if self._may_share else rounded(apart, self._interval) > 0)

    def _one_by_one(
        self, table: Table, name: str, rows: NDArray[np.int64], newest: int | None, verdict: Verdict
    ) -> NDArray[np.bool_]:
        """Which of the rows of one series, in the order in which they came, are taken. (n,)"""
        is_taken = np.full(len(rows), False)
        known = newest if name in self._sent_again else None
        for place, row in enumerate(rows.tolist()):
            moment = int(table.times[row])
            if newest is None or (
                bool(self._follows(np.array(moment - newest))) and not (known == newest and moment == known)
            ):
                is_taken[place], newest, known = True, moment, None
                self._sent_again.discard(name)
                self.behind.pop(name, None)
                continue
            if newest - moment > FAR_BEHIND:
                self.behind[name] = self.behind.get(name, 0) + 1
            else:
                self.behind.pop(name, None)
            if self.behind.get(name, 0) >= IN_A_ROW:
                verdict.again.append(name)
                verdict.waiting += rows[place:].tolist()
                break
            if known is not None and moment <= known:
                verdict.left_out.append(LateRow(ANSWERED, lambda: ""))
            elif moment < newest:
                verdict.left_out.append(LateRow(LATE, _late(table, row)))
            else:
                verdict.left_out.append(LateRow(TWICE, _twice(table, row)))
        return is_taken

    def begin_again(self, name: str) -> None:
        """The series begins again: what it had before is forgotten."""
        self._stream.begin_again(name)
        self.behind.pop(name, None)
        self._sent_again.discard(name)

    def _ahead(self, table: Table, row: int) -> Callable[[], str]:
        limit = format_duration(self._max_ahead or 1)
        return lambda: (
            f"{table.where(row)}: {table.time_texts[row]} of series '{table.series[row]}' is more than {limit} ahead "
            "of this machine's clock; check data.time_zone and the clocks, or set --max-ahead"
        )


def _late(table: Table, row: int) -> Callable[[], str]:
    return lambda: (
        f"{table.where(row)}: series '{table.series[row]}' goes back in time: {table.time_texts[row]} is before "
        "the row that came last"
    )


def _twice(table: Table, row: int) -> Callable[[], str]:
    return lambda: (
        f"{table.where(row)}: {table.time_texts[row]} is within one interval of the row before it of series "
        f"'{table.series[row]}'; train with data.duplicates: last or mean if rows may share a step"
    )
