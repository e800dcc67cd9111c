"""Rows labelled as they come: thousands of series, a row of each at a time, O(window) work per row.

Of every series the last rows are kept in rings: metrics for the baselines, channels for the encoder's convolution,
and what the sequence model remembers of a row (keys and values). A new row computes its own and looks the others up.
"""

from __future__ import annotations

import hashlib
from collections.abc import KeysView, Mapping, Sequence
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray

from netanomaly.build import build_feed_rule, build_input_format, build_spans, threads
from netanomaly.data.arrays import no_rows, table_of_arrays, table_of_plain_rows
from netanomaly.data.channels import channel_history
from netanomaly.data.clock import rounded
from netanomaly.data.ingest import NO_PART, Table, table_of_frames
from netanomaly.errors import DataError
from netanomaly.predictor import Predictor
from netanomaly.stream_memory import Kept, StreamMemory
from netanomaly.stream_state import read_state, write_state

AT_ONCE = 2048
"""Series whose rows are computed together."""


class StreamingPredictor:
    """Labels rows as they come, as `Predictor.predict` would with all rows so far.

    Where rows may share a step of the grid (`data.duplicates` is `last` or `mean`), a row is labelled with those of
    its step that came before it; `predict` knows all of them.

    Args:
        predictor: of a trained bundle.
        forget_after: nanoseconds. A series without rows is forgotten once the others have gone on for so long after the
            gap that would start a new segment anyway: the memory is that of the series that are alive. Answers stay
            those of `Predictor.predict`, for rows that are no later than this behind those of the others. None: never.
    """

    def __init__(self, predictor: Predictor, *, forget_after: int | None = None) -> None:
        self.predictor = predictor
        self._form = build_input_format(predictor.config.data).without_label()
        self._may_share = predictor.config.data.duplicates != "error"
        self._cut = False  # an update was interrupted: some rows are taken, others are not
        spans, model = build_spans(predictor.config), predictor.model
        self._baseline = channel_history(predictor.config.channels.kinds, spans.baselines) + 1  # rows of metrics kept
        self._kernel, self._window = model.kernel, spans.window
        self._kept = max(self._kernel, self._window)  # rows whose validity is kept
        nothing = torch.zeros(1, self._kernel, predictor.channels.count, device=predictor.device)
        with torch.inference_mode():
            remembered = model.remember(model.embed(nothing, nothing[..., 0] > 0)).shape[-1]
        kept = Kept(
            self._baseline,
            self._kernel,
            self._kept,
            self._window,
            len(self._form.metrics),
            predictor.channels.count,
            remembered,
        )
        self._memory = StreamMemory(build_feed_rule(predictor.config), kept, predictor.device, forget_after)

    def update(self, rows: pd.DataFrame | pd.Series | Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> pd.DataFrame:
        """Label the next rows.

        Args:
            rows: of any number of series, in any order, none older than what its series had before: a frame, or one
                or several rows as mappings from column to value.

        Returns:
            As of `Predictor.predict`: one row per row, in the same order.

        Raises:
            DataError: the rows break the format, go back in time, or share a step and must not. None is taken then.
        """
        if not isinstance(rows, pd.DataFrame):
            listed = _mappings(rows)
            if (table := table_of_plain_rows(listed, self._form, "rows")) is not None:
                return self.update_table(table)
            rows = pd.DataFrame(listed)
        if not len(rows):
            return self.update_table(no_rows(self._form))
        answers = self.update_table(table_of_frames([(rows, NO_PART, "rows")], self._form))
        answers.index = rows.index
        return answers

    def update_table(self, table: Table, *, in_order: bool = False) -> pd.DataFrame:
        """The same for rows that are read already; `in_order`: a row after a later one of its series is refused."""
        if in_order:
            self._refuse_disorder(table)
        return self.predictor.labelled(table, self._advance(table))

    def update_arrays(self, series: Sequence[str], times: ArrayLike, values: ArrayLike) -> NDArray[np.float64]:
        """The same for rows that are arrays already: without a frame on either side, one row takes a fraction of it.

        Args:
            series: name of the series of each row. (n,)
            times: datetime64 or whole nanoseconds since 1970, UTC. (n,)
            values: metrics in the order and units of data.metrics, counters as totals, NaN where missing. (n, M)

        Returns:
            Probability of each class of `Predictor.classes`, (n, K); zeros where nothing was measured. `Predictor.name`
            makes labels of them.

        Raises:
            DataError: the arrays do not fit, or as for `update`. None is taken then.
        """
        return self._advance(table_of_arrays(series, np.asarray(times), np.asarray(values), self._form))[:, :-1]

    def _advance(self, table: Table) -> NDArray[np.float64]:
        """Class probabilities and novelty of the next rows. (rows, K + 1)"""
        answers = np.zeros((len(table), len(self.predictor.classes) + 1))
        self._refuse_cut()
        if not len(table):
            return answers
        self._memory.forget_silent(len(table))
        slots, fresh = self._memory.slots_of(table.series)
        order = np.lexsort((table.times, slots))  # series by series, each in order of time
        is_first = np.diff(slots[order], prepend=-1) != 0
        turn = np.arange(len(order)) - np.maximum.accumulate(np.where(is_first, np.arange(len(order)), 0))
        try:
            self._refuse(table, slots, order, is_first)
        except DataError:
            self._memory.forget(fresh)
            raise
        self._cut = True
        self._memory.note(slots[order], table.times[order])
        with threads(self.predictor.config), torch.inference_mode():
            for number in range(int(turn.max()) + 1):
                rows = order[turn == number]  # one of each series at most
                for some in np.split(rows, range(AT_ONCE, len(rows), AT_ONCE)):
                    answers[some] = self._take(slots[some], table.times[some], table.values[some])
        self._cut = False
        return answers

    @property
    def is_whole(self) -> bool:
        """Whether every update has been finished; one that was interrupted half-way leaves a state of no use."""
        return not self._cut

    def _refuse_cut(self) -> None:
        if self._cut:
            raise DataError("an update was interrupted half-way: restore a saved state, or start with a new stream")

    @property
    def series(self) -> list[str]:
        """The series of which something is known, forgotten ones last."""
        return self._memory.known

    @property
    def alive(self) -> KeysView[str]:
        """The series that are not forgotten."""
        return self._memory.alive

    @property
    def too_early(self) -> int:
        """How many series went on where they had stopped although they had been forgotten: see `forget_after`."""
        return self._memory.too_early

    def last_times(self, series: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Time of the last row of each series, 0 if it had none; whether it had any. (n,), (n,)"""
        return self._memory.last_times(series)

    def begin_again(self, series: str) -> None:
        """Forget a series wholly: its next row is its first, and may be older than its last."""
        self._memory.begin_again(series)

    def save(self, path: str | PathLike[str], more: Mapping[str, Any] | None = None) -> None:
        """Write what is kept of all series to a file, whole or not at all.

        Args:
            more: whatever `restore` is to give back, as JSON holds it.

        Raises:
            DataError: an update was interrupted half-way.
            OSError: the file cannot be written.
        """
        self._refuse_cut()
        arrays, words = self._memory.content()
        write_state(path, arrays, {**words, "bundle": self._fingerprint, "more": dict(more or {})})

    def restore(self, path: str | PathLike[str]) -> dict[str, Any]:
        """Go on from what `save` wrote, with the same bundle; gives back its `more`.

        Raises:
            DataError: the file is not such a file, or of another bundle.
        """
        arrays, words = read_state(path, self._fingerprint)
        fresh = StreamingPredictor(self.predictor, forget_after=self._memory.forget_after)
        try:
            more = dict(words["more"])
            fresh._memory.fill(arrays, words)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise DataError(f"{path}: not a saved state of a stream: {error}") from error
        self._memory, self._cut = fresh._memory, False
        return more

    def _take(
        self, slots: NDArray[np.int64], times: NDArray[np.int64], values: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Class probabilities and novelty of a new row of each of n series. (n,), (n,), (n, M) to (n, K + 1)"""
        kept = self._memory
        placed = kept.grid.take(slots, times, values)
        step = kept.grid.state["step"][slots]
        kept.values[slots[placed.starts]], kept.valid[slots[placed.starts]] = np.nan, False
        for behind in range(1, int(placed.jumps[~placed.starts].max(initial=0))):  # steps without a row
            passed = ~placed.starts & (placed.jumps > behind)
            kept.values[slots[passed], (step[passed] - behind) % self._baseline] = np.nan
            kept.valid[slots[passed], (step[passed] - behind) % self._kept] = False
        measured = np.asarray(~np.isnan(placed.values).all(axis=1))
        kept.values[slots, step % self._baseline] = placed.values
        kept.valid[slots, step % self._kept] = measured
        past = kept.values[slots[:, None], _last(step, self._baseline, self._baseline)]  # (n, rows, M)
        kept.channels[slots, step % self._kernel] = self.predictor.channels.newest(past)
        return self._answers(slots, step) * measured[:, None]

    def _answers(self, slots: NDArray[np.int64], step: NDArray[np.int64]) -> NDArray[np.float64]:
        """Class probabilities and novelty of the newest rows, whose channels are in their rings. (n, K + 1)"""
        kept, model, device, at = self._memory, self.predictor.model, self.predictor.device, slots[:, None]
        channels = kept.channels[at, _last(step, self._kernel, self._kernel)]  # (n, kernel, C)
        joined = kept.valid[at, _last(step, self._kernel, self._kept)]  # (n, kernel)
        held = kept.valid[at, _last(step, self._window, self._kept)]  # (n, L)
        newest = model.embed(torch.from_numpy(channels).to(device), torch.from_numpy(joined).to(device))  # (n, M D)
        kept.memory[slots, step % self._window] = model.remember(newest)
        remembered = kept.memory[at, _last(step, self._window, self._window)]  # (n, L, M R)
        logits = model.recall(newest, remembered, torch.from_numpy(held).to(device))
        novelty = self.predictor.newest_novelty(channels, joined)
        return np.concatenate([self.predictor.calibrated(logits.float().cpu().numpy()), novelty[:, None]], axis=1)

    def _refuse(
        self, table: Table, slots: NDArray[np.int64], order: NDArray[np.int64], is_first: NDArray[np.bool_]
    ) -> None:
        """Raise a DataError before anything is taken."""
        times = table.times[order]
        for row in order[is_first][self._memory.grid.goes_back(slots[order[is_first]], times[is_first])][:1]:
            raise _goes_back(table, int(row))
        if self._may_share:
            return
        apart = rounded(np.diff(times, prepend=times[0]), self._memory.grid.rule.interval_ns)
        apart[is_first] = self._memory.grid.apart(slots[order[is_first]], times[is_first])
        for row in order[apart <= 0][:1]:
            raise DataError(
                f"{table.where(int(row))}: {table.time_texts[row]} is within one interval of the row before it of "
                f"series '{table.series[row]}'; leave one out, or train with data.duplicates: last or mean"
            )

    def _refuse_disorder(self, table: Table) -> None:
        for rows in table.series_rows.values():
            for place in np.flatnonzero(np.diff(table.times[rows]) < 0)[:1]:
                raise _goes_back(table, int(rows[place + 1]))

    @cached_property
    def _fingerprint(self) -> str:
        """Of the weights: a state means nothing to others."""
        digest = hashlib.sha256()
        for name, weight in sorted(self.predictor.model.state_dict().items()):
            digest.update(name.encode() + weight.cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()


def _mappings(rows: object) -> list[Mapping[str, Any]]:
    """One or several rows as a list of mappings."""
    if isinstance(rows, pd.Series):
        rows = rows.to_dict()
    listed = [rows] if isinstance(rows, Mapping) else rows
    if not isinstance(listed, Sequence) or not all(isinstance(row, Mapping) for row in listed):
        raise DataError(f"rows: got {type(rows).__name__}, expected a data frame, a mapping or a list of mappings")
    return list(listed)


def _goes_back(table: Table, row: int) -> DataError:
    return DataError(
        f"{table.where(row)}: series '{table.series[row]}' goes back in time: {table.time_texts[row]} is before the "
        "row that came last"
    )


def _last(step: NDArray[np.int64], count: int, size: int) -> NDArray[np.int64]:
    """Where in a ring of `size` the last `count` steps are, the newest last. (n,) to (n, count)"""
    return (step[:, None] - np.arange(count - 1, -1, -1)) % size
