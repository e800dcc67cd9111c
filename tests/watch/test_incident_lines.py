"""Incidents that `watch` tells as they begin and end are those that `predict` tells of the same rows."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pandas as pd
import pytest

from netanomaly import Predictor
from netanomaly.alarms.live import Event, Incident
from netanomaly.bundle_files import CONTENT, MANIFEST, WEIGHTS
from netanomaly.cli import main
from netanomaly.data.ingest import Table
from netanomaly.data.timestamps import TimeFormat
from netanomaly.streaming import StreamingPredictor
from netanomaly.watch.incidents import IncidentLines
from netanomaly.watch.loop import watch_source
from netanomaly.watch.source import Delivery
from streams import tables

MOMENTS = ("start", "end", "raised", "peak")


@pytest.fixture(scope="module")
def source(lines: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("incidents") / "rows.csv"
    path.write_text("".join(lines), encoding="utf-8", newline="")
    return path


def told(text: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in text.splitlines()]
    for line in found:
        line.update({name: pd.Timestamp(line[name]) for name in MOMENTS})
    return found


def incidents(run: Path, source: Path, directory: Path) -> list[dict[str, Any]]:
    """Of `predict`."""
    path = directory / "wanted.json"
    assert main(["predict", str(run), str(source), "--incidents", str(path)]) == 0
    found = json.loads(path.read_text(encoding="utf-8"))
    return [{**line, **{name: pd.Timestamp(line[name]) for name in MOMENTS}} for line in found]


def key(line: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(line[name] for name in ("series", "looks_like", "start"))


def test_they_are_those_of_predict(
    run: Path, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], plain: Predictor
) -> None:
    wanted = {key(line): line for line in incidents(run, source, tmp_path)}
    capsys.readouterr()
    assert main(["watch", str(run), str(source), "--incidents", "-"]) == 0
    events = told(capsys.readouterr().out)
    assert {key(line) for line in events if line["event"] == "opened"} == set(wanted)
    assert len(wanted) > 5 and len(events) > len(wanted)
    for line in events:
        same = wanted[key(line)]
        assert list(line) == ["event", *same]
        assert line["raised"] == same["raised"]
        if line["event"] == "closed":
            assert [line[name] for name in ("end", "peak", "rows", "label")] == [
                same[name] for name in ("end", "peak", "rows", "label")
            ]
            for name in ("peak_confidence", "mean_confidence", "onset_certainty"):
                assert line[name] == pytest.approx(same[name], abs=1e-4)


def test_a_file_gets_them_beside_the_rows_and_a_state_goes_on_with_what_is_open(
    run: Path, source: Path, lines: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["watch", str(run), str(source), "--incidents", "-"]) == 0
    wanted = told(capsys.readouterr().out)
    path, events = tmp_path / "rows.csv", tmp_path / "events.jsonl"
    for stop in (30, 60, len(lines)):
        path.write_text("".join(lines[:stop]), encoding="utf-8", newline="")
        assert main(["watch", str(run), str(path), "--incidents", str(events), "--state", str(tmp_path / "state")]) == 0
    assert capsys.readouterr().out.count('"timestamp"') == len(lines) - 1  # rows go on standard output as ever
    found = told(events.read_text(encoding="utf-8"))
    assert [(line["event"], *key(line)) for line in found] == [(line["event"], *key(line)) for line in wanted]


class Heard:
    """Listens."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []

    def hear(self, events: list[Event]) -> None:
        self.events += [(event.kind, event.incident.series) for event in events]


class Pieces:
    """A source of tables."""

    goes_on = True

    def __init__(self, tables: list[Table]) -> None:
        self._tables = tables

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def place(self) -> None:
        pass

    def deliveries(self) -> Iterator[Delivery]:
        return (Delivery(len(table), [table]) for table in self._tables)


