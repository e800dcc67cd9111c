from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from netanomaly.data import channels as channels_module
from netanomaly.data.channels import CHANNEL_KINDS, Channels, channel_groups, channel_history

NAN = float("nan")
PROPERTY = settings(max_examples=50, deadline=None)
KINDS = st.lists(st.sampled_from(CHANNEL_KINDS), min_size=1, unique=True)
WILD = st.sampled_from([NAN, 0.0, 1.0]) | st.floats(1e-30, 1e30) | st.floats(-1e30, -1e-30)
BASELINES = st.lists(st.integers(1, 12), min_size=1, max_size=3, unique=True)


def rows(seed: int = 0, count: int = 300, missing: float = 0.05) -> np.ndarray:
    """Three metrics: a level with noise, mostly zeros with bursts, and one with a heavy tail."""
    rng = np.random.default_rng(seed)
    bursts = np.where(rng.random(count) < 0.03, rng.exponential(100, count), 0)
    values = np.stack([rng.normal(100, 5, count), bursts, rng.standard_cauchy(count)], axis=1)
    values[rng.random(values.shape) < missing] = NAN
    return values


def fit(
    *segments: np.ndarray, kinds: Any = CHANNEL_KINDS, baselines: Any = (8, 32), until: int | None = None
) -> Channels:
    """Channels of segments whose rows up to `until` are training rows."""
    return Channels.fit(segments, [np.arange(len(s)) < (until or len(s)) for s in segments], kinds, baselines)


def plain(kind: str, metrics: int = 1, baselines: tuple[int, ...] = (3,)) -> Channels:
    """Unscaled channels of one kind: only the squashing is left."""
    count = metrics * (len(baselines) if kind in ("deviation", "log_ratio", "spread") else 1)
    return Channels((kind,), baselines, np.zeros(metrics), np.ones(metrics), np.zeros(count), np.ones(count))


# What they are


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("deviation", [0, 1, 0, 6, 0]),  # medians of 3 rows: 2, 3, 4, 4, 10
        ("log_ratio", [0, math.log(5 / 4), 0, math.log(11 / 5), 0]),
        ("spread", [0, 1 / (math.sqrt(2) + 0.5), 0, 6 / (math.sqrt(12) + 0.5), 0]),
        ("change", [0, 2, 0, 6, 0]),
        ("level", [2, 4, 4, 10, 10]),
    ],
)
def test_a_kind_follows_its_formula(kind: str, wanted: list[float]) -> None:
    values = np.array([2.0, 4.0, 4.0, 10.0, 10.0])[:, None]
    np.testing.assert_allclose(np.sinh(plain(kind)(values)[:, 0].astype(np.float64)), wanted, rtol=1e-5, atol=1e-6)


def test_log_level_is_a_logarithm_with_the_sign_of_the_value_and_ends_at_ten() -> None:
    values = np.array([[0.0], [math.e - 1], [1 - math.e], [1e9], [-1e9]])
    np.testing.assert_allclose(plain("log_level")(values).ravel(), [0, 1, -1, 10, -10], rtol=1e-6)


def test_missing_is_one_exactly_where_a_metric_is() -> None:
    values = np.array([[1, NAN], [NAN, NAN], [3, 4]], dtype=np.float64)
    assert plain("missing", 2)(values).tolist() == [[0, 1], [1, 1], [0, 0]]


def test_what_cannot_be_computed_is_zero() -> None:
    values = np.array([[NAN], [1], [NAN], [3]])
    assert plain("deviation")(values)[[0, 2]].tolist() == [[0], [0]]
    assert plain("change")(values).ravel().tolist() == [0, 0, 0, 0]


def test_a_missing_row_is_left_out_of_the_baseline() -> None:
    with_gap, without = np.array([[1.0], [NAN], [5.0]]), np.array([[1.0], [5.0]])
    assert plain("deviation")(with_gap)[-1] == plain("deviation")(without)[-1]


