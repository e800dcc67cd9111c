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
from netanomaly.training.forward import Forward
from netanomaly.training.losses import weighted_cross_entropy
from netanomaly.training.world import ALONE, World

SCORING_STRETCH = 4096
"""Rows per stretch when nothing is learned: long, so that less history is computed again."""
SCORING_ROWS = 4096
"""Rows per batch when nothing is learned."""


class NonFiniteLoss(Exception):
    """A step that was not taken: its loss or gradient is not a finite number."""

    def __init__(self, batch: Batch, loss: float, gradient_norm: float) -> None:
        super().__init__(f"loss {loss}, gradient norm {gradient_norm}")
        self.batch = batch


@dataclass
class EpochSums:
    """What the steps of an epoch add up to.

    Attributes:
        losses, weights: of the labelled rows.
        norms: of the gradients, before clipping.
        steps: optimiser steps taken.
    """

    losses: float = 0.0
    weights: float = 0.0
    norms: float = 0.0
    steps: int = 0

    @property
    def loss(self) -> float:
        """Mean loss of the labelled rows, weighted."""
        return self.losses / max(self.weights, 1e-12)

    @property
    def gradient_norm(self) -> float:
        """Mean over the steps."""
        return self.norms / max(self.steps, 1)


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
    sums: EpochSums | None = None,
    forward: Forward | None = None,
    world: World = ALONE,
    add_up: Callable[[Tensor], Tensor] | None = None,
) -> EpochSums:
    """One pass over the training batches, or what is left of it.

    Args:
        weights: per class, (K,), on the model's device.
        stride: every n-th row of a stretch is learnt from.
        jitter: standard deviation of the random scale and shift of each channel of each stretch.
        hide: takes metrics out of the channels of a batch, (B, S, C) to (B, S, C).
        rate: the learning rate of the next step.
        after_step: called with the loss of each step.
        sums: of the steps that were taken before; added to.
        forward: how the model is called, if not as it is; see `training_forward`.
        world: with others, `training` holds this process's share of every batch, and `forward` leaves the mean of
            the processes' gradients: the step is that of the whole batch.
        add_up: sums of a few numbers over the processes; None: `world.sum`.

    Raises:
        NonFiniteLoss: of a loss or gradient; the step is not taken, in no process.
    """
    forward, add_up = forward or model, add_up or world.sum
    model.train()
    sums = sums if sums is not None else EpochSums()
    for batch in training:
        rows = int((batch.targets[:, ::stride] != IGNORED).sum())
        if world.is_alone and not rows:  # the stride has left no row of this batch to learn
            after_step(math.nan)
            continue
        channels = batch.channels.to(weights.device)
        if hide is not None:
            channels = hide(channels)
        channels = _jittered(channels, jitter)
        valid, targets = batch.valid.to(weights.device), batch.targets[:, ::stride].to(weights.device)
        logits = forward(channels, valid, stride)  # (B, T / stride, K)
        loss_sum, weight_sum = weighted_cross_entropy(logits, targets, weights, label_smoothing, IGNORED)
        whole = add_up(torch.stack([loss_sum.detach(), weight_sum, weight_sum.new_tensor(rows)]))  # of all processes
        if not whole[2]:
            after_step(math.nan)
            continue
        optimizer.zero_grad()
        (loss_sum * world.size / whole[1]).backward()  # the mean over the processes is what belongs to the batch
        norm = float(nn.utils.clip_grad_norm_(model.parameters(), gradient_clip))
        loss = (whole[0] / whole[1]).item()
        if not (math.isfinite(norm) and math.isfinite(loss)):
            raise NonFiniteLoss(batch, loss, norm)
        for group in optimizer.param_groups:
            group["lr"] = rate()
        optimizer.step()
        sums.losses += whole[0].item()
        sums.weights += whole[1].item()
        sums.norms += norm
        sums.steps += 1
        after_step(loss)
    return sums


@torch.inference_mode()
def segment_logits(
    model: nn.Module,
    segments: Sequence[ChannelSegment],
    classes: int,
    history: int,
    device: torch.device,
    world: World = ALONE,
) -> list[NDArray[np.float32]]:
    """Logits of every step that has a target, (T, K) per segment; other steps may hold anything finite.

    Args:
        world: with others, every row is computed by one process, and all get it.
    """
    model.eval()
    found = [np.zeros((len(segment.valid), classes), dtype=np.float32) for segment in segments]
    for length, pieces in _by_length(segments):
        for batch in batches(segments, world.share(pieces), length, history, max(1, SCORING_ROWS // length)):
            logits = model(batch.channels.to(device), batch.valid.to(device)).float().cpu().numpy()  # (B, T, K)
            for (index, first), rows in zip(batch.pieces, logits, strict=True):
                place = found[index][first : first + length]
                place[:] = rows[: len(place)]
    return found if world.is_alone else _together(found, world)


def _together(found: Sequence[NDArray[np.float32]], world: World) -> list[NDArray[np.float32]]:
    """Arrays of which every process has filled other rows. Elsewhere are zeros: the sum rounds nothing."""
    rows = world.sum(torch.from_numpy(np.concatenate(found))).numpy()
    return np.split(rows, np.cumsum([len(one) for one in found])[:-1])


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
