"""Runs that are cut short: by a signal, by `kill -9`, by a full disk; and gone on with."""

from __future__ import annotations

import errno
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

import netanomaly
from netanomaly import ConfigError, train
from netanomaly.bundle import load_bundle
from netanomaly.cli import main
from netanomaly.errors import BundleError, TrainingError
from netanomaly.locks import locked
from netanomaly.retuning import Wishes, tune_bundle
from netanomaly.training import progress, trainer
from networks import network, settings

SHORT = {"epochs": 2, "save_steps": 1}
MEMBERS = {"members": 1}  # of either kind


class _Killed(BaseException):
    """As `kill -9`: nothing is caught, nothing is tidied up."""


def _config(directory: Path, **sections: Any) -> dict[str, Any]:
    return settings(directory / "run", **{"training": SHORT, "model": MEMBERS, **sections})


def _die_at(save: int) -> pytest.MonkeyPatch:
    """A training dies in the middle of writing a checkpoint; 0: none of them."""
    patch, write, count = pytest.MonkeyPatch(), progress.save_progress, 0

    def save_or_die(path: Path, *rest: Any) -> None:
        nonlocal count
        count += 1
        if count == save:
            path.with_name(f".{path.name}.0123abcd.tmp").write_bytes(b"half")
            raise _Killed
        write(path, *rest)

    patch.setattr(trainer, "save_progress", save_or_die)
    return patch


def _weights(directory: Path) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in load_bundle(directory / "run").weights.items()}


def _equal(directory: Path, other: Path) -> bool:
    mine, theirs = _weights(directory), _weights(other)
    return mine.keys() == theirs.keys() and all(np.array_equal(mine[name], theirs[name]) for name in mine)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training that nobody cut short."""
    directory = tmp_path_factory.mktemp("whole")
    train(_config(directory), frames=network("abef"))
    return directory


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training that was cut short in its second member; tests copy it."""
    directory = tmp_path_factory.mktemp("cut")
    patch = _die_at(12)
    try:
        with pytest.raises(_Killed):
            train(_config(directory), frames=network("abef"))
    finally:
        patch.undo()
    assert (directory / "run" / "checkpoint" / "member-1.safetensors").exists()
    return directory


