"""`netanomaly export`: files that answer as the bundle does when they are opened by others, or no files at all."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import streams
from exportable import ROOT, of_config, tiny
from netanomaly.cli import main
from netanomaly.commands.export import SUFFIXES
from netanomaly.data.ingest import NO_DATA, UNKNOWN
from netanomaly.deploying import formats
from netanomaly.deploying.export import description_of, export, window_model
from netanomaly.deploying.formats import FORMATS, Answers, Format, Rows, Run
from netanomaly.deploying.parity import BATCHES, TOLERANCE, hard_windows, measured
from netanomaly.deploying.window_model import OUTPUTS, WindowModel
from netanomaly.files import sha256
from netanomaly.packing import load_packed
from netanomaly.predictor import Predictor, load
from networks import CLASSES, METRICS, network

CONFIGS = sorted(path.relative_to(ROOT / "configs") for path in (ROOT / "configs").rglob("*.yaml"))


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a bundle with few channels, so that there is little to write."""
    return tiny(tmp_path_factory.mktemp("bundle"), kinds=["change", "missing"])


def test_a_file_of_torch_answers_as_the_bundle_after_reload(directory: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.pt2"
    assert main(["export", str(directory), "--format", "torch-export", "--out", str(out), "--quiet"]) == 0
    told = check(out, "torch-export", directory)
    assert told["classes"] == list(CLASSES) and told["labels"] == [*CLASSES, UNKNOWN, NO_DATA]
    assert [one["name"] for one in told["metrics"]] == list(METRICS)
    assert [(one["unit"], one["kind"]) for one in told["metrics"]] == [
        ("s", "gauge"),
        ("bit/s/s", "counter"),
        ("ratio", "gauge"),
    ]
    assert told["rows"] == 4 + 1 + 1 and told["interval_seconds"] == 1 and told["max_gap_rows"] == 5
    assert told["calibration"] == {"temperature": 0.8, "weights": [0.5, 1.0, 2.0]}
    assert told["parity"]["windows"] == sum(BATCHES) and told["parity"]["batches"] == [1, 8, 33]
    extra = {formats.DESCRIPTION: ""}
    torch.export.load(str(out), extra_files=extra)
    assert {**told, **json.loads(extra[formats.DESCRIPTION])} == told


def check(out: Path, form: str, directory: Path) -> dict[str, Any]:
    """That a file is what its description says and answers as the bundle does on other windows; the description."""
    told: dict[str, Any] = json.loads(description_of(out).read_text(encoding="utf-8"))
    assert told["file"] == {"bytes": out.stat().st_size, "sha256": sha256(out)}
    assert told["weights_sha256"] == sha256(directory / "model.safetensors")
    assert 0 < told["parity"]["largest_difference"] <= TOLERANCE == told["parity"]["tolerance"]
    predictor = load(directory, "cpu")
    windows = hard_windows(predictor.channels, told["rows"], sum(BATCHES), seed=7)
    run = FORMATS[form].opened(out)
    assert {len(told["classes"]), len(told["classes"]) + 1} < set(run(windows)[0])  # unknown, no_data, classes
    assert measured(run, predictor, windows).holds
    return told


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_every_shipped_config_can_be_exported(config: Path, form: str, tmp_path: Path) -> None:
    directory = of_config(tmp_path / "bundle", ROOT / "configs" / config)
    out = tmp_path / f"model{SUFFIXES[form]}"
    command = [sys.executable, "-W", "error", "-m", "netanomaly", "export", str(directory), "--format", form]
    done = subprocess.run([*command, "--out", str(out)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "answers as the bundle does: 42 windows" in done.stdout and done.stderr == ""
    check(out, form, directory)


OTHERS: dict[str, dict[str, Any]] = {
    "a token among blocks": {"read_out": "cls", "sequence_model": {"n_heads": 2, "memory": "blocks"}},
    "distances without softmax": {"sequence_model": {"n_heads": 2, "score": "distance", "normalise": "none"}},
    "prefix": {"read_out": "mean", "sequence_model": {"n_heads": 2, "mask": "prefix", "prefix": 2}},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", {**streams.MODELS, **OTHERS})
def test_every_choice_of_the_look_up_can_be_exported(name: str, tmp_path: Path) -> None:
    shape = {"stem": 3, "window": 8, "width": 16, **{**streams.MODELS, **OTHERS}[name]}
    directory = tiny(tmp_path / "bundle", **shape)
    assert export(directory, "onnx", tmp_path / "model.onnx").holds
    check(tmp_path / "model.onnx", "onnx", directory)


@pytest.mark.slow
def test_onnx_describes_itself(directory: Path, tmp_path: Path) -> None:
    import onnx

    out = tmp_path / "model.onnx"
    export(directory, "onnx", out)
    told = check(out, "onnx", directory)
    model = onnx.load(out)
    onnx.checker.check_model(model, full_check=True)
    inside = {one.key.removeprefix("netanomaly."): json.loads(one.value) for one in model.metadata_props}
    assert {**told, **{key: inside[key] for key in told if key in inside}} == told
    assert set(told) - set(inside) == {"file", "parity"}
    (given,) = model.graph.input
    assert given.name == "rows" and [one.dim_value for one in given.type.tensor_type.shape.dim[1:]] == [6, 3]
    assert tuple(one.name for one in model.graph.output) == OUTPUTS


def _wrong(change: Any) -> Format:
    """A format whose file is empty and whose answers are the model's, changed."""
    held: list[WindowModel] = []

    def packed(model: WindowModel, example: Rows, description: Mapping[str, Any]) -> bytes:
        held.append(model)
        return b"model"

    def opened(path: Path) -> Run:
        def run(rows: Rows) -> Answers:
            label, probabilities, novelty = (part.numpy() for part in held[-1](torch.from_numpy(rows)))
            return change(label, probabilities, novelty)

        return run

    return Format((), packed, opened)


@pytest.mark.parametrize(
    "change",
    [
        lambda label, p, novelty: (label, p + np.float32(2e-5), novelty),
        lambda label, p, novelty: (label, p, novelty + np.float32(2e-5)),
        lambda label, p, novelty: ((label + 1) % 5, p, novelty),
        lambda label, p, novelty: (label, p[:, ::-1], novelty),
        lambda label, p, novelty: (label, p * np.float32(np.nan), novelty),
    ],
    ids=["probabilities", "novelty", "labels", "order", "nan"],
)
def test_a_file_that_answers_otherwise_is_not_written(
    change: Any, directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(FORMATS, "onnx", _wrong(change))
    assert main(["export", str(directory), "--out", str(tmp_path / "m.onnx")]) == 4
    assert "not written: the file does not answer as the bundle does" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    monkeypatch.setitem(FORMATS, "onnx", _wrong(lambda *answers: answers))
    assert main(["export", str(directory), "--out", str(tmp_path / "m.onnx")]) == 0


def test_what_is_missing_or_impossible_is_one_line(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*arguments: str) -> str:
        assert main(["export", str(directory), *arguments]) == 2
        assert not list(tmp_path.iterdir())
        printed: str = capsys.readouterr().err
        assert printed.count("\n") == 1
        return printed

    out = tmp_path / "m.onnx"
    assert "a file of torch-export ends in .pt2" in refused("--format", "torch-export", "--out", str(out))
    with monkeypatch.context() as patched:
        patched.setattr(formats, "find_spec", lambda name: None if name == "onnxscript" else find_spec("os"))
        assert "needs onnxscript: pip install 'netanomaly[export]'" in refused("--out", str(out))

    def fails(*_: object) -> bytes:
        raise RuntimeError("torch's words\nfor pages") from ValueError("Cannot view a tensor\nwith shape ...")

    monkeypatch.setitem(FORMATS, "onnx", Format((), fails, FORMATS["onnx"].opened))
    told = refused("--out", str(out))
    assert "model.sequence_model cannot be written as onnx (Cannot view a tensor); try --format torch-export" in told
    monkeypatch.setitem(FORMATS, "onnx", Format((), lambda *_: b"model", fails))
    assert "cannot be written as onnx (Cannot view a tensor)" in refused("--out", str(out))
    monkeypatch.setitem(FORMATS, "onnx", Format((), lambda *_: b"model", lambda _: fails))
    assert "cannot be written as onnx (Cannot view a tensor)" in refused("--out", str(out))


def test_a_file_is_of_one_bundle_whoever_replaces_that_meanwhile(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, out = tmp_path / "run", tmp_path / "m.onnx"
    shutil.copytree(directory, place)

    def load_late(*given: Any) -> Predictor:
        tiny(place, width=12, kinds=["change", "missing"])
        return load_packed(*given)

    monkeypatch.setitem(FORMATS, "onnx", _wrong(lambda *answers: answers))
    monkeypatch.setattr("netanomaly.deploying.export.load_packed", load_late)
    assert export(place, "onnx", out).holds
    told = json.loads(description_of(out).read_text(encoding="utf-8"))
    assert told["weights_sha256"] == sha256(directory / "model.safetensors") != sha256(place / "model.safetensors")


def test_there_is_no_file_without_its_description(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setitem(FORMATS, "onnx", _wrong(lambda *answers: answers))
    monkeypatch.setattr("netanomaly.deploying.export.write_json", full)
    assert main(["export", str(directory), "--out", str(tmp_path / "m.onnx")]) == 2
    assert not list(tmp_path.iterdir())


def test_the_command_knows_every_format() -> None:
    assert set(SUFFIXES) == set(FORMATS)


def test_metrics_that_are_not_measured_count_for_nothing(directory: Path, tmp_path: Path) -> None:
    unmeasured = "data.metrics=" + json.dumps(
        [
            {"name": "rtt_ms", "unit": "ms"},
            {"name": "throughput_bps", "unit": "bit/s", "kind": "counter"},
            {"name": "loss_ratio", "unit": "ratio", "measured": False},
        ]
    )
    predictor = load(directory, "cpu", [unmeasured])
    model, rows = window_model(predictor)
    windows = hard_windows(predictor.channels, rows, sum(BATCHES))
    windows[..., 2] = np.nan

    def run(given: Rows) -> Answers:
        label, probabilities, novelty = (part.numpy() for part in model(torch.from_numpy(given)))
        return label, probabilities, novelty

    assert measured(run, predictor, windows).holds
    assert not measured(run, load(directory, "cpu"), windows).holds  # there novelty counts it


def _blocks(language: str) -> list[str]:
    text = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
    return [part.partition("\n```")[0] for part in text.split(f"```{language}\n")[1:]]


@pytest.mark.slow
@pytest.mark.parametrize("language", ["python", "js"])
def test_the_programs_of_the_page_label_as_predict_does(language: str, tmp_path: Path) -> None:
    """The one in JavaScript needs the npm package onnxruntime-node: NODE_MODULES names the directory that it is in."""
    modules = os.environ.get("NODE_MODULES")
    if language == "js":
        if shutil.which("node") is None or modules is None:
            pytest.skip("needs node, and NODE_MODULES=DIR with onnxruntime-node in it")
        (tmp_path / "node_modules").symlink_to(modules)
    directory = tiny(tmp_path / "bundle", counter=False, kinds=["change", "missing", "log_level"])
    export(directory, "onnx", tmp_path / "model.onnx")
    frame = network("x", seed=3).drop(columns=["link", "label"]).drop(index=[30, 31, 32, 60, 61, 62, 63, 64, 65, 66])
    frame["timestamp"] = frame["timestamp"].str.replace("Z", ".000Z")
    program = tmp_path / {"python": "label.py", "js": "label.mjs"}[language]
    (block,) = _blocks(language)
    program.write_text(block, encoding="utf-8")
    predictor = load(directory, "cpu")
    for rows in (34, 62, 101, 190):  # after a gap that is bridged, after one that is not, nothing measured, plain
        frame.iloc[:rows].to_csv(tmp_path / "rows.csv", index=False)
        wanted = predictor.predict(frame.iloc[:rows].assign(link="x")).iloc[-1]
        command = [sys.executable] if language == "python" else ["node"]
        done = subprocess.run(
            [*command, str(program), "model.onnx", "rows.csv"], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["label"] == wanted["label"]
        assert found["probabilities"] == pytest.approx([wanted[f"p_{name}"] for name in CLASSES], abs=1e-5)
        assert found["novelty"] == pytest.approx(wanted["novelty"], abs=1e-4)
