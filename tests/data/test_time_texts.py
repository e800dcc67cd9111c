"""Moments as text."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from netanomaly.data.time_texts import format_times
from netanomaly.data.timestamps import TimeFormat, parse_times

FORMATS = (TimeFormat(), *(TimeFormat("elapsed", unit) for unit in ("s", "ms", "us", "ns")))
MOMENTS = st.lists(st.integers(-(10**15), 10**15).map(lambda n: n * 1000), min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("times", "form", "expected"),
    [
        ([0, 10**9], TimeFormat(), ["1970-01-01T00:00:00Z", "1970-01-01T00:00:01Z"]),
        ([0, 5 * 10**8], TimeFormat(), ["1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00.500Z"]),
        ([10**9 + 1], TimeFormat(), ["1970-01-01T00:00:01.000000001Z"]),
        ([0, 15 * 10**8, -(10**9)], TimeFormat("elapsed", "s"), ["0", "1.5", "-1"]),
        ([1_700_000_000_500_000_000], TimeFormat("epoch", "ms"), ["1700000000500"]),
        ([], TimeFormat(), []),
    ],
)
def test_texts(times: list[int], form: TimeFormat, expected: list[str]) -> None:
    assert format_times(np.array(times, dtype=np.int64), form) == expected


@given(times=MOMENTS, form=st.sampled_from(FORMATS))
@examples(deadline=None)
def test_they_are_read_as_what_they_were(times: list[int], form: TimeFormat) -> None:
    texts = format_times(np.array(times, dtype=np.int64), form)
    read = parse_times(pd.Series(texts, dtype="str"), form, "start", lambda row: f"line {row}")
    np.testing.assert_allclose(read, times, rtol=0, atol=0 if form.unit is None else 1000)
