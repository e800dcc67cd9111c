"""Which alarm was about which incident, and the scores that follow.

An alarm is right about a true incident if it has its series and its class, shares a moment with it, and was raised
while it lasted, or up to `EARLY_ROWS` rows before its first row, as labels are not exact. Of several such incidents it
counts for the one that it shares most time with: an alarm that never ends finds one incident, not all that follow.
Several alarms may be right about one incident; the first counts for its delay. An alarm that was raised at no such
moment of any incident, whatever its class, is a false one, also if it still goes on when an incident begins; the
others, right about none, have the wrong name or came too late.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.alarms.raising import Alarms
from netanomaly.by_name import rows_by_name
from netanomaly.evaluation.events import DAY_NS, find_incidents
from netanomaly.evaluation.rows import ScoredRows

EARLY_ROWS = 5
"""Rows before an incident at which an alarm about it may be raised."""
DRAWS, BLOCKS = 1000, 20
"""Of the bootstrap: how often it draws, and how many stretches of rows it draws from at least."""


@dataclass(frozen=True)
class TrueIncidents:
    """Incidents as the labels tell them. n of them; times in nanoseconds since 1970, `lasts` of the last row."""

    series: NDArray[np.object_]
    labels: NDArray[np.object_]
    starts: NDArray[np.int64]
    lasts: NDArray[np.int64]

    @classmethod
    def of_rows(cls, rows: ScoredRows) -> TrueIncidents:
        """The incidents of labelled rows."""
        found = find_incidents(rows, rows.truth)
        ends = np.r_[found.starts[1:], len(found.rows)][: len(found)] - 1
        first, last = found.rows[found.starts], found.rows[ends]
        return cls(rows.series[first], found.labels, rows.times[first], rows.times[last])

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Matches:
    """What each alarm was about.

    Attributes:
        incident: number of the true incident that each alarm is right about, -1: none. (alarms,)
        is_false: whether it shares no moment with any true incident. (alarms,)
        delays: seconds from the start of each true incident to its first right alarm, NaN: there is none. (incidents,)
    """

    incident: NDArray[np.int64]
    is_false: NDArray[np.bool_]
    delays: NDArray[np.float64]


def match(true: TrueIncidents, alarms: Alarms, interval_ns: int) -> Matches:
    """Match alarms with true incidents, which do not overlap within a series. O(n log n) but for what they share."""
    early = EARLY_ROWS * interval_ns + interval_ns // 2
    called, about = _meetings(true, alarms, early)
    opens, closes = true.starts[about] - early, true.lasts[about]
    raised, begun = alarms.raised[called], alarms.starts[called]
    in_time = (raised >= opens) & (raised <= closes)
    is_false = np.ones(len(alarms), dtype=bool)
    is_false[called[in_time | ((begun >= opens) & (begun <= closes))]] = False
    shared = np.minimum(alarms.lasts[called], closes) - np.maximum(begun, true.starts[about])  # ns; below 0: none
    right = np.flatnonzero(in_time & (shared >= 0) & (alarms.labels[called] == true.labels[about]))
    right = right[np.lexsort((-shared[right], called[right]))]  # of an alarm the one that it shares most with first
    found, first = np.unique(called[right], return_index=True)
    incident = np.full(len(alarms), -1)
    incident[found] = about[right[first]]
    return Matches(incident, is_false, _delays(true, alarms, incident))


def _meetings(true: TrueIncidents, alarms: Alarms, early: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of an alarm and an incident of its series that meet, if that began `early` ns sooner. (pairs,), (pairs,)"""
    codes = pd.factorize(np.concatenate([true.series, alarms.series]))[0]
    moments = np.concatenate([true.starts - early, true.lasts, alarms.starts, alarms.lasts])
    ranks = np.unique(moments, return_inverse=True)[1]
    count = len(true)
    opens, closes, starts, lasts = np.split(ranks, [count, 2 * count, 2 * count + len(alarms)])
    ours, theirs = codes[:count] * len(moments), codes[count:] * len(moments)  # one axis for all series
    order = np.argsort(ours + closes, kind="stable")
    first = np.searchsorted((ours + closes)[order], theirs + starts)
    behind = np.searchsorted((ours + opens)[order], theirs + lasts, side="right")
    many = np.maximum(behind - first, 0)
    called = np.repeat(np.arange(len(alarms)), many)
    place = np.arange(len(called)) - np.repeat(np.cumsum(many) - many, many) + np.repeat(first, many)
    return called, order[place]


