"""The section `tracking` of the configuration."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from netanomaly.config_fields import Section


def _check_uri(uri: str) -> str:
    if urlsplit(uri).password is not None:
        raise ValueError("leave the password out: bundles keep the config; MLFLOW_TRACKING_PASSWORD may hold it")
    return uri


class MLflowConfig(Section):
    """Where MLflow keeps runs."""

    uri: Annotated[str, Field(min_length=1), AfterValidator(_check_uri)]  # as MLflow writes it: http://...
    experiment: str = Field(default="netanomaly", min_length=1)


class TrackingConfig(Section):
    """Who is told how a training goes, beside the run directory; changes no weight."""

    tensorboard: str | None = Field(default=None, min_length=1)  # directory for event files
    mlflow: MLflowConfig | None = None
