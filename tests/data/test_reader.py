from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tables import write

from netanomaly.data.cells import CellFormat, Columns, Source
from netanomaly.data.csv_reader import read_header
from netanomaly.data.reader import column_names, read_file, take_frame
from netanomaly.errors import ConfigError, DataError, NetanomalyError

COLUMNS = Columns(text=("time", "link"), numbers=("rtt", "loss"))
CELLS = CellFormat()
HEAD = "time,link,rtt,loss\n"
GOOD = "t,a,1,2\n"


def read(path: Path, content: str | bytes, percent: Sequence[str] = (), **cells: Any) -> Source:
    return read_file(write(path, content), replace(COLUMNS, percent=frozenset(percent)), replace(CELLS, **cells))


def expected(*rows: tuple[str, str, float, float]) -> pd.DataFrame:
    frame = pd.DataFrame(list(rows), columns=["time", "link", "rtt", "loss"])
    return frame.astype({"time": "str", "link": "str", "rtt": "float64", "loss": "float64"})


def same(found: pd.DataFrame, wanted: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(found[list(wanted)], wanted, check_exact=True)


# Each: name, content, what the message holds after the file's name, changes to the format.
MALFORMED: list[tuple[str, str | bytes, tuple[str, ...], dict[str, Any]]] = [
    ("word", HEAD + GOOD + "t,a,abc,2\n", ("line 3, column 'rtt': found 'abc'", "data.missing"), {}),
    ("unit in cell", HEAD + GOOD + "t,a,12.3 ms,2\n", ("line 3, column 'rtt': found '12.3 ms'", "data.metrics"), {}),
    ("decimal comma", HEAD + 't,a,"12,5",2\n', ("line 2, column 'rtt': found '12,5'", "data.decimal: ','"), {}),
    ("thousands", HEAD + GOOD + 't,a,1,"1,000"\n', ("line 3, column 'loss': found '1,000'", "data.decimal"), {}),
    ("hexadecimal", HEAD + GOOD + "t,a,0x10,2\n", ("line 3, column 'rtt': found '0x10'", "expected a number"), {}),
    ("underscore", HEAD + GOOD + "t,a,1_0,2\n", ("line 3, column 'rtt': found '1_0'", "expected a number"), {}),
    ("true alone", HEAD + "t,a,True,2\nt,a,False,2\n", ("line 2, column 'rtt': found 'True'",), {}),
    ("true and missing", HEAD + "t,a,,2\nt,a,TRUE,2\n", ("line 3, column 'rtt': found 'TRUE'",), {}),
    ("true and one", HEAD + GOOD + "t,a,true,2\n", ("line 3, column 'rtt': found 'true'",), {}),
    ("true and five", HEAD + "t,a,5,2\nt,a,True,2\n", ("line 3, column 'rtt': found 'True'",), {}),
    ("infinite", HEAD + GOOD + "t,a,1,inf\n", ("line 3, column 'loss': found 'inf'", "not a finite number"), {}),
    ("minus infinity", HEAD + "t,a,-Infinity,1\n", ("line 2, column 'rtt': found '-Infinity'", "finite"), {}),
    ("too large", HEAD + GOOD + "t,a,1e400,2\n", ("line 3, column 'rtt': found '1e400'", "not too large"), {}),
    ("empty undeclared", HEAD + GOOD + "t,a,,2\n", ("line 3, column 'rtt': found ''",), {"missing": ("-",)}),
    ("nan undeclared", HEAD + GOOD + "t,a,NaN,2\n", ("line 3, column 'rtt': found 'NaN'",), {"missing": ("-",)}),
    ("percent undeclared", HEAD + GOOD + "t,a,1,5%\n", ("line 3, column 'loss': found '5%'", "unit: '%'"), {}),
    (
        "bad percent",
        HEAD + GOOD + "t,a,1,5 %%\n",
        ("line 3, column 'loss': found '5 %%'",),
        {"percent": ["loss"]},
    ),
    (
        "point for comma",
        "time;link;rtt;loss\nt;a;1,5;2\nt;a;1.5;2\n",
        ("line 3, column 'rtt': found '1.5'", "data.decimal: '.'"),
        {"separator": ";", "decimal": ","},
    ),
    ("short line", HEAD + GOOD + "t,a,1\n" + GOOD, ("line 3: found 3 fields, the header has 4", "bad_lines"), {}),
    ("short last line", HEAD + GOOD + "t,a,1", ("line 3: found 3 fields, the header has 4",), {}),
    ("long line always", HEAD + "t,a,1,2,3\n" * 3, ("line 2: found 5 fields, the header has 4", "bad_lines"), {}),
    ("long line late", HEAD + GOOD * 50 + "t,a,1,2,3\n", ("line 52: found 5 fields, the header has 4",), {}),
    ("empty field at every end", HEAD + "t,a,1,2,\n" * 3, ("line 2: found 5 fields, the header has 4",), {}),
    ("unquoted separator", HEAD + GOOD + "t,a,b,1,2\n", ("line 3: found 5 fields", "'t,a,b,1,2'"), {}),
    ("short line among quotes", HEAD + 't,"a",1,2\nt,a,1\n', ("line 3: found 3 fields, the header has 4",), {}),
    ("header twice", "time,link,rtt,rtt,loss\n", ("line 1: the column 'rtt' stands twice",), {}),
    ("header twice but for spaces", "time,link,rtt, rtt ,loss\n", ("line 1: the column 'rtt' stands twice",), {}),
    (
        "column misspelt",
        "time,link,rttt,loss\nt,a,1,2\n",
        ("line 1: no column 'rtt'", "found time, link, rttt, loss", "did you mean 'rttt'?"),
        {},
    ),
    (
        "column not there",
        "time,link,loss\nt,a,2\n",
        ("line 1: no column 'rtt'", "check data.metrics, data.timestamp, data.series and data.label"),
        {},
    ),
    ("no header", GOOD * 2, ("line 1: no column 'time'", "found t, a, 1, 2"), {}),
    ("semicolons", "time;link;rtt;loss\nt;a;1;2\n", ("line 1", "looks separated by ';'", "set data.separator"), {}),
    ("tabs", "time\tlink\trtt\tloss\n", ("line 1", r"looks separated by '\t'", "set data.separator"), {}),
    ("excel's first line", "sep=,\n" + HEAD + GOOD, ("line 1: no column 'time'",), {}),
    ("empty", "", ("the file is empty",), {}),
    ("only a header", HEAD, ("only a header and no rows",), {}),
    ("only a header and blank lines", HEAD + "\n\n", ("only a header and no rows",), {}),
    ("latin-1", HEAD.encode() + "t,caf\xe9,1,2\n".encode("latin-1"), ("not utf-8 text (byte 0xe9)", "encoding"), {}),
    ("late latin-1", (HEAD + GOOD * 9999).encode() + b"t,\xff,1,2\n", ("not utf-8 text (byte 0xff)", "encoding"), {}),
    ("utf-16", (HEAD + GOOD).encode("utf-16"), ("not utf-8 text (byte 0xff)", "set data.encoding"), {}),
    ("zero byte", HEAD + GOOD + "t,a,1\x005,2\n", ("line 3, column 'rtt': found '1\x005'",), {}),
    ("after a quoted break", HEAD + 't,"a\n\nb",1,2\nt,a,x,2\n', ("line 5, column 'rtt': found 'x'",), {}),
    ("after blank lines", HEAD + "\n" + GOOD + "\n\nt,a,x,2\n", ("line 6, column 'rtt': found 'x'",), {}),
    ("short after blank lines", HEAD + "\n" + GOOD + "\n\nt,a,2\n", ("line 6: found 3 fields",), {}),
    ("short after a quoted break", HEAD + 't,"a\nb",1,2\nt,a,2\n', ("line 4: found 3 fields",), {}),
    ("after a quoted break in the header", 'time,link,rtt,loss,"x\ny"\nt,a,x,2,3\n', ("line 3, column 'rtt'",), {}),
    ("blank lines before the header", "\n\n" + HEAD + "t,a,x,2\n", ("line 4, column 'rtt': found 'x'",), {}),
    ("carriage returns", (HEAD + GOOD + "\nt,a,x,2\n").replace("\n", "\r\n"), ("line 4, column 'rtt'",), {}),
    ("byte-order mark", "\ufeff" + HEAD + "t,a,x,2\n", ("line 2, column 'rtt': found 'x'",), {}),
    (
        "percent after a blank line",
        HEAD + "\nt,a,1,x%\n",
        ("line 3, column 'loss': found 'x%'",),
        {"percent": ["loss"]},
    ),
    (
        "word among skipped lines",
        HEAD + "t,a\n" + GOOD + "t\nt,a,x,2\n",
        ("line 5, column 'rtt': found 'x'",),
        {"skip_bad_lines": True},
    ),
    (
        "all lines skipped",
        HEAD + "t,a\n",
        ("only a header and no rows (1 bad lines skipped)",),
        {"skip_bad_lines": True},
    ),
]


@pytest.mark.parametrize(
    ("content", "told", "form"), [case[1:] for case in MALFORMED], ids=[case[0] for case in MALFORMED]
)
def test_a_malformed_csv_is_refused_with_its_place_and_advice(
    tmp_path: Path, content: str | bytes, told: tuple[str, ...], form: dict[str, Any]
) -> None:
    path = tmp_path / "links.csv"
    with pytest.raises(DataError) as caught:
        read(path, content, **form)
    message = str(caught.value)
    assert message.startswith(f"{path}: {told[0]}")
    assert [part for part in told if part not in message] == []
    assert "\n" not in message


def test_a_short_line_and_a_long_one_do_not_cancel_out(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line 2: found 3 fields, the header has 4"):
        read(tmp_path / "links.csv", HEAD + "t,a,1\n" + "t,a,1,2,3\n")


def test_an_unclosed_quote_is_told_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line 3: "):
        read(tmp_path / "links.csv", HEAD + GOOD + 't,"a,1,2\n' + GOOD)


def test_text_after_a_closing_quote_is_told_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line 3: "):
        read(tmp_path / "links.csv", HEAD + GOOD + 't,"a"b,1,2\n' + GOOD)


def test_blank_lines_before_the_header_are_ignored_like_others(tmp_path: Path) -> None:
    same(read(tmp_path / "links.csv", "\n" + HEAD + GOOD).frame, expected(("t", "a", 1, 2)))


@pytest.mark.parametrize("quote", ["", '"'], ids=["without quotes", "with quotes"])
@pytest.mark.parametrize("skip", [False, True], ids=["fast", "slow"])
def test_a_line_of_spaces_is_a_blank_line(tmp_path: Path, quote: str, skip: bool) -> None:
    content = HEAD + f"t,{quote}a{quote},1,2\n   \n" + GOOD
    found = read(tmp_path / "links.csv", content, skip_bad_lines=skip)
    same(found.frame, expected(("t", "a", 1, 2), ("t", "a", 1, 2)))
    assert found.skipped == 0


def test_text_in_declared_utf_16_without_its_mark_is_a_data_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="utf-16"):
        read(tmp_path / "links.csv", (HEAD + GOOD).encode("utf-16-le"), encoding="utf-16")


def _directory(path: Path) -> None:
    path.mkdir()


def _nothing(path: Path) -> None:
    pass


def _cut(path: Path) -> None:
    path.write_bytes(gzip.compress((HEAD + GOOD * 1000).encode())[:-12])


def _plain(path: Path) -> None:
    path.write_text(HEAD + GOOD)


def _empty(path: Path) -> None:
    path.write_bytes(gzip.compress(b""))


def _junk(path: Path) -> None:
    path.write_bytes(b"PAR1 and then something else")


@pytest.mark.parametrize(
    ("name", "make", "told"),
    [
        ("links.csv", _directory, "cannot read the file"),
        ("links.csv", _nothing, "no such file"),
        ("links.csv.gz", _nothing, "no such file"),
        ("links.csv.gz", _cut, "the gzip file is damaged or cut short"),
        ("links.csv.gz", _plain, "the gzip file is damaged or cut short"),
        ("links.csv.gz", _empty, "the file is empty"),
        ("links.parquet", _junk, "not a readable Parquet file"),
        ("links.parquet", _directory, ""),
        ("links.parquet", _nothing, "no such file"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_data_error(
    tmp_path: Path, name: str, make: Callable[[Path], None], told: str
) -> None:
    path = tmp_path / name
    make(path)
    with pytest.raises(DataError) as caught:
        read_file(path, COLUMNS, CELLS)
    assert str(caught.value).startswith(f"{path}: {told}")


@pytest.mark.parametrize("encoding", ["klingon", "rot13", ""])
def test_an_unknown_encoding_is_a_config_error(tmp_path: Path, encoding: str) -> None:
    with pytest.raises(ConfigError, match=r"^data\.encoding: unknown encoding"):
        read(tmp_path / "links.csv", HEAD + GOOD, encoding=encoding)


NAN = float("nan")
ODD: list[tuple[str, str | bytes, list[tuple[str, str, float, float]], dict[str, Any]]] = [
    ("plain", HEAD + GOOD, [("t", "a", 1, 2)], {}),
    ("no last line end", HEAD + "t,a,1,2", [("t", "a", 1, 2)], {}),
    ("byte-order mark", "\ufeff" + HEAD + GOOD, [("t", "a", 1, 2)], {}),
    ("byte-order mark and quotes", '\ufeff"time",link,rtt,loss\n' + GOOD, [("t", "a", 1, 2)], {}),
    ("crlf", (HEAD + GOOD * 2).replace("\n", "\r\n"), [("t", "a", 1, 2)] * 2, {}),
    ("old mac", (HEAD + GOOD * 2).replace("\n", "\r"), [("t", "a", 1, 2)] * 2, {}),
    ("quoted separators", HEAD + 't,"a,b",1,2\n', [("t", "a,b", 1, 2)], {}),
    ("quoted quotes", HEAD + 't,"a ""b""",1,2\n', [("t", 'a "b"', 1, 2)], {}),
    ("quoted break", HEAD + 't,"a\nb",1,2\n', [("t", "a\nb", 1, 2)], {}),
    ("quoted numbers", HEAD + 't,a,"1","2"\n', [("t", "a", 1, 2)], {}),
    ("quote within a field", HEAD + 't,24" rack,1,2\n', [("t", '24" rack', 1, 2)], {}),
    ("missing", HEAD + "t,a,,NaN\nt,a,nan,2\n", [("t", "a", NAN, NAN), ("t", "a", NAN, 2)], {}),
    ("all missing", HEAD + "t,a,,\n", [("t", "a", NAN, NAN)], {}),
    ("declared dash", HEAD + "t,a,-,2\nt,a,-1,2\n", [("t", "a", NAN, 2), ("t", "a", -1, 2)], {"missing": ("-",)}),
    ("declared -1", HEAD + "t,a,-1,2\nt,a,-10,1\n", [("t", "a", NAN, 2), ("t", "a", -10, 1)], {"missing": ("-1",)}),
    ("several markers", HEAD + "t,a,n/a,\n", [("t", "a", NAN, NAN)], {"missing": ("n/a", "")}),
    ("spaces around names", "time , link,\trtt , loss\n" + GOOD, [("t", "a", 1, 2)], {}),
    ("spaces around numbers", HEAD + "t,a, 1 ,\t2\n", [("t", "a", 1, 2)], {}),
    ("spaces around text stay", HEAD + "t, a ,1,2\n", [("t", " a ", 1, 2)], {}),
    ("blank lines", HEAD + "\n" + GOOD + "\n\n" + GOOD + "\n", [("t", "a", 1, 2)] * 2, {}),
    ("words for nothing", HEAD + "None,NA,1,2\nnull,nan,1,2\n", [("None", "NA", 1, 2), ("null", "nan", 1, 2)], {}),
    ("words for yes and no", HEAD + "no,yes,1,2\nTrue,off,1,2\n", [("no", "yes", 1, 2), ("True", "off", 1, 2)], {}),
    ("numbers as text", HEAD + "007,1.50,1,2\n", [("007", "1.50", 1, 2)], {}),
    ("empty text", HEAD + ",,1,2\n", [("", "", 1, 2)], {}),
    ("other columns", "x,time,y,link,rtt,loss,z\n!,t,?,a,1,2,#\n", [("t", "a", 1, 2)], {}),
    ("other order", "loss,rtt,link,time\n2,1,a,t\n", [("t", "a", 1, 2)], {}),
    ("columns without a name", "time,link,rtt,loss,,\nt,a,1,2,,\n", [("t", "a", 1, 2)], {}),
    ("zeros and ones", HEAD + "t,a,0,1\nt,a,1,0\n", [("t", "a", 0, 1), ("t", "a", 1, 0)], {}),
    (
        "semicolons and decimal commas",
        "time;link;rtt;loss\nt;a,b;1,5;-,25\n",
        [("t", "a,b", 1.5, -0.25)],
        {"separator": ";", "decimal": ","},
    ),
    ("tabs", "time\tlink\trtt\tloss\nt\ta\t1\t2\n", [("t", "a", 1, 2)], {"separator": "\t"}),
    ("pipes", "time|link|rtt|loss\nt|a|1|2\n", [("t", "a", 1, 2)], {"separator": "|"}),
    (
        "percent",
        HEAD + "t,a,1,5%\nt,a,1,5 %\nt,a,1,5\nt,a,1,\n",
        [("t", "a", 1, 5)] * 3 + [("t", "a", 1, NAN)],
        {"percent": ["loss"]},
    ),
    (
        "latin-1",
        "time,link,rtt,loss\nt,caf\xe9,1,2\n".encode("latin-1"),
        [("t", "caf\xe9", 1, 2)],
        {"encoding": "latin-1"},
    ),
    ("utf-16", (HEAD + "t,\u65e5,1,2\n").encode("utf-16"), [("t", "\u65e5", 1, 2)], {"encoding": "utf-16"}),
    (
        "bad lines skipped",
        HEAD + "t,a\n" + GOOD + "t,a,1,2,3\n" + GOOD,
        [("t", "a", 1, 2)] * 2,
        {"skip_bad_lines": True},
    ),
]


@pytest.mark.parametrize(("content", "rows", "form"), [case[1:] for case in ODD], ids=[case[0] for case in ODD])
@pytest.mark.parametrize("name", ["links.csv", "links.csv.gz"])
def test_an_odd_but_good_csv_is_read_exactly(
    tmp_path: Path,
    name: str,
    content: str | bytes,
    rows: list[tuple[str, str, float, float]],
    form: dict[str, Any],
) -> None:
    data = content.encode() if isinstance(content, str) else content
    found = read(tmp_path / name, gzip.compress(data) if name.endswith(".gz") else data, **form)
    same(found.frame, expected(*rows))


def test_an_unused_column_may_hold_anything(tmp_path: Path) -> None:
    found = read(tmp_path / "links.csv", "time,link,rtt,loss,note\nt,a,1,2,inf\nt,a,1,2,12 ms\n")
    assert len(found.frame) == 2


def test_skipped_lines_are_counted(tmp_path: Path) -> None:
    content = HEAD + "t,a\n" + GOOD + "t,a,1,2,3\n" + GOOD
    assert read(tmp_path / "links.csv", content, skip_bad_lines=True).skipped == 2


def test_blank_lines_do_not_count_as_skipped(tmp_path: Path) -> None:
    assert read(tmp_path / "links.csv", HEAD + GOOD + "\n" + GOOD + "\n", skip_bad_lines=True).skipped == 0


def test_a_marker_that_is_a_number_means_the_same_however_it_is_read(tmp_path: Path) -> None:
    content = HEAD + "t,a,-1,2\nt,a,-1.0,2\n"
    fast = read(tmp_path / "links.csv", content, missing=("-1",)).frame
    slow = read(tmp_path / "links.csv", content, missing=("-1",), skip_bad_lines=True).frame
    frame = pd.DataFrame({"time": "t", "link": "a", "rtt": [-1.0, -1.0], "loss": 2})
    same(slow, fast)
    same(take_frame(frame, COLUMNS, CellFormat(missing=("-1",))).frame, fast)


def test_rows_are_found_again_by_their_line(tmp_path: Path) -> None:
    path = tmp_path / "links.csv"
    source = read(path, "\ufeff" + HEAD + GOOD + '\nt,"a\nb",1,2\n' + GOOD)
    assert [source.where(row) for row in range(3)] == [f"{path}: line {line}" for line in (2, 4, 6)]


def test_the_header_is_read_without_spaces_and_marks(tmp_path: Path) -> None:
    assert read_header(write(tmp_path / "a.csv", '\ufeff time ,"rtt, ms"\n'), CELLS) == ["time", "rtt, ms"]


def test_the_columns_of_every_kind_of_file_are_told(tmp_path: Path) -> None:
    pd.DataFrame({"time": ["t"], "rtt": [1]}).to_parquet(tmp_path / "a.parquet")
    assert column_names(tmp_path / "a.parquet", CELLS) == ["time", "rtt"]
    assert column_names(write(tmp_path / "a.csv", "time, rtt\n"), CELLS) == ["time", "rtt"]


# Frames


def test_a_parquet_file_gives_the_same_as_a_csv(tmp_path: Path) -> None:
    frame = pd.DataFrame({"time": ["t", "u"], "link": ["a", "b"], "rtt": [1.5, NAN], "loss": [1, 2], "other": [1, 2]})
    frame.to_parquet(tmp_path / "links.parquet")
    frame.to_csv(tmp_path / "links.csv", index=False)
    same(
        read_file(tmp_path / "links.parquet", COLUMNS, CELLS).frame,
        read_file(tmp_path / "links.csv", COLUMNS, CELLS).frame,
    )


FRAME = {"time": ["t", "u"], "link": ["a", "b"], "rtt": [1.5, 2.0], "loss": [1.0, 2.0]}


def test_a_frame_is_not_changed() -> None:
    frame = pd.DataFrame({**FRAME, "rtt": [1.5, None]}, index=[7, 3])
    before = frame.copy(deep=True)
    taken = take_frame(frame, COLUMNS, CELLS).frame
    taken.loc[:, "rtt"] = 0.0
    taken.loc[:, "link"] = "x"
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize(
    ("column", "wanted"),
    [
        ([1, 2], [1, 2]),
        (np.array([1, 2], dtype=np.int16), [1, 2]),
        (np.array([1.5, 2], dtype=np.float32), [1.5, 2]),
        (pd.array([1, None], dtype="Int64"), [1, NAN]),
        (pd.array([1.5, None], dtype="Float32"), [1.5, NAN]),
        (pd.Series([1, None], dtype=object), [1, NAN]),
        (["1.5", ""], [1.5, NAN]),
        (["1.5", None], [1.5, NAN]),
        (pd.Categorical(["1.5", "2"]), [1.5, 2]),
    ],
    ids=["int", "int16", "float32", "Int64", "Float32", "object", "text", "text and None", "category"],
)
def test_a_metric_of_a_frame_may_be_numbers_or_text(column: object, wanted: list[float]) -> None:
    found = take_frame(pd.DataFrame({**FRAME, "rtt": column}), COLUMNS, CELLS).frame["rtt"]
    np.testing.assert_array_equal(found.to_numpy(), np.array(wanted, dtype=np.float64))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"rtt": [1.0, float("inf")]}, "lab: row 3, column 'rtt': found an infinite value"),
        ({"rtt": [True, False]}, "lab: column 'rtt': found values of type bool"),
        ({"rtt": pd.array([True, None], dtype="boolean")}, "lab: column 'rtt': found values of type boolean"),
        ({"rtt": pd.Series([1, True], dtype=object).to_list()}, "lab: row 3, column 'rtt': found 'True'"),
        ({"rtt": ["1", "x"]}, "lab: row 3, column 'rtt': found 'x'"),
        ({"rtt": pd.to_datetime(["2026-03-01"] * 2)}, "lab: row 7, column 'rtt': found '2026-03-01"),
        ({"rtt": pd.to_timedelta(["1s", "2s"])}, "lab: row 7, column 'rtt': found "),
        ({"rtt": [1j, 2]}, "lab: column 'rtt': found values of type complex128"),
    ],
    ids=["infinite", "bool", "boolean", "bool among numbers", "text", "datetime", "timedelta", "complex"],
)
def test_a_bad_cell_of_a_frame_is_told_with_its_index(change: dict[str, Any], told: str) -> None:
    frame = pd.DataFrame({**FRAME, **change}, index=[7, 3])
    with pytest.raises(DataError) as caught:
        take_frame(frame, COLUMNS, CELLS, "lab")
    assert str(caught.value).startswith(told)


