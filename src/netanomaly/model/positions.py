"""Positions in the window as formulas: tables of vectors, a rotation, buckets of distances.

In a table, row t is the vector of position t; channels count from 0.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def sinusoidal_table(length: int, width: int, base: float = 10000.0) -> Tensor:
    """Sines and cosines of the position: sin(t / base^(2i/width)) on even, cos on odd channels.

    Source: Vaswani et al., Attention Is All You Need (2017), section 3.5. The dot product of two rows depends
    on their distance alone, and every row has the squared norm width / 2.

    Returns:
        (length, width), float32, computed in float64, as in every table here.

    Raises:
        ValueError: `width` is odd: every frequency takes a sine and a cosine.
    """
    angle = _angles(torch.arange(length), width, base)  # (length, width / 2)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).to(torch.float32)


def sine_table(length: int, width: int) -> Tensor:
    """sin(t / 2^i): wavelengths 2 pi, 4 pi, 8 pi ... A narrow table repeats when the window grows long."""
    position = torch.arange(length, dtype=torch.float64)[:, None]
    return (position / 2.0 ** torch.arange(width, dtype=torch.float64)).sin().to(torch.float32)


def binary_table(length: int, width: int) -> Tensor:
    """Bit i of t. Only corners of the cube: 7 and 8 are neighbours, yet differ in four channels.

    Raises:
        ValueError: two positions of the window would be alike: there are more than 2^width.
    """
    if width < math.ceil(math.log2(max(length, 2))):
        raise ValueError(f"{width} bits cannot tell {length} positions apart")
    position = torch.arange(length, dtype=torch.int64)[:, None]
    return (position >> torch.arange(width).clamp(max=62) & 1).to(torch.float32)


def linear_table(length: int, width: int) -> Tensor:
    """t on every channel. Grows with the window and drowns the content."""
    return torch.arange(length, dtype=torch.float32)[:, None].repeat(1, width)


def linear_unit_table(length: int, width: int) -> Tensor:
    """t / (length - 1) on every channel. A step means something else in a window of another length."""
    position = torch.arange(length, dtype=torch.float64) / max(length - 1, 1)
    return position.to(torch.float32)[:, None].repeat(1, width)


def rotate(vectors: Tensor, position: Tensor, base: float = 10000.0) -> Tensor:
    """Each pair of channels turned by an angle that grows with the position (RoPE).

    Channels 2i and 2i + 1 turn by position / base^(2i/width), so the dot product of two rotated vectors depends on
    the distance of their positions, not on where they stand. Source: Su et al., RoFormer (2021), equation 34.

    Args:
        vectors: (..., S, width)
        position: (S,)

    Raises:
        ValueError: `width` is odd.
    """
    angle = _angles(position, vectors.shape[-1], base).to(vectors.device)  # (S, width / 2)
    sine, cosine = angle.sin().to(vectors.dtype), angle.cos().to(vectors.dtype)
    even, odd = vectors[..., 0::2], vectors[..., 1::2]
    return torch.stack([even * cosine - odd * sine, even * sine + odd * cosine], dim=-1).flatten(-2)


def distance_buckets(distance: Tensor, buckets: int, furthest: int, *, both_ways: bool = True) -> Tensor:
    """The bucket of each distance: near ones apart, far ones together (T5).

    Half of the buckets are for keys ahead of the query, half for those behind; all are for those behind where no key
    lies ahead. Of these the first half are single distances, the others grow logarithmically up to `furthest`;
    beyond, all share the last one.
    Source: Raffel et al., Exploring the Limits of Transfer Learning (2020), section 2.1.

    Args:
        distance: position of the query minus position of the key; any shape.
        buckets: how many, at least 4 and a multiple of 4.
        furthest: the distance from which on all share the last bucket; more than the single ones.
        both_ways: whether keys may lie ahead of the query; if not, those count as distance 0.
    """
    half = buckets // 2 if both_ways else buckets
    single = half // 2
    far = distance.abs() if both_ways else distance.clamp(min=0)
    growth = (far.clamp(min=1).double() / single).log() / math.log(furthest / single)  # 0 at `single`, 1 at `furthest`
    shared = (single + (growth * (half - single)).floor().long()).clamp(max=half - 1)
    found = torch.where(far < single, far, shared)
    return found + half * (distance < 0).long() if both_ways else found


def _angles(position: Tensor, width: int, base: float) -> Tensor:
    """position / base^(2i/width), (length,) to (length, width / 2), in float64 on the CPU"""
    if width % 2:
        raise ValueError(f"pairs of channels need an even width, got {width}")
    frequency = base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)  # (width / 2,)
    return position.cpu().to(torch.float64)[:, None] * frequency
