"""Numbers as people read them, in the units that the configuration names."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from netanomaly.data.schema import Metric
from netanomaly.reason_metrics import number as plain_number

DASH = "\N{EN DASH}"


def number(value: float | None) -> str:
    """As reasons have it, 96.8, 0.0123, 5.57M; a dash for none."""
    if value is None or math.isnan(value):
        return DASH
    return plain_number(value)


def percent(share: float | None, digits: int = 0) -> str:
    """A share in percent; what is not nothing is not shown as 0 %, what is not all not as 100 %."""
    if share is None or math.isnan(share):
        return DASH
    least = 10.0**-digits
    if 0 < share < least / 200:
        return f"< {least:g} %"
    if 1 - least / 200 < share < 1:
        return f"> {100 - least:g} %"
    return f"{100 * share:.{digits}f} %"


def unit(metric: Metric) -> str:
    """The unit as configured, per second for a counter; empty where it is a plain number."""
    if metric.kind == "counter":
        return "1/s" if metric.unit == "1" else f"{metric.unit}/s"
    return "" if metric.unit == "1" else metric.unit


def in_unit(values: NDArray[np.float64], metric: Metric) -> NDArray[np.float64]:
    """Values in base units in those that the configuration names. (n,)"""
    return values / metric.factor


def counted(count: int, noun: str) -> str:
    """`1 alarm`, `17 alarms`, `2 series`."""
    return f"{count:,} {noun if count == 1 or noun == 'series' else f'{noun}s'}"
