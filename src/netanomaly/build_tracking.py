"""From the config's `tracking` to the trackers that it names."""

from __future__ import annotations

from netanomaly.config import Config
from netanomaly.tracking.mlflow import MLflow
from netanomaly.tracking.tensorboard import TensorBoard
from netanomaly.tracking.tracker import Tracker, Trackers


def build_trackers(config: Config | None) -> Trackers:
    """The trackers of a training, none for None; they write nothing before they are told something.

    Raises:
        ConfigError: what one needs is not installed.
    """
    wanted: list[Tracker] = []
    if config is None:
        return Trackers(wanted)
    chosen = config.tracking
    if chosen.tensorboard is not None:
        wanted.append(TensorBoard(chosen.tensorboard))
    if chosen.mlflow is not None:
        wanted.append(MLflow(chosen.mlflow.uri, chosen.mlflow.experiment, config.run_dir))
    return Trackers(wanted)
