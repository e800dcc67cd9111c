"""One card for each alarm: the metrics around it, how sure it is, and why, if that is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netanomaly.data.schema import Metric
from netanomaly.report.content import Content, SeriesRows
from netanomaly.report.decimation import block_size, block_starts, extremes
from netanomaly.report.incidents import Incident
from netanomaly.report.numbers import in_unit, number, unit
from netanomaly.report.reason_part import ReasonPart, reason_part
from netanomaly.report.svg import line, scaled

MOST = 200
"""Cards at most: those of the alarms with the largest peak confidence."""
METRICS = 4
"""Drawn in a card at most."""
WIDTH, HEIGHT = 300.0, 44.0
POINTS = 150
AROUND = 60
"""Rows in front of an alarm that are drawn at least, half of them behind it."""


@dataclass(frozen=True)
class Spark:
    """One metric around an alarm: a path, where the alarm lies in it, and its values before and during the alarm."""

    metric: str
    unit: str
    path: str
    start: float
    width: float
    before: str
    during: str
    low: str
    high: str


@dataclass(frozen=True)
class Card:
    """What a card shows."""

    incident: Incident
    sparks: tuple[Spark, ...]
    window: str
    reason: ReasonPart | None


def cards(content: Content, incidents: Sequence[Incident]) -> list[Card]:
    """The cards, in order of time."""
    raised = [one for one in incidents if one.number >= 0]
    kept = sorted(raised, key=lambda one: -(one.confidence or 0.0))[:MOST]
    rows = {one.name: one for one in content.series}
    chosen = {one.number for one in kept}
    return [_card(content, rows[one.series], one) for one in raised if one.number in chosen]


def _card(content: Content, rows: SeriesRows, incident: Incident) -> Card:
    """The rows from some before the alarm to some behind it."""
    first, last = np.searchsorted(rows.times, [incident.start, incident.last])
    around = max(AROUND, int(last - first + 1))
    start, stop = max(0, int(first) - around), min(len(rows), int(last) + 1 + around // 2)
    reason = content.reasons.get(incident.number)
    span = slice(start, stop)
    inside = slice(int(first) - start, int(last) + 1 - start)
    clock = content.clock
    shown = _metrics(rows.values[span], inside, content.metrics, reason)
    return Card(
        incident=incident,
        sparks=tuple(_spark(rows.times[span], rows.values[span, m], inside, content.metrics[m]) for m in shown),
        window=clock.between(int(rows.times[start]), int(rows.times[stop - 1])),
        reason=None if reason is None else reason_part(reason),
    )


def _metrics(
    values: NDArray[np.float64], inside: slice, metrics: Sequence[Metric], reason: Mapping[str, Any] | None
) -> list[int]:
    """The metrics that the reason names; without one those that moved most against how they scatter before. (T, M)"""
    if reason is not None and reason["metrics"]:
        place = {metric.name: m for m, metric in enumerate(metrics)}
        return [place[one["metric"]] for one in reason["metrics"] if one["metric"] in place][:METRICS]
    before, during = values[: inside.start], values[inside]
    moved = np.zeros(values.shape[1])
    for m in range(len(moved)):
        calm, now = (part[:, m][~np.isnan(part[:, m])] for part in (before, during))
        if len(calm) and len(now):
            low, middle, high = np.quantile(calm, [0.1, 0.5, 0.9])
            change = abs(np.median(now) - middle)
            least = 0.02 * max(abs(middle), float(np.abs(now).max()), 1e-12)  # a metric that stood still
            moved[m] = change / max(high - low, least)
    return [int(m) for m in np.argsort(-moved, kind="stable")[:METRICS] if moved[m] > 0]


def _spark(times: NDArray[np.int64], values: NDArray[np.float64], inside: slice, metric: Metric) -> Spark:
    """A metric over the rows of a card. (T,), (T,)"""
    given = in_unit(values, metric)
    block = block_size(len(given), POINTS)
    places = times[block_starts(len(given), block)]
    x = WIDTH * (places - times[0]) / max(1, int(times[-1] - times[0]))
    y = extremes(given, block)[: len(x)]
    known = given[~np.isnan(given)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (np.nan, np.nan)
    edges = WIDTH * (times[[inside.start, inside.stop - 1]] - times[0]) / max(1, int(times[-1] - times[0]))
    return Spark(
        metric=metric.name,
        unit=unit(metric),
        path=line(x, 2 + scaled(y, low, high, HEIGHT - 4)),
        start=round(float(edges[0]), 1),
        width=round(max(1.5, float(edges[1] - edges[0])), 1),
        before=number(_median(given[: inside.start])),
        during=number(_median(given[inside])),
        low=number(low),
        high=number(high),
    )


def _median(values: NDArray[np.float64]) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else np.nan
