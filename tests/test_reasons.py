"""Reasons: the metric that alone carries a class is named, parts are complete, every model is explained."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from language_models import architecture
from netanomaly import Predictor, load, train
from netanomaly.cli import main
from netanomaly.data.grid import Grid
from netanomaly.data.ingest import NO_PART, Table, table_of_frames
from netanomaly.errors import DataError
from netanomaly.model.attribution import TOLERANCE
from netanomaly.reason import Reason, stretches
from netanomaly.reason_rows import onset
from netanomaly.reasons import AskedIncident
from networks import METRICS, link, settings
from streams import MODELS, form_of, predictor

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts import bench_reasons as bench  # noqa: E402

LINKS, ROWS, LASTS = "abcef", 200, 18
FAULTS = tuple(range(50, ROWS - LASTS, 50))
PEAK = FAULTS[0] + 6
"""A row well inside a fault."""


def only_delay(name: str) -> pd.DataFrame:
    """A link whose faults raise rtt_ms and nothing else; the other metrics are noise."""
    frame = link(name, ROWS)
    rng = np.random.default_rng([1, *name.encode()])
    values = rng.uniform([5.0, 1e6, 0.001], [80.0, 9e8, 0.01]) * (1 + 0.03 * rng.standard_normal((ROWS, len(METRICS))))
    frame[list(METRICS)], frame["label"] = values, "normal"
    for start in FAULTS:
        rows = slice(start, start + LASTS - 1)  # both ends of .loc
        frame.loc[rows, "rtt_ms"] *= 4
        frame.loc[rows, "label"] = "slow"
    return frame


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("reasons")
    pd.concat([only_delay(name) for name in LINKS]).to_csv(directory / "links.csv", index=False)
    data = {**settings(directory)["data"], "root": str(directory), "files": "links.csv"}
    train(settings(directory / "run", data=data, channels={"levels": "hidden"}, training={"epochs": 6}))
    return directory


@pytest.fixture(scope="module")
def trained(run: Path) -> Predictor:
    return load(run / "run")


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """A link that was not in training."""
    return only_delay("x")


def placed(model: Predictor, frame: pd.DataFrame) -> tuple[Table, Grid]:
    table = table_of_frames([(frame, NO_PART, "frame")], form_of(model))
    return table, model.grid(table)


def assert_complete(reason: Reason) -> None:
    wanted = reason.log_odds - reason.usual_log_odds
    assert abs(reason.attribution.sum() - wanted) <= TOLERANCE * max(1, abs(wanted))
    assert reason.residual == pytest.approx(reason.attribution.sum() - wanted, abs=1e-5 * max(1, abs(wanted)))


def test_the_metric_that_alone_carries_the_class_is_named(trained: Predictor, frame: pd.DataFrame) -> None:
    reason = trained.explain(frame, "x", frame["timestamp"][PEAK])
    assert (reason.label, reason.against) == ("slow", "normal")
    assert reason.probability > 0.8 > 0.2 > reason.usual_probability
    first = reason.metrics[0]
    assert first.metric == "rtt_ms" and first.share > 0.85
    usual = frame["rtt_ms"][: FAULTS[0]].median()
    assert first.before == pytest.approx(usual, rel=0.05) and first.value == pytest.approx(4 * usual, rel=0.1)
    assert first.since == frame["timestamp"][FAULTS[0]] == reason.since
    assert first.sentence.startswith("rtt_ms ") and "%) from 00:00:50" in first.sentence
    named = sum(one.share for one in reason.metrics)
    assert named + reason.other_share == pytest.approx(1) and named >= 0.9
    assert_complete(reason)


def test_the_answer_is_that_of_predict(trained: Predictor, frame: pd.DataFrame) -> None:
    labelled = trained.predict(frame)
    for row in (5, 40, PEAK, 199):
        reason = trained.explain(frame, "x", frame["timestamp"][row])
        assert reason.label == labelled["label"][row]
        assert reason.probability == pytest.approx(labelled["confidence"][row], abs=1e-5)
        assert_complete(reason)


def test_a_normal_row_is_compared_with_the_runner_up(trained: Predictor, frame: pd.DataFrame) -> None:
    reason = trained.explain(frame, "x", frame["timestamp"][30])
    assert (reason.label, reason.against, reason.since) == ("normal", "slow", reason.time)


def test_without_what_it_names_the_probability_falls_further(trained: Predictor, run: Path) -> None:
    prepared = bench.prepare(trained.config)
    asked = bench.found_incidents(trained, prepared)
    assert [(one.first, one.label) for one in asked] == [(start, "slow") for start in FAULTS]
    reasons = trained.reasons(prepared.grid.segments, prepared.table, asked)
    cases = bench.cases_of(trained, prepared, asked, reasons)
    rng = np.random.default_rng(0)
    found = {name: bench.compare(trained, cases, test, 10, rng) for name, test in bench.TESTS.items()}
    for name in ("cells", "cells, same rows", "metrics"):
        assert found[name]["named"] < found[name]["random"] - 0.2 and found[name]["named_is_lower"] == 1
    assert found["kept"]["named"] > found["kept"]["random"] + 0.2
    assert found["cells"]["before"] == pytest.approx(np.mean([one.probability for one in reasons]), abs=1e-5)
    nothing = bench.compare(trained, cases, lambda case, _: np.zeros((len(case.valid), 3), dtype=bool), 1, rng)
    assert nothing["named"] == nothing["before"] and nothing["difference"] == 0
    all_of_it = bench.compare(trained, cases, lambda case, _: np.ones((len(case.valid), 3), dtype=bool), 1, rng)
    assert all_of_it["named"] == pytest.approx(np.mean([one.usual_probability for one in reasons]), abs=1e-5)


def test_the_script_prints_a_table(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["--bundle", str(run / "run"), "--out", str(run / "found.json"), "--draws", "2"]
    monkeypatch.setattr(sys, "argv", ["bench_reasons.py", *arguments])
    bench.main()
    report = json.loads((run / "found.json").read_text(encoding="utf-8"))
    assert report["incidents"] == len(FAULTS) and list(report["tests"]) == list(bench.TESTS)
    printed = capsys.readouterr().out
    assert all(f"\n{name} " in printed for name in bench.TESTS)


def test_together_they_are_explained_as_alone(trained: Predictor, frame: pd.DataFrame) -> None:
    both = pd.concat([frame, only_delay("y")], ignore_index=True)
    table, grid = placed(trained, both)
    asked = [AskedIncident(s, start, start + 5, "slow") for start in reversed(FAULTS) for s in (1, 0)]
    together = trained.reasons(grid.segments, table, asked)
    assert [one.series for one in together] == ["y", "x"] * len(FAULTS)
    with torch.inference_mode():  # what the caller has switched off does not matter
        for one, reason in zip(asked, together, strict=True):
            (alone,) = trained.reasons(grid.segments, table, [one])
            np.testing.assert_allclose(alone.attribution, reason.attribution, rtol=0, atol=1e-4)
            assert alone.text() == reason.text()


def test_it_is_plain_json(trained: Predictor, frame: pd.DataFrame) -> None:
    reason = trained.explain(frame, "x", frame["timestamp"][PEAK])
    plain = json.loads(json.dumps(reason.to_dict(), allow_nan=False))
    assert plain["metrics"][0]["sentence"] == reason.metrics[0].sentence
    assert np.array(plain["attribution"]).shape == (len(plain["times"]), len(plain["metric_names"]))
    assert len(plain["looked_up"]) == len(plain["steps"]) and sum(plain["looked_up"]) == pytest.approx(1)
    assert plain["times"][-1] == plain["time"] == frame["timestamp"][PEAK]


@pytest.mark.parametrize("model", MODELS)
def test_every_look_up_is_explained(model: str, frame: pd.DataFrame) -> None:
    untrained = predictor(counter=False, **MODELS[model])
    rows = frame.copy()
    rows.loc[[PEAK - 3, 2], list(METRICS)] = np.nan  # one masked row inside the window, one in that of row 3
    table, grid = placed(untrained, rows)
    found = untrained.reasons(
        grid.segments, table, [AskedIncident(0, PEAK - 4, PEAK, "congestion"), AskedIncident(0, 1, 3, "packet_loss")]
    )
    for reason, peak in zip(found, (PEAK, 3), strict=True):
        assert_complete(reason)
        assert reason.steps.tolist() == list(range(max(0, peak - untrained.model.history_rows), peak + 1))
        assert reason.looked_up is not None and reason.stretches
        assert reason.looked_up.sum() == pytest.approx(1, abs=1e-5)
        masked = np.isin(reason.steps, [PEAK - 3, 2])
        assert masked.any() and not reason.attribution[masked].any() and not reason.looked_up[masked].any()


def test_a_language_model_is_explained_without_a_look_up(frame: pd.DataFrame) -> None:
    choice = {"kind": "language_model", "architecture": architecture("bert")}
    reason = predictor(counter=False, sequence_model=choice).explain(frame, "x", frame["timestamp"][PEAK])
    assert_complete(reason)
    assert reason.looked_up is None and not reason.stretches and "looked up" not in reason.text()


@pytest.mark.parametrize(
    ("series", "at", "message"),
    [
        ("z", "2026-03-01T00:00:40Z", "series 'z': there are no rows of it; there are x"),
        ("x", "2026-03-01T01:00:00Z", r"no row at .* from 2026-03-01T00:00:00Z to 2026-03-01T00:03:19Z"),
        ("x", "2026-02-01T01:00:00Z", "there is no row at"),
        ("x", "noon", "the time to explain, column 'timestamp': found 'noon'"),
        ("x", "2026-03-01T00:00:40Z", "row 40: nothing was measured"),
    ],
)
def test_what_cannot_be_explained_is_an_error(
    trained: Predictor, frame: pd.DataFrame, series: str, at: str, message: str
) -> None:
    rows = frame.copy()
    rows.loc[40, list(METRICS)] = np.nan
    with pytest.raises(DataError, match=message):
        trained.explain(rows, series, at)


def test_a_label_that_is_no_class_is_an_error(trained: Predictor, frame: pd.DataFrame) -> None:
    table, grid = placed(trained, frame)
    with pytest.raises(DataError, match=r"'unknown' is no class of the bundle.*normal, slow"):
        trained.reasons(grid.segments, table, [AskedIncident(0, 50, 60, "unknown")])


@pytest.mark.parametrize(
    "at", ["2026-03-01T00:00:56.9Z", "2026-03-01T01:00:56+01:00", pd.Timestamp("2026-03-01T00:00:56Z")]
)
def test_a_time_may_lie_behind_its_row(trained: Predictor, frame: pd.DataFrame, at: Any) -> None:
    assert trained.explain(frame, "x", at).time == "2026-03-01T00:00:56Z" == frame["timestamp"][56]


def test_the_command_line_prints_it(
    run: Path, frame: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame.to_csv(tmp_path / "new.csv", index=False)
    command = [sys.executable, "-m", "netanomaly", "explain", str(run / "run"), str(tmp_path / "new.csv")]
    command += ["--series", "x", "--at", str(frame["timestamp"][PEAK])]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True)
    expected = load(run / "run").explain(frame, "x", frame["timestamp"][PEAK])
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["metrics"][0]["sentence"] == expected.metrics[0].sentence
    assert main(command[3:]) == 0
    assert capsys.readouterr().out == expected.text() + "\n"


def test_stretches_stand_out_and_go_on_over_rows_that_were_not_measured() -> None:
    shares = np.array([0.3, 0.0, 0.3, 0.05, 0.05, 0.2, 0.1])
    valid = np.array([True, False, True, True, True, True, True])
    found = stretches(shares, np.full(7, 1 / 6), valid, np.array(list("abcdefg"), dtype=object))
    assert [(one.start, one.end, one.rows, one.share) for one in found] == [("a", "c", 2, 0.6), ("f", "f", 1, 0.2)]


def test_an_incident_begins_where_its_label_does() -> None:
    labels = np.array(["ok", "a", "no_data", "a", "b", "no_data", "b", "b"], dtype=object)
    assert [onset(labels, step, "ok") for step in (0, 1, 3, 4, 6, 7)] == [0, 1, 1, 4, 4, 4]
    assert onset(np.array(["no_data", "a"], dtype=object), 1, "ok") == 1
