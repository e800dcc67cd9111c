"""`survey`: some files are looked through, and everything seen is told with its reason."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from netanomaly.data.file_names import series_of_file
from netanomaly.inspect.columns import Columns, guess_columns
from netanomaly.inspect.guesses import LabelGuess, LeftOut, Rhythm, SeriesGuess, Survey
from netanomaly.inspect.rhythm import rhythm_of
from netanomaly.inspect.sample import Sample, read_sample
from netanomaly.inspect.series import guess_label, guess_series, label_of_incidents, series_names
from netanomaly.inspect.times import Times, find_times

_VALUE = re.compile(r"[-+]?\d+(\.\d*)?([eE][-+]?\d+)?|\d{4}-\d\d-\d\d[T ].*")


def survey(paths: Sequence[Path], incidents: Path | None = None, rows: int = 0) -> Survey:
    """What some files with the same columns hold, from at most `rows` of their rows, or from all if that is 0.

    Args:
        incidents: a list of incidents that goes with them.

    Raises:
        DataError: a file cannot be read, or is empty.
    """
    sample = read_sample(paths, rows)
    obstacles = [*sample.obstacles, *_headless(sample)]
    if obstacles:
        return _unread(sample, obstacles)
    times = find_times(sample)
    if times is None:
        obstacles.append(
            f"{paths[0]}: no column holds times, and every row needs one; add a column of them, or of seconds since "
            "the start called 'elapsed' if the rows are in order"
        )
    elif times.problem:
        obstacles.append(times.problem)
    return _look_through(sample, times, incidents, obstacles)


def _look_through(sample: Sample, times: Times | None, incidents: Path | None, obstacles: Sequence[str]) -> Survey:
    time_columns = times.guess.columns if times else ()
    names = [name for name in sample.header if name not in time_columns]
    others = [name for name in names if times and name in times.others]
    found = guess_label(sample.cells[names])
    label = label_of_incidents(incidents) if incidents else found
    labels = {found.column} if found else set()
    candidates = [name for name in names if name not in others and name not in labels]
    moments = times.moments if times else None
    series = guess_series(sample.cells[candidates], moments, sample.file, [series_of_file(p) for p in sample.paths])
    groups = _rows_of_series(sample, series, None)
    rhythm = rhythm_of(moments, groups) if moments is not None else None
    in_order = groups if moments is None else _rows_of_series(sample, series, moments)
    columns = guess_columns(sample, [name for name in candidates if name not in series.columns], in_order)
    left_out = [LeftOut(name, "holds times too") for name in others] + [
        LeftOut(str(name), "labels, but --incidents names others") for name in labels if incidents
    ]
    if not columns.metrics:
        obstacles = [*obstacles, f"{sample.paths[0]}: no column of numbers to use as a metric"]
    return Survey(
        files=tuple(map(str, sample.paths)),
        rows=len(sample),
        is_whole=sample.is_whole,
        columns=sample.header,
        dialect=sample.dialect,
        bad_lines=sample.bad,
        time=times.guess if times else None,
        series=series,
        label=label,
        metrics=columns.metrics,
        left_out=(*left_out, *columns.left_out),
        missing=columns.missing,
        rhythm=rhythm,
        findings=tuple(_findings(sample, columns, series, rhythm, label)),
        obstacles=tuple(obstacles),
    )


def _rows_of_series(sample: Sample, series: SeriesGuess, moments: NDArray[np.int64] | None) -> list[NDArray[np.int64]]:
    """The rows of each series, in input order or in order of time."""
    number = series_names(sample.cells, series.columns, sample.file)
    key = np.arange(len(sample)) if moments is None else moments
    order = np.lexsort((key, number))
    return np.split(order, np.flatnonzero(np.diff(number[order])) + 1)


def _findings(
    sample: Sample, columns: Columns, series: SeriesGuess, rhythm: Rhythm | None, label: LabelGuess | None
) -> list[str]:
    """What is worth a look, in the order in which it matters."""
    found = []
    if sample.bad.count:
        total = sample.bad.count + len(sample)
        found.append(
            f"{sample.bad.count} of {total} lines have another number of fields than the header; the first: "
            f"{sample.bad.first}"
        )
    if rhythm and rhythm.shared:
        twice = f", {rhythm.repeated} of them the very time of another" if rhythm.repeated else ""
        found.append(f"{rhythm.shared} rows share a step of {rhythm.interval} with another of their series{twice}")
    if rhythm and rhythm.regular < 0.8:
        found.append(
            f"irregular steps: {rhythm.regular:.0%} are within a tenth of {rhythm.interval}, nine of ten between "
            f"{rhythm.steps[0]} and {rhythm.steps[1]}"
        )
    if rhythm and rhythm.backwards:
        found.append(f"{rhythm.backwards} rows are earlier than the row before them; they are sorted when read")
    for metric in columns.metrics:
        if metric.resets:
            found.append(f"the counter '{metric.column}' falls {metric.resets} times (resets or wraps): missing there")
    sparse = [f"{metric.column} ({metric.missing})" for metric in columns.metrics if metric.missing * 2 > len(sample)]
    if sparse:
        found.append(f"missing in most of the {len(sample)} rows: {', '.join(sparse)}")
    found += columns.findings
    if label is not None and label.column is not None:
        few = [name for name, rows in label.rows.items() if name and rows < 30]
        if few:
            found.append(f"labels with fewer than 30 rows: {', '.join(few[:8])}")
        if len([name for name in label.rows if name]) < 2:
            found.append("one label only: a classifier needs two or more")
    return found


def _headless(sample: Sample) -> list[str]:
    """Whether the first line holds values where names are expected."""
    values = [name for name in sample.header if _VALUE.fullmatch(name)]
    if not values or len(values) * 3 < len(sample.header):
        return []
    return [
        f"{sample.paths[0]}: line 1: found '{values[0]}' where names of columns are expected; write a header line "
        "above the values (Telegraf: csv_header = true in the output's settings)"
    ]


def _unread(sample: Sample, obstacles: Sequence[str]) -> Survey:
    """A survey of files whose columns have no certain names."""
    return Survey(
        files=tuple(map(str, sample.paths)),
        rows=len(sample),
        is_whole=sample.is_whole,
        columns=sample.header,
        dialect=sample.dialect,
        bad_lines=sample.bad,
        time=None,
        series=None,
        label=None,
        metrics=(),
        left_out=(),
        missing=(),
        rhythm=None,
        findings=(),
        obstacles=tuple(obstacles),
    )
