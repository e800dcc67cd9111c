"""The rows of one series as a figure: bands of labels and alarms above, every metric below, one time for all."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netanomaly.data.ingest import UNLABELLED
from netanomaly.data.schema import Metric
from netanomaly.report.clock import Clock
from netanomaly.report.colours import INK, OTHER
from netanomaly.report.content import Content, SeriesRows
from netanomaly.report.decimation import block_size, block_starts, extremes
from netanomaly.report.figure_text import plain
from netanomaly.report.incidents import Incident
from netanomaly.report.numbers import in_unit, unit
from netanomaly.report.stretches import Stretch, joined_stretches, stretches, thinned

MOST_SERIES = 24
"""Series with a figure at most: those with most alarms."""
BUDGET, MOST_POINTS, FEWEST_POINTS = 500_000, 4000, 60
"""Points of all figures together, and of one metric of one series."""
BAND, METRIC, TOP, FOOT = 26, 64, 32, 34
"""Heights in pixels: of a row of bands, of a metric, of what stands above and below them."""
MOST_SHADES = 1000
"""Alarms that are shaded behind the metrics at most, in all figures together; where there are more, none is."""
DIVISIONS, FEWEST_DIVISIONS = 3000, 400
"""Bands of a label in all figures together, and in one: of more, those that lie nearer than this part of the time are
joined."""
MOST_TEXTS = 200
"""Bands of a label in one figure that say from when to when they are; of more, each says its label."""


@dataclass(frozen=True)
class Timeline:
    """A figure as plotly.js takes it (data, layout, and the times of all lines), and what to say beside it."""

    series: str
    figure: Mapping[str, Any]
    rows_per_point: int
    height: int


@dataclass(frozen=True)
class _Room:
    """What one figure may hold: points of a metric, bands of a label, shades."""

    points: int
    bands: int
    shades: int


def timelines(
    content: Content, incidents: Sequence[Incident], colours: Mapping[str, str]
) -> tuple[list[Timeline], list[str]]:
    """The figures of the series with most alarms, in the order of the alphabet, and the names of the others."""
    own: dict[str, list[Incident]] = {one.name: [] for one in content.series}
    for incident in incidents:
        if incident.number >= 0:
            own[incident.series].append(incident)
    chosen = sorted(content.series, key=lambda one: -len(own[one.name]))[:MOST_SERIES]
    names = {one.name for one in chosen}
    points = BUDGET // max(1, len(chosen) * len(content.metrics))
    room = _Room(
        points=min(max(points, FEWEST_POINTS), MOST_POINTS),
        bands=max(DIVISIONS // max(1, len(chosen)), FEWEST_DIVISIONS),
        shades=MOST_SHADES // max(1, len(chosen)),
    )
    found = [_timeline(content, one, own[one.name], colours, room) for one in content.series if one.name in names]
    return found, [one.name for one in content.series if one.name not in names]


def _timeline(
    content: Content, rows: SeriesRows, alarms: Sequence[Incident], colours: Mapping[str, str], room: _Room
) -> Timeline:
    import plotly.graph_objects as go

    times, values = _with_gaps(rows, content.clock.interval_ns)
    block = block_size(len(times), room.points)
    bands = {name: joined_stretches(spans, room.bands) for name, spans in _bands(content, rows, alarms, block).items()}
    shaded = alarms if len(alarms) <= room.shades else []  # some of them would mislead
    layout = _layout(content, rows, list(bands), shaded, colours)
    traces = [trace for name, spans in bands.items() for trace in _band_traces(name, spans, content.clock, colours)]
    shown = times[block_starts(len(times), block)]
    layout.update(_metric_axes(content.metrics, values, len(bands)))
    for m, metric in enumerate(content.metrics):
        traces.append(_metric_trace(values[:, m], metric, m + 2, block, len(shown)))
    figure: dict[str, Any] = json.loads(go.Figure(data=traces, layout=layout).to_json())
    axis = content.clock.axis(shown)
    figure["times"] = [round(float(x), 3) for x in axis]
    return Timeline(rows.name, figure, block, int(layout["height"]))


def _with_gaps(rows: SeriesRows, interval_ns: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Times and metrics with a row of NaN in each gap, so that no line crosses it. (T + gaps,), (T + gaps, M)"""
    gaps = np.flatnonzero(np.diff(rows.times) > 1.5 * interval_ns) + 1
    times = np.insert(rows.times, gaps, rows.times[gaps - 1] + interval_ns)
    return times, np.insert(rows.values, gaps, np.nan, axis=0)


def _bands(content: Content, rows: SeriesRows, alarms: Sequence[Incident], block: int) -> dict[str, list[Stretch]]:
    """Rows of bands by name, the topmost first."""
    interval = content.clock.interval_ns
    calm = (content.normal, UNLABELLED)
    found = {}
    for name, labels in (("truth", rows.truth), ("rows", rows.named)):
        if (labels != UNLABELLED).any():
            fewer = thinned(labels, block, calm)
            found[name] = stretches(fewer, rows.times[::block], interval * block, calm)
            found[name] = [Stretch(one.label, one.start, one.last + interval * (block - 1)) for one in found[name]]
    found["alarms"] = [Stretch(one.label, one.start, one.last) for one in alarms]
    return found


