"""The look-up tile by tile: the L x L map of a window never exists, so that memory grows with L, not with its square.

For each tile of queries the tiles of keys pass by. Of the scores seen so far a query keeps the maximum m, the
normaliser l = sum exp(score - m) and the answer under them; a tile x2 joins the ones before it by

    m' = max(m, max x2),   l' = exp(m - m') l + sum exp(x2 - m'),   answer' = exp(m - m') answer + exp(x2 - m') v

and the answer is divided by l at the end. The backward pass computes the scores of each tile again from m and l.
Source: Milakov and Gimelshein, Online normalizer calculation for softmax (2018); Dao et al., FlashAttention (2022).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from netanomaly.model.choices import Normalise
from netanomaly.model.exact import in_float32
from netanomaly.model.lookup import Relative, for_each_query_head, hide
from netanomaly.model.masks import EVERYTHING, MaskRule

TILE = 512
"""Rows of a tile: large enough for fast products, small enough for their scores to stay in the cache."""


@in_float32
def tiled_lookup(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    valid: Tensor,
    *,
    mask: MaskRule = EVERYTHING,
    relative: Relative | None = None,
    normalise: Normalise = "softmax",
    tile: int = TILE,
) -> Tensor:
    """See `lookup.lookup`; `tile` is the number of rows of a tile.

    Raises:
        ValueError: relative vectors, one for each pair of rows.
    """
    if relative is not None and (relative.keys is not None or relative.values is not None):
        raise ValueError("tiles hold no vectors per distance")
    keys, values = for_each_query_head(keys, values, queries.shape[1])
    tiles = _Tiles(queries.shape[2], keys.shape[2], mask, normalise, tile)
    bias = None if relative is None else relative.bias
    found: Tensor = _TiledLookup.apply(  # type: ignore[no-untyped-call]
        queries, keys, values, valid, bias, tiles
    )
    return found


@dataclass(frozen=True)
class _Tiles:
    """How a look-up is cut; the queries stand at the last places."""

    n_queries: int
    n_keys: int
    mask: MaskRule
    normalise: Normalise
    size: int

    def rows(self) -> Iterator[range]:
        """Places of each tile of queries."""
        return _cut(range(self.n_keys - self.n_queries, self.n_keys), self.size)

    def columns(self, asking: range) -> Iterator[range]:
        """Places of each tile of keys that any of these queries may see."""
        return (held for held in _cut(range(self.n_keys), self.size) if self.mask.any_allowed(asking, held))

    def queries_at(self, asking: range) -> slice:
        """Where the queries of these places are."""
        first = self.n_keys - self.n_queries
        return slice(asking.start - first, asking.stop - first)

    def index(self, asking: range, held: range, device: torch.device) -> Tensor:
        """Columns of the bias, (q, l)."""
        return _places(asking, device)[:, None] - _places(held, device) + self.n_keys - 1

    def scores(
        self, asking: range, held: range, queries: Tensor, keys: Tensor, valid: Tensor, bias: Tensor | None
    ) -> Tensor:
        """Scores of one tile, hidden where they have to be. (N, H, q, l)"""
        scores = queries[:, :, self.queries_at(asking)] @ keys[:, :, _slice(held)].transpose(-1, -2)
        if bias is not None:
            scores = scores + bias[:, self.index(asking, held, scores.device)]
        allowed = self.mask.allowed(_places(asking, scores.device), _places(held, scores.device))
        return hide(scores, valid[:, None, None, _slice(held)], allowed)


class _TiledLookup(torch.autograd.Function):
    """Forward and backward without the map. With `normalise: none` the maximum stays 0 and the normaliser 1."""

    @staticmethod
    def forward(
        ctx: Any, queries: Tensor, keys: Tensor, values: Tensor, valid: Tensor, bias: Tensor | None, tiles: _Tiles
    ) -> Tensor:
        softmax = tiles.normalise == "softmax"
        found = queries.new_zeros(*queries.shape[:3], values.shape[-1])  # (N, H, Q, d)
        # the lowest finite number, not minus infinity: where a tile is all hidden, -inf - -inf would be NaN
        maxima = queries.new_full((*queries.shape[:3], 1), torch.finfo(queries.dtype).min if softmax else 0.0)
        sums = torch.zeros_like(maxima) if softmax else torch.ones_like(maxima)  # (N, H, Q, 1)
        for asking in tiles.rows():
            at = tiles.queries_at(asking)
            highest, total, answer = maxima[:, :, at], sums[:, :, at], found[:, :, at]
            for held in tiles.columns(asking):
                scores = tiles.scores(asking, held, queries, keys, valid, bias)  # (N, H, q, l)
                if softmax:
                    before, highest = highest, torch.maximum(highest, scores.amax(-1, keepdim=True))
                    kept = (before - highest).exp()
                    total, answer = kept * total, kept * answer
                weights = (scores - highest).exp()
                answer = answer + weights @ values[:, :, _slice(held)]
                if softmax:
                    total = total + weights.sum(-1, keepdim=True)
            maxima[:, :, at], sums[:, :, at], found[:, :, at] = highest, total, answer / total
        ctx.tiles = tiles
        ctx.save_for_backward(queries, keys, values, valid, bias, found, maxima, sums)
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys, values, valid, bias, found, maxima, sums = ctx.saved_tensors
        tiles: _Tiles = ctx.tiles
        to_queries, to_keys, to_values = (torch.zeros_like(rows) for rows in (queries, keys, values))
        to_bias = None if bias is None else torch.zeros_like(bias)
        # what softmax takes back from all weights of a query because they sum to 1
        shared = (gradient * found).sum(-1, keepdim=True) if tiles.normalise == "softmax" else 0 * sums  # (N, H, Q, 1)
        for asking in tiles.rows():
            at = tiles.queries_at(asking)
            for held in tiles.columns(asking):
                on = _slice(held)
                scores = tiles.scores(asking, held, queries, keys, valid, bias)  # (N, H, q, l)
                weights = (scores - maxima[:, :, at]).exp() / sums[:, :, at]
                to_values[:, :, on] += weights.transpose(-1, -2) @ gradient[:, :, at]
                to_weights = gradient[:, :, at] @ values[:, :, on].transpose(-1, -2)
                to_scores = weights * (to_weights - shared[:, :, at])
                to_scores = to_scores.masked_fill(~valid[:, None, None, on], 0.0)  # hidden scores are constants
                to_queries[:, :, at] += to_scores @ keys[:, :, on]
                to_keys[:, :, on] += to_scores.transpose(-1, -2) @ queries[:, :, at]
                if to_bias is not None:
                    index = tiles.index(asking, held, bias.device).flatten()
                    to_bias.index_add_(1, index, to_scores.sum(0).flatten(1))
        return to_queries, to_keys, to_values, None, to_bias, None


def _cut(places: range, size: int) -> Iterator[range]:
    return (places[first : first + size] for first in range(0, len(places), size))


def _slice(places: range) -> slice:
    return slice(places.start, places.stop)


def _places(places: range, device: torch.device) -> Tensor:
    return torch.arange(places.start, places.stop, device=device)
