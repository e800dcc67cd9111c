"""Rows labelled as they come: the answers of all rows at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from netanomaly import Predictor
from netanomaly.build import build_input_format
from netanomaly.config import parse_config
from netanomaly.data.arrays import table_of_plain_rows
from netanomaly.data.ingest import NO_PART, table_of_frames
from netanomaly.errors import BundleError, DataError
from netanomaly.streaming import StreamingPredictor
from networks import METRICS
from streams import (
    MODELS,
    content,
    grid_of,
    hard_network,
    parts,
    predictor,
    same_answers,
    streamed,
    unchanged,
)


@pytest.fixture(scope="module")
def whole(plain: Predictor, frame: pd.DataFrame) -> pd.DataFrame:
    return plain.predict(frame)


@pytest.mark.parametrize("rows", [1, 7, 10_000])
def test_rows_have_the_answers_of_all_at_once(
    plain: Predictor, frame: pd.DataFrame, whole: pd.DataFrame, rows: int
) -> None:
    same_answers(streamed(StreamingPredictor(plain), frame, rows), whole)


@examples(max_examples=6, deadline=None)
@given(st.sets(st.integers(1, 267), max_size=9))
def test_updates_may_be_cut_anywhere(cuts: set[int]) -> None:
    trained, rows = predictor(), hard_network()
    stream = StreamingPredictor(trained)
    same_answers(pd.concat([stream.update(part) for part in parts(rows, list(cuts))]), trained.predict(rows))


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_every_kind_of_model_answers_alike(frame: pd.DataFrame, model: dict[str, Any]) -> None:
    trained = predictor(**model)
    same_answers(streamed(StreamingPredictor(trained), frame, 45), trained.predict(frame))


def test_what_depends_on_the_row_alone() -> None:
    trained, frame = predictor(window=1, stem=1, kinds=("level",), counter=False), hard_network(40)
    same_answers(streamed(StreamingPredictor(trained), frame, 7), trained.predict(frame))


@pytest.mark.parametrize("rows", [3, 20])
@pytest.mark.parametrize("duplicates", ["last", "mean"])
def test_the_last_row_of_a_step_is_answered_as_with_all_of_them(duplicates: str, rows: int) -> None:
    trained, frame = predictor(duplicates=duplicates), hard_network(shared=True)
    found, whole, grid = (
        streamed(StreamingPredictor(trained), frame, rows),
        trained.predict(frame),
        grid_of(trained, frame),
    )
    last = np.array(
        [
            grid.segments[s].rows[step] == row
            for row, (s, step) in enumerate(zip(grid.row_segment, grid.row_step, strict=True))
        ]
    )
    assert (~last).sum() > 40
    same_answers(found[last], whole[last])


@pytest.mark.parametrize("duplicates", ["last", "mean"])
def test_an_earlier_row_of_a_step_is_answered_as_if_it_were_the_last(duplicates: str) -> None:
    trained, frame = predictor(duplicates=duplicates), hard_network(shared=True)
    frame = frame[frame["link"] == "w"].reset_index(drop=True)
    found = streamed(StreamingPredictor(trained), frame, 1)
    for count in range(20, 70, 3):
        same_answers(found.iloc[count - 1 : count], trained.predict(frame.iloc[:count]).tail(1))


def test_rows_within_an_update_may_come_in_any_order(
    plain: Predictor, frame: pd.DataFrame, whole: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = StreamingPredictor(plain)
    shuffled = [part.sample(frac=1, random_state=5) for part in parts(frame, range(0, len(frame), 50))]
    found = [stream.update(part) for part in shuffled]
    assert [answers.index.tolist() for answers in found] == [part.index.tolist() for part in shuffled]
    same_answers(pd.concat(found).sort_index(), whole)


def test_series_do_not_depend_on_each_other(plain: Predictor, frame: pd.DataFrame, whole: pd.DataFrame) -> None:
    after_each_other = frame.sort_values("link", kind="stable")
    same_answers(streamed(StreamingPredictor(plain), after_each_other, 25).sort_index(), whole)


def test_more_series_than_are_computed_together(
    plain: Predictor, frame: pd.DataFrame, whole: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("netanomaly.streaming.AT_ONCE", 3)
    same_answers(streamed(StreamingPredictor(plain), frame, 40), whole)


# What is given


def test_a_mapping_a_list_and_a_frame_mean_the_same(plain: Predictor, frame: pd.DataFrame) -> None:
    rows = frame[frame["link"] == "w"].head(12)
    records = rows.to_dict("records")
    by_frame, by_list, by_one = (StreamingPredictor(plain) for _ in range(3))
    wanted = by_frame.update(rows)
    same_answers(by_list.update(records), wanted)
    same_answers(pd.concat([by_one.update(record) for record in records]), wanted)
    assert by_list.update([{**records[-1], "timestamp": "2026-03-01T00:01:00Z"}]).index.tolist() == [0]


def test_the_index_and_the_rows_given_stay_as_they_are(plain: Predictor, frame: pd.DataFrame) -> None:
    rows = frame.head(6).set_index(pd.Index(list("abcdef")))
    before = rows.copy(deep=True)
    assert StreamingPredictor(plain).update(rows).index.tolist() == list("abcdef")
    pd.testing.assert_frame_equal(rows, before)


def test_answers_come_from_the_first_row_on(plain: Predictor, frame: pd.DataFrame) -> None:
    first = StreamingPredictor(plain).update(frame.head(1))
    enough = frame[frame["link"] == "w"].head(20)
    same_answers(first, plain.predict(enough).head(1))


# What is refused


def _bad(frame: pd.DataFrame, what: str) -> Any:
    """Rows after the first hundred of which one is wrong, the others right."""
    rows = frame.iloc[100:110].copy()
    if what == "back in time":
        rows.iloc[-1, rows.columns.get_loc("timestamp")] = "2026-03-01T00:00:01Z"
        rows.iloc[-1, rows.columns.get_loc("link")] = "w"
    elif what == "a step again":
        rows = pd.concat([rows, rows.tail(1)])
    elif what == "the step of the last row again":
        rows = pd.concat([frame.iloc[99:100], rows])
    elif what == "no number":
        rows["rtt_ms"] = rows["rtt_ms"].astype(object)
        rows.iloc[-1, rows.columns.get_loc("rtt_ms")] = "fast"
    elif what == "no time":
        rows.iloc[-1, rows.columns.get_loc("timestamp")] = "yesterday"
    elif what == "a column is missing":
        rows = rows.drop(columns="link")
    elif what == "a mapping without a column":
        return {"link": "w", "rtt_ms": 1.0}
    return rows


REFUSED = {
    "back in time": r"rows: row 109: series 'w' goes back in time: 2026-03-01T00:00:01Z is before",
    "a step again": r"rows: row 109: .* is within one interval of the row before it of series",
    "the step of the last row again": r"rows: row 99: .* is within one interval",
    "no number": r"rows: row 109, column 'rtt_ms': found 'fast'",
    "no time": r"rows: row 109, column 'timestamp': found 'yesterday'",
    "a column is missing": r"rows: no column 'link'",
    "a mapping without a column": r"rows: no column 'timestamp'",
}


@pytest.mark.parametrize(("what", "said"), REFUSED.items(), ids=REFUSED.keys())
def test_a_refused_update_takes_nothing(
    plain: Predictor, frame: pd.DataFrame, whole: pd.DataFrame, what: str, said: str
) -> None:
    stream = StreamingPredictor(plain)
    stream.update(frame.iloc[:100])
    before = content(stream)
    with pytest.raises(DataError, match=f"^{said}"):
        stream.update(_bad(frame, what))
    unchanged(stream, before)
    same_answers(stream.update(frame.iloc[100:]), whole.iloc[100:])


def test_a_refused_row_of_a_new_series_leaves_no_series(plain: Predictor, frame: pd.DataFrame) -> None:
    stream = StreamingPredictor(plain)
    stream.update(frame.iloc[:100])
    before = content(stream)
    with pytest.raises(DataError):
        stream.update(pd.concat([frame.iloc[:1], frame.iloc[100:101].assign(link="new")]))
    assert {name: len(array) for name, array in content(stream).items()} == {name: len(a) for name, a in before.items()}


@pytest.mark.parametrize("duplicates", ["last", "mean"])
def test_rows_go_back_in_time_no_further_than_equal_times(duplicates: str, frame: pd.DataFrame) -> None:
    stream, row = StreamingPredictor(predictor(duplicates=duplicates)), frame.iloc[50:51]
    stream.update(row)
    stream.update(row)
    with pytest.raises(DataError, match="goes back in time"):
        stream.update(row.assign(timestamp="2026-03-01T00:00:00.000Z"))


def test_arrays_have_the_answers_of_frames(plain: Predictor, frame: pd.DataFrame, whole: pd.DataFrame) -> None:
    form = build_input_format(plain.config.data).without_label()
    table = table_of_frames([(frame, NO_PART, "rows")], form)
    stream = StreamingPredictor(plain)
    factors = np.array([metric.factor for metric in form.metrics])
    found = np.concatenate(
        [
            stream.update_arrays(table.series[some].tolist(), table.times[some], table.values[some] / factors)
            for some in np.array_split(np.arange(len(table)), 40)
        ]
    )
    expected = whole[[f"p_{name}" for name in plain.classes]].to_numpy()
    given = StreamingPredictor(plain).update_arrays(
        frame["link"].tolist(),
        pd.to_datetime(frame["timestamp"], format="ISO8601", utc=True).dt.tz_localize(None).to_numpy(),
        frame[list(METRICS)].to_numpy(dtype=float),
    )
    np.testing.assert_allclose(given, expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    assert plain.name(found).tolist() == whole["label"].tolist()


def test_plain_rows_need_no_frame_and_have_its_answers(
    plain: Predictor, frame: pd.DataFrame, whole: pd.DataFrame
) -> None:
    form = build_input_format(plain.config.data).without_label()
    stream, quick = StreamingPredictor(plain), 0
    answers = []
    for row in frame.to_dict("records"):
        table = table_of_plain_rows([row], form, "rows")
        if table is not None:
            expected = table_of_frames([(pd.DataFrame([row]), NO_PART, "rows")], form)
            for name in ("series", "times", "time_texts", "values", "labels", "parts"):
                np.testing.assert_array_equal(getattr(table, name), getattr(expected, name))
            assert table.where(0) == expected.where(0)
            quick += 1
        answers.append(stream.update(row))
    assert quick > len(frame) / 2
    same_answers(pd.concat(answers), whole)


PLAIN = {"timestamp": "2026-01-01T00:00:00Z", "link": "a", **dict.fromkeys(METRICS, 1.0)}
METRIC = METRICS[0]


@pytest.mark.parametrize(
    "change",
    [
        {"timestamp": "2026-01-01T00:00:00+01:00"},
        {"timestamp": pd.Timestamp("2026-01-01", tz="UTC")},
        {"link": " a"},
        {"link": ""},
        {"link": 5},
        {"link": "a\nb"},
        {METRIC: "1.0"},
        {METRIC: None},
        {METRIC: True},
        {METRIC: float("inf")},
        {METRIC: 10**400},
        {METRIC: np.float32(1)},
    ],
    ids=repr,
)
def test_rows_that_are_not_plain_go_the_long_way(plain: Predictor, change: dict[str, Any]) -> None:
    form = build_input_format(plain.config.data).without_label()
    assert table_of_plain_rows([PLAIN], form, "rows") is not None
    assert table_of_plain_rows([{**PLAIN, **change}], form, "rows") is None
    assert table_of_plain_rows([{key: PLAIN[key] for key in PLAIN if key not in change}], form, "rows") is None


def test_no_arrays_have_no_answers(plain: Predictor) -> None:
    metrics = len(plain.config.data.metrics)
    assert StreamingPredictor(plain).update_arrays([], np.empty(0, np.int64), np.empty((0, metrics))).shape == (
        0,
        len(plain.classes),
    )


NOW = np.array([pd.Timestamp("2026-01-01").as_unit("ns").value])


@pytest.mark.parametrize(
    ("times", "values", "told"),
    [
        (np.zeros(2, np.int64), np.zeros((1, 3)), "times: got int64 of shape (2,)"),
        (np.zeros(1), np.zeros((1, 3)), "times: got float64"),
        (NOW // 10**9, np.zeros((1, 3)), "outside 1990 to 2100"),
        (np.array([2**63 + 5], np.uint64), np.zeros((1, 3)), "outside 1990 to 2100"),
        (NOW, np.zeros((1, 2)), "values: got float64 of shape (1, 2)"),
        (NOW, np.full((1, 3), "1"), "values: got <U1"),
        (NOW, np.array([[0, np.inf, 0]]), "row 0 of metric 'throughput_bps' is infinite"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(plain: Predictor, times: Any, values: Any, told: str) -> None:
    stream = StreamingPredictor(plain)
    with pytest.raises(DataError) as caught:
        stream.update_arrays(["a"], times, values)
    assert told in str(caught.value)


@pytest.mark.parametrize("series", [[None], [float("nan")], [("a", "b")], [1], [""], [" a"], ["a\nb"], "a"], ids=repr)
def test_names_that_are_none_are_refused(plain: Predictor, series: Any) -> None:
    with pytest.raises(DataError, match="series: got"):
        StreamingPredictor(plain).update_arrays(series, NOW, np.zeros((1, 3)))


FORMS = [
    {"metrics": [{"name": "m0", "unit": "ms"}], "series": "s", "missing": ["", "-1"]},
    {"metrics": [{"name": "m0", "unit": "%"}], "series": "s"},
    {"metrics": ["m0"], "series": ["s", "t"]},
    {"metrics": ["m0"]},
]


@pytest.mark.parametrize("data", FORMS, ids=str)
@pytest.mark.parametrize("value", [-1, -1.0, 5, 2.5, float("nan"), 10**30, np.float64(3)], ids=repr)
def test_plain_rows_are_what_frames_make_of_them(data: dict[str, Any], value: Any) -> None:
    form = build_input_format(parse_config({"data": data}).data).without_label()
    rows = [
        {"timestamp": f"2026-01-01T00:00:0{second}Z", "s": "a", "t": "b", "m0": cell}
        for second, cell in enumerate([value, float("nan"), 7.0])
    ]
    table = table_of_plain_rows(rows, form, "rows")
    if table is not None:
        expected = table_of_frames([(pd.DataFrame(rows), NO_PART, "rows")], form)
        for name in ("series", "times", "values"):
            np.testing.assert_array_equal(getattr(table, name), getattr(expected, name))


def test_an_update_that_was_cut_is_not_saved_and_not_continued(
    plain: Predictor, frame: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = StreamingPredictor(plain)
    stream.update(frame[:50])
    with monkeypatch.context() as patch:
        patch.setattr(stream, "_answers", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            stream.update(frame[50:60])
    assert not stream.is_whole
    for again in (lambda: stream.save(tmp_path / "state"), lambda: stream.update(frame[60:70])):
        with pytest.raises(DataError, match="interrupted half-way"):
            again()


def test_answers_that_are_no_numbers_are_an_error(frame: pd.DataFrame) -> None:
    trained = predictor()
    with torch.no_grad():
        trained.model.members[0].head.weight.fill_(float("nan"))
    for answer in (lambda: trained.predict(frame), lambda: StreamingPredictor(trained).update(frame[:1])):
        with pytest.raises(BundleError, match="no finite number"):
            answer()


@pytest.mark.parametrize(
    "rows", [[], pd.DataFrame(), pd.DataFrame(columns=["timestamp"])], ids=["list", "frame", "columns"]
)
def test_no_rows_have_no_answers(plain: Predictor, frame: pd.DataFrame, rows: Any) -> None:
    stream = StreamingPredictor(plain)
    found = stream.update(rows)
    assert len(found) == 0
    assert list(found.columns) == list(stream.update(frame[:1]).columns)


@pytest.mark.parametrize("rows", [[{}], {}, pd.DataFrame(index=[0, 1])], ids=["list", "mapping", "frame"])
def test_rows_without_cells_are_not_taken_for_no_rows(plain: Predictor, rows: Any) -> None:
    with pytest.raises(DataError, match="no column 'timestamp'"):
        StreamingPredictor(plain).update(rows)


def test_a_row_of_a_frame_is_a_row(plain: Predictor, frame: pd.DataFrame) -> None:
    same_answers(StreamingPredictor(plain).update(frame.iloc[0]), StreamingPredictor(plain).update(frame[:1]))


@pytest.mark.parametrize("rows", [None, 5, "ab", ["a"], [None], [[1]]], ids=repr)
def test_what_is_no_row_is_refused(plain: Predictor, rows: Any) -> None:
    with pytest.raises(DataError, match="expected a data frame, a mapping or a list of mappings"):
        StreamingPredictor(plain).update(rows)
