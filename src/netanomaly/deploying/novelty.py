"""`unknown.KnownRows` for the newest row of windows, in operations that a file for other programs can hold."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from netanomaly.unknown import KnownRows


class WindowNovelty(nn.Module):
    """How unlike training the newest row of each window is: above 1 for `unknown`.

    Args:
        known: what training has seen, with a limit that is a number.
        most: novelty of rows that are stranger still.
    """

    limit: Tensor
    most: Tensor
    chosen: Tensor
    means: Tensor
    scale: Tensor
    joint: Tensor

    def __init__(self, known: KnownRows, most: float) -> None:
        super().__init__()
        self.rows = known.rows
        self.register_buffer("limit", torch.tensor(known.limit, dtype=torch.float64))
        self.register_buffer("most", torch.tensor(most, dtype=torch.float64))
        for name in ("chosen", "means", "scale", "joint"):
            values = torch.from_numpy(getattr(known, name).copy())
            self.register_buffer(name, values if name == "chosen" else values.double())

    def forward(self, channels: Tensor, valid: Tensor) -> Tensor:
        """(B, W, C), (B, W) to (B,) float64; 0 where nothing was measured in the newest row"""
        seen = valid[:, -self.rows :, None]  # (B, n, 1)
        last = channels[:, -self.rows :].index_select(-1, self.chosen).double()  # (B, n, F)
        recent = torch.where(seen, last, 0.0).sum(1) / seen.double().sum(1).clamp(min=1)  # (B, F)
        apart = (recent[:, None] - self.means) / self.scale  # (B, K, F)
        squares = apart.square().sum(-1) - (apart @ self.joint).square().sum(-1)  # (B, K)
        score = squares.amin(-1).clamp(min=0).sqrt()
        return (score / self.limit).minimum(self.most) * valid[:, -1]
