"""Window, stem and baseline from the incidents of the training rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from config_trees import tree
from netanomaly.auto_spans import (
    LONGEST,
    LONGEST_BASELINE,
    LONGEST_STEM,
    SHORTEST,
    SHORTEST_BASELINE,
    Incidents,
    auto_spans,
    incidents_of,
    with_spans,
)
from netanomaly.config import parse_config


def _labels(text: str) -> np.ndarray:
    """n: normal, a and b: anomalies, a dot: no label."""
    names = {"n": "normal", "a": "a", "b": "b", ".": ""}
    return np.array([names[letter] for letter in text], dtype=object)


@pytest.mark.parametrize(
    ("text", "lengths", "calm"),
    [
        ("nnnn", [], []),
        ("nnaann", [2], [None]),
        ("aannnbb", [2, 2], [None, 3]),
        ("aabb", [2, 2], [None, 0]),  # another label is another incident
        ("a.an..n..bb", [3, 2], [None, 6]),  # rows without a label are no end, and are calm
        ("...", [], []),
    ],
)
def test_incidents_of_a_segment(text: str, lengths: list[int], calm: list[int | None]) -> None:
    found = incidents_of([_labels(text)], "normal")
    assert found.lengths.tolist() == lengths
    assert [None if np.isnan(one) else one for one in found.calm] == calm


def test_where_unlabelled_rows_lack_metrics_they_end_an_incident_and_nothing_is_calm() -> None:
    found = incidents_of([_labels("nn..a.aan..b")], "normal", has_label_gaps=True)
    assert found.lengths.tolist() == [1, 2, 1]
    assert np.isnan(found.calm).all()


def test_an_incident_does_not_go_on_in_the_next_segment() -> None:
    found = incidents_of([_labels("naa"), _labels("aan")], "normal")
    assert found.lengths.tolist() == [2, 2]
    assert np.isnan(found.calm).all()


def test_without_a_label_called_normal_every_run_is_an_incident() -> None:
    assert incidents_of([_labels("aaabb")], "normal").lengths.tolist() == [3, 2]


@pytest.mark.parametrize(
    ("lengths", "calm", "window", "stem", "baseline"),
    [
        ([2, 2, 2], [np.nan, 8, 8], 5, 4, 32),  # 2 + 3/4 of 8
        ([66] * 9, [120] * 9, 64, 9, 288),  # the longest window
        ([40] * 8 + [100] * 8, [200] * 16, 64, 9, 400),  # baselines go by the longer incidents
        ([5000], [np.nan], 64, 9, 4096),
        ([1], [np.nan], 2, 1, 32),
    ],
)
def test_spans_by_hand(lengths: list[int], calm: list[float], window: int, stem: int, baseline: int) -> None:
    found = auto_spans(Incidents(np.array(lengths, dtype=float), np.array(calm, dtype=float)))
    assert (found.window, found.stem, found.baseline) == (window, stem, baseline)


@given(st.lists(st.tuples(st.integers(1, 10**6), st.none() | st.integers(0, 10**6)), max_size=30))
def test_spans_are_within_their_bounds(pairs: list[tuple[int, int | None]]) -> None:
    calm = [np.nan if one is None else one for _, one in pairs]
    found = auto_spans(Incidents(np.array([one for one, _ in pairs], dtype=float), np.array(calm, dtype=float)))
    reach = found.window + found.stem - 1
    assert SHORTEST <= reach <= LONGEST
    assert 1 <= found.stem <= min(LONGEST_STEM, max(1, reach // 2))
    assert max(SHORTEST_BASELINE, reach) <= found.baseline <= LONGEST_BASELINE


def _with(**given_spans: Any) -> tuple[Any, Any, Any]:
    made = tree("model", {key: value for key, value in given_spans.items() if key != "baselines"})
    made["channels"] = {"baselines": given_spans.get("baselines", "auto")}
    found = with_spans(parse_config(made), [_labels("aannnnnnnnaannnnnnnnaan")])
    return found.model.window, found.model.stem, found.channels.baselines


def test_auto_becomes_numbers() -> None:
    assert _with() == (5, 4, (32,))


def test_what_is_given_stays() -> None:
    assert _with(window="8s") == ("8s", 4, (32,))
    assert _with(window=7, stem=2, baselines=[64, "auto"]) == (7, 2, (64, 32))
    assert _with(window=7, stem=2, baselines=[64]) == (7, 2, (64,))
