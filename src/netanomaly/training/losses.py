"""Cross-entropy as a sum and the weight it stands for."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

ClassWeights = Literal["capped", "none", "balanced", "sqrt"]
LARGEST_SHARE = 0.8
"""Of the weight of all rows, what a class has at most where weights are capped."""


def class_weights(counts: Tensor, kind: ClassWeights) -> Tensor:
    """A weight per class from its number of training rows, (K,) to (K,).

    `capped` weighs all classes alike, but one with more than `LARGEST_SHARE` of the rows only for as much.
    `balanced` weighs a class by rows / (classes * its rows), `sqrt` by the square root of that; either is then
    scaled to a mean of 1 over the classes with rows. A class without any has a weight of 0: with a large one, label
    smoothing would raise it in every row.
    """
    if kind == "none":
        return torch.ones_like(counts, dtype=torch.float32)
    present = counts > 0
    if kind == "capped":
        rest = counts.sum() - counts  # of the other classes, (K,)
        most = rest * LARGEST_SHARE / (1 - LARGEST_SHARE)
        return torch.where(present & (rest > 0), (most / counts.clamp(min=1)).clamp(max=1), 1.0).to(torch.float32)
    balanced = torch.where(present, counts.sum() / (present.sum() * counts.clamp(min=1)), 0.0)
    weights = balanced if kind == "balanced" else balanced.sqrt()
    return (weights / weights[present].mean()).to(torch.float32)


def weighted_cross_entropy(
    logits: Tensor, targets: Tensor, weights: Tensor, label_smoothing: float, ignored: int
) -> tuple[Tensor, Tensor]:
    """The summed loss of all labelled rows and the sum of their weights.

    Dividing once at the end, after adding up micro-batches or processes, gives the loss of the whole batch;
    averaging their means does not, since they hold different weights.

    Args:
        logits: (B, T, K)
        targets: (B, T), `ignored` where there is nothing to learn.
        weights: (K,)

    Returns:
        Two scalars; the loss is first / second.
    """
    flat = targets.flatten()
    total = cross_entropy(
        logits.flatten(0, 1), flat, weights, ignore_index=ignored, reduction="sum", label_smoothing=label_smoothing
    )
    return total, weights[flat[flat != ignored]].sum()
