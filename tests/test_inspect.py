"""What inspect guesses: of tables written in every way, the configuration reads back what was written."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exports
from exports import written
from netanomaly.errors import DataError
from netanomaly.inspect.guesses import Survey
from netanomaly.inspect.kinds import guess_kind
from netanomaly.inspect.survey import survey
from netanomaly.inspect.text import survey_text
from netanomaly.inspect.units import guess_unit
from reading import config_for, read_with

ROWS = 24
TIMES: dict[str, Callable[[pd.Series], pd.Series]] = {
    "with Z": lambda t: t.dt.strftime("%Y-%m-%dT%H:%M:%SZ"),
    "without offset": lambda t: t.dt.strftime("%Y-%m-%d %H:%M:%S.000000001").str.slice(0, 19),
    "with offset": lambda t: t.dt.strftime("%Y-%m-%dT%H:%M:%S+00:00"),
    "epoch s": lambda t: (t.astype("int64") // 10**9).astype(str),
    "epoch ms": lambda t: (t.astype("int64") // 10**6).astype(str),
    "epoch ns": lambda t: t.astype("int64").astype(str),
    "day first": lambda t: t.dt.strftime("%d/%m/%Y %H:%M:%S"),
    "month first": lambda t: t.dt.strftime("%m/%d/%y %I:%M:%S %p"),
    "dots": lambda t: t.dt.strftime("%Y.%m.%d_%H.%M.%S"),
    "month by name": lambda t: t.dt.strftime("%d-%b-%Y %H:%M:%S"),
    "compact date": lambda t: t.dt.strftime("%Y%m%d %H:%M:%S"),
}


@st.composite
def ways(draw: st.DrawFn) -> dict[str, str]:
    """A way to write a table."""
    separator = draw(st.sampled_from([",", ";", "\t", "|"]))
    return {
        "separator": separator,
        "decimal": draw(st.sampled_from([".", ","])) if separator != "," else ".",
        "missing": draw(st.sampled_from(["", "-", "N/A", "null", "timed out"])),
        "times": draw(st.sampled_from(list(TIMES))),
        "line end": draw(st.sampled_from(["\n", "\r\n"])),
        "encoding": draw(st.sampled_from(["utf-8", "utf-8-sig", "cp1252", "utf-16"])),
        "suffix": draw(st.sampled_from([".csv", ".csv.gz"])),
    }


@given(ways())
@settings(max_examples=30, deadline=None)
def test_what_was_written_is_read_however_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, way: dict[str, str]
) -> None:
    directory = tmp_path_factory.mktemp("way")
    times = pd.Series(pd.date_range("2026-02-20T10:00:00", periods=ROWS, freq="7h", unit="ns"))
    rng = np.random.default_rng(0)
    rtt, drops = rng.normal(40, 5, (2, ROWS)).round(3), np.arange(2 * ROWS).reshape(2, ROWS) * 1000
    rtt[:, 5] = np.nan
    lines = [way["separator"].join(("Zeit/time", "link", "RTT (ms)", "ifInOctets"))]
    for series, name in enumerate(("Köln", "Nîmes")):
        for row, time in enumerate(TIMES[way["times"]](times)):
            value = rtt[series, row]
            cell = way["missing"] if np.isnan(value) else f"{value:.3f}".replace(".", way["decimal"])
            lines.append(way["separator"].join((time, name, cell, str(drops[series, row]))))
    content = way["line end"].join((*lines, "")).encode(way["encoding"])
    path = directory / f"links{way['suffix']}"
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)

    config = config_for(directory, path)
    table = read_with(config)
    assert list(table.series) == ["Köln"] * ROWS + ["Nîmes"] * ROWS
    assert list(table.times) == list(times.astype("datetime64[ns]").astype("int64")) * 2
    np.testing.assert_allclose(table.values[:, 0], rtt.ravel() / 1000)
    np.testing.assert_allclose(table.values[:, 1], drops.ravel() * 8)
    assert [(m.name, m.unit, m.kind) for m in config.data.metrics] == [
        ("rtt_ms", "ms", "gauge"),
        ("ifInOctets", "byte", "counter"),
    ]
    assert config.data.interval == "7h"


def look(directory: Path, text: str, name: str = "links.csv") -> Survey:
    return survey([written(directory, text, name)])


def table(rows: int, **columns: Callable[[int], object]) -> str:
    """A CSV with a row per second."""
    lines = [",".join(("timestamp", *columns))]
    for row in range(rows):
        time = pd.Timestamp("2026-03-01T00:00:00Z") + pd.Timedelta(row, "s")
        lines.append(",".join((time.strftime("%Y-%m-%dT%H:%M:%SZ"), *(str(cell(row)) for cell in columns.values()))))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("header", "values", "unit"),
    [
        ("rtt_ms", [1.0], "ms"),
        ("Ping (ms)", [1.0], "ms"),
        ("Download (Mbps)", [1.0], "Mbps"),
        ("rate [MB/s]", [1.0], "MB/s"),
        ("rate [Mb/s]", [1.0], "Mbit/s"),
        ("Loss%", [1.0], "%"),
        ("CPU (%)", [1.0], "%"),
        ("packet_drop_percentage", [1.0], "%"),
        ("bits_per_second", [1.0], "bit/s"),
        ("packets_rx_per_s", [1.0], "packet/s"),
        ("new_flows_per_s", [1.0], "1/s"),
        ("ifHCInOctets", [1.0], "byte"),
        ("throughput_rx_bps", [1.0], "bit/s"),
        ("packets_dropped_ms", [1.0], "ms"),
        ("delay_µs", [1.0], "us"),
        ("RSRP", [-90.0], "dBm"),
        ("SNR", [12.0], "dB"),
        ("Ping", [35.0], "ms"),
        ("Ping", [0.012], "1"),  # seconds, or a very short link: not to be told
        ("Upload", [5e6], "bit/s"),
        ("Upload", [5.0], "1"),
        ("loss", [0.0, 1.0], "ratio"),
        ("loss", [0.0, 40.0], "%"),
        ("flows", [3.0], "1"),
        ("connections", [3.0], "1"),
    ],
)
def test_units(header: str, values: list[float], unit: str) -> None:
    found, reason = guess_unit(header, np.array(values))
    assert found == unit and reason


def test_percent_signs_settle_the_unit() -> None:
    assert guess_unit("rtt_ms", np.array([1.0, 2.0]), 2) == ("%", "2 cells end in %")


@pytest.mark.parametrize(
    ("header", "unit", "values", "kind", "resets"),
    [
        ("octets", "byte", np.arange(50.0) ** 2, "counter", 0),
        ("octets", "byte", np.r_[np.arange(60.0), np.arange(60.0)] * 9, "counter", 1),
        ("x", "1", np.arange(50.0) ** 2, "counter", 0),
        ("x", "1", np.sin(np.arange(50.0)), "gauge", 0),
        ("x", "1", np.r_[np.zeros(49), 1.0], "gauge", 0),
        ("errors_total", "1", np.repeat([0.0, 1.0, 2.0], 30), "counter", 0),
        ("rtt_ms", "ms", np.arange(50.0), "gauge", 0),
        ("x", "1", np.arange(10.0), "gauge", 0),
        ("queue_bytes", "byte", np.tile([1.0, 2.0, 3.0], 20), "gauge", 0),
        ("x", "1", np.r_[np.arange(60.0), 50.0, np.arange(61.0, 99.0)], "gauge", 0),
    ],
)
def test_kinds(header: str, unit: str, values: np.ndarray, kind: str, resets: int) -> None:
    found = guess_kind(header, unit, values, [np.arange(len(values))])
    assert (found.kind, found.resets) == (kind, resets) and found.reason


def test_a_wrap_at_32_bits_is_called_so() -> None:
    values = (np.arange(3000.0) * 4e6) % 2**32
    found = guess_kind("octets", "byte", values, [np.arange(len(values))])
    assert found.kind == "counter" and found.resets == 2 and "32-bit counter that wraps" in found.reason


def test_a_counter_is_told_in_each_series_by_itself(tmp_path: Path) -> None:
    text = table(80, link=lambda row: "ab"[row % 2], octets=lambda row: row + 10**6 * (row % 2))
    found = look(tmp_path, text)
    assert found.metrics[0].kind == "counter" and found.metrics[0].resets == 0
    assert found.series is not None and found.series.rows == {"a": 40, "b": 40}


@pytest.mark.parametrize(("day", "pattern"), [("{0}/02", "%d/%m/%Y"), ("02/{0}", "%m/%d/%Y")])
def test_day_and_month_are_told_apart_by_the_order_of_the_rows(tmp_path: Path, day: str, pattern: str) -> None:
    """Twelve days of February may be the second of twelve months, but for the first of March behind them."""
    days = [day.format(f"{number:02d}") for number in range(1, 13)] + [day.format("01").replace("02", "03")]
    found = look(tmp_path, "\n".join(["time,rtt_ms", *(f"{text}/2026 00:00:00,1" for text in days)]))
    assert found.time is not None and found.time.format == f"{pattern} %H:%M:%S"
    assert "the rows go up then" in found.time.reason


def test_where_nothing_tells_day_from_month_it_is_called_a_guess(tmp_path: Path) -> None:
    found = look(tmp_path, "time,rtt_ms\n01/02/2026 00:00,1\n01/02/2026 00:10,2\n")
    assert found.time is not None and "nothing tells it from another order" in found.time.reason


def test_date_and_time_in_two_columns(tmp_path: Path) -> None:
    lines = [f"02/{20 + row // 24}/21,{row % 24:02d}:05,{12 + row}" for row in range(50)]
    config = config_for(tmp_path, written(tmp_path, "\n".join(["Date,Time,Ping (ms)", *lines])))
    assert config.data.timestamp.column == ("Date", "Time") and config.data.timestamp.format == "%m/%d/%y %H:%M"
    assert read_with(config).times[0] == pd.Timestamp("2021-02-20T00:05Z").value


def test_elapsed_seconds(tmp_path: Path) -> None:
    lines = [f"{row * 0.5},{row % 7}" for row in range(30)]
    config = config_for(tmp_path, written(tmp_path, "\n".join(["time_s,queue", *lines])))
    assert (config.data.timestamp.format, config.data.timestamp.unit) == ("elapsed", "s")
    assert config.data.interval == "500ms" and len(read_with(config)) == 30


def test_steps_between_rows_are_no_times(tmp_path: Path) -> None:
    """`Time_Delta` of 10, 1056, 10 ... goes up and down."""
    lines = [f"{1056 if row % 9 == 4 else 10},{row % 7}" for row in range(60)]
    found = look(tmp_path, "\n".join(["Time_Delta,queue", *lines, "28,1"]))
    assert found.time is None and "no column holds times" in found.obstacles[0]


def test_elapsed_times_begin_anew_in_each_series(tmp_path: Path) -> None:
    lines = [f"{name},{row},{row % 7}" for name in "ab" for row in range(30)]
    table = read_with(config_for(tmp_path, written(tmp_path, "\n".join(["link,elapsed,queue", *lines]))))
    assert list(table.times) == [row * 10**9 for row in range(30)] * 2


def test_several_offsets_in_one_file(tmp_path: Path) -> None:
    text = "time,rtt_ms\n2026-03-29T01:59:00+01:00,1\n2026-03-29T03:00:00+02:00,2\n2026-03-29T03:01:00+02:00,3\n"
    config = config_for(tmp_path, written(tmp_path, text))
    assert config.data.timestamp.mixed_offsets == "utc"
    assert list(np.diff(read_with(config).times)) == [60 * 10**9] * 2


def test_a_row_that_repeats_a_time_asks_for_a_policy(tmp_path: Path) -> None:
    lines = [f"{1512144010 + 10 * (row // 3)}.0,{row}.5" for row in range(60)]
    path = written(tmp_path, "\n".join(["epoch,values", *lines]))
    config = config_for(tmp_path, path)
    assert (config.data.duplicates, config.data.interval) == ("mean", "10s")
    found = survey([path])
    assert found.rhythm is not None and (found.rhythm.shared, found.rhythm.repeated) == (40, 40)
    assert "40 rows share a step of 10s" in survey_text(found)


def test_irregular_steps_and_gaps_are_told(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    at = np.cumsum(rng.uniform(5, 30, 100)) + np.r_[np.zeros(50), np.full(50, 9000)]
    lines = [f"2026-01-01 {pd.Timestamp(0) + pd.Timedelta(t, 's'):%H:%M:%S.%f},{t % 7}" for t in at]
    found = look(tmp_path, "\n".join(["timestamp,jitter_ms", *lines]))
    assert found.rhythm is not None and found.rhythm.gaps == 1 and found.rhythm.regular < 0.5
    text = survey_text(found)
    assert "irregular steps" in text and "1 longer than 10 rows" in text and "UTC is assumed" in text


@pytest.mark.parametrize("filler", ["-1", "2147483647", "-9999"])
def test_a_number_that_stands_for_none_is_a_missing_marker(tmp_path: Path, filler: str) -> None:
    text = table(40, rtt_ms=lambda row: filler if row % 9 == 5 else 20 + row % 5, flows=lambda row: row % 3)
    config = config_for(tmp_path, written(tmp_path, text))
    assert filler in config.data.missing
    assert int(np.isnan(read_with(config).values[:, 0]).sum()) == 4


def test_a_number_that_is_a_value_elsewhere_is_no_marker(tmp_path: Path) -> None:
    text = table(40, rtt_ms=lambda row: -1 if row == 5 else 20 + row % 5, snr=lambda row: row % 5 - 2)
    found = look(tmp_path, text)
    assert not found.missing
    assert any("-1" in finding and "'snr'" in finding for finding in found.findings)


def test_text_among_numbers_is_told_with_its_line_and_left_out(tmp_path: Path) -> None:
    text = table(40, rtt_ms=lambda row: "13/0" if row == 7 else row % 5, loss=lambda row: row % 3)
    found = look(tmp_path, text)
    assert [metric.column for metric in found.metrics] == ["loss"]
    assert found.left_out[0].reason.startswith("line 9 holds '13/0' among numbers (1 such cells)")
    assert len(read_with(config_for(tmp_path, tmp_path / "links.csv"))) == 40


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        (lambda row: "13/0", "text, like '13/0' (line 2)"),
        (lambda row: "01.01.2001", "a date, which a spreadsheet may have made of a number"),
        (lambda row: f"{row} ms", "a unit in the cell"),
        (lambda row: "True", "export 1 and 0"),
        (lambda row: 7, "always 7"),
        (lambda row: "-", "empty"),
        (lambda row: row, "counts the rows"),
    ],
)
def test_columns_that_are_no_metrics(tmp_path: Path, cell: Callable[[int], object], reason: str) -> None:
    found = look(tmp_path, table(30, nr=cell, loss=lambda row: row % 3))
    assert [metric.column for metric in found.metrics] == ["loss"]
    assert reason in found.left_out[0].reason


def test_values_that_cannot_be_are_told(tmp_path: Path) -> None:
    text = table(30, rtt_ms=lambda row: row % 7 - 2, loss_ratio=lambda row: row % 3, load_percent=lambda row: row * 9)
    findings = " ".join(look(tmp_path, text).findings)
    assert "values of 'rtt_ms' are below zero, the first -2 (line 2)" in findings
    assert "values of 'loss_ratio' are above 1" in findings and "above 100 %" in findings


def test_bad_lines_are_counted_and_skipped(tmp_path: Path) -> None:
    lines = table(30, rtt_ms=lambda row: row % 5).splitlines()
    lines[12:12] = ["Cannot retrieve the configuration"] * 3
    path = written(tmp_path, "\n".join(lines))
    found = survey([path])
    assert found.bad_lines.count == 3 and "line 13 has 1 fields, not 2" in found.bad_lines.first
    config = config_for(tmp_path, path)
    assert config.data.bad_lines == "skip" and len(read_with(config)) == 30


@pytest.mark.parametrize(
    ("text", "obstacle"),
    [
        ("a,b\n1,2,3\n1,2,3\n1,2\n", "2 of 3 lines have another number of fields than the header"),
        ("a,b\n1,2\n3,4\n", "no column holds times"),
        (exports.TELEGRAF_WITHOUT_HEADER, "csv_header = true"),
        ("time,rtt,rtt\n1,2,3\n", "the column 'rtt' stands twice"),
        ("time,rtt\n", "only a header and no rows"),
        ("rtt\n1\n", "one column only"),
        ("time,name\n2026-03-01T00:00:00Z,x\n", "no column of numbers"),
        ("time,rtt_ms\n2026-03-01T00:00:00Z,1\n" + "2026-03-01T00:00:01Z,1\n" * 30 + "soon,1\n", "'soon'"),
        ("time,rtt_ms\n2026-03-01T00:00:00Z,1\n", "no series has rows of two different times"),
    ],
)
def test_what_cannot_be_used_is_told_with_what_to_do(tmp_path: Path, text: str, obstacle: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(AssertionError, match=r"(?s).*not written"):
        config_for(tmp_path, path)
    assert not (tmp_path / "start.yaml").exists()
    if "two different times" not in obstacle:
        assert obstacle in " ".join(survey([path]).obstacles)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\x1f\x8b\x08broken"])
def test_files_that_are_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / ("x.csv.gz" if content[:1] == b"\x1f" else "x.csv")
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"x\.csv"):
        survey([path])


def test_a_sample_is_called_one(tmp_path: Path) -> None:
    path = written(tmp_path, table(300, rtt_ms=lambda row: row % 5))
    assert survey([path]).is_whole
    found = survey([path], rows=120)
    assert (found.rows, found.is_whole) == (120, False) and "120 read, not all" in survey_text(found)
    assert survey([path], rows=300).is_whole


def test_what_stands_behind_the_sample_is_met_by_the_reader(tmp_path: Path) -> None:
    path = written(tmp_path, table(300, rtt_ms=lambda row: "soon" if row == 250 else row % 5, loss=lambda row: row % 3))
    with pytest.raises(AssertionError, match=r"line 252, column 'rtt_ms': found 'soon'.* --rows 0 takes all"):
        config_for(tmp_path, path, rows=150)
    assert [metric.name for metric in config_for(tmp_path, path, rows=0).data.metrics] == ["loss"]


def test_a_column_without_a_name_may_hold_the_time(tmp_path: Path) -> None:
    path = written(tmp_path, table(30, rtt_ms=lambda row: row % 5).replace("timestamp", "", 1))
    assert "(no name): rfc3339" in survey_text(survey([path]))
    assert len(read_with(config_for(tmp_path, path))) == 30


def test_several_files_are_series_by_their_names(tmp_path: Path) -> None:
    one = written(tmp_path, table(30, rtt_ms=lambda row: row % 5, extra=lambda row: row % 3), "a.csv")
    two = written(tmp_path, table(20, rtt_ms=lambda row: row % 5), "b.csv")
    found = survey([two, one])
    assert found.series is not None and found.series.rows == {"b": 20, "a": 30}
    assert [metric.name for metric in found.metrics] == ["rtt_ms"]
    assert "has no column 'extra'" in survey([one, two]).obstacles[0]


def test_columns_that_tell_rows_of_one_time_apart_name_series(tmp_path: Path) -> None:
    found = look(tmp_path, exports.TELEGRAF)
    assert found.series is not None and found.series.columns == ("host", "url")
    assert found.rhythm is not None and found.rhythm.shared == 0


def test_parquet(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "timestamp": pd.date_range("2026-03-01", periods=50, freq="s", tz="UTC"),
            "link": ["a", "b"] * 25,
            "rtt_ms": np.where(np.arange(50) == 3, np.nan, np.arange(50) % 7),
        }
    )
    frame.to_parquet(tmp_path / "links.parquet", row_group_size=7)
    assert (found := survey([tmp_path / "links.parquet"], rows=0)).is_whole and found.rows == 50
    config = config_for(tmp_path, tmp_path / "links.parquet")
    assert config.data.series == ("link",) and config.data.interval == "2s"
    assert len(read_with(config)) == 50
    frame.iloc[:0].to_parquet(tmp_path / "none.parquet")
    assert "no rows" in survey([tmp_path / "none.parquet"]).obstacles[0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("influx", exports.INFLUX),
        ("iperf3", exports.IPERF3),
        ("mtr", exports.MTR),
        ("fping", exports.FPING),
        ("ping", exports.PING),
        ("smokeping", exports.SMOKEPING),
        ("prometheus", exports.PROMETHEUS),
        ("labels", exports.GRAFANA_LABELS),
        ("excel", exports.GRAFANA_EXCEL),
        ("plain", exports.GRAFANA_PLAIN),
    ],
)
def test_a_converted_export_is_read(tmp_path: Path, name: str, text: str) -> None:
    config = config_for(tmp_path, written(tmp_path, text, f"{name}.txt"), convert=tmp_path / "wide.csv")
    assert config.data.files == (str(tmp_path / "wide.csv"),) and not config.data.missing[3:]
    assert len(read_with(config)) >= 2
