"""Cells that mean "not measured": words, signs, and numbers that stand where no number was."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.inspect.guesses import Marker
from netanomaly.inspect.numbers import Cells

USUAL = ("", "NaN", "nan")
"""What `data.missing` has by default."""
_FILLERS = (2147483647.0, -2147483648.0, -2147483647.0, 4294967295.0, -999.0, -9999.0, -99999.0)
_FAR = 10
"""Other values are this many times nearer to zero than a number that stands for none."""
_SIGNED = {"1", "dB", "dBm", "celsius"}
_NEVER_NEGATIVE = re.compile(r"(rtt|ping|latency|delay|jitter|loss|throughput|bitrate)", re.IGNORECASE)


def text_markers(columns: Mapping[str, tuple[pd.Series, Cells]]) -> list[Marker]:
    """Words and signs in columns of numbers, as they are written there; the usual ones need no mention."""
    counts: dict[str, int] = {}
    where: dict[str, str] = {}
    for name, (texts, cells) in columns.items():
        for text, count in texts[cells.is_marker].value_counts().items():
            if text not in USUAL:
                counts[str(text)] = counts.get(str(text), 0) + int(count)
                where.setdefault(str(text), name)
    return [Marker(text, count, f"among numbers, first in '{where[text]}'") for text, count in counts.items()]


def never_negative(header: str, unit: str) -> bool:
    """Whether a value below zero makes no sense."""
    return unit not in _SIGNED or _NEVER_NEGATIVE.search(header) is not None


def filler_of(header: str, unit: str, values: NDArray[np.float64]) -> tuple[float, str] | None:
    """A number of a column that stands for no value, and why it seems so."""
    numbers = values[~np.isnan(values)]
    for filler in _FILLERS:
        others = numbers[numbers != filler]
        if len(others) < len(numbers) and (not len(others) or np.abs(others).max() * _FAR < abs(filler)):
            if len(others):
                return filler, f"far from all others in '{header}' (up to {np.abs(others).max():g})"
            return None
    others = numbers[numbers != -1]
    if never_negative(header, unit) and 0 < len(others) < len(numbers) and others.min() >= 0:
        return -1.0, f"no value of '{header}' can be below zero: a time-out, most likely"
    return None


def settle_fillers(
    found: Mapping[str, tuple[float, str]], columns: Mapping[str, NDArray[np.float64]]
) -> tuple[list[Marker], list[str]]:
    """Markers for the fillers, and a word on each that another column holds as a value.

    `data.missing` holds for every metric, so a number that is a value elsewhere cannot be one.
    """
    markers, told = [], []
    for filler in dict.fromkeys(filler for filler, _ in found.values()):
        owners = [name for name, (number, _) in found.items() if number == filler]
        others = [name for name, values in columns.items() if name not in owners and (values == filler).any()]
        cells = sum(int((columns[name] == filler).sum()) for name in owners)
        if others:
            told.append(
                f"{cells} cells of '{owners[0]}' are {filler:g}, which may mean \"not measured\"; in '{others[0]}' it "
                "may be a value, so it is not in data.missing: empty those cells if you know better"
            )
        else:
            markers.append(Marker(f"{filler:.0f}", cells, found[owners[0]][1]))
    return markers, told