def test_a_frame_without_a_wanted_column_is_refused() -> None:
    with pytest.raises(DataError, match=r"^lab: no column 'rtt'; found time, link, rttt, loss; did you mean 'rttt'\?"):
        take_frame(pd.DataFrame(FRAME).rename(columns={"rtt": "rttt"}), COLUMNS, CELLS, "lab")


def test_what_is_no_frame_is_refused() -> None:
    with pytest.raises(DataError, match=r"^lab: expected a pandas DataFrame, found dict"):
        take_frame(FRAME, COLUMNS, CELLS, "lab")  # type: ignore[arg-type]


def test_columns_named_by_numbers_are_found() -> None:
    frame = pd.DataFrame({0: ["t"], 1: [1.5]})
    assert take_frame(frame, Columns(("0",), ("1",)), CELLS).frame["1"].tolist() == [1.5]


def test_a_frame_without_rows_is_refused() -> None:
    with pytest.raises(DataError, match=r"^lab: no rows"):
        take_frame(pd.DataFrame(FRAME).iloc[:0], COLUMNS, CELLS, "lab")


def test_a_frame_with_a_column_twice_is_refused() -> None:
    frame = pd.DataFrame([["t", "a", 1.0, 2.0, 3.0]], columns=["time", "link", "rtt", "rtt", "loss"])
    with pytest.raises(DataError, match="the column 'rtt' stands twice"):
        take_frame(frame, COLUMNS, CELLS, "lab")


