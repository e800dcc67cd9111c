"""Rows labelled a chunk at a time: the answers of all rows at once, wherever the chunks are cut."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from netanomaly import Predictor
from netanomaly.build import history_rows
from netanomaly.chunked import ChunkedPredictor
from netanomaly.data.ingest import NO_PART, Table, table_of_frames
from netanomaly.errors import DataError
from streams import MODELS, WINDOW, form_of, hard_network, predictor, same_answers, tables


@pytest.fixture(scope="module")
def whole(plain: Predictor, frame: pd.DataFrame) -> pd.DataFrame:
    answers = plain.predict(frame)
    assert answers["label"].nunique() == 4  # every class, and rows without any value
    return answers


def chunked(trained: Predictor, given_tables: Sequence[Table]) -> pd.DataFrame:
    return pd.concat(list(ChunkedPredictor(trained).label(given_tables)), ignore_index=True)


def cut(trained: Predictor, frame: pd.DataFrame, cuts: Sequence[int]) -> list[Table]:
    bounds = [0, *sorted({cut for cut in cuts if 0 < cut < len(frame)}), len(frame)]
    pieces = [frame.iloc[first:stop] for first, stop in pairwise(bounds)]
    return [table_of_frames([(piece, NO_PART, "frame")], form_of(trained)) for piece in pieces]


@pytest.mark.parametrize("rows", [1, 7, 60, 10_000])
def test_chunks_of_any_size_have_the_answers_of_all_rows(
    plain: Predictor, frame: pd.DataFrame, whole: pd.DataFrame, rows: int
) -> None:
    same_answers(chunked(plain, tables(plain, frame, rows)), whole)


@examples(max_examples=8, deadline=None)
@given(st.sets(st.integers(1, 267), max_size=9))
def test_chunks_may_be_cut_anywhere(cuts: set[int]) -> None:
    trained, rows = predictor(), hard_network()
    same_answers(chunked(trained, cut(trained, rows, list(cuts))), trained.predict(rows))


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_every_kind_of_model_answers_alike(frame: pd.DataFrame, model: dict[str, Any]) -> None:
    trained = predictor(**model)
    same_answers(chunked(trained, tables(trained, frame, 45)), trained.predict(frame))


@pytest.mark.parametrize("duplicates", ["last", "mean"])
@pytest.mark.parametrize("rows", [40, 41, 73, 10_000])
def test_rows_that_share_a_step_are_all_seen(duplicates: str, rows: int) -> None:
    trained, frame = predictor(duplicates=duplicates), hard_network(shared=True)
    same_answers(chunked(trained, tables(trained, frame, rows)), trained.predict(frame))


@pytest.mark.parametrize("duplicates", ["last", "mean"])
def test_one_series_may_be_cut_within_a_step(duplicates: str) -> None:
    trained, frame = predictor(duplicates=duplicates), hard_network(shared=True)
    frame = frame[frame["link"] == "w"].reset_index(drop=True)
    same_answers(chunked(trained, tables(trained, frame, 1)), trained.predict(frame))


@pytest.mark.parametrize("duplicates", ["last", "mean"])
def test_a_step_may_be_cut_where_other_series_come_in_between(duplicates: str) -> None:
    trained, frame = predictor(duplicates=duplicates), hard_network(40, shared=True)
    same_answers(chunked(trained, tables(trained, frame, 1)), trained.predict(frame))


def test_rows_within_a_chunk_may_come_in_any_order(plain: Predictor, frame: pd.DataFrame, whole: pd.DataFrame) -> None:
    pieces = [frame.iloc[first : first + 50] for first in range(0, len(frame), 50)]
    shuffled = pd.concat([piece.sample(frac=1, random_state=number) for number, piece in enumerate(pieces)])
    found = chunked(plain, tables(plain, shuffled, 50))
    found.index = shuffled.index
    same_answers(found.sort_index(), whole)


def test_series_may_follow_each_other_or_take_turns(plain: Predictor, frame: pd.DataFrame, whole: pd.DataFrame) -> None:
    after_each_other = frame.sort_values("link", kind="stable")
    found = chunked(plain, tables(plain, after_each_other, 30))
    found.index = after_each_other.index
    same_answers(found.sort_index(), whole)


def test_answers_come_as_soon_as_they_are_known(plain: Predictor, frame: pd.DataFrame) -> None:
    asked = 0

    def watched() -> Iterator[Table]:
        nonlocal asked
        for table in tables(plain, frame, 40):
            asked += 1
            yield table

    seen = [(asked, len(answers)) for answers in ChunkedPredictor(plain).label(watched())]
    assert seen == [(number + 1, min(40, len(frame) - 40 * number)) for number in range(len(seen))]


def test_no_more_is_remembered_than_what_later_rows_depend_on(plain: Predictor) -> None:
    frame = hard_network(400)
    stream = ChunkedPredictor(plain)
    for _ in stream.label(tables(plain, frame, 200)):
        assert max(len(series.feed._times) for series in stream._series.values()) <= history_rows(plain.config)
        assert sum(len(series.waiting) for series in stream._series.values()) == 0
        assert len(stream._chunks) == 0


# What is refused


def refusal(trained: Predictor, given_tables: Sequence[Table]) -> str:
    with pytest.raises(DataError) as caught:
        list(ChunkedPredictor(trained).label(given_tables))
    return str(caught.value)


@pytest.mark.parametrize("duplicates", ["error", "last"])
def test_rows_that_go_back_in_time_between_chunks_are_refused(frame: pd.DataFrame, duplicates: str) -> None:
    trained = predictor(duplicates=duplicates)
    late = frame[frame["link"] == "w"].iloc[[10]]
    mixed = pd.concat([frame.iloc[:120], late.set_index(pd.Index([777])), frame.iloc[120:]])
    said = refusal(trained, tables(trained, mixed.drop(index=late.index), 60))
    assert said.startswith(
        f"frame: row 777: series 'w' goes back in time ({late['timestamp'].iloc[0]} after a later row)"
    )
    assert "--chunk-rows 0" in said


@pytest.mark.parametrize("rows", [60, 10_000])
def test_rows_that_share_a_step_are_refused_where_that_is_an_error(
    plain: Predictor, frame: pd.DataFrame, rows: int
) -> None:
    again = frame[frame["link"] == "w"].iloc[[30]].set_index(pd.Index([777]))
    place = frame.index.get_loc(frame[frame["link"] == "w"].index[30]) + 1
    said = refusal(plain, tables(plain, pd.concat([frame.iloc[:place], again, frame.iloc[place:]]), rows))
    assert said.startswith(f"frame: row 777: {again['timestamp'].iloc[0]} is within one interval of an earlier row of")
    assert "series 'w'" in said and "data.duplicates" in said


def test_a_step_that_goes_on_in_the_next_chunk_is_refused_where_that_is_an_error(
    plain: Predictor, frame: pd.DataFrame
) -> None:
    rows = frame[frame["link"] == "w"].iloc[[*range(20), 19]]
    said = refusal(plain, tables(plain, rows.reset_index(drop=True), 20))
    assert re.match(r"frame: row 20: .* is within one interval of an earlier row of series 'w'", said)


@pytest.mark.parametrize("rows", [1, 3, 100])
def test_fewer_rows_than_a_window_give_no_answer_at_all(plain: Predictor, frame: pd.DataFrame, rows: int) -> None:
    few = frame.groupby("link").head(WINDOW - 1)
    labelled = ChunkedPredictor(plain).label(tables(plain, few, rows))
    with pytest.raises(DataError) as caught:
        next(labelled)
    with pytest.raises(DataError) as at_once:
        plain.predict(few)
    assert str(caught.value) == str(at_once.value)


def test_no_answer_is_given_before_a_window_is_full(plain: Predictor, frame: pd.DataFrame) -> None:
    one = frame[frame["link"] == "w"].iloc[:20]
    sizes = [len(answers) for answers in ChunkedPredictor(plain).label(tables(plain, one, 3))]
    assert sizes == [3] * 6 + [2]
    same_answers(chunked(plain, tables(plain, one, 3)), plain.predict(one))


def test_a_window_of_one_row_with_nothing_to_look_back_to() -> None:
    trained, frame = predictor(window=1, stem=1, kinds=("level",), counter=False), hard_network(40)
    same_answers(chunked(trained, tables(trained, frame, 7)), trained.predict(frame))


def test_probabilities_are_zero_where_nothing_was_measured(plain: Predictor, frame: pd.DataFrame) -> None:
    found = chunked(plain, tables(plain, frame, 30))
    empty = frame[["rtt_ms", "throughput_bps", "loss_ratio"]].isna().all(axis=1)
    assert empty.sum() >= 4
    assert (found.loc[empty, "label"] == "no_data").all()
    assert np.abs(found.loc[empty, ["p_normal", "p_congestion", "p_packet_loss"]].to_numpy()).max() == 0


def test_channels_are_computed_in_as_many_threads_as_the_config_says(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[int | None] = []

    class Pool(ThreadPoolExecutor):
        def __init__(self, workers: int | None = None) -> None:
            used.append(workers)
            super().__init__(workers)

    monkeypatch.setattr("netanomaly.chunked.ThreadPoolExecutor", Pool)
    one = predictor()
    monkeypatch.setattr(one, "config", one.config.model_copy(update={"threads": 1}))
    table = table_of_frames([(hard_network(), NO_PART, "rows")], form_of(one))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        list(ChunkedPredictor(one).label([table]))
    finally:
        torch.set_num_threads(before)
    assert set(used) == {1}
