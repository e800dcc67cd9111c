from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import SECOND, make_table, stamp

from netanomaly.data.grid import Grid, Segment, counter_reach, median_step, place_on_grid
from netanomaly.data.ingest import Table
from netanomaly.errors import DataError

NAN = float("nan")
PROPERTY = settings(max_examples=50, deadline=None)
MAX_GAP = 3


def place(table: Table, interval: float = 1, max_gap: int = MAX_GAP, duplicates: str = "error") -> Grid:
    return place_on_grid(table, round(interval * SECOND), max_gap, duplicates)


def only(grid: Grid) -> Segment:
    (segment,) = grid.segments
    return segment


@st.composite
def jittered_tables(draw: st.DrawFn) -> Table:
    """Series whose rows come 1 to 7 intervals after each other, each up to 0.49 intervals early or late."""
    seconds: list[float] = []
    names: list[str] = []
    for name in "abc"[: draw(st.integers(1, 3))]:
        moment = draw(st.floats(-1e6, 1e6))
        for _ in range(draw(st.integers(1, 12))):
            seconds.append(moment)
            names.append(name)
            moment += draw(st.integers(1, 7)) + draw(st.floats(-0.49, 0.49))
    return make_table(seconds, series=names)


@PROPERTY
@given(jittered_tables())
def test_every_row_is_placed_in_a_segment_of_its_series(table: Table) -> None:
    grid = place(table)
    for row in range(len(table)):
        segment = grid.segments[grid.row_segment[row]]
        assert segment.series == table.series[row]
        assert segment.rows[grid.row_step[row]] == row
        assert segment.values[grid.row_step[row], 0] == table.values[row, 0]


@PROPERTY
@given(jittered_tables())
def test_a_segment_holds_nothing_but_its_rows(table: Table) -> None:
    grid = place(table)
    assert sorted(row for segment in grid.segments for row in segment.rows if row >= 0) == list(range(len(table)))
    for segment in grid.segments:
        masked = segment.rows < 0
        assert not masked[0]
        assert not masked[-1]
        assert np.isnan(segment.values[masked]).all()
        assert (segment.labels[masked] == "").all()
        assert (segment.valid == ~masked).all()


@PROPERTY
@given(jittered_tables())
def test_steps_follow_time_and_lie_within_half_an_interval_of_the_row_before(table: Table) -> None:
    for segment in place(table).segments:
        steps = np.flatnonzero(segment.rows >= 0)
        seconds = table.times[segment.rows[steps]] / SECOND
        for (step, moment), (next_step, next_moment) in pairwise(zip(steps, seconds, strict=True)):
            assert next_moment > moment
            assert abs((next_moment - moment) - (next_step - step)) <= 0.5


@PROPERTY
@given(jittered_tables(), st.integers(0, 6))
def test_segments_are_cut_exactly_at_the_gaps_that_are_too_long(table: Table, max_gap: int) -> None:
    grid = place(table, max_gap=max_gap)
    for name in set(table.series):
        rows = np.flatnonzero(table.series == name)
        rows = rows[np.argsort(table.times[rows])]
        for before, after in pairwise(rows):
            missing = round((table.times[after] - table.times[before]) / SECOND) - 1
            assert (grid.row_segment[before] == grid.row_segment[after]) == (missing <= max_gap)


