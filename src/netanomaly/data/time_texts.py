"""Moments as text that people and `parse_times` read."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from netanomaly.data.timestamps import UNIT_NS, TimeFormat

_DIGITS: dict[int, Literal["s", "ms", "us", "ns"]] = {1_000_000_000: "s", 1_000_000: "ms", 1_000: "us", 1: "ns"}


def format_times(times: NDArray[np.int64], form: TimeFormat) -> list[str]:
    """RFC 3339 in UTC with as many digits as the moments need, or counts where the data count. (n,)"""
    if form.unit is not None:
        return [_count(int(time), UNIT_NS[form.unit]) for time in times]
    unit = next(unit for step, unit in _DIGITS.items() if not (times % step).any())
    texts = np.datetime_as_string(times.view("datetime64[ns]"), unit=unit)
    return [f"{text}Z" for text in texts]


def _count(time: int, factor: int) -> str:
    """A whole number of units, or one with a fraction, exactly."""
    whole, rest = divmod(abs(time), factor)
    fraction = f"{rest:0{len(str(factor)) - 1}d}".rstrip("0") if rest else ""
    return f"{'-' if time < 0 else ''}{whole}{'.' if fraction else ''}{fraction}"
