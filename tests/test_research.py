"""scripts/research.py compares recipes on rows to train and validate with, and on no others."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
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
        segments.append(replace(segment, values=values, labels=np.where(test, "other", segment.labels)))
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
        assert np.isnan(one.values[test]).all() and (one.labels[test] == UNLABELLED).all()
        np.testing.assert_equal(one.values[~test], before.values[~test])


def test_every_link_but_those_of_the_test_part_is_held_out_once(config: Config, prepared: Prepared) -> None:
    held_out = []
    for fold in research.development_folds(config, TESTBED):
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
