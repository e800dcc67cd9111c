"""The command `watch` as people use it: lines in and out of a process."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pandas as pd
import pytest

from netanomaly import Predictor
from netanomaly.streaming import StreamingPredictor
from streams import answers, same_printed

NO_SIGNALS = pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")


@contextlib.contextmanager
def started(*arguments: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """The command at work; it does not outlive the block."""
    command = [sys.executable, "-m", "netanomaly", "watch", *map(str, arguments)]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}  # it would hide a lag
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, bufsize=0, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def read_lines(stream: IO[bytes] | None, count: int) -> list[str]:
    assert stream is not None
    return [stream.readline().decode() for _ in range(count)]


def send(process: subprocess.Popen[bytes], text: str) -> None:
    assert process.stdin is not None
    process.stdin.write(text.encode())


def ended(process: subprocess.Popen[bytes]) -> tuple[str, int]:
    """What it said on standard error, and its exit code, once its input is at its end."""
    _, error = process.communicate(timeout=60)
    return error.decode(), process.returncode


@pytest.mark.timeout(120)
def test_lines_are_answered_while_standard_input_stays_open(
    run: Path, plain: Predictor, frame: pd.DataFrame, lines: list[str], tmp_path: Path
) -> None:
    with started(run, "--state", tmp_path / "state") as process:
        send(process, lines[0] + lines[1])
        found = read_lines(process.stdout, 1)
        send(process, lines[2] + "x,y\n" + lines[3][:9])
        found += read_lines(process.stdout, 1)
        send(process, lines[3][9:] + "".join(lines[4:60]))
        found += read_lines(process.stdout, 57)
        said, code = ended(process)
    same_printed(answers(found), plain.predict(frame).head(59))
    assert code == 0
    assert said.splitlines() == [
        "left out: standard input: line 4: found 2 fields, the header has 5 ('x,y'); "
        "data.bad_lines: skip leaves such lines out",
        "1 lines left out: 1 broken",
    ]
    again = StreamingPredictor(plain)
    again.restore(tmp_path / "state")
    same_printed(again.update(frame.iloc[59:]), plain.predict(frame).iloc[59:])


@NO_SIGNALS
@pytest.mark.timeout(120)
def test_ctrl_c_saves_the_state_and_ends_with_130(
    run: Path, plain: Predictor, frame: pd.DataFrame, lines: list[str], tmp_path: Path
) -> None:
    with started(run, "--state", tmp_path / "state") as process:
        send(process, "".join(lines[:41]))
        read_lines(process.stdout, 40)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert process.stderr.read().decode().strip() == "netanomaly: interrupted"
        assert process.wait(60) == 130
    again = StreamingPredictor(plain)
    again.restore(tmp_path / "state")
    same_printed(again.update(frame.iloc[40:]), plain.predict(frame).iloc[40:])


@pytest.mark.timeout(120)
def test_a_growing_file_is_followed(
    run: Path, plain: Predictor, frame: pd.DataFrame, lines: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "growing.csv"
    path.write_text("".join(lines[:21]) + lines[21][:30], encoding="utf-8")
    with started(run, path, "--follow") as process, path.open("a", encoding="utf-8", newline="") as stream:
        found = read_lines(process.stdout, 20)
        stream.write(lines[21][30:50])
        stream.flush()
        time.sleep(0.5)  # more than once it sees the half of a line
        stream.write(lines[21][50:] + "".join(lines[22:60]))
        stream.flush()
        found += read_lines(process.stdout, 39)
        assert process.poll() is None
        process.terminate()
        assert process.wait(60) != 0
    same_printed(answers(found), plain.predict(frame).head(59))


@NO_SIGNALS
@pytest.mark.timeout(120)
def test_being_terminated_saves_the_state(run: Path, plain: Predictor, lines: list[str], tmp_path: Path) -> None:
    with started(run, "--state", tmp_path / "state") as process:
        send(process, "".join(lines[:11]))
        read_lines(process.stdout, 10)
        process.terminate()
        assert process.stderr is not None
        assert process.stderr.read().decode().strip() == "netanomaly: terminated"
        assert process.wait(60) == 143
    StreamingPredictor(plain).restore(tmp_path / "state")


@pytest.mark.timeout(120)
def test_standard_input_may_start_with_a_byte_order_mark(run: Path, lines: list[str]) -> None:
    with started(run) as process:
        send(process, "\ufeff" + "".join(lines[:4]))
        said, code = ended(process)
    assert (said, code) == ("", 0)


@pytest.mark.parametrize("place", ["file", "standard input"])
@pytest.mark.timeout(120)
def test_bytes_that_are_no_text_are_told_in_a_line(run: Path, lines: list[str], tmp_path: Path, place: str) -> None:
    """Far behind the header: the reading has begun when it gets there."""
    path = tmp_path / "bytes.csv"
    path.write_bytes("".join(lines).encode() + b"2026-03-01T00:10:00.000Z,\xff\xfe,1,1,1\n" + lines[-1].encode())
    assert path.stat().st_size > 2**13
    command = [sys.executable, "-m", "netanomaly", "watch", str(run), *([str(path)] if place == "file" else [])]
    with path.open("rb") as stream:
        done = subprocess.run(
            command, stdin=stream, capture_output=True, timeout=60, env={**os.environ, "LC_ALL": "C.UTF-8"}
        )
    assert done.returncode in (0, 3)
    assert b"utf-8" in done.stderr and b"Traceback" not in done.stderr
    assert done.stdout.count(b"\n") >= len(lines) - 1


@NO_SIGNALS
@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_second_signal_is_harmless(
    run: Path, plain: Predictor, lines: list[str], tmp_path: Path, number: signal.Signals, code: int
) -> None:
    with started(run, "--state", tmp_path / "state") as process:
        send(process, "".join(lines[:41]))
        read_lines(process.stdout, 40)
        process.send_signal(number)
        process.send_signal(number)
        assert process.stderr is not None
        said = process.stderr.read().decode()
        assert process.wait(60) in (code, -number)  # the second may come when the program has ended but for its name
    assert "Traceback" not in said
    StreamingPredictor(plain).restore(tmp_path / "state")


@NO_SIGNALS
@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_reader_that_goes_away_ends_it_quietly(run: Path, lines: list[str], tmp_path: Path) -> None:
    with started("--quiet", run, "--state", tmp_path / "state") as process:
        send(process, "".join(lines[:11]))
        read_lines(process.stdout, 10)
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        send(process, "".join(lines[11:21]))
        assert process.stderr.read() == b""
        assert process.wait(60) == 0
    assert not (tmp_path / "state").exists()  # no later than what was delivered


@NO_SIGNALS
@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_killed_process_loses_nothing(
    run: Path, plain: Predictor, frame: pd.DataFrame, lines: list[str], tmp_path: Path
) -> None:
    path, found = tmp_path / "a.csv", []
    path.write_text("".join(lines[:61]), encoding="utf-8")
    options = (run, path, "--follow", "--state", tmp_path / "state", "--state-every", "1ms")
    with started(*options) as process:
        found += read_lines(process.stdout, 60)
        time.sleep(2)  # an empty batch comes, and the state is written
        process.kill()
    with path.open("a", encoding="utf-8") as stream:
        stream.write("".join(lines[61:]))
    with started(*options) as process:
        found += read_lines(process.stdout, len(frame) - 60)
    same_printed(answers(found), plain.predict(frame))
