"""A file read piece by piece gives what the whole file gives, rows and errors alike."""

from __future__ import annotations

import csv
import gzip
import io
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import make_format, stamp, write
from test_reader import CELLS, COLUMNS, GOOD, HEAD, MALFORMED, ODD, ROWS, same

from netanomaly.data.cells import CellFormat, Columns, Source
from netanomaly.data.csv_pieces import CsvText, pieces
from netanomaly.data.csv_reader import _is_plain, read_csv_text
from netanomaly.data.ingest import NO_PART, read_table, read_tables
from netanomaly.data.reader import read_file, read_file_pieces
from netanomaly.errors import DataError

PROPERTY = settings(max_examples=30, deadline=None)
SIZES = pytest.mark.parametrize("size", [1, 2, 3, 1000])


def joined(found: list[Source]) -> pd.DataFrame:
    return pd.concat([source.frame for source in found], ignore_index=True)


def places(found: list[Source]) -> list[str]:
    return [source.where(row) for source in found for row in range(len(source.frame))]


def check(path: Path, size: int, columns: Columns, cells: CellFormat) -> list[Source]:
    """The pieces, after comparing them with the whole file."""
    found, whole = list(read_file_pieces(path, columns, cells, size)), read_file(path, columns, cells)
    same(joined(found), whole.frame)
    assert places(found) == [whole.where(row) for row in range(len(whole.frame))]
    assert sum(source.skipped for source in found) == whole.skipped
    assert {source.name for source in found} == {whole.name}
    return found


def error_of(read: Iterator[Source]) -> str:
    with pytest.raises(DataError) as caught:
        list(read)
    return str(caught.value)


def cells_of(form: dict[str, Any]) -> tuple[Columns, CellFormat]:
    percent = frozenset(form.get("percent", ()))
    return Columns(COLUMNS.text, COLUMNS.numbers, percent), CellFormat(
        **{key: value for key, value in form.items() if key != "percent"}
    )


# CSV


@SIZES
@pytest.mark.parametrize(("content", "form"), [(case[1], case[3]) for case in ODD], ids=[case[0] for case in ODD])
def test_an_odd_but_good_csv_is_the_same_in_pieces(
    tmp_path: Path, content: str | bytes, form: dict[str, Any], size: int
) -> None:
    check(write(tmp_path / "links.csv", content), size, *cells_of(form))


LATE = next(case[1] for case in MALFORMED if case[0] == "late latin-1")


@SIZES
@pytest.mark.parametrize(
    ("content", "form"), [(case[1], case[3]) for case in MALFORMED], ids=[case[0] for case in MALFORMED]
)
def test_a_malformed_csv_is_refused_in_pieces_with_the_words_of_the_whole(
    tmp_path: Path, content: str | bytes, form: dict[str, Any], size: int
) -> None:
    path = write(tmp_path / "links.csv", content)
    columns, cells = cells_of(form)
    size = 5000 if content is LATE else size  # ten thousand rows: one by one they take long
    with pytest.raises(DataError) as whole:
        read_file(path, columns, cells)
    assert error_of(read_file_pieces(path, columns, cells, size)) == str(whole.value)


@PROPERTY
@given(
    ROWS, st.sampled_from([",", ";"]), st.sampled_from(["\n", "\r\n"]), st.sets(st.integers(0, 8)), st.integers(1, 12)
)
def test_what_is_written_is_read_in_pieces_of_any_size(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, str, float, float]],
    separator: str,
    line_end: str,
    blanks: set[int],
    size: int,
) -> None:
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=separator, lineterminator=line_end)
    writer.writerow(["time", "link", "rtt", "loss"])
    for number, (*texts, a, b) in enumerate(rows):
        stream.write(line_end * (number in blanks))
        writer.writerow([*texts, *("" if np.isnan(x) else repr(x) for x in (a, b))])
    for skip in (False, True):
        for name, data in (
            ("a.csv", stream.getvalue().encode()),
            ("a.csv.gz", gzip.compress(stream.getvalue().encode())),
        ):
            path = write(tmp_path_factory.getbasetemp() / name, data)
            check(path, size, COLUMNS, CellFormat(separator=separator, skip_bad_lines=skip))


def test_pieces_have_as_many_lines_as_asked_for_and_hold_all_of_them(tmp_path: Path) -> None:
    lines = [f"t{n},a,{n},2\n" for n in range(10)]
    found = list(pieces(write(tmp_path / "a.csv", HEAD + "".join(lines)), "utf-8", 4, ","))
    assert [(piece.text, piece.shift) for piece in found] == [
        (HEAD + "".join(lines[first : first + 4]), first) for first in (0, 4, 8)
    ]


