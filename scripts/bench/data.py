"""The data of the speed benchmark: the same numbers in every environment."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

METRICS, CLASSES, WINDOW, WIDTH, HEADS = 8, 9, 64, 64, 4
BATCH = 128
"""Windows at a time for peers made of PyTorch; of 32 to 1,024, what PyTorch's encoder likes best on a CPU."""


def rows(count: int, metrics: int = METRICS) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Channels that wander, (count, metrics), and labels, (count,)."""
    rng = np.random.default_rng(0)
    channels = rng.standard_normal((count, metrics)).astype(np.float32)
    for row in range(1, count):
        channels[row] += 0.9 * channels[row - 1]
    return channels, rng.integers(CLASSES, size=count)
