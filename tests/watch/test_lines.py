"""CSV lines in, JSON lines out."""

from __future__ import annotations

import logging
import signal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from netanomaly import DataError, Predictor
from netanomaly.streaming import StreamingPredictor
from netanomaly.watch.loop import watch
from streams import answers, same_printed


def watched(
    trained: Predictor, path: Path, text: str | bytes, capsys: pytest.CaptureFixture[str], **options: Any
) -> pd.DataFrame:
    """What is printed for a file."""
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    watch(StreamingPredictor(trained), path, **options)
    return answers(capsys.readouterr().out)


# In this process


def test_every_line_is_answered_as_in_a_batch(
    plain: Predictor, frame: pd.DataFrame, lines: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    same_printed(watched(plain, tmp_path / "a.csv", "".join(lines), capsys), plain.predict(frame))


@pytest.mark.parametrize("at_once", [1, 4])
def test_lines_are_answered_alike_however_many_come_at_once(
    plain: Predictor,
    frame: pd.DataFrame,
    lines: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    at_once: int,
) -> None:
    monkeypatch.setattr("netanomaly.watch.lines.AT_ONCE", at_once)
    same_printed(watched(plain, tmp_path / "a.csv", "".join(lines), capsys), plain.predict(frame))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.rstrip("\n"),
        lambda text: text.replace("\n", "\n\n"),
    ],
    ids=["byte-order mark", "crlf", "no last line end", "blank lines"],
)
def test_odd_but_good_files_are_answered_too(
    plain: Predictor,
    frame: pd.DataFrame,
    lines: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: Any,
) -> None:
    same_printed(watched(plain, tmp_path / "a.csv", change("".join(lines)), capsys), plain.predict(frame))


BROKEN = {
    "short": ("x,y\n", "found 2 fields, the header has 5"),
    "no number": ("2026-03-01T00:00:40.000Z,w,fast,1,1\n", "column 'rtt_ms': found 'fast'"),
    "no time": ("yesterday,w,1,1,1\n", "column 'timestamp': found 'yesterday'"),
    "no series": ("2026-03-01T00:00:40.000Z,,1,1,1\n", "column 'link': empty"),
    "an open quote": ('2026-03-01T00:00:40.000Z,"w,1,1,1\n', "not a readable line of a CSV"),
    "back in time": ("2026-02-01T00:00:00.000Z,w,1,1,1\n", "series 'w' goes back in time"),
}


CASES = [
    (name, at_once)
    for name in BROKEN
    for at_once in (1, 7, 4096)
    if at_once > 1 or name in ("short", "back in time")  # one by one each takes its time
]


@pytest.mark.parametrize(("name", "at_once"), CASES)
def test_a_broken_line_is_told_with_its_number_and_left_out(
    plain: Predictor,
    frame: pd.DataFrame,
    lines: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    at_once: int,
) -> None:
    monkeypatch.setattr("netanomaly.watch.lines.AT_ONCE", at_once)
    line, said = BROKEN[name]
    text = "".join([*lines[:51], line, *lines[51:90], line, *lines[90:]])
    with caplog.at_level(logging.WARNING):
        found = watched(plain, tmp_path / "a.csv", text, capsys)
    same_printed(found, plain.predict(frame))
    first, second, total = (record.getMessage() for record in caplog.records)
    assert first.startswith(f"left out: {tmp_path / 'a.csv'}: line 52") and said in first
    assert second.startswith(f"left out: {tmp_path / 'a.csv'}: line 92") and said in second
    assert total == f"2 lines left out: 2 {'late' if name == 'back in time' else 'broken'}"


