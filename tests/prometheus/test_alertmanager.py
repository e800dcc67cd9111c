"""Alerts arrive in order, again and again while they go on, whatever the server does, and nobody waits for it."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from servers import Server, serving

from netanomaly.alarms.live import Event, Incident
from netanomaly.prometheus.alertmanager import Alertmanager
from netanomaly.prometheus.http import Endpoint

SECOND = 10**9
START = 1_772_323_200 * SECOND  # 2026-03-01T00:00:00Z


def incident(number: int = 0, label: str = "flood") -> Incident:
    times = (START, START + 9 * SECOND, START + 4 * SECOND)
    return Incident(f"link {number}", label, *times, 0.6, 0.93, 4.2, 5, 1, True, START + 2 * SECOND)


def events(*numbers: int, kind: Any = "opened") -> list[Event]:
    return [Event(kind, incident(number)) for number in numbers]


def sender(server: Server, open_incidents: Callable[[], list[Incident]] = list, **options: Any) -> Alertmanager:
    endpoint = Endpoint(server.url, "--to-alertmanager", 5.0)
    labels = {"severity": "warning"}
    return Alertmanager(endpoint, open_incidents, labels, SECOND, pauses=(0.02, 0.05), **options)


def alerts(server: Server) -> list[dict[str, Any]]:
    return [alert for _, body in server.asked for alert in json.loads(body)]


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_an_incident_is_told_when_it_begins_and_when_it_is_over() -> None:
    with serving(lambda path, body: (200, b"")) as server:
        alerting = sender(server)
        alerting.source = "http://here/metrics"
        with alerting:
            alerting.hear(events(7))
            alerting.hear(events(7, kind="closed"))
        assert {path for path, _ in server.asked} == {"/api/v2/alerts"}
        opened, closed = alerts(server)
    assert opened == {
        "labels": {"alertname": "NetworkAnomaly", "series": "link 7", "class": "flood", "severity": "warning"},
        "annotations": {
            "summary": "flood on link 7",
            "description": "flood on link 7 since 2026-03-01T00:00:00Z",
            "confidence": "0.930",
            "raised": "2026-03-01T00:00:02Z",
        },
        "startsAt": "2026-03-01T00:00:00Z",
        "generatorURL": "http://here/metrics",
    }
    assert closed == {**opened, "endsAt": "2026-03-01T00:00:10Z"}
    assert (alerting.sent, alerting.dropped, alerting.failures) == (2, 0, 0)


def test_a_server_that_is_down_delays_alerts_and_changes_no_order(caplog: pytest.LogCaptureFixture) -> None:
    failures = iter([503, 429, 500])
    with serving(lambda path, body: (next(failures, 200), b"")) as server, sender(server) as alerting:
        for number in range(100):
            alerting.hear([*events(number), *events(number, kind="closed")])
        until(lambda: alerting.sent == 200)
        taken = server.asked[3:]
    told = [(alert["labels"]["series"], "endsAt" in alert) for _, body in taken for alert in json.loads(body)]
    assert told == [(f"link {number}", over) for number in range(100) for over in (False, True)]
    assert (alerting.failures, alerting.dropped) == (3, 0)
    said = [record.message for record in caplog.records]
    assert [line.split(": ", 1)[1] for line in said] == [
        "alerts wait: HTTP 503: Service Unavailable",
        "takes alerts again",
    ]


def test_nobody_waits_for_a_server_that_hangs() -> None:
    release = threading.Event()
    with (
        serving(lambda path, body: (200, b"") if release.wait(10) else (500, b"")) as server,
        sender(server) as alerting,
    ):
        begun = time.monotonic()
        alerting.hear(events(*range(1000)))
        assert time.monotonic() - begun < 2
        release.set()
        until(lambda: alerting.sent == 1000)


def test_what_goes_on_is_told_again_until_it_is_over() -> None:
    running = [incident(1)]
    with (
        serving(lambda path, body: (200, b"")) as server,
        sender(server, lambda: list(running), again=0.05) as alerting,
    ):
        until(lambda: len(server.asked) >= 3)
        running.clear()
        alerting.hear(events(1, kind="closed"))
        until(lambda: "endsAt" in alerts(server)[-1])
        count = len(server.asked)
        time.sleep(0.15)
        assert len(server.asked) == count
    assert ["endsAt" in alert for alert in alerts(server)] == [False] * (count - 1) + [True]


def test_of_too_many_that_wait_the_oldest_are_dropped_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    is_up = threading.Event()
    with serving(lambda path, body: (200 if is_up.is_set() else 503, b"")) as server:
        with sender(server, most_waiting=3) as alerting:
            alerting.hear(events(0))
            until(lambda: alerting.failures > 0)  # this one is in hand
            alerting.hear(events(1, 2, 3, 4, 5))
            is_up.set()
            until(lambda: alerting.sent == 4)
        names = [alert["labels"]["series"] for alert in alerts(server)]
    assert list(dict.fromkeys(names)) == ["link 0", "link 3", "link 4", "link 5"]
    assert alerting.dropped == 2 and "2 alerts dropped so far: too many wait" in caplog.text


def test_what_is_refused_is_dropped_with_a_word_and_the_next_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    statuses = iter([400])
    with serving(lambda path, body: (next(statuses, 200), b"bad label")) as server, sender(server) as alerting:
        alerting.hear(events(0))
        until(lambda: alerting.dropped == 1)
        alerting.hear(events(1))
        until(lambda: alerting.sent == 1)
    assert "1 alerts dropped so far: HTTP 400: bad label" in caplog.text


def test_the_end_does_not_wait_for_a_server_that_is_down(caplog: pytest.LogCaptureFixture) -> None:
    with serving(lambda path, body: (503, b"")) as server:
        begun = time.monotonic()
        with sender(server) as alerting:
            alerting.hear(events(0, 1))
        assert time.monotonic() - begun < 4
    assert [record.message for record in caplog.records if record.levelno == logging.WARNING][-1].endswith(
        "2 alerts were not sent"
    )


def test_one_bad_alert_does_not_take_the_others_with_it() -> None:
    failures = iter([503])

    def answer(path: str, body: bytes) -> tuple[int, bytes]:
        if b"link 1" in body:
            return 400, b"bad label"
        return (200, b"") if b"link 2" not in body else (next(failures, 200), b"")

    with serving(answer) as server, sender(server) as alerting:
        alerting.hear(events(0, 1, 2, 3))
        until(lambda: alerting.sent + alerting.dropped == 4)
        asked = [[alert["labels"]["series"][-1] for alert in json.loads(body)] for _, body in server.asked]
    assert [len(alerts) for alerts in asked] == [4, 1, 1, 1, 2]  # the third waits, and those after it with it
    assert (alerting.sent, alerting.dropped) == (3, 1)


def test_what_cannot_be_sent_at_all_is_dropped_and_the_next_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    broken = replace(incident(0), series="half of a pair: \ud800")

    def open_incidents() -> list[Incident]:
        raise RuntimeError("asked while it changed")

    with serving(lambda path, body: (200, b"")) as server, sender(server, open_incidents, again=0.05) as alerting:
        alerting.hear([Event("opened", broken)])
        until(lambda: alerting.dropped == 1 and alerting.failures > 2)
        alerting.hear(events(1))
        until(lambda: alerting.sent == 1)
    assert "1 alerts dropped so far: UnicodeEncodeError" in caplog.text
