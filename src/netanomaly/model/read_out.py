"""Read-outs: from the rows of a window to the one vector that is classified."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from netanomaly.model import choices


class ReadOut(nn.Module):
    """What is read of a window whose rows a sequence model has worked on.

    last: the newest row.
    cls: a learned token, which stands behind the newest row.
    mean: the mean of the valid rows.
    attention: a learned weighting of the valid rows.

    Args:
        kind: one of them.
        width: D
    """

    def __init__(self, kind: choices.ReadOut, width: int) -> None:
        super().__init__()
        self.kind = kind
        if kind == "cls":
            self.token = nn.Parameter(torch.randn(width) * 0.02)  # (D,)
        if kind == "attention":
            self.weigh = nn.Linear(width, 1, bias=False)

    def prepare(self, rows: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
        """The rows that the sequence model gets: with the token behind them if there is one.

        (N, L, D), (N, L) to (N, L or L + 1, D), (N, L or L + 1)
        """
        if self.kind != "cls":
            return rows, valid
        token = self.token.to(rows.dtype).expand(rows.shape[0], 1, -1)
        return torch.cat([rows, token], dim=1), torch.cat([valid, valid.new_ones(valid.shape[0], 1)], dim=1)

    def forward(self, rows: Tensor, valid: Tensor) -> Tensor:
        """(N, S, D), (N, S) to (N, D); meaningless, but finite, where no row is valid."""
        if self.kind in ("last", "cls"):
            return rows[:, -1]
        return (self.shares(rows, valid)[..., None] * rows).sum(1)

    def shares(self, rows: Tensor, valid: Tensor) -> Tensor:
        """What each row counts in what is read; they sum to 1. (N, S, D), (N, S) to (N, S)"""
        if self.kind in ("last", "cls"):
            newest = torch.arange(rows.shape[1], device=rows.device) == rows.shape[1] - 1  # (S,)
            return newest.to(rows.dtype).expand(valid.shape)
        scores = self.weigh(rows).squeeze(-1) if self.kind == "attention" else rows.new_zeros(valid.shape)
        return scores.masked_fill(~valid, torch.finfo(rows.dtype).min).softmax(-1)