@pytest.mark.parametrize("odd", ["\x0c", "\x85", "\u2028"])
def test_characters_that_only_some_take_for_line_ends_end_none(
    plain: Predictor,
    frame: pd.DataFrame,
    lines: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    odd: str,
) -> None:
    noted = [f"note,{lines[0]}", *(f"a{odd}b,{line}" for line in lines[1:])]
    text = "".join([*noted[:31], "x,y\n", *noted[31:]])
    with caplog.at_level(logging.WARNING):
        found = watched(plain, tmp_path / "a.csv", text, capsys)
    same_printed(found, plain.predict(frame))
    assert [record.getMessage().partition(": found")[0] for record in caplog.records] == [
        f"left out: {tmp_path / 'a.csv'}: line 32",
        "1 lines left out: 1 broken",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no header line"),
        ("\n", "no header line"),
        ("timestamp,link,rtt_ms,loss_ratio\n", "line 1: no column 'throughput_bps'"),
        ("timestamp;link;rtt_ms;throughput_bps;loss_ratio\n", "set data.separator"),
    ],
)
def test_without_a_usable_header_nothing_is_read(
    plain: Predictor, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    with pytest.raises(DataError, match=said):
        watched(plain, tmp_path / "a.csv", text, capsys)
    assert capsys.readouterr().out == ""


def test_a_header_alone_is_no_error(
    plain: Predictor, lines: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert watched(plain, tmp_path / "a.csv", lines[0], capsys, state=tmp_path / "state").empty
    assert (tmp_path / "state").exists()


def test_a_state_is_gone_on_from(
    plain: Predictor, frame: pd.DataFrame, lines: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = [watched(plain, tmp_path / "a.csv", lines[0] + "".join(lines[a:b]), capsys, state=tmp_path / "state")
             for a, b in ((1, 2), (2, 80), (80, len(lines)))]  # fmt: skip
    same_printed(pd.concat(parts), plain.predict(frame))


def test_what_is_no_state_is_refused_and_stays(
    plain: Predictor, lines: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "state").write_text("my notes")
    with pytest.raises(DataError, match="not a saved state"):
        watched(plain, tmp_path / "a.csv", "".join(lines), capsys, state=tmp_path / "state")
    assert (tmp_path / "state").read_text() == "my notes"


def test_a_file_that_is_not_there_is_a_data_error(plain: Predictor, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot read the file"):
        watch(StreamingPredictor(plain), tmp_path / "none.csv")


def test_a_late_line_is_left_out_however_lines_arrive(
    plain: Predictor,
    lines: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    header, *rows = lines
    late = [*rows[9:], *rows[:3]]
    found = []
    for at_once in (4096, 1):
        monkeypatch.setattr("netanomaly.watch.lines.AT_ONCE", at_once)
        found.append(watched(plain, tmp_path / "late.csv", header + "".join(late), capsys))
    assert len(found[0]) == len(rows) - 9
    pd.testing.assert_frame_equal(*found, rtol=0, atol=2e-6)
    assert "goes back in time" in caplog.text


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_a_signal_during_an_update_waits_for_its_answers_and_its_state(
    plain: Predictor,
    lines: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    number: str,
) -> None:
    path, state = tmp_path / "lines.csv", tmp_path / "state"
    path.write_text("".join(lines), encoding="utf-8")
    stream = StreamingPredictor(plain)
    answer = stream._answers

    def interrupted(*arguments: Any) -> Any:
        monkeypatch.setattr(stream, "_answers", answer)
        signal.raise_signal(signal.Signals[number])
        return answer(*arguments)

    monkeypatch.setattr(stream, "_answers", interrupted)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # as the command does
    try:
        with pytest.raises(KeyboardInterrupt):
            watch(stream, path, state=state)
    finally:
        signal.signal(signal.SIGTERM, before)
    first = answers(capsys.readouterr().out)
    assert 0 < len(first) <= len(lines) - 1
    rest = StreamingPredictor(plain)
    rest.restore(state)
    path.write_text(lines[0] + "".join(lines[1 + len(first) :]) or "", encoding="utf-8")
    if len(first) < len(lines) - 1:
        watch(rest, path)
    second = answers(capsys.readouterr().out) if len(first) < len(lines) - 1 else first[:0]
    assert len(first) + len(second) == len(lines) - 1