def test_a_declared_marker_is_missing_in_a_column_of_numbers_too(tmp_path: Path) -> None:
    cells = replace(CELLS, missing=("-1",))
    frame = pd.DataFrame({**FRAME, "rtt": [-1, 2]})
    frame.to_csv(tmp_path / "links.csv", index=False)
    same(take_frame(frame, COLUMNS, cells).frame, read_file(tmp_path / "links.csv", COLUMNS, cells).frame)


# Properties

PROPERTY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), max_size=6) | st.sampled_from(
    ["None", "nan", "NA", "null", "no", "a,b", 'say "hi"', "two\nlines", "1e3", "\ufeffx", "-", " "]
)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.just(NAN) | st.integers(-(10**20), 10**20).map(float)
ROWS = st.lists(st.tuples(TEXTS, TEXTS, NUMBERS, NUMBERS), min_size=1, max_size=8)


@PROPERTY
@given(ROWS, st.sampled_from([",", ";", "\t"]), st.sampled_from([".", ","]), st.sampled_from(["\n", "\r\n"]))
def test_what_is_written_is_read_by_the_fast_and_the_slow_way(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, str, float, float]],
    separator: str,
    decimal: str,
    line_end: str,
) -> None:
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=separator, lineterminator=line_end)
    writer.writerow(["time", "link", "rtt", "loss"])
    for *texts, a, b in rows:
        writer.writerow([*texts, *("" if np.isnan(x) else repr(x).replace(".", decimal) for x in (a, b))])
    path = tmp_path_factory.getbasetemp() / "written.csv"
    form = {"separator": separator, "decimal": decimal}
    fast = read(path, stream.getvalue(), **form)
    slow = read(path, stream.getvalue(), skip_bad_lines=True, **form)
    same(fast.frame, expected(*rows))
    same(slow.frame, fast.frame)
    assert [fast.where(row) for row in range(len(rows))] == [slow.where(row) for row in range(len(rows))]


