"""What a tracker is told, and several of them as one that never ends a training."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from netanomaly.training.recipe import EpochRecord

log = logging.getLogger(__name__)


class Tracker(Protocol):
    """Is told how a training goes; what it raises is told and goes no further."""

    name: str
    """In messages."""

    def log_config(self, config: Mapping[str, Any]) -> None:
        """The resolved config, as plain values."""

    def log_epoch(self, member: int, record: EpochRecord) -> None:
        """An epoch of a member, counted from 1, has ended."""

    def log_evaluation(self, report: Mapping[str, Any]) -> None:
        """The scores of the test part, as in `evaluation.json`."""

    def close(self, *, failed: bool) -> None:
        """There is no more to come; `failed`: the training did not come to its end."""


class Trackers:
    """Several trackers, each told in turn; one that fails is told of once and left alone from there on."""

    def __init__(self, trackers: Iterable[Tracker]) -> None:
        self._trackers = list(trackers)

    def log_config(self, config: Mapping[str, Any]) -> None:
        """See `Tracker`."""
        self._each(lambda tracker: tracker.log_config(config))

    def log_epoch(self, record: EpochRecord) -> None:
        """See `Tracker`."""
        self._each(lambda tracker: tracker.log_epoch(record.member, record))

    def log_evaluation(self, report: Mapping[str, Any]) -> None:
        """See `Tracker`."""
        self._each(lambda tracker: tracker.log_evaluation(report))

    def close(self, *, failed: bool = False) -> None:
        """See `Tracker`."""
        self._each(lambda tracker: tracker.close(failed=failed))

    def end(self, kind: type[BaseException] | None, *_: object) -> None:
        """The same, called by an `ExitStack` with the error that ended the training, or None."""
        self.close(failed=kind is not None)

    def _each(self, tell: Callable[[Tracker], None]) -> None:
        for tracker in list(self._trackers):
            try:
                tell(tracker)
            except Exception as error:  # a server that is down, a full disk: the training goes on
                self._trackers.remove(tracker)
                why = " ".join(str(error).split())[:300] or type(error).__name__
                log.warning("tracking.%s: %s; training goes on without it", tracker.name, why)


def epoch_values(record: EpochRecord) -> dict[str, float]:
    """The figures of an epoch by name; the loss is missing where no row was learnt from."""
    values = {
        "loss": record.loss,
        "gradient_norm": record.gradient_norm,
        "learning_rate": record.learning_rate,
        "validation_macro_f1": record.validation_macro_f1,
        "seconds": record.seconds,
    }
    return {name: value for name, value in values.items() if value is not None}


def scores(report: Mapping[str, Any]) -> dict[str, float]:
    """The scores of an evaluation by name: its own numbers, F1 by class, macro-F1 of each baseline."""
    found = {name: float(value) for name, value in report.items() if type(value) in (int, float)}
    for name, entry in report["per_class"].items():
        if entry["f1"] is not None:  # of a class that is not in the test part there is none
            found[f"f1/{name}"] = float(entry["f1"])
    for name, entry in report.get("baselines", {}).items():
        found[f"baseline_macro_f1/{name}"] = float(entry["macro_f1"])
    return found
