"""The state goes with what was delivered: nothing is lost, and what is answered again is answered alike."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from netanomaly import ConfigError, DataError, Predictor
from netanomaly.streaming import StreamingPredictor
from netanomaly.watch.loop import watch
from netanomaly.watch.state_file import StateFile
from streams import same_printed


class Killed(BaseException):
    """As SIGKILL: nothing is written any more."""


class Taken:
    """Takes answers, until so many batches have come; then the process is gone or the reader is."""

    def __init__(self, batches: int = 10**9, error: type[BaseException] = Killed) -> None:
        self.answers: list[pd.DataFrame] = []
        self._batches, self._error = batches, error

    def take(self, answers: pd.DataFrame) -> None:
        if len(self.answers) == self._batches:
            raise self._error
        self.answers.append(answers)

    def frame(self) -> pd.DataFrame:
        return pd.concat([pd.DataFrame(), *self.answers], ignore_index=True)


@pytest.fixture
def path(lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("netanomaly.watch.lines.AT_ONCE", 10)
    monkeypatch.setattr("netanomaly.watch.state_file.MOST", 1e9)  # it may be saved after each batch
    result = tmp_path / "a.csv"
    result.write_text("".join(lines), newline="")
    return result


def run(plain: Predictor, path: Path, sink: Taken, **options: Any) -> Any:
    return watch(StreamingPredictor(plain), path, state=path.with_name("state"), sinks=[sink], **options)


@pytest.mark.parametrize("every", [0.0, 3600.0])
def test_after_a_kill_rows_since_the_last_state_are_answered_again_and_alike(
    plain: Predictor, frame: pd.DataFrame, path: Path, every: float
) -> None:
    found = []
    for batches in (4, 3, 10**9):
        sink = Taken(batches)
        with pytest.raises(Killed) if batches < 10**9 else contextlib.nullcontext():
            run(plain, path, sink, state_every=every)
        found.append(sink.frame())
    first = [len(part) for part in found]
    if every == 0.0:  # saved after each batch: none is answered again
        assert first[:2] == [40, 30]
        same_printed(pd.concat(found), plain.predict(frame))
    else:  # never saved: all are answered again
        assert first[2] == len(frame)
        for part in found:
            same_printed(part, plain.predict(frame).head(len(part)))


def test_a_reader_that_has_gone_leaves_the_state_of_what_it_got(
    plain: Predictor, frame: pd.DataFrame, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = Taken(3, BrokenPipeError), Taken()
    with pytest.raises(BrokenPipeError), caplog.at_level(logging.WARNING):
        run(plain, path, first, state_every=0.0)
    assert not caplog.records
    run(plain, path, second)
    same_printed(pd.concat([first.frame(), second.frame()]), plain.predict(frame))


def test_a_state_that_cannot_be_written_now_stops_no_answers(
    plain: Predictor, frame: pd.DataFrame, path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    save, tries = StreamingPredictor.save, []

    def full(stream: StreamingPredictor, *arguments: Any) -> None:
        tries.append(1)
        if len(tries) == 1:
            raise OSError(28, "No space left on device")
        save(stream, *arguments)

    monkeypatch.setattr(StreamingPredictor, "save", full)
    sink = Taken()
    with caplog.at_level(logging.WARNING):
        run(plain, path, sink, state_every=0.0)
    same_printed(sink.frame(), plain.predict(frame))
    assert "state: not written: No space left on device" in caplog.text and len(tries) > 1


def test_files_that_a_killed_process_left_are_removed(plain: Predictor, path: Path) -> None:
    torn, mine = path.with_name(".state.0123abcd.tmp"), path.with_name(".other.0123abcd.tmp")
    for file in (torn, mine):
        file.write_text("half")
    run(plain, path, Taken())
    assert not torn.exists() and mine.exists()


def test_a_finished_file_is_not_answered_again(plain: Predictor, frame: pd.DataFrame, path: Path) -> None:
    first, second = Taken(), Taken()
    run(plain, path, first)
    counts = run(plain, path, second)
    assert len(first.frame()) == len(frame) and second.answers == [] and counts.lines == 0


def test_lines_that_are_sent_again_after_a_restart_are_left_out(
    plain: Predictor, frame: pd.DataFrame, lines: list[str], path: Path, tmp_path: Path
) -> None:
    first, second = Taken(3), Taken()
    with pytest.raises(Killed):
        run(plain, path, first, state_every=0.0)
    again = tmp_path / "again.csv"  # another file, as a producer that starts from the beginning
    again.write_text(lines[0] + "\n" + "".join(lines[1:]), newline="")
    counts = run(plain, again, second)
    assert counts.left_out == {"already answered": 30}
    same_printed(pd.concat([first.frame(), second.frame()]), plain.predict(frame))


def test_a_second_watch_with_the_same_state_is_refused_and_harms_nothing(plain: Predictor, path: Path) -> None:
    stream = StreamingPredictor(plain)
    with StateFile(path.with_name("state"), stream, plain.live_alarms(), 30.0):
        mine = path.with_name(".state.0123abcd.tmp")
        mine.write_text("being written")
        with pytest.raises(ConfigError, match=r"--state .*state: another process goes on from it"):
            run(plain, path, Taken())
        assert mine.exists() and not path.with_name("state").exists()
    run(plain, path, Taken())


INCIDENT = {
    "series": "w",
    "label": "flood",
    "start": 1,
    "last": 2,
    "peak": 1,
    "rows": 2,
    "novel": 0,
    "raised": None,
    "first_confidence": 0.5,
    "peak_confidence": 0.9,
    "sum_confidence": 1.4,
    "is_sure": True,
}
PLACE = {"offset": 9, "lines": 1, "header": "a,b", "before": "00", "name": "a.csv", "file": [1, 2]}


@pytest.mark.parametrize(
    "words",
    [
        {"behind": [1]},
        {"behind": {"a": "x"}},
        {"behind": {"a": 1.5}},
        {"incidents": 1},
        {"incidents": [1]},
        {"incidents": [{"series": "w"}]},
        {"incidents": [INCIDENT | {"start": "x"}]},
        {"incidents": [INCIDENT | {"start": True}]},
        {"incidents": [INCIDENT | {"peak": 2**63}]},
        {"incidents": [INCIDENT | {"sum_confidence": float("nan")}]},
        {"incidents": [INCIDENT | {"rows": 0}]},
        {"incidents": [INCIDENT | {"label": "no such class"}]},
        {"place": [1]},
        {"place": PLACE | {"offset": -1}},
        {"place": PLACE | {"header": 1}},
        {"place": PLACE | {"file": [1, "x"]}},
    ],
)
def test_a_state_whose_words_are_wrong_is_refused_in_a_line(plain: Predictor, tmp_path: Path, words: Any) -> None:
    path, stream = tmp_path / "state", StreamingPredictor(plain)
    classes = [name for name in plain.live_alarms().rule.thresholds if name != plain.classes[0]]
    good = {"behind": {"w": 3}, "incidents": [INCIDENT | {"label": classes[0]}], "place": PLACE}
    for incident in words["incidents"] if isinstance(words.get("incidents"), list) else []:
        if isinstance(incident, dict) and incident.get("label") == INCIDENT["label"]:
            incident["label"] = classes[0]
    for given in (good, good | words):
        stream.save(path, given)
        state = StateFile(path, stream, plain.live_alarms(), 30.0)
        if given is good:
            place, behind = state.restore()
            assert place is not None and place.as_json() == {**PLACE, "file": (1, 2)} and behind == {"w": 3}
            continue
        with pytest.raises(DataError, match="state: not a saved state of watch: "):
            state.restore()
