from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from netanomaly.data.cells import CellFormat, as_text, to_numbers
from netanomaly.errors import DataError

MISSING = ("", "NaN", "nan")


def convert(*cells: str, missing: tuple[str, ...] = MISSING, decimal: str = ".", percent: bool = False) -> list[float]:
    texts = pd.Series(list(cells), dtype="str")
    cells = CellFormat(missing=missing, decimal=decimal)
    return to_numbers(texts, cells, percent, "rtt", lambda row: f"f.csv: line {row + 2}").tolist()


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("1", 1.0),
        ("-7", -7.0),
        ("+7", 7.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("+.5", 0.5),
        ("1e-3", 1e-3),
        ("1E+3", 1e3),
        ("007", 7.0),
        (" 7 ", 7.0),
        ("\t7", 7.0),
        ("1e-400", 0.0),
        ("0.1234567890123456789012345", 0.1234567890123456789012345),
        ("123456789012345678901234567890", 123456789012345678901234567890.0),
    ],
)
def test_a_number_is_read(cell: str, value: float) -> None:
    assert convert(cell) == [value]


@pytest.mark.parametrize("cell", ["", "   ", "NaN", "nan", " nan "])
def test_a_missing_marker_is_nan(cell: str) -> None:
    assert np.isnan(convert(cell)).all()


def test_a_declared_marker_replaces_the_usual_ones() -> None:
    assert np.isnan(convert("-", missing=("-",))).all()
    with pytest.raises(DataError, match="found 'nan'"):
        convert("nan", missing=("-",))


def test_a_declared_marker_may_look_like_a_number() -> None:
    np.testing.assert_equal(convert("-1", "-10", "1", missing=("-1",)), [np.nan, -10.0, 1.0])


def test_a_decimal_comma_is_read_when_declared() -> None:
    assert convert("12,5", "-,5", "1,5e3", "7", decimal=",") == [12.5, -0.5, 1500.0, 7.0]


def test_a_percent_sign_is_read_when_declared() -> None:
    assert convert("5%", "5 %", "5", "0.5%", percent=True) == [5.0, 5.0, 5.0, 0.5]


@pytest.mark.parametrize(
    ("cell", "advice"),
    [
        ("abc", "if it means 'not measured' add it to data.missing"),
        ("N/A", "if it means 'not measured' add it to data.missing"),
        ("True", "if it means 'not measured' add it to data.missing"),
        ("0x10", "expected a number"),
        ("1_000", "expected a number"),
        ("1 000", "expected a number"),
        ("1e", "expected a number"),
        ("--1", "expected a number"),
        ("12.3 ms", "name the unit in data.metrics"),
        ("12Mbit/s", "name the unit in data.metrics"),
        ("12,5", "set data.decimal: ','"),
        ("5%", "set the metric's unit: '%'"),
        ("inf", "not a finite number"),
        ("-Infinity", "not a finite number"),
        ("1e400", "that is not too large"),
        ("\u0661\u0662", "expected a number"),
        ("\uff11", "expected a number"),
    ],
)
def test_a_bad_cell_is_quoted_with_advice(cell: str, advice: str) -> None:
    with pytest.raises(DataError) as caught:
        convert(cell)
    assert f"found '{cell}'" in str(caught.value)
    assert advice in str(caught.value)


def test_a_decimal_point_among_declared_commas_is_refused_with_advice() -> None:
    with pytest.raises(DataError, match=r"found '12\.5', expected a number with a decimal comma.*data\.decimal: '\.'"):
        convert("12.5", decimal=",")


def test_the_first_bad_row_is_named_with_its_place_and_column() -> None:
    with pytest.raises(DataError, match=r"^f\.csv: line 4, column 'rtt': found 'x'"):
        convert("1", "", "x", "y")


def test_a_long_bad_cell_is_cut_in_the_message() -> None:
    with pytest.raises(DataError) as caught:
        convert("x" * 10_000)
    assert len(str(caught.value)) < 200


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=12) | st.text("0123456789.eE+- ,%xinfaN", max_size=12))
@example("1\x00")
@example("0\x1f")  # a space to str.strip, as everywhere here, but not to float
def test_any_text_is_the_number_python_reads_or_missing_or_refused(cell: str) -> None:
    try:
        (value,) = convert(cell)
    except DataError:
        return
    if math.isnan(value):
        assert cell.strip() in MISSING
    else:
        assert value == float(cell.strip())
        assert math.isfinite(value)


@pytest.mark.parametrize(
    "column",
    [
        ["x", None],
        [" x ", float("nan")],
        pd.array(["x", None], dtype="string"),
        pd.Categorical(["x", None]),
        pd.Series(["x", pd.NaT], dtype=object),
    ],
    ids=["text", "spaces", "string", "category", "objects"],
)
def test_nothing_is_empty_text_in_a_column_of_any_type(column: Any) -> None:
    assert as_text(pd.Series(column)).tolist() == ["x", ""]


def test_numbers_are_text_as_python_writes_them() -> None:
    assert as_text(pd.Series([1, 2])).tolist() == ["1", "2"]
    assert as_text(pd.Series([1.5, None])).tolist() == ["1.5", ""]
    assert as_text(pd.Series(pd.array([1, None], dtype="Int64"))).tolist() == ["1", ""]
