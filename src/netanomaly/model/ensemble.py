"""Several classifiers that answer as one: their probabilities are averaged.

Each member is trained on its own, from other draws, and may see other channels than the next and look back less far
than the first. What one member has learned by chance the others have not, so the mean is right more often than its
members are.
Source: Lakshminarayanan et al., Simple and Scalable Predictive Uncertainty Estimation using Deep Ensembles (2017).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from netanomaly.model.classifier import NetworkAnomalyClassifier


class Ensemble(nn.Module):
    """One or more classifiers of the same width; none has a longer window or kernel than the first.

    What is kept of a row, for windows to come, is what the members keep of it, one after the other.

    Args:
        members: M classifiers.
        views: which channels each member sees, as their numbers; None: all of them.
    """

    def __init__(self, members: Sequence[NetworkAnomalyClassifier], views: Sequence[Sequence[int] | None]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        for number, view in enumerate(views):
            seen = None if view is None else torch.tensor(view)
            self.register_buffer(f"view_{number}", seen, persistent=False)  # follows from the config

    @property
    def history_rows(self) -> int:
        """Earlier rows that the logits of a row depend on."""
        return self._first.history_rows

    @property
    def kernel(self) -> int:
        """Rows that the encoder joins."""
        return self._first.encoder.kernel

    def forward(self, channels: Tensor, valid: Tensor, stride: int = 1) -> Tensor:
        """Logits of every target row, or of every n-th one: of several members, the logarithm of their mean answer.

        See `NetworkAnomalyClassifier.forward`.
        """
        logits = []
        for member, seen in self._each(channels):
            early = self.history_rows - member.history_rows  # rows that it does not look back to
            logits.append(member(seen[:, early:], valid[:, early:], stride))
        return _averaged(logits)

    def embed(self, channels: Tensor, valid: Tensor) -> Tensor:
        """Embeddings of the newest rows, from the rows that the encoder joins.

        (n, kernel, C), (n, kernel) to (n, M D)
        """
        newest = []
        for member, seen in self._each(channels):
            kernel = member.encoder.kernel
            newest.append(member.encoder(seen[:, -kernel:], valid[:, -kernel:])[:, 0])  # (n, D)
        return torch.cat(newest, dim=-1)

    def remember(self, newest: Tensor) -> Tensor:
        """All that later windows need of a row. (n, M D) to (n, M R)"""
        rows = newest[:, None].chunk(len(self.members), dim=-1)
        kept = [member.sequence_model.remember(row) for member, row in zip(self._members(), rows, strict=True)]
        return torch.cat(kept, dim=-1)[:, 0]

    def recall(self, newest: Tensor, remembered: Tensor, valid: Tensor) -> Tensor:
        """Logits of the newest row of n windows, from what was remembered of all its rows.

        (n, M D), (n, L, M R), (n, L) to (n, K)
        """
        rows, tables = (held.chunk(len(self.members), dim=-1) for held in (newest, remembered))
        logits = []
        for member, row, table in zip(self._members(), rows, tables, strict=True):
            window = member.sequence_model.window
            read = member.sequence_model.recall(row, table[:, -window:], valid[:, -window:])
            logits.append(member.classify(read))
        return _averaged(logits)

    def _each(self, channels: Tensor) -> Iterator[tuple[NetworkAnomalyClassifier, Tensor]]:
        """Members and what they see of (..., C)."""
        for number, member in enumerate(self._members()):
            view = getattr(self, f"view_{number}")
            yield member, channels if view is None else channels.index_select(-1, view)

    def _members(self) -> Iterator[NetworkAnomalyClassifier]:
        yield from self.members  # type: ignore[misc]

    @property
    def _first(self) -> NetworkAnomalyClassifier:
        return next(self._members())


def _averaged(logits: Sequence[Tensor]) -> Tensor:
    """The logarithm of the mean of the members' probabilities; the logits themselves of one. (..., K) each"""
    if len(logits) == 1:
        return logits[0]
    return torch.stack([one.log_softmax(-1) for one in logits]).logsumexp(0) - math.log(len(logits))
