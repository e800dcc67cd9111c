"""Fewer points, and no spike lost."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from netanomaly.report.decimation import block_size, block_starts, extremes
from netanomaly.report.stretches import Stretch, joined_stretches, stretches, thinned

VALUES = st.lists(st.floats(-100, 100) | st.just(np.nan), min_size=1, max_size=300).map(np.array)


@given(VALUES, st.integers(2, 50))
def test_points_keep_every_block_s_range_and_stay_near_their_place(values: np.ndarray, points: int) -> None:
    block = block_size(len(values), points)
    places, found = block_starts(len(values), block), extremes(values, block)
    assert len(places) == len(found) <= points + 2
    assert (np.diff(places) >= 0).all() and places[-1] < len(values)
    for start in range(0, len(values), block):
        inside = values[start : start + block]
        mine = found[(np.minimum(places, len(values) - 1) >= start) & (places < start + block)]
        known = inside[~np.isnan(inside)]
        if len(known):
            assert np.nanmin(mine) == known.min() and np.nanmax(mine) == known.max()
        else:
            assert np.isnan(mine).all()


@given(VALUES)
def test_where_there_is_room_every_row_is_a_point(values: np.ndarray) -> None:
    assert block_size(len(values), 300) == 1
    np.testing.assert_array_equal(extremes(values, 1), values)


@given(st.lists(st.sampled_from(["normal", "a", "b"]), min_size=1, max_size=80), st.integers(1, 9))
def test_a_block_is_normal_only_if_all_its_rows_are(labels: list[str], block: int) -> None:
    found = thinned(np.array(labels, dtype=object), block, ("normal",))
    for number, start in enumerate(range(0, len(labels), block)):
        rare = [label for label in labels[start : start + block] if label != "normal"]
        assert found[number] == (rare[0] if rare else "normal")


def test_a_missing_row_ends_a_stretch() -> None:
    labels = np.array(["a", "a", "a", "b", "normal"], dtype=object)
    found = stretches(labels, np.array([0, 10, 30, 40, 50]), 10, ("normal",))
    assert [(one.label, one.start, one.last) for one in found] == [("a", 0, 10), ("a", 30, 30), ("b", 40, 40)]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 999), st.integers(0, 30)), max_size=60))
def test_many_stretches_are_joined_and_cover_what_they_covered(given_spans: list[tuple[str, int, int]]) -> None:
    spans = [Stretch(label, start, start + width) for label, start, width in given_spans]
    found = joined_stretches(spans, 10)
    assert len(found) <= max(10, 2 * 11) and {one.label for one in found} == {one.label for one in spans}
    for one in spans:
        assert any(w.label == one.label and w.start <= one.start and one.last <= w.last for w in found)
