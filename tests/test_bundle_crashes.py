"""A save that is cut short, at whatever moment, leaves the old bundle or the new one: whole, and fit to be replaced."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bundles import untrained
from netanomaly.bundle import Bundle, load_bundle, save_bundle
from netanomaly.bundle_files import CONTENT, MANIFEST, WEIGHTS
from netanomaly.errors import BundleError

OLD, NEW, LATER = (replace(untrained(seed), facts={"seed": seed}) for seed in range(3))
RETUNED = replace(OLD, facts={"seed": "retuned"})  # as `netanomaly tune` does it: the weights stay
PLAIN = sorted([WEIGHTS, CONTENT, MANIFEST])


def _steps(monkeypatch: pytest.MonkeyPatch, at: Callable[[], None]) -> None:
    """Call `at` before and after everything that a save does to the disk."""

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            at()
            result = function(*args, **kwargs)
            at()
            return result

        return call

    for owner, name in [(os, "replace"), (os, "fsync"), (Path, "unlink"), (Path, "write_bytes"), (Path, "touch")]:
        monkeypatch.setattr(owner, name, watched(getattr(owner, name)))


def _moments(directory: Path, bundle: Bundle) -> list[dict[str, bytes]]:
    """What is in the directory at each moment of a save: all that a kill at that moment leaves."""
    found: list[dict[str, bytes]] = []

    def look() -> None:
        now = {path.name: path.read_bytes() for path in sorted(directory.iterdir())}
        if not found or found[-1] != now:
            found.append(now)

    with pytest.MonkeyPatch.context() as patch:
        _steps(patch, look)
        save_bundle(directory, bundle)
    return found


def _put(directory: Path, files: dict[str, bytes]) -> Path:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    for name, data in files.items():
        (directory / name).write_bytes(data)
    return directory


def _is(found: Bundle, expected: Bundle) -> bool:
    """The same facts and, for the bundle that has these, the same weights: never a mix of two."""
    if found.facts != expected.facts:
        return False
    assert all(weight.equal(found.weights[name]) for name, weight in expected.weights.items())
    return True


@pytest.mark.parametrize("new", [NEW, RETUNED], ids=["trained again", "tuned"])
def test_a_kill_at_any_moment_leaves_the_old_bundle_or_the_new_one(tmp_path: Path, new: Bundle) -> None:
    save_bundle(tmp_path / "run", OLD)
    moments = _moments(tmp_path / "run", new)
    assert len(moments) >= 8
    is_new = []
    for number, files in enumerate(moments):
        found = load_bundle(_put(tmp_path / str(number), files))
        assert _is(found, OLD) or _is(found, new)
        is_new.append(_is(found, new))
    assert is_new == sorted(is_new)  # once it is the new one it stays so
    assert not is_new[0] and is_new[-1]


def test_a_kill_of_the_first_save_leaves_no_bundle_or_a_whole_one(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    outcomes = set()
    for number, files in enumerate(_moments(tmp_path / "run", NEW)):
        try:
            outcomes.add(_is(load_bundle(_put(tmp_path / str(number), files)), NEW))
        except BundleError as error:
            assert "no bundle here" in str(error)
            outcomes.add(False)
    assert outcomes == {True, False}


@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.slow)])
def test_what_a_kill_leaves_can_be_replaced_and_a_kill_of_that_is_no_worse(tmp_path: Path, every: int) -> None:
    save_bundle(tmp_path / "run", OLD)
    seen, moments = 0, _moments(tmp_path / "run", NEW)
    waiting = f"{WEIGHTS}.new"  # with the new manifest already: what is there must not be written over
    said = [files for files in moments if files.get(MANIFEST) == moments[-1][MANIFEST] and waiting in files]
    assert said
    for files in [*said[:1], *moments[::every]]:
        before = load_bundle(_put(tmp_path / "first", files))
        for left in _moments(_put(tmp_path / "first", files), LATER):
            found = load_bundle(_put(tmp_path / "second", left))
            assert _is(found, before) or _is(found, LATER)
            seen += 1
        names = sorted(path.name for path in (tmp_path / "first").iterdir() if not path.name.endswith(".tmp"))
        assert names == PLAIN  # what was left is gone, but for temporary files, which training removes
        assert _is(load_bundle(tmp_path / "first"), LATER)
    assert seen > 100 / every


@pytest.mark.parametrize(
    ("error", "every"),
    [
        (KeyboardInterrupt(), 3),
        pytest.param(KeyboardInterrupt(), 1, marks=pytest.mark.slow),
        pytest.param(OSError(errno.ENOSPC, "No space left on device"), 1, marks=pytest.mark.slow),
    ],
    ids=["some steps", "all steps", "all steps, a full disk"],
)
def test_an_error_at_any_step_leaves_one_of_the_two(tmp_path: Path, error: BaseException, every: int) -> None:
    fails_at, steps, more, is_new = 0, 0, True, []
    while more:
        save_bundle(_put(tmp_path / "run", {}), OLD)
        steps, reached = 0, False

        def count(last: int = fails_at + 1) -> None:
            nonlocal steps, reached
            steps += 1
            if steps == last:
                reached = True
                raise error

        with pytest.MonkeyPatch.context() as patch:
            _steps(patch, count)
            with suppress(type(error)):
                save_bundle(tmp_path / "run", NEW)
        found = load_bundle(tmp_path / "run")
        assert _is(found, OLD) or _is(found, NEW)
        is_new.append(_is(found, NEW))
        left = [path.name for path in (tmp_path / "run").iterdir() if path.name.endswith(".tmp")]
        assert len(left) <= 1, left  # one, where removing it is what failed
        fails_at += every
        more = reached
    assert fails_at > 40
    assert not is_new[0] and is_new[-1]


def test_a_full_disk_leaves_the_old_bundle_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for owner, name in ((os, "fsync"), (Path, "write_bytes"), (os, "replace")):
        save_bundle(tmp_path / "run", OLD)
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, full)
            if (owner, name) == (os, "fsync"):
                patch.setattr("netanomaly.files.os.fsync", full)
            with pytest.raises(OSError, match="No space left"):
                save_bundle(tmp_path / "run", NEW)
        assert sorted(path.name for path in (tmp_path / "run").iterdir()) == PLAIN
        assert _is(load_bundle(tmp_path / "run"), OLD)


@pytest.mark.skipif(os.name != "posix", reason="elsewhere directories cannot be opened")
def test_the_directory_is_synced_after_each_file_took_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    replace_file, sync = os.replace, os.fsync

    def replaced(source: Path, target: Path) -> None:
        calls.append(Path(target).name)
        replace_file(source, target)

    def synced(handle: int) -> None:
        calls.append("directory" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        sync(handle)

    monkeypatch.setattr(os, "replace", replaced)
    monkeypatch.setattr(os, "fsync", synced)
    save_bundle(tmp_path / "run", OLD)
    places = [number for number, name in enumerate(calls) if name not in ("file", "directory")]
    assert len(places) == 5  # both files beside the old ones, the manifest, both files to their names
    assert all(calls[number + 1] == "directory" for number in places)
    assert all(calls[number - 1] == "file" for number in places[:3])


KILLED = """
import os, random, signal, sys, time
from dataclasses import replace
from pathlib import Path

