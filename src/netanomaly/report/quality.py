"""What is wrong with the data: gaps, missing values, metrics that say nothing, values unlike those of training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netanomaly.data.reference import drift
from netanomaly.data.schema import Metric
from netanomaly.report.clock import length
from netanomaly.report.content import Content, SeriesRows
from netanomaly.report.numbers import counted, in_unit, number, percent, unit

MOVED, FAR = 0.3, 0.6
"""Distances (KS) from which on a metric has moved, or is somewhere else."""
MUCH = 0.05
"""Share of missing values from which on the summary names a metric."""
NAMED = 8


@dataclass(frozen=True)
class MetricQuality:
    """One metric in all rows: how much is missing, its middle and ends, and its distance from training (None: unknown).

    `state` is what stands out: empty, constant, moved, far; or nothing.
    """

    name: str
    unit: str
    kind: str
    missing: float
    missing_in_training: float | None
    low: str
    middle: str
    high: str
    training: str
    ks: float | None
    outside: float | None
    state: str


@dataclass(frozen=True)
class SeriesQuality:
    """One series: its rows, the share of its time in which something was measured, its gaps."""

    name: str
    rows: int
    when: str
    coverage: float
    without_data: int
    gaps: int
    longest_gap: str


def metric_quality(content: Content) -> list[MetricQuality]:
    """Each metric over all rows."""
    values = np.concatenate([one.values for one in content.series])  # (rows, M)
    return [_metric(values[:, m], metric, content) for m, metric in enumerate(content.metrics)]


def _metric(column: NDArray[np.float64], metric: Metric, content: Content) -> MetricQuality:
    known = column[~np.isnan(column)]
    trained = None if content.reference is None else content.reference["metrics"].get(metric.name)
    moved = None if trained is None else drift(column, trained["quantiles"])
    ks = None if moved is None else moved["ks"]
    low, middle, high = in_unit(np.quantile(known, [0.01, 0.5, 0.99]), metric) if len(known) else (None, None, None)
    return MetricQuality(
        name=metric.name,
        unit=unit(metric),
        kind=metric.kind,
        missing=1 - len(known) / len(column),
        missing_in_training=None if trained is None else trained["missing"],
        low=number(low),
        middle=number(middle),
        high=number(high),
        training=_training(trained["quantiles"], metric) if trained is not None else "",
        ks=ks,
        outside=None if moved is None else moved["outside"],
        state=_state(known, ks),
    )


def _training(quantiles: list[float], metric: Metric) -> str:
    """The same of the training rows."""
    if not quantiles:
        return "never measured"
    ends = in_unit(np.array(quantiles)[[1, len(quantiles) // 2, -2]], metric)
    return " / ".join(number(float(value)) for value in ends)


def _state(known: NDArray[np.float64], ks: float | None) -> str:
    if not len(known):
        return "empty"
    if known.min() == known.max():
        return "constant"
    if ks is not None and ks >= MOVED:
        return "far" if ks >= FAR else "moved"
    return ""


def series_quality(content: Content) -> list[SeriesQuality]:
    """Each series, those with the least coverage first."""
    return sorted((_series(content, one) for one in content.series), key=lambda one: one.coverage)


def _series(content: Content, rows: SeriesRows) -> SeriesQuality:
    clock, apart = content.clock, np.diff(rows.times)
    gaps = apart[apart > 1.5 * clock.interval_ns]
    first, last = int(rows.times[0]), int(rows.times[-1])
    steps = round((last - first) / clock.interval_ns) + 1
    measured = int((~np.isnan(rows.values).all(axis=1)).sum())
    return SeriesQuality(
        name=rows.name,
        rows=len(rows),
        when=f"{clock.full(first)} to {clock.short(last, first)}",
        coverage=min(1.0, measured / steps),
        without_data=len(rows) - measured,
        gaps=len(gaps),
        longest_gap=length(int(gaps.max())) if len(gaps) else "",
    )


def remarks(content: Content, metrics: list[MetricQuality], series: list[SeriesQuality]) -> list[str]:
    """What a person should know of the data before believing the rest, a sentence each."""
    found = [
        _remark("never measured here", [one.name for one in metrics if one.state == "empty"]),
        _remark("constant here", [one.name for one in metrics if one.state == "constant"]),
        _remark(
            f"missing in more than {percent(MUCH)} of the rows",
            [one.name for one in metrics if MUCH < one.missing < 1],
        ),
        _remark("unlike the training rows", [one.name for one in metrics if one.state in ("moved", "far")]),
    ]
    gaps, rows = sum(one.gaps for one in series), sum(one.without_data for one in series)
    found.append(f"{counted(gaps, 'gap')} in the rows" if gaps else "no gaps in the rows")
    if rows:
        found.append(f"{counted(rows, 'row')} in which nothing was measured (no_data)")
    if content.reference is None:
        found.append("the bundle does not know what its training rows were like (it is an older one): no drift is told")
    return [f"{one[0].upper()}{one[1:]}." for one in found if one]


def _remark(what: str, names: list[str]) -> str:
    shown = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
    return f"{counted(len(names), 'metric')} {what}: {shown}" if names else ""
