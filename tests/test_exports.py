"""Exports of known tools become wide tables, by hand-made examples, and then read like any other."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import exports
from exports import written
from netanomaly.errors import DataError
from netanomaly.exports.known import EXPORTS, recognise, to_wide
from netanomaly.exports.labelled_names import split_name
from netanomaly.exports.wide import series_of

CASES = {
    "InfluxDB annotated CSV": (
        exports.INFLUX,
        """timestamp,series,rtt_ms,loss_percent
2026-03-01T00:00:00Z,edge,12.5,
2026-03-01T00:00:10Z,edge,13,
2026-03-01T00:00:00Z,fra-ams,41.5,
2026-03-01T00:00:10Z,fra-ams,42.5,0.5
""",
    ),
    "iperf3 JSON": (
        exports.IPERF3,
        """timestamp,series,bits_per_second,retransmits,rtt_us
1772323201.000,10.0.0.2,910000000.0,0,4200.0
1772323202.000,10.0.0.2,880000000.0,3,4350.0
""",
    ),
    "Prometheus JSON of a range query": (
        exports.PROMETHEUS,
        """timestamp,series,ifHCInOctets
1772323200,eth0,100
1772323215,eth0,250
1772323200,eth1,7
1772323215,eth1,
""",
    ),
    "mtr CSV": (
        exports.MTR,
        """timestamp,series,loss_percent,sent,last_ms,avg_ms,best_ms,worst_ms,stdev_ms
1772323200,10.0.0.9/1,0.00,10,0.41,0.46,0.41,0.57,0.05
1772323260,10.0.0.9/1,10.00,10,0.51,0.56,0.51,0.77,0.15
1772323200,10.0.0.9/2,100.00,10,,,,,
1772323260,10.0.0.9/2,0.00,10,9.10,9.30,8.90,12.00,0.40
""",
    ),
    "log of ping or fping with times": (
        exports.FPING + exports.PING,
        """timestamp,series,rtt_ms
1772323200.00001,10.0.0.1,12.3
1772323200.123456,10.0.0.1,12.3
1772323201.00001,10.0.0.1,
1772323201.123456,10.0.0.1,
1772323202.00001,10.0.0.1,12.9
1772323202.123456,10.0.0.1,14.3
""",
    ),
    "smokeping, or other output of rrdtool fetch": (
        exports.SMOKEPING,
        """timestamp,uptime,lost_pings,median_s,ping1_s
1772323200,,0.0000000000e+00,1.2000000000e-02,1.1000000000e-02
1772323500,,2.0000000000e+00,1.3000000000e-02,1.2000000000e-02
1772323800,,,,
""",
    ),
    "Grafana CSV with a column for each series": (
        exports.GRAFANA_LABELS,
        """timestamp,series,rtt,loss
2026-03-01 00:00:00,fra-ams,41.5,0
2026-03-01 00:00:15,fra-ams,42.5,0.1
2026-03-01 00:00:00,par-mad,12.5,
2026-03-01 00:00:15,par-mad,,
""",
    ),
    "long table, a line for each reading": (
        exports.LONG,
        """timestamp,series,rtt_ms,loss_ratio
2026-03-01T00:00:00Z,fra-ams,41.5,0
2026-03-01T00:00:10Z,fra-ams,42,
2026-03-01T00:00:00Z,par-mad,12,
2026-03-01T00:00:10Z,par-mad,12.1,
""",
    ),
    "Grafana CSV, series joined by time": (
        exports.GRAFANA_PLAIN,
        """timestamp,series,value
