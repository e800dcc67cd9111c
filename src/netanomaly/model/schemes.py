"""Position schemes: how a look-up learns where in the window a row stands.

    additive        a vector per position is added to the projected queries and keys
    rotary          queries and keys are turned by an angle that grows with the position
    relative bias   each distance adds a trained number to the score
    relative key    each distance adds a trained vector to the key and one to the value
    none            the table is a set: the order of its rows does not matter

Places count from the oldest row of the window. Shapes: N windows, H heads, S rows, L rows of a window, d width of a
head.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from netanomaly.model.lookup import Relative
from netanomaly.model.positions import distance_buckets, rotate


class NoPositions(nn.Module):
    """Nothing; also what the schemes have in common."""

    def asking(self, queries: Tensor, places: Tensor, *, token: bool = False) -> Tensor:
        """Queries at these places, (N, H, S, d) and (S,); a learned token has no place of its own."""
        return queries

    def held(self, keys: Tensor, places: Tensor) -> Tensor:
        """Keys at these places. (N, H, S, d) and (S,)"""
        return keys

    def vectors(self) -> Tensor | None:
        """Vectors that the keys of a window get added by place, (L, d); None: `held` with any count of rows will do."""
        return None

    def relative(self, length: int) -> Relative | None:
        """What distances add in a table of `length` rows."""
        return None


class AdditivePositions(NoPositions):
    """A table of vectors, fixed or trained, the same for all heads.

    Args:
        table: (L, d)
        trained: whether it is a parameter.
    """

    table: Tensor

    def __init__(self, table: Tensor, *, trained: bool = False) -> None:
        super().__init__()
        if trained:
            self.table = nn.Parameter(table)
        else:
            self.register_buffer("table", table, persistent=False)

    def asking(self, queries: Tensor, places: Tensor, *, token: bool = False) -> Tensor:
        """Plus the vectors of the places, unless a token asks: it learns what it needs."""
        return queries if token else queries + self.table[places]

    def held(self, keys: Tensor, places: Tensor) -> Tensor:
        """Plus the vectors of the places."""
        return keys + self.table[places]

    def vectors(self) -> Tensor | None:
        """The table."""
        return self.table


class RotaryPositions(NoPositions):
    """See `positions.rotate`. A token is turned like the newest row."""

    def __init__(self, base: float) -> None:
        super().__init__()
        self.base = base

    def asking(self, queries: Tensor, places: Tensor, *, token: bool = False) -> Tensor:
        """Turned."""
        return rotate(queries, places, self.base)

    def held(self, keys: Tensor, places: Tensor) -> Tensor:
        """Turned."""
        return rotate(keys, places, self.base)


class RelativeBias(NoPositions):
    """A trained number per head and bucket of distances, zero at first (T5).

    Args:
        n_heads: H
        buckets: how many, a multiple of 4.
        furthest: the distance from which on all share the last bucket.
        both_ways: whether rows see later ones; if not, all buckets are for earlier ones.
    """

    def __init__(self, n_heads: int, buckets: int, furthest: int, *, both_ways: bool = True) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(n_heads, buckets))
        self.furthest, self.both_ways = furthest, both_ways

    def relative(self, length: int) -> Relative:
        """The bias of every distance."""
        distance = _distances(length, self.bias.device)
        bucket = distance_buckets(distance, self.bias.shape[1], self.furthest, both_ways=self.both_ways)
        return Relative(bias=self.bias[:, bucket])


class RelativeVectors(NoPositions):
    """Trained vectors per distance for keys and for values, shared by the heads; distances beyond `reach` share one.

    Source: Shaw et al., Self-Attention with Relative Position Representations (2018), equations 3 and 4.

    Args:
        width: d
        reach: the furthest distance with a vector of its own.
        both_ways: whether rows see later ones; if not, there are no vectors for those.
    """

    def __init__(self, width: int, reach: int, *, both_ways: bool = True) -> None:
        super().__init__()
        self.reach, self.furthest_ahead = reach, reach if both_ways else 0
        self.keys = nn.Parameter(torch.randn(reach + self.furthest_ahead + 1, width) * 0.02)
        self.values = nn.Parameter(torch.randn(reach + self.furthest_ahead + 1, width) * 0.02)

    def relative(self, length: int) -> Relative:
        """The vectors of every distance."""
        index = _distances(length, self.keys.device).clamp(-self.furthest_ahead, self.reach) + self.furthest_ahead
        return Relative(keys=self.keys[index], values=self.values[index])


def _distances(length: int, device: torch.device) -> Tensor:
    """Every distance in a table, in the order of `Relative`. (2 length - 1,)"""
    return torch.arange(1 - length, length, device=device)
