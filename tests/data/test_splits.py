from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import SECOND, START, make_format, make_table, stamp, write

from netanomaly.config import parse_config
from netanomaly.data.grid import Grid, Segment
from netanomaly.data.ingest import NO_PART, Table
from netanomaly.data.purge import Split, purge, split_report
from netanomaly.data.splits import (
    TEST,
    TRAIN,
    VALIDATION,
    check_files_disjoint,
    choose_moments,
    choose_series,
    split_by_series,
    split_by_table,
    split_by_time,
)
from netanomaly.data.timestamps import TimeFormat
from netanomaly.errors import ConfigError, DataError
from netanomaly.prepare import Prepared, prepare

PROPERTY = settings(max_examples=60, deadline=None)
LINKS = make_table([0.0] * 10, series=list("abcdefghij"))


# By series


def drawn(table: Table, *given: Any) -> np.ndarray:
    return split_by_series(table, choose_series(list(table.series_rows), *given))


def by_time(table: Table, validation: Any, test: Any) -> np.ndarray:
    return split_by_time(table, *choose_moments(table.times, validation, test, make_format()))


def by_series(train: Any = None, validation: Any = 0.2, test: Any = 0.2, seed: int = 0) -> dict[str, int]:
    parts = drawn(LINKS, train, validation, test, seed)
    return dict(zip(LINKS.series.tolist(), parts.tolist(), strict=True))


def test_named_series_get_their_part_and_the_rest_trains() -> None:
    parts = by_series(None, ["a"], ["b", "c"])
    assert parts == {"a": VALIDATION, "b": TEST, "c": TEST} | dict.fromkeys("defghij", TRAIN)


def test_with_named_training_series_the_rest_is_in_no_part() -> None:
    parts = by_series(["d"], ["a"], ["b"])
    assert parts == {"d": TRAIN, "a": VALIDATION, "b": TEST} | dict.fromkeys("cefghij", NO_PART)


def test_a_share_is_drawn_from_the_series_without_a_name() -> None:
    parts = by_series(["a", "b"], 0.3, ["c"])
    assert sum(part == VALIDATION for part in parts.values()) == 3
    assert [parts[name] for name in "abc"] == [TRAIN, TRAIN, TEST]


def test_shares_count_series_and_are_at_least_one() -> None:
    counts = np.bincount(list(by_series(None, 0.2, 0.01).values()))
    assert counts.tolist() == [7, 2, 1]


def test_a_draw_repeats_with_its_seed_and_changes_with_it() -> None:
    assert by_series(seed=3) == by_series(seed=3)
    assert len({tuple(by_series(seed=seed).values()) for seed in range(5)}) > 1


def test_a_draw_does_not_depend_on_the_order_of_the_series() -> None:
    names = list("abcdefghij")
    assert choose_series(names[::-1], None, 0.2, 0.2, 0) == choose_series(names, None, 0.2, 0.2, 0)


def test_all_rows_of_a_series_have_one_part() -> None:
    table = make_table([0, 0, 1, 1, 2, 2], series=list("ababab"))
    parts = drawn(table, None, ["a"], (), 0)
    assert parts.tolist() == [VALIDATION, TRAIN] * 3


