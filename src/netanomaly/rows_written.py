"""Rows may be written otherwise than those a bundle was trained on: other columns, units, separators, intervals."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from pathlib import Path

from netanomaly.config import Config, load_config
from netanomaly.data.schema import quantity
from netanomaly.durations import Span, parse_duration
from netanomaly.errors import ConfigError
from netanomaly.yaml_reader import read_yaml

log = logging.getLogger(__name__)

WRITTEN = (
    *("separator", "decimal", "encoding", "missing", "bad_lines", "timestamp", "series", "metrics", "label"),
    *("incidents", "interval", "max_gap", "duplicates"),
)
"""Keys of `data` that say how rows are written."""
CHANGEABLE = (
    *(f"data.{key}" for key in ("root", "files", *WRITTEN)),
    "model.sequence_model.execution",
    "device",
    "threads",
)
"""Keys that may differ from training when a bundle is used: how rows are written, how and where it computes."""


def rows_of_yaml(path: Path) -> list[str]:
    """Overrides from the `data` section of a YAML file: how its rows are written; other keys are not looked at.

    Raises:
        ConfigError: the file cannot be read, or has no such section.
    """
    tree = read_yaml(path)
    data = tree.get("data") if isinstance(tree, dict) else None
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: no section 'data', which says how rows are written")
    # a source of labels replaces the bundle's, which would be the other one
    given = {**dict.fromkeys(("label", "incidents")), **data} if {"label", "incidents"} & data.keys() else data
    return [f"data.{key}={json.dumps(given[key])}" for key in WRITTEN if key in given]


def with_rows_written(config: Config, overrides: Iterable[str]) -> Config:
    """A bundle's config with other ways to read rows and to compute; what the weights depend on has to stay.

    Raises:
        ConfigError: an override is of another key, metrics are not the bundle's, or the interval cannot change.
    """
    given = [overrides] if isinstance(overrides, str) else list(overrides)
    for override in given:
        key = override.partition("=")[0]
        if not any(key == allowed or key.startswith(f"{allowed}.") for allowed in CHANGEABLE):
            raise ConfigError(f"--set {key}: a trained bundle keeps it; these can change: {', '.join(CHANGEABLE)}")
    changed = _with_metrics_of(config, load_config(config, given))
    absent = [metric.name for metric in changed.data.metrics if not metric.measured]
    if absent:
        log.info("not measured in these rows: %s", ", ".join(absent))
    _check_interval(config, changed)
    return changed


def _with_metrics_of(config: Config, changed: Config) -> Config:
    """The changed config with the bundle's metrics, by name and in its order; quantities have to be its."""
    given = {metric.name: metric for metric in changed.data.metrics}
    metrics = []
    for known in config.data.metrics:
        metric = given.pop(known.name, None)
        if metric is None:
            raise ConfigError(
                f"--set data.metrics: says nothing of '{known.name}', which the bundle knows; measured: false for one "
                "that the rows do not have"
            )
        if not metric.measured:
            metric = known.model_copy(update={"measured": False})
        if quantity(metric.unit, metric.kind) != quantity(known.unit, known.kind):
            raise ConfigError(
                f"--set data.metrics: '{known.name}' is a {known.kind} in {known.unit} in the bundle, here a "
                f"{metric.kind} in {metric.unit}; units may be others of the same quantity (Mbit/s for bit/s, or a "
                "counter of bytes for it)"
            )
        metrics.append(metric)
    if given:
        names = ", ".join(metric.name for metric in config.data.metrics)
        raise ConfigError(f"--set data.metrics: the bundle knows no '{next(iter(given))}'; it knows {names}")
    return changed.model_copy(update={"data": changed.data.model_copy(update={"metrics": tuple(metrics)})})


def _check_interval(config: Config, changed: Config) -> None:
    """A word where the rows lie further apart than those of training, or less far; an error where spans forbid it."""
    old, new = config.data.interval, changed.data.interval
    if old is None or new is None or parse_duration(old) == parse_duration(new):
        return
    spans: dict[str, tuple[Span, ...]] = {
        "model.window": (config.model.window,),
        "model.short_windows": config.model.short_windows,
        "channels.baselines": config.channels.baselines,
    }
    for key, values in spans.items():
        if any(isinstance(value, str) for value in values):
            raise ConfigError(
                f"--set data.interval: the bundle's {key} is a duration, so its interval {old} has to stay"
            )
    log.warning(
        "data.interval: rows are %s apart here, %s in training: what the bundle has learnt of so many rows, it takes "
        "to hold at this pace as well",
        new,
        old,
    )
