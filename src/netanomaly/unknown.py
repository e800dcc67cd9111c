"""How far recent rows lie from all that training has seen: far ones are of no class that the model knows.

A classifier's answers and embeddings keep what tells the known classes apart, and lose what is strange about another
one. So the distance is measured in what the model is given: the channels, as a mean over the last few rows.
docs/evaluation.md has the measurements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from netanomaly.data.batches import IGNORED, ChannelSegment
from netanomaly.data.rolling import newest_sum, rolling_sum

SHRINKAGE = 0.1
"""How far correlations are drawn towards none: what always went together in training may part a little."""
FLOOR = 0.02
"""Least variance of a channel, as a share of their mean: one that never moved in training may move a little."""
MOST_DIRECTIONS = 32
"""Joint movements that are told apart; the others count alike. With many metrics it bounds size and time."""
ENOUGH = 2
"""Training rows of a class that it takes to count as known."""

_BLOCK = 512
"""Rows that are scored at a time: few enough for all that comes in between to stay in the cache."""


@dataclass(frozen=True)
class KnownRows:
    """Where the rows of the known classes lie: the distance of a row from the nearest class is its score.

    Of the mean x of the chosen channels over the last `rows` rows and the classes' means m_k it is
        min_k sqrt((x - m_k)' S^-1 (x - m_k) / F)
    with S the covariance within the classes, all of which count alike, shrunk, and F the number of channels: about 1
    for a usual training row, and growing with how unlike it is. S^-1 is kept as that of single channels less what joint
    movements explain: y = (x - m_k) / scale, distance^2 = |y|^2 - |y D|^2.
    Source: the Mahalanobis score of Lee et al., A Simple Unified Framework for Detecting Out-of-Distribution Samples
    and Adversarial Attacks (2018), of inputs in the place of features; the shape of S is that of Tipping and Bishop,
    Probabilistic Principal Component Analysis (1999).

    Attributes:
        chosen: which channels, (F,).
        rows: how many rows the mean is of, the newest included.
        means: of the classes, (K, F).
        scale: of each channel, (F,).
        joint: D, (F, R).
        limit: scores above it are unknown; infinite: none is.
    """

    chosen: NDArray[np.int64]
    rows: int
    means: NDArray[np.float32]
    scale: NDArray[np.float32]
    joint: NDArray[np.float32]
    limit: float = np.inf

    @classmethod
    def fit(cls, training: Sequence[ChannelSegment], chosen: Sequence[int], rows: int) -> Self:
        """From the rows that have a target; a class with fewer than two of them counts as not known.

        Args:
            training: segments with targets at training rows only.
            chosen: the channels, as their numbers; those that say where metrics stand are best left out.
            rows: that the mean is of. As many as the encoder joins (`Ensemble.kernel`), and a stream has them at hand.

        Raises:
            ValueError: no class has enough rows, or no channel is chosen.
        """
        columns = np.array(chosen, dtype=np.int64)
        if not len(columns):
            raise ValueError("no channel is chosen")
        means, within = _moments(training, columns, rows)
        variances = np.diag(within)
        deviations = np.sqrt(variances + FLOOR * (variances.mean() or 1.0))  # (F,)
        found, directions = np.linalg.eigh(within / deviations[:, None] / deviations)  # (F,) ascending, (F, F)
        spreads = (1 - SHRINKAGE) * np.maximum(found, 0) + SHRINKAGE
        kept = min(MOST_DIRECTIONS, len(columns) - 1)
        split = len(columns) - kept
        rest = float(spreads[:split].mean())
        explained = np.sqrt(1 - rest / np.maximum(spreads[split:], rest))  # (R,)
        scale = deviations * np.sqrt(rest * len(columns))
        joint = directions[:, split:] * explained
        return cls(columns, rows, means.astype(np.float32), scale.astype(np.float32), joint.astype(np.float32))

    def with_limit(self, validation: Sequence[ChannelSegment], share: float) -> Self:
        """With the limit that so large a share of the rows with a target is above.

        Args:
            validation: segments with targets at rows of known classes only, other rows than those of `fit`.
            share: from 0 (none of these rows) to 1.

        Raises:
            ValueError: there is no such row, or no such share.
        """
        if not 0 <= share <= 1:
            raise ValueError(f"{share} is no share between 0 and 1")
        pairs = [(self.score(one.channels, one.valid), one.targets != IGNORED) for one in validation]
        scores = np.concatenate([np.zeros(0), *(scores[asked] for scores, asked in pairs)])
        if not len(scores):
            raise ValueError("no row has a target")
        return replace(self, limit=float(np.quantile(scores, 1 - share)))

    def without(self, missing: Sequence[int]) -> Self:
        """The same for rows in which some channels tell nothing: those of metrics that are not measured at all.

        The distance is that of the remaining channels (their marginal distribution), again per channel, so that the
        limit keeps its meaning, roughly.

        Args:
            missing: channels, as their numbers.

        Raises:
            ValueError: nothing remains.
        """
        stays = ~np.isin(self.chosen, missing)
        if not stays.any():
            raise ValueError("no channel remains")
        # with orthogonal columns of D the covariance of y is the inverse of 1 - D D', 1 + D (1 - D'D)^-1 D'
        squares = np.square(self.joint, dtype=np.float64).sum(axis=0)  # (R,)
        spread = self.joint[stays] / np.sqrt(1 - squares)  # (F', R)
        directions, sizes, _ = np.linalg.svd(spread, full_matrices=False)  # (F', R'), (R',)
        joint = directions * np.sqrt(np.square(sizes) / (1 + np.square(sizes)))
        scale = self.scale[stays] * np.sqrt(stays.mean())  # it holds the number of channels
        return replace(
            self,
            chosen=self.chosen[stays],
            means=self.means[:, stays],
            scale=scale.astype(np.float32),
            joint=joint.astype(np.float32),
        )

    def score(self, channels: NDArray[np.float32], valid: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The distance of every row of a segment; 0 where nothing was measured. (T, C), (T,) to (T,)"""
        result = np.zeros(len(valid))
        for first in range(0, len(valid), _BLOCK):
            start, stop = max(0, first - self.rows + 1), first + _BLOCK  # a block sums the rows before it again
            recent = _recent(channels[start:stop, self.chosen], valid[start:stop], self.rows)
            result[first:stop] = self._distance(recent[first - start :])
        return result * valid

    def newest(self, channels: NDArray[np.float32], valid: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The same for the newest row of n series at once, from its last `rows` rows or more.

        (n, S, C), (n, S) to (n,)
        """
        last, seen = channels[..., self.chosen], valid[..., None]  # (n, S, F), (n, S, 1)
        total = newest_sum(np.where(seen, last, np.float64(0)), self.rows)  # (n, F)
        count = newest_sum(seen.astype(np.float64), self.rows)  # (n, 1)
        return self._distance(total / np.maximum(count, 1)) * valid[:, -1]

    def is_unknown(self, scores: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which of these scores are above the limit."""
        return scores > self.limit

    def _distance(self, recent: NDArray[np.float64]) -> NDArray[np.float64]:
        """From the nearest class. (T, F) to (T,)"""
        scaled, means = recent / self.scale, self.means.astype(np.float64) / self.scale
        shared, shared_means = scaled @ self.joint, means @ self.joint  # (T, R), (K, R)
        # |x - m|^2 = |x|^2 - 2 x'm + |m|^2, of the channels less that of the joint movements
        from_zero = _square(scaled) - _square(shared)  # (T,)
        towards = _square(means) - _square(shared_means) - 2 * (scaled @ means.T - shared @ shared_means.T)  # (T, K)
        return np.asarray(np.sqrt(np.maximum(from_zero + towards.min(axis=1), 0.0)))

    def state(self) -> dict[str, Any]:
        """Plain values; `from_state` gives the same back exactly."""
        return {
            "chosen": self.chosen.tolist(),
            "rows": self.rows,
            "means": _plain(self.means),
            "scale": _plain(self.scale),
            "joint": _plain(self.joint),
            "limit": None if np.isinf(self.limit) else self.limit,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """From what `state` gave. Raises ValueError, KeyError or TypeError for anything else."""
        chosen, rows, limit = np.array(state["chosen"]), state["rows"], state["limit"]
        means, scale, joint = (np.array(state[key], dtype=np.float32) for key in ("means", "scale", "joint"))
        if chosen.ndim != 1 or not len(chosen) or chosen.dtype.kind != "i" or (chosen < 0).any():
            raise ValueError("the channels of the known rows are no list of numbers")
        if type(rows) is not int or rows < 1:
            raise ValueError(f"the known rows are means of {rows!r} rows")
        width = len(chosen)
        joint = joint.reshape(width, -1) if joint.size == 0 else joint
        if means.ndim != 2 or not len(means) or means.shape[1] != width:
            raise ValueError("the means of the known rows do not fit their channels")
        if scale.shape != (width,) or not (scale > 0).all() or joint.ndim != 2 or len(joint) != width:
            raise ValueError("the scales of the known rows do not fit their channels")
        if not all(np.isfinite(array).all() for array in (means, scale, joint)) or np.isnan(limit or 0.0):
            raise ValueError("some numbers of the known rows are not finite")
        if limit is not None and not limit > 0:
            raise ValueError(f"the limit of the known rows is {limit!r}, not above 0")
        if not (np.square(joint, dtype=np.float64).sum(axis=0) < 1).all():
            raise ValueError("the joint movements of the known rows explain more than there is")
        return cls(chosen, rows, means, scale, joint, np.inf if limit is None else float(limit))


def _recent(channels: NDArray[np.float32], valid: NDArray[np.bool_], rows: int) -> NDArray[np.float64]:
    """The mean of the last rows, of those in which anything was measured; else zeros. (T, F), (T,) to (T, F)"""
    seen = valid[:, None]
    total = rolling_sum(np.where(seen, channels, np.float64(0)), rows)
    count = rolling_sum(seen.astype(np.float64), rows)
    return np.asarray(total / np.maximum(count, 1))


def _moments(
    training: Sequence[ChannelSegment], columns: NDArray[np.int64], rows: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means of the classes that have enough rows, and the mean of their covariances. (K, F), (F, F)"""
    counts: dict[int, int] = {}
    sums: dict[int, NDArray[np.float64]] = {}
    squares: dict[int, NDArray[np.float64]] = {}
    for one in training:
        recent = _recent(one.channels[:, columns], one.valid, rows)
        for k in np.unique(one.targets[one.targets != IGNORED]).tolist():
            own = recent[one.targets == k]
            counts[k] = counts.get(k, 0) + len(own)
            sums[k] = sums.get(k, 0.0) + own.sum(axis=0)
            squares[k] = squares.get(k, 0.0) + own.T @ own
    known = sorted(k for k, count in counts.items() if count >= ENOUGH)
    if not known:
        raise ValueError(f"no class has {ENOUGH} rows or more")
    means = np.stack([sums[k] / counts[k] for k in known])
    within = [squares[k] / counts[k] - np.outer(mean, mean) for k, mean in zip(known, means, strict=True)]
    return means, np.asarray(np.mean(within, axis=0))


def _plain(array: NDArray[np.float32]) -> Any:
    """Nested lists with no more digits than a float32 needs to come back exactly."""
    return array.astype(str).astype(np.float64).tolist()


def _square(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Their squared lengths. (T, F) to (T,)"""
    return np.asarray(np.einsum("tf,tf->t", vectors, vectors))
