"""What a bundle decides beyond the logits of its model: probabilities, and when rows become an alarm.

Settled on the validation rows after training, and changeable later without training (`netanomaly tune`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from netanomaly.alarms.rule import AlarmRule
from netanomaly.alarms.tuning import Tuned
from netanomaly.calibration import Calibration
from netanomaly.unknown import KnownRows

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Decisions:
    """How logits become probabilities, which rows are like none of training, and when rows become alarms."""

    calibration: Calibration
    alarms: AlarmRule
    known: KnownRows | None = None

    @classmethod
    def plain(cls, classes: tuple[str, ...], normal: str) -> Decisions:
        """Probabilities as the model says them, and a threshold of one half."""
        return cls(Calibration.none(len(classes)), AlarmRule.plain(classes, normal))

    def state(self) -> dict[str, Any]:
        """As plain values; see `from_state`."""
        known = None if self.known is None else self.known.state()
        return {"calibration": self.calibration.state(), "alarms": self.alarms.state(), "known": known}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], classes: tuple[str, ...], normal: str) -> Decisions:
        """From `state`. Raises KeyError, TypeError or ValueError if it is none, or not of these classes."""
        known = None if state["known"] is None else KnownRows.from_state(state["known"])
        found = cls(Calibration.from_state(state["calibration"]), AlarmRule.from_state(state["alarms"]), known)
        if len(found.calibration.weights) != len(classes):
            raise ValueError(f"{len(found.calibration.weights)} calibrated classes, {len(classes)} classes")
        if set(found.alarms.thresholds) != set(classes) - {normal}:
            raise ValueError("the alarm thresholds are not of the classes")
        return found


def tell_tuned(tuned: Tuned, target: float | None) -> None:
    """Say what was chosen, and whether the target could be kept."""
    kept = f"{tuned.false_alarms} false alarms in {tuned.series_days:.3g} series-days of validation rows"
    most = f"{tuned.most_per_day:.3g} a series and day"
    log.info("alarms: mean incident recall %.3f, %s: 95 %% sure of at most %s", tuned.recall, kept, most)
    if not tuned.meets_target:
        log.warning("alarms.false_alarms_per_day: %s could not be kept: %s", target, kept)
    elif target is not None and tuned.most_per_day > target:
        log.warning(
            "so few rows cannot promise %s false alarms a series and day, only that there are hardly more than %s",
            target,
            most,
        )
