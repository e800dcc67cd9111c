"""MetricEncoder: the channels of a row become its embedding."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, gelu

from netanomaly.model.dropout import Dropout


class MetricEncoder(nn.Module):
    """Embeds each row from its own channels and those of the few rows before it.

    A linear layer and a GELU for each row, a causal convolution over `kernel` rows and a GELU. The embedding of a row
    does not depend on where in a window it stands, so all windows that hold the row share it.

    Args:
        channels: C, per row.
        width: D, of an embedding.
        kernel: rows joined; 1 embeds each row alone.
        row_layer: without it the convolution takes the channels as they are.
        dropout: of what the row layer gives.
    """

    def __init__(
        self, channels: int, width: int, kernel: int, *, row_layer: bool = False, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.kernel = kernel
        self.row_layer = nn.Linear(channels, width) if row_layer else None
        self.dropout = Dropout(dropout)
        self.convolution = nn.Conv1d(width if row_layer else channels, width, kernel)

    def forward(self, channels: Tensor, valid: Tensor) -> Tensor:
        """(B, S + kernel - 1, C) and (B, S + kernel - 1) to (B, S, D); rows that are not valid count as zeros."""
        rows = channels.masked_fill(~valid[..., None], 0.0)  # not a product: NaN * 0 would stay NaN
        if self.row_layer is not None:
            rows = self.dropout(gelu(self.row_layer(rows)))
        # as an image of one line whose channels lie last: what comes out is already row by row
        image = rows.transpose(1, 2).unsqueeze(2)  # (B, C or D, 1, S + kernel - 1)
        weight = self.convolution.weight.unsqueeze(2).contiguous(memory_format=torch.channels_last)  # (D, ., 1, kernel)
        joined = conv2d(image, weight, self.convolution.bias).squeeze(2).transpose(1, 2)  # (B, S, D)
        return gelu(joined)
