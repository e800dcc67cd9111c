"""The learning rate as a pure function of the step."""

from __future__ import annotations

import math


def learning_rate_factor(step: int, warmup_steps: int, total_steps: int) -> float:
    """What the peak learning rate is multiplied by at `step` (the first is 0).

    Rises linearly from 1 / warmup_steps to 1, which it reaches at the last step of the warm-up, then falls along
    half a cosine to 0 at `total_steps` and stays there. The first step is never without effect.
    """
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    if step >= total_steps:
        return 0.0
    done = (step - warmup_steps) / max(1, total_steps - warmup_steps)
    return 0.5 * (1 + math.cos(math.pi * done))
