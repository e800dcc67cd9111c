"""Many series row by row lie on the grid exactly as all rows at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import SECOND

from netanomaly.data.feed import FeedRule
from netanomaly.data.grid import place_on_grid
from netanomaly.data.ingest import Table
from netanomaly.data.live_grid import LiveGrid, Placed
from streams import metrics_table, times_near_halves

MAX_GAP = 3
PROPERTY = settings(max_examples=80, deadline=None)
INTERVALS = st.sampled_from([10, 7, SECOND])


def new_grid(table: Table, interval: int, *, average: bool, slots: int) -> LiveGrid:
    return LiveGrid(FeedRule(table.metrics, interval, MAX_GAP, average, 0), slots)


def turns(lengths: list[int], data: st.DataObject) -> list[list[int]]:
    """Which series have a row in each turn, until all rows of all are through."""
    left, result = list(lengths), []
    while any(left):
        waiting = [series for series, count in enumerate(left) if count]
        chosen = data.draw(st.lists(st.sampled_from(waiting), min_size=1, unique=True))
        for series in chosen:
            left[series] -= 1
        result.append(chosen)
    return result


def first_rows(table: Table, count: int) -> Table:
    return replace(
        table,
        **{key: getattr(table, key)[:count] for key in ("series", "times", "time_texts", "values", "labels", "parts")},
    )


@PROPERTY
@given(INTERVALS, st.data(), st.booleans(), st.integers(0, 30))
def test_rows_are_placed_as_all_at_once(interval: int, data: st.DataObject, average: bool, restart: int) -> None:
    count = data.draw(st.integers(1, 3))
    tables = [
        metrics_table(data.draw(times_near_halves(interval, most=16)), data.draw(st.integers(0, 10**6)))
        for _ in range(count)
    ]
    grids = [place_on_grid(table, interval, MAX_GAP, "mean" if average else "last") for table in tables]
    live, at = new_grid(tables[0], interval, average=average, slots=1), [0] * count
    live.grow(count - 1)
    for turn, chosen in enumerate(turns([len(table) for table in tables], data)):
        if turn == restart:  # all that it knows is in its state
            fresh = new_grid(tables[0], interval, average=average, slots=count)
            fresh.state = {key: array.copy() for key, array in live.state.items()}
            live = fresh
        slots = np.array(chosen)
        times = np.array([tables[series].times[at[series]] for series in chosen])
        values = np.array([tables[series].values[at[series]] for series in chosen])
        assert not live.goes_back(slots, times).any()
        apart = live.apart(slots, times)
        placed = live.take(slots, times, values)
        assert apart.tolist() == placed.jumps.tolist()
        for n, series in enumerate(chosen):
            row, grid = at[series], grids[series]
            starts = row == 0 or grid.row_segment[row] != grid.row_segment[row - 1]
            assert placed.starts[n] == starts
            assert live.state["step"][series] == grid.row_step[row]
            if not starts:
                assert placed.jumps[n] == grid.row_step[row] - grid.row_step[row - 1]
            so_far = place_on_grid(
                first_rows(tables[series], row + 1), interval, MAX_GAP, "mean" if average else "last"
            )
            np.testing.assert_array_equal(placed.values[n], so_far.segments[-1].values[-1])
            at[series] += 1


def rows(live: LiveGrid, times: list[int], values: list[list[float]]) -> list[Placed]:
    """One row after the other of the series in slot 0."""
    return [
        live.take(np.array([0]), np.array([time]), np.array([row], dtype=np.float64))
        for time, row in zip(times, values, strict=True)
    ]


@pytest.mark.parametrize(("average", "wanted"), [(False, [1.0, 3.0, 5.0]), (True, [1.0, 2.0, 3.0])])
def test_rows_on_one_step_are_merged_as_they_come(average: bool, wanted: list[float]) -> None:
    live = new_grid(metrics_table(np.array([0])), 10, average=average, slots=1)
    placed = rows(live, [0, 2, 4], [[1, 0, 0], [3, 0, 0], [5, 0, 0]])
    assert [float(one.values[0, 0]) for one in placed] == wanted
    assert [int(one.jumps[0]) for one in placed] == [1, 0, 0]


def test_a_counter_is_a_rate_since_the_last_total_of_an_earlier_step() -> None:
    live = new_grid(metrics_table(np.array([0])), SECOND, average=False, slots=1)
    placed = rows(
        live,
        [0, SECOND, SECOND + 1, 3 * SECOND, 4 * SECOND, 4 * SECOND + SECOND // 4],
        [[0, total, 0] for total in (100, 110, np.nan, 130, 10, 190)],
    )
    found = [float(one.values[0, 1]) for one in placed]
    np.testing.assert_array_equal(found, [np.nan, 10, np.nan, 10, np.nan, 60 / 1.25])


def test_a_row_before_the_last_one_goes_back() -> None:
    live = new_grid(metrics_table(np.array([0])), 10, average=False, slots=2)
    assert not live.goes_back(np.array([0, 1]), np.array([-50, -50])).any()
    rows(live, [100], [[0, 0, 0]])
    assert live.goes_back(np.array([0, 0, 0, 1]), np.array([99, 100, 101, 99])).tolist() == [True, False, False, False]


def test_growing_changes_nothing_of_the_series_that_are_there() -> None:
    live = new_grid(metrics_table(np.array([0])), 10, average=False, slots=1)
    rows(live, [100, 110], [[0, 5, 0], [0, 6, 0]])
    before = {key: array.copy() for key, array in live.state.items()}
    live.grow(3)
    fresh = new_grid(metrics_table(np.array([0])), 10, average=False, slots=3)
    for key, array in live.state.items():
        np.testing.assert_array_equal(array[:1], before[key])
        np.testing.assert_array_equal(array[1:], fresh.state[key])
