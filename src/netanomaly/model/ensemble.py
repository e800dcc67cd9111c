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
from torch.nn.functional import pad

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

    def read(self, channels: Tensor, valid: Tensor) -> Tensor:
        """What `forward` gives of one target row each, window by window.

        (N, history_rows + 1, C), (N, history_rows + 1) to (N, K)
        """
        logits = []
        for member, rows, held in self._windows(channels, valid):
            logits.append(member.classify(member.sequence_model.read(rows, held)))
        return _averaged(logits)

    def looked_up(self, channels: Tensor, valid: Tensor) -> tuple[Tensor, Tensor] | None:
        """What each row of a window counts in the look-ups: the mean of the members' shares, 0 where one has no row.

        Beside it what it would be if every member looked at all measured rows of its window alike: those that short
        windows hold count more. None where there is no look-up; see `SequenceModel.looked_up`.

        (N, history_rows + 1, C), (N, history_rows + 1) to (N, L) each
        """
        found, even = [], []
        for member, rows, held in self._windows(channels, valid):
            shares = member.sequence_model.looked_up(rows, held)
            if shares is None:
                return None
            older = self._first.sequence_model.window - shares.shape[1]  # rows that it does not see
            found.append(pad(shares, (older, 0)))
            even.append(pad(held / held.sum(1, keepdim=True).clamp(min=1), (older, 0)))
        return torch.stack(found).mean(0), torch.stack(even).mean(0)

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
            yield member, self._seen(number, channels)

    def _seen(self, number: int, channels: Tensor) -> Tensor:
        """What a member sees of (..., C)."""
        view = getattr(self, f"view_{number}")
        return channels if view is None else channels.index_select(-1, view)

    def _windows(self, channels: Tensor, valid: Tensor) -> Iterator[tuple[NetworkAnomalyClassifier, Tensor, Tensor]]:
        """Members, the embeddings of the rows of their windows, (N, L, D), and which are valid, (N, L)."""
        for number, member in enumerate(self._members()):
            early = self.history_rows - member.history_rows  # rows that it does not look back to
            rows = member.encoder(self._seen(number, channels[:, early:]), valid[:, early:])
            yield member, rows, valid[:, early + member.encoder.kernel - 1 :]

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
