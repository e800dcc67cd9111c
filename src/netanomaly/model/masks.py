"""Which rows of a window may look up which."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class MaskRule:
    """The structure of a mask; rows that were not measured are hidden on top of it.

    Attributes:
        causal: a row sees itself and earlier rows.
        prefix: the first rows of the window, which rows see although the mask is causal (prefix-LM).
        local: rows at this distance or further are not seen, those of the prefix neither.
    """

    causal: bool = False
    prefix: int = 0
    local: int | None = None

    def allowed(self, asking: Tensor, held: Tensor) -> Tensor | None:
        """Whether each asking place sees each held place, (Q,) and (L,) to (Q, L); None if all see all."""
        ahead = held[None, :] - asking[:, None]  # (Q, L)
        allowed = None
        if self.causal:
            allowed = (ahead <= 0) | (held < self.prefix)[None, :]
        if self.local is not None:
            near = ahead.abs() < self.local
            allowed = near if allowed is None else allowed & near
        return allowed

    def any_allowed(self, asking: range, held: range) -> bool:
        """Whether any of a tile's places may be seen: tiles without one need no work."""
        if self.causal and held.start >= asking.stop and held.start >= self.prefix:
            return False
        gap = max(held.start - (asking.stop - 1), asking.start - (held.stop - 1), 0)
        return self.local is None or gap < self.local


EVERYTHING = MaskRule()
"""Every row sees every row."""
