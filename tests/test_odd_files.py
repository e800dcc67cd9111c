"""Files of odd kinds in the places of inputs and outputs: one clear line, no endless wait, nothing half there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from netanomaly.cli import main
from netanomaly.files import atomic
from networks import network

BUNDLE = Path(__file__).parent / "fixtures" / "bundle_v4"
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="has no named pipes and no /dev/full")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a good file, a pipe, a directory in the place of a file, and nothing else."""
    monkeypatch.chdir(tmp_path)
    network("f", 60).drop(columns="label").to_csv("good.csv", index=False)
    for suffix in ("csv", "yaml", "json"):
        Path(f"directory.{suffix}").mkdir()
        if sys.platform != "win32":
            os.mkfifo(f"pipe.{suffix}")
    return tmp_path


READERS = {
    "predict": (["predict", BUNDLE, "{}.csv"], 3),
    "incidents": (["inspect", "good.csv", "--incidents", "{}.csv"], 2),
    "maintenance": (["predict", BUNDLE, "good.csv", "--incidents", "i.csv", "--maintenance", "{}.csv"], 3),
    "explain": (["explain", BUNDLE, "{}.csv", "--series", "f", "--at", "x"], 3),
    "report": (["report", BUNDLE, "{}.csv"], 3),
    "eval": (["eval", BUNDLE, "{}.csv"], 3),
    "inspect": (["inspect", "good.csv", "{}.csv"], 3),
    "state": (["watch", BUNDLE, "good.csv", "--state", "{}.json"], 2),
    "train": (["train", "{}.yaml"], 2),
    "tune": (["tune", "{}.yaml"], 2),
    "audit": (["audit", "{}.yaml"], 2),
    "data": (["predict", BUNDLE, "good.csv", "--data", "{}.yaml"], 2),
}


@POSIX
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "kind", ["pipe", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("directory", "/dev/zero"))]
)
@pytest.mark.parametrize(("arguments", "code"), READERS.values(), ids=READERS.keys())
def test_what_is_no_regular_file_is_refused_at_once(
    arguments: Sequence[str | Path], code: int, kind: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(one).replace("{}.", f"{kind}.") for one in arguments]
    given = [kind if one.startswith("/dev/zero.") else one for one in given]
    if kind == "/dev/zero" and given[0] == "tune":
        pytest.skip("without the suffix of a YAML file it is the name of a bundle")
    assert main([*given, "--quiet"]) == code
    error = capsys.readouterr().err.removesuffix("\n")
    assert error.startswith("netanomaly: ") and "\n" not in error
    assert kind.removeprefix("/dev/") in error
    assert {path.name for path in here.iterdir()} == {
        "good.csv",
        *(f"{name}.{suffix}" for name in ("pipe", "directory") for suffix in ("csv", "yaml", "json")),
    }


@POSIX
@pytest.mark.timeout(60)
def test_watch_reads_a_pipe_as_it_reads_standard_input(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = Path("good.csv").read_text(encoding="utf-8")
    with subprocess.Popen([sys.executable, "-c", f"open('pipe.csv', 'w').write({content!r})"]) as writer:
        assert main(["watch", str(BUNDLE), "pipe.csv"]) == 0
    assert writer.returncode == 0 and len(capsys.readouterr().out.splitlines()) == 60


@POSIX
@pytest.mark.timeout(60)
def test_a_stream_without_line_ends_does_not_fill_the_memory(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", str(BUNDLE), "/dev/zero"]) == 3
    assert "line 1: longer than 16,777,216 characters" in capsys.readouterr().err


def test_a_line_without_end_is_left_out_and_the_others_are_answered(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("netanomaly.watch.files.LONGEST_LINE", 100)
    lines = Path("good.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    lines[5:5] = ["7" * 350 + "\n"]
    Path("long.csv").write_text("".join(lines) + "8" * 1000, encoding="utf-8")
    assert main(["watch", str(BUNDLE), "long.csv"]) == 0
    told = capsys.readouterr()
    assert len(told.out.splitlines()) == 60
    assert "long.csv: line 6: found 1 fields" in told.err and "2 lines left out" in told.err


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read and write everything")
def test_a_file_that_may_not_be_read_is_told(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("good.csv").chmod(0)
    assert main(["predict", str(BUNDLE), "good.csv"]) == 3
    assert "good.csv: cannot read the file: Permission denied" in capsys.readouterr().err


# ---- writing

WRITERS = {
    "predictions": (["predict", BUNDLE, "good.csv", "--out"], ".csv"),
    "gzip": (["predict", BUNDLE, "good.csv", "--out"], ".csv.gz"),
    "parquet": (["predict", BUNDLE, "good.csv", "--out"], ".parquet"),
    "incidents": (["predict", BUNDLE, "good.csv", "--incidents"], ".json"),
    "report": (["report", BUNDLE, "good.csv", "--out"], ".html"),
    "config": (["inspect", "good.csv", "--write-config"], ".yaml"),
    "state": (["watch", BUNDLE, "good.csv", "--state"], ".state"),
}
FULL = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from netanomaly.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
sys.exit(main(sys.argv[2:]))
"""


def with_a_full_disk(*arguments: str, room: int = 64) -> subprocess.CompletedProcess[str]:
    """The command where no file takes more than so many bytes: what the system says then is what a full disk gives."""
    return subprocess.run([sys.executable, "-c", FULL, str(room), *arguments], capture_output=True, text=True)


@POSIX
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "gzip" else pytest.mark.slow) for name in WRITERS]
)
def test_a_disk_that_fills_up_leaves_what_was_there(name: str, here: Path) -> None:
    arguments, suffix = WRITERS[name]
    out = here / f"out{suffix}"
    if name not in ("config", "state"):  # which go on from what is there, or refuse it
        out.write_text("before", encoding="utf-8")
    before = {path.name: path.stat().st_size for path in here.iterdir()}
    done = with_a_full_disk(*map(str, arguments), str(out), "--quiet")
    assert done.returncode == 2, done
    error = done.stderr.splitlines()
    assert len(error) == 1 and error[0].startswith(f"netanomaly: {out}: "), done.stderr
    assert {path.name: path.stat().st_size for path in here.iterdir()} == before


@POSIX
def test_a_device_is_never_replaced_by_a_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", str(BUNDLE), "good.csv", "--out", "/dev/null"]) == 2
    assert "--out /dev/null: is a device or socket, not a regular file" in capsys.readouterr().err
    assert Path("/dev/null").is_char_device()
    with pytest.raises(OSError, match="not a regular file"), atomic(here / "pipe.csv"):
        pass
    assert (here / "pipe.csv").is_fifo()


@pytest.mark.parametrize("command", ["eval", "predict"])
def test_inputs_are_never_outputs(command: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--out"] if command == "eval" else ["--incidents"]
    for place in (here / "good.csv", BUNDLE / "bundle.json"):
        before = place.read_bytes()
        if command == "predict" and place.suffix == ".csv":
            out = ["--out"]
        assert main([command, str(BUNDLE), "good.csv", *out, str(place)]) == 2
        assert "is one of the files to read" in capsys.readouterr().err
        assert place.read_bytes() == before
        out = ["--out"] if command == "eval" else ["--incidents"]


@POSIX
def test_output_that_nobody_takes_is_told_in_one_line_and_a_reader_that_has_gone_is_none() -> None:
    command = [sys.executable, "-m", "netanomaly", "tune", str(BUNDLE)]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (2, "netanomaly: writing to standard output: No space left on device\n")
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")
