"""Self-attention as a look-up in a table of keys and values.

Every row of the recent past has a key and a value. A row asks with its query: dot products with the keys,
softmax, and the weighted mean of the values is the answer. Positions are added to the projected q and k and
never to v:

    score(i, j) = (q_i + p_i) . (k_j + p_j) / sqrt(d),      answer_i = sum_j softmax_j(score(i, j)) v_j

So q, k and v of a row are the same in every window that holds it; only the small table p belongs to the window.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from netanomaly.model.positions import sinusoidal_table
from netanomaly.model.sliding import sliding_lookup


def lookup(queries: Tensor, keys: Tensor, values: Tensor, valid: Tensor) -> Tensor:
    """softmax(q k^T / sqrt(d)) v: the formula, written out. The oracle of every other way to compute it.

    Args:
        queries: (..., Q, d), positions added.
        keys: (..., L, d), positions added.
        values: (..., L, d).
        valid: (..., L); rows that are not valid get no weight. Where none is, all weigh the same (never NaN).

    Returns:
        (..., Q, d)
    """
    scores = queries @ keys.transpose(-1, -2) / queries.shape[-1] ** 0.5  # (..., Q, L)
    scores = scores.masked_fill(~valid[..., None, :], torch.finfo(scores.dtype).min)
    return scores.softmax(-1) @ values


class SlidingAttention(nn.Module):
    """Multi-head attention of rows to the window of `length` rows that ends in them.

    Args:
        width: D, of an embedding.
        n_heads: H; each head has the width d = D / H and its own copy of the positions, d wide.
        length: L, rows of a window.
        position_base: of the sinusoids.
    """

    positions: Tensor

    def __init__(self, width: int, n_heads: int, length: int, position_base: float = 10000.0) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.length = length
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width, bias=False)  # a bias adds the same to all scores: softmax cancels it
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)
        table = sinusoidal_table(length, width // n_heads, position_base)  # (L, d)
        self.register_buffer("positions", table, persistent=False)

    def newest(self, asking: Tensor, memory: Tensor, valid: Tensor, positioned: bool = True) -> Tensor:
        """The newest row of every window asks the window: all windows at once, O(L) per row.

        Args:
            asking: what the newest rows ask with. (B, T, D)
            memory: rows to look up. (B, T + L - 1, D)
            valid: which of them were measured. (B, T + L - 1)
            positioned: whether the query carries the position of the newest row.

        Returns:
            (B, T, D)
        """
        queries = self._heads(self.query(asking))  # (B, H, T, d)
        if positioned:
            queries = queries + self.positions[-1]
        keys, values = self._heads(self.key(memory)), self._heads(self.value(memory))  # (B, H, T + L - 1, d)
        found = sliding_lookup(queries, keys, values, self.positions, valid)  # (B, H, T, d)
        return self._joined(found)

    def whole(self, asking: Tensor, memory: Tensor, valid: Tensor) -> Tensor:
        """Every row of a window asks its window, the full L x L map.

        Args:
            asking, memory: (N, L, D), N windows.
            valid: (N, L)

        Returns:
            (N, L, D)
        """
        queries = self._heads(self.query(asking)) + self.positions  # (N, H, L, d)
        keys = self._heads(self.key(memory)) + self.positions
        return self._joined(lookup(queries, keys, self._heads(self.value(memory)), valid[:, None]))

    def _heads(self, rows: Tensor) -> Tensor:
        """(B, S, D) to (B, H, S, d)"""
        return rows.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def _joined(self, heads: Tensor) -> Tensor:
        """(B, H, S, d) to (B, S, D), through the output projection"""
        joined: Tensor = self.output(heads.transpose(1, 2).flatten(2))
        return joined
