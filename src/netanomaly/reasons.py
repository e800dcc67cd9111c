"""Why a row is what the model says it is: the rows that it looked up, and the metrics that carried the answer.

An answer is compared with what the model says of everything as usual (see `data.usual`). The difference of the log
odds log p(class) - log p(normal) is divided among the metrics of each row by integrated gradients
(see `model.attribution`); the parts sum to the difference. docs/reasons.md says what that means and what it does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from netanomaly.calibration import Calibration
from netanomaly.data.batches import Batch, batches, channel_segment
from netanomaly.data.channels import Channels
from netanomaly.data.grid import Segment
from netanomaly.data.ingest import Table
from netanomaly.data.schema import Metric
from netanomaly.data.time_texts import format_times
from netanomaly.data.timestamps import TimeFormat
from netanomaly.data.usual import usual_segment, usual_values
from netanomaly.errors import DataError
from netanomaly.model.attribution import NODES, integrated_gradients
from netanomaly.model.ensemble import Ensemble
from netanomaly.reason import Reason, Stretch, stretches
from netanomaly.reason_metrics import WindowRows, metric_reasons

_ROWS_HELD = 2**16
"""Rows of windows whose channels are held at a time."""


@dataclass(frozen=True)
class AskedIncident:
    """An incident that is to be explained.

    Attributes:
        segment: which one.
        first: step of its first row.
        peak: step of the row to explain, where it is most certain; something was measured there.
        label: its class.
    """

    segment: int
    first: int
    peak: int
    label: str


@dataclass(frozen=True)
class Explainer:
    """Finds the reasons of a model's answers.

    Attributes:
        model: in evaluation mode.
        channels: what it sees of a row.
        metrics: of the segments, in their order.
        classes: in the order of its probabilities.
        normal: the class that others are compared with.
        device: where the model is.
        calibration: of its probabilities.
        times: how moments are told: as counts where the data count, else in UTC.
        nodes: of the integral; see `integrated_gradients`.
    """

    model: Ensemble
    channels: Channels
    metrics: tuple[Metric, ...]
    classes: Sequence[str]
    normal: str
    device: torch.device
    calibration: Calibration
    times: TimeFormat = TimeFormat()
    nodes: tuple[int, ...] = NODES

    @torch.inference_mode(False)  # gradients are asked for, whatever the caller has switched off
    def reasons(self, segments: Sequence[Segment], table: Table, asked: Sequence[AskedIncident]) -> list[Reason]:
        """The reason of each incident, in order.

        Args:
            segments: of the table.
            table: has the times.

        Raises:
            DataError: a label is no class of the model, or nothing was measured in a row to explain.
        """
        for one in asked:
            self._check(one, segments[one.segment])
        usual = self.usual(segments, asked)
        times = {number: _times(segments[number], table, self.times) for number in usual}
        answers: list[_Answer] = []
        for here, there in self.inputs(segments, usual, asked):
            answers += self._answers(here, there, asked[len(answers) : len(answers) + len(here.pieces)])
        return [
            self._reason(one, answer, segments[one.segment], usual[one.segment], times[one.segment])
            for one, answer in zip(asked, answers, strict=True)
        ]

    def usual(self, segments: Sequence[Segment], asked: Sequence[AskedIncident]) -> dict[int, NDArray[np.float64]]:
        """Where the metrics of each segment that is asked about usually are, by its number. (T, M) each"""
        numbers = sorted({one.segment for one in asked})
        return {number: usual_values(segments[number].values, self.channels) for number in numbers}

    def inputs(
        self, segments: Sequence[Segment], usual: dict[int, NDArray[np.float64]], asked: Sequence[AskedIncident]
    ) -> Iterator[tuple[Batch, Batch]]:
        """What the model takes for the row of each incident: as it is, and with everything as usual."""
        actual = [channel_segment(segments[number], self.channels) for number in usual]
        middles = zip(actual, usual.values(), strict=True)
        reference = [usual_segment(given, middle, self.channels) for given, middle in middles]
        places = {number: place for place, number in enumerate(usual)}
        pieces = [(places[one.segment], one.peak) for one in asked]
        history = self.model.history_rows
        size = max(1, _ROWS_HELD // (history + 1))
        yield from zip(*(batches(given, pieces, 1, history, size) for given in (actual, reference)), strict=True)

    def _check(self, one: AskedIncident, segment: Segment) -> None:
        if one.label not in self.classes:
            raise DataError(
                f"'{one.label}' is no class of the bundle, so there is no reason for it; these are: "
                f"{', '.join(self.classes)}"
            )
        if not segment.valid[one.peak]:
            raise DataError(f"series {segment.series}, step {one.peak}: nothing was measured in the row to explain")

    def _answers(self, here: Batch, there: Batch, asked: Sequence[AskedIncident]) -> list[_Answer]:
        """What the tensors say of each incident of a batch: the channels here, and there with everything as usual."""
        actual, usual, valid = (part.to(self.device) for part in (here.channels, there.channels, here.valid))
        with torch.no_grad():
            probabilities, usually = (self.read(inputs, valid).softmax(-1) for inputs in (actual, usual))
            looked = self.model.looked_up(actual, valid)
        named = torch.tensor([self.classes.index(one.label) for one in asked], device=self.device)  # (N,)
        against = self._against(named, probabilities)

        def log_odds(inputs: Tensor, which: Tensor) -> Tensor:
            """(n, S, C), (n,) to (n,)"""
            logs = self.read(inputs, valid[which]).log_softmax(-1)
            picked = torch.stack([named[which], against[which]], dim=1)
            ours, theirs = logs.gather(1, picked).unbind(1)
            return ours - theirs

        found = integrated_gradients(log_odds, actual, usual, nodes=self.nodes)
        by_metric = found.parts.double().unflatten(-1, (-1, len(self.metrics))).sum(2)  # (N, S, M)
        return [
            _Answer(
                against=self.classes[int(against[n])],
                probability=float(probabilities[n, named[n]]),
                usual_probability=float(usually[n, named[n]]),
                log_odds=float(found.actual[n]),
                usual_log_odds=float(found.reference[n]),
                parts=by_metric[n].cpu().numpy(),
                looked_up=None if looked is None else tuple(part[n].double().cpu().numpy() for part in looked),
                residual=float(found.residual[n]),
                nodes=int(found.nodes[n]),
            )
            for n in range(len(asked))
        ]

    def read(self, inputs: Tensor, valid: Tensor) -> Tensor:
        """Calibrated logits of the newest row of each window. (N, S, C), (N, S) to (N, K)"""
        logits = self.model.read(inputs, valid)
        weights = torch.tensor(self.calibration.weights, dtype=logits.dtype, device=logits.device)
        return (logits - weights.log()) / self.calibration.temperature

    def _against(self, named: Tensor, probabilities: Tensor) -> Tensor:
        """The class that each is compared with: the normal one, else the most probable of the others. (N,)"""
        others = probabilities.scatter(1, named[:, None], -1.0).argmax(1)
        if self.normal not in self.classes:
            return others
        normal = self.classes.index(self.normal)
        return torch.where(named == normal, others, normal)

    def _reason(
        self,
        one: AskedIncident,
        answer: _Answer,
        segment: Segment,
        usual: NDArray[np.float64],
        times: NDArray[np.object_],
    ) -> Reason:
        steps = np.arange(max(0, one.peak - len(answer.parts) + 1), one.peak + 1)
        parts = answer.parts[-len(steps) :]  # rows before the segment add nothing
        rows = WindowRows(steps, segment.values, usual, times, one.first, one.peak)
        metrics, other = metric_reasons(parts, rows, self.metrics)
        looked, stretches = self._looked_up(answer, segment.valid[steps], times[steps])
        return Reason(
            series=segment.series,
            time=str(times[one.peak]),
            since=str(times[one.first]),
            label=one.label,
            against=answer.against,
            probability=answer.probability,
            usual_probability=answer.usual_probability,
            log_odds=answer.log_odds,
            usual_log_odds=answer.usual_log_odds,
            metrics=metrics,
            other_share=other,
            stretches=stretches,
            steps=steps,
            times=tuple(str(time) or None for time in times[steps]),
            attribution=parts,
            metric_names=tuple(metric.name for metric in self.metrics),
            looked_up=looked,
            residual=answer.residual,
            nodes=answer.nodes,
        )

    @staticmethod
    def _looked_up(
        answer: _Answer, valid: NDArray[np.bool_], times: NDArray[np.object_]
    ) -> tuple[NDArray[np.float64] | None, tuple[Stretch, ...]]:
        """Shares of the S rows, zero in those that only the convolution sees, and the stretches that stand out."""
        if answer.looked_up is None:
            return None, ()
        shares, even = (_newest(part, len(valid)) for part in answer.looked_up)  # (S,)
        return shares, stretches(shares, even, valid, times)


@dataclass(frozen=True)
class _Answer:
    """What the tensors say of one incident; see `Reason`. `looked_up` and what it would be evenly: (L,) each"""

    against: str
    probability: float
    usual_probability: float
    log_odds: float
    usual_log_odds: float
    parts: NDArray[np.float64]
    looked_up: tuple[NDArray[np.float64], ...] | None
    residual: float
    nodes: int


def _times(segment: Segment, table: Table, form: TimeFormat) -> NDArray[np.object_]:
    """The time of each step as text, empty where there is no row. (T,)"""
    texts = np.array(format_times(table.times[segment.rows], form), dtype=object)
    return np.where(segment.rows >= 0, texts, "")


def _newest(values: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """The last `count` of them, zeros in front if there are fewer."""
    result = np.zeros(count)
    kept = values[-count:]
    result[count - len(kept) :] = kept
    return result
