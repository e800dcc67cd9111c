"""scripts/research.py compares recipes on rows to train and validate with, and on no others."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts import research  # noqa: E402
from scripts.bench.quality_data import TESTBED, folds  # noqa: E402

from netanomaly.config import Config, load_config  # noqa: E402
from netanomaly.data.ingest import UNLABELLED  # noqa: E402
from netanomaly.data.splits import TEST, TRAIN, VALIDATION  # noqa: E402
from netanomaly.prepare import Prepared, prepare  # noqa: E402


@pytest.fixture(scope="module")
def config() -> Config:
    (found,) = folds(TESTBED, None, Path())
    return found


@pytest.fixture(scope="module")
def prepared(config: Config) -> Prepared:
    return prepare(config)


def _spoilt(prepared: Prepared) -> Prepared:
    """With other values and labels in the test rows."""
    segments = []
    for segment, parts in zip(prepared.grid.segments, prepared.split.parts, strict=True):
        test = parts == TEST
        values = np.where(test[:, None], 7.0, segment.values)
        labels = np.where(test, "other", segment.labels)
        segments.append(replace(segment, values=values, labels=labels))
    return replace(prepared, grid=replace(prepared.grid, segments=tuple(segments)))


def test_nothing_of_the_test_rows_is_left(prepared: Prepared) -> None:
    found, other = research.without_test(prepared), research.without_test(_spoilt(prepared))
    assert found.report["test"]["rows"] == 0 and found.report == other.report
    for before, one, two, parts in zip(
        prepared.grid.segments, found.grid.segments, other.grid.segments, prepared.split.parts, strict=True
    ):
        test = parts == TEST
        np.testing.assert_equal(one.values, two.values)
        assert (one.labels == two.labels).all()
        assert np.isnan(one.values[test]).all() and (one.labels[test] == UNLABELLED).all() and not one.valid[test].any()
        np.testing.assert_equal(one.values[~test], before.values[~test])


def test_every_link_but_those_of_the_test_part_is_held_out_once(
    config: Config, prepared: Prepared, tmp_path: Path
) -> None:
    held_out = []
    for fold in research.development_folds(config, TESTBED, tmp_path):
        series = {part: set(fold.report[part]["series"]) for part in ("train", "validation", "test")}
        assert not series["test"] and not series["train"] & series["validation"]
        held_out += sorted(series["validation"])
        assert {int(part) for parts in fold.split.parts for part in np.unique(parts)} <= {-1, TRAIN, VALIDATION}
    known = {*prepared.report["train"]["series"], *prepared.report["validation"]["series"]}
    assert sorted(held_out) == sorted(known)


@pytest.mark.parametrize("topic", research.TOPICS)
def test_every_variant_is_a_config(config: Config, topic: str) -> None:
    variants = [load_config(config, changes) for changes in research.TOPICS[topic].values()]
    assert len({found.to_yaml() for found in variants}) == len(variants)


def test_the_table_says_what_a_variant_changes() -> None:
    table = research.as_table("t", {"one": {"d": [0.5, 0.7]}, "other": {"d": [0.6, 0.9]}}, ["d"])
    assert table.splitlines()[-2:] == ["| one | 0.600 |", "| other | 0.750 (+0.150 ± 0.050) |"]


def test_spoilt_test_rows_in_the_file_change_no_fold(config: Config, tmp_path: Path) -> None:
    frame = pd.read_csv(ROOT / "data" / "testbed" / "data.csv.gz", dtype=str)
    test = frame["series"].isin(["a07", "a08"])
    for column in frame.columns.difference(["series", "timestamp", "label"]):
        frame.loc[test, column] = "7"
    frame.loc[test, "label"] = "other"
    frame.to_csv(tmp_path / "data.csv", index=False)
    spoilt = load_config(config, [f"data.files={json.dumps(str(tmp_path / 'data.csv'))}"])
    pairs = zip(*(research.development_folds(found, TESTBED, tmp_path) for found in (config, spoilt)), strict=True)
    for one, other in islice(pairs, 1):
        assert one.report == other.report and one.config.model == other.config.model
        assert one.config.channels == other.config.channels
        for mine, theirs in zip(one.grid.segments, other.grid.segments, strict=True):
            np.testing.assert_equal(mine.values, theirs.values)
            assert (mine.labels == theirs.labels).all() and (mine.valid == theirs.valid).all()


def test_parts_of_other_sessions_change_places() -> None:
    given = pd.DataFrame({"series": ["a", "b", "c"], "split": ["train", "val", "test"]})
    first, second = research._tables(given, "snmp_mib")
    assert first["split"].tolist() == ["train", "val", "test"] and second["split"].tolist() == ["val", "train", "test"]
    assert len(list(research._tables(given, "kddi_ipcore"))) == 1
