"""Files as they should not be: each gives the exact rows, or an error that names file, line and column."""

from __future__ import annotations

import gzip
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tables import START, make_format, write

from netanomaly.data.cells import CellFormat
from netanomaly.data.incidents import label_rows
from netanomaly.data.ingest import NO_PART, InputFormat, Table, read_table, read_tables
from netanomaly.data.schema import Metric
from netanomaly.data.timestamps import TimeFormat
from netanomaly.errors import DataError
from netanomaly.incident_files import read_maintenance

NAN = float("nan")
ZEROTH, FIRST = "2026-03-01T00:00:00Z", "2026-03-01T00:00:01Z"
HEAD = "time,link,rtt,label\n"
ONE = f"{ZEROTH},a,1,x\n"
TWO = f"{FIRST},a,2,y\n"
GOOD = HEAD + ONE + TWO

Row = tuple[str, float, str]


@dataclass(frozen=True)
class Case:
    """A file.

    Attributes:
        content: as it is; text becomes UTF-8.
        rows: (series, rtt, label) of each row, if it can be read.
        told: what the message begins with behind the file's name, and what else is in it, if not.
        form: how it is said to be written.
    """

    content: str | bytes
    rows: Sequence[Row] = ()
    told: Sequence[str] = ()
    form: InputFormat = make_format()
    name: str = "links.csv"


def timed(format: str, unit: str | None = None, zone: str | None = None, **cells: Any) -> InputFormat:
    return replace(make_format(**cells), times=TimeFormat(format, unit, zone))


def at(text: str) -> str:
    """A good row and one at this time."""
    return f"{HEAD}{ONE}{text},a,2,y\n"


def parquet(**columns: Any) -> bytes:
    out = io.BytesIO()
    whole = {"time": [ZEROTH, FIRST], "link": ["a", "a"], "rtt": [1.0, 2.0], "label": ["x", "y"]} | columns
    pd.DataFrame(whole).to_parquet(out)
    return out.getvalue()


BOTH: list[Row] = [("a", 1, "x"), ("a", 2, "y")]
ELF = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00>\x00" + bytes(range(256))
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(256))
WIDE = ",".join(f"m{number}" for number in range(100_000))
BERLIN = "Europe/Berlin"

