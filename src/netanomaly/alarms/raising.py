"""Rows with probabilities in, alarms out, as `AlarmRule` says.

Only rows that count for some class are kept, so rows may come a chunk at a time; the alarms are known once all have
come. Everything an alarm says up to the moment at which it is raised depends on rows up to then alone.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.alarms.rule import AlarmRule


@dataclass(frozen=True)
class Alarms:
    """Incidents that somebody is told of, in order of the moment at which they are. n of them; times in ns since 1970.

    Attributes:
        series: name of the series. (n,)
        labels: the class. (n,)
        starts, lasts: times of the first and the last row. (n,)
        raised: time of the row at which the alarm is raised. (n,)
        peaks: time of the row with the largest confidence. (n,)
        peak_confidence, mean_confidence: probability of the class in that row, and in all rows that count for it. (n,)
        onset_certainty: its probability in the first row against that at the peak: near 1 if it came at once, near 0
            if it crept in. (n,)
        rows: how many rows count for it. (n,)
        novel: share of these rows that are like none of training. (n,)
    """

    series: NDArray[np.object_]
    labels: NDArray[np.object_]
    starts: NDArray[np.int64]
    lasts: NDArray[np.int64]
    raised: NDArray[np.int64]
    peaks: NDArray[np.int64]
    peak_confidence: NDArray[np.float64]
    mean_confidence: NDArray[np.float64]
    onset_certainty: NDArray[np.float64]
    rows: NDArray[np.int64]
    novel: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> Alarms:
        return Alarms(*(getattr(self, field.name)[which] for field in fields(self)))


@dataclass(frozen=True)
class _Counting:
    """Rows that count for a class: numbers of series and class, time, probability, threshold reached, novel. (n,)"""

    series: NDArray[np.int64]
    classes: NDArray[np.int64]
    times: NDArray[np.int64]
    confidence: NDArray[np.float64]
    is_sure: NDArray[np.bool_]
    is_novel: NDArray[np.bool_]

    def __getitem__(self, which: NDArray[np.int64]) -> _Counting:
        return _Counting(*(getattr(self, field.name)[which] for field in fields(self)))


class AlarmCollector:
    """Takes rows with their probabilities and tells the alarms.

    Args:
        rule: when rows become an alarm.
        classes: names of the K columns.
        interval_ns: time between rows.

    Attributes:
        series: names of all series that rows came from.
    """

    def __init__(self, rule: AlarmRule, classes: tuple[str, ...], interval_ns: int) -> None:
        self.rule, self.classes, self.interval_ns = rule, classes, interval_ns
        self._limits = rule.limits(classes)
        self.series: set[str] = set()
        self._series: dict[str, int] = {}
        self._parts: list[_Counting] = []

    def add(
        self,
        series: NDArray[np.object_],
        times: NDArray[np.int64],
        probabilities: NDArray[np.floating],
        novelty: NDArray[np.float64] | None = None,
    ) -> None:
        """Take rows in any order.

        Args:
            series, times: of each row, in nanoseconds since 1970. (rows,)
            probabilities: of the classes, zero where nothing was measured. (rows, K)
            novelty: how unlike training each row is, above 1 for unknown; None: that is not known. (rows,)
        """
        self.series.update(map(str, pd.unique(series)))
        against = probabilities / self._limits  # (rows, K)
        best = against.argmax(axis=1)
        reached = against[np.arange(len(best)), best]
        rows = np.flatnonzero(reached >= self.rule.hysteresis)
        codes, names = pd.factorize(series[rows])
        numbers = np.array([self._series.setdefault(str(name), len(self._series)) for name in names], dtype=np.int64)
        self._parts.append(
            _Counting(
                numbers[codes],
                best[rows],
                times[rows],
                probabilities[rows, best[rows]].astype(np.float64),
                reached[rows] >= 1,
                np.zeros(len(rows), dtype=bool) if novelty is None else novelty[rows] > 1,
            )
        )

    def alarms(self) -> Alarms:
        """The alarms of all rows taken so far."""
        rows = self._in_order()
        reach = self.interval_ns * (self.rule.merge_rows + 1) + self.interval_ns // 2  # clocks are not exact
        goes_on = (np.diff(rows.series) == 0) & (np.diff(rows.classes) == 0) & (np.diff(rows.times) <= reach)
        number = np.cumsum(np.r_[True, ~goes_on][: len(rows.times)]) - 1  # of the incident of each row
        starts = np.flatnonzero(np.diff(number, prepend=-1))  # first row of each incident
        within = np.arange(len(number)) - starts[number]  # place of each row in its incident
        sure_so_far = _any_so_far(rows.is_sure, starts[number])
        raising = np.flatnonzero(sure_so_far & (within + 1 >= self.rule.min_rows))
        told, first = np.unique(number[raising], return_index=True)
        return self._told(rows, number, told, starts[told], raising[first])

    def _in_order(self) -> _Counting:
        """All rows by series, class and time, without second rows of one moment."""
        if not self._parts:
            nothing = np.empty(0, dtype=np.int64)
            return _Counting(nothing, nothing, nothing, nothing.astype(np.float64), *[nothing.astype(np.bool_)] * 2)
        joined = _Counting(*(np.concatenate([getattr(p, f.name) for p in self._parts]) for f in fields(_Counting)))
        self._parts = [joined]
        rows = joined[np.lexsort((joined.times, joined.classes, joined.series))]
        again = (np.diff(rows.series) == 0) & (np.diff(rows.classes) == 0) & (np.diff(rows.times) == 0)
        return rows[np.flatnonzero(~np.r_[False, again][: len(rows.times)])]

    def _told(
        self,
        rows: _Counting,
        number: NDArray[np.int64],
        told: NDArray[np.int64],
        starts: NDArray[np.int64],
        raising: NDArray[np.int64],
    ) -> Alarms:
        """The alarms of the incidents `told`, whose first rows and raising rows are given. (n,) each"""
        counts = np.bincount(number, minlength=int(number.max(initial=-1)) + 1)
        sums = np.bincount(number, weights=rows.confidence, minlength=len(counts))
        by_peak = np.lexsort((-rows.confidence, number))  # within an incident the peak first; number is sorted
        peaks = by_peak[starts]
        names = np.array(list(self._series), dtype=object)
        found = Alarms(
            series=names[rows.series[starts]] if len(starts) else np.empty(0, dtype=object),
            labels=np.array(self.classes, dtype=object)[rows.classes[starts]],
            starts=rows.times[starts],
            lasts=rows.times[starts + counts[told] - 1],
            raised=rows.times[raising],
            peaks=rows.times[peaks],
            peak_confidence=rows.confidence[peaks],
            mean_confidence=sums[told] / counts[told],
            onset_certainty=rows.confidence[starts] / rows.confidence[peaks],
            rows=counts[told],
            novel=np.bincount(number, weights=rows.is_novel, minlength=len(counts))[told] / counts[told],
        )
        return found[np.lexsort((found.labels.astype(str), found.series.astype(str), found.raised))]


def _any_so_far(marked: NDArray[np.bool_], starts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether a row or one before it, since the row `starts` of its own, is marked. (rows,), (rows,) to (rows,)"""
    latest = np.maximum.accumulate(np.where(marked, np.arange(len(marked)), -1))
    return np.asarray(latest >= starts)
