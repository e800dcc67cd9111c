"""How far rows lie from what training has seen."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from netanomaly.data.batches import IGNORED, ChannelSegment
from netanomaly.unknown import FLOOR, SHRINKAGE, KnownRows

CHANNELS, ROWS = 6, 3
CHOSEN = [0, 1, 2, 4, 5]


def _segment(seed: int = 0, rows: int = 400, *, gaps: float = 0.1) -> ChannelSegment:
    """Two classes with means of their own; channels 0 and 1 go together. Some rows are missing, some have no target."""
    rng = np.random.default_rng(seed)
    targets = np.repeat(rng.integers(0, 2, -(-rows // 20)), 20)[:rows]
    channels = rng.standard_normal((rows, CHANNELS)) + 3 * targets[:, None] * np.arange(CHANNELS)
    channels[:, 1] = channels[:, 0] + 0.1 * rng.standard_normal(rows)
    valid = rng.random(rows) >= gaps
    targets = np.where(valid & (rng.random(rows) < 0.9), targets, IGNORED)
    return ChannelSegment(channels.astype(np.float32), valid, targets.astype(np.int64))


TRAINING = [_segment(0), _segment(1)]
KNOWN = KnownRows.fit(TRAINING, CHOSEN, ROWS)


def _means_by_hand(one: ChannelSegment, rows: int = ROWS) -> NDArray[np.float64]:
    """Mean of the measured rows among the last ones, row by row."""
    found = []
    for t in range(len(one.valid)):
        window = slice(max(0, t - rows + 1), t + 1)
        seen = one.channels[window][one.valid[window]][:, CHOSEN].astype(np.float64)
        found.append(seen.mean(axis=0) if len(seen) else np.zeros(len(CHOSEN)))
    return np.array(found)


def _covariance_by_hand() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means of the classes, and the shrunk covariance within them, written out."""
    recent = np.concatenate([_means_by_hand(one) for one in TRAINING])
    targets = np.concatenate([one.targets for one in TRAINING])
    groups = [recent[targets == k] for k in (0, 1)]
    within = (np.cov(groups[0].T, bias=True) + np.cov(groups[1].T, bias=True)) / 2
    deviations = np.sqrt(np.diag(within) + FLOOR * np.diag(within).mean())
    correlations = within / np.outer(deviations, deviations)
    spreads, directions = np.linalg.eigh(correlations)
    shrunk = (1 - SHRINKAGE) * spreads + SHRINKAGE
    shrunk = (directions * shrunk) @ directions.T
    return np.stack([group.mean(axis=0) for group in groups]), shrunk * np.outer(deviations, deviations)


