from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netanomaly.data.timestamps import TimeFormat, parse_times
from netanomaly.errors import ConfigError, DataError

PROPERTY = settings(max_examples=80, deadline=None)
PATTERN = "%d/%m/%Y %H:%M"


def parse(column: Any, **form: Any) -> list[int]:
    texts = pd.Series(column if not isinstance(column, str) else [column])
    return parse_times(texts, TimeFormat(**form), "when", lambda row: f"f.csv: line {row + 2}").tolist()


def refuse(column: Any, **form: Any) -> str:
    with pytest.raises(DataError) as caught:
        parse(column, **form)
    return str(caught.value)


# RFC 3339


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-11-29T16:59:51Z", "2026-11-29T16:59:51Z"),
        ("2026-11-29T16:59:51z", "2026-11-29T16:59:51Z"),
        ("2026-11-29t16:59:51Z", "2026-11-29T16:59:51Z"),
        ("2026-11-29 16:59:51Z", "2026-11-29T16:59:51Z"),
        (" 2026-11-29T16:59:51Z ", "2026-11-29T16:59:51Z"),
        ("2026-11-29T16:59Z", "2026-11-29T16:59:00Z"),
        ("2026-11-29T16:59:51.5Z", "2026-11-29T16:59:51.500Z"),
        ("2026-11-29T16:59:51.123456789Z", "2026-11-29T16:59:51.123456789Z"),
        ("2026-11-29T16:59:51+05:30", "2026-11-29T11:29:51Z"),
        ("2026-11-29T16:59:51+0530", "2026-11-29T11:29:51Z"),
        ("2026-11-29T16:59:51-00:00", "2026-11-29T16:59:51Z"),
        ("2026-11-29T00:30:00+01:00", "2026-11-28T23:30:00Z"),
        ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z"),
        ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59Z"),
    ],
)
def test_rfc_3339_is_read_exactly(text: str, utc: str) -> None:
    assert parse(text) == [pd.Timestamp(utc).as_unit("ns").value]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2026-11-29",
        "29.11.2026 16:59",
        "2026-02-30T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-11-29T24:00:00Z",
        "2026-11-29T23:59:60Z",
        "2026-11-29T16:59:51+99:99",
        "2026-11-29T16:59:51,5Z",
        "2026-11-29T16:59:51.1234567890Z",
        "2026-11-29T16:59:51 UTC",
        "2026-11-29T16:59:51Z2026-11-29T16:59:51Z",
        "NaT",
    ],
)
def test_what_is_no_rfc_3339_time_is_quoted_with_its_place(text: str) -> None:
    message = refuse(["2026-11-29T16:59:51Z", text])
    assert message.startswith(f"f.csv: line 3, column 'when': found '{text[:40]}'")


def test_a_count_where_rfc_3339_is_declared_is_told_to_be_an_epoch() -> None:
    assert "set data.timestamp.format: epoch" in refuse("1700000000")
    assert "set data.timestamp.format: epoch" in refuse([1_700_000_000])


def test_another_way_to_write_times_is_told_to_need_a_pattern() -> None:
    assert "set data.timestamp.format: a pattern like" in refuse("29.11.2026 16:59")


def test_fractions_of_different_length_go_together() -> None:
    first, second = parse(["2026-11-29T16:59:51Z", "2026-11-29T16:59:51.000000001Z"])
    assert second - first == 1


def test_repeated_times_in_any_order_keep_their_places() -> None:
    a, b = "2026-11-29T16:59:51Z", "2026-11-29T16:59:52Z"
    assert np.diff(parse([b, a, b, b, a])).tolist() == [-(10**9), 10**9, 0, -(10**9)]


def test_the_first_of_several_bad_times_is_named() -> None:
    good = "2026-11-29T16:59:51Z"
    assert refuse([good, good, "x", "y", "x"]).startswith("f.csv: line 4, column 'when': found 'x'")


@pytest.mark.parametrize(
    "text", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "1824-06-01T00:00:00Z", "2116-01-01T00:00:00Z"]
)
def test_a_year_that_nanoseconds_cannot_hold_is_refused(text: str) -> None:
    assert "outside the years 1825 to 2115" in refuse(text)