from bundles import untrained
from netanomaly.bundle import load_bundle, save_bundle

directory, kills = Path(sys.argv[1]), int(sys.argv[2])
plain = ["bundle.json", "manifest.json", "model.safetensors"]
bundles = [replace(untrained(seed), facts={"seed": seed}) for seed in range(2)]
save_bundle(directory, bundles[0])
draws = random.Random(7)
changed = between = 0
for number in range(kills):
    child = os.fork()
    if child == 0:
        while True:
            for bundle in bundles:
                save_bundle(directory, bundle)
    time.sleep(draws.uniform(0.002, 0.04))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    between += sorted(path.name for path in directory.iterdir()) != plain
    found = load_bundle(directory)
    expected = bundles[found.facts["seed"]]
    assert all(weight.equal(found.weights[name]) for name, weight in expected.weights.items()), number
    for left in directory.glob(".*.tmp"):
        left.unlink()
print(kills, between)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_no_kill_loses_a_bundle(tmp_path: Path) -> None:
    kills = int(os.environ.get("NETANOMALY_KILLS", "200"))
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    command = [sys.executable, "-W", "ignore", "-c", KILLED, str(tmp_path / "run"), str(kills)]
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    done, between = map(int, result.stdout.split())
    assert done == kills
    assert between > kills / 10  # a kill between two files is what this is about
    print(f"{done} kills, {between} of them between two files")
