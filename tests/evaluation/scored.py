"""Rows to score, in a few letters: a label each, `.` for the normal one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from netanomaly.evaluation.rows import ScoredRows

SECOND = 10**9
NAMES = {".": "normal", "-": "no_data"}


def labels(names: Sequence[str]) -> NDArray[np.object_]:
    """One label per letter or name."""
    return np.array([NAMES.get(name, name) for name in names], dtype=object)


def scored(truth: Sequence[str], series: Sequence[str] | None = None, times: Sequence[int] | None = None) -> ScoredRows:
    """Rows of one series, a second apart, but for what is given; gaps of up to 3.5 s do not end anything."""
    seconds = np.arange(len(truth)) if times is None else np.array(times)
    return ScoredRows(
        series=np.array(list(series or "s" * len(truth)), dtype=object),
        times=seconds.astype(np.int64) * SECOND,
        truth=labels(truth),
        interval_ns=SECOND,
        max_gap_ns=3 * SECOND + SECOND // 2,
        normal="normal",
        no_data="no_data",
    )