@PROPERTY
@given(
    st.integers(pd.Timestamp("1826-01-01").value, pd.Timestamp("2115-01-01").value),
    st.sampled_from(["Z", "+00:00", "+05:30", "-0800"]),
)
def test_every_nanosecond_survives(ns: int, offset: str) -> None:
    zone = "UTC" if offset == "Z" else f"{offset[:3]}:{offset[-2:]}"
    local = pd.Timestamp(ns, tz="UTC").tz_convert(zone).tz_localize(None)
    text = f"{local:%Y-%m-%dT%H:%M:%S}.{local.value % 10**9:09d}{offset}"
    assert parse(text) == [ns]


# Offsets and zones


WRITTEN = [
    "2026-11-29T16:59:51Z",
    "2026-11-29T16:59:5xZ",
    "2026-11-29 16:59:51Z",
    "2026-11-29T16:59Z",
    "2026-11-29",
    "x",
]


@PROPERTY
@given(
    st.lists(st.sampled_from([*WRITTEN, "2026-11-29T16:59:52Z", "2027-01-01T00:00:00Z", "\u0662026-11-29T16:59:52Z"]))
)
def test_times_together_are_times_one_by_one(texts: list[str]) -> None:
    try:
        expected = [parse(text)[0] for text in texts]
    except DataError:
        assert refuse(texts)
    else:
        assert parse(texts) == expected


def test_offsets_that_differ_in_a_digit_are_mixed() -> None:
    assert "mixes" in refuse(["2026-11-29T16:59:51+01:00", "2026-11-29T16:59:51+02:00"])


def test_mixed_offsets_are_an_error_that_quotes_both() -> None:
    message = refuse(["2026-11-29T16:59:51+01:00", "2026-11-29T16:59:52+02:00"])
    assert message.startswith("f.csv: line 3")
    assert "found '2026-11-29T16:59:52+02:00' after '2026-11-29T16:59:51+01:00'" in message
    assert "mixed_offsets: utc" in message


def test_mixed_offsets_are_the_right_moments_when_allowed() -> None:
    first, second = parse(["2026-10-25T02:59:59+02:00", "2026-10-25T02:00:00+01:00"], mixed_offsets=True)
    assert second - first == 10**9


def test_several_ways_to_write_utc_are_one_offset() -> None:
    texts = [f"2026-11-29T16:59:51{offset}" for offset in ("Z", "+00:00", "+0000")]
    assert len(set(parse(texts))) == 1


@pytest.mark.parametrize("mixed", [False, True])
def test_times_with_and_without_an_offset_never_go_together(mixed: bool) -> None:
    message = refuse(["2026-11-29T16:59:51", "2026-11-29T16:59:51Z"], timezone="UTC", mixed_offsets=mixed)
    assert "some times have an offset and some have none" in message


def test_a_time_without_an_offset_needs_a_declared_zone() -> None:
    message = refuse("2026-11-29T16:59:51")
    assert message.startswith("f.csv: line 2, column 'when'")
    assert "without a UTC offset; set data.timestamp.timezone" in message


@pytest.mark.parametrize(
    ("zone", "text", "utc"),
    [
        ("UTC", "2026-11-29T16:59:51", "2026-11-29T16:59:51Z"),
        ("Europe/Berlin", "2026-11-29T16:59:51", "2026-11-29T15:59:51Z"),
        ("Europe/Berlin", "2026-07-29T16:59:51", "2026-07-29T14:59:51Z"),
        ("Asia/Kolkata", "2026-07-29T16:59:51", "2026-07-29T11:29:51Z"),
    ],
)
def test_a_declared_zone_gives_the_moment(zone: str, text: str, utc: str) -> None:
    assert parse(text, timezone=zone) == [pd.Timestamp(utc).as_unit("ns").value]


def test_a_declared_zone_does_not_move_times_with_an_offset() -> None:
    assert parse("2026-11-29T16:59:51Z", timezone="Asia/Kolkata") == parse("2026-11-29T16:59:51Z")