2026-03-01 00:00:00,fra-ams,41.5
2026-03-01 00:00:15,fra-ams,42.5
2026-03-01 00:00:00,par-mad,12.5
2026-03-01 00:00:15,par-mad,13
""",
    ),
}


def test_every_export_that_can_be_converted_has_a_case() -> None:
    assert set(CASES) == {export.name for export in EXPORTS if not export.instead}


@pytest.mark.parametrize("name", CASES)
def test_an_export_is_recognised_and_becomes_a_wide_table(tmp_path: Path, name: str) -> None:
    text, wide = CASES[name]
    path = written(tmp_path, text)
    export = recognise(path)
    assert export is not None and export.name == name
    assert to_wide([path]).to_csv(index=False, lineterminator="\n") == wide


def test_the_line_for_excel_goes(tmp_path: Path) -> None:
    table = to_wide([written(tmp_path, exports.GRAFANA_EXCEL)])
    assert table.to_csv(index=False, lineterminator="\n").startswith(
        "Time,rtt_ms,loss_percent\n2026-03-01 00:00:00,41.5,0\n"
    )


@pytest.mark.parametrize(
    "text", [exports.TELEGRAF, exports.GRAFANA_LONG, "timestamp,rtt_ms\n1,2\n", "", "{}", "a\0b", "x,y\n1,2,3\n"]
)
def test_what_can_be_read_as_it_is_or_is_no_export_is_left_alone(tmp_path: Path, text: str) -> None:
    assert recognise(written(tmp_path, text)) is None


def test_what_is_no_export_cannot_be_converted(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"export\.csv: none of the exports that can be converted: InfluxDB"):
        to_wide([written(tmp_path, "timestamp,rtt_ms\n1,2\n")])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (exports.PING_WITHOUT_TIMES, "ping -D, or fping -l -D"),
        (exports.INFLUX.replace("_value", "rtt"), "without the columns _time and _value"),
        (exports.IPERF3.replace('"timesecs"', '"secs"'), "not the JSON of iperf3: 'timesecs'"),
        (exports.IPERF3.replace('"omitted": false', '"omitted": true'), "no intervals in it; test again with -i 1"),
        (exports.IPERF3[:-20], "not the JSON of iperf3"),
        (exports.PROMETHEUS.replace('"data"', '"datum"'), "not the JSON of a range query of Prometheus: 'data'"),
        (exports.MTR.partition("\n")[0], "only a header and no hops"),
        (exports.SMOKEPING + "1772324100: 1 2\n", "row 4: 2 values for 4 names"),
        (exports.LONG + "2026-03-01T00:00:20Z,fra-ams\n", "row 6: 2 fields, the header has 4"),
        (exports.LONG.partition("\n")[0], "only a header and no rows"),
    ],
)
def test_a_broken_export_is_told(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        to_wide([written(tmp_path, text)])


def test_files_below_each_other_and_packed(tmp_path: Path) -> None:
    """Series that a file does not name are called by the file; several iperf3 tests may stand in one file."""
    first, second = tmp_path / "north.txt.gz", written(tmp_path, exports.SMOKEPING, "south.txt")
    first.write_bytes(gzip.compress(exports.SMOKEPING.encode()))
    assert list(to_wide([first, second])["series"]) == ["north.txt"] * 3 + ["south"] * 3
    later = exports.IPERF3.replace("1772323200", "1772326800")
    assert len(to_wide([written(tmp_path, exports.IPERF3 + later, "two.json")])) == 4


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ([("rtt", {"job": "p", "link": "a"}), ("rtt", {"job": "p", "link": "b"})], ["a", "b"]),
        ([("rtt", {"job": "p"}), ("rtt", {"job": "p"})], ["all", "all"]),
        (
            [("rtt", {"link": "a", "job": "p"}), ("rtt", {"link": "b", "job": "p"}), ("loss", {"link": "a"})],
            ["a", "b", "a"],
        ),
        (
            [("rtt", {"link": "a", "if": "0"}), ("rtt", {"link": "a", "if": "1"}), ("loss", {"link": "a"})],
            ["0", "1", "none"],
        ),
    ],
)
def test_series_are_called_by_what_tells_them_apart(labels: list[tuple[str, dict[str, str]]], names: list[str]) -> None:
    assert series_of(labels) == names


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ('rtt{link="a", job="p"}', ("rtt", {"link": "a", "job": "p"})),
        ('{__name__="rtt", link="a"}', ("rtt", {"link": "a"})),
        ('{link="a"}', ("value", {"link": "a"})),
        ("rtt {link=a}", ("rtt", {"link": "a"})),
        ("rtt", None),
        ("{}", None),
    ],
)
def test_names_with_labels(name: str, parts: tuple[str, dict[str, str]] | None) -> None:
    assert split_name(name) == parts