def test_a_quoted_line_break_is_not_cut(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", HEAD + 't,"a\n\nb",1,2\n' + GOOD)
    assert [(piece.text, piece.shift) for piece in pieces(path, "utf-8", 1, ",")] == [
        (HEAD + 't,"a\n\nb",1,2\n', 0),
        (HEAD + GOOD, 3),
    ]


def test_a_file_without_rows_has_no_piece(tmp_path: Path) -> None:
    assert list(pieces(write(tmp_path / "a.csv", "\n" + HEAD), "utf-8", 1, ",")) == []
    assert list(pieces(write(tmp_path / "b.csv", ""), "utf-8", 1, ",")) == []


@SIZES
def test_a_blank_line_in_quotes_before_the_header_costs_no_row(tmp_path: Path, size: int) -> None:
    check(write(tmp_path / "links.csv", '" "\n' + HEAD + GOOD * 3), size, COLUMNS, CELLS)


@SIZES
def test_skipped_lines_are_counted_over_all_pieces(tmp_path: Path, size: int, caplog: pytest.LogCaptureFixture) -> None:
    rows = "".join(f"{stamp(n)},a,{n},normal\n" + "x,y\n" * (n % 3) for n in range(7))
    path = write(tmp_path / "links.csv", "time,link,rtt,label\n" + rows)
    form = make_format(skip_bad_lines=True)
    with caplog.at_level(logging.WARNING):
        found = list(read_tables([path], form, size))
    assert sum(map(len, found)) == 7
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}: skipped 6 of 13 lines: wrong number of fields"
    ]


def test_a_gzip_file_that_is_cut_short_gives_its_first_rows_before_the_error(tmp_path: Path) -> None:
    many = HEAD + "".join(f"{n * 7919},a,{n},2\n" for n in range(20000))
    path = write(tmp_path / "links.csv.gz", gzip.compress(many.encode())[:-12])
    found = read_file_pieces(path, COLUMNS, CELLS, 5000)
    assert len(next(found).frame) == 5000
    assert "damaged or cut short" in error_of(found)


def test_a_bad_cell_is_told_when_the_reading_gets_there(tmp_path: Path) -> None:
    path = write(tmp_path / "links.csv", HEAD + GOOD * 5 + "t,a,x,2\n")
    found = read_file_pieces(path, COLUMNS, CELLS, 2)
    assert [len(next(found).frame) for _ in range(2)] == [2, 2]
    assert error_of(found).startswith(f"{path}: line 7, column 'rtt': found 'x'")


def test_files_follow_each_other_as_in_one_table(tmp_path: Path) -> None:
    form = make_format()
    paths = [
        write(
            tmp_path / f"{name}.csv",
            "time,link,rtt,label\n" + "".join(f"{stamp(n)},{name},{n},normal\n" for n in range(count)),
        )
        for name, count in (("a", 5), ("b", 1), ("c", 4))
    ]
    found, whole = list(read_tables(paths, form, 2)), read_table(dict.fromkeys(paths, NO_PART), form)
    assert [len(table) for table in found] == [2, 2, 1, 1, 2, 2]
    for key in ("series", "times", "time_texts", "values", "labels"):
        assert np.concatenate([getattr(table, key) for table in found]).tolist() == getattr(whole, key).tolist()
    assert [table.where(row) for table in found for row in range(len(table))] == [whole.where(row) for row in range(10)]


# A piece of text


def test_a_text_with_its_header_is_read_with_the_lines_of_its_file() -> None:
    source = read_csv_text(CsvText(Path("standard input"), "utf-8", HEAD + "\n" + GOOD * 2, 100), COLUMNS, CELLS)
    assert [source.where(row) for row in range(2)] == ["standard input: line 103", "standard input: line 104"]
    assert read_csv_text(CsvText(Path("standard input"), "utf-8", HEAD), COLUMNS, CELLS).frame.empty


def test_a_text_without_a_column_is_refused() -> None:
    with pytest.raises(DataError, match=r"^standard input: line 1: no column 'loss'"):
        read_csv_text(CsvText(Path("standard input"), "utf-8", "time,link,rtt\n"), COLUMNS, CELLS)


# Parquet

FRAME = pd.DataFrame(
    {
        "note": ["x"] * 7,
        "time": [f"t{n}" for n in range(7)],
        "link": ["a", "b", "a", "b", "a", "b", "a"],
        "rtt": [1.5, np.nan, 3.0, 4.0, 5.0, 6.0, 7.0],
        "loss": range(7),
    }
)


