"""The whole classifier: encoder, look-ups, read-out, head. Segments in, logits for every target row out."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import silu
from torch.utils.checkpoint import checkpoint

from netanomaly.model.attention import SlidingAttention
from netanomaly.model.encoder import MetricEncoder

ReadOut = Literal["last", "mean", "cls", "attention"]

ROWS_AT_ONCE = 32
"""Target rows whose full L x L maps are held at a time by the read-outs that need them."""


def window_history(window: int, stem: int) -> int:
    """Earlier rows that the model sees: those of the window and of its oldest row's convolution."""
    return window - 1 + stem - 1


class LookupBlock(nn.Module):
    """A pre-norm residual block: a look-up in the window, then a SwiGLU feed-forward layer.

    Keys and values come from the rows' embeddings in every block, so deeper blocks ask better questions of
    the same table, and a window stays independent of the windows around it.
    """

    def __init__(self, width: int, n_heads: int, length: int, position_base: float, dropout: float) -> None:
        super().__init__()
        self.norm_asking = nn.LayerNorm(width)
        self.norm_memory = nn.LayerNorm(width)
        self.attention = SlidingAttention(width, n_heads, length, position_base)
        self.norm_found = nn.LayerNorm(width)
        self.widen = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(2 * width, width)
        self.dropout = nn.Dropout(dropout)

    def newest(self, asking: Tensor, memory: Tensor, valid: Tensor, positioned: bool) -> Tensor:
        """(B, T, D), (B, T + L - 1, D), (B, T + L - 1) to (B, T, D)"""
        found = self.attention.newest(self.norm_asking(asking), self.norm_memory(memory), valid, positioned)
        return self._feed_forward(asking + self.dropout(found))

    def whole(self, asking: Tensor, memory: Tensor, valid: Tensor) -> Tensor:
        """(N, L, D), (N, L, D), (N, L) to (N, L, D)"""
        found = self.attention.whole(self.norm_asking(asking), self.norm_memory(memory), valid)
        return self._feed_forward(asking + self.dropout(found))

    def _feed_forward(self, rows: Tensor) -> Tensor:
        value, gate = self.widen(self.norm_found(rows)).chunk(2, dim=-1)  # (..., 2 D) each
        result: Tensor = rows + self.dropout(self.narrow(value * silu(gate)))
        return result


class NetworkAnomalyClassifier(nn.Module):
    """Names the state of the network at every target row from the window that ends in it.

    Read-outs:
        last: the newest row of the window asks, once per block. The cheapest.
        cls: a learned token asks instead of the newest row, without a position.
        mean: every row of the window asks; the mean of the valid rows is read.
        attention: every row asks; a learned weighting of the valid rows is read.

    Args:
        channels: C, per row.
        classes: K.
        window: L, rows.
        width: D, of an embedding.
        n_heads: H.
        depth: look-up blocks.
        stem: rows that the encoder's convolution joins.
    """

    def __init__(
        self,
        channels: int,
        classes: int,
        *,
        window: int,
        width: int = 64,
        n_heads: int = 4,
        depth: int = 1,
        stem: int = 9,
        read_out: ReadOut = "last",
        position_base: float = 10000.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.window = window
        self.read_out = read_out
        self.encoder = MetricEncoder(channels, width, stem)
        self.blocks = nn.ModuleList(LookupBlock(width, n_heads, window, position_base, dropout) for _ in range(depth))
        if read_out == "cls":
            self.token = nn.Parameter(torch.randn(width) * 0.02)  # (D,)
        if read_out == "attention":
            self.weigh = nn.Linear(width, 1, bias=False)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)
        nn.init.normal_(self.head.weight, std=0.02)  # fresh logits are near zero: no class is preferred
        nn.init.zeros_(self.head.bias)

    @property
    def history_rows(self) -> int:
        """Earlier rows that the logits of a row depend on."""
        return window_history(self.window, self.encoder.kernel)

    def forward(self, channels: Tensor, valid: Tensor) -> Tensor:
        """Logits of every target row.

        Args:
            channels: (B, history_rows + T, C)
            valid: (B, history_rows + T); what `channels` holds where this is False does not matter.

        Returns:
            (B, T, K); meaningless where the target row itself is not valid, but finite.
        """
        memory = self.encoder(channels, valid)  # (B, T + L - 1, D)
        valid = valid[:, self.encoder.kernel - 1 :]  # (B, T + L - 1)
        read = self._read_windows(memory, valid) if self.read_out in ("mean", "attention") else self._ask(memory, valid)
        logits: Tensor = self.head(self.norm(read))
        return logits

    def _ask(self, memory: Tensor, valid: Tensor) -> Tensor:
        """Read-outs with one query per window. (B, T + L - 1, D) to (B, T, D)"""
        rows = memory[:, self.window - 1 :]  # (B, T, D)
        asking = self.token.expand_as(rows) if self.read_out == "cls" else rows
        for block in self.blocks:
            asking = block.newest(asking, memory, valid, positioned=self.read_out == "last")  # type: ignore[operator]
        return asking

    def _read_windows(self, memory: Tensor, valid: Tensor) -> Tensor:
        """Read-outs of the full map, a few target rows at a time. (B, T + L - 1, D) to (B, T, D)

        In training the maps are not kept but computed again in the backward pass: memory stays proportional to
        rows at the price of a second forward pass.
        """
        windows = memory.unfold(1, self.window, 1).transpose(2, 3)  # (B, T, L, D), a view
        held = valid.unfold(1, self.window, 1)  # (B, T, L), a view
        parts = [
            checkpoint(self._read_some, some, mask, use_reentrant=False)
            for some, mask in zip(windows.split(ROWS_AT_ONCE, 1), held.split(ROWS_AT_ONCE, 1), strict=True)
        ]
        return torch.cat(parts, dim=1)

    def _read_some(self, windows: Tensor, valid: Tensor) -> Tensor:
        """(B, t, L, D) to (B, t, D)"""
        memory, mask = windows.flatten(0, 1), valid.flatten(0, 1)  # (N, L, D), (N, L)
        rows = memory
        for block in self.blocks:
            rows = block.whole(rows, memory, mask)  # type: ignore[operator]
        lowest = torch.finfo(rows.dtype).min
        scores = self.weigh(rows).squeeze(-1) if self.read_out == "attention" else rows.new_zeros(mask.shape)
        weights = scores.masked_fill(~mask, lowest).softmax(-1)  # (N, L); the mean where all scores are alike
        read = (weights[..., None] * rows).sum(1)  # (N, D)
        return read.unflatten(0, windows.shape[:2])
