"""Text that a spreadsheet would run: marked when written, the same again when read."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tables import make_format, stamp, write

from netanomaly.csv_lines import csv_lines, csv_table
from netanomaly.data.formula_cells import neutral, original
from netanomaly.data.ingest import NO_PART, read_table

names = st.text("'=+-@\t\r ab1.;,\"\uff1d", max_size=6) | st.text(max_size=8)


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1+1",
        "-1+1",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "  =1",
        "\u00a0@x",
        "\uff1d1",
        "=cmd|' /C calc'!A0",
        "'=1",
        "+49-17",
    ],
)
def test_what_a_spreadsheet_would_run_gets_a_quote(text: str) -> None:
    assert neutral(text) == f"'{text}"


@pytest.mark.parametrize(
    "text", ["a07", "-5", "+1.5e-3", "-1,5", "5 %", "-", "--", "-inf", "NaN", "", "'", "it's", "a=1", "x'=1"]
)
def test_numbers_and_other_text_stay_as_they_are(text: str) -> None:
    assert neutral(text) == text == original(text)


@settings(max_examples=300, deadline=None)
@given(names)
@example("''=1")
@example("'-5")
def test_reading_gives_back_what_was_written(text: str) -> None:
    assert original(neutral(text)) == text


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(names, names), min_size=1, max_size=3))
def test_no_cell_begins_a_formula(rows: list[tuple[str, str]]) -> None:
    frame = pd.DataFrame([(series, label, -0.5) for series, label in rows], columns=["=series", "label", "x"])
    found = list(csv.reader(io.StringIO(csv_table(frame), newline="")))
    assert found[0] == ["'=series", "label", "x"] and {row[2] for row in found[1:]} == {"-0.5"}
    for cells, texts in zip(found[1:], rows, strict=True):
        assert [original(cell) for cell in cells[:2]] == list(texts)
        assert not [cell for cell in cells[:2] if cell.lstrip().startswith(("=", "@", "\uff1d"))]


@pytest.mark.parametrize("name", ["=1+1", "'=1", "-x", "@home", "+49-170-1", "a;=1"])
def test_a_series_keeps_its_name_from_file_to_file(name: str, tmp_path: Path) -> None:
    rows = pd.DataFrame({"time": [stamp(0)], "link": [name], "rtt": [1.5], "label": [name]})
    path = write(tmp_path / "links.csv", csv_table(rows))
    table = read_table({path: NO_PART}, make_format())
    assert (table.series[0], table.labels[0], table.values[0, 0]) == (name, name, 1.5)


def test_raw_text_is_written_as_it_is() -> None:
    frame = pd.DataFrame({"series": ["=1"], "p_a": [0.5]})
    assert csv_table(frame, raw_text=True) == "series,p_a\n=1,0.5\n"
    assert csv_lines(frame, 1, raw_text=True) == b"=1,0.5000000\n"


def test_a_small_table_is_what_pandas_writes() -> None:
    frame = pd.DataFrame(
        {"series": ["a", 'q"', "b,c"], "n": [1, 2, 3], "x": [0.1, float("nan"), 1e-9], "t": [None, "y", ""]}
    )
    assert csv_table(frame) == frame.to_csv(index=False, lineterminator="\n")
