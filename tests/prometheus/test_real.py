"""With the real ones: Prometheus and Alertmanager, as their packages install them, on free ports."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from netanomaly.cli import main

ROOT = Path(__file__).parents[2]
PROMETHEUS, PROMTOOL = shutil.which("prometheus"), shutil.which("promtool")
ALERTMANAGER = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
QUERIED = {
    "throughput_rx": "throughput_rx_bps",
    "throughput_tx": "throughput_tx_bps",
    "packets_rx": "packets_rx_per_s",
    "packets_tx": "packets_tx_per_s",
    "rtt": "rtt_ms",
    "jitter": "jitter_ms",
    "loss": "loss_ratio",
    "queue_drops": "queue_drops_per_s",
    "retransmits": "retransmits_per_s",
    "flows": "flows",
    "new_flows": "new_flows_per_s",
    "tcp_resets": "tcp_resets_per_s",
}
"""Metrics of the bundle that comes with the package, and the columns of the testbed that they are."""
FAULT = ("a07", "congestion")
"""The first fault of the rows below, which the bundle that comes with the package recognises."""
AROUND = slice(0, 200)
"""Rows of it, in its series: it begins at row 119 and is over at row 152."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not (PROMETHEUS and PROMTOOL), reason="Prometheus is not installed"),
]
needs_alertmanager = pytest.mark.skipif(not ALERTMANAGER, reason="Alertmanager is not installed")


@pytest.fixture(scope="module")
def fault() -> pd.DataFrame:
    """Rows of the testbed around a fault."""
    frame = pd.read_csv(ROOT / "data" / "testbed" / "data.csv.gz", dtype=str, keep_default_na=False)
    return frame[frame["series"] == FAULT[0]].iloc[AROUND].drop(columns="label")


