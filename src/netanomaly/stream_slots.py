"""Which series have a place in the arrays of a stream, and where those stood that have lost it."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.data.live_grid import Standing

REMEMBERED = 100_000
"""Forgotten series of which it is kept where they stood: their late rows are told from new ones."""


class SeriesSlots:
    """Places of series that come and go; a place that has become free is given again.

    Attributes:
        places: of the series that have one.
        used: places that have been given so far, free ones too: the arrays have at least as many.
        gone: where forgotten series stood, the longest forgotten first.
    """

    def __init__(self) -> None:
        self.places: dict[str, int] = {}
        self.used = 0
        self.gone: dict[str, Standing] = {}
        self._free: list[int] = []

    def of(self, series: NDArray[np.object_]) -> tuple[NDArray[np.int64], list[str]]:
        """The place of each row's series, and the names of those that had none before. (n,) to (n,)"""
        codes, found = pd.factorize(np.asarray(series, dtype=object))
        names = [str(name) for name in found]
        fresh = [name for name in names if name not in self.places]
        for name in fresh:
            self.places[name] = self._free.pop() if self._free else self.used
            self.used = max(self.used, self.places[name] + 1)
        return np.array([self.places[name] for name in names], dtype=np.int64)[codes], fresh

    def release(self, name: str) -> None:
        """The place of a series is free."""
        self._free.append(self.places.pop(name))

    def remember(self, name: str, standing: Standing) -> None:
        """Keep where a series stood that loses its place; of many, the longest forgotten are dropped."""
        self.gone[name] = standing
        if len(self.gone) > REMEMBERED:
            del self.gone[next(iter(self.gone))]

    def taken(self) -> NDArray[np.int64]:
        """The places that have a series, in the order of the series."""
        return np.fromiter(self.places.values(), dtype=np.int64, count=len(self.places))
