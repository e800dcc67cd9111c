"""Logs of ping and fping: a line per echo. Only with times (`ping -D`, `fping -l -D`) are they rows.

Sources: the manuals of iputils' ping and of fping (https://fping.org/fping.1.html).
"""

from __future__ import annotations

import re

import pandas as pd

from netanomaly.errors import DataError
from netanomaly.exports.wide import SERIES, TIME

_STAMP = r"\[(?P<time>\d+\.\d+)\] "
_FPING = re.compile(
    _STAMP + r"(?P<host>\S+)\s+: \[\d+\], (?:\d+ bytes, (?P<rtt>[\d.]+) ms|timed out|.*)(?: \([^)]*\))?.*"
)
_PING = re.compile(_STAMP + r"\d+ bytes from (?P<host>[^:]+?)(?: \([^)]*\))?: .*time=(?P<rtt>[\d.]+) ms.*")
_LATE = re.compile(_STAMP + r"no answer yet for icmp_seq=\d+")
_ECHO = re.compile(r"^(\d+ bytes from .*time=[\d.]+ ms|\S+\s+: \[\d+\], \d+ bytes, [\d.]+ ms)", re.MULTILINE)

WITH_TIMES = "the lines say nothing of when; record them with ping -D, or fping -l -D"


def matches(head: str) -> bool:
    """Whether lines with the time of an echo are among the first ones."""
    return any(_FPING.fullmatch(line) or _PING.fullmatch(line) for line in head.splitlines()[:20])


def matches_without_times(head: str) -> bool:
    """Whether echoes are there, but not when they were sent."""
    return not matches(head) and _ECHO.search(head[:4000]) is not None


def convert(text: str, name: str) -> pd.DataFrame:
    """A row per echo; the round trip is missing where none came back."""
    rows, host = [], None
    for line in text.splitlines():
        if match := _FPING.fullmatch(line) or _PING.fullmatch(line):
            host = match["host"]
            rows.append((match["time"], host, match["rtt"] or ""))
        elif (match := _LATE.fullmatch(line)) and host:
            rows.append((match["time"], host, ""))
    return pd.DataFrame(rows, columns=[TIME, SERIES, "rtt_ms"], dtype="str")


def refuse(text: str, name: str) -> pd.DataFrame:
    """Echoes without times cannot become rows. Raises DataError."""
    raise DataError(f"{name}: {WITH_TIMES}")
