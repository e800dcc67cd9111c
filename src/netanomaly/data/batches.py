"""Segments cut into stretches of rows, each with its history in front: batches without copied windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from netanomaly.data.channels import Channels
from netanomaly.data.grid import Segment

IGNORED = -1
"""Target of a step that has no label to learn or score: unlabelled, of another part, or without any data."""


@dataclass(frozen=True)
class ChannelSegment:
    """A segment as the model takes it.

    Attributes:
        channels: (T, C) float32.
        valid: steps at which anything was measured. (T,)
        targets: class of each step, or `IGNORED`, as every step without data is. (T,)
    """

    channels: NDArray[np.float32]
    valid: NDArray[np.bool_]
    targets: NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """B stretches of T rows with the history of the first one in front.

    Attributes:
        channels: (B, history + T, C); zero outside the segment.
        valid: (B, history + T); False outside the segment.
        targets: (B, T); `IGNORED` outside the segment.
        pieces: segment and first step of each stretch.
    """

    channels: Tensor
    valid: Tensor
    targets: Tensor
    pieces: tuple[tuple[int, int], ...]


def channel_segment(segment: Segment, channels: Channels, targets: NDArray[np.int64] | None = None) -> ChannelSegment:
    """A segment as the model takes it. Without `targets` every step is asked about, class 0 standing for any."""
    if targets is None:
        targets = np.zeros(len(segment), dtype=np.int64)
    valid = segment.valid
    return ChannelSegment(channels(segment.values), valid, np.where(valid, targets, IGNORED))


def stretches(
    segments: Sequence[ChannelSegment], length: int, rng: np.random.Generator | None = None
) -> list[tuple[int, int]]:
    """(segment, first step) of stretches of `length` steps that cover every step with a target once.

    With `rng` the cuts fall elsewhere each time and the order is random: for training. Stretches without any
    target are left out.
    """
    pieces = []
    for index, segment in enumerate(segments):
        start = 0 if rng is None else -int(rng.integers(length))
        asked = segment.targets != IGNORED
        for first in range(start, len(asked), length):
            if asked[max(first, 0) : first + length].any():
                pieces.append((index, first))
    if rng is not None:
        rng.shuffle(pieces)
    return pieces


def batches(
    segments: Sequence[ChannelSegment], pieces: Sequence[tuple[int, int]], length: int, history: int, size: int
) -> Iterator[Batch]:
    """The stretches, `size` at a time, each `length` rows with `history` rows in front."""
    for first in range(0, len(pieces), size):
        chosen = tuple(pieces[first : first + size])
        channels, valid, targets = [], [], []
        for index, start in chosen:
            segment = segments[index]
            channels.append(_cut(segment.channels, start - history, start + length, 0))
            valid.append(_cut(segment.valid, start - history, start + length, False))
            targets.append(_cut(segment.targets, start, start + length, IGNORED))
        yield Batch(
            torch.from_numpy(np.stack(channels)),
            torch.from_numpy(np.stack(valid)),
            torch.from_numpy(np.stack(targets)),
            chosen,
        )


def _cut(values: NDArray[np.generic], start: int, stop: int, fill: float) -> NDArray[np.generic]:
    """values[start:stop] with `fill` for what lies outside. (T, ...) to (stop - start, ...)"""
    inside = values[max(start, 0) : max(stop, 0)]
    if len(inside) == stop - start:
        return inside
    result = np.full((stop - start, *values.shape[1:]), fill, dtype=values.dtype)
    at = max(-start, 0)
    result[at : at + len(inside)] = inside
    return result
