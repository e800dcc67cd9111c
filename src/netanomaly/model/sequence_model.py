"""What stands between the encoder and the head: a model that reads windows of embeddings."""

from __future__ import annotations

from torch import Tensor, nn


class SequenceModel(nn.Module):
    """Reads every window of a segment as one vector: `LookupModel`, ours, or `LanguageModel`.

    Args:
        window: L, rows of a window.
        width: of what it reads; may differ from the width D of an embedding.
    """

    def __init__(self, window: int, width: int) -> None:
        super().__init__()
        self.window = window
        self.width = width

    def forward(self, memory: Tensor, valid: Tensor, stride: int = 1) -> Tensor:
        """What is read of every window, or of every n-th one.

        Args:
            memory: embeddings. (B, T + L - 1, D)
            valid: which rows were measured. (B, T + L - 1)
            stride: from one window to the next.

        Returns:
            (B, ceil(T / stride), width)
        """
        raise NotImplementedError

    def read(self, rows: Tensor, valid: Tensor) -> Tensor:
        """What is read of N windows. (N, L, D), (N, L) to (N, width)"""
        raise NotImplementedError

    def looked_up(self, rows: Tensor, valid: Tensor) -> Tensor | None:
        """What each row of N windows counts in what is looked up, a share; None where nothing is.

        (N, L, D), (N, L) to (N, L)
        """
        return None

    def remember(self, rows: Tensor) -> Tensor:
        """What is kept of embeddings for windows to come: they themselves, or what is made of each row alone.

        (N, S, D) to (N, S, R)
        """
        return rows

    def recall(self, newest: Tensor, remembered: Tensor, valid: Tensor) -> Tensor:
        """What is read of N windows, from their newest embedding and what `remember` gave of all their rows.

        (N, D), (N, L, R), (N, L) to (N, width)
        """
        return self.read(remembered, valid)
