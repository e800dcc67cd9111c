from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from netanomaly.data.rolling import newest_median, newest_std, newest_sum, rolling_median, rolling_std, rolling_sum

PROPERTY = settings(max_examples=40, deadline=None)
LENGTHS = st.integers(1, 40)
KNOWN = st.floats(-1e3, 1e3)
NUMBERS = KNOWN | st.just(np.nan)
SHAPES = st.tuples(st.integers(1, 40), st.integers(1, 3))


def rows(seed: int, missing: float = 0.1, count: int = 300) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.normal(0, 1, (count, 3)) * [1e-3, 1, 1e9]
    values[rng.random(values.shape) < missing] = np.nan
    return values


def per_window(values: np.ndarray, length: int, statistic: Callable[[np.ndarray], float], empty: float) -> np.ndarray:
    result = np.full(values.shape, float(empty))
    for column in range(values.shape[1]):
        for row in range(len(values)):
            window = values[max(row - length + 1, 0) : row + 1, column]
            known = window[~np.isnan(window)]
            if len(known):
                result[row, column] = statistic(known)
    return result


@PROPERTY
@given(arrays(np.float64, SHAPES, elements=NUMBERS), LENGTHS)
def test_the_median_is_that_of_the_known_values_exactly(values: np.ndarray, length: int) -> None:
    np.testing.assert_array_equal(rolling_median(values, length), per_window(values, length, np.median, np.nan))


@PROPERTY
@given(arrays(np.float64, SHAPES, elements=KNOWN), LENGTHS)
def test_the_sum_is_that_of_the_last_rows(values: np.ndarray, length: int) -> None:
    np.testing.assert_allclose(rolling_sum(values, length), per_window(values, length, np.sum, 0), rtol=0, atol=1e-9)


@pytest.mark.parametrize("length", [1, 2, 3, 7, 64, 100, 255, 256, 299, 300, 301, 1000])
def test_the_sum_equals_pandas(length: int) -> None:
    values = rows(1, missing=0)
    wanted = pd.DataFrame(values).rolling(length, min_periods=1).sum().to_numpy()
    np.testing.assert_allclose(rolling_sum(values, length) / [1e-3, 1, 1e9], wanted / [1e-3, 1, 1e9], rtol=0, atol=1e-9)


@pytest.mark.parametrize("length", [2, 3, 7, 64, 100, 256, 300, 1000])
def test_the_standard_deviation_equals_pandas(length: int) -> None:
    values = rows(2)
    wanted = pd.DataFrame(values).rolling(length, min_periods=2).std().fillna(0).to_numpy()
    np.testing.assert_allclose(rolling_std(values, length), wanted, rtol=1e-9, atol=1e-12)


def test_the_standard_deviation_of_one_known_value_or_none_is_zero() -> None:
    values = np.array([[np.nan], [3.0], [np.nan], [np.nan]])
    assert rolling_std(values, 3).ravel().tolist() == [0, 0, 0, 0]


def test_the_standard_deviation_of_zeros_is_zero() -> None:
    assert (rolling_std(np.zeros((50, 2)), 8) == 0).all()


STATISTICS = pytest.mark.parametrize("statistic", [rolling_median, rolling_sum, rolling_std])


@STATISTICS
@PROPERTY
@given(st.integers(0, 2**32 - 1), LENGTHS, st.integers(0, 80))
def test_a_chunk_with_its_history_gives_the_same_bits(
    statistic: Callable[[np.ndarray, int], np.ndarray], seed: int, length: int, start: int
) -> None:
    values = rows(seed, missing=0 if statistic is rolling_sum else 0.3, count=100)
    first = max(start - (length - 1), 0)
    chunk = statistic(values[first:], length)[start - first :]
    assert np.array_equal(chunk, statistic(values, length)[start:], equal_nan=True)


@STATISTICS
def test_later_rows_change_nothing(statistic: Callable[[np.ndarray, int], np.ndarray]) -> None:
    values = rows(3, missing=0)
    changed = values.copy()
    changed[200:] = 1e12
    assert np.array_equal(statistic(changed, 32)[:200], statistic(values, 32)[:200])


@STATISTICS
def test_no_rows_give_no_rows(statistic: Callable[[np.ndarray, int], np.ndarray]) -> None:
    assert statistic(np.zeros((0, 2)), 8).shape == (0, 2)


@STATISTICS
def test_the_input_is_not_changed(statistic: Callable[[np.ndarray, int], np.ndarray]) -> None:
    values = rows(4)
    before = values.copy()
    statistic(values, 8)
    assert np.array_equal(values, before, equal_nan=True)


# The newest row of many series

NEWEST = pytest.mark.parametrize(
    ("newest", "rolling"), [(newest_median, rolling_median), (newest_sum, rolling_sum), (newest_std, rolling_std)]
)
Statistic = Callable[[np.ndarray, int], np.ndarray]


@NEWEST
@PROPERTY
@given(st.integers(0, 2**32 - 1), LENGTHS, st.integers(1, 5), st.integers(0, 70), st.sampled_from([0.0, 0.3, 0.9]))
def test_the_newest_row_has_the_bits_of_the_rolling_one(
    newest: Statistic, rolling: Statistic, seed: int, length: int, series: int, earlier: int, missing: float
) -> None:
    missing = 0.0 if newest is newest_sum else missing
    values = np.stack([rows(seed + n, missing, count=length + earlier) for n in range(series)])
    wanted = np.stack([rolling(one, length)[-1] for one in values])
    np.testing.assert_array_equal(newest(values, length), wanted)


@pytest.mark.parametrize(("newest", "rolling"), [(newest_median, rolling_median), (newest_std, rolling_std)])
@PROPERTY
@given(st.data(), LENGTHS)
def test_the_newest_row_of_odd_numbers_has_the_same_bits(
    newest: Statistic, rolling: Statistic, data: st.DataObject, length: int
) -> None:
    some = st.sampled_from([np.nan, 0.0, -0.0, 1e-300, 1e150, -1e150, 0.1]) | KNOWN
    values = data.draw(arrays(np.float64, st.tuples(st.just(2), st.just(length), st.integers(1, 2)), elements=some))
    wanted = np.stack([rolling(one, length)[-1] for one in values])
    np.testing.assert_array_equal(newest(values, length), wanted)


@NEWEST
@PROPERTY
@given(st.integers(0, 2**32 - 1), LENGTHS, st.integers(1, 40))
def test_a_young_series_with_nothing_before_it_is_one_that_begins(
    newest: Statistic, rolling: Statistic, seed: int, length: int, count: int
) -> None:
    values = rows(seed, 0.0 if newest is newest_sum else 0.3, count=min(count, length))
    before = np.full((length - len(values), 3), 0.0 if newest is newest_sum else np.nan)
    found = newest(np.concatenate([before, values])[None], length)[0]
    np.testing.assert_array_equal(found, rolling(values, length)[-1])


@NEWEST
def test_the_newest_row_of_no_series_is_none(newest: Statistic, rolling: Statistic) -> None:
    assert newest(np.zeros((0, 8, 3)), 8).shape == (0, 3)