@PROPERTY
@given(jittered_tables(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(table: Table, random: object) -> None:
    order = np.arange(len(table))
    random.shuffle(order)  # type: ignore[attr-defined]
    shuffled = replace(
        table, series=table.series[order], times=table.times[order], values=table.values[order], labels=table.labels
    )
    wanted, found = place(table), place(shuffled)
    assert [segment.series for segment in found.segments] == [segment.series for segment in wanted.segments]
    for a, b in zip(wanted.segments, found.segments, strict=True):
        np.testing.assert_array_equal(a.values, b.values)
    assert (found.row_segment == wanted.row_segment[order]).all()
    assert (found.row_step == wanted.row_step[order]).all()


@PROPERTY
@given(jittered_tables())
def test_values_per_step_come_back_per_row(table: Table) -> None:
    grid = place(table)
    np.testing.assert_array_equal(grid.to_rows([segment.values for segment in grid.segments]), table.values)


def test_a_poller_that_drifts_does_not_collide_with_itself() -> None:
    table = make_table(np.cumsum(np.tile([4.0, 6.0, 4.4, 5.6], 250)).tolist())
    assert place(table, interval=5).row_step.tolist() == list(range(1000))


@pytest.mark.parametrize(("gap", "segments"), [(MAX_GAP, 1), (MAX_GAP + 1, 2)])
def test_a_gap_of_max_gap_missing_rows_is_bridged_and_no_longer_one(gap: int, segments: int) -> None:
    grid = place(make_table([0, 1, 2 + gap, 3 + gap]))
    assert len(grid.segments) == segments
    assert sum(map(len, grid.segments)) == (4 + gap if segments == 1 else 4)


def test_rows_of_different_parts_never_share_a_segment() -> None:
    grid = place(make_table([0, 1, 2, 3], parts=[0, 0, 2, 2]))
    assert [segment.rows.tolist() for segment in grid.segments] == [[0, 1], [2, 3]]


def test_a_row_without_any_value_is_a_masked_step_with_its_label() -> None:
    segment = only(place(make_table([0, 1, 2], [1, NAN, 3], labels=["x", "y", "z"])))
    assert segment.valid.tolist() == [True, False, True]
    assert segment.labels.tolist() == ["x", "y", "z"]


def test_rows_a_century_apart_are_in_different_segments() -> None:
    years = 365.25 * 86400
    assert len(place(make_table([-200 * years, 88 * years])).segments) == 2


# Several rows on a step


def test_the_same_time_again_is_refused_with_both_places() -> None:
    table = make_table([0, 1, 5, 1, 5], series="link7")
    with pytest.raises(DataError) as caught:
        place(table)
    message = str(caught.value)
    assert message.startswith(f"rows: line 5: series 'link7' has the time {stamp(1)} of rows: line 3 again (2 such")
    assert "set data.duplicates: last or mean" in message


def test_two_rows_within_an_interval_are_refused_with_both_places() -> None:
    with pytest.raises(DataError) as caught:
        place(make_table([0, 1, 1.4], series="link7"))
    message = str(caught.value)
    assert message.startswith(
        f"rows: line 4: series 'link7' has {stamp(1.4)}, within one interval (1s) of rows: line 3"
    )
    assert "check data.interval" in message


def test_equal_times_of_different_series_are_no_duplicates() -> None:
    assert len(place(make_table([0, 0], series=["a", "b"])).segments) == 2


def test_last_takes_the_latest_row() -> None:
    segment = only(place(make_table([0, 1.2, 1, 2.2], [0, 12, 10, 22], labels=["a", "b", "c", "d"]), duplicates="last"))
    assert segment.values[:, 0].tolist() == [0, 12, 22]
    assert segment.labels.tolist() == ["a", "b", "d"]


def test_last_takes_the_later_line_at_equal_times() -> None:
    segment = only(place(make_table([1, 0, 1, 0], [1, 2, 3, 4], labels=list("abcd")), duplicates="last"))
    assert segment.values[:, 0].tolist() == [4, 3]
    assert segment.labels.tolist() == ["d", "c"]
    assert segment.rows.tolist() == [3, 2]


def test_last_takes_a_missing_value_too() -> None:
    segment = only(place(make_table([0, 1, 1], [0, 1, NAN]), duplicates="last"))
    assert np.isnan(segment.values[1, 0])


def test_mean_takes_the_mean_of_what_was_measured_and_the_last_label() -> None:
    table = make_table([0, 1, 1, 1.3, 2], [0, 10, NAN, 20, 5], labels=list("abcde"))
    segment = only(place(table, duplicates="mean"))
    assert segment.values[:, 0].tolist() == [0, 15, 5]
    assert segment.labels.tolist() == ["a", "d", "e"]


@pytest.mark.parametrize("kinds", [("gauge", "counter"), ("counter",)])
def test_mean_takes_the_last_total_of_a_counter(kinds: tuple[str, ...]) -> None:
    totals = np.array([[0, 100], [1, 104], [3, 110], [4, 120]], dtype=np.float64)[:, -len(kinds) :]
    segment = only(place(make_table([0, 1, 1, 2], totals, kinds=kinds), duplicates="mean"))  # type: ignore[arg-type]
    np.testing.assert_array_equal(segment.values[:, -1], [NAN, 10, 10])


@pytest.mark.parametrize("duplicates", ["last", "mean"])
def test_every_row_of_a_step_points_to_it(duplicates: str) -> None:
    grid = place(make_table([0, 1, 1.2, 1.4, 2.4]), duplicates=duplicates)
    assert grid.row_step.tolist() == [0, 1, 1, 1, 2]
    assert only(grid).rows.tolist() == [0, 3, 4]


def test_a_fast_poller_does_not_collapse_into_one_step() -> None:
    grid = place(make_table([0.1 * i for i in range(1000)]), duplicates="mean")
    assert len(only(grid)) >= 100


@pytest.mark.parametrize("step", [0.02, 0.1, 0.25, 0.4])
def test_a_fast_poller_has_as_many_steps_as_its_time_has_intervals(step: float) -> None:
    grid = place(make_table([step * i for i in range(round(100 / step))]), duplicates="mean")
    assert abs(len(only(grid)) - 100) <= 5


# Counters


def rates(seconds: list[float], totals: list[float], interval: float = 1) -> list[float]:
    return only(place(make_table(seconds, totals, kinds=("counter",)), interval, max_gap=50)).values[:, 0].tolist()


@pytest.mark.parametrize(
    ("seconds", "totals", "interval", "wanted"),
    [
        ([0, 1, 2], [100, 110, 130], 1, [NAN, 10, 20]),
        ([0, 5, 10], [100, 150, 250], 5, [NAN, 10, 20]),
        ([0, 0.5, 1], [100, 110, 130], 0.5, [NAN, 20, 40]),
        ([0, 1.25, 2], [0, 10, 25], 1, [NAN, 8, 20]),
        ([0, 1, 2, 3], [90, 100, 4, 10], 1, [NAN, 10, NAN, 6]),
        ([0, 1, 2], [7, 7, 7], 1, [NAN, 0, 0]),
        ([0, 1, 2, 3], [0, NAN, 30, 40], 1, [NAN, NAN, 15, 10]),
        ([0, 1, 2, 3], [NAN, NAN, 30, 40], 1, [NAN, NAN, NAN, 10]),
        ([0, 3, 4], [0, 30, 50], 1, [NAN, NAN, NAN, 10, 20]),
        ([0, 1, 2], [NAN, NAN, NAN], 1, [NAN, NAN, NAN]),
        ([0, 1], [12_000_000_000, 12_000_000_900], 1, [NAN, 900]),
        ([0], [5], 1, [NAN]),
    ],
    ids=[
        "each second",
        "each five seconds",
        "each half second",
        "a late row",
        "reset",
        "standing still",
        "a missing total",
        "missing from the start",
        "over a gap",
        "all missing",
        "small against its total",
        "a single row",
    ],
)
def test_a_counter_becomes_a_rate_per_second(
    seconds: list[float], totals: list[float], interval: float, wanted: list[float]
) -> None:
    np.testing.assert_allclose(rates(seconds, totals, interval), wanted, rtol=1e-12)


@PROPERTY
@given(st.lists(st.floats(0, 1e19) | st.just(NAN), min_size=1, max_size=20))
def test_a_rate_is_never_negative_or_infinite(totals: list[float]) -> None:
    found = np.array(rates(list(range(len(totals))), totals))
    assert (np.isnan(found) | ((found >= 0) & np.isfinite(found))).all()


def test_a_counter_starts_anew_after_a_long_gap_and_in_each_series() -> None:
    table = make_table([0, 1, 60, 61, 0, 1], [0, 1, 100, 101, 7, 8], series=list("aaaabb"), kinds=("counter",))
    for segment in place(table).segments:
        np.testing.assert_array_equal(segment.values[:, 0], [NAN, 1])


def test_gauges_beside_a_counter_stay_as_they_are() -> None:
    table = make_table([0, 1], [[5, 100], [6, 103]], kinds=("gauge", "counter"))
    np.testing.assert_array_equal(only(place(table)).values, [[5, NAN], [6, 3]])


@PROPERTY
@given(st.lists(st.tuples(st.integers(0, 99) | st.just(NAN), st.integers(1, 3)), min_size=2, max_size=30), st.data())
def test_a_rate_depends_on_as_many_earlier_steps_as_a_gap_may_have(
    rows: list[tuple[float, int]], data: st.DataObject
) -> None:
    totals = [total for total, _ in rows]
    seconds = np.cumsum([step for _, step in rows]).tolist()
    reach = counter_reach(MAX_GAP)
    whole = only(place(make_table(seconds, totals, kinds=("counter",)))).values
    row = data.draw(st.integers(0, len(rows) - 1))
    first = next(i for i, second in enumerate(seconds) if second >= seconds[row] - reach)
    chunk = only(place(make_table(seconds[first:], totals[first:], kinds=("counter",)))).values
    later = seconds[-1] - seconds[row] + 1
    np.testing.assert_array_equal(chunk[-later:], whole[-later:])


def test_a_rate_reaches_back_across_the_longest_gap() -> None:
    totals = [0.0] + [NAN] * MAX_GAP + [50.0]
    segment = only(place(make_table(list(range(len(totals))), totals, kinds=("counter",))))
    assert segment.values[-1, 0] == 50 / (MAX_GAP + 1)


def test_a_rate_does_not_reach_back_further_than_the_longest_gap() -> None:
    totals = [0.0] + [NAN] * (MAX_GAP + 1) + [50.0, 60.0]
    segment = only(place(make_table(list(range(len(totals))), totals, kinds=("counter",))))
    np.testing.assert_array_equal(segment.values[-2:, 0], [NAN, 10])


# The usual step


@pytest.mark.parametrize(
    ("seconds", "step"),
    [([0, 1, 2, 60], 1.0), ([0, 0.5, 1], 0.5), ([0, 0, 0, 60], 60.0), ([0], None), ([0, 0], None)],
)
def test_the_usual_step_is_the_median_of_the_times_between_rows(seconds: list[float], step: float | None) -> None:
    assert median_step(make_table(seconds)) == (None if step is None else step * SECOND)


def test_the_usual_step_is_taken_within_series() -> None:
    assert median_step(make_table([0, 0.1, 10, 10.1, 20, 20.1], series=list("ababab"))) == 10 * SECOND
