"""Tables to look up in, drawn by hypothesis, and the look-up as loops over single rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from hypothesis import strategies as st
from torch import Tensor

from netanomaly.model.choices import Normalise
from netanomaly.model.lookup import Relative
from netanomaly.model.masks import EVERYTHING, MaskRule

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5}


@dataclass(frozen=True)
class Table:
    """Everything a look-up is given; shapes as in `lookup.lookup`."""

    queries: Tensor
    keys: Tensor
    values: Tensor
    valid: Tensor
    relative: Relative | None = None
    mask: MaskRule = EVERYTHING
    normalise: Normalise = "softmax"

    def leaves(self) -> list[Tensor]:
        """What has a gradient."""
        relative = self.relative or Relative()
        parts = (self.queries, self.keys, self.values, relative.bias, relative.keys, relative.values)
        return [part for part in parts if part is not None]

    def found(self, way: Callable[..., Tensor], **options: object) -> Tensor:
        """The answers by one way to compute them."""
        return way(
            self.queries,
            self.keys,
            self.values,
            self.valid,
            mask=self.mask,
            relative=self.relative,
            normalise=self.normalise,
            **options,
        )

    def as_type(self, dtype: torch.dtype) -> Table:
        """The same numbers, rounded, as new leaves."""

        def cast(part: Tensor | None) -> Tensor | None:
            return None if part is None else part.detach().to(dtype).requires_grad_()

        queries, keys, values = (part.detach().to(dtype).requires_grad_() for part in self.leaves()[:3])
        relative = self.relative and Relative(
            cast(self.relative.bias), cast(self.relative.keys), cast(self.relative.values)
        )
        return replace(self, queries=queries, keys=keys, values=values, relative=relative)


@st.composite
def tables(
    draw: st.DrawFn, *, bias: bool = True, vectors: bool = False, normalise: tuple[Normalise, ...] = ("softmax", "none")
) -> Table:
    """Tables of every shape, mask and padding; scores stay small, so that exp(score) does."""
    batch, shared, kv_heads, width, out = (draw(st.integers(1, 3)) for _ in range(5))
    length = draw(st.integers(1, 12))
    asking = draw(st.integers(1, length))
    heads = shared * kv_heads
    chance = torch.Generator().manual_seed(draw(st.integers(0, 2**16)))

    def numbers(*shape: int) -> Tensor:
        return torch.randn(shape, generator=chance, dtype=torch.float64).requires_grad_()

    relative = Relative(
        numbers(heads, 2 * length - 1) if bias and draw(st.booleans()) else None,
        numbers(2 * length - 1, width) if vectors and draw(st.booleans()) else None,
        numbers(2 * length - 1, out) if vectors and draw(st.booleans()) else None,
    )
    return Table(
        numbers(batch, heads, asking, width),
        numbers(batch, kv_heads, length, width),
        numbers(batch, kv_heads, length, out),
        torch.rand(batch, length, generator=chance) < draw(st.sampled_from([1.0, 0.7, 0.2, 0.0])),
        None if relative == Relative() else relative,
        draw(masks(length)),
        draw(st.sampled_from(normalise)),
    )


@st.composite
def masks(draw: st.DrawFn, length: int) -> MaskRule:
    """Every rule, alone and together."""
    causal = draw(st.booleans())
    prefix = draw(st.integers(0, length)) if causal else 0
    return MaskRule(causal, prefix, draw(st.none() | st.integers(1, length)))


def sees(mask: MaskRule, asking: int, held: int) -> bool:
    """Whether the row at one place sees the other, said once more."""
    if mask.causal and held > asking and held >= mask.prefix:
        return False
    return mask.local is None or abs(asking - held) < mask.local


def by_hand(table: Table) -> Tensor:
    """Every answer from its own loop over the rows of the table. (N, H, Q, d)"""
    batch, heads, asking, _ = table.queries.shape
    answers = [[[_answer(table, n, h, q) for q in range(asking)] for h in range(heads)] for n in range(batch)]
    return torch.stack([torch.stack([torch.stack(head) for head in window]) for window in answers])


def _answer(table: Table, n: int, h: int, q: int) -> Tensor:
    """One answer. (d,)"""
    length, relative = table.keys.shape[2], table.relative or Relative()
    shared = table.queries.shape[1] // table.keys.shape[1]
    place = length - table.queries.shape[2] + q
    seen = [j for j in range(length) if sees(table.mask, place, j)]
    measured = [j for j in seen if table.valid[n, j]]
    if not measured and table.normalise == "none":
        return 0 * table.values[n, 0, 0]
    scores, values = [], []
    for j in measured or seen:
        distance = place - j + length - 1
        key, value = table.keys[n, h // shared, j], table.values[n, h // shared, j]
        key = key if relative.keys is None else key + relative.keys[distance]
        score = table.queries[n, h, q] @ key
        score = score if relative.bias is None else score + relative.bias[h, distance]
        scores.append(score if measured else 0 * score)  # without a measured row all that it may see weigh the same
        values.append(value if relative.values is None else value + relative.values[distance])
    weights = torch.stack(scores).exp()  # (seen,)
    total = weights.sum() if table.normalise == "softmax" else 1.0
    return (weights / total) @ torch.stack(values)


def gradients(found: Tensor, table: Table, seed: int = 0) -> list[Tensor]:
    """Those of a random sum of the answers, one for each leaf; zeros where the answers do not depend on it."""
    draw = torch.Generator().manual_seed(seed)
    weight = torch.randn(found.shape, generator=draw, dtype=torch.float64).to(found.dtype)
    leaves = table.leaves()
    grads = torch.autograd.grad((found * weight).sum(), leaves, allow_unused=True)
    return [torch.zeros_like(leaf) if grad is None else grad for leaf, grad in zip(leaves, grads, strict=True)]


def assert_same_look_up(way: Callable[..., Tensor], other: Callable[..., Tensor], table: Table) -> None:
    """Values and gradients of two ways agree to the precision of the numbers."""
    tolerance = TOLERANCE[table.queries.dtype]
    found, expected = table.found(way), table.found(other)
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)
    for ours, theirs in zip(gradients(found, table), gradients(expected, table), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance * 10)
