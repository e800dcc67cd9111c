"""Several classifiers that answer as one: their probabilities are averaged.

Each member is trained on its own, from other draws, and may see other channels than the next. What one member has
learned by chance the others have not, so the mean is right more often than its members are.
Source: Lakshminarayanan et al., Simple and Scalable Predictive Uncertainty Estimation using Deep Ensembles (2017).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from netanomaly.model.classifier import NetworkAnomalyClassifier


class Ensemble(nn.Module):
    """One or more classifiers with the same window, kernel and width.

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
        return _averaged([member(seen, valid, stride) for member, seen in self._each(channels)])

    def embed(self, channels: Tensor, valid: Tensor) -> Tensor:
        """Embeddings of the newest rows, from the rows that the encoder joins.

        (n, kernel, C), (n, kernel) to (n, M D)
        """
        return torch.cat([member.encoder(seen, valid)[:, 0] for member, seen in self._each(channels)], dim=-1)

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
        parts = zip(self._members(), rows, tables, strict=True)
        return _averaged(
            [member.classify(member.sequence_model.recall(row, table, valid)) for member, row, table in parts]
        )

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
