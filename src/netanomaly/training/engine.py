"""The loops: tensors in, numbers out. No files, no printing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from netanomaly.data.batches import IGNORED, Batch, ChannelSegment, batches, stretches
from netanomaly.errors import TrainingError
from netanomaly.training.losses import weighted_cross_entropy

SCORING_ROWS = 512
"""Rows per stretch when nothing is learned: fewer rows of history to compute again."""
SCORING_BATCH = 8


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
    label_smoothing: float,
    gradient_clip: float,
    jitter: float,
    rate: Callable[[], float],
    after_step: Callable[[float], None],
) -> EpochSums:
    """One pass over the training batches.

    Args:
        weights: per class, (K,), on the model's device.
        jitter: standard deviation of the random scale and shift of each channel of each stretch.
        rate: the learning rate of the next step.
        after_step: called with the loss of each step.

    Raises:
        TrainingError: a loss or gradient is not finite; the step is not taken.
    """
    model.train()
    losses, totals, norms, steps = 0.0, 0.0, 0.0, 0
    for batch in training:
        channels = _jittered(batch.channels.to(weights.device), jitter)
        valid, targets = batch.valid.to(weights.device), _asked(batch).to(weights.device)
        loss_sum, weight_sum = weighted_cross_entropy(
            model(channels, valid), targets, weights, label_smoothing, IGNORED
        )
        if not weight_sum:
            continue  # every labelled row of the batch is without data
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
    model: nn.Module, segments: Sequence[ChannelSegment], history: int, device: torch.device
) -> list[NDArray[np.float32]]:
    """Logits of every step of every segment, (T, K) each; meaningless at steps that are not valid."""
    model.eval()
    pieces = stretches(segments, SCORING_ROWS)
    found: list[list[NDArray[np.float32]]] = [[] for _ in segments]
    for batch in batches(segments, pieces, SCORING_ROWS, history, SCORING_BATCH):
        logits = model(batch.channels.to(device), batch.valid.to(device)).float().cpu().numpy()  # (B, T, K)
        for (index, first), rows in zip(batch.pieces, logits, strict=True):
            found[index].append(rows[: len(segments[index].valid) - first])
    return [np.concatenate(parts) for parts in found]


def _jittered(channels: Tensor, jitter: float) -> Tensor:
    """Each channel of each stretch scaled and shifted a little: links differ. (B, S, C) to (B, S, C)"""
    if jitter == 0:
        return channels
    shape = (len(channels), 1, channels.shape[2])
    noise = torch.randn((2, *shape), device=channels.device) * jitter
    return channels * (1 + noise[0]) + noise[1]


def _asked(batch: Batch) -> Tensor:
    """Targets of rows that hold any data: the model is never asked about the others. (B, T)"""
    return batch.targets.masked_fill(~batch.valid[:, -batch.targets.shape[1] :], IGNORED)
