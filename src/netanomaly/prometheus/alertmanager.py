"""Incidents to Alertmanager (API v2): told when they begin and end, and again and again while they go on.

Alertmanager takes for over what is not repeated (`resolve_timeout`, five minutes). So what is lost on the way heals: an
incident that goes on is told again, one that is over is not.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, Self

import numpy as np

from netanomaly.alarms.live import Event, Incident, alarms_of
from netanomaly.data.time_texts import format_times
from netanomaly.data.timestamps import TimeFormat
from netanomaly.incident_files import MOSTLY
from netanomaly.prometheus.http import Endpoint, Unanswered

log = logging.getLogger(__name__)

PATH = "/api/v2/alerts"
AGAIN_SECONDS = 60.0
"""How often incidents that go on are told again."""
FIRST_SECONDS = 5.0
"""After which they are told again for the first time: a program that was started again may have some of its state."""
MOST_WAITING = 10_000
"""Alerts that wait to be sent, at most; of more, the oldest are dropped."""
AT_ONCE = 64
"""Alerts in one request."""
FOR_WHAT_IT_HOLDS = (400, 413, 422)
"""Statuses with which a request is refused that another one with fewer alerts may not be refused with."""
PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0)
"""Seconds before a request is tried again; the last holds from there on."""
LAST_SECONDS = 5.0
"""How long the end of the program waits for what has not been sent."""


class Alertmanager:
    """Sends alerts from a thread of its own, in order; whoever tells it of incidents does not wait.

    Args:
        open_incidents: those that somebody has been told of and that go on; asked from that thread.
        labels: of every alert, beside `alertname`, `series` and `class`.
        interval_ns: time between rows.

    Attributes:
        source: URL that an alert leads back to; empty: none.
        sent, dropped, failures: alerts that were taken; that were lost, as too many waited or they were refused;
            requests that failed.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        open_incidents: Callable[[], Sequence[Incident]],
        labels: Mapping[str, str],
        interval_ns: int,
        *,
        again: float = AGAIN_SECONDS,
        pauses: Sequence[float] = PAUSES,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self.source = ""
        self.sent = self.dropped = self.failures = 0
        self._endpoint, self._open, self._labels = endpoint, open_incidents, dict(labels)
        self._interval = interval_ns
        self._again, self._pauses, self._most = again, pauses, most_waiting
        self._waiting: deque[dict[str, Any]] = deque()
        self._in_hand: list[dict[str, Any]] = []  # of these, what is being sent
        self._news = threading.Condition()
        self._end = threading.Event()
        self._is_down = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Send what waits, if that takes no longer than `LAST_SECONDS`."""
        with self._news:
            self._end.set()
            self._news.notify()
        self._thread.join(LAST_SECONDS)
        if left := len(self._waiting) + len(self._in_hand):
            log.warning("%s: %d alerts were not sent", self._endpoint.shown, left)

    def hear(self, events: Sequence[Event]) -> None:
        """Take what has happened, in order."""
        alerts = [self.alert(event.incident, is_over=event.kind == "closed") for event in events]
        with self._news:
            self._waiting.extend(alerts)
            surplus = len(self._waiting) - self._most
            for _ in range(surplus):
                self._waiting.popleft()
            if surplus > 0:
                self._drop(surplus, "too many wait")
            self._news.notify()

    def alert(self, incident: Incident, *, is_over: bool) -> dict[str, Any]:
        """An incident as Alertmanager wants it."""
        told = alarms_of([incident])
        start, end, raised = format_times(
            np.array([incident.start, incident.last + self._interval, told.raised[0]]), TimeFormat()
        )
        unknown = " (most of its rows are like none of training)" if told.novel[0] > MOSTLY else ""
        found: dict[str, Any] = {
            "labels": {
                "alertname": "NetworkAnomaly",
                "series": incident.series,
                "class": incident.label,
                **self._labels,
            },
            "annotations": {
                "summary": f"{incident.label} on {incident.series}",
                "description": f"{incident.label} on {incident.series} since {start}{unknown}",
                "confidence": f"{incident.peak_confidence:.3f}",
                "raised": raised,
            },
            "startsAt": start,
        }
        if self.source:
            found["generatorURL"] = self.source
        return {**found, "endsAt": end} if is_over else found

    def _run(self) -> None:
        """Send what waits, and again and again what goes on, until the end."""
        again_at = time.monotonic() + min(self._again, FIRST_SECONDS)  # those of a saved state go on, too
        while (alerts := self._next(again_at)) is not None:
            try:
                if alerts:
                    if not self._send_for_sure():
                        return
                else:
                    again_at = time.monotonic() + self._again
                    self._send_again()
            except Exception as error:  # whatever it is, the alerts after it have to be sent
                self.failures += 1
                self._drop(len(self._in_hand), f"{type(error).__name__}: {error}")
                self._in_hand = []

    def _next(self, again_at: float) -> list[dict[str, Any]] | None:
        """Alerts to send next, once there are some; none if those that go on are to be told again; None at the end."""
        with self._news:
            while not self._waiting or (time.monotonic() >= again_at and not self._end.is_set()):
                if self._end.is_set():
                    return None
                left = again_at - time.monotonic()
                if left <= 0:
                    return []
                self._news.wait(left)
            self._in_hand = [self._waiting.popleft() for _ in range(min(AT_ONCE, len(self._waiting)))]
            return self._in_hand

    def _send_again(self) -> None:
        """Tell of what goes on, once: the next time comes soon."""
        alerts = [self.alert(incident, is_over=False) for incident in self._open()]
        for first in range(0, len(alerts), AT_ONCE):
            if self._unsettled(alerts[first : first + AT_ONCE]):
                return

    def _send_for_sure(self) -> bool:
        """Send what is in hand, as often as it takes; False: the end came before."""
        pauses = chain(self._pauses, repeat(self._pauses[-1]))
        while left := self._unsettled(self._in_hand):
            self._in_hand = left
            if self._end.is_set():
                return False
            self._end.wait(next(pauses))
        self._in_hand = []
        return True

    def _unsettled(self, alerts: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Send once; those that are worth trying again: neither taken nor refused for good."""
        try:
            self._endpoint.post_json(PATH, alerts)
        except Unanswered as error:
            self.failures += 1
            if not error.may_pass:
                if len(alerts) > 1 and error.status in FOR_WHAT_IT_HOLDS:
                    return self._one_by_one(alerts)
                self._drop(len(alerts), str(error))
                return []
            if not self._is_down:
                log.warning("%s: alerts wait: %s", self._endpoint.shown, error)
            self._is_down = True
            return alerts
        if self._is_down:
            log.warning("%s: takes alerts again", self._endpoint.shown)
        self._is_down = False
        self.sent += len(alerts)
        return []

    def _one_by_one(self, alerts: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The same of alerts that were refused together: one bad one is no reason to lose the others."""
        for place, alert in enumerate(alerts):
            if self._unsettled([alert]):
                return alerts[place:]
        return []

    def _drop(self, count: int, why: str) -> None:
        """Count alerts that are lost; of many, it is told at 1, 2, 4, 8 ..."""
        with self._news:  # both threads may lose some
            before, self.dropped = self.dropped, self.dropped + count
        if self.dropped.bit_length() > before.bit_length():
            log.warning("%s: %d alerts dropped so far: %s", self._endpoint.shown, self.dropped, why)