def test_negative_values_count_as_zero_in_a_ratio() -> None:
    values = np.array([[-5.0], [-1.0], [0.0]])
    assert plain("log_ratio")(values).ravel().tolist() == [0, 0, 0]


def test_channels_stand_by_kind_then_baseline_then_metric() -> None:
    found = fit(rows(), kinds=("missing", "change", "deviation"), baselines=(32, 4))
    alone = [
        fit(rows(), kinds=("deviation",), baselines=(32,)),
        fit(rows(), kinds=("deviation",), baselines=(4,)),
        fit(rows(), kinds=("change",)),
        fit(rows(), kinds=("missing",)),
    ]
    assert found.count == 12
    np.testing.assert_array_equal(found(rows()), np.concatenate([channels(rows()) for channels in alone], axis=1))


def test_channels_are_float32_and_as_many_as_they_say() -> None:
    channels = fit(rows())
    assert channels(rows()).shape == (300, channels.count)
    assert channels(rows()).dtype == np.float32
    assert channels(rows()[:0]).shape == (0, channels.count)


def test_the_input_is_not_changed() -> None:
    values = rows()
    fit(values)(values)
    np.testing.assert_array_equal(values, rows())


# Fitting


def test_only_training_rows_are_looked_at() -> None:
    kinds, baselines = CHANNEL_KINDS, (8, 32)
    first_other = 150 + channel_history(kinds, baselines)
    values, other = rows(1), rows(2)
    training = [np.arange(300) < 150, np.zeros(300, dtype=bool)]
    training[0][:10] = False
    wanted = Channels.fit([values, other], training, kinds, baselines).state()
    changed = values.copy()
    changed[150:first_other] *= 7
    changed[first_other:] = 1e12
    assert Channels.fit([changed, other * -3], training, kinds, baselines).state() == wanted


def test_training_rows_are_looked_at() -> None:
    values = rows(1)
    changed = values.copy()
    changed[:150] *= 2
    assert fit(changed, until=150).state() != fit(values, until=150).state()


def test_training_channels_are_centred_and_of_unit_size() -> None:
    values = np.random.default_rng(0).normal(1e9, 1e3, (5000, 1))
    found = fit(values, kinds=("level", "deviation"), baselines=(64,))(values)
    assert np.abs(np.median(found, axis=0)).max() < 1e-3
    assert ((found.std(axis=0) > 0.5) & (found.std(axis=0) < 1.5)).all()


def test_the_state_comes_back_exactly_through_json() -> None:
    channels = fit(rows(), np.full((40, 3), NAN))
    again = Channels.from_state(json.loads(json.dumps(channels.state(), allow_nan=False)))
    assert again.state() == channels.state()
    assert np.array_equal(again(rows(5)), channels(rows(5)))


