"""Dropout that spends 16 random bits per number.

PyTorch's own draws a float64 for each number, on the CPU one after the other; in a model as small as this one that is
a good part of a forward pass.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

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
        if rows.is_cuda:  # draws in parallel, in the kernel that multiplies
            return dropout(rows, self.share)
        draws = torch.empty(-(-rows.numel() // 4), dtype=torch.int64, device=rows.device)
        draws.random_(-(2**63), None)  # all 64 bits
        outcomes = draws.view(torch.int16)[: rows.numel()].view(rows.shape)  # -32,768 ... 32,767
        kept = (outcomes >= self.dropped - OUTCOMES // 2).to(rows.dtype)
        return rows * kept.mul_(OUTCOMES / (OUTCOMES - self.dropped))

    def extra_repr(self) -> str:
        """For `print(model)`."""
        return f"share={self.share:.4g}"