@pytest.mark.parametrize(
    ("given_series", "told"),
    [
        ((None, ["k"], ["b"]), "data.split.validation: no series 'k' in the data; it has a, b"),
        ((["zz"], ["a"], ["b"]), "data.split.train: no series 'zz'"),
        ((None, ["a"], ["b", "a"]), "the series 'a' stands in two parts"),
        ((None, list("abcde"), list("fghij")), "no series is left to train on"),
        ((None, 0.5, 0.9), "no series is left to train on"),
    ],
    ids=["unknown", "unknown in training", "in two parts", "all named", "all drawn"],
)
def test_impossible_series_are_a_config_error(given_series: tuple[Any, Any, Any], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        by_series(*given_series)
    assert told in str(caught.value)


# By time


def test_shares_of_time_count_rows_before_what_follows() -> None:
    parts = by_time(make_table(list(range(100))), 0.25, 0.2)
    assert np.bincount(parts).tolist() == [60, 20, 20]


def test_moments_are_the_first_of_their_part() -> None:
    parts = by_time(make_table(list(range(10))), stamp(4), stamp(7.5))
    assert parts.tolist() == [TRAIN] * 4 + [VALIDATION] * 4 + [TEST] * 2


def test_a_share_and_a_moment_go_together() -> None:
    parts = by_time(make_table(list(range(10))), 0.5, stamp(8))
    assert np.bincount(parts).tolist() == [4, 4, 2]


@PROPERTY
@given(
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from("ab")), min_size=8, max_size=40),
    st.floats(0.05, 0.5),
    st.floats(0.05, 0.5),
)
def test_no_training_row_is_later_than_one_that_judges(
    rows: list[tuple[int, str]], validation: float, test: float
) -> None:
    table = make_table([second for second, _ in rows], series=[name for _, name in rows])
    try:
        parts = by_time(table, validation, test)
    except (ConfigError, DataError):
        return  # too few moments
    for early, late in ((TRAIN, VALIDATION), (VALIDATION, TEST), (TRAIN, TEST)):
        assert max(table.times[parts == early], default=-1) < min(table.times[parts == late], default=2**63)


def test_validation_after_test_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="validation has to start before test"):
        by_time(make_table(list(range(10))), stamp(8), stamp(5))


def test_a_moment_may_be_rfc_3339_whatever_the_data_are_written_in() -> None:
    table = make_table(list(range(10)))
    form = replace(make_format(), times=TimeFormat("epoch", "s"))
    epochs = str(START // SECOND + 4), str(START // SECOND + 8)
    wanted = choose_moments(table.times, stamp(4), stamp(8), form)
    assert choose_moments(table.times, *epochs, form) == wanted == (START + 4 * SECOND, START + 8 * SECOND)


def test_a_bad_moment_is_told_with_its_key() -> None:
    with pytest.raises(DataError, match=r"data\.split\.test, column 'test': found 'tomorrow'"):
        by_time(make_table(list(range(10))), 0.2, "tomorrow")


# By table


def by_table(tmp_path: Path, *lines: str) -> list[int]:
    table = make_table([0, 1, 2, 3, 0, 1], series=list("aaaabb"))
    path = write(tmp_path / "split.csv", "series,t_start,t_end,split\n" + "".join(f"{line}\n" for line in lines))
    return split_by_table(table, path, make_format()).tolist()


def test_a_table_gives_parts_with_open_ends(tmp_path: Path) -> None:
    lines = f"a,,{stamp(1)},train", f"a,{stamp(1)},{stamp(3)},validation", f"a,{stamp(3)},,test", " b ,,, train "
    assert by_table(tmp_path, *lines) == [TRAIN, VALIDATION, VALIDATION, TEST, TRAIN, TRAIN]


def test_rows_that_a_table_does_not_name_are_in_no_part(tmp_path: Path) -> None:
    assert by_table(tmp_path, f"a,{stamp(1)},{stamp(2)},val") == [NO_PART, VALIDATION] + [NO_PART] * 4


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["a,,,train", "c,,,test"], "line 3: no series 'c' in the data; it has a, b"),
        (["a,,,tarin"], "line 2, column 'split': found 'tarin', expected train, validation or test"),
        (["a,,,train", f"a,{stamp(3)},,test"], "line 3: gives rows a part that have one from a line above"),
        (["a,,,train", "a,,,train"], "line 3: gives rows a part that have one from a line above"),
        (["a,noon,,train"], "line 2, column 't_start': found 'noon'"),
        (["a,,,"], "line 2, column 'split': found ''"),
        ([], "only a header and no rows"),
    ],
    ids=["unknown series", "unknown part", "overlap", "twice", "bad time", "no part", "empty"],
)
def test_a_bad_table_is_refused_with_its_line(tmp_path: Path, lines: list[str], told: str) -> None:
    with pytest.raises(DataError) as caught:
        by_table(tmp_path, *lines)
    assert str(caught.value).startswith(f"{tmp_path / 'split.csv'}: {told}")


