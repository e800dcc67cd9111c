"""The look-up of all windows of a segment at once, for the newest row of each.

Window t holds the rows t .. t + L - 1 of the memory and its newest row asks. Because position enters after the
projection, the score of the row at place b of window t splits into

    (q_t + p_last) . (k_{t+b} + p_b) = q'_t . k_{t+b} + q'_t . p_b,      q' = q + p_last

The first term is a band of the plain product of all queries with all keys; it is computed in blocks of rows,
each against the keys that its windows hold. The second is the same small product for every window, moved into
the band row by row. Nothing of a window is copied: memory is proportional to rows times L.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

BLOCK = 32
"""Queries per block: more waste products outside the band, fewer make small matrices."""


def sliding_lookup(
    queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor, valid: Tensor, block: int = BLOCK
) -> Tensor:
    """What `attention.lookup` gives window by window, for the newest row of T windows.

    Args:
        queries: one per window, the newest row's position added where it has one. (B, H, T, d)
        keys, values: of all rows, without positions. (B, H, T + L - 1, d)
        positions: (L, d)
        valid: (B, T + L - 1); rows that are not valid get no weight.

    Returns:
        (B, H, T, d)
    """
    targets, length = queries.shape[2], positions.shape[0]
    extra = -targets % block  # fill the last block
    queries = pad(queries, (0, 0, 0, extra)) / queries.shape[-1] ** 0.5
    span = block + length - 1  # keys that the windows of a block hold
    blocks = queries.unflatten(2, (-1, block))  # (B, H, N, block, d)
    block_keys = pad(keys, (0, 0, 0, extra)).unfold(2, span, block)  # (B, H, N, d, span), a view
    block_values = pad(values, (0, 0, 0, extra)).unfold(2, span, block)  # (B, H, N, d, span), a view
    block_valid = pad(valid, (0, extra)).unfold(1, span, block)[:, None, :, None]  # (B, 1, N, 1, span)

    scores = blocks @ block_keys + _into_band(blocks @ positions.T, span)  # (B, H, N, block, span)
    inside = torch.ones(block, span, dtype=torch.bool, device=scores.device).triu().tril(length - 1)
    scores = scores.masked_fill(inside & ~block_valid, torch.finfo(scores.dtype).min)  # finite: see _into_band
    found = scores.softmax(-1) @ block_values.transpose(-1, -2)  # (B, H, N, block, d)
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
