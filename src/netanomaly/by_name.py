"""Rows by the name that they have."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray


def rows_by_name(names: NDArray[np.object_]) -> dict[str, NDArray[np.int64]]:
    """The positions of each name, in order; names in the order of the alphabet. (rows,)"""
    groups = pd.Series(names, dtype=object).groupby(names, sort=True).indices
    return {str(name): np.sort(np.asarray(rows, dtype=np.int64)) for name, rows in groups.items()}