# By files


def test_a_row_in_the_files_of_two_parts_is_refused_with_its_place() -> None:
    table = make_table([0, 1, 2, 2, 3], parts=[TRAIN, TRAIN, TRAIN, TEST, TEST])
    with pytest.raises(DataError) as caught:
        check_files_disjoint(table)
    assert str(caught.value).startswith(
        f"rows: line 5: series 'a' at {stamp(2)} stands in another part as well (1 such"
    )


def test_equal_moments_of_two_series_and_repeats_within_a_part_are_not_shared() -> None:
    check_files_disjoint(make_table([0, 0, 0], series=list("aab"), parts=[TRAIN, TRAIN, TEST]))


# The purge


def make_grid(*segments: tuple[list[int], str]) -> tuple[Grid, np.ndarray]:
    """A grid of segments, given as the part of each step (None masked) and its labels (a space for none)."""
    built, parts, row_segment, row_step = [], [], [], []
    for number, (step_parts, labels) in enumerate(segments):
        masked = np.array([part is None for part in step_parts])
        rows = np.where(masked, -1, len(parts) + np.cumsum(~masked) - 1)
        names = np.array(["" if label == " " else label for label in labels], dtype=object)
        names[masked] = ""
        values = np.where(masked, np.nan, 1.0)[:, None]
        built.append(Segment(f"s{number}", values, names, rows))
        parts += [part for part in step_parts if part is not None]
        row_segment += [number] * int((~masked).sum())
        row_step += np.flatnonzero(~masked).tolist()
    return Grid(tuple(built), np.array(row_segment), np.array(row_step)), np.array(parts, dtype=np.int8)


STEPS = st.lists(
    st.tuples(st.sampled_from([None, NO_PART, TRAIN, TRAIN, VALIDATION, TEST]), st.sampled_from("xy ")),
    min_size=1,
    max_size=40,
).map(lambda steps: ([part for part, _ in steps], "".join(label for _, label in steps)))
BLOCKS = st.lists(
    st.tuples(st.sampled_from([None, NO_PART, TRAIN, VALIDATION, TEST]), st.integers(1, 12)), min_size=1, max_size=6
).map(lambda blocks: ([part for part, n in blocks for _ in range(n)], "x" * sum(n for _, n in blocks)))
GRIDS = (st.lists((STEPS | BLOCKS).filter(lambda segment: segment[0][0] is not None), min_size=1, max_size=3)).map(
    lambda segments: make_grid(*segments)
)


def windows(segment: Segment, parts: np.ndarray, part: int, history: int) -> set[int]:
    """Steps that lie in a window, with its history, that ends in a labelled row of the part."""
    ends = np.flatnonzero((parts == part) & (segment.labels != ""))
    return {step for end in ends.tolist() for step in range(max(end - history, 0), end + 1)}


def shared(grid: Grid, split: Split, a: int, b: int, history: int) -> int:
    pairs = zip(grid.segments, split.parts, strict=True)
    return sum(len(windows(s, parts, a, history) & windows(s, parts, b, history)) for s, parts in pairs)


@PROPERTY
@given(GRIDS, st.integers(0, 9))
def test_after_the_purge_no_windows_of_two_parts_share_a_row(given_grid: tuple[Grid, np.ndarray], history: int) -> None:
    grid, row_parts = given_grid
    split = purge(grid, row_parts, history)
    for a, b in ((TRAIN, VALIDATION), (TRAIN, TEST), (VALIDATION, TEST)):
        assert shared(grid, split, a, b, history) == 0


