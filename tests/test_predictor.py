"""A trained bundle at work: one answer for a row, however the rows arrive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from netanomaly.errors import ConfigError, DataError
from netanomaly.predictor import NO_DATA, UNKNOWN, Predictor, load
from netanomaly.run import train
from networks import CLASSES, METRICS, link, network, settings

WINDOW = 8
PROBABILITIES = [f"p_{name}" for name in CLASSES]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("predictor") / "run"
    train(settings(directory), frames=network())
    return directory


@pytest.fixture(scope="module")
def predictor(run: Path) -> Predictor:
    return load(run)


@pytest.fixture
def frame() -> pd.DataFrame:
    """Links that were not in training."""
    return network("xyz", rows=180)


def _same(found: pd.DataFrame, expected: pd.DataFrame, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(found[PROBABILITIES], expected[PROBABILITIES], rtol=0, atol=tolerance)
    np.testing.assert_allclose(found["confidence"], expected["confidence"], rtol=0, atol=tolerance)


def test_a_row_out_for_every_row_in(predictor: Predictor, frame: pd.DataFrame) -> None:
    found = predictor.predict(frame)
    assert list(found.columns) == ["series", "timestamp", "label", "confidence", *PROBABILITIES, "novelty"]
    assert found["series"].tolist() == frame["link"].tolist()
    assert found["timestamp"].tolist() == frame["timestamp"].tolist()


def test_it_names_faults_of_links_that_it_has_not_seen(predictor: Predictor, frame: pd.DataFrame) -> None:
    found = predictor.predict(frame)["label"]
    is_known = found != UNKNOWN
    assert is_known.mean() > 0.85  # with four links to learn from
    assert (found[is_known] == frame["label"][is_known]).mean() > 0.9


def test_the_label_is_the_most_probable_class(predictor: Predictor, frame: pd.DataFrame) -> None:
    found = predictor.predict(frame)
    known = found[~found["label"].isin([NO_DATA, UNKNOWN])]
    np.testing.assert_allclose(known[PROBABILITIES].sum(axis=1), 1.0, rtol=0, atol=1e-9)
    assert known["label"].tolist() == [CLASSES[i] for i in known[PROBABILITIES].to_numpy().argmax(axis=1)]
    assert known["confidence"].tolist() == known[PROBABILITIES].max(axis=1).tolist()


def test_order_of_rows_does_not_matter(predictor: Predictor, frame: pd.DataFrame) -> None:
    shuffled = frame.sample(frac=1, random_state=0)
    _same(predictor.predict(shuffled).loc[frame.index], predictor.predict(frame))


def test_other_series_do_not_matter(predictor: Predictor, frame: pd.DataFrame) -> None:
    together = predictor.predict(frame)
    for name in "xyz":
        rows = frame["link"] == name
        _same(predictor.predict(frame[rows]), together[rows])


def test_later_rows_do_not_matter(predictor: Predictor) -> None:
    whole = link("x", rows=180)
    expected = predictor.predict(whole)
    for rows in (WINDOW, 60, 61, 179):
        _same(predictor.predict(whole.head(rows)), expected.head(rows))


@pytest.mark.parametrize("start", [70, 91, 130])
@pytest.mark.parametrize("holes", [False, True])
def test_rows_after_their_context_do_not_depend_on_what_came_before(
    predictor: Predictor, start: int, holes: bool
) -> None:
    whole = link("x", rows=180)
    if holes:  # missing rows become masked steps
        whole = whole.drop(index=np.random.default_rng(0).choice(180, 30, replace=False)).reset_index(drop=True)
    first = start - predictor.facts["history_rows"]
    tail = predictor.predict(whole.iloc[first:])
    _same(tail.loc[start:], predictor.predict(whole).loc[start:])


def test_context_is_not_longer_than_it_has_to_be(predictor: Predictor) -> None:
    history, start = predictor.facts["history_rows"], 100
    whole = link("x", rows=180)
    changed = whole.copy()
    changed.loc[start - history, list(METRICS)] *= 3  # the oldest row that row `start` depends on
    before, after = predictor.predict(whole), predictor.predict(changed)
    assert (before[PROBABILITIES].loc[start] != after[PROBABILITIES].loc[start]).any()
    _same(after.loc[start + 1 :], before.loc[start + 1 :])


def test_rows_after_a_long_gap_start_afresh(predictor: Predictor) -> None:
    whole = link("x", rows=180)
    _same(predictor.predict(whole.drop(index=range(60, 90))).loc[90:], predictor.predict(whole.loc[90:]))


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
def test_a_file_is_read_as_the_frame(predictor: Predictor, frame: pd.DataFrame, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"links.{suffix}"
    if suffix == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    pd.testing.assert_frame_equal(predictor.predict_files([path]), predictor.predict(frame))


def test_several_files_are_read_as_one(predictor: Predictor, frame: pd.DataFrame, tmp_path: Path) -> None:
    paths = [tmp_path / "2.csv", tmp_path / "1.csv"]
    for path, (start, stop) in zip(paths, ((0, 250), (250, 540)), strict=True):  # cut inside a series
        frame.iloc[start:stop].to_csv(path, index=False)
    pd.testing.assert_frame_equal(predictor.predict_files(paths), predictor.predict(frame))


def test_numbers_may_be_text(predictor: Predictor, frame: pd.DataFrame) -> None:
    text = frame.astype({name: str for name in METRICS})
    assert not pd.api.types.is_numeric_dtype(text["rtt_ms"])
    _same(predictor.predict(text), predictor.predict(frame), tolerance=0)


def test_times_may_be_datetimes(predictor: Predictor, frame: pd.DataFrame) -> None:
    timed = frame.assign(timestamp=pd.to_datetime(frame["timestamp"]))
    _same(predictor.predict(timed), predictor.predict(frame), tolerance=0)


@pytest.mark.parametrize("change", ["no label", "unlabelled", "labels unknown", "more columns"])
def test_labels_and_other_columns_do_not_matter(predictor: Predictor, frame: pd.DataFrame, change: str) -> None:
    changed = {
        "no label": frame.drop(columns="label"),
        "unlabelled": frame.assign(label=""),
        "labels unknown": frame.assign(label="never seen"),
        "more columns": frame.assign(comment="x", p_normal=1.0, series="?"),
    }[change]
    pd.testing.assert_frame_equal(predictor.predict(changed), predictor.predict(frame))


@pytest.mark.parametrize("kind", ["reversed", "text", "repeated", "two levels", "times"])
def test_the_index_is_kept(predictor: Predictor, kind: str) -> None:
    rows = link("x", rows=40)
    rows.index = {
        "reversed": pd.RangeIndex(39, -1, -1),
        "text": pd.Index([f"row {i}" for i in range(40)], name="line"),
        "repeated": pd.Index([7] * 40),
        "two levels": pd.MultiIndex.from_product([range(4), range(10)], names=["a", "b"]),
        "times": pd.DatetimeIndex(rows["timestamp"]),
    }[kind]
    found = predictor.predict(rows)
    pd.testing.assert_index_equal(found.index, rows.index)
    _same(found, predictor.predict(rows.reset_index(drop=True)), tolerance=0)


def test_the_frame_given_is_not_changed(predictor: Predictor, frame: pd.DataFrame) -> None:
    before = frame.copy(deep=True)
    predictor.predict(frame)
    pd.testing.assert_frame_equal(frame, before)


def test_predicting_twice_gives_the_same(predictor: Predictor, frame: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(predictor.predict(frame), predictor.predict(frame))


def test_predicting_draws_no_random_numbers(predictor: Predictor, frame: pd.DataFrame) -> None:
    before = torch.get_rng_state()
    predictor.predict(frame)
    assert torch.equal(torch.get_rng_state(), before)


def test_loading_draws_no_random_numbers(run: Path) -> None:
    before = torch.get_rng_state()
    load(run)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_loaded_bundle_says_what_the_trained_one_said(tmp_path: Path, frame: pd.DataFrame) -> None:
    trained = train(settings(tmp_path / "run", training={"epochs": 1}), frames=network("aef"))
    pd.testing.assert_frame_equal(load(tmp_path / "run").predict(frame), trained.predict(frame))


@pytest.fixture
def outage() -> pd.DataFrame:
    """A link that was not measured for longer than a window."""
    rows = link("x")
    rows.loc[60:79, list(METRICS)] = np.nan
    return rows


def test_rows_without_any_measurement_have_no_data(predictor: Predictor, outage: pd.DataFrame) -> None:
    found = predictor.predict(outage)
    empty = outage[list(METRICS)].isna().all(axis=1)
    assert empty.sum() > 20
    assert ((found["label"] == NO_DATA) == empty).all()
    assert (found.loc[empty, ["confidence", *PROBABILITIES]] == 0).all(axis=None)


def test_nothing_is_nan_around_rows_without_data(predictor: Predictor, outage: pd.DataFrame) -> None:
    assert not predictor.predict(outage).isna().any(axis=None)


def test_rows_without_data_are_as_good_as_no_rows(predictor: Predictor) -> None:
    rows = link("x")
    rows.loc[100:104, list(METRICS)] = np.nan
    _same(predictor.predict(rows).drop(index=range(100, 105)), predictor.predict(rows.drop(index=range(100, 105))))


def test_an_input_without_any_data_has_no_data_and_no_error(predictor: Predictor) -> None:
    rows = link("x")
    rows[list(METRICS)] = np.nan
    assert (predictor.predict(rows)["label"] == NO_DATA).all()


@pytest.mark.parametrize("rows", [1, WINDOW - 1])
def test_fewer_rows_than_a_window_are_refused(predictor: Predictor, rows: int) -> None:
    with pytest.raises(DataError, match=f"has {rows} rows, one window needs {WINDOW}"):
        predictor.predict(link("x").head(rows))


def test_many_short_series_are_not_one_long_one(predictor: Predictor) -> None:
    short = pd.concat([link(name).head(WINDOW - 1) for name in "xyz"], ignore_index=True)
    with pytest.raises(DataError, match=f"one window needs {WINDOW}"):
        predictor.predict(short)


def test_exactly_one_window_is_enough(predictor: Predictor) -> None:
    assert len(predictor.predict(link("x").head(WINDOW))) == WINDOW


def test_a_short_series_beside_a_long_one_is_labelled(predictor: Predictor) -> None:
    rows = pd.concat([link("x"), link("y").head(3)], ignore_index=True)
    assert set(predictor.predict(rows).loc[200:, "label"]) <= set(CLASSES)


@pytest.mark.parametrize("column", ["rtt_ms", "timestamp", "link"])
def test_a_missing_column_is_named(predictor: Predictor, frame: pd.DataFrame, column: str) -> None:
    with pytest.raises(DataError, match=f"frame: no column '{column}'"):
        predictor.predict(frame.drop(columns=column))


def test_a_file_that_is_not_there_is_named(predictor: Predictor, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"links\.csv: no such file"):
        predictor.predict_files([tmp_path / "links.csv"])


def test_no_rows_are_refused(predictor: Predictor, frame: pd.DataFrame) -> None:
    with pytest.raises(DataError, match="frame: no rows"):
        predictor.predict(frame.head(0))


@pytest.mark.parametrize(
    "override",
    [
        "model.window=9",
        "model.sequence_model.depth=2",
        "model.read_out=mean",
        "model.sequence_model.positions.base=100",
        "channels.baselines=32",
        "channels.kinds=[level]",
        "data.metrics=[rtt_ms]",
        "data.metrics=[loss_ratio, rtt_ms, throughput_bps]",
        "data.metrics=[rtt_ms, throughput_bps, other]",
    ],
)
def test_an_override_that_would_change_the_model_is_refused(run: Path, override: str) -> None:
    with pytest.raises(ConfigError, match=f"--set {override.split('=')[0].split('.')[0]}"):
        load(run, overrides=[override])


@pytest.mark.parametrize(
    "override", ["seed=1", "training.epochs=1", "data.split={by: series, validation: [e], test: [a]}"]
)
def test_an_override_of_what_was_trained_is_refused(run: Path, override: str) -> None:
    with pytest.raises(ConfigError):
        load(run, overrides=[override])


@pytest.mark.parametrize("override", ["model.widht=8", "data.nothing=1", "seed", "data.max_gap=soon"])
def test_an_override_that_is_wrong_is_refused(run: Path, override: str) -> None:
    with pytest.raises(ConfigError):
        load(run, overrides=[override])


def _semicolons(frame: pd.DataFrame, path: Path) -> list[str]:
    frame.to_csv(path, index=False, sep=";", decimal=",")
    return ["data.separator=';'", "data.decimal=','"]


def _other_units(frame: pd.DataFrame, path: Path) -> list[str]:
    factors = {"rtt_ms": 1e3, "throughput_bps": 1e-6, "loss_ratio": 100}
    frame.assign(**{name: frame[name] * factor for name, factor in factors.items()}).to_csv(path, index=False)
    return [
        "data.metrics=[{name: rtt_ms, unit: us}, {name: throughput_bps, unit: Mbit/s}, {name: loss_ratio, unit: '%'}]"
    ]


def _other_names(frame: pd.DataFrame, path: Path) -> list[str]:
    frame.rename(columns={"rtt_ms": "delay", "link": "interface"}).to_csv(path, index=False)
    return [
        "data.series=interface",
        "data.metrics=[{name: rtt_ms, unit: ms, column: delay}, {name: throughput_bps, unit: bit/s}, "
        "{name: loss_ratio, unit: ratio}]",
    ]


def _epochs(frame: pd.DataFrame, path: Path) -> list[str]:
    times = pd.to_datetime(frame["timestamp"]).dt.as_unit("s").astype("int64")
    frame.assign(timestamp=times).to_csv(path, index=False)
    return ["data.timestamp.format=epoch", "data.timestamp.unit=s"]


@pytest.mark.parametrize("write", [_semicolons, _other_units, _other_names, _epochs])
def test_files_written_otherwise_give_the_same(
    run: Path, frame: pd.DataFrame, tmp_path: Path, write: Callable[[pd.DataFrame, Path], list[str]]
) -> None:
    overrides = write(frame, tmp_path / "links.csv")
    found = load(run, overrides=overrides).predict_files([tmp_path / "links.csv"])
    _same(found, load(run).predict(frame))


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_a_device_that_is_not_there_is_refused(run: Path) -> None:
    with pytest.raises(ConfigError, match="no CUDA device"):
        load(run, device="cuda")


@pytest.mark.parametrize("missing", [0, 1, 9, 10, 11, 20])
def test_context_of_a_counter_is_enough(tmp_path: Path, missing: int) -> None:
    frame = network("abef")
    frame["throughput_bps"] = frame.groupby("link")["throughput_bps"].transform(lambda rates: rates.fillna(0).cumsum())
    frame.loc[19 : 18 + missing, "throughput_bps"] = np.nan
    frame.loc[19 + missing :, "throughput_bps"] += 40 * frame.loc[18, "throughput_bps"]  # a burst after row 18
    metrics = [
        {"name": "rtt_ms", "unit": "ms"},
        {"name": "throughput_bps", "unit": "bit", "kind": "counter"},
        {"name": "loss_ratio", "unit": "ratio"},
    ]
    predictor = train(settings(tmp_path / "run", data={"metrics": metrics}, training={"epochs": 4}), frames=frame)
    whole = frame[frame["link"] == "a"]
    start = 19 + predictor.facts["history_rows"]
    _same(predictor.predict(whole.loc[19:]).loc[start:], predictor.predict(whole).loc[start:])


def test_context_of_rows_that_share_steps_is_enough(run: Path) -> None:
    whole = link("x", rows=400)
    times = pd.Timestamp("2026-03-01T00:00:00Z") + pd.to_timedelta(400 * np.arange(400), unit="ms")
    whole["timestamp"] = times.map(lambda time: time.isoformat())  # faster than the interval
    predictor = load(run, overrides=["data.duplicates=last"])
    expected = predictor.predict(whole)
    for first in (100, 101, 102):
        start = first + 3 * predictor.facts["history_rows"]  # at most three rows lie on a step
        _same(predictor.predict(whole.loc[first:]).loc[start:], expected.loc[start:])


def test_a_unit_of_another_quantity_is_refused(run: Path) -> None:
    metrics = "[{name: rtt_ms, unit: bit/s}, {name: throughput_bps, unit: bit/s}, {name: loss_ratio, unit: ratio}]"
    with pytest.raises(ConfigError, match="same"):
        load(run, overrides=f"data.metrics={metrics}")


def test_one_file_may_be_given_as_a_path(predictor: Predictor, frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.to_csv(tmp_path / "new.csv", index=False)
    _same(predictor.predict_files(tmp_path / "new.csv"), predictor.predict(frame))


@pytest.mark.parametrize("value", [1e160, -1e200, 1e300, 1.7e308])
def test_values_near_the_largest_float_are_labelled_without_a_warning(
    predictor: Predictor, frame: pd.DataFrame, value: float
) -> None:
    frame.loc[[3, 100], "throughput_bps"] = value
    assert np.isfinite(predictor.predict(frame)[PROBABILITIES].to_numpy()).all()


@pytest.mark.parametrize("value", [1e160, -1e200, 1e300])
def test_values_near_the_largest_float_do_not_stop_training(tmp_path: Path, value: float) -> None:
    frame = network()
    frame.loc[[3, 700, 1100], "throughput_bps"] = value
    train(settings(tmp_path / "run", training={"epochs": 1}), frames=frame)
    assert (tmp_path / "run" / "evaluation.json").exists()


@pytest.mark.parametrize("wrong", ["links.csv", [1], None, np.zeros((3, 3))], ids=["text", "list", "none", "array"])
def test_what_is_no_frame_is_refused(predictor: Predictor, wrong: object) -> None:
    with pytest.raises(DataError, match="expected a pandas DataFrame"):
        predictor.predict(wrong)  # type: ignore[arg-type]


def test_the_number_of_threads_counts_while_it_computes_and_not_after(run: Path, frame: pd.DataFrame) -> None:
    seen: list[int] = []
    predictor = load(run, overrides=["threads=1"])
    predictor.model.register_forward_hook(lambda *_: seen.append(torch.get_num_threads()))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        predictor.predict(frame)
        assert set(seen) == {1} and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
