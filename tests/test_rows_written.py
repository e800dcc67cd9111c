"""Rows that are written otherwise than in training: other columns, units and intervals, metrics that are gone."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from netanomaly import ConfigError, Predictor, StreamingPredictor, load
from netanomaly.bundle import load_bundle, save_bundle
from netanomaly.cli import main
from netanomaly.rows_written import rows_of_yaml
from networks import link

FIXTURE = Path(__file__).parent / "fixtures" / "bundle_v4"
METRICS = [
    {"name": "rtt_ms", "column": "Ping (s)", "unit": "s"},
    {"name": "throughput_bps", "measured": False},
    {"name": "loss_ratio", "column": "Loss", "unit": "%"},
]


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A trained one that knows units."""
    save_bundle(tmp_path / "bundle", load_bundle(FIXTURE))
    return tmp_path / "bundle"


def _other_rows() -> pd.DataFrame:
    """The rows of a link as another tool writes them, without a throughput."""
    frame = link("f", 60)
    return pd.DataFrame(
        {
            "When": frame["timestamp"],
            "Port": "f",
            "Ping (s)": frame["rtt_ms"] / 1000,
            "Loss": [f"{100 * value:.12g} %" if value == value else "" for value in frame["loss_ratio"]],
        }
    )


def _written(directory: Path) -> Path:
    """How they are written."""
    tree = {"data": {"files": "x.csv", "timestamp": {"column": ["When"]}, "series": ["Port"], "metrics": METRICS}}
    (directory / "my.yaml").write_text(yaml.safe_dump(tree), encoding="utf-8")
    return directory / "my.yaml"


def _reference(bundle: Path) -> pd.DataFrame:
    """The answers to the same rows, written as in training, without a throughput."""
    return load(bundle).predict(link("f", 60).assign(throughput_bps=np.nan))


def _same(found: pd.DataFrame, expected: pd.DataFrame) -> None:
    assert (found["label"] == expected["label"]).all()
    columns = [name for name in expected if name.startswith("p_")]
    np.testing.assert_allclose(found[columns], expected[columns], atol=1e-5)


def test_other_columns_and_units_and_a_metric_that_is_not_there(bundle: Path, tmp_path: Path) -> None:
    predictor = load(bundle, overrides=rows_of_yaml(_written(tmp_path)))
    _same(predictor.predict(_other_rows()), _reference(bundle))


def test_a_stream_of_such_rows(bundle: Path, tmp_path: Path) -> None:
    predictor = load(bundle, overrides=rows_of_yaml(_written(tmp_path)))
    rows = _other_rows()
    rows["Loss"] = [float(text.removesuffix(" %")) if text else np.nan for text in rows["Loss"]]
    stream = StreamingPredictor(predictor)
    found = pd.concat([stream.update(row) for row in rows.to_dict("records")])
    _same(found.reset_index(drop=True), _reference(bundle))


