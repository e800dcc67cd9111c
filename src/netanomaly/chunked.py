"""Rows of any number, labelled a chunk at a time: memory holds a chunk and what the next one depends on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from netanomaly.build import build_feed_rule, build_spans, threads
from netanomaly.data.batches import IGNORED, ChannelSegment
from netanomaly.data.feed import Piece, SeriesFeed
from netanomaly.data.ingest import Table
from netanomaly.errors import DataError
from netanomaly.predictor import Predictor


@dataclass
class _Chunk:
    """The rows `first`, `first` + 1 ... of the stream and what is known of them so far."""

    first: int
    table: Table
    answers: NDArray[np.float64]
    unknown: int


@dataclass(frozen=True)
class _Rows:
    """Rows of one series in order of time: their numbers in the stream, times, and metrics."""

    numbers: NDArray[np.int64]
    times: NDArray[np.int64]
    values: NDArray[np.float64]

    def __getitem__(self, which: slice) -> _Rows:
        return _Rows(self.numbers[which], self.times[which], self.values[which])

    def __add__(self, later: _Rows) -> _Rows:
        pairs = ((getattr(self, key), getattr(later, key)) for key in ("numbers", "times", "values"))
        return _Rows(*(np.concatenate(pair) for pair in pairs))

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass
class _Series:
    """A series in the stream, and the rows of its last step if later rows may lie on that, too."""

    feed: SeriesFeed
    waiting: _Rows


class ChunkedPredictor:
    """Labels tables that follow each other, as one table that holds them all.

    The rows of each series come in order of time (within a table in any order). Where several rows may share a step
    of the grid, those of a series' last step wait for the next table, so that all of them are seen.
    """

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor
        self._rule = build_feed_rule(predictor.config)
        self._may_share = predictor.config.data.duplicates != "error"
        self._series: dict[str, _Series] = {}
        self._chunks: deque[_Chunk] = deque()
        self._rows = self._longest = 0
        self._window = build_spans(predictor.config).window

    def label(self, tables: Iterable[Table]) -> Iterator[pd.DataFrame]:
        """What `Predictor.predict` returns of all rows, in as many pieces as there are tables; see `answer`."""
        for table, answers in self.answer(tables):
            yield self._predictor.labelled(table, answers)

    def answer(self, tables: Iterable[Table]) -> Iterator[tuple[Table, NDArray[np.float64]]]:
        """The tables, each with the class probabilities and the novelty of its rows, (rows, K + 1).

        Raises:
            DataError: rows of a series go back in time from one table to the next, or share a step and must not, or
                no series had as many rows as one window.
        """
        for table in tables:
            self._score(self._due(table))
            yield from self._finished()
        self._score([self._let_go(series) for series in self._series.values()])
        yield from self._finished()
        if self._longest < self._window and self._chunks:
            raise DataError(
                f"{self._chunks[0].table.origins[0].name}: the longest stretch without a gap has {self._longest} rows, "
                f"one window needs {self._window}; give more rows of the same series before the ones that matter"
            )

    def _due(self, table: Table) -> list[tuple[SeriesFeed, _Rows]]:
        """The rows that can be labelled now that a table is there; the others wait."""
        chunk = _Chunk(self._rows, table, np.zeros((len(table), len(self._predictor.classes) + 1)), len(table))
        self._chunks.append(chunk)
        self._rows += len(table)
        due = []
        for name, found in table.series_rows.items():
            rows = found[np.argsort(table.times[found], kind="stable")]
            if name not in self._series:
                self._series[name] = _Series(SeriesFeed(self._rule), _no_rows(len(table.metrics)))
            series = self._series[name]
            series.waiting += _Rows(chunk.first + rows, table.times[rows], table.values[rows])
            due.append(self._let_go(series, all_rows=not self._may_share))
        return due + [self._let_go(series) for name, series in self._series.items() if self._is_over(name, table)]

    def _is_over(self, name: str, table: Table) -> bool:
        """Whether the step on which the rows of a series wait that is not in this table cannot go on: time has."""
        waiting = self._series[name].waiting
        if name in table.series_rows or not len(waiting):
            return False
        return abs(int(table.times.max()) - int(waiting.times[-1])) >= self._rule.interval_ns

    def _let_go(self, series: _Series, *, all_rows: bool = True) -> tuple[SeriesFeed, _Rows]:
        """The rows of a series that are labelled now: all, or all but those on the last step."""
        rows, feed = series.waiting, series.feed
        count = len(rows)
        if count:
            self._check_order(feed, rows)
            is_shared = feed.apart(rows.times) == 0
            is_shared[0] &= feed.clock is not None
            if is_shared[0] or (not self._may_share and is_shared.any()):
                raise self._shared_step(int(rows.numbers[np.flatnonzero(is_shared)[0]]))
            count = count if all_rows else int(np.flatnonzero(~is_shared)[-1])
        series.waiting = rows[count:]
        return feed, rows[:count]

    def _check_order(self, feed: SeriesFeed, rows: _Rows) -> None:
        back = np.flatnonzero(np.diff(rows.times, prepend=rows.times[0] if feed.newest is None else feed.newest) < 0)
        for number in rows.numbers[back[:1]]:
            chunk, row = self._place(int(number))
            raise DataError(
                f"{chunk.table.where(row)}: series '{chunk.table.series[row]}' goes back in time "
                f"({chunk.table.time_texts[row]} after a later row); sort the files by time, or read them whole "
                "(--chunk-rows 0)"
            )

    def _shared_step(self, number: int) -> DataError:
        """What is wrong with a row on the step of one before it."""
        advice = "set data.duplicates: last or mean, name the series columns, or check data.interval"
        if self._may_share:
            advice = "that one is labelled already; sort the files by time, or read them whole (--chunk-rows 0)"
        chunk, row = self._place(number)
        return DataError(
            f"{chunk.table.where(row)}: {chunk.table.time_texts[row]} is within one interval of an earlier row of "
            f"series '{chunk.table.series[row]}'; {advice}"
        )

    def _place(self, number: int) -> tuple[_Chunk, int]:
        """The chunk of a row, and its place in there."""
        chunk = next(chunk for chunk in self._chunks if number < chunk.first + len(chunk.table))
        return chunk, number - chunk.first

    def _score(self, due: list[tuple[SeriesFeed, _Rows]]) -> None:
        """Label the rows and note the answers in their chunks."""
        pieces: list[Piece] = []
        asked: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []  # numbers, and steps in the piece
        for feed, rows in due:
            for piece in feed.take(rows.times, rows.values) if len(rows) else ():
                pieces.append(piece)
                asked.append((rows.numbers[piece.rows], piece.steps))
                self._longest = max(self._longest, feed.length)
        with (
            threads(self._predictor.config),
            ThreadPoolExecutor(torch.get_num_threads()) as pool,
        ):  # numpy and bottleneck let each other run
            inputs = list(pool.map(self._input, pieces))
        for (numbers, steps), answers in zip(asked, self._predictor.score(inputs), strict=True):
            for chunk in self._chunks:
                inside = (numbers >= chunk.first) & (numbers < chunk.first + len(chunk.table))
                chunk.answers[numbers[inside] - chunk.first] = answers[steps[inside]]
                chunk.unknown -= int(inside.sum())

    def _input(self, piece: Piece) -> ChannelSegment:
        """A piece as the model takes it, its new steps asked about."""
        valid: NDArray[np.bool_] = np.asarray(~np.isnan(piece.values).all(axis=1))
        asked = valid & (np.arange(len(valid)) >= piece.context)
        targets = np.where(asked, 0, IGNORED).astype(np.int64)
        return ChannelSegment(self._predictor.channels(piece.values), valid, targets)

    def _finished(self) -> Iterator[tuple[Table, NDArray[np.float64]]]:
        """The answers of the chunks in front that are known whole, once any series is as long as a window."""
        while self._longest >= self._window and self._chunks and self._chunks[0].unknown == 0:
            chunk = self._chunks.popleft()
            yield chunk.table, chunk.answers


def _no_rows(metrics: int) -> _Rows:
    nothing = np.empty(0, dtype=np.int64)
    return _Rows(nothing, nothing, np.empty((0, metrics)))
