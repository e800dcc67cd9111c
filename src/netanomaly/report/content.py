"""What a report is about: rows with their answers, the alarms they raise, and the scores if there are labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netanomaly.alarms.raising import Alarms
from netanomaly.data.schema import Metric
from netanomaly.evaluation.rows import Answers, ScoredRows
from netanomaly.report.clock import Clock


@dataclass(frozen=True)
class SeriesRows:
    """The rows of one series, in order of time.

    Attributes:
        times: nanoseconds since 1970. (T,)
        values: metrics in base units, counters as rates, NaN where missing. (T, M)
        truth: true labels, `data.ingest.UNLABELLED` where there is none. (T,)
        named: the model's labels, `data.ingest.NO_DATA` where nothing was measured. (T,)
    """

    name: str
    times: NDArray[np.int64]
    values: NDArray[np.float64]
    truth: NDArray[np.object_]
    named: NDArray[np.object_]

    def __len__(self) -> int:
        return len(self.times)


@dataclass(frozen=True)
class Content:
    """Everything that a report tells.

    Attributes:
        bundle: where it lies.
        scope: which rows these are, in words.
        classes: of the model, in the order of the probabilities.
        series: in the order of the alphabet.
        alarms: what somebody on call is told.
        thresholds: probability by class at which an alarm is raised.
        trained: when and on what, for people.
        evaluation: as `evaluation_report` and `alarm_scores` have it; None without labels.
        scored: the labelled rows and the answers to them; None without labels.
        reference: the training rows' metrics, see `data.reference`; None if the bundle does not know them.
        reasons: of single alarms, by their number, as `Reason.to_dict` has it; may be of none of them.
    """

    bundle: str
    scope: str
    metrics: tuple[Metric, ...]
    classes: tuple[str, ...]
    normal: str
    clock: Clock
    series: tuple[SeriesRows, ...]
    alarms: Alarms
    thresholds: Mapping[str, float]
    trained: str
    evaluation: Mapping[str, Any] | None = None
    scored: tuple[ScoredRows, Answers] | None = None
    reference: Mapping[str, Any] | None = None
    reasons: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(len(one) for one in self.series)
