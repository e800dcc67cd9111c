"""When rows become an alarm: what is chosen on validation, and can be changed afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

THRESHOLD, HYSTERESIS = 0.5, 0.5


@dataclass(frozen=True)
class AlarmRule:
    """When rows become an alarm.

    A row counts for the class, other than the normal one, whose probability is the largest against its threshold, if it
    is `hysteresis` times the threshold at least. Rows that count for a class belong to one incident unless more than
    `merge_rows` rows lie between them. The alarm is raised in the first row at which the incident has `min_rows` rows
    and one of them has reached the threshold; an incident that gets neither is none.

    Attributes:
        thresholds: probability by class, without the normal one; in (0, 1].
        hysteresis: share of its threshold at which an incident goes on; in (0, 1].
        min_rows: rows that have to count for the class until the alarm is raised.
        merge_rows: rows between two rows of one incident that need not count for its class.
    """

    thresholds: Mapping[str, float]
    hysteresis: float = HYSTERESIS
    min_rows: int = 1
    merge_rows: int = 0

    def __post_init__(self) -> None:
        for name, value in [*self.thresholds.items(), ("hysteresis", self.hysteresis)]:
            if not 0 < value <= 1:
                raise ValueError(f"{name}: {value} is not above 0 and at most 1")
        if self.min_rows < 1 or self.merge_rows < 0:
            raise ValueError("min_rows has to be at least 1, merge_rows at least 0")

    @classmethod
    def plain(cls, classes: tuple[str, ...], normal: str) -> AlarmRule:
        """A threshold of one half for every class but the normal one."""
        return cls({name: THRESHOLD for name in classes if name != normal})

    def limits(self, classes: tuple[str, ...]) -> NDArray[np.float64]:
        """The threshold of each class, infinite for the normal one. (K,)"""
        return np.array([self.thresholds.get(name, np.inf) for name in classes])

    def state(self) -> dict[str, Any]:
        """As plain values; see `from_state`."""
        return {
            "thresholds": dict(self.thresholds),
            "hysteresis": self.hysteresis,
            "min_rows": self.min_rows,
            "merge_rows": self.merge_rows,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> AlarmRule:
        """From `state`. Raises KeyError, TypeError or ValueError if it is none."""
        thresholds = {str(name): float(value) for name, value in state["thresholds"].items()}
        counts = state["min_rows"], state["merge_rows"]
        if not all(type(count) is int for count in counts):
            raise ValueError(f"min_rows and merge_rows are {counts[0]!r} and {counts[1]!r}, no numbers of rows")
        return cls(thresholds, float(state["hysteresis"]), *counts)
