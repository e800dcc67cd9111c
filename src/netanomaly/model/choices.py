"""The choices of a look-up by name, and which of them go together. Plain Python: checking a config costs no torch."""

from __future__ import annotations

from typing import Literal

Score = Literal["dot", "distance"]
Scale = Literal["sqrt_dim", "init"] | float
Normalise = Literal["softmax", "none"]
Table = Literal["sine", "binary", "linear", "linear_unit", "learned"]
"""Tables of positions without a parameter of their own; `sinusoidal` has its base."""
Mask = Literal["bidirectional", "causal", "prefix"]
Memory = Literal["embeddings", "blocks"]
ReadOut = Literal["last", "mean", "cls", "attention"]
FeedForward = Literal["none", "relu", "leaky_relu", "gelu", "swish", "sigmoid", "tanh", "glu", "swiglu"]
Windowed = Literal["reference", "tiled", "sdpa"]
"""Ways to compute the look-up of windows one by one."""
Execution = Literal["auto", "sliding", "reference", "tiled", "sdpa"]


def executions(
    *, read_out: str, memory: str, normalise: str, positions: str, added_to_input: bool, patch: int
) -> list[Windowed | Literal["sliding"]]:
    """What can compute this look-up, the best first: they differ in speed and memory, not in the answer.

    `sliding` shares keys and values among all windows that hold a row. That takes one query per window, keys that
    depend on the row alone (not on the block below, not on its place in a patch), and positions that enter after
    the projection. PyTorch's fused kernels know softmax only and show no weights, which `relative_key` needs for
    its values; the tiles never hold a vector for each pair of rows.
    """
    able: list[Windowed | Literal["sliding"]] = []
    if read_out in ("last", "cls") and memory == "embeddings" and not added_to_input and patch == 1:
        able.append("sliding")
    if positions != "relative_key" and normalise == "softmax":
        able.append("sdpa")
    if positions != "relative_key":
        able.append("tiled")
    return [*able, "reference"]
