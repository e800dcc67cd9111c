"""Rows, faults and the quality of the emulation as files: the input contract of netanomaly."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from scripts.testbed.rows import INTERVAL_S, Row
from scripts.testbed.schedule import Fault

METRICS = (
    "throughput_rx_bps",
    "throughput_tx_bps",
    "packets_rx_per_s",
    "packets_tx_per_s",
    "bandwidth_nominal_bps",
    "bandwidth_est_bps",
    "rtt_ms",
    "rtt_max_ms",
    "jitter_ms",
    "loss_ratio",
    "queue_bytes",
    "queue_tx_bytes",
    "queue_drops_per_s",
    "queue_tx_drops_per_s",
    "retransmits_per_s",
    "tcp_cwnd_segments",
    "tcp_srtt_ms",
    "flows",
    "new_flows_per_s",
    "tcp_resets_per_s",
    "udp_rx_per_s",
)
"""Columns between `timestamp` and `label`, as in `data/testbed/data.csv.gz`."""
NORMAL = "normal"
DATA, INCIDENTS, QUALITY, RUN = "data.csv", "incidents.csv", "quality.csv", "run.json"


@dataclass(frozen=True)
class Incident:
    """A fault that happened, with its true times (Unix time)."""

    fault: Fault
    start_s: float
    end_s: float


def label_of(series: str, due_s: float, incidents: Iterable[Incident]) -> str:
    """The state in the middle of the interval that a row covers."""
    middle_s = due_s - INTERVAL_S / 2
    for incident in incidents:
        if incident.fault.link == series and incident.start_s <= middle_s < incident.end_s:
            return incident.fault.label
    return NORMAL


def write_run(directory: Path, rows: list[Row], incidents: list[Incident], about: Mapping[str, object]) -> None:
    """Write the four files of a run into a directory that is there: rows in order of series and time."""
    rows = sorted(rows, key=lambda row: (row.series, row.due_s))
    incidents = sorted(incidents, key=lambda incident: (incident.fault.link, incident.start_s))
    _write_csv(
        directory / DATA,
        ["series", "timestamp", *METRICS, "label"],
        (
            [row.series, rfc3339(row.due_s), *_cells(row, METRICS), label_of(row.series, row.due_s, incidents)]
            for row in rows
        ),
    )
    _write_csv(
        directory / INCIDENTS,
        ["series", "start", "end", "label", "severity"],
        (
            [one.fault.link, rfc3339(one.start_s), rfc3339(one.end_s), one.fault.label, f"{one.fault.severity:.3f}"]
            for one in incidents
        ),
    )
    _write_csv(
        directory / QUALITY,
        ["series", "timestamp", "taken", "collector_lag_ms", "forwarder_late_ms", "cpu_busy"],
        (
            [row.series, rfc3339(row.due_s), rfc3339(row.taken_s)]
            + [_cell(value) for value in (row.collector_lag_ms, row.forwarder_late_ms, row.cpu_busy)]
            for row in rows
        ),
    )
    (directory / RUN).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def rfc3339(unix_s: float) -> str:
    """UTC, to the millisecond."""
    return datetime.fromtimestamp(round(unix_s, 3), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _cells(row: Row, metrics: Iterable[str]) -> list[str]:
    return [_cell(row.metrics[name]) for name in metrics]


def _cell(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if abs(value) < 1e5 else f"{value:.0f}"


def _write_csv(path: Path, header: list[str], lines: Iterable[list[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(lines)