@PROPERTY
@given(GRIDS, st.integers(0, 9))
def test_the_purge_takes_no_test_row_and_moves_no_row_to_another_part(
    given_grid: tuple[Grid, np.ndarray], history: int
) -> None:
    grid, row_parts = given_grid
    for number, parts in enumerate(purge(grid, row_parts, history).parts):
        rows = grid.segments[number].rows
        before = np.where(rows >= 0, row_parts[rows], NO_PART)
        assert (parts[before == TEST] == TEST).all()
        assert ((parts == before) | (parts == NO_PART)).all()


@PROPERTY
@given(GRIDS, st.integers(0, 9))
def test_the_purge_counts_what_it_takes_and_takes_only_what_is_near(
    given_grid: tuple[Grid, np.ndarray], history: int
) -> None:
    grid, row_parts = given_grid
    split = purge(grid, row_parts, history)
    taken = 0
    for segment, parts in zip(grid.segments, split.parts, strict=True):
        before = np.where(segment.rows >= 0, row_parts[segment.rows], NO_PART)
        for step in np.flatnonzero(parts != before):
            near = parts[max(step - history, 0) : step + history + 1]
            assert near.max() > before[step]
            taken += 1
    assert split.purged == taken


@PROPERTY
@given(GRIDS, st.integers(0, 9), st.integers(0, 9))
def test_the_report_counts_shared_rows_exactly(given_grid: tuple[Grid, np.ndarray], history: int, purged: int) -> None:
    grid, row_parts = given_grid
    split = purge(grid, row_parts, purged)
    report: Any = split_report(grid, split, history)
    assert report["shared"]["train_validation"]["rows"] == shared(grid, split, TRAIN, VALIDATION, history)
    assert report["shared"]["train_test"]["rows"] == shared(grid, split, TRAIN, TEST, history)
    assert report["shared"]["validation_test"]["rows"] == shared(grid, split, VALIDATION, TEST, history)


def test_the_purge_is_as_wide_as_the_history() -> None:
    grid, row_parts = make_grid(([TRAIN] * 6 + [TEST] * 2 + [TRAIN] * 6, "x" * 14))
    (parts,) = purge(grid, row_parts, 2).parts
    assert parts.tolist() == [TRAIN] * 4 + [NO_PART] * 2 + [TEST] * 2 + [NO_PART] * 2 + [TRAIN] * 4


def test_validation_gives_way_to_test_and_training_to_validation() -> None:
    grid, row_parts = make_grid(([TRAIN] * 4 + [VALIDATION] * 4 + [TEST] * 2, "x" * 10))
    (parts,) = purge(grid, row_parts, 1).parts
    assert parts.tolist() == [TRAIN] * 3 + [NO_PART] + [VALIDATION] * 3 + [NO_PART] + [TEST] * 2


def test_without_a_purge_the_report_counts_the_shared_rows() -> None:
    grid, row_parts = make_grid(([TRAIN] * 6 + [TEST] * 6, "x" * 12))
    report: Any = split_report(grid, purge(grid, row_parts, 0), 3)
    assert report["purged_rows"] == 0
    assert report["shared"]["train_test"] == {"series": 1, "rows": 3}


def test_the_report_tells_series_rows_and_classes_of_each_part() -> None:
    grid, row_parts = make_grid(([TRAIN] * 3 + [None] + [TRAIN] * 2, "xxyx  "), ([TEST, TEST, NO_PART], "zxx"))
    report: Any = split_report(grid, purge(grid, row_parts, 1), 1)
    assert report["train"] == {"series": ["s0"], "rows": 3, "unlabelled_rows": 2, "classes": {"x": 2, "y": 1}}
    assert report["test"] == {"series": ["s1"], "rows": 2, "unlabelled_rows": 0, "classes": {"x": 1, "z": 1}}
    assert report["validation"] == {"series": [], "rows": 0, "unlabelled_rows": 0, "classes": {}}


# From the config


def rows(first: int, last: int, link: str = "a") -> pd.DataFrame:
    seconds = range(first, last)
    frame = pd.DataFrame({"timestamp": [stamp(second) for second in seconds], "link": link})
    frame["rtt"] = np.arange(first, last, dtype=np.float64)
    frame["label"] = np.where(np.arange(first, last) % 2, "odd", "even")
    return frame


