"""Integrated gradients: what each input adds to a value, against a reference at which nothing is to be told.

    part_i = (x_i - r_i) * integral over a in [0, 1] of dF/dx_i (r + a (x - r))

The parts sum to F(x) - F(r) (completeness), and for a linear F they are w_i (x_i - r_i).
Source: Sundararajan, Taly, Yan, Axiomatic Attribution for Deep Networks (2017), equation 1. The integral is taken with
Gauss-Legendre nodes, which are exact for polynomials of degree 2 n - 1 where equal steps are for lines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

Value = Callable[[Tensor, Tensor], Tensor]
"""F of inputs (n, S, C), given which of the N windows each belongs to, (n,). Returns (n,)."""

NODES = (16, 32, 64, 128)
"""Nodes of the integral: the first for all windows, the next for those that it leaves too far from complete."""
TOLERANCE = 0.01
"""How far from F(x) - F(r) the sum of the parts may lie, as a share of it, or of 1 where it is smaller."""
ROWS_AT_ONCE = 4096
"""Rows of windows that are computed at a time."""


@dataclass(frozen=True)
class Attribution:
    """Parts of N windows of S rows.

    Attributes:
        parts: (N, S, C)
        actual, reference: F at both ends. (N,)
        nodes: at which gradients were taken. (N,)
    """

    parts: Tensor
    actual: Tensor
    reference: Tensor
    nodes: Tensor

    @property
    def residual(self) -> Tensor:
        """What the parts sum to beyond F(x) - F(r). (N,)"""
        return self.parts.sum((1, 2)) - (self.actual - self.reference)


def integrated_gradients(
    value: Value, actual: Tensor, reference: Tensor, *, nodes: tuple[int, ...] = NODES, tolerance: float = TOLERANCE
) -> Attribution:
    """Parts of each window, with as many nodes as it takes for them to be complete.

    Args:
        value: F; the windows of a call do not see each other.
        actual, reference: both ends of the way. (N, S, C)
        nodes: how many at first, and how many then for what is left; what the last leave stays as it is.
        tolerance: see `TOLERANCE`.
    """
    everything = torch.arange(len(actual), device=actual.device)
    with torch.enable_grad():
        ends = [_evaluated(value, inputs, everything) for inputs in (actual, reference)]
        wanted = ends[0] - ends[1]  # (N,)
        parts, used = torch.zeros_like(actual), torch.zeros_like(everything)
        left = everything
        for count in nodes:
            slopes = _mean_gradient(value, actual, reference, left, count)
            parts[left] = (actual - reference)[left] * slopes
            used[left] = count
            off = (parts[left].sum((1, 2)) - wanted[left]).abs()
            left = left[off > tolerance * wanted[left].abs().clamp(min=1)]
            if not len(left):
                break
    return Attribution(parts, ends[0], ends[1], used)


def _mean_gradient(value: Value, actual: Tensor, reference: Tensor, windows: Tensor, nodes: int) -> Tensor:
    """The integral of the gradient along the way of some windows, (n,) of N. (n, S, C)"""
    on_unit, halves = (torch.from_numpy(part).to(actual) for part in np.polynomial.legendre.leggauss(nodes))
    places, weights = (on_unit + 1) / 2, halves / 2  # from [-1, 1] to [0, 1]
    total = actual.new_zeros(len(windows), *actual.shape[1:])
    for points in torch.arange(len(windows) * nodes, device=actual.device).split(_at_once(actual)):
        number, node = points // nodes, points % nodes
        which, at = windows[number], places[node][:, None, None]
        inputs = torch.lerp(reference[which], actual[which], at).requires_grad_()
        (gradient,) = torch.autograd.grad(value(inputs, which).sum(), inputs)
        total.index_add_(0, number, weights[node][:, None, None] * gradient)
    return total


@torch.no_grad()
def _evaluated(value: Value, inputs: Tensor, windows: Tensor) -> Tensor:
    """F of each window. (N, S, C) to (N,)"""
    if not len(inputs):
        return inputs.new_zeros(0)
    return torch.cat([value(inputs[which], which) for which in windows.split(_at_once(inputs))])


def _at_once(windows: Tensor) -> int:
    """Windows that are computed at a time."""
    return max(1, ROWS_AT_ONCE // max(1, windows.shape[1]))
