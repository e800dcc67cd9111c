"""From the config tree to plain arguments, so that nothing below this file knows the tree."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from netanomaly.build_model import with_architecture
from netanomaly.config import Config, DataConfig, SplitByFile, SplitBySeries, SplitByTable, SplitByTime
from netanomaly.config_fields import Section
from netanomaly.config_model import AttentionConfig
from netanomaly.data.cells import CellFormat
from netanomaly.data.channels import channel_history
from netanomaly.data.feed import FeedRule
from netanomaly.data.grid import Grid, counter_reach, median_step, place_on_grid
from netanomaly.data.ingest import InputFormat, Table
from netanomaly.data.schema import Metric
from netanomaly.data.splits import choose_moments, choose_series, split_by_series, split_by_table, split_by_time
from netanomaly.data.timestamps import TimeFormat
from netanomaly.durations import AUTO, Span, format_duration, parse_duration, span_rows
from netanomaly.errors import ConfigError
from netanomaly.model.classifier import window_history
from netanomaly.training.recipe import Recipe

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class GridSpans:
    """The spans that the grid needs: nanoseconds between rows, and rows that a gap may have."""

    interval_ns: int
    max_gap: int


@dataclass(frozen=True)
class Spans(GridSpans):
    """All the config's spans in rows of the grid."""

    window: int
    stem: int
    short_windows: tuple[int, ...]
    baselines: tuple[int, ...]


def build_grid_spans(config: Config) -> GridSpans:
    """Interval and gaps. Raises ConfigError without an interval."""
    if config.data.interval is None:
        raise ConfigError("data.interval: this key is required")
    interval = parse_duration(config.data.interval)
    return GridSpans(interval, span_rows(config.data.max_gap, interval))


def build_spans(config: Config) -> Spans:
    """Windows, baselines and gaps in rows. Raises ConfigError without an interval, or if one is still `auto`."""
    grid = build_grid_spans(config)
    interval = grid.interval_ns
    return Spans(
        interval_ns=interval,
        max_gap=grid.max_gap,
        window=span_rows(_found(config.model.window, "model.window"), interval),
        stem=int(_found(config.model.stem, "model.stem")),
        short_windows=tuple(span_rows(span, interval) for span in config.model.short_windows),
        baselines=tuple(span_rows(_found(span, "channels.baselines"), interval) for span in config.channels.baselines),
    )


def _found(span: Span, key: str) -> Span:
    """The span, which must not be `auto` any more."""
    if span == AUTO:
        raise ConfigError(f"{key}: auto is found from labelled rows, by training; here it has to be a number")
    return span


def check_interval(config: Config, table: Table) -> None:
    """Compare the config's interval with the data: a ConfigError if it has none, a word if it looks wrong."""
    step = median_step(table)
    if config.data.interval is None:
        seen = format_duration(step) if step is not None else "unknown"
        raise ConfigError(f"data.interval: this key is required; the usual step in these data is {seen}")
    if step is not None and not 0.6 < step / parse_duration(config.data.interval) < 1.6:
        seen = format_duration(step)
        log.warning("data.interval is %s, but the usual step in these data is %s", config.data.interval, seen)


def history_rows(config: Config) -> int:
    """Earlier rows that a decision depends on: window, convolution, baselines, and a counter's last total."""
    spans = build_spans(config)
    counters = any(metric.kind == "counter" for metric in config.data.metrics)
    return (
        window_history(spans.window, spans.stem)
        + channel_history(config.channels.kinds, spans.baselines)
        + (counter_reach(spans.max_gap) if counters else 0)
    )


