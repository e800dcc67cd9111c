"""Products of what belongs to windows with what belongs to rows, when neighbouring windows share all rows but one.

A block is a run of windows; window r of a block holds its rows r ... r + L - 1, so that a block has
span = block + L - 1 rows. What belongs to (window, place) is a diagonal band in a matrix (block, span):

    compare   (r, b)  from  asking_r . row_{r+b}               how well each row of a window answers
    collect   r       from  sum_b weight_{r,b} row_{r+b}       the weighted rows of each window
    spread    j       from  sum_b weight_{j-b,b} asking_{j-b}  what each row gets from all windows that hold it

Each is the derivative of the other two. Shapes: G groups of T = N block windows and S = T + L - 1 rows, which `Bands`
takes n blocks at a time; L rows of a window, d wide.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

CELLS = 400_000
"""Numbers in the matrices of the blocks taken at a time: more do not stay in the cache, fewer are more steps."""
CELLS_ON_CUDA = 32 * CELLS
"""There a step is a launch, and launches cost; a guess, not a measurement."""
At = tuple[int | slice, int | slice]
"""n blocks: some of one group, or one of some groups. In a view (G, N, ...) they make an (n, ...)."""


def compare(asking: Tensor, rows: Tensor, band: Tensor) -> Tensor:
    """(n, block, d), (n, span, d) to (n, block, L), a view of `band`, which is overwritten"""
    torch.bmm(asking, rows.transpose(1, 2), out=band)
    return _inside(band)


def collect(weights: Tensor, rows: Tensor, band: Tensor) -> Tensor:
    """(n, block, L), (n, span, d) to (n, block, d); `band` is zero outside of itself"""
    _inside(band).copy_(weights)
    return torch.bmm(band, rows)


def spread(weights: Tensor, asking: Tensor, band: Tensor) -> Tensor:
    """(n, block, L), (n, block, d) to (n, span, d); `band` is zero outside of itself"""
    _inside(band).copy_(weights)
    return torch.bmm(band.transpose(1, 2), asking)


class Bands:
    """A walk through the blocks of all groups, with views of what belongs to them and matrices to work in.

    Args:
        windows: anything that belongs to windows. (G, T, ...)
        length: L
        block: windows of a block; divides T.
        apart: blocks that are taken together share no row, so that what they spread can be added in one go.
    """

    def __init__(self, windows: Tensor, length: int, block: int, *, apart: bool) -> None:
        self.groups, self.blocks = windows.shape[0], windows.shape[1] // block
        self.length, self.block, self.span = length, block, block + length - 1
        most = max(1, (CELLS_ON_CUDA if windows.is_cuda else CELLS) // (block * self.span))
        step = -(-self.span // block) if apart else 1
        by_group: list[At] = [(g, at) for g in range(self.groups) for at in _cut(self.blocks, most, step)]
        by_block: list[At] = [(at, n) for n in range(self.blocks) for at in _cut(self.groups, most)]
        self._parts = min(by_group, by_block, key=len)
        self._empty = windows.new_zeros(max(map(_count, self._parts), default=0), block, self.span)
        self._scratch = torch.empty_like(self._empty)

    def __iter__(self) -> Iterator[At]:
        return iter(self._parts)

    def windows(self, rows: Tensor) -> Tensor:
        """(G, T, d) to (G, N, block, d), a view"""
        return rows.unflatten(1, (-1, self.block))

    def spans(self, rows: Tensor) -> Tensor:
        """The rows that the windows of each block hold. (G, S, d) to (G, N, span, d), a view"""
        return rows.unfold(1, self.span, self.block).transpose(2, 3)

    def places(self, rows: Tensor) -> Tensor:
        """What each window holds at each place. (G, S) to (G, N, block, L), a view"""
        return rows.unfold(1, self.length, 1).unflatten(1, (-1, self.block))

    def terms(self, terms: Tensor) -> Tensor:
        """(G, T, L), or (G, 1, L) where all windows have the same, to (G, N, block or 1, L), a view"""
        same = terms.shape[1] == 1
        return terms[:, None].expand(-1, self.blocks, -1, -1) if same else self.windows(terms)

    def add_terms(self, to: Tensor, part: Tensor, at: At) -> None:
        """Add what belongs to some blocks, (n, block, L), to what `terms` shows of."""
        if to.shape[1] > 1:
            self.windows(to)[at].add_(part)
        else:
            group, summed = at[0], part.sum(1)  # (n, L)
            to[group, 0] += summed if isinstance(group, slice) else summed.sum(0)

    def empty(self, at: At) -> Tensor:
        """A matrix for each of these blocks, zero outside the band. (n, block, span)"""
        return self._empty[: _count(at)]

    def scratch(self, at: At) -> Tensor:
        """A matrix for each of these blocks. (n, block, span)"""
        return self._scratch[: _count(at)]


def _cut(count: int, most: int, step: int = 1) -> list[slice]:
    """0 ... count - 1, at most so many together, every `step`-th"""
    return [
        slice(first, min(start + most * step, count), step)
        for start in range(0, count, most * step)
        for first in range(start, min(start + step, count))
    ]


def _count(at: At) -> int:
    (some,) = (part for part in at if isinstance(part, slice))
    return len(range(some.start, some.stop, some.step))


def _inside(band: Tensor) -> Tensor:
    """The band alone. (n, block, span) to (n, block, L), a view"""
    n, block, span = band.shape
    return band.as_strided((n, block, span - block + 1), (block * span, span + 1, 1))
