"""TensorBoard: event files in a directory (extra `tensorboard`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any

from netanomaly.errors import ConfigError
from netanomaly.tracking.tracker import epoch_values, scores
from netanomaly.training.recipe import EpochRecord
from netanomaly.yaml_reader import dump_yaml


class TensorBoard:
    """Writes scalars `member N/loss` and so on by step, and scores at step 0.

    Raises:
        ConfigError: tensorboard is not installed.
    """

    name = "tensorboard"

    def __init__(self, directory: str) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            hint = "pip install 'netanomaly[tensorboard]'"
            raise ConfigError(f"tracking.tensorboard: tensorboard is not installed: {hint}") from error
        self._make_writer: Callable[[], Any] = partial(SummaryWriter, directory)

    @cached_property
    def _writer(self) -> Any:
        """Made at the first use: until then nothing is written."""
        return self._make_writer()

    def log_config(self, config: Mapping[str, Any]) -> None:
        """As text."""
        self._writer.add_text("config", f"```yaml\n{dump_yaml(dict(config))}```")

    def log_epoch(self, member: int, record: EpochRecord) -> None:
        """By the steps that the member has made."""
        for name, value in epoch_values(record).items():
            self._writer.add_scalar(f"member {member}/{name}", value, record.steps)
        self._writer.flush()

    def log_evaluation(self, report: Mapping[str, Any]) -> None:
        """Scores of the test part."""
        for name, value in scores(report).items():
            self._writer.add_scalar(f"test/{name}", value, 0)

    def close(self, *, failed: bool) -> None:
        """Write what is left."""
        if "_writer" in self.__dict__:
            self._writer.close()
