"""MLflow: a run on a tracking server, in a database or in a directory (extra `mlflow`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from netanomaly.errors import ConfigError
from netanomaly.flat_keys import flat
from netanomaly.tracking.tracker import epoch_values, scores
from netanomaly.training.recipe import EpochRecord

LONGEST = 500
"""Letters of a parameter's value; MLflow refuses longer ones."""


class MLflow:
    """A new run of an experiment; nothing is asked of the server before there is something to tell.

    Args:
        uri: of the tracking store, as MLflow writes it: http://..., or with the whole package sqlite:///FILE.
        experiment: is made if there is none of this name.
        run_name: of the run.

    Raises:
        ConfigError: mlflow is not installed.
    """

    name = "mlflow"

    def __init__(self, uri: str, experiment: str, run_name: str) -> None:
        try:
            from mlflow import MlflowClient
        except ImportError as error:
            raise ConfigError("tracking.mlflow: mlflow is not installed: pip install 'netanomaly[mlflow]'") from error
        self._make_client: Callable[[], Any] = partial(MlflowClient, uri)
        self._experiment, self._run_name = experiment, run_name
        self._client: Any = None
        self._run = ""

    def log_config(self, config: Mapping[str, Any]) -> None:
        """As parameters, each key of the tree; long values are cut."""
        client, run = self._ready()
        for key, value in flat(config).items():
            client.log_param(run, key, json.dumps(value, ensure_ascii=False)[:LONGEST])

    def log_epoch(self, member: int, record: EpochRecord) -> None:
        """By the steps that the member has made."""
        client, run = self._ready()
        for name, value in epoch_values(record).items():
            client.log_metric(run, f"member_{member}/{name}", value, step=record.steps)

    def log_evaluation(self, report: Mapping[str, Any]) -> None:
        """Scores of the test part."""
        client, run = self._ready()
        for name, value in scores(report).items():
            client.log_metric(run, f"test/{name}", value)

    def close(self, *, failed: bool) -> None:
        """The run is over."""
        if self._client is not None:
            self._client.set_terminated(self._run, status="FAILED" if failed else "FINISHED")

    def _ready(self) -> tuple[Any, str]:
        """The client and the run's id; both are made at the first use."""
        if self._client is None:
            client = self._make_client()
            found = client.get_experiment_by_name(self._experiment)
            number = found.experiment_id if found is not None else client.create_experiment(self._experiment)
            self._run = client.create_run(number, run_name=self._run_name).info.run_id
            self._client = client
        return self._client, self._run