def test_the_command_takes_a_yaml(bundle: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    _other_rows().to_csv(tmp_path / "x.csv", index=False)
    out = tmp_path / "out.csv"
    arguments = ["predict", str(bundle), str(tmp_path / "x.csv"), "--data", str(_written(tmp_path)), "--out", str(out)]
    assert main(arguments) == 0
    _same(pd.read_csv(out), _reference(bundle))


def test_metrics_that_are_not_measured_are_told(bundle: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        load(bundle, overrides=[f"data.metrics={METRICS}".replace("False", "false")])
    assert "not measured in these rows: throughput_bps" in caplog.text


def test_without_any_metric_there_is_nothing_to_say(bundle: Path) -> None:
    none = [{**metric, "measured": False} for metric in METRICS]
    with pytest.raises(ConfigError, match="no metric is measured"):
        load(bundle, overrides=[f"data.metrics={none}".replace("False", "false")])


def test_a_metric_that_the_bundle_does_not_know_is_refused(bundle: Path) -> None:
    with pytest.raises(ConfigError, match="the bundle knows no 'jitter_ms'; it knows rtt_ms"):
        load(bundle, overrides=[f"data.metrics={[*METRICS, {'name': 'jitter_ms'}]}".replace("False", "false")])


def test_a_metric_of_which_nothing_is_said_is_asked_for(bundle: Path) -> None:
    with pytest.raises(ConfigError, match="says nothing of 'throughput_bps', which the bundle knows; measured: false"):
        load(bundle, overrides=["data.metrics=[{name: rtt_ms, unit: ms}]"])


def test_a_counter_may_stand_for_a_rate(bundle: Path) -> None:
    frame = link("f", 60)
    rate = frame["throughput_bps"].interpolate(limit_direction="both")
    frame["octets"] = (rate / 8).cumsum().round()
    counted = [METRICS[0], {"name": "throughput_bps", "column": "octets", "unit": "byte", "kind": "counter"}]
    metrics = [{**METRICS[0], "column": "rtt_ms", "unit": "ms"}, counted[1], {"name": "loss_ratio", "unit": "ratio"}]
    found = load(bundle, overrides=[f"data.metrics={metrics}"]).predict(frame)
    expected = load(bundle).predict(frame.assign(throughput_bps=rate))
    assert (found["label"] == expected["label"]).mean() > 0.95  # a lost row is a gap in one, a longer step in the other


def test_another_quantity_is_refused(bundle: Path) -> None:
    metrics = [{"name": "rtt_ms", "unit": "%"}, *METRICS[1:]]
    with pytest.raises(ConfigError, match="'rtt_ms' is a gauge in ms in the bundle, here a gauge in %"):
        load(bundle, overrides=[f"data.metrics={metrics}".replace("False", "false")])


def test_metrics_may_come_in_any_order(bundle: Path) -> None:
    turned = load(bundle, overrides=[f"data.metrics={METRICS[::-1]}".replace("False", "false")])
    assert [metric.name for metric in turned.config.data.metrics] == [metric["name"] for metric in METRICS]


@pytest.mark.parametrize(("interval", "told"), [("1s", False), ("1000ms", False), ("30s", True)])
def test_another_interval_is_told(bundle: Path, interval: str, told: bool, caplog: pytest.LogCaptureFixture) -> None:
    predictor = load(bundle, overrides=[f"data.interval={interval}", "data.max_gap=5"])
    assert ("rows are 30s apart here, 1s in training" in caplog.text) == told
    frame = link("f", 60)
    if told:
        times = pd.Timestamp("2026-03-01T00:00:00Z") + pd.to_timedelta(30 * np.arange(60), unit="s")
        frame["timestamp"] = times.strftime("%Y-%m-%dT%H:%M:%SZ").astype(object)
    _same(predictor.predict(frame), load(bundle).predict(link("f", 60)))


def test_an_interval_that_spans_depend_on_stays(bundle: Path) -> None:
    held = load_bundle(bundle)
    model = held.config.model.model_copy(update={"window": "8s"})
    held = type(held)(**{**vars(held), "config": held.config.model_copy(update={"model": model})})
    save_bundle(bundle, held)
    assert isinstance(load(bundle), Predictor)
    with pytest.raises(ConfigError, match=r"model.window is a duration, so its interval 1s has to stay"):
        load(bundle, overrides=["data.interval=30s"])


@pytest.mark.parametrize("content", ["model: {}\n", "data: 3\n", "- a\n"])
def test_a_yaml_without_data_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "my.yaml").write_text(content)
    with pytest.raises(ConfigError, match="no section 'data'"):
        rows_of_yaml(tmp_path / "my.yaml")


def test_labels_in_a_list_replace_those_in_a_column(tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text("data: {incidents: list.csv}\n")
    assert rows_of_yaml(tmp_path / "my.yaml") == ["data.label=null", 'data.incidents="list.csv"']
