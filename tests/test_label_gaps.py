"""Gaps of metrics that give labels away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from netanomaly.config import load_config
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


def test_nothing_is_taken_from_other_rows() -> None:
    values = np.array([[1.0], [NAN], [NAN], [9.0], [NAN]])
    rows = np.array([True, True, True, False, False])  # the others are of another part of the split
    np.testing.assert_equal(filled(values, rows, np.array([True]), 5), [[1], [1], [1], [9], [NAN]])


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


def test_windows_stay_within_labelled_rows_then() -> None:
    spans = {"model": {"window": "auto", "stem": "auto"}}
    found = _prepared(_experiment(), **spans).config.model
    assert (found.window, found.stem) == (2, 1)
    assert int(_prepared(network(), **spans).config.model.window) > 4
