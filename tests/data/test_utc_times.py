"""Times in UTC read at once, against pandas one by one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netanomaly.data import utc_times
from netanomaly.data.utc_times import alike, utc_nanoseconds

moments = st.datetimes(pd.Timestamp("1826-01-01").to_pydatetime(), pd.Timestamp("2115-12-31").to_pydatetime())


@settings(max_examples=200, deadline=None)
@given(st.lists(moments, min_size=1, max_size=5), st.integers(0, 9), st.sampled_from("T "), st.integers(1, 3))
def test_they_are_the_moments_of_pandas(times: list[pd.Timestamp], digits: int, between: str, at_once: int) -> None:
    texts = []
    for time in times:
        fraction = f".{time.microsecond * 1000:09d}"[: digits + 1] if digits else ""
        texts.append(f"{time:%Y-%m-%d}{between}{time:%H:%M:%S}{fraction}Z")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(utc_times, "_AT_ONCE", at_once)
        found = utc_nanoseconds(texts)
    assert found is not None
    assert found.dtype == np.int64
    assert found.tolist() == [pd.Timestamp(text).as_unit("ns").value for text in texts]


@pytest.mark.parametrize(
    "texts",
    [
        [],
        [None],
        [5],
        ["2026-11-29T16:59:51"],
        ["2026-11-29T16:59:51+00:00"],
        ["2026-11-29T16:59Z"],
        ["2026-11-29t16:59:51Z"],
        [" 2026-11-29T16:59:51Z"],
        ["2026-11-29T16:59:51Z\n"],
        ["2026-02-30T16:59:51Z"],
        ["2026-11-29T16:59:60Z"],
        ["2026-11-29T24:00:00Z"],
        ["1825-11-29T16:59:51Z"],
        ["2116-11-29T16:59:51Z"],
        ["2600-11-29T16:59:51Z"],
        ["\u0662026-11-29T16:59:51Z"],
        ["2026-11-29T16:59:51Z", "1825-11-29T16:59:51Z"],
        ["2026-11-29T16:59:51Z", "2116-11-29T16:59:51Z"],
        ["2026-11-29T16:59:51.1234567890Z"],
        ["2026-11-29T16:59:51Z", None],
        ["2026-11-29T16:59:51Z", pd.Timestamp("2026-11-29", tz="UTC")],
        ["2026-11-29T16:59:51Z", "2026-11-29T16:59:51"],
        ["2026-11-29T16:59:51Z", "2026-11-29T16:59:5aZ"],
        ["2026-11-29T16:59:51Z", "2026-11-29 16:59:51Z"],
        ["2026-11-29T16:59:51Z", "2026-11-29T16:59:51.5Z"],
    ],
    ids=repr,
)
@pytest.mark.parametrize("at_once", [1, 100])
def test_anything_else_is_left_to_others(texts: list[object], at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(utc_times, "_AT_ONCE", at_once)
    assert utc_nanoseconds(texts) is None


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text("09a:/\u0660", min_size=1, max_size=3), min_size=1, max_size=4))
def test_alike_is_alike_character_by_character(texts: list[str]) -> None:
    def shape(text: str) -> str:
        return "".join("0" if character in "0123456789" else character for character in text)

    assert alike(texts, texts[0]) == (len({shape(text) for text in texts}) == 1)
