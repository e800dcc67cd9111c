"""The look-up in PyTorch's fused kernels: Flash attention on CUDA where the choices allow it."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from netanomaly.model.choices import Normalise
from netanomaly.model.lookup import Relative, hide, places
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
    """What the scores get added: bias and mask together, at most (N, H, Q, L)."""
    asking, held = places(queries.shape[2], length, queries.device)
    allowed = mask.allowed(asking, held)
    bias = queries.new_zeros(1, 1, 1)
    if relative is not None and relative.bias is not None:
        bias = relative.bias[:, asking[:, None] - held + length - 1]  # (H, Q, L)
    elif allowed is None:
        return hide(bias.expand(1, 1, length), valid[:, None, None], None).expand(-1, -1, queries.shape[2], -1)
    return hide(bias.expand(-1, queries.shape[2], length), valid[:, None, None], allowed)
