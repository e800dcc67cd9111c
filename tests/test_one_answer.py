"""One answer for a row: however rows arrive, whatever is computed together, from the command line as from Python.

The network is one with all that goes wrong: drift, gaps, resets, missing cells, rows without any value. Answers agree
to 1e-6 and in their label; `watch` writes six digits after the point, which adds half a millionth. Sums of floats in
another order differ in their last bits, so only the same work twice is promised bit for bit.
"""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from netanomaly import Predictor, StreamingPredictor, load, train
from netanomaly.chunked import ChunkedPredictor
from netanomaly.cli import main
from netanomaly.model import band, windows
from netanomaly.predictions import label_files
from netanomaly.training import engine
from networks import network, settings
from streams import MAX_GAP, answers, hard_network, streamed, tables

TOLERANCE = 1e-6
LAST_DIGIT = 5e-7
"""Of what `watch` writes."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a trained model, of counters too, that knows what is unknown to it."""
    directory = tmp_path_factory.mktemp("one_answer")
    frame = network()
    frame["throughput_bps"] = frame.groupby("link")["throughput_bps"].transform(lambda rates: rates.fillna(0).cumsum())
    counter = {"name": "throughput_bps", "unit": "bit/s", "kind": "counter"}
    metrics = [{"name": "rtt_ms", "unit": "ms"}, counter, {"name": "loss_ratio", "unit": "ratio"}]
    split = {"by": "series", "validation": ["e"], "test": []}  # nothing to evaluate
    data = {"max_gap": MAX_GAP, "metrics": metrics, "split": split}
    short = {"baselines": [5, 12]}  # so that the history is shorter than the segments, and what it holds counts
    config = settings(directory / "run", data=data, training={"epochs": 1}, channels=short)
    train(config, frames=frame)
    return directory / "run"


@pytest.fixture(scope="module")
def trained(run: Path) -> Predictor:
    return load(run)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return hard_network(80)


@pytest.fixture(scope="module")
def expected(trained: Predictor, frame: pd.DataFrame) -> pd.DataFrame:
    """What Python says of all rows at once."""
    found = trained.predict(frame)
    assert {"normal", "no_data", "unknown"} < set(found["label"]) and found["novelty"].any()
    return found


def same(found: pd.DataFrame, expected: pd.DataFrame, tolerance: float = TOLERANCE) -> None:
    """Row by row the same label, and the same numbers as near as that; the index does not count."""
    assert list(found) == list(expected)
    for column in ("series", "timestamp", "label"):
        assert found[column].tolist() == expected[column].tolist()
    numbers = list(expected)[3:]  # confidence, probabilities, novelty
    np.testing.assert_allclose(found[numbers], expected[numbers], rtol=0, atol=tolerance)


def parts_by_series(frame: pd.DataFrame, shards: int) -> list[pd.DataFrame]:
    """The frame as so many, each with some of the series; rows keep their order and index."""
    number = {name: place % shards for place, name in enumerate(frame["link"].unique())}
    return [rows for _, rows in frame.groupby(frame["link"].map(number))]


def read(text: str | Path) -> pd.DataFrame:
    """A CSV of answers."""
    return pd.read_csv(io.StringIO(text) if isinstance(text, str) else text, keep_default_na=False)


# Ways to ask: from the run, the frame and a directory to work in, to the answers in the order of the rows


