"""What `rrdtool fetch FILE AVERAGE` prints, of smokeping's files for one: names, then a line per step.

Source: https://oss.oetiker.ch/rrdtool/doc/rrdfetch.en.html; smokeping keeps seconds, and lost echoes as a number.
"""

from __future__ import annotations

import re

import pandas as pd

from netanomaly.errors import DataError
from netanomaly.exports.wide import TIME

_LINE = re.compile(r"\d{9,10}:(\s+\S+)+\s*")
_SMOKEPING = re.compile(r"median|ping\d+")


def matches(head: str) -> bool:
    """Whether names stand above lines like `1700000000: 1.2e-02`."""
    lines = [line for line in head.splitlines()[:6] if line.strip()]
    return len(lines) > 1 and not _LINE.fullmatch(lines[0]) and all(_LINE.fullmatch(line) for line in lines[1:3])


def convert(text: str, name: str) -> pd.DataFrame:
    """A row per step; what smokeping measures is called by its unit. Raises DataError if a line has too many values."""
    header, *lines = [line.split() for line in text.splitlines() if line.strip()]
    if "median" in header:
        header = [f"{column}_s" if _SMOKEPING.fullmatch(column) else column for column in header]
        header = ["lost_pings" if column == "loss" else column for column in header]
    for number, line in enumerate(lines, start=1):
        if len(line) != len(header) + 1:
            raise DataError(f"{name}: row {number}: {len(line) - 1} values for {len(header)} names")
    cells = [[line[0].rstrip(":"), *("" if "nan" in cell.lower() else cell for cell in line[1:])] for line in lines]
    return pd.DataFrame(cells, columns=[TIME, *header], dtype="str")
