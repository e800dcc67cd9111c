"""A configuration is tried on the files before it is called good: it is read, and prepared for training."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netanomaly.build import build_input_format, check_interval, resolve_metrics
from netanomaly.config import Config, parse_config
from netanomaly.data.ingest import find_files, read_tables
from netanomaly.errors import ConfigError, DataError
from netanomaly.prepare import prepare

CHUNK = 200_000
"""Rows that are read at a time."""


@dataclass(frozen=True)
class Split:
    """A `data.split`, why it was chosen, and what training would say of it.

    Attributes:
        problem: why training is not possible; None if it is.
    """

    keys: dict[str, Any]
    reason: str
    problem: str | None


def rows_read(tree: Mapping[str, Any]) -> int:
    """How many rows the reader of training and prediction takes from the files of a configuration.

    Raises:
        ConfigError, DataError: it does not take them; the message says why.
    """
    config = _config(tree)
    config = resolve_metrics(config, [metric.name for metric in config.data.metrics])
    return rows_of_config(config, find_files(config.data.files, config.data.root))


def rows_of_config(config: Config, files: Sequence[Path]) -> int:
    """How many rows it takes from these files, without labels. Raises DataError if it does not take them."""
    rows = 0
    with _silent():
        for table in read_tables(files, build_input_format(config.data).without_label(), CHUNK):
            check_interval(config, table)
            rows += len(table)
    return rows


def choose_split(tree: Mapping[str, Any], series: int) -> Split:
    """The first split with which training can start and which can be judged.

    Args:
        tree: a whole configuration with labels, but for `data.split`.
        series: how many there are.
    """
    found: list[Split] = []
    for keys, reason in _splits(series):
        split, is_good = _try({**tree, "data": {**tree["data"], "split": keys}}, Split(keys, reason, None))
        if is_good:
            return split
        found.append(split)
    return next((split for split in found if split.problem is None), found[-1])


def _splits(series: int) -> Sequence[tuple[dict[str, Any], str]]:
    by_time: list[tuple[dict[str, Any], str]] = [
        ({"by": "time"}, "earlier rows train, later ones judge"),
        (
            {"by": "time", "purge": 0},
            "earlier rows train, later ones judge; purge 0: there are too few to leave any out",
        ),
    ]
    if series < 3:
        return [(keys, f"{series} series: too few to keep some unseen; {reason}") for keys, reason in by_time]
    unseen = f"whole series of {series} judge: how well it works on links that it has not seen"
    whole: tuple[dict[str, Any], str] = ({"by": "series"}, unseen)
    return [whole, *((keys, f"whole series leave out classes; {reason}") for keys, reason in by_time)]


def _try(tree: Mapping[str, Any], split: Split) -> tuple[Split, bool]:
    """The split with what is wrong with it, and whether each part has rows and two classes at least."""
    try:
        with _silent():
            report = prepare(_config(tree)).report
    except (ConfigError, DataError) as error:
        return Split(split.keys, split.reason, str(error)), False
    return split, all(len(report[part]["classes"]) >= 2 for part in ("train", "validation", "test"))


def _config(tree: Mapping[str, Any]) -> Config:
    return parse_config(tree, "the configuration")


@contextmanager
def _silent() -> Iterator[None]:
    """No word of what is only tried."""
    log = logging.getLogger("netanomaly")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)
