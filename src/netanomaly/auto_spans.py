"""How far a decision looks back where the config says `auto`: it follows from the incidents of the training rows.

A window has to hold the incident and some of the calm before it, for there is what it differs from. It must not reach
the incident before: what happened last says nothing about what happens now, though in data with faults in blocks of
one kind it seems to. Where the rows without a label lack metrics that the others have (`label_gaps`), it stays within
the labelled rows of an incident: what lies around them is not known from training.

A baseline has to be much longer than incidents, or it adapts to them and loses them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netanomaly.build import GridSpans
from netanomaly.build_members import with_window
from netanomaly.config import Config
from netanomaly.data.ingest import NO_DATA, UNLABELLED
from netanomaly.durations import AUTO, span_rows
from netanomaly.evaluation.events import Incidents, find_incidents
from netanomaly.evaluation.rows import ScoredRows

log = logging.getLogger(__name__)

CALM = 0.75
"""Share of the rows since the incident before that the window may reach back over."""
SHORTEST, LONGEST = 2, 72
"""Rows of window and stem together: a decision gets slower with them, and hardly better beyond 72."""
LONGEST_STEM = 9
TIMES = 4
"""Length of a baseline in incidents, or in windows if that is more."""
SHORTEST_BASELINE, LONGEST_BASELINE = 32, 4096


@dataclass(frozen=True)
class Lengths:
    """Rows of each incident, and of the calm before it; NaN where no incident is before it. (incidents,)"""

    incidents: NDArray[np.float64]
    calm: NDArray[np.float64]


@dataclass(frozen=True)
class AutoSpans:
    """What `auto` stands for, in rows."""

    window: int
    stem: int
    baseline: int


def incident_lengths(
    labels: Sequence[NDArray[np.object_]], normal: str, max_gap: int, *, has_label_gaps: bool = False
) -> Lengths:
    """Lengths of the incidents in the labels of segments, (T,) each.

    Up to `max_gap` rows without a label do not end an incident whose label goes on after them, nor the calm before one:
    what more of them hold is not known. Where they lack metrics (`has_label_gaps`), any of them ends an incident, and
    there is no calm to look at.
    """
    if not any(((names != UNLABELLED) & (names != normal)).any() for names in labels):
        return Lengths(np.empty(0), np.empty(0))
    rows = _labelled(labels, normal, longest_gap=1 if has_label_gaps else max_gap + 1)
    found = find_incidents(rows, rows.truth)
    first = rows.times[found.rows[found.starts]]
    last = rows.times[found.rows[np.r_[found.starts[1:], len(found.rows)] - 1]]
    segment = rows.series[found.rows[found.starts]]
    follows = np.r_[False, segment[1:] == segment[:-1]] & (not has_label_gaps)
    calm = np.full(len(found), np.nan)
    calm[follows] = (first - np.maximum(np.r_[first[:1], last[:-1]] + 1, _known_since(rows, found)))[follows]
    return Lengths((last - first + 1).astype(np.float64), calm)


def _known_since(rows: ScoredRows, found: Incidents) -> NDArray[np.int64]:
    """The step from which on there is no long gap before each incident. (incidents,)"""
    goes_on = (rows.series[1:] == rows.series[:-1]) & (np.diff(rows.times) <= rows.max_gap_ns)
    begins = np.where(np.r_[False, goes_on], 0, np.arange(len(rows)))
    return np.asarray(rows.times[np.maximum.accumulate(begins)[found.rows[found.starts]]])


def _labelled(labels: Sequence[NDArray[np.object_]], normal: str, longest_gap: int) -> ScoredRows:
    """The labelled rows of segments, a step of the grid standing for a nanosecond."""
    places = [np.flatnonzero(names != UNLABELLED) for names in labels]
    numbers = np.repeat(np.arange(len(labels)), [len(found) for found in places])
    return ScoredRows(
        series=numbers.astype(object),
        times=np.concatenate(places),
        truth=np.concatenate([names[found] for names, found in zip(labels, places, strict=True)]),
        interval_ns=1,
        max_gap_ns=longest_gap,
        normal=normal,
        no_data=NO_DATA,
    )


def auto_spans(lengths: Lengths, window: int | None = None, stem: int | None = None) -> AutoSpans:
    """Window, stem and baseline that fit the incidents; the longest where there is none.

    Args:
        window, stem: rows, where they are given: the others fit them.
    """
    reach, longest = LONGEST, 0.0
    if len(lengths.incidents):
        calm = np.where(np.isnan(lengths.calm), 0.0, lengths.calm)
        reach = int(np.clip(np.median(lengths.incidents + CALM * calm), SHORTEST, LONGEST))
        longest = float(np.quantile(lengths.incidents, 0.9))
    if stem is None:
        stem = min(LONGEST_STEM, max(1, (reach if window is None else window) // 2))
    if window is None:
        window = max(1, reach - stem + 1)
    baseline = int(np.clip(TIMES * max(window + stem - 1, longest), SHORTEST_BASELINE, LONGEST_BASELINE))
    return AutoSpans(window, stem, baseline)


def with_spans(
    config: Config, labels: Sequence[NDArray[np.object_]], grid: GridSpans, *, has_label_gaps: bool = False
) -> Config:
    """The config with rows in the place of `auto`. A window that is found is a whole number of patches.

    Args:
        labels: of the segments, (T,) each, with training rows labelled only.
        grid: the config's interval and gaps.
        has_label_gaps: metrics are missing where training rows are unlabelled.
    """
    model, channels = config.model, config.channels
    if AUTO not in (model.window, model.stem, *channels.baselines):
        return config
    lengths = incident_lengths(labels, config.data.normal, grid.max_gap, has_label_gaps=has_label_gaps)
    if len(lengths.incidents) and np.median(lengths.incidents) == 1:
        log.warning(
            "most training incidents have one labelled row: if there are more than data.max_gap rows between labels, "
            "auto takes faults for shorter than they are; set model.window and channels.baselines to suit them"
        )
    window = None if model.window == AUTO else span_rows(model.window, grid.interval_ns)
    found = auto_spans(lengths, window, None if model.stem == AUTO else int(model.stem))
    baselines = tuple(found.baseline if span == AUTO else span for span in channels.baselines)
    if window is None:
        model = with_window(model, found.window)
    log.info("window %s, baseline %s, stem %d", model.window, ", ".join(map(str, baselines)), found.stem)
    return config.model_copy(
        update={
            "model": model.model_copy(update={"stem": found.stem}),
            "channels": channels.model_copy(update={"baselines": baselines}),
        }
    )
