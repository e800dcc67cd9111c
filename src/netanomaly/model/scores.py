"""How well a key answers a query, as the dot product of two vectors.

A squared distance is a dot product of longer vectors,

    -|q - k|^2 / s = [2 q, -|q|^2, 1] / s . [k, 1, -|k|^2]

so that every way to compute a look-up only ever multiplies queries with keys.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from netanomaly.model.choices import Score


@dataclass(frozen=True)
class ScoreRule:
    """`dot`: q . k / divisor. `distance`: -|q - k|^2 / divisor."""

    kind: Score = "dot"
    divisor: float = 1.0

    def asking(self, queries: Tensor) -> Tensor:
        """What to multiply with `held(keys)`. (..., d) to (..., e), e = d or d + 2"""
        if self.kind == "dot":
            return queries / self.divisor
        square = queries.square().sum(-1, keepdim=True)
        return torch.cat([2 * queries, -square, torch.ones_like(square)], dim=-1) / self.divisor

    def held(self, keys: Tensor) -> Tensor:
        """(..., d) to (..., e)"""
        if self.kind == "dot":
            return keys
        square = keys.square().sum(-1, keepdim=True)
        return torch.cat([keys, torch.ones_like(square), -square], dim=-1)

    def of_places(self, vectors: Tensor) -> Tensor:
        """What `asking(queries)` is multiplied with for the position vectors of keys. (L, d) to (L, e)

        Window t holds the keys t .. t + L - 1, and the key at place b stands for k_{t+b} + p_b, which adds to the score

            dot:       q . p_b / s
            distance:  (2 q . p_b - |p_b|^2) / s, and what `of_places_and_keys` gives
        """
        if self.kind == "dot":
            return vectors
        square = vectors.square().sum(-1, keepdim=True)
        return torch.cat([vectors, torch.zeros_like(square), -square], dim=-1)

    def of_places_and_keys(self, keys: Tensor, vectors: Tensor, heads: int) -> Tensor | None:
        """What keys and the vectors of their places add to the scores together: -2 k_{t+b} . p_b / s for `distance`.

        Args:
            keys: without positions, (B, Hk, T + L - 1, d)
            vectors: p, (L, d)
            heads: H, of queries

        Returns:
            (B, H, T, L), or None for nothing.
        """
        if self.kind == "dot":
            return None
        terms = -2 * _of_windows(keys @ vectors.T) / self.divisor
        return terms.repeat_interleave(heads // keys.shape[1], dim=1)


def _of_windows(terms: Tensor) -> Tensor:
    """terms[t + b, b] for every window t and place b. (B, Hk, T + L - 1, L) to (B, Hk, T, L), a view"""
    batch, heads, rows, length = terms.shape
    terms = terms.contiguous()
    shape = (batch, heads, rows - length + 1, length)
    return terms.as_strided(shape, (*terms.stride()[:2], length, length + 1))