@pytest.mark.parametrize("text", ["2026-10-25T02:30:00", "2026-03-29T02:30:00"], ids=["twice", "never"])
def test_an_hour_that_happens_twice_or_never_is_refused(text: str) -> None:
    message = refuse(["2026-06-01T00:00:00", text], timezone="Europe/Berlin")
    assert message.startswith("f.csv: line 3, column 'when': ")
    assert "happens twice or never in Europe/Berlin" in message


def test_an_unknown_zone_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="unknown time zone 'Europe/Bernil'"):
        parse("2026-11-29T16:59:51", timezone="Europe/Bernil")


# Counts


@pytest.mark.parametrize(
    ("unit", "count", "ns"),
    [
        ("s", "1700000000", 1_700_000_000_000_000_000),
        ("s", "1700000000.5", 1_700_000_000_500_000_000),
        ("s", "1.7e9", 1_700_000_000_000_000_000),
        ("s", " +1700000000 ", 1_700_000_000_000_000_000),
        ("ms", "1700000000123", 1_700_000_000_123_000_000),
        ("us", "1700000000123457", 1_700_000_000_123_457_000),
        ("ns", "1700000000123456789", 1_700_000_000_123_456_789),
    ],
)
def test_an_epoch_is_read_in_its_unit(unit: str, count: str, ns: int) -> None:
    assert parse(count, format="epoch", unit=unit) == [ns]


@PROPERTY
@given(st.integers(pd.Timestamp("1991-01-01").value, pd.Timestamp("2099-01-01").value), st.booleans())
def test_a_whole_epoch_is_exact_to_the_nanosecond(ns: int, as_text: bool) -> None:
    assert parse([str(ns) if as_text else ns], format="epoch", unit="ns") == [ns]


@PROPERTY
@given(st.integers(662_688_000_000_000, 4_070_908_800_000_000))
def test_a_fraction_of_a_second_is_right_to_the_microsecond(us: int) -> None:
    (found,) = parse(f"{us // 10**6}.{us % 10**6:06d}", format="epoch", unit="s")
    assert abs(found - us * 1000) < 500


@pytest.mark.parametrize(
    ("unit", "count", "likely"),
    [
        ("s", "1700000000000", "set data.timestamp.unit: ms (2023-11-14)"),
        ("s", "1700000000000000", "set data.timestamp.unit: us (2023-11-14)"),
        ("ms", "1700000000", "set data.timestamp.unit: s (2023-11-14)"),
        ("ns", "1700000000000", "set data.timestamp.unit: ms (2023-11-14)"),
        ("us", "1700000000000000000", "set data.timestamp.unit: ns (2023-11-14)"),
        ("s", "12", "set data.timestamp.format: elapsed"),
        ("s", "-5", "set data.timestamp.format: elapsed"),
        ("s", "1e30", "set data.timestamp.format: elapsed"),
        ("ns", "99999999999999999999999", "set data.timestamp.format: elapsed"),
    ],
)
def test_an_epoch_in_another_unit_is_told_the_likely_one(unit: str, count: str, likely: str) -> None:
    now = {"s": "1700000000", "ms": "1700000000000", "us": "1700000000000000", "ns": "1700000000000000000"}[unit]
    message = refuse([now, count], format="epoch", unit=unit)
    assert message.startswith(f"f.csv: line 3, column 'when': found '{count}'")
    assert likely in message


@pytest.mark.parametrize("text", ["", " ", "nan", "None"])
def test_a_missing_count_is_refused_with_its_place(text: str) -> None:
    message = refuse(["1700000000", text], format="epoch", unit="s")
    assert message == f"f.csv: line 3, column 'when': found '{text}', no time"


@pytest.mark.parametrize("text", ["abc", "0x10", "inf", "1e400", "2026-11-29T16:59:51Z"])
def test_what_is_no_count_is_refused_with_its_place(text: str) -> None:
    message = refuse(["1700000000", text], format="epoch", unit="s")
    assert message.startswith(f"f.csv: line 3, column 'when': found '{text}'")