def test_the_incidents_of_a_silent_series_are_over_when_it_is_forgotten(plain: Predictor, frame: pd.DataFrame) -> None:
    silent, others = frame[frame["link"] == "w"].head(12), frame[frame["link"] == "x"].copy()
    moments = pd.to_datetime(others["timestamp"]) + pd.Timedelta(hours=1)
    others["timestamp"] = moments.dt.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    heard, alarms = Heard(), plain.live_alarms()
    given = tables(plain, pd.concat([silent, others]), 6)
    stream = StreamingPredictor(plain, forget_after=10**9)
    watch_source(stream, lambda *_: Pieces(given), sinks=[], listeners=[heard], alarms=alarms)
    opened, closed = (heard.events.count((kind, "w")) for kind in ("opened", "closed"))
    assert opened == closed > 0 and "w" not in {one.series for one in alarms.open}
    alarms = plain.live_alarms()
    watch_source(StreamingPredictor(plain), lambda *_: Pieces(given), sinks=[], alarms=alarms)
    assert "w" in {one.series for one in alarms.open}  # which is never forgotten there


def event(series: str) -> Event:
    return Event("opened", Incident(series, "flood", 0, 10**9, 0, 0.6, 0.9, 1.5, 2, 0, True, 10**9))


def series_in(path: Path) -> list[str]:
    return [json.loads(line)["series"] for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_file_that_cannot_be_written_now_ends_nothing_and_gets_all_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("netanomaly.watch.incidents.MOST_WAITING", 2)
    path, place = tmp_path / "deep" / "events.jsonl", tmp_path / "deep"
    place.write_text("in the way", encoding="utf-8")
    with IncidentLines(path, TimeFormat(), 10**9) as told:
        for name in "abc":
            told.hear([event(name)])
        assert len(caplog.records) == 1 and "not written, incidents wait" in caplog.text
        place.unlink()
        told.hear([event("d")])
        assert series_in(path) == ["b", "c", "d"] and told.lost == 1
        path.unlink()
        place.rmdir()
        place.write_text("in the way", encoding="utf-8")
        told.hear([event("e")])
        place.unlink()
    assert series_in(path) == ["e"]  # written at the end
    assert caplog.records[-1].message.endswith("1 lines of incidents were not written")


def test_lines_stay_whole_after_half_a_line_and_when_the_disk_is_full(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    path = tmp_path / "events.jsonl"
    path.write_text('{"series": "half"}', encoding="utf-8")
    with IncidentLines(path, TimeFormat(), 10**9) as told:
        told.hear([event("a")])
        before, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20, limits[1]))
        try:
            told.hear([event("b")])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert path.read_bytes() == before
        told.hear([event("c")])
    assert series_in(path) == ["half", "a", "b", "c"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--incidents", "."], "--incidents .: is a directory"),
        (["--alert-label", "a=b"], "--alert-label: is for Alertmanager"),
        (["--metrics-address", "::"], "--metrics-address: is where metrics are listened for"),
        (["--to-alertmanager", "localhost:9093"], "--to-alertmanager: 'localhost:9093' is not a URL"),
        (["--to-alertmanager", "http://h", "--alert-label", "a-b=c"], "--alert-label a-b=c: write NAME=VALUE"),
        (["--to-alertmanager", "http://h", "--alert-label", "a=\udce9"], "its value is no text that can be sent"),
        (["--to-alertmanager", "http://h", "--alert-label", "class=c"], "the label class is taken"),
        (["--from-prometheus", "http://h", "--follow"], "name no file to read or follow"),
        (["--from-prometheus", "http://h"], "no query for 'rtt_ms'"),
    ],
)
def test_what_does_not_go_together_is_one_line(
    run: Path, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["watch", str(run), *options]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


@pytest.mark.parametrize("name", [CONTENT, MANIFEST, WEIGHTS])
@pytest.mark.parametrize(
    "options",
    [
        ["watch", "--incidents"],
        ["watch", "--state"],
        ["predict", "--out"],
        ["predict", "--incidents"],
        ["eval", "--out"],
    ],
)
def test_no_command_writes_into_the_files_of_its_bundle(
    run: Path, source: Path, options: list[str], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, option = options
    bundle = tmp_path / "run"
    shutil.copytree(run, bundle)
    before = {path.name: path.read_bytes() for path in bundle.iterdir()}
    assert main([command, str(bundle), str(source), option, str(bundle / name)]) == 2
    assert f"{option} " in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in bundle.iterdir()} == before
