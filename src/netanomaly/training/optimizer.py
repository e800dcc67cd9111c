"""The optimiser of a model's parameters."""

from __future__ import annotations

import torch
from torch import nn


def adamw(model: nn.Module, learning_rate: float, weight_decay: float) -> torch.optim.AdamW:
    """Weight decay for matrices and kernels, none for biases, norms and tokens (1-D) and for positions."""
    decayed: list[nn.Parameter] = []
    spared: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            is_spared = parameter.dim() < 2 or ".positions." in name or ".on_input." in name
            (spared if is_spared else decayed).append(parameter)
    groups = [{"params": decayed, "weight_decay": weight_decay}, {"params": spared, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=learning_rate, fused=True)