@pytest.fixture
def again(cut: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    import shutil

    shutil.copytree(cut / "run", tmp_path / "run")
    return tmp_path


def test_it_goes_on_to_the_same_bundle_evaluation_and_log(again: Path, whole: Path) -> None:
    train(_config(again), frames=network("abef"), resume=True)
    assert _equal(again, whole)
    assert (again / "run" / "evaluation.json").read_bytes() == (whole / "run" / "evaluation.json").read_bytes()
    for ours, theirs in zip(_log(again), _log(whole), strict=True):
        assert {**ours, "seconds": 0} == {**theirs, "seconds": 0}


def _log(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "run" / "log.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_cut_anywhere_it_goes_on_to_the_same_bundle(tmp_path: Path, whole: Path) -> None:
    save = 1
    while True:
        directory, patch = tmp_path / str(save), _die_at(save)
        try:
            train(_config(directory), frames=network("abef"))
            break  # there are no more checkpoints
        except _Killed:
            pass
        finally:
            patch.undo()
        train(_config(directory), frames=network("abef"), resume=True)
        assert _equal(directory, whole), save
        save += 1
    assert save > 20


def test_finished_members_are_not_trained_again(again: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit, trained = trainer.fit, []

    def note(*arguments: Any, **others: Any) -> Any:
        trained.append(others["member"])
        return fit(*arguments, **others)

    monkeypatch.setattr(trainer, "fit", note)
    train(_config(again), frames=network("abef"), resume=True)
    assert trained == [2]


def test_at_the_end_nothing_is_left_to_go_on_with(again: Path) -> None:
    (again / "run" / "checkpoint" / ".x.0123abcd.tmp").write_bytes(b"half")
    train(_config(again), frames=network("abef"), resume=True)
    assert [path.name for path in (again / "run" / "checkpoint").iterdir()] == ["run.json"]


def test_a_training_that_is_complete_is_loaded(again: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = train(_config(again), frames=network("abef"), resume=True)
    before = (again / "run" / "manifest.json").read_bytes()
    with caplog.at_level("INFO"):
        second = train(_config(again), frames=network("abef"), resume=True)
    assert "came to its end already" in caplog.text
    assert (again / "run" / "manifest.json").read_bytes() == before
    pd.testing.assert_frame_equal(first.predict(network("g")), second.predict(network("g")))


def test_with_nothing_to_go_on_with_training_starts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        train(_config(tmp_path, training={"epochs": 1}), frames=network("abef"), resume=True)
    assert "nothing to go on with: training starts" in caplog.text
    netanomaly.load(tmp_path / "run")


def test_a_training_that_was_cut_short_is_not_thrown_away_unasked(again: Path, whole: Path) -> None:
    with pytest.raises(ConfigError, match=r"--resume goes on with it, --overwrite starts afresh"):
        train(_config(again), frames=network("abef"))
    train(_config(again), frames=network("abef"), overwrite=True)
    assert _equal(again, whole)


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"training": {**SHORT, "learning_rate": 0.02}}, r"training\.learning_rate is 0\.02, and was 0\.01"),
        ({"model": {**MEMBERS, "width": 32}}, r"model\.width is 32, and was 16"),
    ],
)
def test_another_config_cannot_go_on_with_it(again: Path, sections: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        train(_config(again, **sections), frames=network("abef"), resume=True)


def test_other_rows_cannot_go_on_with_it(again: Path) -> None:
    rows = network("abef")
    rows.loc[7, "rtt_ms"] += 1e-9
    with pytest.raises(ConfigError, match=r"the rows \(SHA-256\) is"):
        train(_config(again), frames=rows, resume=True)


def test_how_often_checkpoints_are_written_may_change(again: Path, whole: Path) -> None:
    train(_config(again, training={**SHORT, "save_steps": 7}), frames=network("abef"), resume=True)
    assert _equal(again, whole)


def test_other_threads_may_go_on_with_it(again: Path) -> None:
    train({**_config(again), "threads": 1}, frames=network("abef"), resume=True)


def test_a_damaged_checkpoint_is_refused_and_nothing_is_changed(again: Path) -> None:
    part = again / "run" / "checkpoint" / "member-2.part.safetensors"
    content = bytearray(part.read_bytes())
    content[-1] ^= 1
    part.write_bytes(content)
    with pytest.raises(BundleError, match=r"member-2\.part\.safetensors: not a whole checkpoint"):
        train(_config(again), frames=network("abef"), resume=True)
    assert part.read_bytes() == content


def test_a_loss_that_is_not_finite_is_told_with_its_place_and_leaves_nothing(tmp_path: Path) -> None:
    config = _config(tmp_path, training={**SHORT, "learning_rate": 1e30, "warmup": 0.0})
    said = (
        r"training 1 of 2, epoch 1, batch \d+: loss .*; its rows are of .*; the largest of their channels is "
        r".* of metric (rtt_ms|throughput_bps|loss_ratio) \(series [ab], row \d+ of a segment\); lower training"
    )
    with pytest.raises(TrainingError, match=said):
        train(config, frames=network("abef"))
    assert not (tmp_path / "run" / "checkpoint").exists()


def test_a_disk_that_is_full_at_the_end_of_a_member_does_not_end_the_training(
    tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("netanomaly.checkpoints.save_checkpoint", full)
    train(_config(tmp_path), frames=network("abef"))
    assert "member-1.safetensors: cannot be saved: No space left on device; training goes on" in caplog.text
    assert _equal(tmp_path, whole)


def test_two_processes_do_not_write_to_one_directory(again: Path) -> None:
    held = "with netanomaly.locks.locked(pathlib.Path(sys.argv[1])): print('held', flush=True); input()"
    script = f"import sys, pathlib, netanomaly.locks\n{held}"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(again / "run")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        with pytest.raises(ConfigError, match=r"another process is writing to .*run"):
            train(_config(again), frames=network("abef"), resume=True)
        other.kill()
    with locked(again / "run"):  # it went with its process
        pass


def test_a_bundle_is_not_changed_while_a_training_writes_there(whole: Path) -> None:
    with locked(whole / "run"), pytest.raises(ConfigError, match="another process is writing to"):
        tune_bundle(whole / "run", Wishes(changes={"min_rows": 2}))


def _write(directory: Path, **sections: Any) -> Path:
    directory.mkdir(exist_ok=True)
    network("abef").to_csv(directory / "links.csv", index=False)
    tree = _config(directory, **sections)
    tree["data"] = {"root": str(directory), "files": "links.csv", **tree["data"]}
    (directory / "config.yaml").write_text(yaml.safe_dump(tree), encoding="utf-8")
    return directory / "config.yaml"


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_the_command_and_it_goes_on(tmp_path: Path, number: signal.Signals, code: int) -> None:
    sections = {"training": {"epochs": 12, "save_steps": None}, "model": {"members": 1}, "channels": {"levels": "seen"}}
    command = [sys.executable, "-m", "netanomaly", "train", str(_write(tmp_path / "cut", **sections))]
    log = tmp_path / "cut" / "run" / "log.jsonl"
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not (log.exists() and log.read_text(encoding="utf-8").count("\n") > 1):
            time.sleep(0.005)
        process.send_signal(number)
        process.send_signal(number)  # a second one does no harm
        assert process.stderr is not None
        said = process.stderr.read()
    assert process.returncode == code, said
    assert "--resume goes on with it" in said and "Traceback" not in said
    assert main(["train", str(tmp_path / "cut" / "config.yaml"), "--resume", "--no-report"]) == 0
    assert main(["train", str(_write(tmp_path / "whole", **sections)), "--no-report"]) == 0
    assert _equal(tmp_path / "cut", tmp_path / "whole")
