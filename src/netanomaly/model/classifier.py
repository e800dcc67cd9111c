"""The whole classifier: encoder, sequence model, head. Segments in, logits for every target row out."""

from __future__ import annotations

from torch import Tensor, nn

from netanomaly.model.encoder import MetricEncoder
from netanomaly.model.sequence_model import SequenceModel


def window_history(window: int, stem: int) -> int:
    """Earlier rows that the model sees: those of the window and of its oldest row's convolution."""
    return window - 1 + stem - 1


class NetworkAnomalyClassifier(nn.Module):
    """Names the state of the network at every target row from the window that ends in it.

    Args:
        encoder: rows to embeddings.
        sequence_model: windows of embeddings to one vector each.
        classes: K.
    """

    def __init__(self, encoder: MetricEncoder, sequence_model: SequenceModel, classes: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.sequence_model = sequence_model
        self.norm = nn.LayerNorm(sequence_model.width)
        self.head = nn.Linear(sequence_model.width, classes)
        nn.init.normal_(self.head.weight, std=0.02)  # fresh logits are near zero: no class is preferred
        nn.init.zeros_(self.head.bias)

    @property
    def history_rows(self) -> int:
        """Earlier rows that the logits of a row depend on."""
        return window_history(self.sequence_model.window, self.encoder.kernel)

    def forward(self, channels: Tensor, valid: Tensor, stride: int = 1) -> Tensor:
        """Logits of every target row, or of every n-th one.

        Args:
            channels: (B, history_rows + T, C)
            valid: (B, history_rows + T); what `channels` holds where this is False does not matter.
            stride: from one target row to the next.

        Returns:
            (B, ceil(T / stride), K); meaningless where the target row itself is not valid, but finite.
        """
        memory = self.encoder(channels, valid)  # (B, T + L - 1, D)
        read = self.sequence_model(memory, valid[:, self.encoder.kernel - 1 :], stride)  # (B, T', width)
        return self.classify(read)

    def classify(self, read: Tensor) -> Tensor:
        """Logits of what the sequence model has read. (..., width) to (..., K)"""
        logits: Tensor = self.head(self.norm(read))
        return logits