@pytest.mark.parametrize("factor", [1000.0, 1e-3, 8.0, 1e9])
def test_the_unit_of_a_metric_does_not_matter(factor: float) -> None:
    values = rows(3)
    scaled = values * [factor, 1, 1]
    np.testing.assert_allclose(fit(scaled)(scaled), fit(values)(values), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kinds", [("deviation", "change"), ("level",)], ids="-".join)
def test_moves_on_a_level_of_a_billion_are_those_on_none(kinds: tuple[str, ...]) -> None:
    values = np.random.default_rng(0).integers(-8, 9, (300, 2)).astype(np.float64)  # whole: exact at either level
    high = values + 1e9
    np.testing.assert_allclose(fit(high, kinds=kinds)(high), fit(values, kinds=kinds)(values), rtol=0, atol=1e-6)


def test_a_metric_does_not_change_the_channels_of_another() -> None:
    values = rows(3)
    changed = values.copy()
    changed[:, 2] = 1e6
    found = [fit(given_rows)(given_rows).reshape(300, -1, 3)[:, :, :2] for given_rows in (values, changed)]
    assert np.array_equal(found[0], found[1])


# Rows depend on their past


@PROPERTY
@given(KINDS, BASELINES, st.integers(0, 2**32 - 1), st.integers(0, 59))
def test_a_chunk_with_its_history_has_the_same_bits(
    kinds: list[str], baselines: list[int], seed: int, start: int
) -> None:
    values = rows(seed, count=60, missing=0.2)
    channels = fit(rows(0), kinds=kinds, baselines=baselines)
    first = max(start - channels.history_rows, 0)
    assert np.array_equal(channels(values[first:])[start - first :], channels(values)[start:])


@PROPERTY
@given(KINDS, BASELINES, st.integers(0, 2**32 - 1), st.integers(1, 59))
def test_later_rows_change_nothing(kinds: list[str], baselines: list[int], seed: int, start: int) -> None:
    values = rows(seed, count=60)
    channels = fit(rows(0), kinds=kinds, baselines=baselines)
    changed = values.copy()
    changed[start:] = rows(seed + 1, count=60)[start:]
    assert np.array_equal(channels(changed)[:start], channels(values)[:start])


@pytest.mark.parametrize(
    ("kinds", "baselines", "history"),
    [
        (CHANNEL_KINDS, (256,), 255),
        (CHANNEL_KINDS, (32, 256, 64), 255),
        (("deviation",), (8,), 7),
        (("log_ratio",), (8,), 7),
        (("spread",), (8,), 7),
        (("deviation", "change"), (1,), 1),
        (("change", "missing"), (256,), 1),
        (("missing",), (256,), 0),
        (("level",), (256,), 0),
    ],
)
def test_the_history_is_what_the_kinds_need(kinds: Any, baselines: Any, history: int) -> None:
    assert channel_history(kinds, baselines) == history
    assert fit(rows(), kinds=kinds, baselines=baselines).history_rows == history


@pytest.mark.parametrize("kind", ["deviation", "log_ratio", "spread", "change"])
def test_one_row_less_of_history_can_change_a_row(kind: str) -> None:
    channels = plain(kind, baselines=(5,))
    values = np.array([100.0, 1, 2, 3, 50, 60, 70, 80, 90])[:, None]
    start = 5
    first = start - channels.history_rows
    enough, short = channels(values[first:]), channels(values[first + 1 :])
    assert enough[channels.history_rows] == channels(values)[start]
    assert short[channels.history_rows - 1] != channels(values)[start]


# Unusual values


def test_a_constant_metric_is_zero_in_every_channel() -> None:
    values = np.full((50, 1), 0.1)
    assert (fit(values)(values) == 0).all()
    assert (fit(values).scale == 1).all()  # a scale of 0 would be 0 as well, and infinite for the first other value


def test_a_metric_that_was_constant_in_training_still_shows_a_change() -> None:
    values = np.full((100, 1), 7.0)
    channels = fit(values)
    changed = values.copy()
    changed[60:] = 9.0
    assert (np.abs(channels(changed)[60, [0, 2, 4, 6, 8]]) > 0).any()


def test_a_metric_without_any_value_is_zero_but_for_missing() -> None:
    values = np.full((50, 1), NAN)
    found = fit(values)(values)
    missing = channel_groups(CHANNEL_KINDS, (8, 32)).index("missing")
    assert (found[:, missing] == 1).all()
    assert (np.delete(found, missing, axis=1) == 0).all()


def test_a_metric_of_mostly_zeros_has_usable_bursts() -> None:
    values = np.zeros((1000, 1))
    values[50::100] = 50.0
    found = fit(values, kinds=("deviation",), baselines=(32,))(values)
    assert found[50::100].min() > 1
    assert found.max() < 6


def test_a_value_twenty_deviations_away_stays_usable() -> None:
    values = np.random.default_rng(0).normal(100, 5, (1000, 1))
    changed = np.repeat(values, 3, axis=0)[:1000]
    changed[[500, 600]] = [[200.0], [300.0]]
    found = fit(values, kinds=("deviation",), baselines=(64,))(changed).ravel()
    assert 3 < found[500] < found[600] < 6


@PROPERTY
@given(arrays(np.float64, (30, 2), elements=WILD))
def test_channels_are_finite_for_any_values(values: np.ndarray) -> None:
    assert np.isfinite(fit(rows()[:, :2])(values)).all()


@PROPERTY
@given(arrays(np.float64, (30, 2), elements=WILD))
def test_fitting_is_finite_for_any_values(values: np.ndarray) -> None:
    channels = fit(values)
    json.dumps(channels.state(), allow_nan=False)
    assert (channels.scale > 0).all()
    assert np.isfinite(channels(values)).all()


@pytest.mark.parametrize("huge", [1e160, 1e300, 1.7e308])
def test_channels_are_finite_for_huge_values(huge: float) -> None:
    values = rows()
    values[100], values[101] = huge, -huge
    assert np.isfinite(fit(rows())(values)).all()


@pytest.mark.parametrize("huge", [1e160, 1e300, 1.7e308])
def test_fitting_is_finite_for_huge_values(huge: float) -> None:
    values = rows()
    values[100], values[101] = huge, -huge
    json.dumps(fit(values).state(), allow_nan=False)


def test_one_glitch_in_training_does_not_silence_a_metric() -> None:
    values = np.random.default_rng(0).normal(1e6, 1e5, (20_000, 1))  # bit/s
    values[5000] = 2**32 * 8.0  # a counter that wrapped and was not seen to
    found = fit(values, kinds=("deviation",), baselines=(64,))(values)
    assert np.delete(found, 5000).std() > 0.1


# Block by block, and the newest rows of many series


@pytest.mark.parametrize("block", [1, 7, 64])
@pytest.mark.parametrize("kinds", [CHANNEL_KINDS, ("missing",), ("change",), ("spread", "level")])
def test_blocks_have_the_bits_of_a_single_one(
    kinds: tuple[str, ...], block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    channels, values = fit(rows(), kinds=kinds, baselines=(3, 6)), rows(1, count=333, missing=0.2)
    at_once = channels(values)
    monkeypatch.setattr(channels_module, "_BLOCK", block)
    assert max(block, 4 * channels.history_rows) < len(values)  # it is cut indeed
    np.testing.assert_array_equal(channels(values), at_once)


def test_a_long_segment_is_that_of_short_ones_with_their_history() -> None:
    channels = fit(rows(), baselines=(5, 300))
    values = rows(2, count=9000)
    found = channels(values)
    for first, stop in ((0, 50), (4090, 4102), (8190, 8200), (8990, 9000)):
        start = max(0, first - channels.history_rows)
        np.testing.assert_array_equal(found[first:stop], channels(values[start:stop])[first - start :])


@PROPERTY
@given(KINDS, BASELINES, st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(0, 3))
def test_the_newest_row_has_the_bits_of_the_whole_segment(
    kinds: list[str], baselines: list[int], seed: int, count: int, more: int
) -> None:
    channels = fit(rows(0), kinds=kinds, baselines=baselines)
    segments = [rows(seed + n, count=count + n, missing=0.3) for n in range(3)]
    kept = channels.history_rows + 1 + more
    padded = np.stack([np.concatenate([np.full((kept, 3), NAN), values])[-kept:] for values in segments])
    found = channels.newest(padded)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.stack([channels(values)[-1] for values in segments]))


@PROPERTY
@given(arrays(np.float64, (2, 12, 2), elements=WILD))
def test_the_newest_row_of_any_values_has_the_same_bits(values: np.ndarray) -> None:
    channels = fit(rows()[:, :2], baselines=(4, 12))
    np.testing.assert_array_equal(channels.newest(values), np.stack([channels(one)[-1] for one in values]))


def test_the_newest_row_of_small_moves_on_a_large_level_has_the_same_bits() -> None:
    values = np.random.default_rng(0).normal(1e9, 1, (3, 40, 1))  # a square of the level would leave no digits
    channels = fit(*values, kinds=("spread",), baselines=(12,))
    np.testing.assert_array_equal(channels.newest(values), np.stack([channels(one)[-1] for one in values]))