CASES = {
    # encodings
    "byte-order mark": Case("\ufeff" + GOOD, BOTH),
    "byte-order mark twice": Case("\ufeff\ufeff" + GOOD, told=["line 1: no column 'time'"]),
    "only a byte-order mark": Case("\ufeff", told=["the file is empty"]),
    "utf-16 undeclared": Case(GOOD.encode("utf-16"), told=["not utf-8 text", "data.encoding"]),
    "utf-16 without a mark, undeclared": Case(GOOD.encode("utf-16-le"), told=["line 1: no column 'time'"]),
    "utf-16 cut within a character": Case(
        GOOD.encode("utf-16")[:-1], told=["not utf-16 text"], form=make_format(encoding="utf-16")
    ),
    "utf-8 cut within a character": Case(GOOD.encode() + b"\xc3", told=["not utf-8 text (byte 0xc3)"]),
    "zero bytes": Case(HEAD + ONE + f"{FIRST},a,\0,y\n", told=["line 3, column 'rtt': found '\0'"]),
    "zero bytes only": Case(bytes(50), told=["line 1: no column 'time'"]),
    # lines
    "empty": Case("", told=["the file is empty"]),
    "white space only": Case(" \n\t\n  \r\n", told=["the file is empty"]),
    "a header only": Case(HEAD, told=["only a header and no rows"]),
    "no end of the last line": Case(GOOD.removesuffix("\n"), BOTH),
    "carriage returns and line feeds": Case(GOOD.replace("\n", "\r\n"), BOTH),
    "carriage returns": Case(GOOD.replace("\n", "\r"), BOTH),
    "all line ends in one file": Case(HEAD + ONE.replace("\n", "\r\n") + TWO.replace("\n", "\r"), BOTH),
    "a line break in a name": Case(HEAD + f'{ZEROTH},"a\nb",1,x\n', told=["line 2, column 'link': a line break"]),
    "a line break in a label": Case(HEAD + f'{ZEROTH},a,1,"x\ny"\n', told=["line 2, column 'label': a line break"]),
    "a short row": Case(GOOD + f"{FIRST},a\n", told=["line 4: found 2 fields, the header has 4"]),
    "a long row": Case(GOOD + f"{FIRST},a,1,x,y\n", told=["line 4: found 5 fields, the header has 4"]),
    "a line without end": Case(GOOD + "9" * (2**24 + 9), told=["line 4: longer than 16,777,216 characters"]),
    # quotes
    "an unclosed quote": Case(GOOD + f'{FIRST},"a,1,x\n', told=["line 4: not a readable line"]),
    "an unclosed quote in the header": Case('time,"link,rtt,label\n' + ONE, told=["line 1: no column 'link'"]),
    "text behind a quote": Case(HEAD + f'{ZEROTH},"a"b,1,x\n', told=["line 2: not a readable line"]),
    "a quote within a cell": Case(HEAD + f'{ZEROTH},24" rack,1,x\n', [('24" rack', 1, "x")]),
    # headers
    "a name twice": Case("time,link,rtt,label,rtt\n", told=["line 1: the column 'rtt' stands twice"]),
    "empty names": Case("time,link,rtt,label,,\n" + ONE.replace("x\n", "x,,\n"), [("a", 1, "x")]),
    "no header": Case(ONE + TWO, told=["line 1: no column 'time'"]),
    "a hundred thousand columns": Case(
        HEAD.strip() + f",{WIDE}\n" + ONE.strip() + ",0" * 100_000 + "\n", [("a", 1, "x")]
    ),
    # cells
    "a huge cell for a number": Case(
        HEAD + f"{ZEROTH},a,{'7' * 10**6},x\n", told=["line 2: not a readable line", "field limit"]
    ),
    "a huge cell for a name": Case(
        HEAD + f"{ZEROTH},{'n' * 10**7},1,x\n", told=["line 2: not a readable line", "field limit"]
    ),
    "a long name": Case(
        HEAD + f"{ZEROTH},{'n' * 10**5},1,x\n", told=["line 2, column 'link': 100,000 characters (10,000 at most)"]
    ),
    "a huge cell in quotes": Case(HEAD + f'{ZEROTH},"{"n" * 10**6}",1,x\n', told=["line 2: not a readable line"]),
    "a huge cell that nobody reads": Case(
        HEAD.replace("\n", ",note\n") + ONE.replace("\n", f",{'n' * 10**7}\n"), [("a", 1, "x")]
    ),
    "a name of ten thousand characters": Case(HEAD + f"{ZEROTH},{'n' * 10**4},1,x\n", [("n" * 10**4, 1, "x")]),
    "slashes and dots in a name": Case(HEAD + f"{ZEROTH},../../etc/passwd,1,x\n", [("../../etc/passwd", 1, "x")]),
    "a bell in a name": Case(HEAD + f"{ZEROTH},a\x07,1,x\n", told=["line 2, column 'link': a line break or control"]),
    "an escape sequence in a name": Case(HEAD + f"{ZEROTH},\x1b[2Ja,1,x\n", told=["line 2, column 'link'"]),
    "text turned around": Case(HEAD + f"{ZEROTH},a\u202eb,1,x\n", told=["line 2, column 'link': a line break or con"]),
    "words for nothing as labels": Case(
        HEAD + "".join(f"{FIRST},a,1,{word}\n" for word in ("None", "nan", "NA", "null", "", "N/A")),
        [("a", 1, word) for word in ("None", "nan", "NA", "null", "", "N/A")],
    ),
    "formulas as names": Case(
        HEAD + f"{ZEROTH},=1+1,1,@x\n{FIRST},'=1+1,1,'-\n", [("=1+1", 1, "@x"), ("=1+1", 1, "'-")]
    ),
    # numbers
    **{
        f"{cell!r} for a number": Case(
            HEAD + ONE + f'{FIRST},a,"{cell}",y\n', told=[f"line 3, column 'rtt': found '{cell}'"]
        )
        for cell in (
            *(
                "1e400",
                "inf",
                "-Infinity",
                "NAN",
                "-nan",
                "1.#QNAN",
                "0x10",
                "1_000",
                "1,000",
                "1 000",
                "12,5",
                "1.2.3",
            ),
            *(
                "\u22125",
                "\u0661\u0662",
                "\uff11",
                "1\u00a0000",
                "--1",
                "1e",
                "true",
                "13/0",
                "2026-03-01",
                "=1+1",
                "-",
            ),
        )
    },
    "spaces around a number": Case(HEAD + f"{ZEROTH},a,\u00a01\u00a0,x\n{FIRST},a, 2 ,y\n", BOTH),
    "not measured": Case(HEAD + f"{ZEROTH},a,,x\n{FIRST},a,NaN,y\n", [("a", NAN, "x"), ("a", NAN, "y")]),
    "a number too small": Case(HEAD + f"{ZEROTH},a,1e-400,x\n", [("a", 0, "x")]),
    "too large in the base unit": Case(
        HEAD + f"{ZEROTH},a,1e308,x\n",
        told=["line 2, column 'rtt': too large"],
        form=make_format(Metric("rtt", "rtt", "Gbit/s")),
    ),
    # times
    **{
        f"{time!r} for a time": Case(at(time), told=[f"line 3, column 'time': found '{time[:40]}"])
        for time in (
            *("", "now", "99999-01-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-03-01T25:00:00Z"),
            *("03/04/2026 00:00", "1772323201", "2026-03-01T00:00:01", "2026-03-01T00:00:01+01:00", "2026-3-1T0:0:0Z"),
            *(
                "2026-03-01T00:00:01.1234567890Z",
                "2026-03-01T00:00:60Z",
                "2026-W09-7T00:00:01Z",
                "\u0662026-03-01T00:00:01Z",
            ),
        )
    },
    "the year zero": Case(at("0000-01-01T00:00:00Z"), told=["line 3, column 'time': found 0000-01-01", "1825 to 2115"]),
    "a time before nanoseconds": Case(at("1700-01-01T00:00:00Z"), told=["line 3, column 'time'", "1825 to 2115"]),
    "a day of an ambiguous date": Case(
        HEAD + "13/04/2026 00:00,a,1,x\n04/13/2026 00:00,a,1,x\n",
        told=["line 3, column 'time': found '04/13/2026 00:00', not a time of the format %d/%m/%Y %H:%M"],
        form=timed("%d/%m/%Y %H:%M", zone="UTC"),
    ),
    "an hour that is there twice": Case(
        at("2026-10-25T02:30:00").replace("Z", ""),
        told=["line 3, column 'time': 2026-10-25 02:30:00 happens twice or never in Europe/Berlin"],
        form=timed("rfc3339", zone=BERLIN),
    ),
    "an hour that is not there": Case(
        at("2026-03-29T02:30:00").replace("Z", ""),
        told=["line 3, column 'time': 2026-03-29 02:30:00 happens twice or never in Europe/Berlin"],
        form=timed("rfc3339", zone=BERLIN),
    ),
    "an epoch in milliseconds": Case(
        HEAD + "1772323200000,a,1,x\n",
        told=["line 2, column 'time'", "set data.timestamp.unit: ms"],
        form=timed("epoch", "s"),
    ),
    "an epoch below zero": Case(
        HEAD + "-5,a,1,x\n", told=["line 2, column 'time': found '-5'", "1990 to 2100"], form=timed("epoch", "s")
    ),
    "an epoch beyond all integers": Case(
        HEAD + f"{'9' * 30},a,1,x\n", told=["line 2, column 'time'"], form=timed("elapsed", "ns")
    ),
    # files of other kinds
    "a program": Case(ELF, told=["not utf-8 text"]),
    "a picture": Case(PNG, told=["not utf-8 text (byte 0x89)"]),
    "gzip without its suffix": Case(gzip.compress(GOOD.encode()), told=["holds gzip data, not text"]),
    "gzip": Case(gzip.compress(GOOD.encode()), BOTH, name="links.csv.gz"),
    "gzip of two parts": Case(
        gzip.compress(HEAD.encode()) + gzip.compress((ONE + TWO).encode()), BOTH, name="links.csv.gz"
    ),
    "gzip with a tail of zeros": Case(gzip.compress(GOOD.encode()) + bytes(512), BOTH, name="links.csv.gz"),
    "gzip with a tail of junk": Case(
        gzip.compress(GOOD.encode()) + b"junk", told=["the gzip file is damaged or cut short"], name="links.csv.gz"
    ),
    "gzip cut short": Case(
        gzip.compress(GOOD.encode())[:-9], told=["the gzip file is damaged or cut short"], name="links.csv.gz"
    ),
    "gzip with a flipped bit": Case(
        gzip.compress(GOOD.encode())[:-6] + b"!" + gzip.compress(GOOD.encode())[-5:],
        told=["the gzip file is damaged or cut short"],
        name="links.csv.gz",
    ),
    "gzip that swells a thousandfold": Case(
        gzip.compress(GOOD.encode() + b"0" * (2**24 + 2**20)), told=["line 4: longer than"], name="links.csv.gz"
    ),
    "gzip in gzip": Case(
        gzip.compress(gzip.compress(GOOD.encode())), told=["holds gzip data, not text"], name="links.csv.gz"
    ),
    "parquet": Case(parquet(), BOTH, name="links.parquet"),
    "parquet cut short": Case(parquet()[:-20], told=["not a readable Parquet file"], name="links.parquet"),
    "parquet without its suffix": Case(parquet(), told=["holds Parquet data, not text"]),
    "gzip of parquet": Case(gzip.compress(parquet()), told=["holds Parquet data, not text"], name="links.csv.gz"),
    "text called parquet": Case(GOOD, told=["not a readable Parquet file"], name="links.parquet"),
    "parquet with lists": Case(
        parquet(rtt=[[1.0], [2.0]]), told=["row 0, column 'rtt': found '[1.]'"], name="links.parquet"
    ),
    "parquet with records": Case(
        parquet(rtt=[{"x": 1}, {"x": 2}]), told=["row 0, column 'rtt': found '{'x': 1}'"], name="links.parquet"
    ),
    "parquet with truths": Case(
        parquet(rtt=[True, False]), told=["column 'rtt': found values of type bool"], name="links.parquet"
    ),
    "parquet with infinity": Case(
        parquet(rtt=[1.0, np.inf]), told=["row 1, column 'rtt': found an infinite value"], name="links.parquet"
    ),
    "parquet without a time": Case(
        parquet(time=pd.to_datetime([ZEROTH, None])), told=["row 1, column 'time': no time"], name="links.parquet"
    ),
}


