"""Windows one by one: views of a segment, computed a few at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

ROWS_AT_ONCE = 8192
"""Rows of windows that are computed at a time: 16 windows of 64 rows of each of 8 segments."""


def over_windows(
    read: Callable[[Tensor, Tensor], Tensor],
    memory: Tensor,
    valid: Tensor,
    length: int,
    stride: int = 1,
    *,
    recompute: bool = True,
) -> Tensor:
    """`read` of every window of a segment, or of every n-th one.

    Args:
        read: (N, L, D), (N, L) to (N, D)
        memory: (B, T + L - 1, D)
        valid: (B, T + L - 1)
        length: L
        stride: from one window to the next.
        recompute: in training what `read` computes is not kept but computed again in the backward pass: memory stays
            proportional to rows at the price of a second forward pass.

    Returns:
        (B, ceil(T / stride), D)
    """
    count = (memory.shape[1] - length) // stride + 1
    at_once = max(1, ROWS_AT_ONCE // (length * len(memory)))
    compute = partial(checkpoint, _of_rows, use_reentrant=False) if recompute else _of_rows
    parts = []
    for first in range(0, count, at_once):
        rows = slice(first * stride, (min(first + at_once, count) - 1) * stride + length)
        parts.append(compute(read, memory[:, rows], valid[:, rows], length, stride))
    return torch.cat(parts, dim=1)


def _of_rows(
    read: Callable[[Tensor, Tensor], Tensor], memory: Tensor, valid: Tensor, length: int, stride: int
) -> Tensor:
    """`read` of all windows of these rows: of the rows, not of their windows, a view is what a backward pass keeps."""
    windows = memory.unfold(1, length, stride).transpose(2, 3)  # (B, n, L, D), a view
    held = valid.unfold(1, length, stride)  # (B, n, L), a view
    found: Tensor = read(windows.flatten(0, 1), held.flatten(0, 1)).unflatten(0, windows.shape[:2])
    return found


def pool(rows: Tensor, valid: Tensor, patch: int) -> tuple[Tensor, Tensor]:
    """Every `patch` rows of a window become one token: the mean of those that are valid.

    (N, L, D), (N, L) to (N, L / patch, D), (N, L / patch)
    """
    if patch == 1:
        return rows, valid
    rows, valid = rows.unflatten(1, (-1, patch)), valid.unflatten(1, (-1, patch))  # (N, L / patch, patch, ...)
    counts = valid.sum(2, keepdim=True)  # (N, L / patch, 1)
    means = rows.masked_fill(~valid[..., None], 0.0).sum(2) / counts.clamp(min=1)
    return means, valid.any(2)


def unpool(shares: Tensor, valid: Tensor, patch: int) -> Tensor:
    """The share of every token, divided equally among those of its rows that are valid.

    (N, L / patch), (N, L) to (N, L)
    """
    valid = valid.unflatten(1, (-1, patch))  # (N, L / patch, patch)
    each = shares / valid.sum(2).clamp(min=1)
    return (each[..., None] * valid).flatten(1)