@SIZES
@pytest.mark.parametrize("group", [1, 2, 5, 100])
def test_parquet_is_the_same_in_pieces(tmp_path: Path, size: int, group: int) -> None:
    path = tmp_path / "links.parquet"
    FRAME.to_parquet(path, row_group_size=group)
    found = check(path, size, COLUMNS, CELLS)
    assert all(len(source.frame) <= size for source in found)


@SIZES
def test_parquet_written_from_a_part_of_a_frame_is_the_same_in_pieces(tmp_path: Path, size: int) -> None:
    FRAME.iloc[2:].to_parquet(tmp_path / "slice.parquet")
    check(tmp_path / "slice.parquet", size, COLUMNS, CELLS)
    FRAME[FRAME["link"] == "a"].to_parquet(tmp_path / "links.parquet")
    check(tmp_path / "links.parquet", size, COLUMNS, CELLS)


@SIZES
def test_a_row_group_without_rows_changes_nothing(tmp_path: Path, size: int) -> None:
    table, path = pyarrow.Table.from_pandas(FRAME), tmp_path / "links.parquet"
    with pyarrow.parquet.ParquetWriter(path, table.schema) as writer:
        for part in (table[:0], table[:3], table[:0], table[3:], table[:0]):
            writer.write_table(part)
    check(path, size, COLUMNS, CELLS)


@SIZES
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"rtt": [1.0] * 5 + [float("inf"), 2.0]}, "row 5, column 'rtt': found an infinite value"),
        ({"rtt": ["1"] * 6 + ["x"]}, "row 6, column 'rtt': found 'x'"),
        ({"rtt": [True] * 7}, "column 'rtt': found values of type bool"),
    ],
    ids=["infinite", "text", "bool"],
)
def test_a_bad_parquet_cell_is_told_with_the_words_of_the_whole(
    tmp_path: Path, change: dict[str, Any], told: str, size: int
) -> None:
    path = tmp_path / "links.parquet"
    FRAME.assign(**change).to_parquet(path)
    with pytest.raises(DataError) as whole:
        read_file(path, COLUMNS, CELLS)
    assert told in str(whole.value)
    assert error_of(read_file_pieces(path, COLUMNS, CELLS, size)) == str(whole.value)


@pytest.mark.parametrize("name", ["no.csv", "no.csv.gz", "no.parquet", "junk.parquet", "empty.parquet", "less.parquet"])
def test_files_that_cannot_be_read_are_told_as_the_whole_is(tmp_path: Path, name: str) -> None:
    write(tmp_path / "junk.parquet", b"PAR1 and then something else")
    FRAME.iloc[:0].to_parquet(tmp_path / "empty.parquet")
    FRAME.drop(columns="loss").to_parquet(tmp_path / "less.parquet")
    path = tmp_path / name
    with pytest.raises(DataError) as whole:
        read_file(path, COLUMNS, CELLS)
    found = error_of(read_file_pieces(path, COLUMNS, CELLS, 2))
    assert found == str(whole.value) or name == "junk.parquet"  # the words are pyarrow's
    assert found.startswith(str(path))


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from('a1,;\n\r"'), max_size=20), st.integers(1, 4))
def test_lines_that_look_whole_at_once_are_whole_one_by_one(text: str, columns: int) -> None:
    if _is_plain(text, columns, ","):
        lines = [line for line in text.replace("\r\n", "\n").split("\n") if line]
        assert all(line.count(",") == columns - 1 and "\r" not in line for line in lines)


def test_whole_lines_look_whole() -> None:
    for text in ("a,b\n1,2\n", "a,b\n1,2", "a,b\r\n1,2\r\n"):
        assert _is_plain(text, 2, ",")
    for text in ("a,b\n1\n", "a,b\n1,2,3\n", "a,b\n1,2,3\n4\n", 'a,b\n"1",2\n', "a,b\r1,2\n"):
        assert not _is_plain(text, 2, ",")


@SIZES
def test_a_quote_inside_a_cell_opens_nothing(tmp_path: Path, size: int) -> None:
    """`5" pipe` holds a quote that belongs to the text, so counting quotes does not tell which rows go on."""
    rows = [
        f'{stamp(0)},5" pipe,1,2\n',
        f'{stamp(1)},"two\nlines",1,2\n',
        f'{stamp(2)},5" pipe,1,2\n',
        f"{stamp(3)},a,1,2\n",
    ]
    path = write(tmp_path / "a.csv", "timestamp,link,rtt,loss\n" + "".join(rows))
    columns = Columns(("timestamp", "link"), ("rtt", "loss"), frozenset())
    found = check(path, size, columns, CellFormat())
    assert joined(found)["link"].tolist() == ['5" pipe', "two\nlines", '5" pipe', "a"]
