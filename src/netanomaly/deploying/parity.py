"""Whether a file answers as the bundle that it was made from does, on windows that are hard to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netanomaly.data.channels import Channels
from netanomaly.data.grid import Segment
from netanomaly.data.ingest import UNLABELLED
from netanomaly.deploying.formats import Answers, Rows, Run
from netanomaly.predictor import Predictor

BATCHES = (1, 8, 33)
"""Windows that are asked about at a time."""
TOLERANCE = 1e-5
"""Of probabilities, and of novelty against 1 or itself."""


@dataclass(frozen=True)
class Parity:
    """How far the answers of a file are from those of the bundle.

    Attributes:
        windows: that were asked about.
        difference: the largest of a probability or of the novelty.
        other_labels: windows that are labelled otherwise, or whose most probable class is another.
    """

    windows: int
    difference: float
    other_labels: int

    @property
    def holds(self) -> bool:
        """Whether the file may be used in the place of the bundle; a NaN is no parity."""
        return self.difference <= TOLERANCE and not self.other_labels

    def facts(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "windows": self.windows,
            "batches": list(BATCHES),
            "largest_difference": self.difference,
            "tolerance": TOLERANCE,
        }


def hard_windows(channels: Channels, rows: int, count: int, seed: int = 0) -> Rows:
    """Windows around the usual values of each metric, from ones that hardly move to wild ones. (count, rows, M)

    Cells are missing in most of them; rows in the middle and before the first row of a series are absent in some, a
    metric is never there in others, and of every eighth window the newest row is absent.
    """
    rng = np.random.default_rng(seed)
    metrics = len(channels.centre)
    level = channels.centre * rng.uniform(0.5, 1.5, (count, 1, metrics))
    movement = channels.floor * 10 ** rng.uniform(-2, 1.5, (count, 1, 1))
    bursts = 1 + 9 * (rng.random((count, rows, metrics)) < 0.02)
    windows = level + movement * bursts * rng.standard_normal((count, rows, metrics))
    windows[rng.random(windows.shape) < rng.choice([0, 0.05, 0.3], (count, 1, 1))] = np.nan
    windows[rng.random((count, rows)) < rng.choice([0, 0.1], (count, 1))] = np.nan
    windows[:, :, 0][rng.random(count) < 0.2] = np.nan
    for window in windows[::4]:
        window[: int(rng.integers(rows))] = np.nan  # the series began later
    windows[7::8, -1] = np.nan
    return np.asarray(windows)


def measured(run: Run, predictor: Predictor, windows: Rows) -> Parity:
    """The parity of a file on as many windows as all the batches have together."""
    answers, first = [], 0
    for size in BATCHES:
        answers.append(run(windows[first : first + size]))
        first += size
    label, probabilities, novelty = (np.concatenate(parts) for parts in zip(*answers, strict=True))
    return _compared((label, probabilities, novelty), wanted(predictor, windows), predictor)


def wanted(predictor: Predictor, windows: Rows) -> NDArray[np.float64]:
    """The bundle's class probabilities and novelty of each window's newest row, as `predict` has them. (B, K + 1)"""
    steps = np.arange(windows.shape[1])
    unlabelled = np.full(len(steps), UNLABELLED, dtype=object)
    segments = [Segment("window", window, unlabelled, steps) for window in windows]
    newest = [steps == steps[-1]] * len(segments)
    return np.stack([answers[-1] for answers in predictor.answers(segments, newest)])


def labels(classes: Sequence[str]) -> list[str]:
    """What the numbers of `WindowModel`'s labels stand for."""
    from netanomaly.data.ingest import NO_DATA, UNKNOWN

    return [*classes, UNKNOWN, NO_DATA]


def _compared(found: Answers, wanted: NDArray[np.float64], predictor: Predictor) -> Parity:
    label, probabilities, novelty = found
    scale = np.maximum(1, wanted[:, -1])
    differences = np.concatenate(
        [np.abs(probabilities - wanted[:, :-1]), (np.abs(novelty - wanted[:, -1]) / scale)[:, None]], axis=1
    )
    names = np.array(labels(predictor.classes), dtype=object)[label]
    other = names != predictor.named(wanted)
    other |= probabilities.argmax(axis=1) != wanted[:, :-1].argmax(axis=1)
    return Parity(len(label), float(differences.max()), int(other.sum()))
