"""The loops: tensors in, numbers out. No files, no printing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from netanomaly.data.batches import IGNORED, Batch, ChannelSegment, batches, stretches
from netanomaly.errors import TrainingError
from netanomaly.training.losses import weighted_cross_entropy

SCORING_STRETCH = 4096
"""Rows per stretch when nothing is learned: long, so that less history is computed again."""
SCORING_ROWS = 4096
"""Rows per batch when nothing is learned."""


@dataclass(frozen=True)
class EpochSums:
    """What an epoch adds up to.

    Attributes:
        loss: mean loss of the labelled rows, weighted.
        gradient_norm: mean over the steps, before clipping.
        steps: optimiser steps taken.
    """

    loss: float
    gradient_norm: float
    steps: int


def train_epoch(
    model: nn.Module,
    training: Iterable[Batch],
    optimizer: torch.optim.Optimizer,
    weights: Tensor,
    *,
    stride: int,
    label_smoothing: float,
    gradient_clip: float,
    jitter: float,
    hide: Callable[[Tensor], Tensor] | None = None,
    rate: Callable[[], float],
    after_step: Callable[[float], None],
) -> EpochSums:
    """One pass over the training batches.

    Args:
        weights: per class, (K,), on the model's device.
        stride: every n-th row of a stretch is learnt from.
        jitter: standard deviation of the random scale and shift of each channel of each stretch.
        hide: takes metrics out of the channels of a batch, (B, S, C) to (B, S, C).
        rate: the learning rate of the next step.
        after_step: called with the loss of each step.

    Raises:
        TrainingError: a loss or gradient is not finite; the step is not taken.
    """
    model.train()
    losses, totals, norms, steps = 0.0, 0.0, 0.0, 0
    for batch in training:
        if not (batch.targets[:, ::stride] != IGNORED).any():  # the stride has left no row of this batch to learn
            after_step(math.nan)
            continue
        channels = batch.channels.to(weights.device)
        if hide is not None:
            channels = hide(channels)
        channels = _jittered(channels, jitter)
        valid, targets = batch.valid.to(weights.device), batch.targets[:, ::stride].to(weights.device)
        logits = model(channels, valid, stride)  # (B, T / stride, K)
        loss_sum, weight_sum = weighted_cross_entropy(logits, targets, weights, label_smoothing, IGNORED)
        loss = loss_sum / weight_sum
        optimizer.zero_grad()
        loss.backward()
        norm = float(nn.utils.clip_grad_norm_(model.parameters(), gradient_clip))
        if not (math.isfinite(norm) and math.isfinite(loss.item())):
            raise TrainingError(
                f"loss {loss.item()}, gradient norm {norm} at step {steps + 1} of the epoch; "
                "lower training.learning_rate, or look for extreme values in the data"
            )
        for group in optimizer.param_groups:
            group["lr"] = rate()
        optimizer.step()
        losses, totals = losses + loss_sum.item(), totals + weight_sum.item()
        norms, steps = norms + norm, steps + 1
        after_step(loss.item())
    return EpochSums(losses / max(totals, 1e-12), norms / max(steps, 1), steps)


@torch.inference_mode()
def segment_logits(
    model: nn.Module, segments: Sequence[ChannelSegment], classes: int, history: int, device: torch.device
) -> list[NDArray[np.float32]]:
    """Logits of every step that has a target, (T, K) per segment; other steps may hold anything finite."""
    model.eval()
    found = [np.zeros((len(segment.valid), classes), dtype=np.float32) for segment in segments]
    for length, pieces in _by_length(segments):
        for batch in batches(segments, pieces, length, history, max(1, SCORING_ROWS // length)):
            logits = model(batch.channels.to(device), batch.valid.to(device)).float().cpu().numpy()  # (B, T, K)
            for (index, first), rows in zip(batch.pieces, logits, strict=True):
                place = found[index][first : first + length]
                place[:] = rows[: len(place)]
    return found


def _by_length(segments: Sequence[ChannelSegment]) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Stretches to score, short ones apart: (length, pieces). Padding them to full length would waste the work."""
    groups: dict[int, list[tuple[int, int]]] = {}
    for index, first in stretches(segments, SCORING_STRETCH):
        rows = min(SCORING_STRETCH, len(segments[index].valid) - first)
        groups.setdefault(1 << (rows - 1).bit_length(), []).append((index, first))
    yield from sorted(groups.items())


def _jittered(channels: Tensor, jitter: float) -> Tensor:
    """Each channel of each stretch scaled and shifted a little: links differ. (B, S, C) to (B, S, C)"""
    if jitter == 0:
        return channels
    shape = (len(channels), 1, channels.shape[2])
    noise = torch.randn((2, *shape), device=channels.device) * jitter
    return channels * (1 + noise[0]) + noise[1]