@pytest.mark.parametrize("separator", [",", "\t"], ids=["comma", "tab"])
@pytest.mark.parametrize(
    "line",
    ["\x0b", "\xa0", "\t", "\t\t", '""', '" "'],
)
def test_a_line_that_looks_blank_is_the_same_in_the_fast_and_the_slow_way(
    tmp_path: Path, line: str, separator: str
) -> None:
    content = (HEAD + GOOD).replace(",", separator) + line + "\n"
    slow = read(tmp_path / "links.csv", content, separator=separator, skip_bad_lines=True)
    try:
        fast = read(tmp_path / "links.csv", content, separator=separator)
    except DataError:
        return
    same(slow.frame, fast.frame)


@PROPERTY
@example(["t", ",", "1", "\n", "t", ",", ",", ",", ",", ","])
@example(['"', '"'])
@example(['"', " ", '"'])
@given(
    st.lists(
        st.sampled_from(["t", "1", "2.5", "x", "", " ", "\n", ",", ",", "\r\n", '"', "nan", "-", "e5", "%", "\x00"])
    )
)
def test_the_fast_way_takes_nothing_that_the_slow_way_refuses(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str]
) -> None:
    path = tmp_path_factory.getbasetemp() / "pieces.csv"
    content = HEAD + GOOD + "".join(pieces) + "\n"
    try:
        fast = read(path, content)
    except DataError:
        return
    slow = read(path, content, skip_bad_lines=True)
    same(slow.frame, fast.frame)


@PROPERTY
@given(
    st.binary(max_size=60),
    st.sampled_from([b"", HEAD.encode(), (HEAD + GOOD).encode(), b"\xef\xbb\xbf", b"\x1f\x8b"]),
    st.sampled_from(["links.csv", "links.csv.gz", "links.parquet"]),
    st.sampled_from(["utf-8", "latin-1", "cp1252", "utf-16-le"]),
)
def test_any_bytes_are_a_frame_or_one_of_our_errors(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, head: bytes, name: str, encoding: str
) -> None:
    path = tmp_path_factory.getbasetemp() / name
    try:
        read(path, head + content, encoding=encoding)
    except NetanomalyError as error:
        assert "\n" not in str(error)
