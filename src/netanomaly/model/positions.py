"""Positions in the window, as vectors that are added to projected queries and keys."""

from __future__ import annotations

import torch
from torch import Tensor


def sinusoidal_table(length: int, width: int, base: float = 10000.0) -> Tensor:
    """Sines and cosines of the position: sin(t / base^(2i/width)) on even, cos on odd channels.

    Source: Vaswani et al., Attention Is All You Need (2017), section 3.5. The dot product of two rows depends
    on their distance alone, and every row has the squared norm width / 2.

    Returns:
        (length, width), float32, computed in float64.

    Raises:
        ValueError: `width` is odd: every frequency takes a sine and a cosine.
    """
    if width % 2:
        raise ValueError(f"a sinusoidal table needs an even width, got {width}")
    position = torch.arange(length, dtype=torch.float64)[:, None]  # (length, 1)
    angle = position / base ** (torch.arange(0, width, 2, dtype=torch.float64) / width)  # (length, width / 2)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).to(torch.float32)
