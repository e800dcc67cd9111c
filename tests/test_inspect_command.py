"""`netanomaly inspect` as people use it: files, exports, bundles, configurations to start from."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exports
from exports import written
from netanomaly.cli import main
from netanomaly.config import SplitBySeries, SplitByTime, load_config
from netanomaly.errors import NetanomalyError
from netanomaly.inspect.survey import survey
from netanomaly.inspect.text import survey_text
from netanomaly.prepare import prepare
from networks import network
from reading import config_for, read_with

FIXTURES = Path(__file__).parent / "fixtures"


def links(directory: Path, names: str = "abcd", rows: int = 200) -> Path:
    path = directory / "links.csv"
    network(names, rows).to_csv(path, index=False)
    return path


def inspect(*arguments: object) -> int:
    return main(["inspect", *map(str, arguments)])


def test_the_program_says_what_a_file_holds(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "netanomaly", "inspect", str(links(tmp_path))]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "rows      800" in lines or "rows        800" in lines
    assert any(line.startswith("series") and "link: 4 in all" in line for line in lines)
    assert any(line.startswith("label") and "the header says so" in line for line in lines)
    assert any(line.split()[:3] == ["throughput_bps", "bit/s", "gauge"] for line in lines)
    assert max(map(len, lines)) < 220


def test_json_holds_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert inspect(links(tmp_path), "--json", "--write-config", tmp_path / "my.yaml") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] == 800 and found["is_whole"] and found["rhythm"]["interval"] == "1s"
    assert [metric["unit"] for metric in found["metrics"]] == ["ms", "bit/s", "ratio"]
    assert found["label"]["normal"] == "normal" and sum(found["label"]["rows"].values()) == 800
    assert found["config"] == {"path": str(tmp_path / "my.yaml"), "rows": 800, "problem": None}


def test_with_labels_the_configuration_is_ready(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert inspect(links(tmp_path), "--write-config", tmp_path / "my.yaml") == 0
    assert f"ready: netanomaly train {tmp_path / 'my.yaml'}" in capsys.readouterr().out
    config = load_config(tmp_path / "my.yaml")
    assert isinstance(config.data.split, SplitBySeries) and config.run_dir == "runs/my"
    assert (config.data.series, config.data.label, config.data.interval) == (("link",), "label", "1s")
    report = prepare(config).report
    assert all(len(report[part]["classes"]) >= 2 for part in ("train", "validation", "test"))


@pytest.mark.parametrize(("rows", "purge"), [(2000, None), (200, 0)])
def test_few_series_are_split_by_time(tmp_path: Path, rows: int, purge: int | None) -> None:
    config = config_for(tmp_path, links(tmp_path, "ab", rows))
    assert isinstance(config.data.split, SplitByTime) and config.data.split.purge == purge
    prepare(config)


@pytest.mark.parametrize("faulty", "abcd")
def test_a_split_by_series_that_leaves_classes_out_is_none(tmp_path: Path, faulty: str) -> None:
    """One of four links has faults: wherever it is drawn to, two parts have none."""
    frame = network("abcd", 600)
    frame.loc[frame["link"] != faulty, "label"] = "normal"
    frame.to_csv(tmp_path / "links.csv", index=False)
    config = config_for(tmp_path, tmp_path / "links.csv")
    assert isinstance(config.data.split, SplitByTime)
    assert all(len(prepare(config).report[part]["classes"]) > 1 for part in ("train", "validation", "test"))


def test_labels_may_come_from_incidents(tmp_path: Path) -> None:
    frame = network("abcd").drop(columns="label")
    frame.to_csv(tmp_path / "links.csv", index=False)
    lines = ["link,start,end,label"]
    for name in "abcd":
        for number, minute in enumerate((0, 1, 2)):
            label = ("congestion", "packet_loss")[number % 2]
            lines.append(f"{name},2026-03-01T00:0{minute}:20Z,2026-03-01T00:0{minute}:40Z,{label}")
    incidents = written(tmp_path, "\n".join(lines), "incidents.csv")
    config = config_for(tmp_path, tmp_path / "links.csv", incidents=incidents)
    assert config.data.incidents == str(incidents) and config.data.label is None
    assert set(prepare(config).report["train"]["classes"]) == {"normal", "congestion", "packet_loss"}


@pytest.mark.parametrize(
    ("incidents", "problem"),
    [
        ("series,start,end,label\na,2026-03-01T00:00:20Z,2026-03-01T00:00:40Z,x\n", "no column 'link'"),
        ("link,start,end,label\nz,2026-03-01T00:00:20Z,2026-03-01T00:00:40Z,x\n", "no series 'z' in the data"),
        ("link,start,end,label\na,yesterday,2026-03-01T00:00:40Z,x\n", "'yesterday', not a time like"),
    ],
)
def test_incidents_that_do_not_fit_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], incidents: str, problem: str
) -> None:
    network("abcd").drop(columns="label").to_csv(tmp_path / "links.csv", index=False)
    path = written(tmp_path, incidents, "incidents.csv")
    assert inspect(tmp_path / "links.csv", "--incidents", path, "--write-config", tmp_path / "my.yaml") == 0
    assert f"not ready to train: {path}" in (told := capsys.readouterr().out) and problem in told
    text = (tmp_path / "my.yaml").read_text(encoding="utf-8")
    assert "# NOT READY TO TRAIN" in text and load_config(tmp_path / "my.yaml").data.incidents == str(path)


def test_without_labels_it_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network("ab").drop(columns="label").to_csv(tmp_path / "links.csv", index=False)
    config = config_for(tmp_path, tmp_path / "links.csv")
    assert config.data.label is None and len(read_with(config)) == 400
    text = (tmp_path / "start.yaml").read_text(encoding="utf-8")
    assert "# NOT READY TO TRAIN: no labels" in text and "a CSV with link,start,end,label" in text
    assert inspect(tmp_path / "links.csv") == 0
    assert "training needs a column of labels, or --incidents FILE" in capsys.readouterr().out


def test_one_class_is_not_enough(tmp_path: Path) -> None:
    network("abcd").assign(label="normal").to_csv(tmp_path / "links.csv", index=False)
    config_for(tmp_path, tmp_path / "links.csv")
    assert "one class only ('normal')" in (tmp_path / "start.yaml").read_text(encoding="utf-8")


def test_every_guess_stands_with_its_reason(tmp_path: Path) -> None:
    config_for(tmp_path, links(tmp_path))
    lines = (tmp_path / "start.yaml").read_text(encoding="utf-8").splitlines()
    plain = (
        "run_dir",
        "column",
        "format",
        "timezone",
        "unit",
        "by",
        "purge",
        "validation",
        "test",
        "metrics",
        "data",
        "-",
    )
    for line in filter(None, lines):
        assert "#" in line or line.split(":")[0].split()[0] in plain, line


def test_nothing_is_replaced_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, place = links(tmp_path), tmp_path / "my.yaml"
    place.write_text("mine", encoding="utf-8")
    assert inspect(path, "--write-config", place) == 2 and place.read_text(encoding="utf-8") == "mine"
    assert "exists already; name another file, or use --overwrite" in capsys.readouterr().err
    assert inspect(path, "--write-config", place, "--overwrite") == 0
    assert load_config(place).data.files == (str(path),)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["links.csv", "--write-config", "my.txt"], 2, "write a .yaml"),
        (["links.csv", "--write-config", "."], 2, "is a directory"),
        (["links.csv", "--incidents", "none.csv"], 2, "no such file"),
        (["links.csv", "--convert", "wide.txt"], 2, "write a .csv or a .csv.gz"),
        (["links.csv", "--convert", "links.csv", "--overwrite"], 2, "one of the files to read"),
        (["links.csv", "--convert", "wide.csv"], 3, "none of the exports that can be converted"),
        (["links.csv", "--rows", "-1"], 2, "give a number of rows"),
        (["none.csv"], 3, "no such file"),
        (["*.xyz"], 3, "no file matches this pattern"),
        (["mtr.csv", "--write-config", "my.yaml"], 3, "mtr CSV: no wide table"),
        (["plain.csv", "--write-config", "my.yaml"], 3, "no column holds times"),
    ],
)
def test_what_goes_wrong_ends_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    links(tmp_path, "a", 50)
    written(tmp_path, exports.MTR, "mtr.csv")
    written(tmp_path, "a,b\n1,2\n3,4\n", "plain.csv")
    assert inspect(*arguments) == code
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not (tmp_path / "my.yaml").exists()


def test_an_export_is_named_with_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, wide = written(tmp_path, exports.INFLUX), tmp_path / "wide.csv.gz"
    assert inspect(path) == 0
    told = capsys.readouterr().out
    assert "InfluxDB annotated CSV" in told and f"netanomaly inspect {path} --convert export_wide.csv" in told
    assert inspect(path, "--json") == 0 and json.loads(capsys.readouterr().out)["export"] == "InfluxDB annotated CSV"
    assert inspect(path, "--convert", wide, "--write-config", tmp_path / "my.yaml") == 0
    assert len(read_with(load_config(tmp_path / "my.yaml"))) == 4 == len(pd.read_csv(wide))


def test_columns_that_may_be_links_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert inspect(written(tmp_path, exports.GRAFANA_PLAIN)) == 0
    told = capsys.readouterr().out
    assert "fra-ams" in told and "if columns are links" in told and "--convert" in told


def test_patterns_stay_in_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in "ab":
        network(name, 50).drop(columns="link").to_csv(tmp_path / f"{name}.csv", index=False)
    assert inspect("*.csv", "--write-config", "my.yaml", "--quiet") == 0
    config = load_config("my.yaml")
    assert config.data.files == ("*.csv",) and len(read_with(config)) == 100


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_bundle_says_what_it_expects(version: int, capsys: pytest.CaptureFixture[str]) -> None:
    directory = FIXTURES / f"bundle_v{version}"
    assert inspect(directory) == 0
    told = capsys.readouterr().out
    assert "sizes and SHA-256 as saved" in told and "normal, congestion, packet_loss" in told
    assert "throughput_bps  throughput_bps  bit/s  gauge" in told and "56 rows" in told
    assert "train       800 labelled rows of 4 series  a, b, c, d" in told
    assert "no evaluation.json beside it: netanomaly eval" in told
    assert inspect(directory, "--json") == 0
    card = json.loads(capsys.readouterr().out)
    content = json.loads((directory / "bundle.json").read_text(encoding="utf-8"))
    assert card["classes"] == content["classes"] and card["versions"] == content["facts"]["versions"]
    assert card["expects"]["interval"] == "1s" and card["looks_back"]["window_rows"] == 6 + 2


def test_a_bundle_says_how_it_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "run"
    shutil.copytree(FIXTURES / "bundle_v3", directory)
    report = {
        "macro_f1": 0.75,
        "accuracy": 0.9,
        "incident_recall": None,
        "rows": 200,
        "per_series": {"f": {}},
        "per_class": {"normal": {"f1": 0.91}, "ddos": {"f1": 0.0}},
        "baselines": {"majority": {"macro_f1": 0.2}},
    }
    (directory / "evaluation.json").write_text(json.dumps(report), encoding="utf-8")
    assert inspect(directory) == 0
    told = capsys.readouterr().out
    assert "evaluated on 200 rows of f: macro-F1 0.750, accuracy 0.900, incidents found -" in told
    assert "macro-F1 of others: majority 0.200" in told and "0.910" in told and "ddos" in told
    (directory / "evaluation.json").write_text("[]", encoding="utf-8")
    assert inspect(directory) == 4 and "evaluation.json: not an evaluation" in capsys.readouterr().err


def test_a_damaged_bundle_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "run"
    shutil.copytree(FIXTURES / "bundle_v3", directory)
    content = (directory / "bundle.json").read_text(encoding="utf-8")
    (directory / "bundle.json").write_text(content + " ", encoding="utf-8")
    assert inspect(directory) == 4 and "SHA-256 differ" in capsys.readouterr().err
    assert inspect(FIXTURES / "bundle_v3", "--write-config", tmp_path / "my.yaml") == 2
    assert inspect(tmp_path) == 4


@given(st.text(st.sampled_from('ab1239.,;\t\n"-:T%/ é_#{}[]=')), st.sampled_from([".csv", ".txt"]))
@settings(max_examples=60, deadline=None)
def test_any_text_is_looked_through_or_refused(
    tmp_path_factory: pytest.TempPathFactory, text: str, suffix: str
) -> None:
    path = written(tmp_path_factory.mktemp("any"), text, f"any{suffix}")
    try:
        assert survey_text(survey([path]))
    except NetanomalyError as error:
        assert str(path) in str(error)
