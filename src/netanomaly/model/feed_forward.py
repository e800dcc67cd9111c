"""The feed-forward layer of a block: each row on its own, widened, bent, narrowed."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from netanomaly.model.choices import FeedForward

BEND: dict[FeedForward, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "leaky_relu": functional.leaky_relu,  # slope 0.01 below zero
    "gelu": functional.gelu,  # x Phi(x)
    "swish": functional.silu,  # x sigmoid(x)
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "glu": torch.sigmoid,  # of the gate
    "swiglu": functional.silu,  # of the gate
}
GATED = ("glu", "swiglu")


class FeedForwardLayer(nn.Module):
    """narrow(bend(widen(x))), or gated: narrow(value * bend(gate)), value and gate from widen(x).

    Gated layers narrow from twice the width, the others from three times, so that all have the same number of
    weights, 6 width^2. Source of the gates: Shazeer, GLU Variants Improve Transformer (2020).
    """

    def __init__(self, kind: FeedForward, width: int) -> None:
        super().__init__()
        self.bend, self.gated = BEND[kind], kind in GATED
        self.widen = nn.Linear(width, (4 if self.gated else 3) * width)
        self.narrow = nn.Linear((2 if self.gated else 3) * width, width)

    def forward(self, rows: Tensor) -> Tensor:
        """(..., D) to (..., D)"""
        wide = self.widen(rows)
        if self.gated:
            value, gate = wide.chunk(2, dim=-1)  # (..., 2 D) each
            bent = value * self.bend(gate)
        else:
            bent = self.bend(wide)
        return self.narrow(bent)
