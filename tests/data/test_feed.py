"""A series piece by piece lies on the grid exactly as all of it at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import SECOND

from netanomaly.data.clock import jumps
from netanomaly.data.feed import FeedRule, Piece, SeriesFeed
from netanomaly.data.grid import Grid, counter_reach, place_on_grid
from netanomaly.data.ingest import Table
from streams import metrics_table, times_near_halves

NAN = float("nan")
MAX_GAP = 3
REACH = counter_reach(MAX_GAP)
PROPERTY = settings(max_examples=80, deadline=None)
INTERVALS = st.sampled_from([10, 7, SECOND])


def new_feed(table: Table, interval: int, *, average: bool, history: int) -> SeriesFeed:
    return SeriesFeed(FeedRule(table.metrics, interval, MAX_GAP, average, history))


def take(feed: SeriesFeed, table: Table, rows: slice) -> list[Piece]:
    return list(feed.take(table.times[rows], table.values[rows]))


def own_steps(table: Table, interval: int) -> list[int]:
    """The rows that begin a step: only before them a series may be cut."""
    return (np.flatnonzero(jumps(table.times, interval)[0][1:] > 0) + 1).tolist()


def check(pieces: list[Piece], first: int, grid: Grid, history: int, done: dict[int, int]) -> None:
    """New steps, and those that they depend on, are those of the grid; `done` counts the steps of each segment."""
    for piece in pieces:
        rows = np.arange(first + piece.rows.start, first + piece.rows.stop)
        (number,) = set(grid.row_segment[rows].tolist())
        segment, before = grid.segments[number], done.get(number, 0)
        start = before - piece.context
        assert piece.context <= min(history, before)
        assert (segment.rows[max(0, before - history) : start] == -1).all()  # nothing that counts is left out
        assert (piece.steps + start).tolist() == grid.row_step[rows].tolist()
        wanted = segment.values[start : start + len(piece.values)]
        np.testing.assert_array_equal(piece.values[:, 0], wanted[:, 0])
        whole = 0 if start == 0 else REACH  # rates of the oldest steps look further back than is kept
        np.testing.assert_array_equal(piece.values[whole:], wanted[whole:])
        done[number] = before + len(piece.values) - piece.context


@PROPERTY
@given(INTERVALS, st.data(), st.booleans(), st.sampled_from([REACH, REACH + 1, 9, 30]))
def test_pieces_are_the_segments_of_all_rows_at_once(
    interval: int, data: st.DataObject, average: bool, history: int
) -> None:
    table = metrics_table(data.draw(times_near_halves(interval)), data.draw(st.integers(0, 10**6)))
    grid = place_on_grid(table, interval, MAX_GAP, "mean" if average else "last")
    bounds = own_steps(table, interval)
    cuts = sorted(data.draw(st.sets(st.sampled_from(bounds)))) if bounds else []
    feed, done = new_feed(table, interval, average=average, history=history), {}
    for first, stop in zip([0, *cuts], [*cuts, len(table)], strict=True):
        apart = feed.apart(table.times[first:stop])
        assert apart[1:].tolist() == jumps(table.times, interval)[0][first + 1 : stop].tolist()
        check(take(feed, table, slice(first, stop)), first, grid, history, done)
        assert feed.newest == table.times[stop - 1]
        assert feed.length == grid.row_step[stop - 1] + 1
    assert done == {number: len(segment) for number, segment in enumerate(grid.segments)}


@PROPERTY
@given(INTERVALS, st.data())
def test_new_steps_need_no_more_than_a_totals_reach_of_history(interval: int, data: st.DataObject) -> None:
    table = metrics_table(data.draw(times_near_halves(interval)), data.draw(st.integers(0, 10**6)))
    grid = place_on_grid(table, interval, MAX_GAP, "last")
    feed = new_feed(table, interval, average=False, history=REACH)
    for first, stop in zip([0, *own_steps(table, interval)], [*own_steps(table, interval), len(table)], strict=True):
        for piece in take(feed, table, slice(first, stop)):
            segment = grid.segments[grid.row_segment[first]]
            row = grid.row_step[stop - 1]
            np.testing.assert_array_equal(piece.values[-1], segment.values[row])
            assert piece.context <= REACH


def test_a_short_gap_is_masked_and_a_long_one_starts_a_segment() -> None:
    table = metrics_table(np.array([0, 10, 50, 100]))
    feed = new_feed(table, 10, average=False, history=9)
    (first,), (masked,), (anew,) = (take(feed, table, rows) for rows in (slice(0, 2), slice(2, 3), slice(3, 4)))
    assert (first.context, len(first.values)) == (0, 2)
    assert (masked.context, len(masked.values), masked.steps.tolist()) == (2, 6, [5])
    assert np.isnan(masked.values[2:5]).all()
    assert (anew.context, len(anew.values), anew.steps.tolist(), feed.length) == (0, 1, [0], 1)


def test_a_long_gap_within_the_rows_makes_two_pieces() -> None:
    table = metrics_table(np.array([0, 10, 60, 70]))
    first, second = take(new_feed(table, 10, average=False, history=9), table, slice(0, 4))
    assert (first.rows, second.rows) == (slice(0, 2), slice(2, 4))
    assert second.context == 0


def test_without_history_nothing_is_kept() -> None:
    table = metrics_table(np.array([0, 10, 20]))
    feed = new_feed(table, 10, average=False, history=0)
    take(feed, table, slice(0, 2))
    (piece,) = take(feed, table, slice(2, 3))
    assert (piece.context, len(piece.values), feed.length) == (0, 1, 3)
    assert feed.newest == 20


@pytest.mark.parametrize(("average", "wanted"), [(False, 3.0), (True, 2.0)])
def test_rows_on_one_step_are_merged(average: bool, wanted: float) -> None:
    table = metrics_table(np.array([0, 10, 12]))
    table.values[:, 0] = [0.0, 1.0, 3.0]
    (piece,) = take(new_feed(table, 10, average=average, history=9), table, slice(0, 3))
    assert piece.values[:, 0].tolist() == [0.0, wanted]
    assert piece.steps.tolist() == [0, 1, 1]


def test_asking_for_the_steps_takes_nothing() -> None:
    table = metrics_table(np.array([0, 10, 12]))
    feed = new_feed(table, 10, average=False, history=9)
    assert feed.newest is None
    assert feed.apart(table.times).tolist() == [0, 1, 0]
    assert feed.newest is None
    take(feed, table, slice(0, 1))
    assert feed.apart(table.times[1:]).tolist() == feed.apart(table.times[1:]).tolist() == [1, 0]
