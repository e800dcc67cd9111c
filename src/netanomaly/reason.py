"""What a reason holds: the rows that were looked up, and what each row and metric adds to the answer."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netanomaly.reason_metrics import MetricReason, short_time

MOST_STRETCHES = 3
"""Stretches of rows that a reason names at most."""


@dataclass(frozen=True)
class Stretch:
    """Rows after each other that were looked up more than if all counted alike.

    Attributes:
        start, end: times of its first and last row.
        rows: how many were measured.
        share: of all that was looked up.
    """

    start: str
    end: str
    rows: int
    share: float


@dataclass(frozen=True)
class Reason:
    """Why one row is what the model says it is. S rows that it depends on, oldest first, M metrics.

    Attributes:
        series, time, since: of the row, and the time of the incident's first row.
        label, against: the class, and the one that it is compared with: the normal one, or the runner-up of that.
        probability, usual_probability: of the class in this row, and with everything as usual.
        log_odds, usual_log_odds: log p(label) - log p(against), in both.
        metrics: those that speak for the class, the strongest first.
        other_share: of the metrics that are not named, of what speaks for the class.
        stretches: rows that were looked up most; empty where no look-up can be seen (a language model).
        steps, times: of the S rows in their segment; a step without a row has no time.
        attribution: what each row and metric adds to the log odds. (S, M)
        metric_names: of its columns.
        looked_up: what each row counts in the look-ups, None where none can be seen. (S,)
        residual: what `attribution` sums to beyond the difference of the log odds.
        nodes: at which gradients were taken.
    """

    series: str
    time: str
    since: str
    label: str
    against: str
    probability: float
    usual_probability: float
    log_odds: float
    usual_log_odds: float
    metrics: tuple[MetricReason, ...]
    other_share: float
    stretches: tuple[Stretch, ...]
    steps: NDArray[np.int64]
    times: tuple[str | None, ...]
    attribution: NDArray[np.float64]
    metric_names: tuple[str, ...]
    looked_up: NDArray[np.float64] | None
    residual: float
    nodes: int

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values for JSON."""
        plain = asdict(self)
        for name in ("steps", "attribution", "looked_up"):
            plain[name] = None if plain[name] is None else plain[name].tolist()
        return plain

    def text(self) -> str:
        """A few lines for people."""
        lines = [
            f"{self.series} {self.time} {self.label} rather than {self.against}, probability {self.probability:.2f} "
            f"(with everything as usual {self.usual_probability:.2f})"
        ]
        lines += [f"  {100 * one.share:3.0f} %  {one.sentence}" for one in self.metrics]
        if self.metrics:
            lines.append(f"  {100 * self.other_share:3.0f} %  other metrics")
        else:
            lines.append("  no metric speaks for it")
        if self.stretches:
            lines.append("  looked up: " + ", ".join(self._stretch(one) for one in self.stretches))
        return "\n".join(lines)

    def _stretch(self, one: Stretch) -> str:
        start, end = short_time(one.start, self.time), short_time(one.end, self.time)
        return f"{start if start == end else f'{start} to {end}'} ({100 * one.share:.0f} %)"


def stretches(
    shares: NDArray[np.float64], even: NDArray[np.float64], valid: NDArray[np.bool_], times: NDArray[np.object_]
) -> tuple[Stretch, ...]:
    """Runs of measured rows that were looked up more than evenly, those with the largest shares first. (S,) each"""
    rows = np.flatnonzero(valid)
    above = np.r_[False, shares[rows] > even[rows], False]
    bounds = np.flatnonzero(above[1:] != above[:-1]).reshape(-1, 2)
    runs = sorted((rows[start:stop] for start, stop in bounds), key=lambda run: -shares[run].sum())
    return tuple(
        Stretch(str(times[run[0]]), str(times[run[-1]]), len(run), float(shares[run].sum()))
        for run in runs[:MOST_STRETCHES]
    )
