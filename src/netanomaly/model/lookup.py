"""A look-up in a table of keys and values, written out: the oracle of every other way to compute it.

Shapes: N windows, H heads, Q queries, L rows in the table, e width of a scored vector, d width of a value.
The Q queries stand at the last Q of the L places.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from netanomaly.model.choices import Normalise
from netanomaly.model.masks import EVERYTHING, MaskRule


@dataclass(frozen=True)
class Relative:
    """What the distance of query and key adds; column L - 1 + distance, distance = place of query - place of key.

    Attributes:
        bias: added to the scores. (H, 2 L - 1)
        keys: added to the keys. (2 L - 1, e)
        values: added to the values. (2 L - 1, d)
    """

    bias: Tensor | None = None
    keys: Tensor | None = None
    values: Tensor | None = None


class Lookup(Protocol):
    """A way to compute the look-up: `lookup`, `fused_lookup` or `tiled_lookup`."""

    def __call__(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        valid: Tensor,
        *,
        mask: MaskRule = EVERYTHING,
        relative: Relative | None = None,
        normalise: Normalise = "softmax",
    ) -> Tensor:
        """See `lookup`."""
        ...


def lookup(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    valid: Tensor,
    *,
    mask: MaskRule = EVERYTHING,
    relative: Relative | None = None,
    normalise: Normalise = "softmax",
) -> Tensor:
    """softmax(q k^T) v, every step visible.

    Args:
        queries: (N, H, Q, e), scaled and positioned: their products with the keys are the scores.
        keys: (N, Hk, L, e); H / Hk heads of queries share one head of keys and values.
        values: (N, Hk, L, d)
        valid: (N, L); rows that are not valid get no weight. Where a query sees no valid row, all that it may
            see weigh the same under softmax (never NaN), and nothing without it.
        mask: who sees whom.
        relative: what distances add.
        normalise: `softmax`, or `none` for plain exp(score) weights.

    Returns:
        (N, H, Q, d)
    """
    weights = lookup_weights(queries, keys, valid, mask=mask, relative=relative, normalise=normalise)
    found = weights @ _for_each(values, queries.shape[1])
    if relative is not None and relative.values is not None:
        index = _distance_columns(queries, keys)  # (Q, L)
        found = found + torch.einsum("nhql,qld->nhqd", weights, relative.values[index])
    return found


def lookup_weights(
    queries: Tensor,
    keys: Tensor,
    valid: Tensor,
    *,
    mask: MaskRule = EVERYTHING,
    relative: Relative | None = None,
    normalise: Normalise = "softmax",
) -> Tensor:
    """softmax(q k^T): what every row of the table counts for every query, as `lookup` takes it. (N, H, Q, L)"""
    keys = _for_each(keys, queries.shape[1])
    asking, held = places(queries.shape[2], keys.shape[2], queries.device)
    index = _distance_columns(queries, keys)  # (Q, L)
    scores = queries @ keys.transpose(-1, -2)  # (N, H, Q, L)
    if relative is not None and relative.keys is not None:
        scores = scores + torch.einsum("nhqe,qle->nhql", queries, relative.keys[index])
    if relative is not None and relative.bias is not None:
        scores = scores + relative.bias[:, index]
    return weigh(hide(scores, valid[:, None, None], mask.allowed(asking, held)), normalise)


def _distance_columns(queries: Tensor, keys: Tensor) -> Tensor:
    """The column of `Relative` for each pair of places. (Q, L)"""
    asking, held = places(queries.shape[2], keys.shape[2], queries.device)
    return asking[:, None] - held + keys.shape[2] - 1


def hide(scores: Tensor, valid: Tensor, allowed: Tensor | None) -> Tensor:
    """Scores of what must not be found: lowest finite where it was not measured, minus infinity outside the mask.

    The difference keeps a query that sees no valid row from dividing zero by zero.
    """
    scores = scores.masked_fill(~valid, torch.finfo(scores.dtype).min)
    return scores if allowed is None else scores.masked_fill(~allowed, float("-inf"))


def weigh(scores: Tensor, normalise: Normalise) -> Tensor:
    """Weights of hidden scores, (..., L) to (..., L)."""
    return scores.softmax(-1) if normalise == "softmax" else scores.exp()


def places(asking: int, held: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Places of the queries, which are the last rows, and of the keys."""
    return torch.arange(held - asking, held, device=device), torch.arange(held, device=device)


def for_each_query_head(keys: Tensor, values: Tensor, heads: int) -> tuple[Tensor, Tensor]:
    """Each head of keys and values once for every head of queries that shares it."""
    return _for_each(keys, heads), _for_each(values, heads)


def _for_each(held: Tensor, heads: int) -> Tensor:
    """(N, Hk, L, d) to (N, H, L, d)"""
    times = heads // held.shape[1]
    return held if times == 1 else held.repeat_interleave(times, dim=1)  # repeating once would copy
