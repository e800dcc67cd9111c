"""Metrics hidden at random while a model learns, so that it can do without any of them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class MetricDropout:
    """Hides metrics of a stretch as if they were not measured in it: channels 0, the channel `missing` 1.

    Each metric of each stretch by itself; where all would be hidden, one of them stays. Which rows are valid does not
    change.

    Args:
        share: of the metrics that are hidden, from 0 to less than 1.
        metrics: M; channels lie in groups of one channel of every metric.
        missing: which group says that a metric is missing; None: no such group.
    """

    share: float
    metrics: int
    missing: int | None

    def __call__(self, channels: Tensor) -> Tensor:
        """(B, S, G M) to (B, S, G M)"""
        draws = torch.rand(len(channels), self.metrics, device=channels.device)  # (B, M)
        hidden = (draws < self.share) & (draws < draws.amax(dim=1, keepdim=True))  # the largest draw stays
        grouped = channels.unflatten(-1, (-1, self.metrics))  # (B, S, G, M)
        result = grouped.masked_fill(hidden[:, None, None], 0.0)
        if self.missing is not None:
            result[:, :, self.missing] = grouped[:, :, self.missing].masked_fill(hidden[:, None], 1.0)
        flat: Tensor = result.flatten(-2)
        return flat
