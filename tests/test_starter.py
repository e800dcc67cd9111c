"""The bundle that comes with the package."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from netanomaly import load
from netanomaly.bundle import load_bundle
from netanomaly.cli import main
from netanomaly.config import load_config
from netanomaly.starter import is_starter, starter_directory

ROOT = Path(__file__).parents[1]
METRICS = [metric.name for metric in load_config(ROOT / "configs" / "starter.yaml").data.metrics]


def _rows(*names: str, rows: int = 400) -> pd.DataFrame:
    """A quiet link at ten times the testbed's interval, whose delay and loss rise in the end."""
    rng = np.random.default_rng(0)
    usual = {"throughput_rx": 8e6, "throughput_tx": 3e5, "packets_rx": 800, "packets_tx": 500, "rtt": 30, "jitter": 3}
    steady = {name: usual.get(name, 0) * (1 + 0.05 * rng.standard_normal(rows)) for name in names}
    frame = pd.DataFrame(steady | {name: np.full(rows, 3.0) for name in names if name == "flows"})
    if "rtt" in frame:
        frame.loc[rows - 40 :, "rtt"] *= 8
    frame["timestamp"] = pd.date_range("2026-03-01", periods=rows, freq="5s", tz="UTC").strftime("%Y-%m-%dT%H:%M:%SZ")
    frame["series"] = "x"
    return frame


def _reading(*names: str) -> list[str]:
    metrics = [{"name": name, "column": name, "measured": name in names} for name in METRICS]
    known = {metric.name: metric for metric in load_bundle(starter_directory()).config.data.metrics}
    metrics = [{**metric, "unit": known[str(metric["name"])].unit} for metric in metrics]
    return [f"data.metrics={json.dumps(metrics)}", "data.interval=5s"]


def test_it_is_small_and_is_what_its_config_says() -> None:
    assert sum(path.stat().st_size for path in starter_directory().iterdir()) <= 1_000_000
    config = load_bundle(starter_directory()).config
    assert [metric.name for metric in config.data.metrics] == METRICS
    assert config.training == load_config(ROOT / "configs" / "starter.yaml").training
    assert (config.run_dir, config.data.root, config.device, config.threads) == ("runs/starter", ".", "auto", None)


@pytest.mark.parametrize("names", [("rtt",), ("rtt", "loss"), ("throughput_rx", "throughput_tx", "flows"), METRICS])
def test_any_of_its_metrics_will_do(names: tuple[str, ...]) -> None:
    found = load("starter", overrides=_reading(*names)).predict(_rows(*names))
    assert len(found) == 400 and found["confidence"].between(0, 1).all()
    assert (found["label"][100:350] == "normal").mean() > 0.9  # nothing happens


def test_a_delay_that_rises_is_seen() -> None:
    found = load("starter", overrides=_reading("rtt", "loss", "jitter")).predict(_rows("rtt", "loss", "jitter"))
    assert (found["label"][365:380] != "normal").mean() > 0.5


def test_its_card_says_what_it_can_and_what_it_cannot(capsys: pytest.CaptureFixture[str]) -> None:
    card = load_bundle(starter_directory()).facts["card"]
    assert card["metrics"][0]["metrics"] == "all" and len(card["metrics"]) >= 8
    assert main(["inspect", "starter"]) == 0
    shown = capsys.readouterr().out
    assert "test links, with these metrics only" in shown and "it cannot know:" in shown
    assert f"{card['metrics'][0]['macro_f1']:.3f}" in shown


def test_the_docs_have_the_scores_of_the_card() -> None:
    text = (ROOT / "docs" / "your-own-csv.md").read_text(encoding="utf-8")
    for one in load_bundle(starter_directory()).facts["card"]["metrics"]:
        name, alarms = one["metrics"], one["false_alarms_per_series_day"]
        assert f"| {name} | {one['macro_f1']:.3f} | {one['recall']:.3f} | {alarms:.0f} |" in text


def test_a_directory_of_the_user_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert is_starter(Path("starter"))
    (tmp_path / "starter").mkdir()
    assert not is_starter(Path("starter"))
    assert main(["inspect", "starter"]) == 4


def test_it_is_not_tuned_in_place(capsys: pytest.CaptureFixture[str]) -> None:
    before = (starter_directory() / "bundle.json").read_bytes()
    assert main(["tune", "starter", "--min-rows", "3"]) == 2
    assert "copy" in capsys.readouterr().err
    assert main(["tune", "starter"]) == 0
    assert (starter_directory() / "bundle.json").read_bytes() == before


def test_rows_that_are_written_otherwise_get_the_way_to_say_how(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.csv").write_text("when,ping\n2026-03-01T00:00:00Z,3\n")
    assert main(["predict", "starter", str(tmp_path / "x.csv")]) == 3
    told = capsys.readouterr().err
    assert "no column" in told and "--for starter --write-config FILE.yaml, then --data FILE.yaml" in told
