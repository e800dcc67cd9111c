"""How far a decision looks back where the config says `auto`: it follows from the incidents of the training rows.

A window has to hold the incident and some of the calm before it, for there is what it differs from. It must not reach
the incident before: what happened last says nothing about what happens now, though in data with faults in blocks of
one kind it seems to. Where the rows without a label lack metrics that the others have (`label_gaps`), it stays within
the labelled rows of an incident: what lies around them is not known from training.

A baseline has to be much longer than incidents, or it adapts to them and loses them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from netanomaly.config import Config
from netanomaly.data.ingest import UNLABELLED
from netanomaly.durations import AUTO

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
class Incidents:
    """Lengths in rows of the incidents of some labelled rows, and the calm before each; NaN before the first."""

    lengths: NDArray[np.float64]
    calm: NDArray[np.float64]


@dataclass(frozen=True)
class AutoSpans:
    """What `auto` stands for, in rows."""

    window: int
    stem: int
    baseline: int


def incidents_of(labels: Sequence[NDArray[np.object_]], normal: str, *, has_label_gaps: bool = False) -> Incidents:
    """Incidents in the labels of segments, (T,) each: runs of one label other than `normal`.

    Rows without a label do not end an incident whose label goes on after them, unless they lack metrics
    (`has_label_gaps`); there is no calm to look at then.
    """
    found = [pair for names in labels for pair in _incidents_of_segment(names, normal, whole=not has_label_gaps)]
    lengths, calm = np.array(found, dtype=np.float64).reshape(-1, 2).T
    return Incidents(lengths, calm)


def _incidents_of_segment(names: NDArray[np.object_], normal: str, *, whole: bool) -> Iterator[tuple[int, float]]:
    """(length, rows since the incident before) of each; if not `whole`, of each run of labelled rows."""
    places = np.flatnonzero(names != UNLABELLED)
    if not len(places):
        return
    labels = names[places]
    is_new = np.r_[True, labels[1:] != labels[:-1]]
    if not whole:
        is_new |= np.r_[True, np.diff(places) > 1]
    starts = np.flatnonzero(is_new)
    ended = None  # last row of the incident before
    for start, end in zip(starts, np.r_[starts[1:], len(labels)] - 1, strict=True):
        if labels[start] == normal:
            continue
        first, last = int(places[start]), int(places[end])
        yield last - first + 1, np.nan if ended is None or not whole else first - ended - 1
        ended = last


def auto_spans(incidents: Incidents) -> AutoSpans:
    """Window, stem and baseline that fit the incidents; the longest where there is none."""
    if not len(incidents.lengths):
        return AutoSpans(LONGEST - LONGEST_STEM + 1, LONGEST_STEM, TIMES * LONGEST)
    calm = np.where(np.isnan(incidents.calm), 0.0, incidents.calm)
    reach = int(np.clip(np.median(incidents.lengths + CALM * calm), SHORTEST, LONGEST))
    stem = min(LONGEST_STEM, reach // 2)
    longest = float(np.quantile(incidents.lengths, 0.9))
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
    found = auto_spans(incidents_of(labels, config.data.normal, has_label_gaps=has_label_gaps))
    window: int | str = found.window if model.window == AUTO else model.window
    stem: int | Literal["auto"] = found.stem if model.stem == AUTO else model.stem
    baselines = tuple(found.baseline if span == AUTO else span for span in channels.baselines)
    log.info("looking back over %s rows, baseline %s, stem %s", window, ", ".join(map(str, baselines)), stem)
    return config.model_copy(
        update={
            "model": model.model_copy(update={"window": window, "stem": stem}),
            "channels": channels.model_copy(update={"baselines": baselines}),
        }
    )
