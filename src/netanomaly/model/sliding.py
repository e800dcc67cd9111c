"""The look-up of all windows of a segment at once, for the newest row of each.

Window t holds the rows t .. t + L - 1 of the memory and its newest row asks. Because position enters after the
projection, the score of the row at place b of window t splits into a part that all windows share and one that
belongs to the place,

    (q_t + p_last) . (k_{t+b} + p_b) = q'_t . k_{t+b} + q'_t . p_b,      q' = q + p_last

The first is a band of the plain product of all queries with all keys, computed in blocks of windows (see `band`).
A few blocks at a time go all the way from scores to answers, so that what lies between stays in the cache. Nothing
of a window is copied; for the backward pass the weights are kept, L per row and head.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from netanomaly.model.band import At, Bands, collect, compare, spread
from netanomaly.model.choices import Normalise
from netanomaly.model.exact import in_float32
from netanomaly.model.lookup import for_each_query_head, weigh

BLOCK = 32
"""Windows per block: more waste products outside the band, fewer make small matrices."""


@in_float32
def sliding_lookup(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    valid: Tensor,
    *,
    length: int,
    place_vectors: Tensor | None = None,
    place_terms: Tensor | None = None,
    place_values: Tensor | None = None,
    normalise: Normalise = "softmax",
    block: int = BLOCK,
) -> Tensor:
    """What `lookup.lookup` gives window by window, for the newest row of T windows.

    Args:
        queries: one per window; finite, as keys and values are, even where they are not valid. (B, H, T, e)
        keys: of all rows, without what depends on their place in a window. (B, Hk, T + L - 1, e)
        values: (B, Hk, T + L - 1, d)
        valid: (B, T + L - 1); rows that are not valid get no weight.
        length: L, rows of a window.
        place_vectors: what the places of a window add to its keys. (L, e)
        place_terms: what the places of a window add to its scores. (B or 1, H or 1, T or 1, L)
        place_values: what the places of a window add to its values. (L, d)
        normalise: `softmax`, or `none` for plain exp(score) weights.
        block: windows of a block.

    Returns:
        (B, H, T, d)
    """
    batch, heads, targets = queries.shape[:3]
    missing = -targets % block  # windows that fill the last block
    keys, values = for_each_query_head(keys, values, heads)
    if not targets:
        return values[:, :, :0]
    hidden = None
    if valid.is_cuda or not valid.all():  # asking a GPU would wait for it
        hidden = pad(~valid, (0, missing)).repeat_interleave(heads, 0)  # (G, S)
    if place_terms is not None:
        place_terms = place_terms.expand(batch, heads, -1, -1)  # (B, H, T or 1, L)
        place_terms = _filled(place_terms, missing if place_terms.shape[2] > 1 else 0)
    found: Tensor = _SlidingLookup.apply(  # type: ignore[no-untyped-call]
        _filled(queries, missing),
        _filled(keys, missing),
        _filled(values, missing),
        place_vectors,
        place_terms,
        place_values,
        hidden,
        length,
        block,
        normalise,
    )
    return found[:, :targets].unflatten(0, (batch, heads))


def _filled(rows: Tensor, missing: int) -> Tensor:
    """(B, H, S, d) to (G, S + missing, d), zeros behind; a view if it can be"""
    rows = rows.flatten(0, 1)
    return pad(rows, (0, 0, 0, missing)) if missing else rows


class _SlidingLookup(torch.autograd.Function):
    """Both ways through all blocks: G = B H groups, N blocks, T = N block windows, S = T + L - 1 rows; n at a time."""

    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,  # (G, T, e)
        keys: Tensor,  # (G, S, e)
        values: Tensor,  # (G, S, d)
        place_vectors: Tensor | None,  # (L, e)
        place_terms: Tensor | None,  # (G, T or 1, L)
        place_values: Tensor | None,  # (L, d)
        hidden: Tensor | None,  # (G, S)
        length: int,
        block: int,
        normalise: Normalise,
    ) -> Tensor:
        trained = any(ctx.needs_input_grad)
        bands = Bands(queries, length, block, apart=trained)
        given = (queries, keys, values, place_vectors, place_terms, place_values, hidden)
        there = _There(bands, normalise, *given)
        found = queries.new_empty(*queries.shape[:2], values.shape[2])  # (G, T, d)
        answered, kept = bands.windows(found), []
        for at in bands:
            weights = there.weights(at)  # (n, block, L)
            answered[at] = there.answers(weights, at)
            if trained:
                kept.append(weights)
        if trained:
            ctx.bands, ctx.normalise = bands, normalise
            ctx.save_for_backward(*given, *kept)
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        given, kept = ctx.saved_tensors[:7], ctx.saved_tensors[7:]
        there = _There(ctx.bands, ctx.normalise, *given)
        back = _Back(there, *(_zeros(part, needed) for part, needed in zip(given, ctx.needs_input_grad, strict=False)))
        to_answered = ctx.bands.windows(gradient)  # (G, N, block, d)
        for at, weights in zip(ctx.bands, kept, strict=True):
            to_weights = back.from_answers(to_answered[at], weights, at)
            back.from_scores(_through_weights(to_weights, weights, ctx.normalise), at)
        return (*back.gradients, None, None, None)


class _There:
    """From queries to weights and from weights to answers, n blocks at a time."""

    def __init__(
        self,
        bands: Bands,
        normalise: Normalise,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        place_vectors: Tensor | None,
        place_terms: Tensor | None,
        place_values: Tensor | None,
        hidden: Tensor | None,
    ) -> None:
        self.bands, self.normalise = bands, normalise
        self.queries = bands.windows(queries)  # (G, N, block, e), a view as the others are
        self.keys, self.values = bands.spans(keys), bands.spans(values)  # (G, N, span, ...)
        self.place_vectors, self.place_values = place_vectors, place_values
        self.place_terms = None if place_terms is None else bands.terms(place_terms)  # (G, N, block or 1, L)
        self.hidden = None if hidden is None else bands.places(hidden)  # (G, N, block, L)

    def weights(self, at: At) -> Tensor:
        """(n, block, L)"""
        scores = compare(self.queries[at], self.keys[at], self.bands.scratch(at))  # a view
        if self.place_vectors is not None:
            scores = (self.queries[at] @ self.place_vectors.T).add_(scores)
        if self.place_terms is not None:
            scores.add_(self.place_terms[at])
        if self.hidden is not None:  # finite: a window may hold no valid row
            scores.masked_fill_(self.hidden[at], torch.finfo(scores.dtype).min)
        return weigh(scores, self.normalise)

    def answers(self, weights: Tensor, at: At) -> Tensor:
        """(n, block, L) to (n, block, d)"""
        found = collect(weights, self.values[at], self.bands.empty(at))
        return found if self.place_values is None else found.add_(weights @ self.place_values)


class _Back:
    """The way back: what `_There` was given gets its gradients, added up block by block; None where none is needed."""

    def __init__(self, there: _There, *gradients: Tensor | None) -> None:
        self.there, self.bands, self.gradients = there, there.bands, gradients
        queries, keys, values, self.to_place_vectors, self.to_place_terms, self.to_place_values, _ = gradients
        self.to_queries = None if queries is None else self.bands.windows(queries)
        self.to_keys, self.to_values = (None if part is None else self.bands.spans(part) for part in (keys, values))

    def from_answers(self, to_answers: Tensor, weights: Tensor, at: At) -> Tensor:
        """To values, and what is returned: to the weights. (n, block, d), (n, block, L) to (n, block, L)"""
        there, bands = self.there, self.bands
        if self.to_values is not None:
            self.to_values[at].add_(spread(weights, to_answers, bands.empty(at)))
        if self.to_place_values is not None:
            self.to_place_values += torch.einsum("nrl,nrd->ld", weights, to_answers)
        to_weights = compare(to_answers, there.values[at], bands.scratch(at))
        return to_weights if there.place_values is None else to_weights + to_answers @ there.place_values.T

    def from_scores(self, to_scores: Tensor, at: At) -> None:
        """To queries, keys and places. (n, block, L)"""
        there, bands = self.there, self.bands
        if there.hidden is not None:
            to_scores = to_scores.masked_fill(there.hidden[at], 0.0)  # hidden scores are constants
        if self.to_keys is not None:
            self.to_keys[at].add_(spread(to_scores, there.queries[at], bands.empty(at)))
        if self.to_queries is not None:
            self.to_queries[at] = collect(to_scores, there.keys[at], bands.empty(at))
            if there.place_vectors is not None:
                self.to_queries[at].add_(to_scores @ there.place_vectors)
        if self.to_place_vectors is not None:
            self.to_place_vectors += torch.einsum("nrl,nre->le", to_scores, there.queries[at])
        if self.to_place_terms is not None:
            self.bands.add_terms(self.to_place_terms, to_scores, at)


def _zeros(part: Tensor | None, needed: bool) -> Tensor | None:
    return torch.zeros_like(part) if needed and part is not None else None


def _through_weights(to_weights: Tensor, weights: Tensor, normalise: Normalise) -> Tensor:
    """The gradient of the weights becomes that of the scores. (n, block, L)"""
    if normalise == "softmax":
        return torch._softmax_backward_data(to_weights, weights, -1, weights.dtype)
    return to_weights * weights
