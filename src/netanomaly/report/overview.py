"""Every series as one line: when it raised alarms, and what the labels say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from netanomaly.data.ingest import NO_DATA, UNLABELLED
from netanomaly.report.content import Content, SeriesRows
from netanomaly.report.incidents import Incident
from netanomaly.report.stretches import Stretch, joined_stretches, stretches
from netanomaly.report.svg import joined

WIDTH = 1000.0
"""Of a line, in units of its drawing."""
THIN = 1.5
"""What a band is wide at least, and what lies between two bands of one label that are not joined."""
MOST = 60
"""Series that are drawn at most."""
MOST_LINKS = 1000
"""Alarms of all series that are drawn one by one at most; of more, those are joined that the eye cannot tell apart."""
MOST_BANDS = 600
"""Of a label in a line: of more, those are joined that hardly any time lies between."""
MOST_TITLES = 150
"""Bands of a line that are drawn one by one, with a title, at most."""
TICKS = 5


@dataclass(frozen=True)
class Band:
    """Where it is (start and width; maybe many), whose colour, its alarm (-1: none), and what it is, in words."""

    places: tuple[tuple[float, float], ...]
    label: str
    number: int
    title: str

    def path(self, top: float, height: float) -> str:
        """The `d` of a path that fills it."""
        return "".join(f"M{x:.1f} {top:g}h{width:.1f}v{height:g}h{-width:.1f}z" for x, width in self.places)


@dataclass(frozen=True)
class Line:
    """One series: where it has rows, what the labels say, and its alarms."""

    series: str
    rows: tuple[Band, ...]
    truth: tuple[Band, ...]
    alarms: tuple[Band, ...]
    count: int


@dataclass(frozen=True)
class Overview:
    """Lines with a common time; `ticks` are places (0 to 100) with their times; how many series are left out."""

    lines: tuple[Line, ...]
    ticks: tuple[tuple[float, str], ...]
    left_out: int


def overview(content: Content, incidents: Sequence[Incident]) -> Overview:
    """The series with most alarms, at most `MOST`, in the order of the alphabet."""
    first = min(int(one.times[0]) for one in content.series)
    end = max(int(one.times[-1]) for one in content.series) + content.clock.interval_ns
    own: dict[str, list[Incident]] = {one.name: [] for one in content.series}
    for incident in incidents:
        if incident.number >= 0:
            own[incident.series].append(incident)
    eventful = sorted(content.series, key=lambda one: -len(own[one.name]))[:MOST]
    shown = {one.name for one in eventful}
    scale = _Scale(first, end, content.clock.interval_ns)
    is_many = len(content.alarms) > MOST_LINKS
    lines = [_line(content, one, own[one.name], scale, is_many) for one in content.series if one.name in shown]
    moments = np.linspace(first, end, TICKS)
    whole = 10**9 if end - first > 10 * 10**9 else 1  # no fractions of seconds on a scale of minutes
    ticks = [
        (100 * place / (TICKS - 1), content.clock.short(int(time) // whole * whole, first))
        for place, time in enumerate(moments)
    ]
    return Overview(tuple(lines), tuple(ticks), len(content.series) - len(lines))


@dataclass(frozen=True)
class _Scale:
    """Moments as places on a line."""

    first: int
    end: int
    interval_ns: int

    def span(self, start: int, last: int) -> tuple[float, float]:
        """Where rows begin and end."""
        scale = WIDTH / (self.end - self.first)
        return (start - self.first) * scale, (last + self.interval_ns - self.first) * scale


def _line(content: Content, rows: SeriesRows, alarms: Sequence[Incident], scale: _Scale, is_many: bool) -> Line:
    interval = content.clock.interval_ns
    spans = [Stretch(one.label, one.start, one.last) for one in alarms]
    everything = np.full(len(rows), "", dtype=object)
    calm = (content.normal, UNLABELLED, NO_DATA)
    return Line(
        series=rows.name,
        rows=_bands(stretches(everything, rows.times, interval), scale),
        truth=_bands(stretches(rows.truth, rows.times, interval, calm), scale),
        alarms=_bands(spans, scale) if is_many else _alarms(content, alarms, scale),
        count=len(alarms),
    )


def _bands(spans: Sequence[Stretch], scale: _Scale) -> tuple[Band, ...]:
    """Stretches as bands, those joined that the eye would not tell apart."""
    fewer = joined_stretches(spans, MOST_BANDS)
    found = joined([(*scale.span(one.start, one.last), one.label) for one in fewer], THIN)
    return _merged(tuple(Band(((x, max(end - x, THIN)),), label, -1, label) for x, end, label in found))


def _merged(bands: tuple[Band, ...]) -> tuple[Band, ...]:
    """Those of a label as one drawing if there are many."""
    if len(bands) <= MOST_TITLES:
        return bands
    labels = dict.fromkeys(band.label for band in bands)
    return tuple(
        Band(tuple(place for band in bands if band.label == label for place in band.places), label, -1, label)
        for label in labels
    )


def _alarms(content: Content, alarms: Sequence[Incident], scale: _Scale) -> tuple[Band, ...]:
    found = []
    for one in alarms:
        x, end = scale.span(one.start, one.last)
        when = content.clock.between(one.start, one.last)
        title = f"{one.label} {when}, confidence {one.confidence:.2f}"
        found.append(Band(((x, max(end - x, THIN)),), one.label, one.number, title))
    return tuple(found)