def _delays(true: TrueIncidents, alarms: Alarms, incident: NDArray[np.int64]) -> NDArray[np.float64]:
    """Seconds from the start of each incident to its first right alarm, 0 if that came earlier, NaN without one."""
    right = np.flatnonzero(incident >= 0)
    raised = np.full(len(true), np.iinfo(np.int64).max)
    np.minimum.at(raised, incident[right], alarms.raised[right])
    found = np.unique(incident[right])
    delays = np.full(len(true), np.nan)
    delays[found] = np.maximum(raised[found] - true.starts[found], 0) / 1e9
    return delays


def calm_in_alarm(rows: ScoredRows, alarms: Alarms) -> float | None:
    """Share of the normal rows that lie between the first and the last row of some alarm of their series."""
    calm = rows.truth == rows.normal
    if not calm.any():
        return None
    inside = np.zeros(len(rows), dtype=bool)
    of_series = rows_by_name(rows.series)
    for name, own in rows_by_name(alarms.series).items():
        mine = of_series.get(name)
        if mine is None:
            continue
        starts, lasts = np.sort(alarms.starts[own]), np.sort(alarms.lasts[own])
        times = rows.times[mine]  # in so many alarms: those that have begun less those that are over
        inside[mine] = np.searchsorted(starts, times, side="right") > np.searchsorted(lasts, times)
    return float(inside[calm].mean())


def alarm_scores(rows: ScoredRows, alarms: Alarms, seed: int = 0) -> dict[str, Any]:
    """Scores of alarms on labelled rows as plain values; null where there is nothing to divide by.

    Returns:
        alarms, incidents, false_alarms, wrong_name, series_days: how many; rows times interval.
        recall: share of true incidents with a right alarm.
        precision: share of alarms that are right about an incident.
        delay_median_s, delay_p90_s: seconds from the start of an incident until the alarm is raised, of those found.
        calm_in_alarm: share of the normal rows that lie in an alarm: what its start says nothing of.
        false_alarms_per_series_day: null if no row is normal.
        intervals: of recall, precision, delay_median_s and false_alarms_per_series_day, the middle 95 % of what a
            block bootstrap draws (Kuensch 1989): stretches of rows are drawn again, with the incidents and alarms that
            begin in them. They say what other hours of such series would give, not what other networks would.
        per_class: incidents, found, recall, alarms, precision, false_alarms, delay_median_s of each class.
    """
    true = TrueIncidents.of_rows(rows)
    matches = match(true, alarms, rows.interval_ns)
    days = len(rows) * rows.interval_ns / DAY_NS
    is_right = matches.incident >= 0
    some_normal = bool((rows.truth == rows.normal).any())
    return {
        "incidents": len(true),
        "alarms": len(alarms),
        "false_alarms": int(matches.is_false.sum()),
        "wrong_name": int((~is_right & ~matches.is_false).sum()),
        "series_days": days,
        "recall": _mean(~np.isnan(matches.delays)),
        "precision": _mean(is_right),
        "delay_median_s": _quantile(matches.delays, 0.5),
        "delay_p90_s": _quantile(matches.delays, 0.9),
        "calm_in_alarm": calm_in_alarm(rows, alarms),
        "false_alarms_per_series_day": float(matches.is_false.sum() / days) if some_normal else None,
        "intervals": _intervals(rows, true, alarms, matches, some_normal, seed),
        "per_class": {
            str(name): _class_scores(matches, true.labels == name, alarms.labels == name)
            for name in sorted({*true.labels, *alarms.labels})
        },
    }


