"""Gaps of metrics that give labels away."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from netanomaly.config import load_config
from netanomaly.data_quality import fill_gaps_of_labels
from netanomaly.label_gaps import filled, tied_to_labels
from netanomaly.prepare import Prepared, prepare
from networks import network, settings

NAN = np.nan


@pytest.mark.parametrize(
    ("given", "reach", "wanted"),
    [
        ([1, NAN, NAN, 4], 5, [1, 1, 4, 4]),
        ([1, NAN, NAN, NAN, 5], 5, [1, 1, 1, 5, 5]),  # the earlier of two that are as near
        ([NAN, NAN, 3, NAN], 5, [3, 3, 3, 3]),
        ([1, NAN, NAN, NAN, NAN, 6], 1, [1, 1, NAN, NAN, 6, 6]),
        ([NAN, NAN], 5, [NAN, NAN]),
    ],
)
def test_the_nearest_row_fills(given: list[float], reach: int, wanted: list[float]) -> None:
    values = np.array([given, given], dtype=float).T
    found = filled(values, np.full(len(values), True), np.array([True, False]), reach)
    np.testing.assert_equal(found[:, 0], wanted)
    np.testing.assert_equal(found[:, 1], given)  # another metric
    nowhere = filled(values, np.full(len(values), False), np.array([True, True]), reach)
    np.testing.assert_equal(nowhere, values)


def _experiment() -> pd.DataFrame:
    """Every third row has no label; there the throughput is missing, but not on the test link."""
    frame = network()
    unlabelled = np.arange(len(frame)) % 3 == 0
    frame.loc[unlabelled, "label"] = ""
    frame.loc[unlabelled & (frame["link"] != "f"), "throughput_bps"] = NAN
    return frame


def _prepared(frame: pd.DataFrame, **changes: Any) -> Prepared:
    return prepare(load_config(settings(Path("nowhere"), **changes)), frame)


def _tied(prepared: Prepared) -> list[bool]:
    return tied_to_labels(prepared.grid.segments, [part == 0 for part in prepared.split.parts]).tolist()


def test_a_metric_that_is_measured_where_labels_are_is_found() -> None:
    assert _tied(_prepared(_experiment())) == [False, True, False]
    assert _tied(_prepared(network())) == [False, False, False]


def test_chance_is_not_taken_for_it() -> None:
    frame = network()
    rng = np.random.default_rng(0)
    frame.loc[rng.random(len(frame)) < 0.3, "label"] = ""
    frame.loc[rng.random(len(frame)) < 0.3, "throughput_bps"] = NAN
    assert _tied(_prepared(frame)) == [False, False, False]


def test_gaps_are_filled_to_learn_from_and_nowhere_else(caplog: pytest.LogCaptureFixture) -> None:
    before = _prepared(_experiment())
    with caplog.at_level(logging.WARNING):
        after = fill_gaps_of_labels(before)
    assert "1 of 3 metrics are missing where rows are unlabelled" in caplog.text
    assert "throughput_bps" in caplog.text
    for old, new in zip(before.grid.segments, after.grid.segments, strict=True):
        if old.series == "f":
            np.testing.assert_equal(new.values, old.values)
        else:
            assert np.isnan(old.values[:, 1]).mean() > 0.3
            assert np.isnan(new.values[:, 1]).sum() < np.isnan(old.values[:, 1]).sum() / 4
        np.testing.assert_equal(new.values[:, [0, 2]], old.values[:, [0, 2]])


def test_nothing_happens_and_nothing_is_said_where_there_is_none(caplog: pytest.LogCaptureFixture) -> None:
    prepared = _prepared(network())
    assert fill_gaps_of_labels(prepared) is prepared
    assert not caplog.records


def test_windows_stay_within_labelled_rows_then() -> None:
    spans = {"model": {"window": "auto", "stem": "auto"}}
    found = _prepared(_experiment(), **spans).config.model
    assert (found.window, found.stem) == (2, 1)
    assert int(_prepared(network(), **spans).config.model.window) > 4