@pytest.fixture(scope="module")
def rows(fault: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fault") / "rows.csv"
    fault.to_csv(path, index=False, lineterminator="\n")
    return path


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def got(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.loads(answer.read() or b"null")


def until(found: Callable[[], Any], seconds: float = 90) -> Any:
    """What it finds, as soon as it finds something."""
    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError, ValueError):
            if result := found():
                return result
        assert time.monotonic() < end, "nothing came in time"
        time.sleep(0.2)


@contextlib.contextmanager
def running(command: list[str], directory: Path, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process that does not outlive the block; what it says lies in the directory."""
    said = directory / f"{Path(command[0]).name}.log"
    with said.open("wb") as log, subprocess.Popen(command, cwd=directory, stdout=log, stderr=log, **options) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


@contextlib.contextmanager
def prometheus(directory: Path, config: str = "", port: int = 0) -> Iterator[str]:
    (directory / "prometheus.yml").write_text(config or "scrape_configs: []\n", encoding="utf-8")
    port = port or free_port()
    options = [
        "--config.file=prometheus.yml",
        "--storage.tsdb.path=data",
        "--storage.tsdb.retention.time=100y",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with running([str(PROMETHEUS), *options], directory):
        url = f"http://127.0.0.1:{port}"
        until(lambda: got(f"{url}/api/v1/status/buildinfo"))
        yield url


@contextlib.contextmanager
def watching(*options: str, directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`watch` with lines from here."""
    command = [sys.executable, "-m", "netanomaly", "watch", "starter", *options]
    with running(command, directory, stdin=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"}) as process:
        yield process


def send(process: subprocess.Popen[bytes], lines: list[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("".join(lines).encode())
    process.stdin.flush()


def result_of(url: str, query: str) -> float | None:
    """A number that Prometheus answers."""
    found = got(f"{url}/api/v1/query?query={urllib.parse.quote(query)}")["data"]["result"]
    return float(found[0]["value"][1]) if found else None


def test_prometheus_scrapes_watch(rows: Path, tmp_path: Path) -> None:
    pytest.importorskip("prometheus_client")
    port, lines = free_port(), rows.read_text().splitlines(keepends=True)
    config = (
        "global: {scrape_interval: 1s}\nscrape_configs:\n  - job_name: netanomaly\n    static_configs:\n"
        f"      - targets: ['127.0.0.1:{port}']\n"
    )
    with prometheus(tmp_path, config) as url, watching("--metrics-port", str(port), directory=tmp_path) as watch:
        send(watch, lines)
        assert until(lambda: result_of(url, "sum(netanomaly_predictions_total)") == len(lines) - 1)
        assert until(lambda: result_of(url, 'netanomaly_incidents_total{class="congestion"}') == 1)
        assert result_of(url, "netanomaly_rows_total") == len(lines) - 1
        assert result_of(url, "histogram_quantile(0.99, netanomaly_batch_duration_seconds_bucket)") is not None
        assert result_of(url, 'up{job="netanomaly"}') == 1


def open_metrics(fault: pd.DataFrame) -> str:
    """The rows as promtool reads them; an empty cell is no sample."""
    moments = pd.to_datetime(fault["timestamp"]).astype("datetime64[ns, UTC]").astype("int64") / 1e9
    parts = []
    for name in QUERIED.values():
        parts.append(f"# TYPE {name} gauge\n")
        for moment, series, value in zip(moments, fault["series"], fault[name], strict=True):
            if value:
                parts.append(f'{name}{{link="{series}",job="testbed"}} {value} {moment:.3f}\n')
    return "".join(parts) + "# EOF\n"


def asked(fault: pd.DataFrame) -> list[str]:
    """A query for each metric of the starter bundle; a value holds for its own step alone."""
    return [part for name, own in QUERIED.items() for part in ("--query", f"{name}=last_over_time({own}[400ms])")]


def test_rows_of_prometheus_are_those_of_the_csv(fault: pd.DataFrame, rows: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.om").write_text(open_metrics(fault), encoding="utf-8")
    blocks = [str(PROMTOOL), "tsdb", "create-blocks-from", "openmetrics", "rows.om", "data"]
    subprocess.run(blocks, cwd=tmp_path, check=True, capture_output=True)
    span = ["--start", fault["timestamp"].iloc[0], "--end", fault["timestamp"].iloc[-1]]
    with prometheus(tmp_path) as url:
        own = ["--from-prometheus", url, *asked(fault), *span, "--set", "data.series=link"]
        for name, given in (("csv", [str(rows)]), ("asked", own)):
            files = ["--out", str(tmp_path / f"{name}.csv"), "--incidents", str(tmp_path / f"{name}.json")]
            assert main(["predict", "starter", *given, *files]) == 0
    csv, found = (pd.read_csv(tmp_path / f"{name}.csv") for name in ("csv", "asked"))
    for frame in (csv, found):
        frame["timestamp"] = pd.to_datetime(frame["timestamp"], format="ISO8601")
    pd.testing.assert_frame_equal(csv, found, rtol=0, atol=1e-6)
    (one,), (other,) = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("csv", "asked"))
    assert (other["series"], other["looks_like"]) == FAULT and other["rows"] == one["rows"]


def answers_in(log: Path) -> list[dict[str, Any]]:
    """Whole JSON lines among what a process has said."""
    lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]


def test_watch_polls_prometheus(tmp_path: Path) -> None:
    """Prometheus, which scrapes itself, in the place of a network: each row is answered, a step a second."""
    port = free_port()
    config = (
        "global: {scrape_interval: 1s}\nscrape_configs:\n  - job_name: itself\n    static_configs:\n"
        f"      - targets: ['127.0.0.1:{port}']\n"
    )
    queries = [part for name in QUERIED for part in ("--query", f"{name}=scrape_samples_scraped")]
    given = ["--set", "data.series=[job, instance]", "--set", "data.interval=1s"]
    with prometheus(tmp_path, config, port) as url:
        until(lambda: result_of(url, "scrape_samples_scraped"))
        with watching("--from-prometheus", url, *queries, *given, directory=tmp_path):
            log = tmp_path / f"{Path(sys.executable).name}.log"
            until(lambda: len(answers_in(log)) >= 5)
            found = pd.DataFrame(answers_in(log))
    assert set(found["series"]) == {f"itself/127.0.0.1:{port}"}
    assert pd.to_datetime(found["timestamp"]).diff().dropna().dt.total_seconds().eq(1).all()


@needs_alertmanager
def test_alertmanager_shows_the_incident_of_a_replayed_fault_and_resolves_it(rows: Path, tmp_path: Path) -> None:
    port, lines = free_port(), rows.read_text().splitlines(keepends=True)
    (tmp_path / "alertmanager.yml").write_text("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
    options = ["--config.file=alertmanager.yml", "--storage.path=data", "--cluster.listen-address="]
    command = [str(ALERTMANAGER), *options, f"--web.listen-address=127.0.0.1:{port}"]
    url = f"http://127.0.0.1:{port}"
    told = ["--to-alertmanager", url, "--alert-label", "severity=warning"]
    with running(command, tmp_path), watching(*told, directory=tmp_path) as watch:
        until(lambda: got(f"{url}/api/v2/status"))
        send(watch, lines[:135])
        (alert,) = until(lambda: got(f"{url}/api/v2/alerts"))
        assert (alert["labels"]["series"], alert["labels"]["class"]) == FAULT
        assert alert["labels"]["severity"] == "warning" and alert["status"]["state"] == "active"
        assert pd.Timestamp(alert["startsAt"]) == pd.Timestamp("2026-11-29T17:00:52.500Z")
        send(watch, lines[135:])
        assert until(lambda: got(f"{url}/api/v2/alerts") == [])