def _class_scores(matches: Matches, own: NDArray[np.bool_], called: NDArray[np.bool_]) -> dict[str, Any]:
    """Of the incidents (incidents,) and alarms (alarms,) of one class."""
    delays, is_right = matches.delays[own], matches.incident[called] >= 0
    return {
        "incidents": len(delays),
        "found": int((~np.isnan(delays)).sum()),
        "recall": _mean(~np.isnan(delays)),
        "alarms": len(is_right),
        "precision": _mean(is_right),
        "false_alarms": int(matches.is_false[called].sum()),
        "delay_median_s": _quantile(delays, 0.5),
    }


def _intervals(
    rows: ScoredRows, true: TrueIncidents, alarms: Alarms, matches: Matches, some_normal: bool, seed: int
) -> dict[str, list[float] | None]:
    """The middle 95 % of each score over the draws of a block bootstrap."""
    blocks = _Blocks(rows)
    begun, called = blocks.of(true.series, true.starts), blocks.of(alarms.series, alarms.starts)
    count = len(blocks.sizes)
    sums = np.stack(
        [
            np.bincount(begun, minlength=count),  # incidents
            np.bincount(begun[~np.isnan(matches.delays)], minlength=count),  # found
            np.bincount(called, minlength=count),  # alarms
            np.bincount(called[matches.incident >= 0], minlength=count),  # right
            np.bincount(called[matches.is_false], minlength=count),  # false
            blocks.sizes,  # rows
        ]
    ).astype(np.float64)  # (6, blocks)
    drawn = np.random.default_rng(seed).integers(count, size=(DRAWS, count))
    incidents, found, raised, right, false, many = sums[:, drawn].sum(axis=2)  # (draws,) each
    times = np.bincount(np.repeat(np.arange(DRAWS), count) * count + drawn.ravel(), minlength=DRAWS * count)
    medians = [_weighted_median(matches.delays, often[begun]) for often in times.reshape(DRAWS, count)]
    days = many * rows.interval_ns / DAY_NS
    return {
        "recall": _middle(found, incidents),
        "precision": _middle(right, raised),
        "delay_median_s": _middle(np.array(medians), np.ones(DRAWS)),
        "false_alarms_per_series_day": _middle(false, days) if some_normal else None,
    }


class _Blocks:
    """Stretches of rows that are drawn as one: whole series, or parts of them where there are few."""

    def __init__(self, rows: ScoredRows) -> None:
        found = rows_by_name(rows.series)
        parts = -(-BLOCKS // len(found))
        self._bounds: dict[str, tuple[int, NDArray[np.int64]]] = {}
        sizes: list[int] = []
        for name, own in found.items():
            times = np.sort(rows.times[own])
            pieces = [piece for piece in np.array_split(times, parts) if len(piece)]
            self._bounds[str(name)] = (len(sizes), np.array([piece[0] for piece in pieces[1:]], dtype=np.int64))
            sizes += [len(piece) for piece in pieces]
        self.sizes = np.array(sizes)

    def of(self, series: NDArray[np.object_], times: NDArray[np.int64]) -> NDArray[np.int64]:
        """The block in which each moment lies. (n,), (n,) to (n,)"""
        result = np.zeros(len(times), dtype=np.int64)
        for name, own in rows_by_name(series).items():
            first, bounds = self._bounds[name]
            result[own] = first + np.searchsorted(bounds, times[own], side="right")
        return result


def _weighted_median(values: NDArray[np.float64], often: NDArray[np.int64]) -> float:
    """The median of values that occur so often; NaN is left out. (n,), (n,)"""
    known = np.repeat(values, often)
    known = known[~np.isnan(known)]
    return float(np.median(known)) if len(known) else np.nan


def _middle(amount: NDArray[np.float64], of: NDArray[np.float64]) -> list[float] | None:
    """The 2.5 % and the 97.5 % quantile of a ratio, of the draws that have one. (draws,), (draws,)"""
    ratios = amount[of > 0] / of[of > 0]
    ratios = ratios[~np.isnan(ratios)]
    return [float(value) for value in np.quantile(ratios, [0.025, 0.975])] if len(ratios) else None


def _mean(values: NDArray[np.bool_]) -> float | None:
    return float(values.mean()) if len(values) else None


def _quantile(values: NDArray[np.float64], share: float) -> float | None:
    known = values[~np.isnan(values)]
    return float(np.quantile(known, share)) if len(known) else None
