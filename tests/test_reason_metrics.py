"""What a metric did, as a sentence: values, times, shares."""

from __future__ import annotations

import numpy as np
import pytest

from netanomaly.data.schema import Metric
from netanomaly.reason_metrics import WindowRows, carrying, metric_reasons, number, sentence, short_time, unit_beside


def _told(columns: dict[str, list[float]], parts: list[list[float]], first: int, peak: int) -> list[str]:
    """What is said of metrics with these values, from the parts of the last rows; baselines of 4 rows."""
    values = np.array(list(columns.values()), dtype=np.float64).T  # (T, M)
    usual = np.array([[np.nanmedian(column[max(0, t - 3) : t + 1]) for column in values.T] for t in range(len(values))])
    times = np.array([f"2026-03-01T00:00:{second:02d}Z" for second in range(len(values))], dtype=object)
    rows = WindowRows(np.arange(peak - len(parts) + 1, peak + 1), values, usual, times, first, peak)
    found, other = metric_reasons(np.array(parts), rows, [Metric(name, name) for name in columns])
    assert sum(one.share for one in found) + other == pytest.approx(float(bool(found)))
    return [f"{one.share:.2f} {one.sentence}" for one in found]


NAN = np.nan


def test_values_are_those_of_the_rows_that_carry() -> None:
    columns = {"up": [5.0, 5, 5, 5, 20, 21, 22], "flat": [1.0, 1, 1, 1, 1, 1, 1]}
    parts = [[0.0, 0], [1, -1], [6, 0.5], [3, 0.5]]
    assert _told(columns, parts, first=4, peak=6) == ["1.00 up 5 -> 21 (+320 %) from 00:00:04"]
    assert _told(columns, [[-1.0, 0]], first=4, peak=6) == []


def test_an_incident_that_is_older_than_the_window_began_before_it() -> None:
    columns = {"up": [5.0, 5, 5, 20, NAN, 21, 22, 20]}
    assert _told(columns, [[2.0], [3]], first=3, peak=7) == ["1.00 up 5 -> 20 (+300 %) from 00:00:03"]


def test_metrics_that_stop_being_measured_or_begin_to() -> None:
    columns = {"gone": [5.0, 5, 5, 5, NAN, NAN, NAN], "new": [NAN, NAN, NAN, NAN, 3, 4, 4]}
    with pytest.warns(RuntimeWarning, match="All-NaN"):
        told = _told(columns, [[3.0, 1], [3, 1]], first=4, peak=6)
    assert told == ["0.75 gone not measured from 00:00:04", "0.25 new 4 from 00:00:04 (mostly not measured before)"]


def test_the_strongest_metrics_are_named_and_no_more_than_it_takes() -> None:
    columns = {name: [1.0, 1, 2] for name in "abcdefgh"}
    for weights, names in (
        ([1, 50, 2, 42, 3, 1, 0.5, 0.5], "bd"),
        ([1, 1, 1, 1, 1, 1, 1, 1], "abcde"),
        ([-9, -9, -9, 4, 5, -9, -9, -9], "ed"),
    ):
        told = _told(columns, [[float(weight) for weight in weights]], first=2, peak=2)
        assert [sentence.split()[1] for sentence in told] == list(names)


@pytest.mark.parametrize(
    ("before", "value", "text"),
    [
        (41.2, 96.8, "m 41.2 -> 96.8 (+135 %) from 10:41:07"),
        (100, 99.5, "m 100 -> 99.5 (-0.5 %) from 10:41:07"),
        (2, 30, "m 2 -> 30 (15 times) from 10:41:07"),
        (0, 0.05, "m 0 -> 0.05 from 10:41:07"),
        (-20, -25, "m -20 -> -25 (-25 %) from 10:41:07"),
        (5, 5, "m 5 -> 5 (as before) from 10:41:07"),
        (5, None, "m not measured from 10:41:07"),
        (None, 5, "m 5 from 10:41:07 (mostly not measured before)"),
    ],
)
def test_sentences(before: float | None, value: float | None, text: str) -> None:
    assert sentence("m", before, value, "10:41:07") == text


def test_a_counter_is_told_per_second() -> None:
    assert sentence("octets", 1e5, 2e5, "noon", "byte/s") == "octets 100k -> 200k byte/s (+100 %) from noon"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (96.84, "96.8"),
        (0.01234, "0.0123"),
        (1234.0, "1230"),
        (9999.0, "10k"),
        (9.996e14, "1e+15"),
        (12345.0, "12.3k"),
        (999_999.0, "1M"),
        (5_569_356.0, "5.57M"),
        (-2.5e9, "-2.5G"),
        (0.0, "0"),
        (1e-7, "1e-07"),
        (3e20, "3e+20"),
    ],
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_times_go_without_the_date_of_the_peak() -> None:
    peak = "2026-11-29T10:42:00Z"
    assert short_time("2026-11-29T10:41:07.500Z", peak) == "10:41:07.500"
    assert short_time("2026-11-28T10:41:07Z", peak) == "2026-11-28T10:41:07Z"
    assert short_time("2026-11-29 10:41", "2026-11-29 10:42") == "10:41"
    assert short_time("1764412867", "1764412900") == "1764412867"


def test_the_fewest_that_carry_most() -> None:
    assert carrying(np.array([1.0, -5, 8, 1])).tolist() == [2, 0]
    assert carrying(np.array([0.0, 2, -9])).tolist() == [1]


@pytest.mark.parametrize(
    ("name", "unit", "told"),
    [
        ("rtt", "ms", "ms"),
        ("rtt_ms", "ms", ""),
        ("throughput_tx_bps", "bit/s", ""),
        ("throughput_tx", "bit/s", "bit/s"),
        ("packets_rx_per_s", "packet/s", ""),
        ("loss_ratio", "ratio", ""),
        ("loss", "%", "%"),
        ("flows", "1", ""),
        ("octets", "1/s", "1/s"),
    ],
)
def test_the_unit_stands_where_the_name_does_not_tell_it(name: str, unit: str, told: str) -> None:
    assert unit_beside(name, unit) == told
