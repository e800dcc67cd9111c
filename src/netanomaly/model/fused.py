"""The look-up in PyTorch's fused kernels: on CUDA memory-efficient attention, or Flash for half precision."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from netanomaly.model.choices import Normalise
from netanomaly.model.lookup import Relative, places
from netanomaly.model.masks import EVERYTHING, MaskRule


def fused_lookup(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    valid: Tensor,
    *,
    mask: MaskRule = EVERYTHING,
    relative: Relative | None = None,
    normalise: Normalise = "softmax",
) -> Tensor:
    """See `lookup.lookup`.

    Without anything to hide no mask is handed over, since the fastest kernels take none.

    Raises:
        ValueError: weights without softmax, or relative vectors, which these kernels do not know.
    """
    if normalise != "softmax" or (relative is not None and (relative.keys is not None or relative.values is not None)):
        raise ValueError("PyTorch's fused kernels know softmax only, and no vectors per distance")
    plain_causal = mask == MaskRule(causal=True) and queries.shape[2] == keys.shape[2]
    if relative is None and (plain_causal or mask == EVERYTHING) and bool(valid.all()):
        added = None
    else:
        added, plain_causal = _added(queries, keys.shape[2], valid, mask, relative), False
        keys = keys.masked_fill(~valid[:, None, :, None], 0.0)  # see `_added`
    return scaled_dot_product_attention(
        queries,
        keys,
        values,
        attn_mask=added,
        is_causal=plain_causal,
        scale=1.0,
        enable_gqa=keys.shape[1] != queries.shape[1],
    )


def _added(queries: Tensor, length: int, valid: Tensor, mask: MaskRule, relative: Relative | None) -> Tensor:
    """What the scores get added, bias and mask together: at most (N, H, Q, L).

    A query that sees no valid row gets all that it may see; their keys are zero, so that they weigh the same. (The
    kernels keep the logarithm of the normaliser for the backward pass: lowest finite scores would swallow it.)
    """
    asking, held = places(queries.shape[2], length, queries.device)
    allowed = mask.allowed(asking, held)
    allowed = valid.new_ones(1, length) if allowed is None else allowed  # (Q or 1, L)
    seen = valid[:, None, None] & allowed  # (N, 1, Q or 1, L)
    blind = ~seen.any(-1, keepdim=True)  # (N, 1, Q or 1, 1)
    bias = queries.new_zeros(1, 1, 1)
    if relative is not None and relative.bias is not None:
        bias = relative.bias[:, asking[:, None] - held + length - 1].masked_fill(blind, 0.0)  # (N, H, Q, L)
    added = torch.where(seen | (blind & allowed), bias, float("-inf"))
    return added.expand(-1, -1, queries.shape[2], -1)
