from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from netanomaly.data.batches import IGNORED, Batch, ChannelSegment, batches, channel_segment, stretches
from netanomaly.data.channels import Channels
from netanomaly.data.grid import Segment

PROPERTY = settings(max_examples=60, deadline=None)
SIZES = st.lists(st.integers(1, 40), min_size=1, max_size=4)
LENGTHS = st.integers(1, 20)


def make_segments(sizes: list[int], labelled: float = 0.5, seed: int = 0) -> list[ChannelSegment]:
    """Segments whose channels and targets tell every step apart; some steps are masked or without a target."""
    rng = np.random.default_rng(seed)
    result, first = [], 1
    for size in sizes:
        steps = np.arange(first, first + size)
        first += size
        targets = np.where(rng.random(size) < labelled, steps, IGNORED)
        result.append(
            ChannelSegment(np.stack([steps, -steps], axis=1).astype(np.float32), rng.random(size) < 0.8, targets)
        )
    return result


def labelled_steps(segments: list[ChannelSegment]) -> list[int]:
    return sorted(int(target) for segment in segments for target in segment.targets if target != IGNORED)


def targets_of(found: list[Batch]) -> list[int]:
    return sorted(int(target) for batch in found for target in batch.targets.flatten().tolist() if target != IGNORED)


@PROPERTY
@given(SIZES, LENGTHS, st.integers(0, 2**32 - 1), st.integers(1, 5), st.floats(0, 1))
def test_every_labelled_step_comes_exactly_once_wherever_the_cuts_fall(
    sizes: list[int], length: int, seed: int, size: int, labelled: float
) -> None:
    segments = make_segments(sizes, labelled)
    pieces = stretches(segments, length, np.random.default_rng(seed))
    assert targets_of(list(batches(segments, pieces, length, 3, size))) == labelled_steps(segments)


@PROPERTY
@given(SIZES, LENGTHS, st.integers(0, 2**32 - 1))
def test_no_stretch_without_a_target_is_trained_on(sizes: list[int], length: int, seed: int) -> None:
    segments = make_segments(sizes, 0.2)
    pieces = stretches(segments, length, np.random.default_rng(seed))
    for batch in batches(segments, pieces, length, 3, 1):
        assert (batch.targets != IGNORED).any()


@PROPERTY
@given(SIZES, LENGTHS, st.floats(0, 1))
def test_without_a_draw_stretches_follow_each_other_in_order(sizes: list[int], length: int, labelled: float) -> None:
    segments = make_segments(sizes, labelled)
    pieces = stretches(segments, length)
    assert pieces == sorted(pieces)
    assert all(first % length == 0 for _, first in pieces)
    found = [target for batch in batches(segments, pieces, length, 3, 2) for target in batch.targets.flatten().tolist()]
    assert [target for target in found if target != IGNORED] == labelled_steps(segments)


@PROPERTY
@given(SIZES, LENGTHS, st.integers(0, 25), st.integers(1, 5), st.none() | st.integers(0, 2**32 - 1))
def test_a_stretch_holds_its_steps_behind_their_true_history_and_nothing_else(
    sizes: list[int], length: int, history: int, size: int, seed: int | None
) -> None:
    segments = make_segments(sizes)
    pieces = stretches(segments, length, None if seed is None else np.random.default_rng(seed))
    for batch in batches(segments, pieces, length, history, size):
        for row, (index, first) in enumerate(batch.pieces):
            segment = segments[index]
            for place in range(history + length):
                step = first - history + place
                inside = 0 <= step < sizes[index]
                channels = segment.channels[step].tolist() if inside else [0, 0]
                assert batch.channels[row, place].tolist() == channels
                assert bool(batch.valid[row, place]) == (inside and bool(segment.valid[step]))
                if place >= history:
                    wanted = segment.targets[step] if inside else IGNORED
                    assert int(batch.targets[row, place - history]) == wanted


@PROPERTY
@given(SIZES, LENGTHS, st.integers(1, 5))
def test_batches_hold_the_pieces_in_order_and_only_the_last_is_smaller(
    sizes: list[int], length: int, size: int
) -> None:
    segments = make_segments(sizes, 1.0)
    pieces = stretches(segments, length)
    found = [batch.pieces for batch in batches(segments, pieces, length, 2, size)]
    assert [piece for chosen in found for piece in chosen] == pieces
    assert all(len(chosen) == size for chosen in found[:-1])
    assert 1 <= len(found[-1]) <= size


def test_a_draw_repeats_with_its_seed() -> None:
    segments = make_segments([100, 50])
    draws = [stretches(segments, 8, np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert draws[0] == draws[1]
    assert draws[0] != draws[2]


def test_cuts_fall_elsewhere_in_each_draw() -> None:
    segments = make_segments([100], 1.0)
    offsets = {min(stretches(segments, 8, np.random.default_rng(seed)))[1] for seed in range(60)}
    assert offsets == set(range(-7, 1))


def test_the_order_of_a_draw_is_random() -> None:
    pieces = stretches(make_segments([400], 1.0), 8, np.random.default_rng(0))
    assert pieces != sorted(pieces)


def test_a_batch_has_the_types_that_the_model_takes() -> None:
    (batch,) = batches(make_segments([10]), [(0, 0)], 8, 4, 2)
    assert (batch.channels.shape, batch.channels.dtype) == ((1, 12, 2), torch.float32)
    assert (batch.valid.shape, batch.valid.dtype) == ((1, 12), torch.bool)
    assert (batch.targets.shape, batch.targets.dtype) == ((1, 8), torch.int64)


@pytest.mark.parametrize("first", [0, 2])
def test_a_batch_is_a_copy(first: int) -> None:
    segments = make_segments([10])
    (batch,) = batches(segments, [(0, first)], 4, 2, 1)
    batch.channels.zero_()
    assert (segments[0].channels != 0).all()


def test_no_pieces_give_no_batches() -> None:
    assert list(batches(make_segments([10]), [], 8, 4, 2)) == []


LEVEL = Channels(("level",), (8,), np.zeros(1), np.ones(1), np.zeros(1), np.ones(1))
MEASURED = Segment("a", np.array([[0.0], [np.nan], [2.0]]), np.array(["x", "y", ""], dtype=object), np.arange(3))


def test_without_targets_every_measured_step_is_asked_about() -> None:
    found = channel_segment(MEASURED, LEVEL)
    assert found.targets.tolist() == [0, IGNORED, 0]
    assert found.valid.tolist() == [True, False, True]


def test_a_step_without_data_is_never_a_target() -> None:
    assert channel_segment(MEASURED, LEVEL, np.array([3, 4, IGNORED])).targets.tolist() == [3, IGNORED, IGNORED]


def test_a_segment_for_the_model_has_its_channels() -> None:
    np.testing.assert_array_equal(channel_segment(MEASURED, LEVEL).channels, LEVEL(MEASURED.values))
