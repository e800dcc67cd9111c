"""Metrics that cannot help or would mislead: what is said of them, whose rows are mended, and what test rows tell."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from netanomaly import train
from netanomaly.config import load_config
from netanomaly.data.splits import TEST, TRAIN, VALIDATION
from netanomaly.data_quality import fill_gaps_of_labels, tell_useless_metrics
from netanomaly.prepare import Prepared, prepare
from networks import CLASSES, METRICS, network, settings

NAN = np.nan
VALUES = list(METRICS)
RTT, LOSS = 0, 2


def _prepared(frame: pd.DataFrame, **sections: Any) -> Prepared:
    return prepare(load_config(settings(Path("nowhere"), **sections)), frame)


def _said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_metrics_that_say_nothing_are_named(caplog: pytest.LogCaptureFixture) -> None:
    """Test and validation rows do not count: there the metrics move."""
    frame = network()
    learnt = frame["link"].isin(list("abcd"))
    frame.loc[learnt, "rtt_ms"] = NAN
    frame.loc[learnt, "loss_ratio"] = np.where(np.arange(learnt.sum()) % 3 == 0, NAN, 0.5)
    tell_useless_metrics(_prepared(frame))
    assert _said(caplog) == [
        "1 of 3 metrics are missing in every training row: rtt_ms",
        "1 of 3 metrics are constant in the training rows: loss_ratio",
    ]


def test_nothing_is_said_of_metrics_that_move(caplog: pytest.LogCaptureFixture) -> None:
    frame = network()
    frame.loc[frame["link"].isin(["e", "f"]), VALUES] = 1.0  # outside training
    tell_useless_metrics(_prepared(frame))
    assert _said(caplog) == []


def _hand_made(rows: int = 40, *, links: str = "abcdef") -> pd.DataFrame:
    """Links with a measured and labelled row in four; between them rows without labels that lack the loss.

    Values count the rows, so that each tells where it was taken from.
    """
    frames = []
    for number, name in enumerate(links):
        at = np.arange(rows)
        frame = pd.DataFrame({metric: 1000.0 * number + at for metric in VALUES})
        frame.insert(0, "timestamp", pd.date_range("2026-03-01", periods=rows, freq="s", tz="UTC").astype(str))
        frame.insert(1, "link", name)
        frame["label"] = np.where(at % 4 == 0, np.where(at % 8 == 0, *CLASSES[:2]), "")
        frame.loc[at % 4 != 0, "loss_ratio"] = NAN
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def _losses(prepared: Prepared) -> dict[str, list[float]]:
    return {segment.series: segment.values[:, LOSS].tolist() for segment in prepared.grid.segments}


def test_gaps_take_the_nearest_value(caplog: pytest.LogCaptureFixture) -> None:
    before = _prepared(_hand_made())
    found = _losses(fill_gaps_of_labels(before))
    nearest = [0, 0, 0, *np.repeat(np.arange(4, 36, 4), 4), *[36] * 5]  # the earlier of two that are as near
    for number, name in enumerate("abcde"):  # e: validation
        assert found[name] == [1000 * number + value for value in nearest]
    np.testing.assert_equal(found["f"], _losses(before)["f"])  # test
    (message,) = _said(caplog)
    assert message == (
        "1 of 3 metrics are missing where rows are unlabelled and measured where they are labelled, which gives "
        "labels away; for training, gaps are filled from the nearest row: loss_ratio"
    )


def test_gaps_are_filled_no_further_than_other_gaps() -> None:
    found = _losses(fill_gaps_of_labels(_prepared(_hand_made(), data={"max_gap": 1})))["b"]
    by_hand = [NAN if row % 4 == 2 else 1000 + (row + 1) // 4 * 4 for row in range(39)]
    np.testing.assert_equal(found, [*by_hand, NAN])  # the last one is three rows away


def test_what_is_given_stays_as_it_is() -> None:
    before = _prepared(_hand_made())
    given = [segment.values.copy() for segment in before.grid.segments]
    after = fill_gaps_of_labels(before)
    for values, old, new in zip(given, before.grid.segments, after.grid.segments, strict=True):
        np.testing.assert_equal(old.values, values)
        measured = ~np.isnan(values)
        np.testing.assert_array_equal(new.values[measured], values[measured])
        assert (new.labels is old.labels, new.series) == (True, old.series)
    assert after.split is before.split


def test_without_unlabelled_rows_missing_values_stay_missing(caplog: pytest.LogCaptureFixture) -> None:
    frame = network()
    frame.loc[np.arange(len(frame)) % 2 == 0, "rtt_ms"] = NAN
    before = _prepared(frame)
    assert fill_gaps_of_labels(before) is before
    assert _said(caplog) == []


def test_unlabelled_rows_that_are_measured_are_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    frame = _hand_made()
    frame["loss_ratio"] = frame["rtt_ms"]
    before = _prepared(frame)
    assert fill_gaps_of_labels(before) is before
    assert _said(caplog) == []


def test_only_gaps_of_training_rows_tell(caplog: pytest.LogCaptureFixture) -> None:
    frame = _hand_made(160)
    learnt = frame["link"] == "a"
    frame.loc[learnt, "loss_ratio"] = frame.loc[learnt, "rtt_ms"]
    split = {"by": "series", "train": ["a"], "validation": ["b"], "test": ["c", "d", "e", "f"]}
    before = _prepared(frame, data={"split": split})
    assert fill_gaps_of_labels(before) is before
    assert _said(caplog) == []


def test_many_names_are_cut_short(caplog: pytest.LogCaptureFixture) -> None:
    frame = _hand_made()
    names = [f"m{number}" for number in range(10)]
    for name in names:
        frame[name] = frame["loss_ratio"]
    metrics = [{"name": "rtt_ms"}, *({"name": name} for name in names)]
    fill_gaps_of_labels(_prepared(frame, data={"metrics": metrics}))
    (message,) = _said(caplog)
    assert message.startswith("10 of 11 metrics are missing where rows are unlabelled")
    assert message.endswith(": m0, m1, m2, m3, m4, m5, m6, m7, ...")


def test_inside_a_series_test_rows_stay_as_they_are() -> None:
    """One link, split by time: what is filled ends where the test part begins."""
    split = {"by": "time", "validation": 0.25, "test": 0.25}
    short = {"channels": {"baselines": [4]}, "model": {"window": 2, "stem": 1}}
    before = _prepared(_hand_made(240, links="a"), data={"split": split}, **short)
    after = fill_gaps_of_labels(before)
    (parts,), (old,), (new,) = before.split.parts, before.grid.segments, after.grid.segments
    assert {TRAIN, VALIDATION, TEST} <= set(parts.tolist())
    mended = (parts == TRAIN) | (parts == VALIDATION)
    assert not np.isnan(new.values[mended]).any()
    np.testing.assert_equal(new.values[~mended], old.values[~mended])
    np.testing.assert_equal(new.values[:, RTT], old.values[:, RTT])


PIECES = {
    "a": [("train", 0, 400), ("test", 400, 500), ("train", 500, 900)],
    "b": [("validation", 0, 400), ("test", 400, 900)],
    "c": [("test", 0, 300), ("train", 300, 900)],
    "d": [("train", 0, 350), ("validation", 350, 600), ("test", 600, 900)],
}
"""Parts inside series, in rows: test before, between and after the others."""


def _split(path: Path) -> dict[str, Any]:
    """The same as a table."""
    start = pd.Timestamp("2026-03-01T00:00:00Z")
    lines = [
        ",".join([name, *((start + pd.Timedelta(seconds=row)).isoformat() for row in bounds), part])
        for name, pieces in PIECES.items()
        for part, *bounds in pieces
    ]
    path.write_text("\n".join(["series,t_start,t_end,split", *lines]), encoding="utf-8")
    return {"by": "table", "path": str(path)}


def _learnt(directory: Path, frame: pd.DataFrame) -> dict[str, Any]:
    """All that training decides, without the seconds it took."""
    chosen = settings(
        directory / "run",
        data={"split": _split(directory / "split.csv")},
        channels={"baselines": "auto", "levels": "auto"},
        model={"window": "auto", "stem": "auto"},
        training={"epochs": 2},
    )
    found = train(chosen, frames=frame, overwrite=True)
    epochs = [json.loads(line) for line in (directory / "run" / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    return {
        "config": found.config,
        "classes": found.classes,
        "channels": found.channels.state(),
        "weights": {name: weight.tolist() for name, weight in found.model.state_dict().items()},
        "training": {**found.facts["training"], "seconds": None},
        "epochs": [{**epoch, "seconds": None} for epoch in epochs],
        "rows": found.facts["split"]["train"],
    }


@pytest.mark.parametrize("label_gaps", [False, True])
def test_inside_series_nothing_is_learnt_or_chosen_from_test_rows(tmp_path: Path, label_gaps: bool) -> None:
    """Other values, gaps, labels, a new class and no label at all there; few training rows show at once."""
    frame = network("abcd", 900)
    at = np.arange(len(frame)) % 900
    if label_gaps:
        frame.loc[at % 3 == 0, ["label", "throughput_bps"]] = ["", NAN]
    tested = np.zeros(len(frame), dtype=bool)
    for name, pieces in PIECES.items():
        for part, first, stop in pieces:
            tested |= (frame["link"] == name) & (at >= first) & (at < stop) & (part == "test")
    spoilt, rng = frame.copy(), np.random.default_rng(9)
    spoilt.loc[tested, VALUES] = rng.lognormal(3, 2, (tested.sum(), len(VALUES)))
    spoilt.loc[tested & (at % 5 == 0), VALUES[:2]] = NAN
    spoilt.loc[tested, "label"] = rng.choice([*CLASSES, "unheard_of", ""], tested.sum())
    before = _learnt(tmp_path, frame)
    assert before["rows"]["rows"] > 300
    assert _learnt(tmp_path, spoilt) == before
    touched = frame.copy()
    touched.loc[(frame["link"] == "c") & (at >= 700) & (at < 704), "rtt_ms"] *= 2
    assert _learnt(tmp_path, touched)["weights"] != before["weights"]


@pytest.mark.parametrize("purge", [None, 0])
@pytest.mark.parametrize("spoilt", [TEST, VALIDATION])
def test_gaps_at_a_boundary_take_nothing_from_another_part(purge: int | None, spoilt: int) -> None:
    """Blocks of 20 unlabelled rows without loss, one of them across the boundary of two parts."""
    at = np.arange(400)
    frame = pd.DataFrame({"timestamp": pd.date_range("2026-03-01", periods=400, freq="s", tz="UTC").astype(str)})
    frame = frame.assign(link="a", rtt_ms=1.0 + at % 7, throughput_bps=1.0 + at % 5, loss_ratio=1.0 + at % 3)
    unlabelled = (at // 20) % 2 == 1
    frame["label"] = np.where(unlabelled, "", np.where(at % 2 == 0, "normal", "congestion")).astype(object)
    frame.loc[unlabelled, "loss_ratio"] = np.nan
    split = {"by": "time", "validation": "2026-03-01T00:03:15Z", "test": "2026-03-01T00:04:35Z", "purge": purge}
    spans = {"channels": {"baselines": [4]}, "model": {"window": 2, "stem": 1}}
    config = load_config(settings(Path("nowhere"), data={"split": split}, **spans))
    before = prepare(config, frame)
    parts = before.split.parts[0]
    frame.loc[parts == spoilt, "loss_ratio"] *= 1e6
    one, other = (fill_gaps_of_labels(found).grid.segments[0].values for found in (before, prepare(config, frame)))
    rest = (parts >= TRAIN) & (parts < spoilt)
    assert np.isfinite(one[rest, 2]).mean() > np.isfinite(before.grid.segments[0].values[rest, 2]).mean()
    np.testing.assert_equal(one[rest], other[rest])
