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

from netanomaly.model.band import Bands, collect, compare, spread
from netanomaly.model.choices import Normalise
from netanomaly.model.lookup import for_each_query_head, weigh

BLOCK = 32
"""Windows per block: more waste products outside the band, fewer make small matrices."""


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
        queries: one per window. (B, H, T, e)
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
    hidden = None
    if valid.is_cuda or not valid.all():  # asking a GPU would wait for it
        hidden = pad(~valid, (0, missing)).repeat_interleave(heads, 0)  # (G, S)
    if place_terms is not None:
        place_terms = _filled(place_terms.expand(batch, heads, targets, -1), missing)
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
        place_terms: Tensor | None,  # (G, T, L)
        place_values: Tensor | None,  # (L, d)
        hidden: Tensor | None,  # (G, S)
        length: int,
        block: int,
        normalise: Normalise,
    ) -> Tensor:
        trained = any(ctx.needs_input_grad)
        bands = Bands(queries, length, block, apart=trained)
        found = queries.new_empty(*queries.shape[:2], values.shape[2])  # (G, T, d)
        asked, answered = bands.windows(queries), bands.windows(found)  # (G, N, block, ...), views as those below
        held_keys, held_values = bands.spans(keys), bands.spans(values)  # (G, N, span, ...)
        terms = None if place_terms is None else bands.windows(place_terms)
        out = None if hidden is None else bands.places(hidden)  # (G, N, block, L)
        kept = []
        for at in bands:
            scores = compare(asked[at], held_keys[at], bands.scratch(at))  # (n, block, L), a view
            if place_vectors is not None:
                scores = (asked[at] @ place_vectors.T).add_(scores)
            if terms is not None:
                scores = scores.add_(terms[at])
            if out is not None:  # finite: a window may hold no valid row
                scores = scores.masked_fill_(out[at], torch.finfo(scores.dtype).min)
            weights = weigh(scores, normalise)
            answers = collect(weights, held_values[at], bands.empty(at))  # (n, block, d)
            if place_values is not None:
                answers += weights @ place_values
            answered[at] = answers
            if trained:
                kept.append(weights)
        if trained:
            ctx.bands, ctx.normalise = bands, normalise
            ctx.save_for_backward(queries, keys, values, place_vectors, place_terms, place_values, hidden, *kept)
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys, values, place_vectors, place_terms, place_values, hidden, *kept = ctx.saved_tensors
        bands: Bands = ctx.bands
        to_queries, to_keys, to_values = (_zeros(rows) for rows in (queries, keys, values))
        to_vectors, to_terms, to_place_values = (
            _zeros(rows) if needed else None
            for rows, needed in zip((place_vectors, place_terms, place_values), ctx.needs_input_grad[3:6], strict=True)
        )
        asked, to_asked, to_answered = (bands.windows(rows) for rows in (queries, to_queries, gradient))
        held_keys, held_values, to_held_keys, to_held_values = (
            bands.spans(rows) for rows in (keys, values, to_keys, to_values)
        )
        to_places = None if to_terms is None else bands.windows(to_terms)
        out = None if hidden is None else bands.places(hidden)
        for at, weights in zip(bands, kept, strict=True):
            asking, to_answers = asked[at], to_answered[at]  # (n, block, ...)
            to_held_values[at].add_(spread(weights, to_answers, bands.empty(at)))
            to_weights = compare(to_answers, held_values[at], bands.scratch(at))  # (n, block, L), a view
            if place_values is not None:
                to_weights = to_weights + to_answers @ place_values.T
            if to_place_values is not None:
                to_place_values += torch.einsum("nrl,nrd->ld", weights, to_answers)
            to_scores = _through_weights(to_weights, weights, ctx.normalise)
            if out is not None:
                to_scores = to_scores.masked_fill(out[at], 0.0)
            if to_places is not None:
                to_places[at] = to_scores
            to_asking = collect(to_scores, held_keys[at], bands.empty(at))
            if place_vectors is not None:
                to_asking += to_scores @ place_vectors
            if to_vectors is not None:
                to_vectors += torch.einsum("nrl,nre->le", to_scores, asking)
            to_asked[at] = to_asking
            to_held_keys[at].add_(spread(to_scores, asking, bands.empty(at)))
        return to_queries, to_keys, to_values, to_vectors, to_terms, to_place_values, None, None, None, None


def _zeros(rows: Tensor) -> Tensor:
    return torch.zeros_like(rows, memory_format=torch.contiguous_format)


def _through_weights(to_weights: Tensor, weights: Tensor, normalise: Normalise) -> Tensor:
    """The gradient of the weights becomes that of the scores. (n, block, L)"""
    if normalise == "softmax":
        return torch._softmax_backward_data(to_weights, weights, -1, weights.dtype)
    return to_weights * weights
