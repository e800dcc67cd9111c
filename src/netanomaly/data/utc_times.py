"""Times in UTC that are all written alike, as most files have them, read at once."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_WRITTEN = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,9})?Z", re.ASCII)
_AT_ONCE = 2**16
"""Texts that are spread into characters together: four bytes for each."""


def utc_nanoseconds(texts: Sequence[object]) -> NDArray[np.int64] | None:
    """Nanoseconds since 1970 of texts like 2026-11-29T16:59:51.5Z; None if any is another, or no time at all."""
    first = texts[0] if texts else None
    if not isinstance(first, str) or not _WRITTEN.fullmatch(first):
        return None
    found = []
    for start in range(0, len(texts), _AT_ONCE):
        some = texts[start : start + _AT_ONCE]
        if not alike(some, first):
            return None
        written = np.array(some)
        years = written.astype("U4").astype(np.int64)
        if years.min() < 1826 or years.max() > 2115:  # what nanoseconds hold without wrapping around
            return None
        try:
            found.append(written.astype(f"U{len(first) - 1}").astype("datetime64[ns]").astype(np.int64))
        except ValueError:  # a thirteenth month, a sixtieth second
            return None
    return np.concatenate(found)


def alike(texts: Sequence[object], first: str) -> bool:
    """Whether all have a digit where `first` has one, and the same character where it has another."""
    written = np.array(texts)
    if written.dtype != np.array(first).dtype or not first:
        return False
    characters = written.view(np.uint32).reshape(len(written), -1)
    pattern = np.array(first).reshape(1).view(np.uint32)
    is_digit = (pattern >= ord("0")) & (pattern <= ord("9"))
    digits = characters[:, is_digit] - np.uint32(ord("0"))  # what lies below wraps around
    return bool((digits <= 9).all() and (characters[:, ~is_digit] == pattern[~is_digit]).all())