@contextmanager
def threads(config: Config) -> Iterator[None]:
    """Compute with the config's number of CPU threads within the block; PyTorch counts them per process."""
    before = torch.get_num_threads()
    torch.set_num_threads(config.threads or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def build_input_format(data: DataConfig) -> InputFormat:
    """How to read the files; the metrics have to be resolved (no patterns).

    Raises:
        ConfigError: a column is to be two things.
    """
    others = {*data.timestamp.column, *data.series, data.label}
    for metric in data.metrics:
        if metric.measured and (metric.column or metric.name) in others:
            raise ConfigError(f"data.metrics: '{metric.name}' is the column of time, series or label as well")
    return InputFormat(
        metrics=tuple(Metric(m.name, m.column or m.name, m.unit, m.kind, m.measured) for m in data.metrics),
        time_columns=data.timestamp.column,
        times=TimeFormat(
            data.timestamp.format,
            data.timestamp.unit,
            data.timestamp.timezone,
            data.timestamp.mixed_offsets == "utc",
        ),
        series_columns=data.series,
        label=data.label,
        cells=build_cells(data),
    )


def build_cells(data: DataConfig) -> CellFormat:
    """How the cells of the files are written."""
    return CellFormat(data.separator, data.decimal, data.encoding, data.missing, data.bad_lines == "skip")


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
    spans = build_grid_spans(config)
    return place_on_grid(table, spans.interval_ns, spans.max_gap, config.data.duplicates)


def build_feed_rule(config: Config) -> FeedRule:
    """How the rows of a series lie on the grid as they come."""
    spans = build_grid_spans(config)
    metrics = build_input_format(config.data).metrics
    return FeedRule(metrics, spans.interval_ns, spans.max_gap, config.data.duplicates == "mean", history_rows(config))


def build_row_parts(config: Config, table: Table, form: InputFormat) -> tuple[Config, NDArray[np.int8], int | None]:
    """The part of each row as the config splits them (rows,), and the purge if the config sets one.

    The config comes back with shares resolved to names or moments: drawn again from other files, they would be
    other parts.
    """
    split = config.data.split
    match split:
        case SplitBySeries():
            chosen = choose_series(list(table.series_rows), split.train, split.validation, split.test, config.seed)
            fixed = {"train": chosen[0], "validation": chosen[1], "test": chosen[2]}
            return _with_split(config, split, fixed), split_by_series(table, chosen), None
        case SplitByTime():
            starts = choose_moments(table.times, split.validation, split.test, form)
            moments = {key: as_rfc3339(ns) for key, ns in zip(("validation", "test"), starts, strict=True)}
            return _with_split(config, split, moments), split_by_time(table, *starts), split.purge
        case SplitByTable():
            return config, split_by_table(table, Path(config.data.root) / split.path, form), split.purge
        case SplitByFile():
            return config, table.parts, None


def _with_split(config: Config, split: Section, fixed: Mapping[str, object]) -> Config:
    data = config.data.model_copy(update={"split": split.model_copy(update=fixed)})
    return config.model_copy(update={"data": data})


def as_rfc3339(nanoseconds: int) -> str:
    """A time in UTC as text."""
    return f"{pd.Timestamp(nanoseconds).isoformat()}Z"


def resolve_model(config: Config) -> Config:
    """The config with what a language model's directory says of its shape, so that a bundle needs no other file."""
    return config.model_copy(update={"model": with_architecture(config.model)})


def warn_of_weights(config: Config) -> None:
    """A word about a look-up whose weights have no bound."""
    chosen = config.model.sequence_model
    if isinstance(chosen, AttentionConfig) and chosen.normalise == "none" and chosen.score == "dot":
        log.warning(
            "model.sequence_model: normalise: none with score: dot leaves the weights exp(score) without bound; if the "
            "loss becomes nan, use score: distance, or a larger scale"
        )


def build_recipe(config: Config) -> Recipe:
    """How to train."""
    return Recipe(**config.training.model_dump(exclude={"init_from"}))


def build_device(name: str) -> torch.device:
    """The device to compute on. Raises ConfigError if CUDA is asked for and not there.

    On CUDA, convolutions are set to full float32 for the process: cuDNN's default, TF32, keeps three digits, and a
    bundle would not give the same answer as on a CPU.
    """
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device: cuda is asked for, but PyTorch sees no CUDA device; use cpu or auto")
    if name not in ("auto", "cpu", "cuda"):
        raise ConfigError(f"device: '{name}' is not one of auto, cpu, cuda")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda":
        torch.backends.cudnn.conv.fp32_precision = "ieee"  # type: ignore[attr-defined]  # made at run time
    return torch.device(name)
