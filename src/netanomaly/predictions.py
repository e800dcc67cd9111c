"""From files to a file of answers, written as they come."""

from __future__ import annotations

import gzip
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm

from netanomaly.alarms.raising import AlarmCollector
from netanomaly.build import build_input_format
from netanomaly.chunked import ChunkedPredictor
from netanomaly.csv_lines import csv_lines
from netanomaly.data.ingest import Table, find_files, read_tables
from netanomaly.errors import ConfigError
from netanomaly.files import atomic
from netanomaly.predictor import Predictor

log = logging.getLogger(__name__)

SUFFIXES = (".csv", ".csv.gz", ".parquet")
"""What a file of answers may be called."""

STANDARD_OUTPUT = Path("-")

Write = Callable[[pd.DataFrame], None]


def label_files(
    predictor: Predictor,
    files: Sequence[str],
    out: Path | None,
    chunk_rows: int,
    collector: AlarmCollector | None = None,
    *,
    raw_text: bool = False,
) -> int:
    """Label every row of the files, in order, and write the answers; the file appears whole or not at all.

    Args:
        chunk_rows: rows in memory at a time; 0: all.
        out, raw_text: as `collector`, of `label_tables`.

    Returns:
        How many rows there were.

    Raises:
        DataError: see `ChunkedPredictor.label`; answers on standard output may be there already.
    """
    return _write(predictor, _answers(predictor, files, chunk_rows), out, collector, raw_text)


def label_tables(
    predictor: Predictor,
    tables: Iterable[Table],
    out: Path | None,
    collector: AlarmCollector | None = None,
    *,
    raw_text: bool = False,
) -> int:
    """The same for the rows of tables, each series in order of time from table to table.

    Args:
        out: CSV, CSV.gz or Parquet; `STANDARD_OUTPUT`: CSV; None: nowhere, the rows are for the collector alone.
        collector: takes all rows with their probabilities as well.
        raw_text: names that a spreadsheet would run as formulas are written into a CSV as they are.
    """
    return _write(predictor, ChunkedPredictor(predictor).answer(tables), out, collector, raw_text)


def _write(
    predictor: Predictor,
    answered: Iterable[tuple[Table, NDArray[np.float64]]],
    out: Path | None,
    collector: AlarmCollector | None,
    raw_text: bool,
) -> int:
    """Write what was answered, tell the collector, count."""
    rows = empty = unknown = 0
    shown = log.isEnabledFor(logging.INFO) and out != STANDARD_OUTPUT
    hidden = None if shown else True  # None: shown on a terminal
    with _writer(out, raw_text) as write, tqdm(desc="labelling", unit=" rows", unit_scale=True, disable=hidden) as bar:
        for table, answers in answered:
            if out is not None:
                write(predictor.labelled(table, answers))
            if collector is not None:
                collector.add(table.series, table.times, answers[:, :-1], answers[:, -1])
            rows += len(table)
            empty += int((~answers[:, :-1].any(axis=1)).sum())
            unknown += int((answers[:, -1] > 1).sum())
            bar.update(len(table))
    if empty or unknown:
        told = "%d of %d rows without any measurement (no_data: %.1f %%), %d like none of training (unknown: %.1f %%)"
        log.info(told, empty, rows, 100 * empty / rows, unknown, 100 * unknown / rows)
    return rows


def _answers(
    predictor: Predictor, files: Sequence[str], chunk_rows: int
) -> Iterator[tuple[Table, NDArray[np.float64]]]:
    """Rows of the files, so many at a time (0: all), with their class probabilities and novelty (rows, K + 1)."""
    if chunk_rows == 0:
        table = predictor.read(files)
        yield table, predictor.answer(table)
        return
    form = build_input_format(predictor.config.data).without_label()
    yield from ChunkedPredictor(predictor).answer(read_tables(find_files(files, "."), form, chunk_rows))


@contextmanager
def _writer(out: Path | None, raw_text: bool) -> Iterator[Write]:
    """What writes frames below each other."""
    if out is None:
        yield lambda frame: None
        return
    if out == STANDARD_OUTPUT:
        sys.stdout.flush()
        binary = getattr(sys.stdout, "buffer", None)  # the same bytes on every system; a notebook's has none
        yield _csv_writer(binary.write if binary else lambda lines: sys.stdout.write(lines.decode()), raw_text)
        (binary or sys.stdout).flush()
        return
    with atomic(out) as temporary:
        if out.suffix == ".parquet":
            with _parquet_writer(out, temporary) as write:
                yield write
            return
        opener = gzip.open if out.suffix == ".gz" else open
        with opener(temporary, "wb") as stream:
            yield _csv_writer(stream.write, raw_text)


def _csv_writer(put: Callable[[bytes], object], raw_text: bool) -> Write:
    is_first = True

    def write(frame: pd.DataFrame) -> None:
        nonlocal is_first
        if is_first:
            put(frame.iloc[:0].to_csv(index=False, lineterminator="\n").encode())
        is_first = False
        put(csv_lines(frame, texts=3, raw_text=raw_text))  # series, timestamp, label

    return write


@contextmanager
def _parquet_writer(out: Path, temporary: Path) -> Iterator[Write]:
    try:
        import pyarrow
        from pyarrow.parquet import ParquetWriter
    except ImportError as error:
        raise ConfigError(f"--out {out}: writing Parquet needs pyarrow: pip install 'netanomaly[parquet]'") from error
    writer: ParquetWriter | None = None

    def write(frame: pd.DataFrame) -> None:
        nonlocal writer
        texts = frame["timestamp"].astype(str)  # files may write their times in different ways
        table = pyarrow.Table.from_pandas(frame.assign(timestamp=texts), preserve_index=False)
        if writer is None:
            writer = ParquetWriter(temporary, table.schema)
        writer.write_table(table.cast(writer.schema))

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()
