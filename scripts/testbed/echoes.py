"""What probes say: round trips, jitter and loss of echoes, the rate of a bottleneck from trains of packets."""

from __future__ import annotations

import statistics
from collections import deque
from dataclasses import dataclass
from itertools import pairwise

ECHO_TIMEOUT_S = 1.0
TRAIN_BYTES = 1400
LEAST_RECEIVED = 5
BUNCHED = 2.5
"""A train that seems faster than this many times the rate waited somewhere else than at the bottleneck."""


@dataclass
class Echo:
    """One echo request."""

    sent_s: float
    answered: bool = False


class Echoes:
    """What was sent and came back. Knows no sockets and no clock."""

    def __init__(self) -> None:
        self._waiting: dict[int, Echo] = {}
        self._settled: deque[Echo] = deque()
        self._trips_ms: list[float] = []
        self._steps_ms: list[float] = []
        self._last_ms: float | None = None

    def sent(self, number: int, now_s: float) -> None:
        """A request has left."""
        self._waiting[number] = Echo(now_s)

    def answered(self, number: int, now_s: float) -> None:
        """Its answer is there; a second one, or one after the time-out's settlement, says nothing."""
        echo = self._waiting.get(number)
        if echo is None or echo.answered:
            return
        trip_ms = (now_s - echo.sent_s) * 1e3
        echo.answered = trip_ms <= ECHO_TIMEOUT_S * 1e3
        self._trips_ms.append(trip_ms)
        if self._last_ms is not None:
            self._steps_ms.append(abs(trip_ms - self._last_ms))
        self._last_ms = trip_ms

    def metrics(self, now_s: float) -> dict[str, float | None]:
        """Of the answers since this was last asked; loss of the requests of the last second that have timed out."""
        for number, echo in list(self._waiting.items()):
            if now_s - echo.sent_s >= ECHO_TIMEOUT_S:
                self._settled.append(self._waiting.pop(number))
        while self._settled and self._settled[0].sent_s < now_s - 2 * ECHO_TIMEOUT_S:
            self._settled.popleft()
        trips, steps = self._trips_ms, self._steps_ms
        self._trips_ms, self._steps_ms = [], []
        return {
            "rtt_ms": _mean(trips),
            "rtt_max_ms": max(trips, default=None),
            "jitter_ms": _mean(steps),
            "loss_ratio": _mean([float(not echo.answered) for echo in self._settled]),
        }


def train_rate_bps(arrivals: list[tuple[int, float]], rate_bps: float) -> float | None:
    """Bottleneck rate from the (number, time in s) of the packets of a train: the median gap of neighbours.

    The first two packets fit into the bucket and are left out. None: too few came, or they came bunched.
    """
    gaps = [
        later_s - earlier_s
        for (first, earlier_s), (second, later_s) in pairwise(arrivals)
        if second == first + 1 and first >= 2
    ]
    if len(arrivals) < LEAST_RECEIVED or not gaps:
        return None
    gap_s = statistics.median_high(gaps)
    if gap_s <= TRAIN_BYTES * 8 / rate_bps / BUNCHED:
        return None
    return TRAIN_BYTES * 8 / gap_s


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