def _band_traces(name: str, spans: Sequence[Stretch], clock: Clock, colours: Mapping[str, str]) -> list[dict[str, Any]]:
    """One trace of bars for each label of a row of bands; an empty one so that the row is there."""
    found: list[dict[str, Any]] = []
    for label in sorted({one.label for one in spans}) or [""]:
        own = [one for one in spans if one.label == label]
        starts = np.array([one.start for one in own], dtype=np.int64)
        ends = np.array([one.last + clock.interval_ns for one in own], dtype=np.int64)
        colour = colours.get(label, OTHER)
        has_times = len(own) <= MOST_TEXTS
        texts = [
            f"{name}: {plain(label)}<br>{clock.between(one.start, one.last)} ({clock.length(one.start, one.last)})"
            for one in own
            if has_times
        ]
        found.append(
            {
                "type": "bar",
                "orientation": "h",
                "base": clock.axis(starts).tolist(),
                "x": clock.axis(ends - starts).tolist(),
                "y": [name] * len(own) if own else [name],
                "hovertext": texts if has_times else f"{name}: {plain(label)}",
                "hoverinfo": "text",
                "marker": {"color": colour, "line": {"color": colour, "width": 1}},
                "width": 0.72,
                "yaxis": "y",
                "showlegend": False,
            }
        )
    return found


def _metric_trace(values: NDArray[np.float64], metric: Metric, axis: int, block: int, points: int) -> dict[str, Any]:
    """A line without times: those are the same for all, and put in when the figure is drawn."""
    given = in_unit(values, metric)
    digits = ".4~s" if _has_thousands(given) else ".4~g"
    return {
        "type": "scatter",
        "mode": "lines",
        "y": extremes(given, block)[:points].astype(np.float32),
        "name": plain(metric.name),
        "line": {"color": INK, "width": 1},
        "yaxis": f"y{axis}",
        "hovertemplate": f"%{{y:{digits}}} {plain(unit(metric))}<extra></extra>",
        "showlegend": False,
    }


def _layout(
    content: Content,
    rows: SeriesRows,
    bands: Sequence[str],
    alarms: Sequence[Incident],
    colours: Mapping[str, str],
) -> dict[str, Any]:
    """One axis of time for all, an axis of its own for every metric, shades where alarms are."""
    inner = BAND * len(bands) + METRIC * len(content.metrics)
    height = TOP + inner + FOOT
    below = 1 - BAND * len(bands) / inner
    return {
        "height": height,
        "margin": {"l": 52, "r": 8, "t": TOP, "b": FOOT},
        "barmode": "overlay",
        "hovermode": "x",
        "hoversubplots": "axis",
        "xaxis": {
            "type": "date" if content.clock.has_dates else "linear",
            "title": {"text": "UTC" if content.clock.has_dates else "s", "standoff": 2},
            "anchor": "free",
            "position": 0,
            "range": _range(rows, content.clock),
        },
        "yaxis": {
            "domain": [below, 1],
            "categoryorder": "array",
            "categoryarray": list(bands)[::-1],
            "range": [-0.5, len(bands) - 0.5],
            "fixedrange": True,
            "showgrid": False,
        },
        "shapes": [
            {
                "type": "rect",
                "xref": "x",
                "yref": "paper",
                "y0": 0,
                "y1": below,
                "x0": float(content.clock.axis(np.array([one.start]))[0]),
                "x1": float(content.clock.axis(np.array([one.last + content.clock.interval_ns]))[0]),
                "fillcolor": colours.get(one.label, OTHER),
                "opacity": 0.16,
                "line": {"width": 0},
                "layer": "below",
            }
            for one in alarms
        ],
    }


def _metric_axes(metrics: Sequence[Metric], values: NDArray[np.float64], bands: int) -> dict[str, Any]:
    """An axis for each metric (T, M), one below the other, with its name and unit above it."""
    inner = BAND * bands + METRIC * len(metrics)
    step = METRIC / inner
    found: dict[str, Any] = {"annotations": []}
    for m, metric in enumerate(metrics):
        top, of_unit = (METRIC * (len(metrics) - m)) / inner, unit(metric)
        found[f"yaxis{m + 2}"] = {
            "domain": [max(0.0, top - 0.95 * step), top - 0.3 * step],
            "fixedrange": True,
            "nticks": 3,
            "tickfont": {"size": 10},
            "zeroline": False,
            "anchor": "x",
            **_scale(in_unit(values[:, m], metric)),
        }
        found["annotations"].append(
            {
                "text": plain(metric.name) + (f" <i>{plain(of_unit)}</i>" if of_unit else ""),
                "xref": "paper",
                "x": 0.003,
                "xanchor": "left",
                "yref": "paper",
                "y": top - 0.02 * step,
                "yanchor": "top",
                "showarrow": False,
                "font": {"size": 11},
            }
        )
    return found


def _scale(values: NDArray[np.float64]) -> dict[str, Any]:
    """How an axis counts: with k, M, G where there are thousands, and with room around a metric that never moves."""
    known = values[~np.isnan(values)]
    if not len(known):
        return {"range": [0, 1], "showticklabels": False}
    low, high = float(known.min()), float(known.max())
    found: dict[str, Any] = {"tickformat": "~s"} if _has_thousands(known) else {}
    if low == high:
        room = abs(low) / 2 or 1.0
        found.update(range=[low - room, high + room], tickvals=[low])
    return found


def _range(rows: SeriesRows, clock: Clock) -> list[float]:
    """From the first row to the end of the last."""
    ends = np.array([rows.times[0], rows.times[-1] + clock.interval_ns], dtype=np.int64)
    return [float(x) for x in clock.axis(ends)]


def _has_thousands(values: NDArray[np.float64]) -> bool:
    """Whether numbers are told with k, M and G; below that they would come with m and µ."""
    known = np.abs(values[~np.isnan(values)])
    return bool(known.max(initial=0.0) >= 1000)
