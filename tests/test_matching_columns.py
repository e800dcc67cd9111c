"""Columns of a file matched with the metrics that a bundle knows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from netanomaly import load
from netanomaly.build import build_input_format
from netanomaly.bundle import load_bundle, save_bundle
from netanomaly.cli import main
from netanomaly.config import load_config
from netanomaly.data.schema import Metric
from netanomaly.inspect.guesses import MetricGuess
from netanomaly.inspect.matching import match_metrics
from networks import link

ROOT = Path(__file__).parents[1]
STARTER = build_input_format(load_config(ROOT / "configs" / "starter.yaml").data).metrics
FIXTURE = ROOT / "tests" / "fixtures" / "bundle_v4"


def _guess(column: str, unit: str = "1", kind: str = "gauge") -> MetricGuess:
    return MetricGuess(column, column, unit, kind, "", "", 0, 0.0, 1.0, 2.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("column", "unit", "kind", "metric"),
    [
        ("Ping (ms)", "ms", "gauge", "rtt"),
        ("rtt_avg_s", "s", "gauge", "rtt"),
        ("rtt_max_ms", "ms", "gauge", None),
        ("ifHCInOctets", "byte", "counter", "throughput_rx"),
        ("ifHCOutOctets", "byte", "counter", "throughput_tx"),
        ("Throughput (Mbps)", "Mbit/s", "gauge", "throughput_rx"),
        ("bandwidth_nominal_bps", "bit/s", "gauge", None),
        ("bytes_sent", "byte", "counter", "throughput_tx"),
        ("node_network_receive_packets_total", "packet", "counter", "packets_rx"),
        ("tx_pkts", "1", "counter", "packets_tx"),
        ("Packet loss %", "%", "gauge", "loss"),
        ("lost_percent", "%", "gauge", "loss"),
        ("jitter", "s", "gauge", "jitter"),
        ("node_netstat_Tcp_RetransSegs", "1", "counter", "retransmits"),
        ("ifOutDiscards", "packet", "counter", "queue_drops"),
        ("rx_dropped_total", "packet", "counter", "queue_drops"),
        ("ping loss (%)", "%", "gauge", "loss"),
        ("packet_drop_percentage", "%", "gauge", "loss"),
        ("PINGLOSS", "%", "gauge", "loss"),
        ("PINGAVG", "ms", "gauge", "rtt"),
        ("average_response_ms", "ms", "gauge", "rtt"),
        ("probe_duration_seconds", "s", "gauge", "rtt"),
        ("standard_deviation_ms", "ms", "gauge", "jitter"),
        ("Download", "bit/s", "gauge", "throughput_rx"),
        ("Upload", "bit/s", "gauge", "throughput_tx"),
        ("DL_bitrate", "kbit/s", "gauge", "throughput_rx"),
        ("Input rate bits/sec", "bit/s", "gauge", "throughput_rx"),
        ("tcp_retrans_segs", "1", "counter", "retransmits"),
        ("new_flows_rate", "1/s", "gauge", "new_flows"),
        ("queue_drops", "packet", "counter", "queue_drops"),
        ("connections", "1", "gauge", "flows"),
        ("new_connections", "1", "counter", "new_flows"),
        ("tcp_rst", "1", "counter", "tcp_resets"),
        ("Ping (ms)", "%", "gauge", None),  # another quantity
        ("cpu", "%", "gauge", None),
        ("queue_bytes", "byte", "gauge", None),  # a level, no rate
    ],
)
def test_names_of_common_tools(column: str, unit: str, kind: str, metric: str | None) -> None:
    found = match_metrics(STARTER, [_guess(column, unit, kind)])
    assert [match.metric.name for match in found if match.column] == ([metric] if metric else [])
    assert [match.metric.name for match in found] == [known.name for known in STARTER]


def test_a_column_is_taken_once_and_equal_names_come_first() -> None:
    known = [Metric("rtt", "rtt", "ms"), Metric("latency", "latency", "ms")]
    found = match_metrics(known, [_guess("latency", "ms"), _guess("ping", "s")])
    assert [match.column.column for match in found if match.column] == ["ping", "latency"]
    assert "the same name" in found[1].reason and "rtt" in found[0].reason


def test_the_drops_of_what_is_sent_come_before_those_of_what_is_received() -> None:
    found = match_metrics(STARTER, [_guess(name, "packet", "counter") for name in ("ifInDiscards", "ifOutDiscards")])
    assert [match.column.column for match in found if match.column] == ["ifOutDiscards"]


def test_a_direction_that_the_header_does_not_say_is_told() -> None:
    (first, *_) = match_metrics(STARTER, [_guess("Throughput", "Mbit/s")])
    assert first.reason == "both speak of throughput; the header does not say received"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    save_bundle(tmp_path / "bundle", load_bundle(FIXTURE))
    return tmp_path / "bundle"


def test_inspect_writes_how_rows_are_read_for_a_bundle(bundle: Path, tmp_path: Path) -> None:
    frame = link("f", 60).fillna({"rtt_ms": 20.0})
    other = pd.DataFrame(
        {"When": frame["timestamp"], "Port": "f", "Ping (s)": frame["rtt_ms"] / 1000, "CPU": np.arange(60) % 7}
    )
    other.to_csv(tmp_path / "x.csv", index=False)
    written = tmp_path / "my.yaml"
    arguments = ["inspect", str(tmp_path / "x.csv"), "--for", str(bundle), "--write-config", str(written)]
    assert main(arguments) == 0
    metrics = yaml.safe_load(written.read_text(encoding="utf-8"))["data"]["metrics"]
    assert [metric["name"] for metric in metrics] == ["rtt_ms", "throughput_bps", "loss_ratio"]
    assert metrics[0]["column"] == "Ping (s)" and metrics[0]["unit"] == "s"
    assert metrics[1] == {"name": "throughput_bps", "measured": False}
    assert "# not taken: CPU" in written.read_text(encoding="utf-8")
    out = tmp_path / "out.csv"
    rows = ["predict", str(bundle), str(tmp_path / "x.csv"), "--data", str(written), "--out", str(out)]
    assert main(rows) == 0
    expected = load(bundle).predict(frame.assign(throughput_bps=np.nan, loss_ratio=np.nan))
    assert (pd.read_csv(out)["label"] == expected["label"]).all()


@pytest.mark.parametrize(
    ("columns", "arguments", "code", "message"),
    [
        (["CPU", "disk"], ["--write-config", "my.yaml"], 3, "no column is one of the metrics that"),
        (["rtt_ms"], [], 2, "--for: says for which bundle"),
    ],
)
def test_what_cannot_be_matched_is_told(
    bundle: Path,
    tmp_path: Path,
    columns: list[str],
    arguments: list[str],
    code: int,
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"timestamp": link("f", 60)["timestamp"], **{name: np.arange(60) % 5 for name in columns}})
    frame.to_csv("x.csv", index=False)
    assert main(["inspect", "x.csv", "--for", str(bundle), *arguments]) == code
    assert message in capsys.readouterr().err


def test_a_file_without_series_is_read_though_the_bundle_has_a_column_of_them(bundle: Path, tmp_path: Path) -> None:
    frame = link("f", 60).drop(columns=["link", "label"])
    frame.to_csv(tmp_path / "one.csv", index=False, sep=";", decimal=",")
    written, out = tmp_path / "one.yaml", tmp_path / "out.csv"
    assert main(["inspect", str(tmp_path / "one.csv"), "--for", str(bundle), "--write-config", str(written)]) == 0
    data = yaml.safe_load(written.read_text(encoding="utf-8"))["data"]
    assert (data["series"], data["separator"], data["duplicates"]) == ([], ";", "error")
    rows = ["predict", str(bundle), str(tmp_path / "one.csv"), "--data", str(written), "--out", str(out)]
    assert main(rows) == 0
    expected = load(bundle).predict(link("f", 60))
    assert (pd.read_csv(out)["label"] == expected["label"]).all()
