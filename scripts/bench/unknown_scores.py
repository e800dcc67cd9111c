"""Scores that say how little a row looks like training: the one of the package, and others beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray

from netanomaly.build_members import without_levels
from netanomaly.data.batches import IGNORED, ChannelSegment, batches
from netanomaly.model.classifier import NetworkAnomalyClassifier
from netanomaly.predictor import Predictor
from netanomaly.unknown import KnownRows

Floats = NDArray[np.float64]
PER_CLASS = 60
"""Training rows of each class that neighbours are looked for among."""


@dataclass(frozen=True)
class Rows:
    """A segment, and what the members of the model make of it.

    Attributes:
        segment: with targets at training rows only.
        logits: of each member, (T, M, K).
        states: what the heads see, (T, M, D).
    """

    segment: ChannelSegment
    logits: NDArray[np.float32]
    states: NDArray[np.float32]

    @property
    def answers(self) -> Floats:
        """Class probabilities of each member, (T, M, K)."""
        return torch.from_numpy(self.logits).double().softmax(-1).numpy()

    @property
    def answer(self) -> Floats:
        """Their mean, (T, K)."""
        return np.asarray(self.answers.mean(axis=1))


@torch.inference_mode()
def read(predictor: Predictor, segment: ChannelSegment) -> Rows:
    """A segment as the members see it, all rows at once."""
    model, rows = predictor.model.eval(), len(segment.valid)
    states: list[torch.Tensor] = []
    members = [cast("NetworkAnomalyClassifier", member) for member in model.members]
    hooks = [member.norm.register_forward_hook(lambda *given: states.append(given[2])) for member in members]
    (batch,) = batches([segment], [(0, 0)], rows, model.history_rows, 1)
    model(batch.channels, batch.valid)
    for hook in hooks:
        hook.remove()
    logits = [member.head(state) for member, state in zip(members, states, strict=True)]
    return Rows(segment, torch.stack(logits, 2)[0].numpy(), torch.stack(states, 2)[0].numpy())


def known_rows(predictor: Predictor, training: Sequence[ChannelSegment], rows: int | None = None) -> KnownRows:
    """The package's score, fitted; of means of so many rows, by default as many as the encoder joins."""
    chosen = without_levels(predictor.trained_config, predictor.channels.count)
    return KnownRows.fit(training, chosen, rows or predictor.model.kernel)


def shipped(predictor: Predictor, rows: Sequence[Rows]) -> list[Floats]:
    """The distance from the known rows, as the package has it."""
    return _distances(predictor, rows, None)


def single_row(predictor: Predictor, rows: Sequence[Rows]) -> list[Floats]:
    """The same of the newest row alone."""
    return _distances(predictor, rows, 1)


def _distances(predictor: Predictor, rows: Sequence[Rows], mean_of: int | None) -> list[Floats]:
    known = known_rows(predictor, [one.segment for one in rows], mean_of)
    return [known.score(one.segment.channels, one.segment.valid) for one in rows]


def max_probability(_: Predictor, rows: Sequence[Rows]) -> list[Floats]:
    """One less the probability of the class that is named (Hendrycks and Gimpel 2017)."""
    return [1 - one.answer.max(axis=1) for one in rows]


def entropy(_: Predictor, rows: Sequence[Rows]) -> list[Floats]:
    """Of the members' mean answer."""
    return [_entropy(one.answer) for one in rows]


def disagreement(_: Predictor, rows: Sequence[Rows]) -> list[Floats]:
    """Mutual information of answer and member: the entropy of the mean less the mean entropy."""
    return [_entropy(one.answer) - _entropy(one.answers).mean(axis=1) for one in rows]


def energy(_: Predictor, rows: Sequence[Rows]) -> list[Floats]:
    """Minus the logarithm of the sum of exp(logit), mean of the members (Liu et al. 2020)."""
    return [-torch.from_numpy(one.logits).double().logsumexp(-1).mean(1).numpy() for one in rows]


def embedding_mahalanobis(_: Predictor, rows: Sequence[Rows]) -> list[Floats]:
    """The package's distance, of what each member's head sees; mean of the logarithms (Lee et al. 2018)."""
    members = range(rows[0].states.shape[1])
    segments = [
        [ChannelSegment(one.states[:, member], one.segment.valid, one.segment.targets) for one in rows]
        for member in members
    ]
    fitted = [KnownRows.fit(own, range(own[0].channels.shape[1]), 1) for own in segments]
    return [
        np.mean([np.log1p(fitted[m].score(segments[m][i].channels, one.segment.valid)) for m in members], axis=0)
        for i, one in enumerate(rows)
    ]


def embedding_neighbours(_: Predictor, rows: Sequence[Rows]) -> list[Floats]:
    """Distance of the direction from the nearest training row, mean of the members (Sun et al. 2022)."""
    states = [one.states / np.linalg.norm(one.states, axis=-1, keepdims=True) for one in rows]  # (T, M, D)
    drawn = _drawn([one.segment.targets for one in rows])
    table = np.concatenate(states)[drawn]  # (n, M, D)
    return [np.mean([_nearest(table[:, m], own[:, m]) for m in range(own.shape[1])], axis=0) for own in states]  # (T,)


def _entropy(probabilities: Floats) -> Floats:
    return np.asarray(-(probabilities * np.log(np.maximum(probabilities, 1e-12))).sum(-1))


def _drawn(targets: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Some training rows of each class, as places in all rows."""
    joined, rng = np.concatenate(targets), np.random.default_rng(0)
    classes = np.unique(joined[joined != IGNORED])
    return np.concatenate([rng.permutation(np.flatnonzero(joined == k))[:PER_CLASS] for k in classes])


def _nearest(table: NDArray[np.float32], rows: NDArray[np.float32]) -> Floats:
    """Distance from the nearest row of a table, both of length one. (n, D), (T, D) to (T,)"""
    return np.asarray(np.sqrt(np.maximum(2 - 2 * (rows @ table.T).max(axis=1), 0)), dtype=np.float64)


SCORES: dict[str, Callable[[Predictor, Sequence[Rows]], list[Floats]]] = {
    "known_rows": shipped,
    "known_rows, single row": single_row,
    "embedding, Mahalanobis": embedding_mahalanobis,
    "embedding, neighbours": embedding_neighbours,
    "disagreement": disagreement,
    "entropy": entropy,
    "max probability": max_probability,
    "energy": energy,
}
SHIPPED = "known_rows"
