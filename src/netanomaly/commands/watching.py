"""What the options of `netanomaly watch` ask for, put together."""

from __future__ import annotations

import argparse
import logging
import re
import socket
from contextlib import ExitStack
from pathlib import Path

from netanomaly.alarms.live import LiveAlarms
from netanomaly.build import build_input_format
from netanomaly.commands.from_prometheus import is_asked, prometheus_tables
from netanomaly.commands.shared import bundle_directory, overrides
from netanomaly.data.timestamps import TimeFormat
from netanomaly.errors import ConfigError
from netanomaly.interrupts import terminable
from netanomaly.predictor import load
from netanomaly.prometheus.alertmanager import Alertmanager
from netanomaly.prometheus.exposition import served
from netanomaly.prometheus.http import Endpoint
from netanomaly.streaming import StreamingPredictor
from netanomaly.watch.counts import Counts
from netanomaly.watch.incidents import IncidentLines, Listener
from netanomaly.watch.loop import csv_source, watch_source
from netanomaly.watch.metrics import WatchMetrics
from netanomaly.watch.polled import PolledRows
from netanomaly.watch.source import OpenSource

log = logging.getLogger(__name__)

SECONDS = 10.0
"""To wait for Alertmanager."""
LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
OURS = ("alertname", "series", "class")
EVERYWHERE = ("", "0.0.0.0", "::")  # noqa: S104 - only compared with


def watch_as_asked(options: argparse.Namespace) -> None:
    """Label rows until there are no more, and tell whom the options name."""
    to_output = options.incidents == Path("-")
    with terminable(), ExitStack() as stack:
        predictor = load(bundle_directory(options.bundle), overrides=overrides(options))
        stream = StreamingPredictor(predictor, forget_after=options.forget_after)
        alarms, counts = predictor.live_alarms(), Counts()
        source, times = _source(options, stream)
        listeners: list[Listener] = []
        if options.incidents is not None:
            place = None if to_output else options.incidents
            listeners.append(stack.enter_context(IncidentLines(place, times, alarms.interval_ns)))
        alerts = None if options.to_alertmanager is None else _alertmanager(options, times, alarms)
        if options.metrics_port is not None:
            metrics = WatchMetrics(stream, alarms, counts, str(options.bundle), alerts)
            url = _serve(options, metrics, stack)
            if alerts is not None:
                alerts.source = url
        if alerts is not None:
            listeners.append(stack.enter_context(alerts))
        watch_source(
            stream,
            source,
            state=options.state,
            state_every=options.state_every / 1e9,
            max_ahead=options.max_ahead,
            sinks=[] if to_output else None,
            listeners=listeners,
            alarms=alarms,
            counts=counts,
        )


def _source(options: argparse.Namespace, stream: StreamingPredictor) -> tuple[OpenSource, TimeFormat]:
    """Where rows come from, and how their times are written."""
    if not is_asked(options):
        times = build_input_format(stream.predictor.config.data).times
        return csv_source(stream, options.file, follow=options.follow), times
    tables = prometheus_tables(options, stream.predictor)

    def opened(*_: object) -> PolledRows:
        times, known = stream.last_times(stream.series)  # by now those of the saved state
        return PolledRows(tables, int(times[known].max()) if known.any() else None)

    return opened, TimeFormat()


def _alertmanager(options: argparse.Namespace, times: TimeFormat, alarms: LiveAlarms) -> Alertmanager:
    """Sends alerts to the URL of the options."""
    if times.format == "elapsed":
        raise ConfigError("--to-alertmanager: alerts need times, and the rows count from any start (elapsed)")
    labels = {}
    for given in options.alert_label:
        name, mark, value = given.partition("=")
        if not mark or not LABEL.fullmatch(name) or not value:
            raise ConfigError(f"--alert-label {given}: write NAME=VALUE, a name of letters, digits and _")
        if any("\ud800" <= letter <= "\udfff" for letter in value):  # bytes of the command line that are no text
            raise ConfigError(f"--alert-label {given}: its value is no text that can be sent")
        if name in OURS:
            raise ConfigError(f"--alert-label {given}: the label {name} is taken: it says what the incident is")
        labels[name] = value
    endpoint = Endpoint(options.to_alertmanager, "--to-alertmanager", SECONDS)
    return Alertmanager(endpoint, lambda: alarms.open, labels, alarms.interval_ns)


def _serve(options: argparse.Namespace, metrics: WatchMetrics, stack: ExitStack) -> str:
    """Serve metrics as long as the stack lasts; the URL where they are."""
    address = options.metrics_address or "127.0.0.1"
    port = stack.enter_context(served(metrics.collect, address, options.metrics_port))
    host = socket.gethostname() if address in EVERYWHERE else address
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}/metrics"
    log.info("metrics: %s", url)
    return url