def _command(run: Path, frame: pd.DataFrame, place: Path) -> pd.DataFrame:
    frame.to_csv(place / "rows.csv", index=False)
    command = [sys.executable, "-m", "netanomaly", "predict", str(run), str(place / "rows.csv"), "--quiet"]
    return read(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _command_in_chunks(run: Path, frame: pd.DataFrame, place: Path) -> pd.DataFrame:
    frame.to_csv(place / "rows.csv", index=False)
    out = place / "answers.csv"
    arguments = ["predict", run, place / "rows.csv", "--chunk-rows", 23, "--out", out, "--quiet"]
    assert main([str(argument) for argument in arguments]) == 0
    return read(out)


def _files(run: Path, frame: pd.DataFrame, place: Path) -> pd.DataFrame:
    frame.to_csv(place / "rows.csv.gz", index=False)
    return load(run).predict_files(place / "rows.csv.gz")


def _files_of_shards(run: Path, frame: pd.DataFrame, place: Path) -> pd.DataFrame:
    """Cut by series into files, each labelled by a call of its own."""
    found = []
    for number, rows in enumerate(parts_by_series(frame, 3)):
        rows.to_csv(place / f"{number}.csv", index=False)
        label_files(load(run), [str(place / f"{number}.csv")], place / f"answers-{number}.csv", 50)
        found.append(read(place / f"answers-{number}.csv").set_index(rows.index))
    return pd.concat(found).loc[frame.index]


def _shards_in_one_call(run: Path, frame: pd.DataFrame, place: Path) -> pd.DataFrame:
    """Cut by series into files, which one call takes together."""
    shards = parts_by_series(frame, 3)
    for number, rows in enumerate(shards):
        rows.to_csv(place / f"{number}.csv", index=False)
    found = load(run).predict_files(str(place / "*.csv"))
    return found.set_index(pd.concat(shards).index).loc[frame.index]


def _chunks(rows: int) -> Callable[[Path, pd.DataFrame, Path], pd.DataFrame]:
    def ask(run: Path, frame: pd.DataFrame, place: Path) -> pd.DataFrame:
        predictor = load(run)
        return pd.concat(list(ChunkedPredictor(predictor).label(tables(predictor, frame, rows))))

    return ask


def _stream(rows: int) -> Callable[[Path, pd.DataFrame, Path], pd.DataFrame]:
    return lambda run, frame, place: streamed(StreamingPredictor(load(run)), frame, rows)


def _streams_of_shards(run: Path, frame: pd.DataFrame, place: Path) -> pd.DataFrame:
    found = [streamed(StreamingPredictor(load(run)), rows, 10) for rows in parts_by_series(frame, 3)]
    return pd.concat(found).loc[frame.index]


WAYS: dict[str, Callable[[Path, pd.DataFrame, Path], pd.DataFrame]] = {
    "the command in a process": _command,
    "the command in chunks": _command_in_chunks,
    "a file": _files,
    "a file per shard, each on its own": _files_of_shards,
    "a file per shard, together": _shards_in_one_call,
    "chunks of 7 rows": _chunks(7),
    "chunks of 64 rows": _chunks(64),
    "a stream, 7 rows at a time": _stream(7),
    "a stream, 64 rows at a time": _stream(64),
    "a stream per shard": _streams_of_shards,
}
ONE_BY_ONE = {"chunks of a row": _chunks(1), "a stream, row by row": _stream(1)}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_every_way_to_ask_has_the_answer_of_python(
    run: Path,
    frame: pd.DataFrame,
    expected: pd.DataFrame,
    tmp_path: Path,
    way: Callable[[Path, pd.DataFrame, Path], pd.DataFrame],
) -> None:
    same(way(run, frame, tmp_path), expected)


@pytest.mark.slow
@pytest.mark.parametrize("way", ONE_BY_ONE.values(), ids=ONE_BY_ONE.keys())
def test_row_by_row_has_the_answer_of_python(
    run: Path,
    frame: pd.DataFrame,
    expected: pd.DataFrame,
    tmp_path: Path,
    way: Callable[[Path, pd.DataFrame, Path], pd.DataFrame],
) -> None:
    same(way(run, frame, tmp_path), expected)


def test_watch_prints_the_answer_of_python(
    run: Path, frame: pd.DataFrame, expected: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame.to_csv(tmp_path / "rows.csv", index=False)
    assert main(["watch", str(run), str(tmp_path / "rows.csv"), "--quiet"]) == 0
    same(answers(capsys.readouterr().out), expected, TOLERANCE + LAST_DIGIT)


# What is computed together


@pytest.mark.parametrize(("stretch", "rows"), [(1, 7), (7, 64), (64, 64), (4096, 1)])
def test_the_size_of_stretches_and_batches_does_not_matter(
    trained: Predictor,
    frame: pd.DataFrame,
    expected: pd.DataFrame,
    monkeypatch: pytest.MonkeyPatch,
    stretch: int,
    rows: int,
) -> None:
    monkeypatch.setattr(engine, "SCORING_STRETCH", stretch)
    monkeypatch.setattr(engine, "SCORING_ROWS", rows)
    same(trained.predict(frame), expected)


@pytest.mark.parametrize("execution", ["sliding", "sdpa", "tiled", "reference"])
def test_how_the_look_ups_are_computed_does_not_matter(
    run: Path, frame: pd.DataFrame, expected: pd.DataFrame, monkeypatch: pytest.MonkeyPatch, execution: str
) -> None:
    monkeypatch.setattr(band, "CELLS", 1)  # the least at a time
    monkeypatch.setattr(windows, "ROWS_AT_ONCE", 5 * 8)  # five windows
    same(load(run, overrides=[f"model.sequence_model.execution={execution}"]).predict(frame), expected)


def test_the_number_of_threads_does_not_matter(run: Path, frame: pd.DataFrame) -> None:
    one, two = (load(run, overrides=[f"threads={threads}"]).predict(frame) for threads in (1, 2))
    same(two, one)


def test_the_same_work_twice_has_the_same_bits(run: Path, frame: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(load(run).predict(frame), load(run).predict(frame), check_exact=True)


# Rows among rows


def _shuffled(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.sample(frac=1, random_state=0)


ORDERS: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "shuffled": _shuffled,
    "backwards": lambda frame: frame.iloc[::-1],
    "series after series": lambda frame: frame.sort_values("link", kind="stable"),
    "series after series, backwards": lambda frame: frame.sort_values("link", kind="stable", ascending=False),
}


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS.keys())
def test_the_order_of_the_rows_does_not_matter(
    trained: Predictor,
    frame: pd.DataFrame,
    expected: pd.DataFrame,
    order: Callable[[pd.DataFrame], pd.DataFrame],
) -> None:
    same(trained.predict(order(frame)).loc[frame.index], expected)


@pytest.mark.parametrize("links", ["w", "xz", "wyz"])
def test_a_subset_of_the_series_has_the_answers_that_it_has_among_all(
    trained: Predictor, frame: pd.DataFrame, expected: pd.DataFrame, links: Sequence[str]
) -> None:
    some = frame["link"].isin(list(links))
    same(trained.predict(frame[some]), expected[some])


@pytest.mark.parametrize("rows", [50, 133])
def test_the_first_rows_have_the_answers_that_they_have_with_later_ones(
    trained: Predictor, frame: pd.DataFrame, expected: pd.DataFrame, rows: int
) -> None:
    same(trained.predict(frame.head(rows)), expected.head(rows))


def test_names_of_series_do_not_matter(trained: Predictor, frame: pd.DataFrame, expected: pd.DataFrame) -> None:
    other = {"w": "z", "x": "a/b", "y": "1", "z": "w"}
    found = trained.predict(frame.assign(link=frame["link"].map(other)))
    assert found["series"].tolist() == frame["link"].map(other).tolist()
    same(found.assign(series=expected["series"]), expected)


# What is given stays


ASKED: dict[str, Callable[[Predictor, pd.DataFrame], object]] = {
    "predict": lambda trained, frame: trained.predict(frame),
    "incidents": lambda trained, frame: trained.incidents(frame),
    "explain": lambda trained, frame: trained.explain(frame, "z", frame["timestamp"].iloc[-1]),
    "stream": lambda trained, frame: StreamingPredictor(trained).update(frame),
    "chunks": lambda trained, frame: list(ChunkedPredictor(trained).label(tables(trained, frame, 50))),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED.keys())
def test_the_frame_that_is_given_stays_as_it_is(
    trained: Predictor, frame: pd.DataFrame, ask: Callable[[Predictor, pd.DataFrame], object]
) -> None:
    given = frame.set_index(pd.Index(range(900, 900 + len(frame)), name="row"))
    before = given.copy(deep=True)
    ask(trained, given)
    pd.testing.assert_frame_equal(given, before, check_exact=True)
