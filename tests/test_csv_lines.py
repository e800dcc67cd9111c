"""Lines of answers, against what pandas writes."""

from __future__ import annotations

import csv
import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netanomaly.csv_lines import DIGITS, csv_lines
from netanomaly.data.formula_cells import original

names = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from(',"\n\r;'), max_size=8)
shares = st.integers(0, 10**DIGITS).map(lambda n: n / 10**DIGITS) | st.floats(0, 1)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(names, names, shares, shares), min_size=1, max_size=6))
def test_cells_are_those_given_and_numbers_those_of_pandas(rows: list[tuple[str, str, float, float]]) -> None:
    frame = pd.DataFrame(rows, columns=["series", "label", "confidence", "p_a"])
    numbers_only = frame[["confidence", "p_a"]]
    expected = numbers_only.to_csv(index=False, header=False, float_format=f"%.{DIGITS}f", lineterminator="\n")
    found, wanted = (
        list(csv.reader(io.StringIO(text, newline=""))) for text in (csv_lines(frame, 2).decode(), expected)
    )
    assert [[original(cell) for cell in row[:2]] for row in found] == [[series, label] for series, label, *_ in rows]
    numbers = [np.array([row[-2:] for row in table], dtype=float) for table in (found, wanted)]
    np.testing.assert_allclose(*numbers, rtol=0, atol=1.0001 / 10**DIGITS)  # a tie may go the other way


def test_the_bytes_are_those_of_pandas_for_probabilities_of_a_model() -> None:
    draw = np.random.default_rng(0)
    frame = pd.DataFrame(draw.dirichlet(np.ones(3), 2000), columns=["p_a", "p_b", "p_c"])
    frame.insert(0, "series", ["plain", 'quo"te', "com,ma", "Störung"] * 500)
    expected = frame.to_csv(index=False, header=False, float_format=f"%.{DIGITS}f", lineterminator="\n")
    assert csv_lines(frame, 1) == expected.encode()


@pytest.mark.parametrize(("value", "text"), [(0.0, "0.0000000"), (1.0, "1.0000000"), (0.99999999, "1.0000000")])
def test_the_ends_of_the_range(value: float, text: str) -> None:
    assert csv_lines(pd.DataFrame({"series": ["a"], "p": [value]}), 1) == f"a,{text}\n".encode()


def test_no_rows_are_no_lines() -> None:
    assert csv_lines(pd.DataFrame({"series": [], "p": []}), 1) == b""