def test_an_epoch_that_is_missing_in_a_column_of_numbers_is_refused() -> None:
    assert refuse([1_700_000_000, None], format="epoch", unit="s").startswith("f.csv: line 3, column 'when'")


def test_elapsed_counts_from_any_start() -> None:
    assert parse(["0", "0.5", "-1", "10"], format="elapsed", unit="s") == [0, 5 * 10**8, -(10**9), 10**10]
    assert parse([0, 5], format="elapsed", unit="ms") == [0, 5 * 10**6]


def test_elapsed_beyond_the_clock_is_refused_without_talk_of_epochs() -> None:
    message = refuse("1e30", format="elapsed", unit="s")
    assert "epoch" not in message
    assert "format: elapsed" not in message


# Patterns


@pytest.mark.parametrize(
    ("pattern", "text", "utc"),
    [
        (PATTERN, "29/11/2026 16:59", "2026-11-29T16:59Z"),
        ("%m/%d/%y %I:%M %p", "11/29/26 04:59 PM", "2026-11-29T16:59Z"),
        ("%d/%m/%Y %H:%M:%S.%f", "29/11/2026 16:59:01.123456", "2026-11-29T16:59:01.123456Z"),
        ("%Y%m%d%H%M", "202611291659", "2026-11-29T16:59Z"),
        ("%d/%m/%Y %H:%M %z", "29/11/2026 16:59 +0100", "2026-11-29T15:59Z"),
    ],
)
def test_a_pattern_is_followed(pattern: str, text: str, utc: str) -> None:
    zone = None if "%z" in pattern else "UTC"
    assert parse(text, format=pattern, timezone=zone) == [pd.Timestamp(utc).as_unit("ns").value]


def test_day_and_month_are_not_swapped_to_make_a_pattern_fit() -> None:
    message = refuse(["29/11/2026 16:59", "11/29/2026 16:59"], format=PATTERN, timezone="UTC")
    assert message.startswith("f.csv: line 3, column 'when': found '11/29/2026 16:59'")
    assert PATTERN in message


def test_a_pattern_without_an_offset_needs_a_declared_zone() -> None:
    assert "set data.timestamp.timezone" in refuse("29/11/2026 16:59", format=PATTERN)


def test_a_bad_pattern_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match=r"^data\.timestamp\.format: "):
        parse("29/11/2026", format="%d/%m/%Q", timezone="UTC")


def test_a_pattern_with_a_zone_name_gives_the_moment() -> None:
    found = parse("29/11/2026 16:59 UTC", format=f"{PATTERN} %Z", timezone="UTC")
    assert found == [pd.Timestamp("2026-11-29T16:59Z").as_unit("ns").value]


# Columns of pandas


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_datetime_column_with_a_zone_needs_nothing_declared(unit: str) -> None:
    times = pd.Series(pd.to_datetime(["2026-11-29T16:59:51+01:00"])).dt.as_unit(unit)
    assert parse(times) == [pd.Timestamp("2026-11-29T15:59:51Z").as_unit("ns").value]


def test_a_datetime_column_without_a_zone_needs_one_declared() -> None:
    times = pd.Series(pd.to_datetime(["2026-11-29T16:59:51"]))
    assert "set data.timestamp.timezone" in refuse(times)
    assert parse(times, timezone="Europe/Berlin") == parse("2026-11-29T15:59:51Z")


def test_a_datetime_column_keeps_its_nanoseconds() -> None:
    times = pd.Series(pd.to_datetime([1_700_000_000_123_456_789], utc=True))
    assert parse(times) == [1_700_000_000_123_456_789]


def test_no_time_in_a_datetime_column_is_refused_with_its_place() -> None:
    times = pd.Series(pd.to_datetime(["2026-11-29T16:59:51Z", None]))
    assert refuse(times).startswith("f.csv: line 3, column 'when': no time")


def test_a_column_of_timestamp_objects_is_read() -> None:
    times = pd.Series([pd.Timestamp("2026-11-29T16:59:51Z"), pd.Timestamp("2026-11-29T16:59:51.5Z")], dtype=object)
    assert parse(times) == parse(["2026-11-29T16:59:51Z", "2026-11-29T16:59:51.5Z"])
