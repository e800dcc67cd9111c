"""Which columns hold the time, and how it is written: every guess is tried with the reader that will read it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.data.timestamps import PLAUSIBLE, TimeFormat, parse_times
from netanomaly.errors import DataError
from netanomaly.inspect.guesses import TimeGuess
from netanomaly.inspect.sample import Sample

_NAMES = re.compile(r"time|date|epoch|stamp|clock|^ts$|^t$", re.IGNORECASE)
_ELAPSED = re.compile(r"^(elapsed|time|t|seconds|secs?|uptime)(?![a-z])|elapsed", re.IGNORECASE)
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(?P<offset>[Zz]|[+-]\d\d:?\d\d)?")
_OFFSET = r"(?:[Zz]|[+-]\d\d:?\d\d)$"
_COUNT = re.compile(r"-?\d+(\.\d*)?")
_CLOCK = r"(?P<clock>\d{1,2}(?P<colon>[:._-])\d{2}(?:(?P=colon)\d{2}(?P<fraction>\.\d{1,9})?)?)(?P<half> ?[AaPp][Mm])?"
_DATES = (
    (r"\d{4}(?P<s>[-/. ])\d{1,2}(?P=s)\d{1,2}", ("%Y{s}%m{s}%d",)),
    (r"\d{1,2}(?P<s>[-/. ])\d{1,2}(?P=s)\d{4}", ("%d{s}%m{s}%Y", "%m{s}%d{s}%Y")),
    (r"\d{1,2}(?P<s>[-/. ])\d{1,2}(?P=s)\d{2}", ("%d{s}%m{s}%y", "%m{s}%d{s}%y", "%y{s}%m{s}%d")),
    (r"\d{1,2}(?P<s>[-/. ])[A-Za-z]{3}(?P=s)\d{4}", ("%d{s}%b{s}%Y",)),
    (r"[12]\d{3}[01]\d[0-3]\d(?P<s>)", ("%Y%m%d",)),
)
_ORDER = {"%d": "day first", "%m": "month first", "%y": "year first", "%Y": "year first"}
_UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
MOST = 0.95
"""Share of the filled cells that have to fit a format."""
MOSTLY_UP = 0.9
"""Share of its changes in which a count goes up: it falls where another series begins."""


@dataclass(frozen=True)
class Times:
    """The time of each row.

    Attributes:
        moments: nanoseconds since 1970; None where the reader refuses one. (rows,)
        problem: what it says then.
        others: further columns that hold times.
    """

    guess: TimeGuess
    moments: NDArray[np.int64] | None
    problem: str | None
    others: tuple[str, ...]


def find_times(sample: Sample) -> Times | None:
    """The columns of the time; None if no column looks like one."""
    found = [guess for column in sample.header if (guess := _guess(sample, column)) is not None]
    found += _pairs(sample, [guess.columns[0] for guess in found if _rank(guess) == 2])
    # a column that is called so counts for more than one that is not, a whole time for more than a date, a date with
    # a clock for more than a count
    found.sort(key=lambda guess: (not any(map(_NAMES.search, guess.columns)), _rank(guess)))
    if not found:
        return None
    guess = found[0]
    others = tuple(dict.fromkeys(c for other in found for c in other.columns if c not in guess.columns))
    try:
        moments = parse_times(_texts(sample, guess), _time_format(guess), " ".join(guess.columns), sample.where)
    except DataError as error:
        return Times(guess, None, str(error), others)
    return Times(guess, moments, None, others)


def _rank(guess: TimeGuess) -> int:
    if guess.format == "elapsed":
        return 3
    return 0 if guess.format in ("rfc3339", "epoch") or "%M" in guess.format else 2


def _texts(sample: Sample, guess: TimeGuess) -> pd.Series:
    texts = sample.cells[guess.columns[0]]
    for column in guess.columns[1:]:
        texts = texts + " " + sample.cells[column]
    return texts.str.replace(",", ".", regex=False) if guess.unit and sample.dialect.decimal == "," else texts


def _time_format(guess: TimeGuess) -> TimeFormat:
    return TimeFormat(guess.format, guess.unit, guess.timezone, guess.mixed_offsets)


def _guess(sample: Sample, column: str) -> TimeGuess | None:
    """How a column writes times, if it does."""
    texts = sample.cells[column]
    filled = texts[texts != ""]
    if not len(filled) or (len(filled) > 1 and (filled == filled.iloc[0]).all()):
        return None
    first = str(filled.iloc[0])
    if _RFC3339.fullmatch(first):
        return _rfc3339(column, filled)
    if _COUNT.fullmatch(first.replace(",", ".")):
        return _count(sample, column, filled) or _pattern((column,), filled)
    return _pattern((column,), filled)


def _rfc3339(column: str, filled: pd.Series) -> TimeGuess | None:
    if filled.str.fullmatch(_RFC3339).mean() < MOST:
        return None
    guess = TimeGuess((column,), "rfc3339", "RFC 3339 with a UTC offset")
    offsets = filled.str.extract(f"({_OFFSET})")[0].dropna()
    if offsets.nunique() > 1:
        return replace(guess, mixed_offsets=True, reason="RFC 3339, several UTC offsets")
    return guess if len(offsets) else _without_zone(guess, "RFC 3339")


def _without_zone(guess: TimeGuess, what: str) -> TimeGuess:
    return replace(guess, timezone="UTC", reason=f"{what}, no UTC offset: UTC is assumed")


def _count(sample: Sample, column: str, filled: pd.Series) -> TimeGuess | None:
    """An epoch, if its size says so, or a count from any start that goes up."""
    if not _NAMES.search(column) and not _ELAPSED.search(column):
        return None
    numbers = pd.to_numeric(filled.str.replace(",", ".", regex=False), errors="coerce").dropna().to_numpy()
    if len(numbers) < MOST * len(filled):
        return None
    low, high = float(numbers.min()), float(numbers.max())
    for unit, factor in _UNITS.items():
        if PLAUSIBLE[0] <= low * factor and high * factor <= PLAUSIBLE[1]:
            day = f"{pd.Timestamp(round(low * factor)):%Y-%m-%d}"
            return TimeGuess((column,), "epoch", f"as a count of {unit} since 1970 it starts on {day}", unit=unit)
    moves = np.diff(numbers)[np.diff(numbers) != 0]
    if not _ELAPSED.search(column) or len(moves) < 2 or (moves > 0).mean() < MOSTLY_UP:
        return None
    unit = next((u for u in ("ms", "us", "ns") if re.search(rf"(^|[_ (]){u}\)?$", column, re.IGNORECASE)), "s")
    return TimeGuess((column,), "elapsed", f"goes up from {numbers[0]:g}: {unit} since any start", unit=unit)


def _pairs(sample: Sample, days: list[str]) -> list[TimeGuess]:
    """A column of dates together with one of times of the day."""
    clocks = [column for column in sample.header if days and _is_clock(sample.cells[column])]
    found = []
    for day, clock in zip(days[:1], clocks[:1], strict=False):
        texts = sample.cells[day] + " " + sample.cells[clock]
        if guess := _pattern((day, clock), texts):
            found.append(replace(guess, reason=f"date and time of day, {guess.reason}"))
    return found


def _is_clock(texts: pd.Series) -> bool:
    filled = texts[texts != ""]
    return (
        len(filled) > 0
        and re.fullmatch(_CLOCK, filled.iloc[0]) is not None
        and bool(filled.str.fullmatch(_CLOCK).mean() >= MOST)
    )


def _pattern(columns: tuple[str, ...], filled: pd.Series) -> TimeGuess | None:
    """A strptime pattern that fits; of several orders the one in which the rows go up."""
    first = str(filled.iloc[0])
    distinct = filled.drop_duplicates()
    fitting = []
    for pattern in _patterns(first):
        times = pd.to_datetime(distinct, format=pattern, errors="coerce", utc="%z" in pattern)
        if times.notna().mean() >= MOST:
            steps = times.dropna().diff().dropna()
            fitting.append((times.isna().sum(), (steps < pd.Timedelta(0)).sum(), pattern))
    if not fitting:
        return None
    _, falls, pattern = min(fitting, key=lambda fit: fit[:2])  # the first among equals
    reason = f"like '{first}'"
    rivals = [other for other in fitting if other[2] != pattern]
    if len(pattern) > 8 and rivals:
        how = "the rows go up then" if min(rivals)[1] > falls else "a guess, nothing tells it from another order"
        reason += f", {_ORDER[pattern[:2]]}: {how}"
    elif pattern[:2] in _ORDER:
        reason += f", {_ORDER[pattern[:2]]}: no other order fits" if len(list(_patterns(first))) > 1 else ""
    guess = TimeGuess(columns, pattern, reason)
    return guess if "%z" in pattern else _without_zone(guess, reason)


def _patterns(text: str) -> Iterator[str]:
    """The strptime patterns that a text may be of."""
    for date, orders in _DATES:
        clock = rf"(?:(?P<join>[ T_,-]{{1,2}}){_CLOCK})?"
        match = re.fullmatch(rf"{date}{clock}(?P<gap> ?)(?P<offset>Z|[+-]\d\d:?\d\d)?", text)
        if match is None:
            continue
        for order in orders:
            if match["s"] == "." and order.startswith("%m"):  # nobody writes the month first with dots
                continue
            zone = match["gap"] + "%z" if match["offset"] else ""
            yield order.format(s=match["s"]) + (_clock_pattern(match) if match["clock"] else "") + zone


def _clock_pattern(match: re.Match[str]) -> str:
    """The part of a pattern for the time of the day, with what joins it to the date."""
    fraction, half = match["fraction"] or "", match["half"] or ""
    fields = match["clock"].removesuffix(fraction).split(match["colon"])
    parts = ["%I" if half else "%H", "%M", "%S"][: len(fields)]
    pattern = match["join"] + match["colon"].join(parts) + (".%f" if fraction else "")
    return pattern + (" %p" if half.startswith(" ") else "%p" if half else "")
