"""From the config tree to plain arguments: the only code besides config.py that reads the tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from netanomaly.config import Config, DataConfig, SplitByFile, SplitBySeries, SplitByTable, SplitByTime
from netanomaly.data.grid import Grid, median_step, place_on_grid
from netanomaly.data.ingest import InputFormat, Table
from netanomaly.data.reader import TableFormat
from netanomaly.data.schema import Metric
from netanomaly.data.splits import check_files_disjoint, split_by_series, split_by_table, split_by_time
from netanomaly.data.timestamps import TimeFormat
from netanomaly.durations import parse_duration, span_rows
from netanomaly.errors import ConfigError
from netanomaly.model.classifier import NetworkAnomalyClassifier
from netanomaly.training.trainer import Recipe


@dataclass(frozen=True)
class Spans:
    """The config's spans in rows of the grid."""

    interval_ns: int
    max_gap: int
    window: int
    baselines: tuple[int, ...]


def build_spans(config: Config) -> Spans:
    """Windows, baselines and gaps in rows. Raises ConfigError without an interval."""
    if config.data.interval is None:
        raise ConfigError("data.interval: this key is required")
    interval = parse_duration(config.data.interval)
    return Spans(
        interval_ns=interval,
        max_gap=span_rows(config.data.max_gap, interval),
        window=span_rows(config.model.window, interval),
        baselines=tuple(span_rows(span, interval) for span in config.channels.baselines),
    )


def check_interval(config: Config, table: Table) -> None:
    """Raise a ConfigError that says what the data look like, if the config has no interval."""
    if config.data.interval is None:
        raise ConfigError(f"data.interval: this key is required; the usual step in these data is {median_step(table)}")


def use_threads(config: Config) -> None:
    """Compute with the config's number of CPU threads from now on, in the whole process."""
    if config.threads is not None:
        torch.set_num_threads(config.threads)


def build_input_format(data: DataConfig) -> InputFormat:
    """How to read the files; the metrics have to be resolved (no patterns).

    Raises:
        ConfigError: a column is to be a metric and something else.
    """
    others = {*data.timestamp.column, *data.series, data.label}
    for metric in data.metrics:
        if (metric.column or metric.name) in others:
            raise ConfigError(f"data.metrics: '{metric.name}' is the column of time, series or label as well")
    return InputFormat(
        metrics=tuple(Metric(m.name, m.column or m.name, m.unit, m.kind) for m in data.metrics),
        time_columns=data.timestamp.column,
        times=TimeFormat(
            data.timestamp.format,
            data.timestamp.unit,
            data.timestamp.timezone,
            data.timestamp.mixed_offsets == "utc",
        ),
        series_columns=data.series,
        label=data.label,
        cells=TableFormat(
            (),
            (),
            separator=data.separator,
            decimal=data.decimal,
            encoding=data.encoding,
            missing=data.missing,
            skip_bad_lines=data.bad_lines == "skip",
        ),
    )


def resolve_metrics(config: Config, header: Sequence[str]) -> Config:
    """The config with patterns such as `tx_*` replaced by the columns they match, in the header's order.

    Raises:
        ConfigError: a pattern matches no column, or two metrics have one name.
    """
    data = config.data
    taken = {*data.timestamp.column, *data.series, data.label}
    taken |= {metric.column or metric.name for metric in data.metrics}
    metrics = []
    for metric in data.metrics:
        is_pattern = metric.column is None and metric.name not in header and any(c in metric.name for c in "*?")
        if not is_pattern:
            metrics.append(metric)
            continue
        matches = [column for column in header if column not in taken and fnmatchcase(column, metric.name)]
        if not matches:
            raise ConfigError(
                f"data.metrics: the pattern '{metric.name}' matches no column of {', '.join(header[:12])}"
            )
        taken |= set(matches)
        metrics += [metric.model_copy(update={"name": column}) for column in matches]
    names = [metric.name for metric in metrics]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"data.metrics: the metric '{name}' is given twice")
    return config.model_copy(update={"data": data.model_copy(update={"metrics": tuple(metrics)})})


def build_grid(config: Config, table: Table) -> Grid:
    """The table on the config's grid."""
    spans = build_spans(config)
    return place_on_grid(table, spans.interval_ns, spans.max_gap, config.data.duplicates)


def build_row_parts(config: Config, table: Table, form: InputFormat) -> tuple[NDArray[np.int8], int | None]:
    """The part of each row as the config splits them (rows,), and the purge if the config sets one."""
    split = config.data.split
    match split:
        case SplitBySeries():
            return split_by_series(table, split.train, split.validation, split.test, config.seed), None
        case SplitByTime():
            return split_by_time(table, split.validation, split.test, form), split.purge
        case SplitByTable():
            path = Path(config.data.root) / split.path
            return split_by_table(table, path, form, form.cells), split.purge
        case SplitByFile():
            check_files_disjoint(table)
            return table.parts, None


def build_model(config: Config, channels: int, classes: int) -> NetworkAnomalyClassifier:
    """A classifier of the config's shape with fresh weights."""
    model = config.model
    return NetworkAnomalyClassifier(
        channels,
        classes,
        window=build_spans(config).window,
        width=model.width,
        n_heads=model.n_heads,
        depth=model.depth,
        stem=model.stem,
        read_out=model.read_out,
        position_base=model.position_base,
        dropout=model.dropout,
    )


def build_recipe(config: Config) -> Recipe:
    """How to train."""
    return Recipe(**config.training.model_dump())


def build_device(name: str) -> torch.device:
    """The device to compute on. Raises ConfigError if CUDA is asked for and not there."""
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device: cuda is asked for, but PyTorch sees no CUDA device; use cpu or auto")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)
