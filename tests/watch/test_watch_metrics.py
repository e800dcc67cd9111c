"""What `watch` tells Prometheus is what it did."""

from __future__ import annotations

import json
import logging
import re
import urllib.request
from pathlib import Path

import pytest

from netanomaly import ConfigError, Predictor
from netanomaly.prometheus.exposition import served
from netanomaly.streaming import StreamingPredictor
from netanomaly.watch.counts import BOUNDS, Counts
from netanomaly.watch.loop import csv_source, watch_source
from netanomaly.watch.metrics import WatchMetrics

pytest.importorskip("prometheus_client", reason="the extra prometheus is not installed")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def watched(plain: Predictor, lines: list[str], tmp_path_factory: pytest.TempPathFactory) -> WatchMetrics:
    """All rows, one broken line and one that comes late."""
    path = tmp_path_factory.mktemp("metrics") / "rows.csv"
    path.write_text("".join([*lines, "x,y\n", lines[1]]), encoding="utf-8", newline="")
    stream, alarms, counts = StreamingPredictor(plain), plain.live_alarms(), Counts()
    logging.getLogger("netanomaly.watch").setLevel(logging.ERROR)
    watch_source(stream, csv_source(stream, path, follow=False), sinks=[], alarms=alarms, counts=counts)
    logging.getLogger("netanomaly.watch").setLevel(logging.NOTSET)
    return WatchMetrics(stream, alarms, counts, "runs/mine")


def scraped(metrics: WatchMetrics) -> str:
    with (
        served(metrics.collect, "127.0.0.1", 0) as port,
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer,
    ):
        return str(answer.read().decode())


Values = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def by_class(found: Values, name: str) -> dict[str, float]:
    return {dict(labels)["class"]: value for (key, labels), value in found.items() if key == name}


def values(text: str) -> Values:
    from prometheus_client.parser import text_string_to_metric_families

    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_figures_are_those_of_the_watch(watched: WatchMetrics, lines: list[str]) -> None:
    found, counts = values(scraped(watched)), watched.counts
    assert found["netanomaly_rows_total", ()] == len(lines) + 1
    assert found["netanomaly_rows_left_out_total", (("reason", "broken"),)] == 1
    assert found["netanomaly_rows_left_out_total", (("reason", "late"),)] == 1
    predictions = {
        labels[0][1]: value for (name, labels), value in found.items() if name == "netanomaly_predictions_total"
    }
    assert predictions == {**dict.fromkeys(watched.stream.predictor.classes, 0), **counts.answered}
    assert sum(predictions.values()) == len(lines) - 1
    opened = by_class(found, "netanomaly_incidents_total")
    assert opened == {**dict.fromkeys(watched.alarms.rule.thresholds, 0), **watched.alarms.opened}
    still = by_class(found, "netanomaly_open_incidents")
    assert sum(still.values()) == len(watched.alarms.open) > 0 and set(still) == set(opened)
    assert found["netanomaly_series", ()] == 4
    assert found["netanomaly_last_row_timestamp_seconds", ()] == pytest.approx((counts.newest or 0) / 1e9)
    (info,) = [dict(labels) for name, labels in found if name == "netanomaly_build_info"]
    assert info["bundle"] == "runs/mine" and re.fullmatch(r"[\d.]+\w*", info["version"])


def test_the_durations_are_a_histogram(watched: WatchMetrics) -> None:
    found = values(scraped(watched))
    name = "netanomaly_batch_duration_seconds"
    buckets = {float(dict(labels)["le"]): value for (key, labels), value in found.items() if key == f"{name}_bucket"}
    assert sorted(buckets) == list(BOUNDS)
    assert list(buckets.values()) == sorted(buckets.values())
    assert buckets[float("inf")] == found[f"{name}_count", ()] == watched.counts.within.total() > 0
    assert found[f"{name}_sum", ()] == watched.counts.seconds


def test_two_watches_in_one_process_do_not_meet(watched: WatchMetrics) -> None:
    with served(watched.collect, "127.0.0.1", 0) as one, served(watched.collect, "127.0.0.1", 0) as other:
        assert one != other


def test_a_port_that_is_taken_is_one_line(watched: WatchMetrics) -> None:
    with served(watched.collect, "127.0.0.1", 0) as port:
        said = rf"--metrics-port {port}: cannot listen at 127\.0\.0\.1: Address"
        with pytest.raises(ConfigError, match=said), served(watched.collect, "127.0.0.1", port):
            pass


def test_the_dashboard_asks_for_what_is_told(watched: WatchMetrics) -> None:
    board = json.loads((ROOT / "docs" / "grafana" / "netanomaly.json").read_text(encoding="utf-8"))
    told = {name for name, _ in values(scraped(watched))} | {
        f"netanomaly_{name}" for name in ("alerts_sent_total", "alerts_dropped_total", "alert_failures_total")
    }
    queries = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    asked = {name for query in queries for name in re.findall(r"netanomaly_\w+", query)}
    assert len(queries) >= 8 and asked <= told
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids)) and board["uid"] and board["title"]
    page = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\bnetanomaly_\w+", page))
    assert {name for name in told if not name.endswith(("_created", "_bucket", "_sum", "_count"))} <= named
