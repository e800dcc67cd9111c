"""A query for each metric becomes a table: a row for each series and step, read like the rows of a CSV."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netanomaly.data.ingest import NO_PART, InputFormat, Table, table_of_frames
from netanomaly.data.time_texts import format_times
from netanomaly.data.timestamps import TimeFormat
from netanomaly.errors import ConfigError, DataError
from netanomaly.prometheus.client import MILLISECOND, Found, PrometheusClient, TooMuch, pieces

TIME, SERIES = "(time)", "(series)"
"""Columns of the table; no metric is called so."""
MOST_SAMPLES = 1_000_000
"""Of an answer to one query, as far as the number of its series is known."""

Refused = Callable[[str], None]
"""Takes what is wrong with a value that is none; the row counts as missing in it then."""


class PrometheusTables:
    """Asks for the metrics of an input format.

    Args:
        form: its series columns are labels, its units and kinds those of the queries' values.
        queries: PromQL by name of metric.
        step: time between rows, in ns.

    Raises:
        ConfigError: a metric has no query, a query no metric; no labels; a step that is no whole milliseconds.
    """

    def __init__(self, client: PrometheusClient, form: InputFormat, queries: Mapping[str, str], step: int) -> None:
        if not form.series_columns:
            raise ConfigError("data.series: name the labels that tell series apart, like --set data.series=instance")
        if step % MILLISECOND:
            raise ConfigError("data.interval: Prometheus has no steps finer than a millisecond")
        measured = [metric.name for metric in form.metrics if metric.is_measured]
        for name in queries.keys() - set(measured):
            raise ConfigError(f"--query {name}: the bundle's metrics are {', '.join(measured)}")
        for name in measured:
            if name not in queries:
                raise ConfigError(
                    f"data.metrics: no query for '{name}': give --query {name}=PROMQL or the key query, or say "
                    "measured: false"
                )
        self.step = step
        self._series = 1  # in an answer, at most so far
        self._client, self._labels = client, form.series_columns
        self._queries = {name: queries[name] for name in measured}
        self._form = replace(
            form.without_label(),
            metrics=tuple(replace(metric, column=metric.name) for metric in form.metrics),
            time_columns=(TIME,),
            times=TimeFormat(),
            series_columns=(SERIES,),
        )

    def tables(self, start: int, end: int, refused: Refused | None = None) -> Iterator[Table]:
        """The rows from `start` to `end` (ns since 1970, whole steps), in order of time, a range query after another.

        Where too much is asked for at once, halves of the range are asked for.

        Args:
            refused: is told of infinite values; None: they are an error.

        Raises:
            Unreachable: Prometheus does not answer.
            DataError: it refuses a query; two results of one are of one series; or a value is infinite.
        """
        for first, last in pieces(start, end, self.step):
            yield from self._halved(first, last, refused)

    def _halved(self, start: int, end: int, refused: Refused | None) -> Iterator[Table]:
        """The rows of one range query for each metric, or of its halves if that is too much."""
        count = (end - start) // self.step + 1
        if count == 1 or count * self._series <= MOST_SAMPLES:
            try:
                table = self._table(start, end, refused)
            except TooMuch as error:
                if count == 1:
                    raise DataError(str(error)) from error
            else:
                if table is not None:
                    yield table
                return
        middle = start + count // 2 * self.step
        yield from self._halved(start, middle - self.step, refused)
        yield from self._halved(middle, end, refused)

    def _table(self, start: int, end: int, refused: Refused | None) -> Table | None:
        """The rows of one range query for each metric; None if there are none."""
        count = (end - start) // self.step + 1
        values: dict[str, NDArray[np.float64]] = {}  # (steps, M) by series
        seen: dict[str, NDArray[np.bool_]] = {}  # (steps,) by series: some query had a sample
        for column, (name, query) in enumerate(self._queries.items()):
            found = self._client.query_range(query, start, end, self.step)
            self._series = max(self._series, len(found))
            for series, one in zip(self._names(name, found), found, strict=True):
                if series not in values:
                    values[series] = np.full((count, len(self._queries)), np.nan)
                    seen[series] = np.full(count, False)
                places = (one.times - start + self.step // 2) // self.step
                values[series][places, column] = _finite(one, f"{name} of '{series}'", refused)
                seen[series][places] = True
        names = sorted(values)
        step, number = np.nonzero(np.stack([seen[name] for name in names], axis=1)) if names else ((), ())
        if not len(step):
            return None
        metrics = np.stack([values[name] for name in names], axis=1)[step, number]  # (rows, M)
        frame = pd.DataFrame(metrics, columns=list(self._queries))
        frame[TIME] = format_times(start + self.step * np.asarray(step, dtype=np.int64), TimeFormat())
        frame[SERIES] = np.array(names, dtype=object)[np.asarray(number)]
        return table_of_frames([(frame, NO_PART, "Prometheus")], self._form)

    def _names(self, metric: str, found: Sequence[Found]) -> list[str]:
        """The series of each result of a metric's query."""
        names: list[str] = []
        for one in found:
            lacking = [label for label in self._labels if not one.labels.get(label)]
            if lacking:
                has = ", ".join(one.labels) or "none"
                raise DataError(f"--query {metric}: a result has no label '{lacking[0]}' of data.series; it has {has}")
            names.append("/".join(one.labels[label] for label in self._labels))
        for name, times in Counter(names).items():
            if times > 1:
                two = [dict(one.labels) for one, other in zip(found, names, strict=True) if other == name][:2]
                raise DataError(
                    f"--query {metric}: two results are of series '{name}': {two[0]} and {two[1]}; aggregate them, or "
                    "name more labels in data.series"
                )
        return names


def _finite(one: Found, what: str, refused: Refused | None) -> NDArray[np.float64]:
    """The values; infinite ones are an error, or told and missing."""
    infinite = np.isinf(one.values)
    for place in np.flatnonzero(infinite):
        moment = format_times(one.times[place : place + 1], TimeFormat())[0]
        said = f"{what} at {moment} is {one.values[place]:+}: it may be divided by zero; make it NaN for 'not measured'"
        if refused is None:
            raise DataError(f"--query {said}")
        refused(said)
    return np.where(infinite, np.nan, one.values)
