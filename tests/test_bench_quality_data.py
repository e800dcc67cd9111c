"""The data sets of the benchmark of quality: configs without tuning, folds, variants that are what they say."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest

from netanomaly.config import load_config
from netanomaly.prepare import prepare

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts.bench import quality_variants as variants  # noqa: E402
from scripts.bench.quality_data import DATASETS, folds, leave_one_out  # noqa: E402
from scripts.bench.quality_run import open_dataset  # noqa: E402


def test_every_link_judges_once_and_never_trains_then() -> None:
    [testbed] = folds("testbed_a", None, Path())
    splits = [config.data.split.model_dump() for config in leave_one_out(testbed)]
    assert sorted(split["test"][0] for split in splits) == [f"a{n:02d}" for n in range(1, 9)]
    for split in splits:
        assert len({*split["train"], *split["validation"], *split["test"]}) == 8
        assert len(split["train"]) == 6


def test_data_sets_that_are_not_bundled_ask_for_their_place() -> None:
    with pytest.raises(ValueError, match="--data-root"):
        open_dataset("kddi_ipcore", None, Path())
    with pytest.raises(ValueError, match="no data set 'kddi'"):
        open_dataset("kddi", None, Path())


@pytest.mark.parametrize("path", sorted((ROOT / "configs" / "benchmark").glob("*.yaml")), ids=lambda path: path.stem)
def test_configs_hold_nothing_but_data(path: Path) -> None:
    config = load_config(path)
    assert path.stem in DATASETS
    assert config.to_dict() == load_config({"data": config.to_dict()["data"], "run_dir": config.run_dir}).to_dict()


@pytest.fixture(scope="module")
def testbed() -> tuple[pd.DataFrame, dict[str, str]]:
    frame = pd.read_csv(ROOT / "data" / "testbed" / "data.csv.gz").sort_values(["series", "timestamp"])
    split = pd.read_csv(ROOT / "data" / "testbed" / "split.csv")
    return frame.reset_index(drop=True), dict(zip(split["series"], split["split"], strict=True))


def lengths(frame: pd.DataFrame) -> list[int]:
    groups = [group["label"].to_numpy(dtype=object) for _, group in frame.groupby("series")]
    return [len(rows) for labels in groups for rows in variants.incidents(labels)]


def steps(frame: pd.DataFrame) -> set[float]:
    times = pd.to_datetime(frame["timestamp"], format="ISO8601")
    return set(times.groupby(frame["series"]).diff().dropna().dt.total_seconds())


def test_short_faults(testbed: tuple[pd.DataFrame, dict[str, str]]) -> None:
    made = variants.short(*testbed)
    assert set(lengths(made)) == {5} and steps(made) == {0.5}
    assert (made["label"] == "normal").sum() == (testbed[0]["label"] == "normal").sum()
    assert len(lengths(made)) == len(lengths(testbed[0]))


def test_long_faults(testbed: tuple[pd.DataFrame, dict[str, str]]) -> None:
    frame = testbed[0][testbed[0]["series"].isin(["a01", "a08"])]
    made = variants.day(frame, testbed[1])
    assert set(lengths(made)) == {2_000} and steps(made) == {0.5}
    metrics = list(frame.columns[2:])
    known = set(map(tuple, frame[metrics].fillna(-1).to_numpy().tolist()))
    assert set(map(tuple, made[metrics].fillna(-1).to_numpy().tolist())) <= known  # nothing is made up


def test_fast_links_are_those_of_the_test(testbed: tuple[pd.DataFrame, dict[str, str]]) -> None:
    frame, parts = testbed
    made = variants.fast(frame, parts)
    test = frame["series"].map(parts) == "test"
    ratio = made["throughput_rx_bps"] / frame["throughput_rx_bps"]
    assert (ratio[test & (frame["throughput_rx_bps"] > 0)].round(9) == 10).all()
    pd.testing.assert_frame_equal(made[~test], frame[~test], check_dtype=False)
    pd.testing.assert_series_equal(made["rtt_ms"], frame["rtt_ms"])


def test_rare_faults(testbed: tuple[pd.DataFrame, dict[str, str]]) -> None:
    frame, parts = testbed
    made = variants.rare(frame, parts)
    part = made["series"].map(parts)
    for name in ("train", "val", "test"):
        rows = made[part == name]
        assert (rows["label"] != "normal").mean() == pytest.approx(0.01, abs=0.002)
        assert set(rows["label"]) == set(frame["label"])
    assert steps(made) == {0.5}


def test_fewer_rows_and_fewer_metrics(testbed: tuple[pd.DataFrame, dict[str, str]]) -> None:
    assert len(variants.missing(*testbed)) == pytest.approx(0.7 * len(testbed[0]), rel=0.02)
    assert list(variants.two_metrics(*testbed).columns[2:-1]) == ["throughput_rx_bps", "rtt_ms"]


def test_the_same_files_every_time_and_a_config_reads_them(tmp_path: Path) -> None:
    [config] = folds("testbed_2metrics", None, tmp_path)
    file = tmp_path / "variants" / "testbed_2metrics" / "data.csv.gz"
    before = file.read_bytes()
    folds("testbed_2metrics", None, tmp_path)
    assert file.read_bytes() == before and before[4:8] == bytes(4)  # no time of writing in it
    assert prepare(config).report["test"]["series"] == ["a07", "a08"]
