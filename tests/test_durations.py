from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netanomaly.durations import check_span, format_duration, parse_duration, span_rows

PROPERTY = settings(max_examples=100, deadline=None)
SIZES = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
}


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1ns", 1),
        ("500ms", 500_000_000),
        ("0.5s", 500_000_000),
        ("0.1s", 100_000_000),
        (" 5 m ", 300_000_000_000),
        ("1.5h", 5_400_000_000_000),
        ("2d", 172_800_000_000_000),
        ("0.4ms", 400_000),
        ("007s", 7_000_000_000),
    ],
)
def test_a_duration_is_read(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == nanoseconds


@PROPERTY
@given(st.integers(1, 50_000), st.sampled_from(list(SIZES)))
def test_a_whole_number_of_any_unit_is_exact(count: int, unit: str) -> None:
    assert parse_duration(f"{count}{unit}") == count * SIZES[unit]


def test_a_whole_number_of_nanoseconds_is_exact_beyond_what_a_float_holds() -> None:
    assert parse_duration("9007199254740993ns") == 9007199254740993


@pytest.mark.parametrize(
    "text", ["", "s", "1", "-1s", "+1s", "1S", "1 min", "1 week", "1e3s", ".5s", "1.s", "1,5s", "1s2m", "1:30", "inf s"]
)
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_duration(text)
    assert str(caught.value).startswith(f"'{text}' is not a duration; write a number and a unit, like 500ms")


@pytest.mark.parametrize("text", ["0s", "0.0m", "0.1ns"])
def test_a_duration_of_nothing_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not longer than zero"):
        parse_duration(text)


def test_a_duration_beyond_all_numbers_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration("9" * 400 + "d")


def test_a_duration_beyond_the_clock_is_a_value_error() -> None:
    with pytest.raises(ValueError, match=r"duration|too long"):
        parse_duration("1000000d")


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (1, "1ns"),
        (999, "999ns"),
        (1000, "1us"),
        (500_000_000, "500ms"),
        (10**9, "1s"),
        (90 * 10**9, "1.5m"),
        (3600 * 10**9, "1h"),
        (5_946_999_040, "5.95s"),
        (333_333_333, "333ms"),
    ],
)
def test_a_duration_is_told_in_its_largest_unit(nanoseconds: int, text: str) -> None:
    assert format_duration(nanoseconds) == text


@PROPERTY
@given(st.integers(1, 10**18))
def test_what_is_told_is_read_back_to_three_digits(nanoseconds: int) -> None:
    assert parse_duration(format_duration(nanoseconds)) == pytest.approx(nanoseconds, rel=0.005)


@pytest.mark.parametrize("span", [1, 64, "32s", "500ms"])
def test_a_good_span_is_itself(span: int | str) -> None:
    assert check_span(span) == span


@pytest.mark.parametrize("span", [0, -1, "64", "x", ""])
def test_a_bad_span_is_a_value_error(span: int | str) -> None:
    with pytest.raises(ValueError, match=r"duration|too short"):
        check_span(span)


@pytest.mark.parametrize(
    ("span", "interval", "rows"),
    [
        (64, "1s", 64),
        ("32s", "1s", 32),
        ("32s", "500ms", 64),
        ("5m", "1s", 300),
        ("0.3s", "0.1s", 3),
        ("1.1s", "1s", 2),
        ("1ms", "1s", 1),
        ("1d", "1m", 1440),
    ],
)
def test_a_span_covers_rows_rounded_up(span: int | str, interval: str, rows: int) -> None:
    assert span_rows(span, parse_duration(interval)) == rows


@PROPERTY
@given(st.integers(1, 10**6), st.integers(1, 10**12))
def test_a_span_of_whole_intervals_is_that_many_rows(count: int, interval: int) -> None:
    assert span_rows(f"{count * interval}ns", interval) == count