def read_case(path: Path, case: Case, *, in_pieces: bool) -> list[Table]:
    if in_pieces:
        return list(read_tables([path], case.form, 1000))
    return [read_table({path: NO_PART}, case.form)]


@pytest.mark.parametrize("in_pieces", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["whole", "in pieces"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_malformed_file_gives_its_exact_rows_or_an_error_with_its_place(
    case: Case, in_pieces: bool, tmp_path: Path
) -> None:
    path = write(tmp_path / case.name, case.content)
    if case.rows:
        tables = read_case(path, case, in_pieces=in_pieces)
        found = [
            (series, value, label)
            for table in tables
            for series, value, label in zip(table.series, table.values[:, 0], table.labels, strict=True)
        ]
        np.testing.assert_equal(found, list(case.rows))
        assert tables[0].times[0] in (START, START + 10**9)
        return
    with pytest.raises(DataError) as caught:
        read_case(path, case, in_pieces=in_pieces)
    message = str(caught.value)
    assert message.startswith(f"{path}: {case.told[0]}")
    assert [part for part in case.told if part not in message] == []
    assert len(message) < 1000


def test_the_table_is_as_long_as_it_has_to_be() -> None:
    assert len(CASES) >= 40


def test_a_quote_in_the_header_of_a_file_that_skips_bad_lines_is_a_data_error(tmp_path: Path) -> None:
    """The csv module reads a header once loosely and once strictly."""
    path = write(tmp_path / "links.csv", 'time,link,rtt,label,"x"y\n' + ONE)
    with pytest.raises(DataError, match=r"line 1: not a readable line of a CSV"):
        read_table({path: NO_PART}, make_format(skip_bad_lines=True))


LISTS = {
    "no label": ("time,link\n", "line 1: no column 'start'"),
    "an empty label": (f"link,start,end,label\na,{ZEROTH},{FIRST},\n", "line 2, column 'label': empty"),
    "ends before it starts": (f"link,start,end,label\na,{FIRST},{ZEROTH},x\n", "line 2: the incident ends before"),
    "an unknown series": (f"link,start,end,label\nb,{ZEROTH},{FIRST},x\n", "line 2: no series 'b' in the data"),
    "an overlap": (
        f"link,start,end,label\na,{ZEROTH},{FIRST},x\na,{ZEROTH},{FIRST},y\n",
        "line 3:",
    ),
    "no time": (f"link,start,end,label\na,{ZEROTH},later,x\n", "line 2, column 'end': found 'later'"),
    "a reserved label": (f"link,start,end,label\na,{ZEROTH},{FIRST},no_data\n", "line 2, column 'label': the label"),
    "a short line": (f"link,start,end,label\na,{ZEROTH}\n", "line 2: found 2 fields"),
    "an unclosed quote": (f'link,start,end,label\n"a,{ZEROTH},{FIRST},x\n', "line 2: not a readable line"),
    "nothing": ("", "the file is empty"),
    "no rows": ("link,start,end,label\n", "only a header"),
}


@pytest.mark.parametrize(("content", "told"), LISTS.values(), ids=LISTS.keys())
def test_a_malformed_list_of_incidents_is_told_with_its_place(content: str, told: str, tmp_path: Path) -> None:
    table = read_table({write(tmp_path / "links.csv", GOOD): NO_PART}, make_format())
    path = write(tmp_path / "incidents.csv", content)
    with pytest.raises(DataError) as caught:
        label_rows(table, path, make_format(label=None), "normal")
    assert str(caught.value).startswith(f"{path}: {told}")


PLANS = {
    "ends before it starts": (f"link,start,end\na,{FIRST},{ZEROTH}\n", "line 2: the maintenance ends before it starts"),
    "no time": ("link,start,end\na,now,then\n", "line 2, column 'start': found 'now'"),
    "no column": (f"link,start\na,{ZEROTH}\n", "line 1: no column 'end'"),
    "a long line": (f"link,start,end\na,{ZEROTH},{FIRST},x\n", "line 2: found 4 fields"),
    "bytes": (b"link,start,end\n\xff\n", "not utf-8 text (byte 0xff)"),
}


@pytest.mark.parametrize(("content", "told"), PLANS.values(), ids=PLANS.keys())
def test_malformed_planned_work_is_told_with_its_place(content: str | bytes, told: str, tmp_path: Path) -> None:
    path = write(tmp_path / "planned.csv", content)
    with pytest.raises(DataError) as caught:
        read_maintenance(path, make_format(label=None))
    assert str(caught.value).startswith(f"{path}: {told}")


# ---- files of other tools, which are not in the repository


def _timed(column: str, times: TimeFormat, *metrics: str, **cells: Any) -> InputFormat:
    return InputFormat(
        tuple(Metric(name, name) for name in metrics), tuple(column.split("+")), times, (), None, CellFormat(**cells)
    )


LOCAL = TimeFormat(timezone="UTC")
DRIVE, RTT = "drive_test_dash_missing.csv", "rtt_semicolon_dmy_crlf.csv"
SPEED = "speedtest_error_lines.csv"
OTHERS: list[tuple[str, InputFormat, int | str]] = [
    (SPEED, _timed("Timestamp", LOCAL, "Ping", "Download"), "found 1 fields, the header has 8 ('Cannot retrieve"),
    (SPEED, _timed("Timestamp", LOCAL, "Ping", "Download", skip_bad_lines=True), 225),
    (
        "speedtest_unnamed_sixth_field.csv",
        _timed("Date+Time", TimeFormat("%d/%m/%y %H:%M", timezone="UTC"), "Ping (ms)"),
        "line 3: found 6 fields, the header has 5",
    ),
    (RTT, _timed("epoch", LOCAL, "rtt"), "the header looks separated by ';'"),
    (RTT, _timed("epoch", LOCAL, "rtt", separator=";"), "line 2, column 'epoch': found '14/10/2016 21:17'"),
    (
        RTT,
        _timed("epoch", TimeFormat("%d/%m/%Y %H:%M", timezone="UTC"), "rtt", separator=";", missing=("-1",)),
        300,
    ),
    ("wifi_link_ns_irregular.csv", _timed("timestamp", LOCAL, "bits_per_second", "jitter_ms"), 300),
    (
        DRIVE,
        _timed("Timestamp", TimeFormat("%Y.%m.%d_%H.%M.%S", timezone="UTC"), "RSRP", "PINGAVG"),
        "line 2, column 'PINGAVG': found '-'",
    ),
    (
        DRIVE,
        _timed("Timestamp", TimeFormat("%Y.%m.%d_%H.%M.%S", timezone="UTC"), "RSRP", "PINGAVG", missing=("-", "")),
        400,
    ),
    ("cell_percent_and_mangled_cells.csv", _timed("Timestamp", LOCAL, "CQI"), "line 1: no column 'Timestamp'"),
    (
        "cell_percent_and_mangled_cells.csv",
        _timed("CQI", TimeFormat("elapsed", "s"), "Nack"),
        "line 2, column 'Nack': found '0.00%'",
    ),
    ("rtt_repeated_seconds.csv", _timed("epoch", LOCAL, "values"), "line 2, column 'epoch': found '1512144010.0'"),
    ("rtt_repeated_seconds.csv", _timed("epoch", TimeFormat("epoch", "s"), "values"), 400),
]


@pytest.mark.data
@pytest.mark.parametrize(("name", "form", "wanted"), OTHERS)
def test_files_of_other_tools_give_all_their_rows_or_an_error_with_its_place(
    name: str, form: InputFormat, wanted: int | str, data_root: Path
) -> None:
    """With --data-root DIR, the directory of short excerpts of public measurement files."""
    path = data_root / name
    if not path.exists():
        pytest.skip(f"no {path}")
    if isinstance(wanted, int):
        assert len(read_table({path: NO_PART}, form)) == wanted
        return
    with pytest.raises(DataError) as caught:
        read_table({path: NO_PART}, form)
    assert str(caught.value).startswith(f"{path}: line ") and wanted in str(caught.value)
