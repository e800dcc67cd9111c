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

from netanomaly.config import Config
from netanomaly.data.ingest import NO_DATA, UNLABELLED
from netanomaly.durations import AUTO
from netanomaly.evaluation.events import find_incidents
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


def incident_lengths(labels: Sequence[NDArray[np.object_]], normal: str, *, has_label_gaps: bool = False) -> Lengths:
    """Lengths of the incidents in the labels of segments, (T,) each.

    Rows without a label do not end an incident whose label goes on after them, unless they lack metrics
    (`has_label_gaps`); there is no calm to look at then.
    """
    if not any(((names != UNLABELLED) & (names != normal)).any() for names in labels):
        return Lengths(np.empty(0), np.empty(0))
    rows = _labelled(labels, normal, longest_gap=1 if has_label_gaps else 2**62)
    found = find_incidents(rows, rows.truth)
    first = rows.times[found.rows[found.starts]]
    last = rows.times[found.rows[np.r_[found.starts[1:], len(found.rows)] - 1]]
    segment = rows.series[found.rows[found.starts]]
    follows = np.r_[False, segment[1:] == segment[:-1]] & (not has_label_gaps)
    calm = np.full(len(found), np.nan)
    calm[follows] = (first - np.r_[first[:1], last[:-1]] - 1)[follows]
    return Lengths((last - first + 1).astype(np.float64), calm)


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


def auto_spans(lengths: Lengths) -> AutoSpans:
    """Window, stem and baseline that fit the incidents; the longest where there is none."""
    if not len(lengths.incidents):
        return AutoSpans(LONGEST - LONGEST_STEM + 1, LONGEST_STEM, TIMES * LONGEST)
    calm = np.where(np.isnan(lengths.calm), 0.0, lengths.calm)
    reach = int(np.clip(np.median(lengths.incidents + CALM * calm), SHORTEST, LONGEST))
    stem = min(LONGEST_STEM, reach // 2)
    longest = float(np.quantile(lengths.incidents, 0.9))
    baseline = int(np.clip(TIMES * max(reach, longest), SHORTEST_BASELINE, LONGEST_BASELINE))
    return AutoSpans(reach - stem + 1, stem, baseline)


def with_spans(config: Config, labels: Sequence[NDArray[np.object_]], *, has_label_gaps: bool = False) -> Config:
    """The config with rows in the place of `auto`.

    Args:
        labels: of the segments, (T,) each, with training rows labelled only.
        has_label_gaps: metrics are missing where training rows are unlabelled.
    """
    model, channels = config.model, config.channels
    if AUTO not in (model.window, model.stem, *channels.baselines):
        return config
    found = auto_spans(incident_lengths(labels, config.data.normal, has_label_gaps=has_label_gaps))
    window = found.window if model.window == AUTO else model.window
    stem = found.stem if model.stem == AUTO else model.stem
    baselines = tuple(found.baseline if span == AUTO else span for span in channels.baselines)
    log.info("looking back over %s rows, baseline %s, stem %s", window, ", ".join(map(str, baselines)), stem)
    return config.model_copy(
        update={
            "model": model.model_copy(update={"window": window, "stem": stem}),
            "channels": channels.model_copy(update={"baselines": baselines}),
        }
    )
