"""Rows in, answers out, as they come."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pandas as pd

from netanomaly.alarms.live import Event, LiveAlarms
from netanomaly.build import build_input_format, build_spans
from netanomaly.data.ingest import Table, select_rows
from netanomaly.durations import format_duration
from netanomaly.interrupts import whole
from netanomaly.streaming import StreamingPredictor
from netanomaly.watch.admission import FAR_BEHIND, IN_A_ROW, Admission
from netanomaly.watch.answers import JsonLines, Sink
from netanomaly.watch.counts import Counts, LeftOut
from netanomaly.watch.csv_rows import CsvRows
from netanomaly.watch.incidents import Listener
from netanomaly.watch.source import Delivery, OpenSource, Source
from netanomaly.watch.state_file import StateFile

log = logging.getLogger(__name__)

STATE_SECONDS = 30.0
"""How often the state is saved."""


def watch(
    stream: StreamingPredictor,
    path: Path | None,
    *,
    follow: bool = False,
    state: Path | None = None,
    state_every: float = STATE_SECONDS,
    max_ahead: int | None = None,
    sinks: Sequence[Sink] | None = None,
) -> Counts:
    """Label the lines of a CSV as they come; each row that is taken is answered once.

    A line that cannot be used (broken, back in time) is told on standard error and left out; the others go on.

    Args:
        path: the CSV; None: standard input.
        follow: wait for more lines at the end of the file, through log rotation.
        state: as the others, of `watch_source`.

    Returns:
        What came, was answered and was left out.

    Raises:
        DataError: there is no header, or a column is missing.
    """
    source = csv_source(stream, path, follow=follow)
    return watch_source(stream, source, state=state, state_every=state_every, max_ahead=max_ahead, sinks=sinks)


def csv_source(stream: StreamingPredictor, path: Path | None, *, follow: bool) -> OpenSource:
    """The lines of a CSV, written as the config says."""
    form = build_input_format(stream.predictor.config.data).without_label()
    return lambda start, left_out: CsvRows(path, form, left_out, follow=follow, start=start)


def watch_source(
    stream: StreamingPredictor,
    opened: OpenSource,
    *,
    state: Path | None = None,
    state_every: float = STATE_SECONDS,
    max_ahead: int | None = None,
    sinks: Sequence[Sink] | None = None,
    listeners: Sequence[Listener] = (),
    alarms: LiveAlarms | None = None,
    counts: Counts | None = None,
) -> Counts:
    """Label the rows of any source as they come, and tell of incidents.

    Args:
        state: file to go on from, if it is there, and to write now and then and at the end.
        state_every: seconds between two writings.
        max_ahead: nanoseconds that a row's time may be ahead of this machine's clock; None: any time will do.
        sinks: who takes the answers; None: standard output, as JSON lines.
        listeners: who is told when alarms are raised and when incidents are over.
        alarms, counts: to be filled, for whoever looks at them meanwhile; None: new ones.

    Returns:
        What came, was answered and was left out.
    """
    config = stream.predictor.config
    alarms = stream.predictor.live_alarms() if alarms is None else alarms
    counts = Counts() if counts is None else counts
    left_out = LeftOut(counts)
    with ExitStack() as stack:
        kept = None if state is None else stack.enter_context(StateFile(state, stream, alarms, state_every))
        start, behind = (None, {}) if kept is None else kept.restore()
        source = stack.enter_context(opened(start, left_out))
        admission = Admission(
            stream,
            build_spans(config).interval_ns,
            may_share=config.data.duplicates != "error",
            max_ahead=max_ahead,
            sent_again=() if source.goes_on else stream.series,
        )
        admission.behind.update(behind)
        teller = _Teller(stream, alarms, [JsonLines()] if sinks is None else sinks, listeners)
        _go_on(source, _Answerer(stream, admission, teller, counts, left_out), kept)
    return counts


def _go_on(source: Source, answerer: _Answerer, kept: StateFile | None) -> None:
    """Answer row after row; what is saved are states after whole deliveries, each with its place in the input."""
    place, is_whole = source.place(), True
    behind = answerer.admission.behind
    try:
        for delivery in source.deliveries():
            with whole():
                is_whole = False
                answerer.take(delivery)
                place, is_whole = source.place(), True
                if kept is not None:
                    kept.save_if_due(place, behind, is_new=delivery.rows > 0)
            answerer.left_out.now_and_then()
    finally:
        with whole():
            answerer.left_out.at_the_end()
            if kept is not None and is_whole:
                kept.save(place, behind)
            elif kept is not None and not isinstance(sys.exception(), BrokenPipeError):
                log.warning("%s: not written at the end: some lines were interrupted half-way", kept.path)


class _Teller:
    """Delivers answers, and tells of incidents."""

    def __init__(
        self, stream: StreamingPredictor, alarms: LiveAlarms, sinks: Sequence[Sink], listeners: Sequence[Listener]
    ) -> None:
        self._stream, self._alarms, self._sinks, self._listeners = stream, alarms, sinks, listeners
        self._columns = [f"p_{name}" for name in stream.predictor.classes]

    def tell(self, table: Table, answers: pd.DataFrame) -> None:
        """The answers to some rows."""
        for sink in self._sinks:
            sink.take(answers)
        probabilities, novelty = answers[self._columns].to_numpy(), answers["novelty"].to_numpy()
        self._hear(self._alarms.take(table.series, table.times, probabilities, novelty))
        self._hear(self._alarms.forget(self._stream.alive))

    def begin_again(self, series: str) -> None:
        """Incidents of the series are over."""
        self._hear(self._alarms.begin_again(series))

    def _hear(self, events: Sequence[Event]) -> None:
        if events:
            for listener in self._listeners:
                listener.hear(events)


class _Answerer:
    """Judges, labels, delivers and counts."""

    def __init__(
        self,
        stream: StreamingPredictor,
        admission: Admission,
        teller: _Teller,
        counts: Counts,
        left_out: LeftOut,
    ) -> None:
        self.counts, self.admission, self.left_out = counts, admission, left_out
        self._stream, self._teller = stream, teller

    def take(self, delivery: Delivery) -> None:
        """Answer what has come."""
        begun = time.perf_counter()
        self.counts.lines += delivery.rows
        for table in delivery.tables:
            self.answer(table)
        if delivery.rows:
            self.counts.took(time.perf_counter() - begun)

    def answer(self, table: Table) -> None:
        """Answer the rows of a table that may be taken, each once."""
        while len(table):
            verdict = self.admission.judge(table)
            for row in verdict.left_out:
                self.left_out.add(row.kind, row.said)
            if len(verdict.taken):
                taken = select_rows(table, verdict.taken)
                answers = self._stream.update_table(taken)
                self._teller.tell(taken, answers)
                self.counts.answered.update(answers["label"].tolist())
                self.counts.newest = max(self.counts.newest or 0, int(taken.times.max()))
            if self._stream.too_early > self.counts.too_early:
                self.counts.too_early = self._stream.too_early
                log.warning("%d series came back too late: see --forget-after", self.counts.too_early)
            for name in verdict.again:
                log.warning(
                    "series '%s' begins again: %d rows in a row were more than %s before its last one",
                    name,
                    IN_A_ROW,
                    format_duration(FAR_BEHIND),
                )
                self._teller.begin_again(name)
                self.admission.begin_again(name)
                self.counts.begun_again += 1
            table = select_rows(table, np.array(verdict.waiting, dtype=np.int64))
