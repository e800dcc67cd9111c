"""From the config's `tracking` to the trackers that it names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from netanomaly.config import Config
from netanomaly.tracking.mlflow import MLflow
from netanomaly.tracking.tensorboard import TensorBoard
from netanomaly.tracking.tracker import Tracker, Trackers


@contextmanager
def trackers(config: Config) -> Iterator[Trackers]:
    """The trackers of a training, told of the config; closed at the end.

    Raises:
        ConfigError: what one needs is not installed.
    """
    wanted: list[Tracker] = []
    chosen = config.tracking
    if chosen.tensorboard is not None:
        wanted.append(TensorBoard(chosen.tensorboard))
    if chosen.mlflow is not None:
        wanted.append(MLflow(chosen.mlflow.uri, chosen.mlflow.experiment, config.run_dir))
    told = Trackers(wanted)
    told.log_config(config.to_dict())
    try:
        yield told
    finally:
        told.close()