def test_the_score_is_the_mahalanobis_distance_from_the_nearest_class() -> None:
    means, covariance = _covariance_by_hand()
    one = _segment(2)
    apart = _means_by_hand(one)[:, None] - means  # (T, K, F)
    squares = np.einsum("tkf,fg,tkg->tk", apart, np.linalg.inv(covariance), apart)
    wanted = np.sqrt(squares.min(axis=1) / len(CHOSEN)) * one.valid
    np.testing.assert_allclose(KNOWN.score(one.channels, one.valid), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("missing", [[1], [0, 3, 4, 5], [3]])
def test_without_channels_it_is_the_distance_in_those_that_remain(missing: list[int]) -> None:
    means, covariance = _covariance_by_hand()
    stays = ~np.isin(CHOSEN, missing)
    one = _segment(2)
    apart = (_means_by_hand(one)[:, None] - means)[..., stays]  # (T, K, F')
    inverse = np.linalg.inv(covariance[np.ix_(stays, stays)])
    squares = np.einsum("tkf,fg,tkg->tk", apart, inverse, apart)
    wanted = np.sqrt(squares.min(axis=1) / stays.sum()) * one.valid
    other = one.channels.copy()
    other[:, missing] = 99.0
    found = KNOWN.without(missing)
    np.testing.assert_allclose(found.score(other, one.valid), wanted, rtol=1e-4, atol=1e-4)
    KnownRows.from_state(found.state())


def test_with_many_channels_few_joint_movements_are_kept() -> None:
    rng = np.random.default_rng(0)
    mixed = rng.standard_normal((500, 50)) @ rng.standard_normal((50, 50))
    many = ChannelSegment(mixed.astype(np.float32), np.full(500, True), np.arange(500) % 2)
    known = KnownRows.fit([many], range(50), 1)
    assert known.joint.shape == (50, 32)
    scores = known.score(many.channels, many.valid)
    assert 0.5 < np.sqrt(np.mean(scores**2)) < 1.5


def test_usual_rows_score_about_one_and_strange_ones_more() -> None:
    usual, strange = _segment(3), _segment(3)
    strange.channels[:, 1] = -strange.channels[:, 0]  # each is as large as it was: they only part
    scores = [KNOWN.score(one.channels, one.valid)[one.valid] for one in (usual, strange)]
    assert 0.5 < np.sqrt(np.mean(scores[0] ** 2)) < 1.5
    assert np.median(scores[1]) > 1.5 * np.median(scores[0])


@given(st.integers(0, 10**6), st.integers(1, 60))
def test_a_stream_has_the_scores_of_the_segment(seed: int, rows: int) -> None:
    one = _segment(seed, rows, gaps=0.4)
    wanted = KNOWN.score(one.channels, one.valid)
    held = ROWS + 2  # a stream may keep more rows than the mean is of
    before = np.full((held - 1, CHANNELS), 7, dtype=np.float32), np.full(held - 1, False)
    channels, valid = np.concatenate([before[0], one.channels]), np.concatenate([before[1], one.valid])
    last = np.arange(rows)[:, None] + np.arange(held)  # (T, S): each row as a series of its own
    np.testing.assert_allclose(KNOWN.newest(channels[last], valid[last]), wanted, rtol=1e-9, atol=1e-9)


@given(st.integers(0, 10**6), st.integers(0, 50))
def test_a_row_depends_on_the_last_rows_alone(seed: int, at: int) -> None:
    one = _segment(seed, 60)
    other = one.channels.copy()
    other[at] += 5
    changed = KNOWN.score(one.channels, one.valid) != KNOWN.score(other, one.valid)
    assert not changed[:at].any() and not changed[at + ROWS :].any()
    if one.valid[at]:
        assert changed[at]


def test_what_is_not_chosen_or_not_measured_changes_nothing() -> None:
    one = _segment(4)
    other = one.channels.copy()
    other[:, 3] = 99.0
    other[~one.valid] = np.nan
    found = KNOWN.score(other, one.valid)
    np.testing.assert_array_equal(found, KNOWN.score(one.channels, one.valid))
    assert (found[~one.valid] == 0).all() and (found[one.valid] > 0).all()


def test_rows_without_a_target_are_not_learnt_from() -> None:
    spoilt = [
        replace(one, channels=np.where((one.targets == IGNORED)[:, None], 50, one.channels).astype(np.float32))
        for one in TRAINING
    ]
    a, b = (KnownRows.fit(rows, CHOSEN, 1) for rows in (TRAINING, spoilt))
    np.testing.assert_array_equal(a.means, b.means)
    np.testing.assert_array_equal(a.scale, b.scale)


def test_classes_count_alike_however_many_rows_they_have() -> None:
    again = [replace(TRAINING[0], targets=np.where(TRAINING[0].targets == 1, 1, IGNORED))] * 20
    a, b = KnownRows.fit([TRAINING[0]], CHOSEN, 1), KnownRows.fit([TRAINING[0], *again], CHOSEN, 1)
    np.testing.assert_allclose(a.scale, b.scale, rtol=1e-5)


def test_a_channel_that_never_moved_may_move_a_little() -> None:
    still = [replace(one, channels=one.channels * (np.arange(CHANNELS) != 5).astype(np.float32)) for one in TRAINING]
    known = KnownRows.fit(still, CHOSEN, ROWS)
    moved = still[0].channels.copy()
    moved[:, 5] = 0.5
    scores = known.score(moved, still[0].valid)
    assert np.isfinite(scores).all()
    assert np.median(scores) > 2 * np.median(known.score(still[0].channels, still[0].valid))


@pytest.mark.parametrize("share", [0.05, 0.2, 1.0])
def test_the_limit_is_what_a_share_of_the_validation_rows_is_above(share: float) -> None:
    validation = [_segment(5), _segment(6)]
    known = KNOWN.with_limit(validation, share)
    scores = np.concatenate([known.score(v.channels, v.valid)[v.targets != IGNORED] for v in validation])
    assert known.is_unknown(scores).mean() == pytest.approx(share, abs=2 / len(scores))


def test_nothing_is_unknown_without_a_limit_or_with_the_share_zero() -> None:
    one = _segment(5)
    scores = KNOWN.score(one.channels, one.valid)
    assert not KNOWN.is_unknown(scores).any()
    assert not KNOWN.with_limit([one], 0.0).is_unknown(scores[one.targets != IGNORED]).any()


@pytest.mark.parametrize("known", [KNOWN, KNOWN.with_limit(TRAINING, 0.05), KnownRows.fit(TRAINING, [2], 1)])
def test_the_state_gives_the_same_back(known: KnownRows) -> None:
    again = KnownRows.from_state(json.loads(json.dumps(known.state())))
    one = _segment(7)
    np.testing.assert_array_equal(again.score(one.channels, one.valid), known.score(one.channels, one.valid))
    assert again.limit == known.limit


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("chosen", []),
        ("chosen", [0.5, 1, 2, 4, 5]),
        ("chosen", [-1, 1, 2, 4, 5]),
        ("rows", 0),
        ("rows", True),
        ("means", []),
        ("means", [[0.0] * 4]),
        ("means", [[float("nan")] * 5]),
        ("scale", [1.0, 1.0, 1.0, 1.0, 0.0]),
        ("joint", [[1.0]]),
        ("limit", float("nan")),
        ("limit", "high"),
    ],
)
def test_a_damaged_state_is_refused(key: str, value: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        KnownRows.from_state({**KNOWN.state(), key: value})


def test_what_cannot_be_fitted_is_refused() -> None:
    empty = replace(TRAINING[0], targets=np.full(400, IGNORED))
    with pytest.raises(ValueError, match="no class has 2 rows"):
        KnownRows.fit([empty], CHOSEN, ROWS)
    with pytest.raises(ValueError, match="no channel"):
        KnownRows.fit(TRAINING, [], ROWS)
    with pytest.raises(ValueError, match="no channel remains"):
        KNOWN.without(CHOSEN)
    with pytest.raises(ValueError, match="no row has a target"):
        KNOWN.with_limit([empty], 0.05)
    with pytest.raises(ValueError, match=r"1\.5 is no share"):
        KNOWN.with_limit(TRAINING, 1.5)


def test_long_segments_are_scored_in_blocks_that_do_not_show() -> None:
    one = _segment(8, 1300)
    whole = KNOWN.score(one.channels, one.valid)
    pieces = [KNOWN.score(one.channels[at : at + 400], one.valid[at : at + 400])[ROWS - 1 :] for at in (300, 511, 900)]
    for at, piece in zip((300, 511, 900), pieces, strict=True):
        np.testing.assert_allclose(piece, whole[at + ROWS - 1 : at + 400], rtol=1e-9, atol=1e-9)
