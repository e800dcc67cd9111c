"""The command line as people use it, and every bad input they bring."""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

import netanomaly
from netanomaly.cli import _parser, main
from networks import network, settings
from report_figures import figures

ROOT = Path(__file__).parents[1]


def write_run(directory: Path, frame: pd.DataFrame | None = None, **sections: dict[str, Any]) -> Path:
    """A CSV and its config in `directory`; the config's path."""
    (network() if frame is None else frame).to_csv(directory / "links.csv", index=False)
    tree = settings(directory / "run", **sections)
    tree["data"] = {"root": str(directory), "files": "links.csv", **tree["data"]}
    path = directory / "config.yaml"
    path.write_text(yaml.safe_dump(tree), encoding="utf-8")
    return path


def call(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "netanomaly", *map(str, arguments)], capture_output=True, text=True)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a config and the run that the command line made of it."""
    directory = tmp_path_factory.mktemp("trained")
    done = call("train", write_run(directory))
    assert done.returncode == 0, done.stderr
    assert "macro-F1" in done.stdout and "logistic_regression" in done.stdout
    return directory


def test_the_run_directory_explains_every_file_in_it(trained: Path) -> None:
    explained = (trained / "run" / "RUN.md").read_text(encoding="utf-8")
    for path in (trained / "run").iterdir():
        assert path.name in explained or path.name == "RUN.md"


def test_eval_scores_as_training_did(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (trained / "run" / "evaluation.json").read_text(encoding="utf-8")
    assert main(["eval", str(trained / "run")]) == 0
    assert (trained / "run" / "evaluation.json").read_text(encoding="utf-8") == before
    assert f"{json.loads(before)['macro_f1']:.3f}" in capsys.readouterr().out


def test_training_and_eval_leave_a_report_in_the_run(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, page = trained / "run", trained / "run" / "report.html"
    parts = {"timeline-0", "precision-recall", "reliability"}
    assert figures(page) == parts  # by training
    text = page.read_text(encoding="utf-8")
    assert "outside training" in text and "no drift is told" not in text
    page.unlink()
    assert main(["eval", str(run), "--no-report"]) == 0
    assert main(["eval", str(run), "--out", str(tmp_path / "e.json")]) == 0
    network("x", seed=5).to_csv(tmp_path / "x.csv", index=False)
    assert main(["eval", str(run), str(tmp_path / "x.csv"), "--quiet"]) == 0
    assert not page.exists() and "report:" not in capsys.readouterr().out
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "plotly", None)
        assert main(["eval", str(run)]) == 0
        assert not page.exists() and "report:" not in capsys.readouterr().out
    assert main(["eval", str(run)]) == 0
    assert page.read_text(encoding="utf-8") == text  # the same rows, the same page
    assert f"report: {page}" in capsys.readouterr().out


def test_eval_takes_the_yaml_for_its_run(trained: Path) -> None:
    assert main(["eval", str(trained / "config.yaml"), "--quiet"]) == 0


def test_eval_of_named_files_scores_all_their_labelled_rows(trained: Path, tmp_path: Path) -> None:
    network("xy", seed=5).to_csv(tmp_path / "other.csv", index=False)
    assert main(["eval", str(trained / "run"), str(tmp_path / "other.csv"), "--out", str(tmp_path / "e.json")]) == 0
    report = json.loads((tmp_path / "e.json").read_text(encoding="utf-8"))
    assert report["rows"] == 400 and set(report["per_series"]) == {"x", "y"}


@pytest.mark.parametrize(("links", "rows"), [("xy", 0), ("ax", 200)])
def test_eval_of_series_that_training_used_is_told(trained: Path, tmp_path: Path, links: str, rows: int) -> None:
    network(links).to_csv(tmp_path / "other.csv", index=False)
    done = call("eval", trained / "run", tmp_path / "other.csv", "--out", tmp_path / "e.json")
    assert ("are of series that training used (a)" in done.stderr) == (rows > 0), done.stderr
    assert json.loads((tmp_path / "e.json").read_text(encoding="utf-8"))["rows_of_training_series"] == rows


def test_predict_writes_a_line_per_row_in_order_as_python_does(trained: Path, tmp_path: Path) -> None:
    frame = network("gh", seed=2).sample(frac=1, random_state=0).drop(columns="label")
    frame.to_csv(tmp_path / "new.csv", index=False)
    assert main(["predict", str(trained / "run"), str(tmp_path / "new.csv"), "--out", str(tmp_path / "p.csv.gz")]) == 0
    written = pd.read_csv(tmp_path / "p.csv.gz")
    expected = netanomaly.load(trained / "run").predict(frame)
    assert list(written["timestamp"]) == list(frame["timestamp"]) and list(written["series"]) == list(frame["link"])
    assert list(written["label"]) == list(expected["label"])
    probabilities = [column for column in written if column.startswith("p_")]
    assert abs(written[probabilities].to_numpy() - expected[probabilities].to_numpy()).max() < 1e-5


def test_predict_without_out_prints_only_csv(trained: Path) -> None:
    done = call("predict", trained / "run", trained / "links.csv")
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) == 1201
    assert lines[0].startswith("series,timestamp,label,confidence,p_normal")


def test_a_reader_that_stops_early_is_no_error(trained: Path) -> None:
    command = [sys.executable, "-m", "netanomaly", "predict", str(trained / "run"), str(trained / "links.csv")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == "" and process.wait() == 0


SPLITS: dict[str, dict[str, Any]] = {
    "series": {"by": "series", "validation": 0.2, "test": 0.2},
    "time": {"by": "time", "validation": 0.2, "test": 0.3},
    "time by moments": {"by": "time", "validation": "2026-03-01T00:01:50Z", "test": "2026-03-01T00:02:20Z"},
    "table": {"by": "table", "path": "split.csv"},
    "file": {"by": "file", "train": "train-*.csv", "validation": "validation.csv", "test": ["test.csv"]},
}


@pytest.mark.parametrize("split", SPLITS.values(), ids=SPLITS.keys())
def test_every_kind_of_split_trains_without_shared_rows(split: dict[str, Any], tmp_path: Path) -> None:
    frame = network()
    config = write_run(tmp_path, frame, data={**settings(tmp_path)["data"], "split": split}, channels={"baselines": 9})
    (tmp_path / "split.csv").write_text(
        "series,t_start,t_end,split\na,,,train\nb,,2026-03-01T00:01:40Z,train\nb,2026-03-01T00:01:40Z,,val\nf,,,test\n",
        encoding="utf-8",
    )
    for name, links in (("train-1", "ab"), ("train-2", "cd"), ("validation", "e"), ("test", "f")):
        frame[frame["link"].isin(list(links))].to_csv(tmp_path / f"{name}.csv", index=False)
    files = ["--set", "data.files=[]"] if split["by"] == "file" else []
    assert main(["train", str(config), "--quiet", "--set", "training.epochs=1", *files]) == 0
    report = json.loads((tmp_path / "run" / "split.json").read_text(encoding="utf-8"))
    assert all(shared["rows"] == 0 for shared in report["shared"].values())
    assert all(report[part]["rows"] > 0 for part in ("train", "validation", "test"))


def test_a_list_of_incidents_stands_in_for_a_label_column(tmp_path: Path) -> None:
    frame = network()
    faulty = frame[frame["label"] != "normal"]
    run = ((faulty["label"] != faulty["label"].shift()) | (faulty.index.to_series().diff() > 1)).cumsum()
    incidents = faulty.groupby(run).agg(link=("link", "first"), start=("timestamp", "first"), end=("timestamp", "last"))
    incidents["end"] = (pd.to_datetime(incidents["end"]) + pd.Timedelta("1s")).dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    incidents["label"] = faulty.groupby(run)["label"].first()
    incidents.to_csv(tmp_path / "incidents.csv", index=False)
    config = write_run(tmp_path, frame.drop(columns="label"))
    arguments = ["--set", "data.label=null", "--set", "data.incidents=incidents.csv", "--set", "training.epochs=1"]
    assert main(["train", str(config), "--quiet", *arguments]) == 0
    report = json.loads((tmp_path / "run" / "split.json").read_text(encoding="utf-8"))
    expected = frame[frame["link"].isin(list("abcd"))]["label"].value_counts().to_dict()
    assert report["train"]["classes"] == expected


def test_predict_reads_parquet(trained: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    network("g").to_parquet(tmp_path / "new.parquet")
    network("g").to_csv(tmp_path / "new.csv", index=False)
    for kind in ("parquet", "csv"):
        out = str(tmp_path / f"from-{kind}.csv")
        assert main(["predict", str(trained / "run"), str(tmp_path / f"new.{kind}"), "--out", out]) == 0
    assert (tmp_path / "from-parquet.csv").read_bytes() == (tmp_path / "from-csv.csv").read_bytes()


ALWAYS = "--debug --help --quiet -h"
WORK = f"{ALWAYS} --device --set"
FLAGS = {
    "inspect": f"{ALWAYS} --convert --for --incidents --json --overwrite --raw-text --rows --write-config files",
    "train": f"{WORK} --data-root --no-report --overwrite --resume --run-dir config",
    "eval": f"{WORK} --data --data-root --no-report --out bundle files",
    "report": f"{WORK} --data --data-root --out bundle files",
    "predict": f"{WORK} --chunk-rows --data --end --from-prometheus --incidents --maintenance --out --query "
    "--raw-text --reasons --start bundle files",
    "explain": f"{WORK} --at --data --json --series bundle files",
    "tune": f"{WORK} --best-f1 --data-root --false-alarms-per-day --hysteresis --merge-rows --min-rows --threshold "
    "--unknown-share bundle",
    "watch": f"{WORK} --alert-label --data --follow --forget-after --from-prometheus --incidents --max-ahead "
    "--metrics-address --metrics-port --query --state --state-every --to-alertmanager bundle file",
    "export": f"{ALWAYS} --data --format --out bundle",
    "audit": f"{WORK} --data-root --folds --out --raw-text --rows --top config",
    "convert": f"{ALWAYS} --kv-heads --out bundle",
}
"""Every flag and argument of every command: what people type and scripts rely on does not change by accident."""


def test_the_flags_of_every_command_are_these() -> None:
    (commands,) = (action for action in _parser()._actions if isinstance(action, argparse._SubParsersAction))
    found = {
        name: {flag for action in parser._actions for flag in action.option_strings or [action.dest]}
        for name, parser in commands.choices.items()
    }
    assert found == {name: set(flags.split()) for name, flags in FLAGS.items()}


@pytest.mark.parametrize("script", ["train", "eval", "predict"])
def test_the_scripts_are_doors_to_the_commands(script: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / f"{script}.py"), "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0 and f"netanomaly {script}" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_ctrl_c_keeps_the_best_epoch_and_exits_130(tmp_path: Path) -> None:
    config = write_run(tmp_path, training={"epochs": 100000, "patience": 100000, "batch_size": 4, "stretch": 32})
    command = [sys.executable, "-m", "netanomaly", "train", str(config)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        log = tmp_path / "run" / "log.jsonl"
        while process.poll() is None and not (log.exists() and log.read_text(encoding="utf-8").count("\n") > 2):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        said = process.stderr.read()
    assert process.returncode == 130
    assert "interrupted" in said and "Traceback" not in said
    assert len(netanomaly.load(tmp_path / "run").predict(network("g"))) == 200


def test_a_run_is_not_overwritten_unasked(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", str(trained / "config.yaml")]) == 2
    assert "--overwrite" in capsys.readouterr().err


def test_the_input_is_never_overwritten(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network("g").to_csv(tmp_path / "g.csv", index=False)
    before = (tmp_path / "g.csv").read_bytes()
    assert main(["predict", str(trained / "run"), str(tmp_path / "g.csv"), "--out", str(tmp_path / "g.csv")]) == 2
    check_line(capsys, ["g.csv", "one of the files to read"])
    assert (tmp_path / "g.csv").read_bytes() == before


def test_an_earlier_bundle_outlives_a_training_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = write_run(tmp_path)
    assert main(["train", str(config), "--quiet", "--set", "training.epochs=1"]) == 0
    before = (tmp_path / "run" / "manifest.json").read_bytes()
    capsys.readouterr()
    arguments = ["--overwrite", "--set", "training.learning_rate=1e30", "--set", "training.warmup=0"]
    assert main(["train", str(config), "--quiet", *arguments]) == 5
    check_line(capsys, ["loss", "training.learning_rate"])
    assert (tmp_path / "run" / "manifest.json").read_bytes() == before
    netanomaly.load(tmp_path / "run")


@pytest.mark.parametrize("out", ["a directory", "no/place/to/write"])
def test_a_place_that_cannot_be_written_is_told_before_the_work(
    out: str, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "no").write_text("a file")
    (tmp_path / "a directory").mkdir()
    name = str(tmp_path / out) + ("" if out == "a directory" else ".csv")
    arguments = ["eval", str(trained / "run")] if out == "a directory" else ["predict", str(trained / "run"), "x.csv"]
    assert main([*arguments, "--out", name]) == 2
    check_line(capsys, ["--out"])


def test_classes_that_training_cannot_learn_are_told(tmp_path: Path) -> None:
    frame = network()
    frame.loc[(frame["link"] == "f") & (frame["label"] == "congestion"), "label"] = "flood"
    config = write_run(tmp_path, frame)
    done = call("train", config, "--set", "training.epochs=1")
    assert done.returncode == 0
    assert "test has classes that no training row has: flood" in done.stderr
    assert "never seen in training, counted as wrong: flood" in done.stdout


def test_a_wrong_interval_is_told(tmp_path: Path) -> None:
    done = call("train", write_run(tmp_path), "--set", "data.interval=500ms", "--set", "training.epochs=1")
    assert "data.interval is 500ms, but the usual step in these data is 1s" in done.stderr


def test_a_message_is_one_printable_line_whatever_the_file_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_run(tmp_path)
    text = (tmp_path / "links.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "links.csv").write_text("".join([*text[:3], "\x00" * 5000 + "\n", *text[3:]]), encoding="utf-8")
    assert main(["train", str(config), "--quiet"]) == 3
    error = capsys.readouterr().err.removesuffix("\n")
    assert error.isprintable() and len(error) < 2100 and "line 4" in error


# ---- bad input: what was done to the data or the config, the exit code, and what the one line has to say


def cell(row: int, column: str, value: Any) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """A frame with one cell changed; row 0 stands on line 2 of the file."""

    def change(frame: pd.DataFrame) -> pd.DataFrame:
        frame = frame.astype({column: object})
        frame.loc[row, column] = value
        return frame

    return change


def times(change: Callable[[pd.Series], Any]) -> Callable[[pd.DataFrame], pd.DataFrame]:
    return lambda frame: frame.assign(timestamp=change(frame["timestamp"]))


BAD_DATA: dict[str, tuple[Callable[[pd.DataFrame], pd.DataFrame], list[str]]] = {
    "missing column": (lambda f: f.rename(columns={"rtt_ms": "rtt"}), ["line 1", "'rtt_ms'", "did you mean 'rtt'"]),
    "text in a metric": (cell(7, "rtt_ms", "slow"), ["line 9", "'rtt_ms'", "'slow'", "data.missing"]),
    "a unit in a cell": (cell(7, "rtt_ms", "12.3 ms"), ["line 9", "'rtt_ms'", "'12.3 ms'", "unit"]),
    "a decimal comma": (cell(7, "rtt_ms", "12,3"), ["line 9", "'rtt_ms'", "'12,3'", "data.decimal"]),
    "infinity": (cell(7, "rtt_ms", "inf"), ["line 9", "'rtt_ms'", "'inf'", "not a finite number"]),
    "a boolean metric": (lambda f: f.assign(rtt_ms="True"), ["line 2", "'rtt_ms'", "'True'"]),
    "a duplicate time": (lambda f: pd.concat([f.iloc[:3], f.iloc[2:]]), ["line 5", "line 4", "data.duplicates"]),
    "mixed offsets": (
        cell(5, "timestamp", "2026-03-01T01:00:05+01:00"),
        ["line 7", "'timestamp'", "+01:00", "mixed_offsets"],
    ),
    "some times without an offset": (cell(5, "timestamp", "2026-03-01T00:00:05"), ["line 7", "some have none"]),
    "no offset at all": (times(lambda t: t.str.rstrip("Z")), ["line 2", "timezone"]),
    "an epoch undeclared": (times(lambda t: range(1772323200, 1772323200 + len(t))), ["line 2", "epoch"]),
    "no time in a row": (cell(5, "timestamp", ""), ["line 7", "'timestamp'", "''"]),
    "no series in a row": (cell(5, "link", ""), ["line 7", "'link'", "empty"]),
    "a header only": (lambda f: f.iloc[:0], ["only a header"]),
    "fewer rows than a window": (lambda f: f.groupby("link").head(5), ["5 rows", "needs 8"]),
    "one class only": (lambda f: f.assign(label="normal"), ["one class only", "'normal'"]),
    "no labels": (lambda f: f.assign(label=""), ["no labelled rows for train"]),
    "a stray quote in a label": (cell(7, "label", "nor\nmal"), ["line 9", "'label'", "quote without its partner"]),
    "a control character in a series": (cell(7, "link", "a\x07"), ["line 9", "'link'", "control character"]),
    "the reserved label": (lambda f: f.replace({"label": {"congestion": "no_data"}}), ["'no_data'", "reserved"]),
}


@pytest.mark.parametrize(("change", "said"), BAD_DATA.values(), ids=BAD_DATA.keys())
def test_bad_data_end_with_3_and_one_helpful_line(
    change: Callable[[pd.DataFrame], pd.DataFrame], said: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_run(tmp_path, change(network()))
    assert main(["train", str(config), "--quiet"]) == 3
    check_line(capsys, said)


BAD_FILES: dict[str, tuple[bytes | None, list[str]]] = {
    "an empty file": (b"", ["links.csv", "empty"]),
    "no file": (None, ["links.csv", "no such file", "--data-root"]),
    "semicolons undeclared": (b"timestamp;link;rtt_ms\n1;a;2\n", ["line 1", "';'", "data.separator"]),
    "bytes that are no text": (b"timestamp,link\xff\xfe\n", ["links.csv", "not utf-8", "data.encoding"]),
    "a short line": (
        b"timestamp,link,rtt_ms,throughput_bps,loss_ratio,label\n2026-03-01T00:00:00Z,a,1,2\n",
        ["line 2", "found 4 fields", "has 6", "bad_lines"],
    ),
    "a column twice": (b"timestamp,link,rtt_ms,rtt_ms\n", ["line 1", "'rtt_ms'", "twice"]),
}


@pytest.mark.parametrize(("content", "said"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_bad_files_end_with_3_and_one_helpful_line(
    content: bytes | None, said: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_run(tmp_path)
    (tmp_path / "links.csv").unlink()
    if content is not None:
        (tmp_path / "links.csv").write_bytes(content)
    assert main(["train", str(config), "--quiet"]) == 3
    check_line(capsys, said)


def test_an_epoch_in_the_wrong_unit_is_named_with_the_right_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = network()
    frame["timestamp"] = pd.to_datetime(frame["timestamp"]).dt.as_unit("ms").astype("int64")
    config = write_run(tmp_path, frame)
    timestamp = "data.timestamp={format: epoch, unit: s}"
    assert main(["train", str(config), "--quiet", "--set", timestamp]) == 3
    check_line(capsys, ["line 2", "'timestamp'", "unit: ms", "2026-03-01"])


BAD_CONFIG: dict[str, tuple[str, list[str]]] = {
    "an unknown key": ("training.lerning_rate=0.1", ["training.lerning_rate", "unknown key", "'learning_rate'"]),
    "a number as text": ('training.learning_rate="1e-3"', ["training.learning_rate", "'1e-3'"]),
    "a wrong choice": ("model.read_out=first", ["model.read_out", "'first'", "'last'"]),
    "an unknown unit": ("data.metrics=[{name: rtt_ms, unit: miles}]", ["data.metrics.0.unit", "'miles'", "bit/s"]),
    "no interval": ("data.interval=null", ["data.interval", "required", "1s"]),
    "no labels": ("data.label=null", ["data.label", "data.incidents"]),
    "a list that is none": ("data.metrics=rtt_ms", ["data.metrics", "expected a list"]),
    "an empty run_dir": ("run_dir=''", ["run_dir"]),
    "an unknown series": ("data.split.test=[z]", ["data.split.test", "'z'", "a, b, c, d, e, f"]),
    "nothing left to train on": ("data.split.validation=[a, b, c, d, e]", ["no series is left"]),
    "a pattern without a match": ("data.metrics=[tx_*]", ["'tx_*'", "matches no column"]),
    "not an override": ("training", ["--set training", "section.key=value"]),
    "cuda where there is none": ("device=cuda", ["device", "cuda"]),
}


@pytest.mark.parametrize(("override", "said"), BAD_CONFIG.values(), ids=BAD_CONFIG.keys())
def test_bad_configs_end_with_2_and_one_helpful_line(
    override: str, said: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import torch

    if override == "device=cuda" and torch.cuda.is_available():
        pytest.skip("there is one here")
    assert main(["train", str(write_run(tmp_path)), "--quiet", "--set", override]) == 2
    check_line(capsys, said)


def test_a_missing_config_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", str(tmp_path / "none.yaml")]) == 2
    check_line(capsys, ["none.yaml", "cannot read"])


def test_a_missing_bundle_ends_with_4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(tmp_path), "links.csv"]) == 4
    check_line(capsys, [str(tmp_path), "no bundle"])


def test_predicting_fewer_rows_than_a_window_ends_with_3(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network("g").head(5).to_csv(tmp_path / "few.csv", index=False)
    assert main(["predict", str(trained / "run"), str(tmp_path / "few.csv")]) == 3
    check_line(capsys, ["few.csv", "5 rows", "needs 8"])


@pytest.mark.parametrize("label", ["None", "no", "NA", "null", "nan", "true"])
def test_labels_that_look_like_nothing_are_names(label: str, tmp_path: Path) -> None:
    config = write_run(tmp_path, network().replace({"label": {"congestion": label}}))
    assert main(["train", str(config), "--quiet", "--set", "training.epochs=1"]) == 0
    assert label in netanomaly.load(tmp_path / "run").classes


def test_debug_shows_where_an_error_comes_from(tmp_path: Path) -> None:
    with pytest.raises(netanomaly.BundleError):
        main(["predict", str(tmp_path), "links.csv", "--debug"])


def test_one_error_is_one_line_in_a_real_process(tmp_path: Path) -> None:
    done = call("eval", tmp_path)
    assert done.returncode == 4 and done.stdout == ""
    assert done.stderr.startswith("netanomaly: ") and done.stderr.count("\n") == 1


def check_line(capsys: pytest.CaptureFixture[str], said: list[str]) -> None:
    error = capsys.readouterr().err
    assert error.startswith("netanomaly: ") and error.count("\n") == 1, error
    for words in said:
        assert words in error, error


# A chunk at a time, and as rows come


@pytest.mark.parametrize("rows", ["0", "50", "100000"])
def test_predict_in_chunks_of_any_size_writes_what_python_does(trained: Path, tmp_path: Path, rows: str) -> None:
    frame = network("gh", 120, seed=2).sort_values("timestamp", kind="stable").drop(columns="label")
    frame.to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "p.parquet"
    assert (
        main(["predict", str(trained / "run"), str(tmp_path / "new.csv"), "--out", str(out), "--chunk-rows", rows]) == 0
    )
    written, expected = pd.read_parquet(out), netanomaly.load(trained / "run").predict(frame)
    assert list(written) == list(expected)
    for column in ("series", "timestamp", "label"):
        assert list(written[column]) == list(expected[column])
    probabilities = [column for column in written if column.startswith("p_")]
    assert abs(written[probabilities].to_numpy() - expected[probabilities].to_numpy()).max() < 1e-5


def test_predict_says_how_many_rows_it_has_labelled(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["predict", str(trained / "run"), str(trained / "links.csv"), "--out", str(tmp_path / "p.csv")]
    assert main([*command, "--chunk-rows", "0"]) == 0
    assert f"1200 rows labelled: {tmp_path / 'p.csv'}" in capsys.readouterr().err
    assert main([*command, "--chunk-rows", "0", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_rows_that_go_back_in_time_need_to_be_read_whole(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network("g", seed=2).iloc[::-1].to_csv(tmp_path / "new.csv", index=False)
    command = ["predict", str(trained / "run"), str(tmp_path / "new.csv"), "--out", str(tmp_path / "p.csv"), "--quiet"]
    assert main([*command, "--chunk-rows", "50"]) == 3
    check_line(capsys, ["new.csv: line 101", "goes back in time", "--chunk-rows 0"])
    assert not (tmp_path / "p.csv").exists()
    assert main([*command, "--chunk-rows", "0"]) == 0
    assert main(command) == 0  # one chunk holds them


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--chunk-rows", "-1"], ["--chunk-rows -1"]),
        (["--out", "p.txt"], ["--out p.txt", ".csv", ".parquet"]),
        (["--out", "p.parquet.gz"], ["--out p.parquet.gz"]),
    ],
)
def test_options_of_predict_that_mean_nothing_end_with_2(
    trained: Path, options: list[str], said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", str(trained / "run"), str(trained / "links.csv"), *options]) == 2
    check_line(capsys, said)


def test_watch_answers_a_file_line_by_line(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = network("gh", 60, seed=2).drop(columns="label")
    frame.to_csv(tmp_path / "new.csv", index=False)
    assert main(["watch", str(trained / "config.yaml"), str(tmp_path / "new.csv"), "--quiet"]) == 0
    found = pd.DataFrame([json.loads(line) for line in capsys.readouterr().out.splitlines()])
    expected = netanomaly.load(trained / "run").predict(frame)
    for column in ("series", "timestamp", "label"):
        assert list(found[column]) == list(expected[column])
    assert abs(found["confidence"] - expected["confidence"]).max() < 1e-5


def test_watch_takes_the_columns_that_are_set(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network("g", 20).rename(columns={"link": "port"}).to_csv(tmp_path / "new.csv", sep=";", index=False)
    options = ["--set", "data.separator=;", "--set", "data.series=[port]"]
    assert main(["watch", str(trained / "run"), str(tmp_path / "new.csv"), "--quiet", *options]) == 0
    assert capsys.readouterr().out.count("\n") == 20


def test_watch_without_a_column_ends_with_3(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network("g", 20).drop(columns="rtt_ms").to_csv(tmp_path / "new.csv", index=False)
    assert main(["watch", str(trained / "run"), str(tmp_path / "new.csv")]) == 3
    check_line(capsys, ["new.csv: line 1", "no column 'rtt_ms'"])


def test_watch_with_the_state_of_something_else_ends_with_3(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "state").write_text("notes", encoding="utf-8")
    command = ["watch", str(trained / "run"), str(trained / "links.csv"), "--state", str(tmp_path / "state")]
    assert main(command) == 3
    check_line(capsys, [str(tmp_path / "state"), "not a saved state"])


def test_following_standard_input_ends_with_2(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", str(trained / "run"), "--follow"]) == 2
    check_line(capsys, ["--follow", "name the file"])


def test_a_watch_whose_reader_stops_is_no_error(trained: Path) -> None:
    command = [sys.executable, "-m", "netanomaly", "watch", str(trained / "run"), str(trained / "links.csv")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == "" and process.wait() == 0
