"""CSV lines in, answers out, as they come."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from netanomaly.build import build_input_format, build_spans
from netanomaly.data.ingest import Table
from netanomaly.durations import format_duration
from netanomaly.interrupts import whole
from netanomaly.streaming import StreamingPredictor
from netanomaly.watch.admission import FAR_BEHIND, IN_A_ROW, Admission, select
from netanomaly.watch.answers import JsonLines, Sink
from netanomaly.watch.counts import Counts, LeftOut
from netanomaly.watch.lines import Batch, LineSource
from netanomaly.watch.rows import RowReader
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
        state: file to go on from, if it is there, and to write now and then and at the end.
        state_every: seconds between two writings.
        max_ahead: nanoseconds that a row's time may be ahead of this machine's clock; None: any time will do.
        sinks: who takes the answers; None: standard output, as JSON lines.

    Returns:
        What came, was answered and was left out.

    Raises:
        DataError: there is no header, or a column is missing.
    """
    config = stream.predictor.config
    form = build_input_format(config.data).without_label()
    kept = None if state is None else StateFile(state, stream, state_every)
    start, behind = (None, {}) if kept is None else kept.restore()
    counts = Counts()
    left_out = LeftOut(counts)
    with LineSource(path, form.cells.encoding, follow=follow, start=start) as source:
        if source.news:
            log.warning("%s", source.news)
        rows = RowReader(source.name, source.encoding, source.header, form, left_out)
        admission = Admission(
            stream,
            build_spans(config).interval_ns,
            may_share=config.data.duplicates != "error",
            max_ahead=max_ahead,
            sent_again=() if source.goes_on else stream.series,
        )
        admission.behind.update(behind)
        answerer = _Answerer(stream, admission, [JsonLines()] if sinks is None else sinks, counts, left_out)
        _go_on(source, rows, answerer, kept)
    return counts


def _go_on(source: LineSource, rows: RowReader, answerer: _Answerer, kept: StateFile | None) -> None:
    """Answer line after line; what is saved are states after whole batches, each with its place in the input."""
    place, is_whole = source.place(), True
    behind = answerer.admission.behind
    try:
        for batch in source.batches():
            with whole():
                is_whole = False
                _label(batch, rows, answerer)
                source.header = rows.header
                place, is_whole = source.place(), True
                if kept is not None:
                    kept.save_if_due(place, behind, is_new=bool(batch.lines))
            answerer.left_out.now_and_then()
    finally:
        with whole():
            answerer.left_out.at_the_end()
            if kept is not None and is_whole:
                kept.save(place, behind)
            elif kept is not None and not isinstance(sys.exception(), BrokenPipeError):
                log.warning("%s: not written at the end: some lines were interrupted half-way", kept.path)


class _Answerer:
    """Judges, labels, delivers and counts."""

    def __init__(
        self,
        stream: StreamingPredictor,
        admission: Admission,
        sinks: Sequence[Sink],
        counts: Counts,
        left_out: LeftOut,
    ) -> None:
        self.counts, self.admission, self.left_out = counts, admission, left_out
        self._stream, self._sinks = stream, sinks

    def answer(self, table: Table) -> None:
        """Answer the rows of a table that may be taken, each once."""
        while len(table):
            verdict = self.admission.judge(table)
            for row in verdict.left_out:
                self.left_out.add(row.kind, row.said)
            if len(verdict.taken):
                answers = self._stream.update_table(select(table, verdict.taken))
                for sink in self._sinks:
                    sink.take(answers)
                self.counts.answered.update(answers["label"].tolist())
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
                self.admission.begin_again(name)
                self.counts.begun_again += 1
            table = select(table, np.array(verdict.waiting, dtype=np.int64))


def _label(batch: Batch, rows: RowReader, answerer: _Answerer) -> None:
    """Answer the lines of a batch."""
    if batch.turned:
        log.warning("%s", batch.turned)
    begun = time.perf_counter()
    answerer.counts.lines += sum(1 for line in batch.lines if not line.isspace())
    for table in rows.tables(batch.lines, batch.shift):
        answerer.answer(table)
    if batch.lines:
        answerer.counts.took(time.perf_counter() - begun)
