"""Moments and lengths of time as people read them, and as the figures take them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netanomaly.data.time_texts import format_times
from netanomaly.data.timestamps import TimeFormat

ELAPSED = "elapsed"
_SIZES = (("d", 86_400), ("h", 3_600), ("min", 60))


@dataclass(frozen=True)
class Clock:
    """How the data count time.

    Attributes:
        form: as the files write it.
        interval_ns: between two rows.
    """

    form: TimeFormat
    interval_ns: int

    @property
    def has_dates(self) -> bool:
        """Whether moments have a date, rather than a distance from some start."""
        return self.form.format != ELAPSED

    def full(self, time: int) -> str:
        """A moment that needs nothing beside it: `2026-03-01 10:41:07.5 UTC`, or a count as the files have it."""
        if not self.has_dates:
            return f"{format_times(np.array([time], dtype=np.int64), self.form)[0]} {self.form.unit}"
        text = format_times(np.array([time], dtype=np.int64), TimeFormat())[0].removesuffix("Z").replace("T", " ")
        return f"{text.rstrip('0') if '.' in text else text} UTC"

    def short(self, time: int, beside: int) -> str:
        """A moment beside another one: without the date if that is the same."""
        text = self.full(time).removesuffix(" UTC")
        if not self.has_dates:
            return text
        date, _, clock = text.partition(" ")
        return clock if self.full(beside).startswith(f"{date} ") else text

    def between(self, start: int, last: int) -> str:
        """From the first row to the end of the last one: `10:41:07 to 10:43:12`, without the date."""
        end = last + self.interval_ns
        if not self.has_dates:
            return f"{self.full(start)} to {self.full(end)}"
        first = self.full(start).removesuffix(" UTC")
        clock = first.partition(" ")[2]
        return f"{clock if self.same_day(start, end) else first} to {self.short(end, start)}"

    def same_day(self, first: int, second: int) -> bool:
        """Whether two moments have one date."""
        return not self.has_dates or self.full(first)[:10] == self.full(second)[:10]

    def length(self, start: int, last: int) -> str:
        """How long rows last, the last one its interval."""
        return length(last + self.interval_ns - start)

    def axis(self, times: NDArray[np.int64]) -> NDArray[np.float64]:
        """Moments for an axis: milliseconds since 1970, or seconds from the start. (n,)"""
        return times / (1e6 if self.has_dates else 1e9)


def length(nanoseconds: int) -> str:
    """A length of time in its two largest units: `2 min 5 s`, `0.5 s`, `3 d 4 h`."""
    seconds = nanoseconds / 1e9
    if seconds < 60:
        return f"{float(f'{seconds:.3g}'):g} s"
    whole, found = round(seconds), []
    for unit, size in (*_SIZES, ("s", 1)):
        count, whole = divmod(whole, size)
        if count:
            found.append(f"{count} {unit}")
    return " ".join(found[:2])
