"""`torchrun scripts/train.py`: several processes train, save and evaluate one bundle, and one of them tells."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from netanomaly.bundle import load_bundle
from netanomaly.checkpoints import check_alike, difference
from netanomaly.cli import main
from netanomaly.errors import ConfigError, NetanomalyError, ProcessLost
from netanomaly.run import train
from netanomaly.training.world import ALONE
from networks import network, settings

PROGRAM = Path(__file__).parents[1] / "scripts" / "train.py"
EVEN: dict[str, Any] = {
    "model": {"members": 1, "dropout": 0.0},
    "training": {"epochs": 2, "jitter": 0.0, "class_weights": "balanced", "save_steps": 1},
}


def _write(directory: Path, **sections: Any) -> Path:
    directory.mkdir(exist_ok=True)
    network("abef").to_csv(directory / "links.csv", index=False)
    tree = settings(directory / "run", **{**EVEN, **sections})
    tree["data"] = {"root": str(directory), "files": "links.csv", **tree["data"]}
    (directory / "config.yaml").write_text(yaml.safe_dump(tree), encoding="utf-8")
    return directory / "config.yaml"


def _torchrun(size: int, *arguments: str | Path, restarts: int = 0) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={size}"]
    command += [f"--max-restarts={restarts}", str(PROGRAM), *map(str, arguments)]
    return subprocess.Popen(
        command,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _distance(directory: Path, other: Path) -> float:
    mine, theirs = (load_bundle(one / "run").weights for one in (directory, other))
    assert mine.keys() == theirs.keys()
    return max(float((mine[name] - theirs[name]).abs().max()) for name in mine)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one process comes to."""
    directory = tmp_path_factory.mktemp("whole")
    assert main(["train", str(_write(directory)), "--no-report"]) == 0
    return directory


def _members(process: subprocess.Popen[str], size: int) -> list[int]:
    """Ids of the processes that torchrun has started."""
    children: list[int] = []
    while process.poll() is None and len(children) < size:
        found = subprocess.run(["pgrep", "-P", str(process.pid), "-f", PROGRAM.name], capture_output=True, text=True)
        children = [int(line) for line in found.stdout.split()]
        time.sleep(0.02)
    return children


def _wait_for_steps(directory: Path, process: subprocess.Popen[str]) -> None:
    """Until a first epoch is in the log."""
    log = directory / "run" / "log.jsonl"
    while process.poll() is None and not (log.exists() and log.read_text(encoding="utf-8").count("\n")):
        time.sleep(0.005)


@pytest.mark.slow
def test_two_processes_come_to_one_bundle_that_is_told_of_once(whole: Path, tmp_path: Path) -> None:
    said, errors = (process := _torchrun(2, _write(tmp_path), "--no-report")).communicate(timeout=280)
    assert process.returncode == 0, errors
    assert _distance(tmp_path, whole) <= 1e-5
    scores = [json.loads((one / "run" / "evaluation.json").read_text()) for one in (tmp_path, whole)]
    assert scores[0]["rows"] == scores[1]["rows"]
    assert said.count("bundle: ") == 1 and errors.count("train: ") == 1
    assert not list((tmp_path / "run" / "checkpoint").glob("*.safetensors"))
    again, errors = (process := _torchrun(2, tmp_path / "config.yaml", "--resume", "--no-report")).communicate(
        timeout=280
    )
    assert process.returncode == 0 and errors.count("came to its end already") == 1
    assert again.count("bundle: ") == 1


@pytest.mark.slow
def test_an_error_is_told_once(tmp_path: Path) -> None:
    config = _write(tmp_path, data={"metrics": ["nowhere"]})
    _, errors = (process := _torchrun(2, config, "--no-report")).communicate(timeout=280)
    assert process.returncode != 0
    assert len(re.findall(r"^netanomaly: .*nowhere", errors, re.MULTILINE)) == 1
    assert re.findall(r"exitcode\s*:\s*(\d+)", errors) and set(re.findall(r"exitcode\s*:\s*(\d+)", errors)) <= {
        "2",
        "3",
    }


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kills processes")
@pytest.mark.parametrize("size", [1, 2])
def test_after_a_kill_one_process_or_two_go_on(whole: Path, tmp_path: Path, size: int) -> None:
    process = _torchrun(2, _write(tmp_path), "--no-report")
    children = _members(process, 2)
    _wait_for_steps(tmp_path, process)
    os.kill(children[-1], signal.SIGKILL)
    _, errors = process.communicate(timeout=280)
    assert process.returncode != 0 and not (tmp_path / "run" / "manifest.json").exists(), errors
    assert list((tmp_path / "run" / "checkpoint").glob("*.safetensors"))
    arguments = [tmp_path / "config.yaml", "--resume", "--no-report"]
    if size == 1:
        assert main(["train", *map(str, arguments)]) == 0
    else:
        _, errors = (process := _torchrun(2, *arguments)).communicate(timeout=280)
        assert process.returncode == 0, errors
    assert _distance(tmp_path, whole) <= 1e-5


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kills processes")
def test_torchrun_starts_them_again_and_they_go_on(whole: Path, tmp_path: Path) -> None:
    process = _torchrun(2, _write(tmp_path), "--resume", "--no-report", restarts=1)
    children = _members(process, 2)
    _wait_for_steps(tmp_path, process)
    os.kill(children[0], signal.SIGKILL)
    _, errors = process.communicate(timeout=280)
    assert process.returncode == 0, errors
    assert _distance(tmp_path, whole) <= 1e-5


def test_an_error_that_another_process_tells_is_not_told_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lose(*_: Any, **__: Any) -> None:
        error = ProcessLost("a process of the training has ended")
        error.is_told = told
        raise error

    monkeypatch.setattr("netanomaly.run.train", lose)
    for told in (True, False):
        assert main(["train", str(tmp_path / "x.yaml")]) == 5
        assert ("has ended" in capsys.readouterr().err) is not told
    assert NetanomalyError("x").is_told is False


def test_the_first_key_that_differs_is_named() -> None:
    assert difference({"a": 1, "b": 2}, {"a": 1, "b": 2}) is None
    assert difference({"a": 1, "b": 2, "c": 0}, {"a": 1, "b": 3}) == "b"
    assert difference({}, {"c": np.pi}) == "c"
    check_alike({"a": (1, 2)}, ALONE)


def test_an_environment_that_names_no_meeting_place_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(
        ConfigError, match=r"the processes .* do not find each other .*WORLD_SIZE=2: start with torchrun"
    ):
        train({"data": {"metrics": ["x"]}})
