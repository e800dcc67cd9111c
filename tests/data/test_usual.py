"""Everything as usual: metrics at their baselines, and missing where they usually are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netanomaly.data.batches import channel_segment
from netanomaly.data.channels import CHANNEL_KINDS, Channels
from netanomaly.data.grid import Segment
from netanomaly.data.usual import usual_segment, usual_values

NAN = np.nan


def _channels(
    values: np.ndarray, kinds: tuple[str, ...] = CHANNEL_KINDS, baselines: tuple[int, ...] = (3, 5)
) -> Channels:
    return Channels.fit([values], [np.ones(len(values), dtype=bool)], kinds, baselines)


def _noise(rows: int = 40) -> np.ndarray:
    return np.random.default_rng(0).gamma(3.0, 1.0, (rows, 2))


def test_the_usual_value_is_the_longest_baseline() -> None:
    channels = _channels(_noise())
    values = np.array([[1.0, 9], [2, 9], [30, 9], [40, 1], [50, 1], [60, 1]])
    usual = usual_values(values, channels)
    assert usual[:, 0].tolist() == [1, 1.5, 2, 16, 30, 40]  # medians of the last five rows
    assert usual[:, 1].tolist() == [9, 9, 9, 9, 9, 1]


def test_what_is_missing_in_more_than_half_of_the_rows_is_usually_missing() -> None:
    values = np.array([[NAN, 4.0], [NAN, NAN], [7, NAN], [8, NAN], [9, NAN], [NAN, 5], [NAN, 5], [NAN, 5]])
    usual = usual_values(values, _channels(_noise()))
    np.testing.assert_array_equal(np.isnan(usual[:, 0]), [True, True, True, False, False, False, False, True])
    np.testing.assert_array_equal(np.isnan(usual[:, 1]), [False, False, True, True, True, True, True, False])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=2), st.sampled_from([(3,), (3, 5)]))
def test_metrics_that_never_move_are_as_usual(level: list[float], baselines: tuple[int, ...]) -> None:
    channels = _channels(_noise(), baselines=baselines)
    values = np.tile(level, (12, 1))
    actual = channels(values)
    found = channels.at_usual(usual_values(values, channels))
    np.testing.assert_array_equal(found[1:], actual[1:])  # the first row has no row before it: its change is not known


def test_levels_stay_at_the_baseline_and_moves_are_none() -> None:
    channels = _channels(_noise(), ("deviation", "change", "level"), (5,))
    values = _noise()
    values[30:] *= 10
    usual = usual_values(values, channels)
    deviation, change, level = np.split(channels.at_usual(usual), 3, axis=1)
    assert np.ptp(deviation, axis=0).tolist() == np.ptp(change, axis=0).tolist() == [0, 0]
    still = channels(np.repeat(usual[[31]], 12, axis=0))
    np.testing.assert_array_equal(level[31], still[-1, 4:])


@pytest.mark.parametrize("missing", [[3, 4], [39]])
def test_rows_without_anything_stay_out(missing: list[int]) -> None:
    values = _noise()
    values[missing] = NAN
    segment = Segment("a", values, np.full(40, "", dtype=object), np.arange(40))
    channels = _channels(values)
    actual = channel_segment(segment, channels)
    usual = usual_segment(actual, usual_values(values, channels), channels)
    assert usual.valid is actual.valid and usual.valid.sum() == 40 - len(missing)
    assert usual.channels.shape == actual.channels.shape and np.isfinite(usual.channels).all()
