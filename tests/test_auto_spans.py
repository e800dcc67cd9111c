"""Window, stem and baseline from the incidents of the training rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
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
    Lengths,
    auto_spans,
    incident_lengths,
    with_spans,
)
from netanomaly.build import GridSpans
from netanomaly.config import load_config, parse_config
from netanomaly.prepare import prepare
from networks import network, settings

MAX_GAP = 2
THREE = "aannnnnnnnaannnnnnnnaan"


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
        ("a.an..n..bb", [3, 2], [None, 6]),  # a few rows without a label are no end, and are calm
        ("a...an...nbbn", [1, 1, 2], [None, 0, 1]),  # more of them are, and nothing is known of before
        ("aan...nnn...bb", [2, 2], [None, 0]),
        ("...", [], []),
    ],
)
def test_incident_lengths_a_segment(text: str, lengths: list[int], calm: list[int | None]) -> None:
    found = incident_lengths([_labels(text)], "normal", MAX_GAP)
    assert found.incidents.tolist() == lengths
    assert [None if np.isnan(one) else one for one in found.calm] == calm


def test_where_unlabelled_rows_lack_metrics_they_end_an_incident_and_nothing_is_calm() -> None:
    found = incident_lengths([_labels("nn..a.aan..b")], "normal", MAX_GAP, has_label_gaps=True)
    assert found.incidents.tolist() == [1, 2, 1]
    assert np.isnan(found.calm).all()


def test_an_incident_does_not_go_on_in_the_next_segment() -> None:
    found = incident_lengths([_labels("naa"), _labels("aan")], "normal", MAX_GAP)
    assert found.incidents.tolist() == [2, 2]
    assert np.isnan(found.calm).all()


def test_without_a_label_called_normal_every_run_is_an_incident() -> None:
    assert incident_lengths([_labels("aaabb")], "normal", MAX_GAP).incidents.tolist() == [3, 2]


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
    found = auto_spans(Lengths(np.array(lengths, dtype=float), np.array(calm, dtype=float)))
    assert (found.window, found.stem, found.baseline) == (window, stem, baseline)


@given(st.lists(st.tuples(st.integers(1, 10**6), st.none() | st.integers(0, 10**6)), max_size=30))
def test_spans_are_within_their_bounds(pairs: list[tuple[int, int | None]]) -> None:
    calm = [np.nan if one is None else one for _, one in pairs]
    found = auto_spans(Lengths(np.array([one for one, _ in pairs], dtype=float), np.array(calm, dtype=float)))
    reach = found.window + found.stem - 1
    assert SHORTEST <= reach <= LONGEST
    assert 1 <= found.stem <= min(LONGEST_STEM, max(1, reach // 2))
    assert max(SHORTEST_BASELINE, reach) <= found.baseline <= LONGEST_BASELINE


def _with(**given_spans: Any) -> tuple[Any, Any, Any]:
    made = tree("model", {key: value for key, value in given_spans.items() if key != "baselines"})
    made["channels"] = {"baselines": given_spans.get("baselines", "auto")}
    found = with_spans(parse_config(made), [_labels(THREE)], GridSpans(10**9, MAX_GAP))
    return found.model.window, found.model.stem, found.channels.baselines


def test_auto_becomes_numbers() -> None:
    assert _with() == (5, 4, (32,))


def test_what_is_given_stays() -> None:
    assert _with(window="8s") == ("8s", 4, (44,))
    assert _with(window=7, stem=2, baselines=[64, "auto"]) == (7, 2, (64, 32))
    assert _with(window=7, stem=2, baselines=[64]) == (7, 2, (64,))
    assert _with(window=3) == (3, 1, (32,))  # the others fit what is given
    assert _with(window=40) == (40, 9, (192,))
    assert _with(stem=2) == (7, 2, (32,))


@pytest.mark.parametrize(("patch", "window"), [(1, 5), (2, 4), (3, 3), (8, 8)])
def test_a_window_that_is_found_is_of_whole_patches_and_nothing_reaches_over_it(patch: int, window: int) -> None:
    assert _with(sequence_model={"patch": patch})[0] == window
    choice = {"patch": patch, "local": 9, "depth": 2, "memory": "blocks", "mask": "prefix", "prefix": 7}
    made = tree("model", {"sequence_model": choice, "read_out": "mean"})
    model = with_spans(parse_config(made), [_labels(THREE)], GridSpans(10**9, MAX_GAP)).model
    assert (model.sequence_model.local, model.sequence_model.prefix) == (window // patch,) * 2


def _by_hand(text: str, *, whole: bool) -> list[tuple[int, int | None]]:
    """Length and calm of the incidents, by going through the rows one by one."""
    found: list[tuple[int, int | None]] = []
    first = last = ended = -1
    known = unlabelled = 0  # from which row on no long gap came; rows of the gap that is going on
    for row, letter in enumerate([*text, "n"]):
        unlabelled = unlabelled + 1 if letter == "." else 0
        is_end = letter != "." if whole else True
        if first >= 0 and letter != text[first] and (is_end or unlabelled > MAX_GAP):
            found.append((last - first + 1, first - max(known, ended + 1) if whole and ended >= 0 else None))
            first, ended = -1, last
        if unlabelled > MAX_GAP or (letter == "." and known == row):
            known = row + 1
        if letter in "ab":
            first, last = (row, row) if first < 0 else (first, row)
    return found


@given(st.text("nab.", max_size=40), st.booleans())
def test_incidents_as_found_row_by_row(text: str, has_label_gaps: bool) -> None:
    found = incident_lengths([_labels(text)], "normal", MAX_GAP, has_label_gaps=has_label_gaps)
    calm = [None if np.isnan(one) else int(one) for one in found.calm]
    assert list(zip(found.incidents.tolist(), calm, strict=True)) == _by_hand(text, whole=not has_label_gaps)


@given(st.lists(st.text("nab.", max_size=12), max_size=6), st.randoms())
def test_the_order_of_the_segments_does_not_matter(texts: list[str], random: Any) -> None:
    turned = random.sample(texts, len(texts))
    one, other = (
        auto_spans(incident_lengths([_labels(text) for text in some], "normal", MAX_GAP)) for some in (texts, turned)
    )
    assert one == other


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=9), st.integers(1, 9))
def test_longer_incidents_never_shorten_what_is_looked_at(lengths: list[int], more: int) -> None:
    calm = np.full(len(lengths), np.nan)
    short, long = (auto_spans(Lengths(np.array(lengths, dtype=float) + extra, calm)) for extra in (0, more))
    assert long.window + long.stem >= short.window + short.stem
    assert long.baseline >= short.baseline


def test_spans_without_incidents_are_the_longest() -> None:
    found = auto_spans(incident_lengths([_labels("nnnn"), _labels("....")], "normal", MAX_GAP))
    assert (found.window, found.stem, found.baseline) == (64, 9, 288)


OPEN: dict[str, Any] = {"channels": {"baselines": "auto"}, "model": {"window": "auto", "stem": "auto"}}


def _prepared_spans(frame: pd.DataFrame, split: dict[str, Any]) -> tuple[Any, ...]:
    config = prepare(load_config(settings(Path("nowhere"), data={"split": split}, **OPEN)), frame).config
    return config.model.window, config.model.stem, config.channels.baselines


@pytest.mark.parametrize("by", ["series", "time", "table"])
def test_only_training_rows_count(tmp_path: Path, by: str) -> None:
    """Lengths of any other length in all other rows, those of no part too, change nothing; in these rows they do."""
    frame = network("abcdef", 300)
    at = np.arange(len(frame)) % 300
    split: dict[str, Any] = {"by": by, "validation": ["e"], "test": ["f"]}
    if by == "series":
        split["train"] = ["a", "b", "c"]  # d is in no part
        learnt = frame["link"].isin(["a", "b", "c"]).to_numpy()
    elif by == "time":
        split = {"by": by, "validation": "2026-03-01T00:02:30Z", "test": "2026-03-01T00:03:45Z", "purge": 0}
        learnt = at < 150
    else:
        (tmp_path / "split.csv").write_text(
            "series,t_start,t_end,split\na,2026-03-01T00:01:40Z,,train\na,,2026-03-01T00:01:40Z,test\n"
            "b,,2026-03-01T00:03:20Z,train\nc,,,validation\n",
            encoding="utf-8",
        )
        split = {"by": by, "path": str(tmp_path / "split.csv"), "purge": 0}
        learnt = ((frame["link"] == "a") & (at >= 100) | (frame["link"] == "b") & (at < 200)).to_numpy()
    single = np.where(at % 2 == 0, "congestion", "normal")  # incidents of one row
    before = _prepared_spans(frame, split)
    assert _prepared_spans(frame.assign(label=np.where(learnt, frame["label"], single)), split) == before
    assert _prepared_spans(frame.assign(label=np.where(learnt, single, frame["label"])), split) == (2, 1, (32,))
    assert before != (2, 1, (32,))
