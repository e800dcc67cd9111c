"""iperf3's JSON (`iperf3 -c HOST -i 1 --json`): a row per interval of each test.

Source: https://software.es.net/iperf/
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pandas as pd

from netanomaly.errors import DataError
from netanomaly.exports.wide import SERIES, TIME

_OF_SUM = ("bits_per_second", "retransmits", "jitter_ms", "lost_packets", "lost_percent", "packets")
_OF_STREAMS = {"rtt": "rtt_us", "rttvar": "rttvar_us", "snd_cwnd": "snd_cwnd_bytes"}
"""Values of each TCP stream; their mean is taken."""


def matches(head: str) -> bool:
    """Whether a text is a test's JSON."""
    return head.lstrip().startswith("{") and '"intervals"' in head and '"connecting_to"' in head


def convert(text: str, name: str) -> pd.DataFrame:
    """The intervals of all tests of a file, one after the other. Raises DataError if there are none."""
    try:
        rows = [row for test in _tests(text) for row in _rows(test)]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{name}: not the JSON of iperf3: {error}") from error
    if not rows:
        raise DataError(f"{name}: no intervals in it; test again with -i 1")
    frame = pd.DataFrame(rows)
    return frame.dropna(axis=1, how="all").astype(object).where(frame.notna(), "").astype(str)


def _tests(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects of a text, which may have several below each other."""
    decoder, place = json.JSONDecoder(), 0
    while text[place:].strip():
        place += len(text[place:]) - len(text[place:].lstrip())
        test, place = decoder.raw_decode(text, place)
        yield test


def _rows(test: dict[str, Any]) -> Iterator[dict[str, Any]]:
    start = test["start"]["timestamp"]["timesecs"]
    host = test["start"]["connecting_to"]["host"]
    for interval in test["intervals"]:
        total = interval["sum"]
        if total.get("omitted"):
            continue
        row = {TIME: f"{start + total['start']:.3f}", SERIES: host}
        row |= {key: total.get(key) for key in _OF_SUM}
        for key, column in _OF_STREAMS.items():
            values = [stream[key] for stream in interval["streams"] if key in stream]
            row[column] = sum(values) / len(values) if values else None
        yield row
