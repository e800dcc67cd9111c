"""CSV lines in, JSON lines out, as they come."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import queue
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pandas as pd

from netanomaly.build import build_input_format
from netanomaly.data.csv_pieces import CsvText
from netanomaly.data.csv_reader import read_csv_text
from netanomaly.data.ingest import table_of_source
from netanomaly.data.text_files import LONGEST_LINE, codec
from netanomaly.errors import DataError
from netanomaly.interrupts import whole
from netanomaly.streaming import StreamingPredictor
from netanomaly.terminal import printable

log = logging.getLogger(__name__)

AT_ONCE = 4096
"""Lines that are labelled together when more have come than could be labelled one by one."""
_SHOWN = 40
"""Characters of a line that is longer than a row can be."""
POLL_SECONDS = 0.2
"""How often a file that is followed is looked at."""


def watch(stream: StreamingPredictor, path: Path | None, *, follow: bool = False, state: Path | None = None) -> None:
    """Label the lines of a CSV as they come and print one JSON object for each.

    A line that cannot be used (broken, back in time) is told on standard error and left out; the others go on.

    Args:
        path: the CSV; None: standard input.
        follow: wait for more lines at the end of the file.
        state: file to go on from, if it is there, and to write at the end.

    Raises:
        DataError: there is no header, or a column is missing.
    """
    if state is not None and state.exists():
        stream.restore(state)
    cells = build_input_format(stream.predictor.config.data).cells
    left_out = 0
    try:
        with _opened(path, codec(cells.encoding)) as source:
            name = path or Path("standard input")
            header, batches = _header(source, name), _batches(source, follow)
            if not header.strip():
                raise DataError(f"{name}: no header line")
            _label(stream, CsvText(name, cells.encoding, header), 0)  # a missing column is told before any line comes
            line = 0
            for batch in batches:
                left_out += _label(stream, CsvText(name, cells.encoding, header + "".join(batch), line), len(batch))
                line += len(batch)
    finally:
        if left_out:
            log.warning("%d lines left out", left_out)
        if state is not None and stream.is_whole:
            stream.save(state)
        elif state is not None:
            log.warning("%s: not written, since an update was interrupted half-way", state)


def _header(source: TextIO, name: Path) -> str:
    header = source.readline(LONGEST_LINE)
    if len(header) == LONGEST_LINE:
        raise DataError(f"{name}: line 1: longer than {LONGEST_LINE:,} characters; is this a table?")
    return header


def _label(stream: StreamingPredictor, text: CsvText, lines: int) -> int:
    """Print the labels of some lines; how many had to be left out."""
    form = build_input_format(stream.predictor.config.data).without_label()
    try:
        _refuse_bytes(text)
        source = read_csv_text(text, form.columns(), form.cells)
        if not source.frame.empty:
            table = table_of_source(source, form)
            with whole():  # rows that are taken are answered, and what is saved is the state after them
                _print(stream.update_table(table, in_order=True))
    except DataError as error:
        if lines == 0:
            raise
        if lines == 1:
            log.warning("left out: %s", error)
            return 1
        header, *rest = io.StringIO(text.text, "")  # not splitlines: it knows line ends that a file does not
        middle = len(rest) // 2  # the lines that are right are labelled all the same
        halves = ((rest[:middle], text.shift), (rest[middle:], text.shift + middle))
        return sum(
            _label(stream, CsvText(text.path, text.encoding, header + "".join(half), shift), len(half))
            for half, shift in halves
        )
    return source.skipped


def _print(answers: pd.DataFrame) -> None:
    """A JSON object per row."""
    names = [json.dumps(str(name), ensure_ascii=False) for name in answers.columns]
    columns = [_values(answers[name]) for name in answers.columns]
    sys.stdout.write(
        "".join(
            "{" + ", ".join(f"{name}: {value}" for name, value in zip(names, row, strict=True)) + "}\n"
            for row in zip(*columns, strict=True)
        )
    )
    sys.stdout.flush()


def _values(column: pd.Series) -> list[str]:
    """As JSON writes them."""
    if pd.api.types.is_float_dtype(column):
        return [repr(value) for value in column.round(6).tolist()]
    return [printable(json.dumps(value, ensure_ascii=False)) for value in column.tolist()]


def _refuse_bytes(text: CsvText) -> None:
    """Raise a DataError at bytes that the encoding does not know; reading has made lone surrogates of them."""
    for number, line in enumerate(io.StringIO(text.text, "")):
        if not line.isascii() and any("\udc80" <= character <= "\udcff" for character in line):
            raise DataError(f"{text.path}: line {text.shift + number + 1}: not {text.encoding} text; set data.encoding")


def _batches(source: TextIO, follow: bool) -> Iterator[list[str]]:
    """The lines that have come since the batch before, at least one; whole lines only."""
    arrived: queue.Queue[str | None] = queue.Queue(maxsize=4 * AT_ONCE)
    threading.Thread(target=_read, args=(source, arrived, follow), daemon=True).start()
    while (line := arrived.get()) is not None:
        batch = [line]
        with contextlib.suppress(queue.Empty):
            while len(batch) < AT_ONCE:
                more = arrived.get_nowait()
                if more is None:
                    yield batch
                    return
                batch.append(more)
        yield batch


def _read(source: TextIO, arrived: queue.Queue[str | None], follow: bool) -> None:
    """Put whole lines into the queue, None at the end."""
    begun = ""
    while True:
        text = source.readline(LONGEST_LINE)
        begun = _spoilt_if_endless(begun + text)
        if text.endswith("\n"):
            arrived.put(begun)
            begun = ""
        elif len(text) == LONGEST_LINE:
            continue
        elif follow:
            time.sleep(POLL_SECONDS)
        else:
            if begun:
                arrived.put(begun)
            arrived.put(None)
            return


def _spoilt_if_endless(line: str) -> str:
    """The line, or the beginning of one longer than a row can be with a character that no row has: it is left out."""
    if len(line) <= LONGEST_LINE:
        return line
    return f"{line[:_SHOWN]}\0" + ("\n" if line.endswith("\n") else "")


@contextlib.contextmanager
def _opened(path: Path | None, encoding: str) -> Iterator[TextIO]:
    if path is None:
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(encoding=encoding, errors="surrogateescape", newline="")
        yield sys.stdin
        return
    try:
        stream = path.open(encoding=encoding, errors="surrogateescape", newline="")
    except OSError as error:
        raise DataError(f"{path}: cannot read the file: {error.strerror or error}") from error
    with stream:
        yield stream
