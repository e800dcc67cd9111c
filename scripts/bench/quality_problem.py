"""A labelled data set as the peers of scripts/bench_quality.py get it: rows of all parts, labels of the test rows not.

Needs NumPy alone, for it is read in the peers' environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

TRAIN, VALIDATION, TEST = 0, 1, 2
NO_TARGET = -1
BASELINES = (32, 64, 256)
"""Rows of the baselines that relative channels are made with; peers choose on validation."""

Places = NDArray[np.int64]
"""Rows of a problem: number of the segment, step in it. (N, 2)"""


@dataclass(frozen=True)
class ProblemSegment:
    """A stretch of one series without long gaps.

    Attributes:
        values: metrics, NaN where missing. (T, M) float64
        channels: our relative channels, by rows of the baseline. (T, C) float32 each
        targets: class of labelled rows of training and validation, `NO_TARGET` everywhere else. (T,)
        parts: TRAIN, VALIDATION, TEST, or below 0 for context. (T,)
        wanted: test rows to score. (T,)
    """

    values: NDArray[np.float64]
    channels: Mapping[int, NDArray[np.float32]]
    targets: NDArray[np.int64]
    parts: NDArray[np.int8]
    wanted: NDArray[np.bool_]

    def __post_init__(self) -> None:
        if (self.targets[(self.parts != TRAIN) & (self.parts != VALIDATION)] != NO_TARGET).any():
            raise ValueError("a row that is not of training or validation has a target: peers must not see it")


@dataclass(frozen=True)
class Problem:
    """Segments and the names of the classes, those of training first."""

    classes: tuple[str, ...]
    segments: tuple[ProblemSegment, ...]

    def labelled(self, part: int) -> Places:
        """Rows of a part that have a target. (N, 2)"""
        return _places([(s.parts == part) & (s.targets != NO_TARGET) for s in self.segments])

    def wanted(self) -> Places:
        """Rows to score. (N, 2)"""
        return _places([segment.wanted for segment in self.segments])

    def targets(self, places: Places) -> NDArray[np.int64]:
        """Classes of rows, (N, 2) to (N,)."""
        starts = np.cumsum([0, *(len(segment.targets) for segment in self.segments)])
        together = np.concatenate([segment.targets for segment in self.segments])
        return np.asarray(together[starts[places[:, 0]] + places[:, 1]])

    def save(self, path: Path) -> None:
        """Write an .npz file; whole, or not at all: another run may be reading it."""
        arrays: dict[str, NDArray[np.generic]] = {"classes": np.array(self.classes)}
        for number, segment in enumerate(self.segments):
            arrays[f"values_{number}"] = segment.values
            arrays[f"targets_{number}"] = segment.targets
            arrays[f"parts_{number}"] = segment.parts
            arrays[f"wanted_{number}"] = segment.wanted
            for baseline, channels in segment.channels.items():
                arrays[f"channels_{baseline}_{number}"] = channels
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f"{path.stem}.{os.getpid()}.npz")
        np.savez(unfinished, allow_pickle=False, **arrays)
        unfinished.replace(path)

    @classmethod
    def load(cls, path: Path) -> Problem:
        """What `save` wrote."""
        with np.load(path, allow_pickle=False) as stored:
            count = sum(name.startswith("values_") for name in stored.files)
            baselines = sorted({int(name.split("_")[1]) for name in stored.files if name.startswith("channels_")})
            segments = tuple(
                ProblemSegment(
                    stored[f"values_{i}"],
                    {baseline: stored[f"channels_{baseline}_{i}"] for baseline in baselines},
                    stored[f"targets_{i}"],
                    stored[f"parts_{i}"],
                    stored[f"wanted_{i}"],
                )
                for i in range(count)
            )
            return cls(tuple(str(name) for name in stored["classes"]), segments)


def sample(problem: Problem, places: Places, most: int, seed: int, whole: int = 50) -> Places:
    """At most about `most` of the rows: the same share of every class, but `whole` rows of rare ones; in order."""
    if len(places) <= most:
        return places
    targets = problem.targets(places)
    rng = np.random.default_rng(seed)
    chosen = []
    for number in np.unique(targets):
        rows = np.flatnonzero(targets == number)
        keep = min(len(rows), max(whole, round(most * len(rows) / len(places))))
        chosen.append(rng.choice(rows, keep, replace=False))
    return np.asarray(places[np.sort(np.concatenate(chosen))])


def _places(masks: list[NDArray[np.bool_]]) -> Places:
    found = [np.flatnonzero(mask) for mask in masks]
    numbers = np.repeat(np.arange(len(found)), [len(steps) for steps in found])
    return np.stack([numbers, np.concatenate(found)], axis=1).astype(np.int64)
