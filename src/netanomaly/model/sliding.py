"""The look-up of all windows of a segment at once, for the newest row of each.

Window t holds the rows t .. t + L - 1 of the memory and its newest row asks. Because position enters after the
projection, the score of the row at place b of window t splits into a part that all windows share and one that
belongs to the place,

    (q_t + p_last) . (k_{t+b} + p_b) = q'_t . k_{t+b} + q'_t . p_b,      q' = q + p_last

The first is a band of the plain product of all queries with all keys; it is computed in blocks of rows, each
against the keys that its windows hold. The second is moved into the band row by row. Nothing of a window is
copied: memory is proportional to rows times L.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from netanomaly.model.choices import Normalise
from netanomaly.model.lookup import for_each_query_head, weigh

BLOCK = 32
"""Queries per block: more waste products outside the band, fewer make small matrices."""


def sliding_lookup(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    place_terms: Tensor,
    valid: Tensor,
    *,
    place_values: Tensor | None = None,
    normalise: Normalise = "softmax",
    block: int = BLOCK,
) -> Tensor:
    """What `lookup.lookup` gives window by window, for the newest row of T windows.

    Args:
        queries: one per window. (B, H, T, e)
        keys: of all rows, without what depends on their place in a window. (B, Hk, T + L - 1, e)
        values: (B, Hk, T + L - 1, d)
        place_terms: what the places of a window add to its scores. (B or 1, H or 1, T, L)
        valid: (B, T + L - 1); rows that are not valid get no weight.
        place_values: what the places of a window add to its values. (L, d)
        normalise: `softmax`, or `none` for plain exp(score) weights.
        block: queries computed together.

    Returns:
        (B, H, T, d)
    """
    keys, values = for_each_query_head(keys, values, queries.shape[1])
    targets, length = queries.shape[2], place_terms.shape[-1]
    extra = -targets % block  # fill the last block
    span = block + length - 1  # keys that the windows of a block hold
    blocks = pad(queries, (0, 0, 0, extra)).unflatten(2, (-1, block))  # (B, H, N, block, e)
    block_terms = pad(place_terms, (0, 0, 0, extra)).unflatten(2, (-1, block))  # (B, H, N, block, L)
    block_keys = pad(keys, (0, 0, 0, extra)).unfold(2, span, block)  # (B, H, N, e, span), a view
    block_values = pad(values, (0, 0, 0, extra)).unfold(2, span, block)  # (B, H, N, d, span), a view
    block_valid = pad(valid, (0, extra), value=True).unfold(1, span, block)[:, None, :, None]  # (B, 1, N, 1, span)

    band = _into_band(block_terms, span).expand(*blocks.shape[:3], -1, -1)  # (B, H, N, block, span)
    scores = torch.baddbmm(*(part.flatten(0, 2) for part in (band, blocks, block_keys))).unflatten(0, blocks.shape[:3])
    if valid.is_cuda or not valid.all():  # asking a GPU would wait for it
        inside = torch.ones(block, span, dtype=torch.bool, device=scores.device).triu().tril(length - 1)
        scores = scores.masked_fill(inside & ~block_valid, torch.finfo(scores.dtype).min)  # finite: see _into_band
    weights = weigh(scores, normalise)
    found = weights @ block_values.transpose(-1, -2)  # (B, H, N, block, d)
    if place_values is not None:
        found = found + _out_of_band(weights, length) @ place_values
    return found.flatten(2, 3)[:, :, :targets]


def _into_band(terms: Tensor, span: int) -> Tensor:
    """Row r of each block moved r places right, minus infinity around it. (..., block, L) to (..., block, span)

    Padding every row to one more than `span` and reading the result with rows of `span` shifts each row by one
    more than the row above (the relative shift of Transformer-XL, Dai et al. 2019, appendix B). The minus
    infinity also masks what lies outside a row's window; masked rows inside it stay finite, so that a window
    without any valid row still has weights.
    """
    block = terms.shape[-2]
    padded = pad(terms, (0, span + 1 - terms.shape[-1]), value=float("-inf")).flatten(-2)
    return padded[..., : block * span].unflatten(-1, (block, span))


def _out_of_band(weights: Tensor, length: int) -> Tensor:
    """The weights of each row's own window: `_into_band` undone. (..., block, span) to (..., block, L)"""
    block, span = weights.shape[-2:]
    flat = pad(weights.flatten(-2), (0, block))  # (..., block * (span + 1))
    return flat.unflatten(-1, (block, span + 1))[..., :length]
