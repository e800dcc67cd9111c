"""What a metric did, in its own unit, from the rows that carried the answer: one sentence each."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netanomaly.data.schema import Metric

CARRIED = 0.9
"""Metrics are named until they carry this share together, and the rows of a metric are those that carry this of it."""
MOST = 5
"""Metrics that a reason names at most."""
_CLOCK = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)\S*")


@dataclass(frozen=True)
class MetricReason:
    """What one metric adds to the answer.

    Attributes:
        metric, unit: its name and unit as configured; that of a counter is per second.
        attribution: its part of the difference of log odds, over all rows.
        share: of what all metrics add that speak for the class.
        before: where it usually was before the incident; None if it was mostly not measured.
        value: in the rows that carry most; None if it was mostly not measured there.
        since: time of the first of these rows, or of an earlier one from which on the metric has been nearer to `value`
            than to `before`.
    """

    metric: str
    unit: str
    attribution: float
    share: float
    before: float | None
    value: float | None
    since: str
    sentence: str


@dataclass(frozen=True)
class WindowRows:
    """The rows that an answer depends on, oldest first, and the segment that they are of.

    Attributes:
        steps: in the segment. (S,)
        values, usual: metrics of the whole segment and where they usually are. (T, M)
        times: of each step of the segment as text, empty where there is no row. (T,)
        first, peak: steps of the incident.
    """

    steps: NDArray[np.int64]
    values: NDArray[np.float64]
    usual: NDArray[np.float64]
    times: NDArray[np.object_]
    first: int
    peak: int

    def time(self, step: int) -> str:
        """The time of a step as a sentence has it: without the date if that is the day of the peak."""
        return short_time(str(self.times[step]), str(self.times[self.peak]))


def metric_reasons(
    parts: NDArray[np.float64], rows: WindowRows, metrics: Sequence[Metric]
) -> tuple[tuple[MetricReason, ...], float]:
    """The metrics that speak for the class, the strongest first, and the share of those that are not named.

    Args:
        parts: what each row and metric adds. (S, M)
    """
    totals = parts.sum(0)
    speaking = np.maximum(totals, 0)
    if not speaking.any():
        return (), 0.0
    named = carrying(speaking)[:MOST]
    found = tuple(_reason(parts[:, m], int(m), rows, metrics[m], speaking[m] / speaking.sum()) for m in named)
    return found, float(max(0.0, 1 - sum(one.share for one in found)))


def carrying(parts: NDArray[np.float64]) -> NDArray[np.int64]:
    """The fewest of these that carry `CARRIED` of what is positive, the largest first. (n,)"""
    order = np.argsort(-parts, kind="stable")
    summed = np.cumsum(np.maximum(parts[order], 0))
    return order[: int(np.searchsorted(summed, CARRIED * summed[-1] * (1 - 1e-12))) + 1]


def _reason(parts: NDArray[np.float64], m: int, rows: WindowRows, metric: Metric, share: float) -> MetricReason:
    """Of metric number m, whose parts are (S,)."""
    strong = np.sort(carrying(parts))
    values, weights = rows.values[rows.steps[strong], m], parts[strong]
    missing = np.isnan(values)
    value = (
        None if weights[missing].sum() > weights.sum() / 2 else _weighted_median(values[~missing], weights[~missing])
    )
    first = int(rows.steps[strong[0]])
    calm = min(first, rows.first) - 1
    before = None if calm < 0 or np.isnan(rows.usual[calm, m]) else float(rows.usual[calm, m])
    since = _began(rows.values[: first + 1, m], before, value)
    before, value = (None if one is None else one / metric.factor for one in (before, value))
    plain = "" if metric.unit == "1" else metric.unit
    unit = f"{plain or 1}/s" if metric.kind == "counter" else metric.unit
    return MetricReason(
        metric=metric.name,
        unit=unit,
        attribution=float(parts.sum()),
        share=float(share),
        before=before,
        value=value,
        since=str(rows.times[since]),
        sentence=sentence(metric.name, before, value, rows.time(since), unit_beside(metric.name, unit)),
    )


def _began(column: NDArray[np.float64], before: float | None, value: float | None) -> int:
    """The step from which on a metric has been, up to the last step given, what its sentence says. (T,)"""
    missing = np.isnan(column)
    if value is None:
        same = missing
    elif before is None:
        same = ~missing
    else:
        same = missing | (np.abs(column - value) < np.abs(column - before))
    other = np.flatnonzero(~same[:-1])
    start = int(other[-1]) + 1 if len(other) else 0
    return start if value is None else start + int(np.argmin(missing[start:]))


def _weighted_median(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    order = np.argsort(values, kind="stable")
    summed = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(summed, summed[-1] / 2)])


def sentence(name: str, before: float | None, value: float | None, since: str, unit: str = "") -> str:
    """`rtt_ms 41.2 -> 96.8 (+135 %) from 10:41:07`, `rtt 41.2 -> 96.8 ms (+135 %) from 10:41:07`"""
    if value is None:
        return f"{name} not measured from {since}"
    now = f"{number(value)} {unit}".rstrip()
    if before is None:
        return f"{name} {now} from {since} (mostly not measured before)"
    return f"{name} {number(before)} -> {now}{_change(before, value)} from {since}"


def unit_beside(name: str, unit: str) -> str:
    """The unit, unless the name of the metric tells it: `rtt_ms` and `tx_bps` do."""
    told = {"bit/s": ("bps", "bits"), "packet/s": ("per_s", "pps"), "1/s": ("per_s",), "ratio": ("ratio",), "1": ("",)}
    return "" if any(name.lower().endswith(end) for end in (unit.lower(), *told.get(unit, ()))) else unit


def _change(before: float, value: float) -> str:
    """In percent, or in times where percents are hard to read; nothing against zero or another sign."""
    if before == value:
        return " (as before)"
    if before == 0 or before * value < 0:
        return ""
    if abs(value) >= 11 * abs(before):
        return f" ({number(value / before)} times)"
    percent = 100 * (value / before - 1) * math.copysign(1, before)
    return f" ({percent:+.{0 if abs(percent) >= 1 else 1}f} %)"


def number(value: float) -> str:
    """Three digits, with k, M, G, T from ten thousand on: 96.8, 0.0123, 5.57M."""
    size = float(f"{abs(value):.3g}")  # as it is shown: 999,900 is 1M
    if not 1e4 <= size < 1e15:
        plain = f"{value:.3g}"
        return f"{float(plain):g}" if size >= 1 else plain
    thousands = int(math.log10(size) // 3)
    return f"{value / 1000**thousands:.3g}{'kMGT'[thousands - 1]}"


def short_time(text: str, beside: str) -> str:
    """A time without its date and zone if the time beside it has the same date; as it is if it is of another format."""
    found, other = _CLOCK.fullmatch(text), _CLOCK.fullmatch(beside)
    if found is None or other is None or found[1] != other[1]:
        return text
    return found[2]
