"""Distances between rows and the training rows that a bundle remembers."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netanomaly.data.reference import drift, reference

VALUES = st.lists(
    st.sampled_from([0.0, 1.0, 1.5, 2.0, -3.25, 1e9, 1e-7]) | st.floats(-10, 10), min_size=1, max_size=250
)


def _exact(training: list[float], others: list[float]) -> float:
    """Kolmogorov and Smirnov's statistic by its definition, at every value there is."""
    values, both = sorted({*training, *others}), (np.sort(training), np.sort(others))
    shares = [np.searchsorted(one, values, side="right") / len(one) for one in both]
    return float(np.abs(shares[0] - shares[1]).max())


def _distance(training: list[float], others: list[float]) -> dict[str, float]:
    known = json.loads(json.dumps(reference(["m"], np.array(training)[:, None])))
    found = drift(np.array(others), known["metrics"]["m"]["quantiles"])
    assert found is not None
    return dict(found)


@given(VALUES, VALUES)
def test_the_distance_is_that_of_all_rows_but_for_what_quantiles_leave_out(
    training: list[float], others: list[float]
) -> None:
    training, others = ([float(f"{value:.9g}") for value in values] for values in (training, others))
    found, exact = _distance(training, others), _exact(training, others)
    assert exact - 0.02 - 1e-9 <= found["ks"] <= exact + 1e-9
    low, high = min(training), max(training)
    assert found["outside"] == pytest.approx(np.mean([not low <= value <= high for value in others]), abs=1e-9)


@given(VALUES)
def test_the_training_rows_themselves_are_no_distance_away(training: list[float]) -> None:
    assert _distance(training, training) == {"ks": 0.0, "outside": pytest.approx(0.0, abs=1e-12)}


def test_rows_apart_are_as_far_as_can_be() -> None:
    assert _distance([1.0, 2.0, 3.0], [5.0, 6.0]) == {"ks": 1.0, "outside": 1.0}


def test_missing_values_count_as_missing_and_for_nothing_else() -> None:
    values = np.array([[1.0, np.nan], [np.nan, np.nan], [3.0, np.nan], [2.0, np.nan]])
    found = reference(["a", "b"], values)
    assert found["rows"] == 4
    assert found["metrics"]["a"]["missing"] == 0.25 and found["metrics"]["b"] == {"missing": 1.0, "quantiles": []}
    assert len(found["metrics"]["a"]["quantiles"]) == 101
    assert drift(np.array([np.nan, 2.0]), found["metrics"]["b"]["quantiles"]) is None
    assert drift(np.array([np.nan]), found["metrics"]["a"]["quantiles"]) is None