def prepared(split: dict[str, Any], frames: Any = None, files: Any = (), root: Path | None = None) -> Prepared:
    data = {"metrics": ["rtt"], "series": "link", "label": "label", "interval": "1s", "split": split, "files": files}
    tree: dict[str, Any] = {
        "data": data | {"root": str(root or "."), "files": list(files)},
        "channels": {"baselines": 6},
        "model": {"window": 4, "stem": 2},
    }
    return prepare(parse_config(tree), frames)


def test_the_default_purge_is_the_whole_history() -> None:
    found = prepared({"by": "time"}, rows(0, 200))
    assert found.history_rows == 3 + 1 + 5
    assert found.report["purged_rows"] == 2 * found.history_rows
    assert {pair["rows"] for pair in found.report["shared"].values()} == {0}


@pytest.mark.parametrize(("step", "told"), [(0.5, True), (0.9, False), (1.2, False), (2, True)])
def test_an_interval_that_is_not_the_step_of_the_data_is_told(
    step: float, told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    frame = rows(0, 100)
    frame["timestamp"] = [stamp(i * step) for i in range(100)]
    with caplog.at_level("WARNING", "netanomaly"):
        prepared({"by": "time"}, frame)
    assert ("data.interval is 1s, but the usual step in these data is" in caplog.text) == told


def test_a_purge_of_zero_is_obeyed_and_its_leak_is_reported() -> None:
    found = prepared({"by": "time", "purge": 0}, rows(0, 200))
    assert found.report["purged_rows"] == 0
    assert found.report["shared"]["train_validation"]["rows"] == found.history_rows


def test_files_of_parts_may_follow_each_other(tmp_path: Path) -> None:
    for name, part in (("train", rows(0, 50)), ("validation", rows(50, 80)), ("test", rows(80, 99))):
        part.to_csv(tmp_path / f"{name}.csv", index=False)
    split = {"by": "file", "train": "train.csv", "validation": "validation.csv", "test": "test.csv"}
    found = prepared(split, root=tmp_path)
    assert [found.report[part]["rows"] for part in ("train", "validation", "test")] == [50, 30, 19]


def test_files_of_two_parts_that_share_rows_are_refused(tmp_path: Path) -> None:
    rows(0, 50).to_csv(tmp_path / "train.csv", index=False)
    rows(49, 80).to_csv(tmp_path / "validation.csv", index=False)
    with pytest.raises(DataError, match="stands in another part as well"):
        prepared({"by": "file", "train": "train.csv", "validation": "validation.csv"}, root=tmp_path)


def test_a_file_of_two_parts_is_refused(tmp_path: Path) -> None:
    rows(0, 50).to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ConfigError, match=r"a\.csv is given for train and validation"):
        prepared({"by": "file", "train": "a.csv", "validation": "*.csv"}, root=tmp_path)


def test_frames_of_two_parts_that_share_rows_are_refused() -> None:
    with pytest.raises(DataError, match="stands in another part as well"):
        prepared({"by": "series"}, {"train": rows(0, 50), "validation": rows(25, 75)})


def test_shares_come_back_as_names_and_moments() -> None:
    by_name = prepared({"by": "series"}, pd.concat([rows(0, 60, link) for link in "abcde"])).config.data.split
    assert sorted([*by_name.train, *by_name.validation, *by_name.test]) == list("abcde")
    by_moment = prepared({"by": "time", "validation": 0.25, "test": 0.2}, rows(0, 100)).config.data.split
    assert (by_moment.validation, by_moment.test) == (stamp(60), stamp(80))


def test_labelled_rows_of_no_part_are_counted() -> None:
    frame = pd.concat([rows(0, 60, link) for link in "abc"])
    found = prepared({"by": "series", "train": ["a"], "validation": ["b"], "test": []}, frame)
    assert found.report["unused_labelled_rows"] == 60
