"""The labelled rows of a part, as the model takes them, and its score on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from netanomaly.data.batches import IGNORED, ChannelSegment, channel_segment
from netanomaly.data.channels import Channels
from netanomaly.data.ingest import NO_DATA
from netanomaly.evaluation.metrics import macro_f1
from netanomaly.model.classifier import NetworkAnomalyClassifier
from netanomaly.model.ensemble import Ensemble
from netanomaly.prepare import Prepared
from netanomaly.training.engine import segment_logits
from netanomaly.training.world import ALONE, World


@dataclass(frozen=True)
class LabelledRows:
    """Labelled rows of a part.

    Attributes:
        segments: those that hold such rows, with targets there only.
        series: name of the series of each.
        masks: which rows of each segment, (T,).
        truth: their labels, (rows,).
        names: of the classes, (K,).
    """

    segments: list[ChannelSegment]
    series: list[str]
    masks: list[NDArray[np.bool_]]
    truth: NDArray[np.object_]
    names: NDArray[np.object_]

    def seen(self, view: list[int] | None) -> LabelledRows:
        """With the channels of a view alone."""
        if view is None:
            return self
        return replace(self, segments=[replace(one, channels=one.channels[:, view]) for one in self.segments])

    def score(self, model: NetworkAnomalyClassifier | Ensemble, device: torch.device, world: World = ALONE) -> float:
        """A model's macro-F1 on these rows, each computed by one of the processes and counted once."""
        logits = segment_logits(model, self.segments, len(self.names), model.history_rows, device, world)
        predicted = [
            np.where(segment.valid[mask], self.names[rows[mask].argmax(axis=1)], NO_DATA)
            for rows, segment, mask in zip(logits, self.segments, self.masks, strict=True)
        ]
        return macro_f1(self.truth, np.concatenate(predicted))


def labelled_rows(prepared: Prepared, channels: Channels, part: int, classes: Sequence[str]) -> LabelledRows:
    """The labelled rows of a part, from the segments that hold some."""
    number = {name: i for i, name in enumerate(classes)}
    segments, series, masks, truth = [], [], [], []
    for segment, mask in zip(prepared.grid.segments, prepared.labelled(part), strict=True):
        if mask.any():
            targets = np.array([number.get(name, IGNORED) for name in segment.labels], dtype=np.int64)
            targets[~mask] = IGNORED
            segments.append(channel_segment(segment, channels, targets))
            series.append(segment.series)
            masks.append(mask)
            truth.append(segment.labels[mask])
    return LabelledRows(segments, series, masks, np.concatenate(truth), np.array(classes, dtype=object))
