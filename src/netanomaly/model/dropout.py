"""Dropout that spends 16 random bits per number.

PyTorch's own draws a float64 for each number, on the CPU one after the other: with it a third of a forward pass of
this small model went into dropout.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

OUTCOMES = 2**16


class Dropout(nn.Module):
    """Zeroes numbers at random while training and scales the others, so that the mean stays.

    Source: Srivastava et al., Dropout: A Simple Way to Prevent Neural Networks from Overfitting (2014).

    Args:
        share: of the numbers that are zeroed, from 0 to less than 1; becomes a multiple of 1 / 65,536.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.dropped = min(round(share * OUTCOMES), OUTCOMES - 1)  # of all outcomes

    @property
    def share(self) -> float:
        """Of the numbers that are zeroed."""
        return self.dropped / OUTCOMES

    def forward(self, rows: Tensor) -> Tensor:
        """Any shape."""
        if not self.training or self.dropped == 0:
            return rows
        draws = torch.empty(-(-rows.numel() // 4), dtype=torch.int64, device=rows.device)
        draws.random_(-(2**63), None)  # all 64 bits
        outcomes = draws.view(torch.int16)[: rows.numel()].view(rows.shape)  # -32,768 ... 32,767
        kept = (outcomes >= self.dropped - OUTCOMES // 2).to(rows.dtype)
        return rows * kept.mul_(OUTCOMES / (OUTCOMES - self.dropped))
