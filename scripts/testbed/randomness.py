"""Random draws that follow from words: the same words, the same draws, whatever else is drawn."""

from __future__ import annotations

import math
import random


def draws(*words: object) -> random.Random:
    """A generator of its own for what the words name, such as `draws(seed, "schedule")`."""
    return random.Random("/".join(str(word) for word in words))  # noqa: S311


def log_uniform(rng: random.Random, low: float, high: float) -> float:
    """A draw between both whose logarithm is uniform."""
    return math.exp(rng.uniform(math.log(low), math.log(high)))
