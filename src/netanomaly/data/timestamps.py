"""Times as written in a file become nanoseconds since 1970, in UTC; nothing is guessed."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.data.cells import CellFormat, Where, as_text, to_numbers
from netanomaly.data.utc_times import alike, utc_nanoseconds
from netanomaly.durations import LONGEST
from netanomaly.errors import ConfigError, DataError

UNIT_NS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_OFFSET = r"(?:[Zz]|[+-]\d{2}:?\d{2})"
_RFC3339 = rf"\d{{4}}-\d{{2}}-\d{{2}}[Tt ]\d{{2}}:\d{{2}}(?::\d{{2}}(?:\.\d{{1,9}})?)?{_OFFSET}?"
PLAUSIBLE = (pd.Timestamp("1990-01-01").value, pd.Timestamp("2100-01-01").value)
"""Nanoseconds between which a count since 1970 lies, or its unit is likely another."""


@dataclass(frozen=True)
class TimeFormat:
    """How times are written.

    Attributes:
        format: `rfc3339`, `epoch`, `elapsed` (a count from any start), or a strptime pattern.
        unit: of `epoch` and `elapsed`: s, ms, us or ns.
        timezone: for times without an offset.
        mixed_offsets: whether one file may hold several offsets.
    """

    format: str = "rfc3339"
    unit: str | None = None
    timezone: str | None = None
    mixed_offsets: bool = False


def parse_times(texts: pd.Series, form: TimeFormat, column: str, where: Where, decimal: str = ".") -> NDArray[np.int64]:
    """Nanoseconds since 1970 in UTC of a column of times, shape (rows,).

    The column holds text (counts with the given decimal mark), or is a datetime column of pandas.

    Raises:
        DataError: a time is not of the declared format, has no offset where no time zone is declared, or
            lies outside 1990 to 2100 where it is an epoch (the unit is then likely another).
    """
    if isinstance(texts.dtype, pd.DatetimeTZDtype) or pd.api.types.is_datetime64_dtype(texts):
        return _from_datetimes(texts, form, column, where)
    if form.unit is not None:
        return _from_counts(texts, form, column, where, decimal)
    if form.format == "rfc3339" and (quick := utc_nanoseconds(texts.tolist())) is not None:
        return quick
    codes, unique = pd.factorize(as_text(texts))
    first_rows = np.full(len(unique), -1)
    first_rows[codes[::-1]] = np.arange(len(codes))[::-1]

    def place(index: int) -> str:
        return f"{where(int(first_rows[index]))}, column '{column}'"

    return _from_texts(pd.Series(unique, dtype="str"), form, place)[codes]


def is_rfc3339(text: str) -> bool:
    """Whether a text is a complete RFC 3339 time, with its offset."""
    return re.fullmatch(_RFC3339.removesuffix("?"), text.strip()) is not None


def _from_texts(texts: pd.Series, form: TimeFormat, place: Where) -> NDArray[np.int64]:
    """Distinct texts to nanoseconds; `place` names where a text first stands."""
    seen = texts[:1] if _are_alike(texts) else texts  # one tells of all that are alike, when there are many
    if form.format == "rfc3339":
        _check_rfc3339(seen, form, place)
    pattern = "ISO8601" if form.format == "rfc3339" else form.format
    has_offset = form.format == "rfc3339" and bool(seen.str.contains(_OFFSET + "$", regex=True).all())
    in_utc = has_offset or "%z" in form.format.lower()
    try:
        written = texts.str.upper() if form.format == "rfc3339" else texts  # RFC 3339 allows t and z
        times = pd.to_datetime(written, format=pattern, errors="coerce", utc=in_utc)
    except ValueError as error:
        raise ConfigError(f"data.timestamp.format: {error}") from error
    if times.isna().any():
        index = int(np.flatnonzero(times.isna())[0])
        raise DataError(f"{place(index)}: found '{texts.iloc[index]}', not a time of the format {form.format}")
    return _nanoseconds(times if in_utc else _localize(times, form, place), place)


def _are_alike(texts: pd.Series) -> bool:
    """Whether all texts are like the first, whose offset, if it has one, has no digits that might differ."""
    if not len(texts) or re.search(r"[+-]\d\d:?\d\d$", texts.iloc[0][10:]):
        return False
    return alike(texts.tolist(), texts.iloc[0])


def _check_rfc3339(texts: pd.Series, form: TimeFormat, place: Where) -> None:
    wrong = np.flatnonzero(~texts.str.fullmatch(_RFC3339).to_numpy(dtype=bool))
    if len(wrong):
        index = int(wrong[0])
        text = str(texts.iloc[index])
        is_number = re.fullmatch(r"\d+(\.\d*)?", text) is not None
        advice = "epoch with its unit" if is_number else "a pattern like '%d/%m/%Y %H:%M'"
        raise DataError(
            f"{place(index)}: found '{text[:40]}', not a time like 2026-11-29T16:59:51.5Z; "
            f"set data.timestamp.format: {advice}"
        )
    offsets = texts.str.extract(rf"({_OFFSET})$")[0].fillna("").replace({"z": "Z", "+00:00": "Z", "+0000": "Z"})
    distinct = list(dict.fromkeys(offsets))
    if len(distinct) < 2:
        return
    other = int(np.flatnonzero(offsets == distinct[1])[0])
    found = f"{place(other)}: found '{texts.iloc[other]}' after '{texts.iloc[0]}'"
    if "" in distinct:
        raise DataError(f"{found}: some times have an offset and some have none; export them all in UTC")
    if not form.mixed_offsets:
        raise DataError(f"{found}: the file mixes UTC offsets; if both are right set data.timestamp.mixed_offsets: utc")


def _from_datetimes(times: pd.Series, form: TimeFormat, column: str, where: Where) -> NDArray[np.int64]:
    def place(index: int) -> str:
        return f"{where(index)}, column '{column}'"

    if times.isna().any():
        raise DataError(f"{place(int(np.flatnonzero(times.isna())[0]))}: no time (NaT)")
    return _nanoseconds(times if times.dt.tz is not None else _localize(times, form, place), place)


def _localize(times: pd.Series, form: TimeFormat, place: Where) -> pd.Series:
    """Times without an offset, in the declared zone."""
    if form.timezone is None:
        raise DataError(
            f"{place(0)}: found '{times.iloc[0]}' without a UTC offset; set data.timestamp.timezone: UTC, "
            "or the zone it was recorded in, like Europe/Berlin"
        )
    try:
        local: pd.Series = times.dt.tz_localize(form.timezone, ambiguous="NaT", nonexistent="NaT")
    except Exception as error:  # an unknown zone: the error's class depends on the tz database in use
        raise ConfigError(f"data.timestamp.timezone: unknown time zone '{form.timezone}'") from error
    if local.isna().any():
        index = int(np.flatnonzero(local.isna())[0])
        raise DataError(
            f"{place(index)}: {times.iloc[index]} happens twice or never in {form.timezone} (summer time); "
            "record times in UTC or with an offset"
        )
    return local


def _nanoseconds(times: pd.Series, place: Where) -> NDArray[np.int64]:
    years = times.dt.year.to_numpy()
    for index in np.flatnonzero((years <= 1824) | (years >= 2116))[:1]:  # LONGEST on either side of 1970
        raise DataError(f"{place(int(index))}: found {times.iloc[index]}, outside the years 1825 to 2115")
    return np.asarray(times.dt.tz_convert("UTC").dt.as_unit("ns").astype("int64"), dtype=np.int64)


def _from_counts(texts: pd.Series, form: TimeFormat, column: str, where: Where, decimal: str) -> NDArray[np.int64]:
    """Epochs and elapsed times; whole numbers exactly, others to the nanosecond that a float64 can tell."""
    factor = UNIT_NS[form.unit or "s"]
    plain = as_text(texts)
    for row in np.flatnonzero(plain.str.lower().isin(["", "nan", "none", "<na>"]))[:1]:
        raise DataError(f"{where(int(row))}, column '{column}': found '{texts.iloc[row]}', no time")
    approximate = to_numbers(plain, CellFormat(missing=(), decimal=decimal), False, column, where) * factor
    for row in np.flatnonzero(~(np.abs(approximate) < LONGEST))[: form.format == "elapsed"]:
        raise DataError(f"{where(int(row))}, column '{column}': found '{plain.iloc[row]}', more than 146 years")
    outside = np.flatnonzero(~(np.abs(approximate) < LONGEST))
    if form.format == "epoch" and not len(outside):
        outside = np.flatnonzero((approximate < PLAUSIBLE[0]) | (approximate > PLAUSIBLE[1]))
    for row in outside[:1]:
        raise DataError(
            f"{where(int(row))}, column '{column}': found '{plain.iloc[row]}', as an epoch in {form.unit} outside the "
            f"years 1990 to 2100; {_likely_unit(float(approximate[row]) / factor)}"
        )
    result = np.rint(approximate).astype(np.int64)
    is_whole = plain.str.fullmatch(r"[-+]?\d+").to_numpy(dtype=bool)
    result[is_whole] = plain[is_whole].astype("int64").to_numpy() * factor
    return result


def _likely_unit(value: float) -> str:
    for unit, factor in UNIT_NS.items():
        if PLAUSIBLE[0] <= value * factor <= PLAUSIBLE[1]:
            return f"set data.timestamp.unit: {unit} ({pd.Timestamp(round(value * factor)):%Y-%m-%d})"
    return "if it counts from another start set data.timestamp.format: elapsed"
