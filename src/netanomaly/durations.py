"""Durations as people write them (`500ms`, `32s`, `5m`) and spans given in rows or as a duration."""

from __future__ import annotations

import re
from fractions import Fraction

_NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}
_PATTERN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ns|us|ms|s|m|h|d)\s*")

LONGEST = 2**62
"""Nanoseconds that differences of times can hold."""

Span = int | str
"""A length of time: a number of rows, or a duration such as `32s`."""
AUTO = "auto"
"""In the place of a span: it is found from the data."""


def parse_duration(text: str) -> int:
    """Nanoseconds in a duration such as `0.5s` or `5m`.

    Raises:
        ValueError: the text is not a positive duration with a unit of ns, us, ms, s, m, h or d.
    """
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is not a duration; write a number and a unit, like 500ms, 32s, 5m, 2h")
    nanoseconds = round(Fraction(match[1]) * _NANOSECONDS[match[2]])
    if nanoseconds < 1:
        raise ValueError(f"'{text}' is not longer than zero")
    if nanoseconds > LONGEST:
        raise ValueError(f"the duration '{text[:40]}' is too long; the longest is 146 years")
    return nanoseconds


def format_duration(nanoseconds: int) -> str:
    """A duration in its largest unit, to three digits: 500000000 becomes `500ms`, 5946999040 `5.95s`."""
    for unit, size in reversed(_NANOSECONDS.items()):
        if nanoseconds >= size:
            return f"{float(f'{nanoseconds / size:.3g}'):g}{unit}"
    return f"{nanoseconds}ns"


def check_span(span: Span) -> Span:
    """The span itself, if it is at least one row or a duration; raises ValueError otherwise."""
    if isinstance(span, str):
        parse_duration(span)
    elif span < 1:
        raise ValueError(f"{span} rows is too short; give 1 or more rows, or a duration like 32s")
    return span


def check_auto_span(span: Span) -> Span:
    """The span itself, if it is `auto` or what `check_span` takes."""
    if span == AUTO:
        return span
    try:
        return check_span(span)
    except ValueError as error:
        raise ValueError(f"{error}; or auto") from error


def check_auto_rows(rows: Span) -> Span:
    """The number of rows itself, if it is `auto` or at least 1; raises ValueError otherwise."""
    if rows != AUTO and (isinstance(rows, str) or rows < 1):
        raise ValueError(f"{rows!r} is neither auto nor a number of rows, 1 or more")
    return rows


def check_gap(span: Span) -> Span:
    """The span itself, if it is no row, some rows or a duration; raises ValueError otherwise."""
    return span if span == 0 else check_span(span)


def span_rows(span: Span, interval_ns: int) -> int:
    """Rows that a span covers on a grid of `interval_ns`: `32s` on a 0.5 s grid is 64 rows."""
    if isinstance(span, int):
        return span
    return -(-parse_duration(span) // interval_ns)
