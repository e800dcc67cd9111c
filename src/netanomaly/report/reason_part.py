"""Why an alarm was raised, as a card shows it: sentences, and what was looked up and what carried it, row by row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from netanomaly.report.numbers import percent
from netanomaly.report.svg import bars

WIDTH, HEIGHT = 300.0, 22.0
MOST = 4
"""Metrics whose rows are drawn at most."""


@dataclass(frozen=True)
class Strip:
    """What each row of the window counts for, as upright strokes; `middle` is where none stands."""

    name: str
    path: str
    middle: float
    stroke: float


@dataclass(frozen=True)
class ReasonPart:
    """Sentences (share of what speaks for the class, text), strips, and the ends of the window in words."""

    text: str
    sentences: tuple[tuple[str, str], ...]
    strips: tuple[Strip, ...]
    since: str
    until: str


def reason_part(reason: Mapping[str, Any]) -> ReasonPart:
    """A reason as `Reason.to_dict` has it, for a card."""
    named = [(percent(one["share"]), one["sentence"]) for one in reason["metrics"]]
    if named and reason["other_share"] >= 0.005:
        named.append((percent(reason["other_share"]), "other metrics"))
    strips = [] if reason["looked_up"] is None else [_strip("rows looked up (attention)", reason["looked_up"])]
    parts = np.asarray(reason["attribution"], dtype=np.float64)  # (S, M)
    shown = [(one["metric"], list(reason["metric_names"]).index(one["metric"])) for one in reason["metrics"][:MOST]]
    largest = float(np.abs(parts[:, [m for _, m in shown]]).max(initial=0.0))  # one scale for all of them
    strips += [_strip(f"{name}: what its rows add", parts[:, m], largest) for name, m in shown]
    times = [time for time in reason["times"] if time is not None]
    against = f"against {reason['against']}: probability {reason['probability']:.2f}, " + (
        f"with everything as usual {reason['usual_probability']:.2f}"
    )
    return ReasonPart(against, tuple(named), tuple(strips), times[0] if times else "", times[-1] if times else "")


def _strip(name: str, values: Any, largest: float | None = None) -> Strip:
    """One stroke for each row of the window, the oldest at the left; the largest fills the strip. (S,)"""
    given = np.nan_to_num(np.asarray(values, dtype=np.float64))
    largest = largest or float(np.abs(given).max(initial=0.0)) or 1.0
    middle = HEIGHT if (given >= 0).all() else HEIGHT / 2
    step = WIDTH / max(1, len(given))
    x = step * (np.arange(len(given)) + 0.5)
    return Strip(name, bars(x, middle * given / largest, middle), middle, round(max(0.8, 0.75 * step), 2))
