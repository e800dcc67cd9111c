"""A bundle's decisions: settled by training, changed by `tune`, seen in what `predict` writes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from netanomaly import load, train
from netanomaly.bundle import load_bundle
from netanomaly.bundle_files import WEIGHTS
from netanomaly.cli import main
from networks import link, network, settings


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with rows, and the run of a training with them."""
    directory = tmp_path_factory.mktemp("deciding")
    network().to_csv(directory / "links.csv", index=False)
    tree = settings(directory / "run")
    tree["data"] = {"root": str(directory), "files": "links.csv", **tree["data"]}
    (directory / "config.yaml").write_text(yaml.safe_dump(tree), encoding="utf-8")
    train(directory / "config.yaml")
    return directory


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A copy of the run that may be changed."""
    shutil.copytree(trained / "run", tmp_path / "run")
    return tmp_path / "run"


def test_training_settles_them_on_the_validation_rows(trained: Path) -> None:
    bundle = load_bundle(trained / "run")
    assert set(bundle.decisions.alarms.thresholds) == {"congestion", "packet_loss"}
    assert bundle.decisions.calibration.temperature != 1.0
    assert bundle.facts["alarms"]["validation_series_days"] == pytest.approx(200 / 86400)


def test_the_evaluation_has_alarms_and_calibration(trained: Path) -> None:
    report = json.loads((trained / "run" / "evaluation.json").read_text(encoding="utf-8"))
    assert report["alarms"]["incidents"] == report["incidents"] == 4
    assert report["calibration"]["after"]["ece"] == pytest.approx(report["ece"])
    assert sum(entry["rows"] for entry in report["calibration"]["after"]["bins"]) == report["rows"]


def test_confidence_is_the_probability_of_the_label(trained: Path) -> None:
    found = load(trained / "run").predict(link("f"))
    known = found[~found["label"].isin(["no_data", "unknown"])]
    own = [row[f"p_{row['label']}"] for _, row in known.iterrows()]
    np.testing.assert_array_equal(known["confidence"], own)


def test_capped_weights_are_divided_out_and_rename_no_row(tmp_path: Path) -> None:
    frame = network()
    frame.loc[frame.index % 40 > 22, "label"] = None  # one class has nearly all the rows
    frame.loc[(frame["label"] != "normal") & (frame.index % 3 > 0), "label"] = None
    predictor = train(settings(tmp_path / "run"), frames=frame)
    weights = predictor.decisions.calibration.weights
    answers = predictor.predict(link("f"))
    probabilities = answers[[f"p_{name}" for name in predictor.classes]].to_numpy()
    own = predictor.decisions.calibration.undone(probabilities)
    named = np.array(predictor.classes, dtype=object)[own.argmax(axis=1)]
    given = ~answers["label"].isin(["no_data", "unknown"])
    assert (named[given] == answers["label"][given]).all()
    assert weights[0] <= 1.0


def test_tune_shows_the_rule_and_changes_nothing(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (run / "bundle.json").read_bytes()
    assert main(["tune", str(run)]) == 0
    assert "congestion: raised at a probability of" in capsys.readouterr().out
    assert (run / "bundle.json").read_bytes() == before


def test_values_set_by_hand_are_kept_and_the_weights_stay(run: Path) -> None:
    weights = (run / WEIGHTS).read_bytes()
    arguments = ["--threshold", "congestion=0.9", "--min-rows", "4", "--merge-rows", "7", "--hysteresis", "0.8"]
    assert main(["tune", str(run), *arguments]) == 0
    rule = load_bundle(run).decisions.alarms
    assert (rule.thresholds["congestion"], rule.min_rows, rule.merge_rows, rule.hysteresis) == (0.9, 4, 7, 0.8)
    assert load_bundle(run).facts["alarms"] == {"by_hand": True}
    assert (run / WEIGHTS).read_bytes() == weights


@pytest.mark.parametrize("arguments", [["--false-alarms-per-day", "0"], ["--best-f1"]], ids=" ".join)
def test_tuning_again_reads_the_validation_rows(run: Path, arguments: list[str]) -> None:
    settled = load_bundle(run).decisions
    assert main(["tune", str(run), "--threshold", "congestion=0.01"]) == 0
    assert main(["tune", str(run), *arguments]) == 0
    found = load_bundle(run)
    assert found.decisions.alarms.thresholds["congestion"] > 0.01
    assert found.decisions.calibration == settled.calibration
    assert found.config.alarms.false_alarms_per_day == (0 if len(arguments) == 2 else None)
    if len(arguments) == 1:
        assert found.decisions.state() == settled.state()  # training did just that


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--threshold", "jam=0.5"], "--threshold jam: the bundle's classes are congestion, packet_loss"),
        (["--threshold", "congestion=1.5"], "congestion: 1.5 is not above 0 and at most 1"),
        (["--threshold", "congestion"], "give a class and a probability"),
        (["--min-rows", "0"], "min_rows has to be at least 1"),
        (["--best-f1", "--false-alarms-per-day", "1"], "not both"),
        (["--false-alarms-per-day", "-1"], "false_alarms_per_day"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_is_refused(
    run: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (run / "bundle.json").read_bytes()
    assert main(["tune", str(run), *arguments]) == 2
    assert message in capsys.readouterr().err
    assert (run / "bundle.json").read_bytes() == before


def _incidents(run: Path, rows: Path, out: Path, *more: str) -> pd.DataFrame:
    assert main(["predict", str(run), str(rows), "--incidents", str(out), *more]) == 0
    return pd.read_json(out, dtype=False) if out.suffix == ".json" else pd.read_csv(out)


@pytest.mark.parametrize("chunk_rows", [0, 37, 200_000])
@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_predict_writes_the_incidents_that_python_tells(
    trained: Path, tmp_path: Path, chunk_rows: int, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = _incidents(trained / "run", trained / "links.csv", tmp_path / f"i{suffix}", "--chunk-rows", str(chunk_rows))
    told = load(trained / "run").incidents(network())
    assert len(found) > 10
    pd.testing.assert_frame_equal(found, told, check_dtype=False, rtol=0, atol=1e-6)
    shown = capsys.readouterr().out
    assert told["start"].iloc[-1] in shown
    assert "p_congestion" not in shown  # whoever asks for incidents does not want all rows


def test_incidents_are_where_the_faults_are(trained: Path) -> None:
    frame = link("f")
    found = load(trained / "run").incidents(frame)
    moments = pd.to_datetime(frame["timestamp"])
    for one in found.itertuples():
        inside = (moments >= pd.Timestamp(one.start)) & (moments < pd.Timestamp(one.end))
        assert (frame["label"][inside] == one.label).mean() > 0.5


def test_an_incidents_file_labels_rows_as_the_truth_does(trained: Path, tmp_path: Path) -> None:
    found = _incidents(trained / "run", trained / "links.csv", tmp_path / "i.csv")
    found.rename(columns={"series": "link"}).to_csv(tmp_path / "incidents.csv", index=False)
    tree: dict[str, Any] = settings(tmp_path / "run")
    data = {**tree["data"], "label": None, "root": str(trained), "files": "links.csv"}
    data["incidents"] = str(tmp_path / "incidents.csv")
    predictor = train({**tree, "data": data})
    assert set(predictor.classes) == {"normal", "congestion", "packet_loss"}


def test_planned_maintenance_is_left_out(trained: Path, tmp_path: Path) -> None:
    every = _incidents(trained / "run", trained / "links.csv", tmp_path / "every.csv")
    (tmp_path / "planned.csv").write_text(
        "link,start,end\na,2026-03-01T00:00:00Z,2026-03-01T01:00:00Z\n,2026-03-01T00:01:00Z,2026-03-01T00:01:30Z\n"
    )
    left = _incidents(
        trained / "run", trained / "links.csv", tmp_path / "i.csv", "--maintenance", str(tmp_path / "planned.csv")
    )
    assert 0 < len(left) < len(every)
    assert "a" in set(every["series"]) and "a" not in set(left["series"])
    assert not left["raised"].between("2026-03-01T00:01:00Z", "2026-03-01T00:01:29Z").any()


@pytest.mark.parametrize("chunk_rows", [0, 60])
def test_reasons_stand_beside_incidents(trained: Path, tmp_path: Path, chunk_rows: int) -> None:
    arguments = ["--reasons", "--chunk-rows", str(chunk_rows)]
    found = _incidents(trained / "run", trained / "links.csv", tmp_path / "i.csv", *arguments)
    carried = {"congestion": "rtt_ms", "packet_loss": "loss_ratio"}  # what the made-up faults raise most
    named = [carried[label] in reason for label, reason in zip(found["label"], found["reason"], strict=True)]
    assert np.mean(named) > 0.9
    predictor, first = load(trained / "run"), found.iloc[0]
    reason = predictor.explain(network(), first["series"], first["peak"])
    assert reason.metrics[0].metric in first["reason"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("link,start,end\na,2026-03-01T01:00:00Z,2026-03-01T00:00:00Z\n", "ends before it starts"),
        ("link,start\na,2026-03-01T01:00:00Z\n", "'end'"),
        ("link,start,end\na,yesterday,2026-03-01T00:00:00Z\n", "line 2"),
    ],
)
def test_a_wrong_maintenance_file_ends_with_3(
    trained: Path, tmp_path: Path, content: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "planned.csv").write_text(content)
    rows, out = str(trained / "links.csv"), str(tmp_path / "i.csv")
    arguments = ["predict", str(trained / "run"), rows, "--incidents", out, "--maintenance"]
    assert main([*arguments, str(tmp_path / "planned.csv")]) == 3
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--maintenance", "planned.csv"], "give --incidents FILE as well"),
        (["--reasons"], "give --incidents FILE as well"),
        (["--incidents", "i.txt"], "write a .csv or .json"),
        (["--incidents", "x.csv", "--out", "x.csv"], "is the file of --out as well"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_options_that_mean_nothing_end_with_2(
    trained: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", str(trained / "run"), str(trained / "links.csv"), *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--incidents", "links.csv"], "--incidents links.csv: is one of the files to read"),
        (["--out", "links.csv"], "--out links.csv: is one of the files to read"),
        (["--incidents", "planned.csv", "--maintenance", "planned.csv"], "planned.csv: is one of the files to read"),
        (["--incidents", "x.csv", "--out", "x.csv"], "is the file of --out as well"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_no_file_that_is_read_is_replaced(
    trained: Path,
    tmp_path: Path,
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copy(trained / "links.csv", tmp_path / "links.csv")
    (tmp_path / "planned.csv").write_text("link,start,end\n")
    monkeypatch.chdir(tmp_path)
    before = (tmp_path / "links.csv").read_bytes()
    assert (
        main(["predict", str(trained / "run"), "*.csv" if "x.csv" not in arguments else "links.csv", *arguments]) == 2
    )
    assert message in capsys.readouterr().err
    assert (tmp_path / "links.csv").read_bytes() == before


def test_a_wish_that_cannot_be_changes_nothing_of_the_others(run: Path) -> None:
    before = (run / "bundle.json").read_bytes()
    assert main(["tune", str(run), "--best-f1", "--unknown-share", "0.3", "--threshold", "jam=0.5"]) == 2
    assert (run / "bundle.json").read_bytes() == before


def test_maintenance_of_series_that_are_not_there_is_told(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "planned.csv").write_text("link,start,end\nA,2026-03-01T00:00:00Z,2026-03-01T01:00:00Z\n")
    planned = ["--maintenance", str(tmp_path / "planned.csv")]
    _incidents(trained / "run", trained / "links.csv", tmp_path / "i.csv", *planned)
    assert "no series 'A' in the rows" in capsys.readouterr().err


def test_reasons_of_the_first_rows_of_a_file(trained: Path, tmp_path: Path) -> None:
    frame = link("f", 60)
    frame.loc[3:12, "rtt_ms"] *= 10  # an incident before there are as many rows as a window has
    frame.to_csv(tmp_path / "rows.csv", index=False)
    found = _incidents(trained / "run", tmp_path / "rows.csv", tmp_path / "i.csv", "--reasons", "--chunk-rows", "20")
    assert len(found) and found["reason"].notna().all()


def test_times_of_reasons_are_those_of_incidents(trained: Path, tmp_path: Path) -> None:
    frame = link("f")
    moments = pd.to_datetime(frame["timestamp"]).dt.tz_convert("Asia/Tokyo")
    frame["timestamp"] = [moment.isoformat() for moment in moments]
    frame.to_csv(tmp_path / "rows.csv", index=False)
    found = _incidents(trained / "run", tmp_path / "rows.csv", tmp_path / "i.csv", "--reasons")
    for one in found.itertuples():
        assert f" from {one.start[11:14]}" in one.reason  # the hour, in UTC


def test_a_validation_part_with_new_classes_alone_leaves_a_bundle(tmp_path: Path) -> None:
    frame = network()
    frame.loc[frame["link"] == "e", "label"] = "new"
    predictor = train(settings(tmp_path / "run"), frames=frame)
    known = predictor.decisions.known
    assert known is not None and 0 < known.limit < np.inf  # training links, seen from the others, have a say


def test_one_training_link_and_new_classes_alone_call_nothing_unknown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    frame = network("aef")
    frame.loc[frame["link"] == "e", "label"] = "new"
    predictor = train(settings(tmp_path / "run"), frames=frame)
    assert predictor.decisions.known is not None and predictor.decisions.known.limit == np.inf
    assert "no validation row is of a class of training" in caplog.text
