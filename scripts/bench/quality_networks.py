"""Peers that are networks, in PyTorch: InceptionTime's network and the Transformer's encoder.

Runs in the peers' environment. aeon's InceptionTime needs TensorFlow, so it is written here from the paper.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import max_pool1d, pad


class InceptionModule(nn.Module):
    """Bottleneck, convolutions of three lengths beside a pooled one: (N, C, L) to (N, 4 filters, L).

    Fawaz et al., InceptionTime, 2020, https://arxiv.org/abs/1909.04939: 32 filters, kernels of 40, 20 and 10
    rows, of which each loses one here, to be odd and centred on its row.
    """

    def __init__(self, channels: int, filters: int = 32, kernels: tuple[int, ...] = (39, 19, 9)) -> None:
        super().__init__()
        self.bottleneck = nn.Conv1d(channels, filters, 1, bias=False) if channels > 1 else nn.Identity()
        width = filters if channels > 1 else 1
        self.kernels = nn.ModuleList(nn.Conv1d(width, filters, k, padding="same", bias=False) for k in kernels)
        self.pooled = nn.Conv1d(channels, filters, 1, bias=False)
        self.norm = nn.BatchNorm1d(filters * (len(kernels) + 1))

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, L) to (N, 4 filters, L)"""
        narrow = self.bottleneck(x)
        around = self.pooled(max_pool1d(pad(x, (1, 1), value=-math.inf), 3, stride=1))
        found: Tensor = torch.relu(self.norm(torch.cat([*(kernel(narrow) for kernel in self.kernels), around], dim=1)))
        return found


class InceptionNetwork(nn.Module):
    """Six modules, a shortcut around every three, the mean over time: windows (N, C, L) to logits (N, K).

    One network of InceptionTime's ensemble of five.
    """

    def __init__(self, channels: int, classes: int, depth: int = 6, filters: int = 32) -> None:
        super().__init__()
        width = 4 * filters
        self.blocks = nn.ModuleList(InceptionModule(channels if i == 0 else width, filters) for i in range(depth))
        self.shortcuts = nn.ModuleList(
            nn.Sequential(nn.Conv1d(channels if i == 0 else width, width, 1, bias=False), nn.BatchNorm1d(width))
            for i in range(depth // 3)
        )
        self.head = nn.Linear(width, classes)

    def forward(self, windows: Tensor) -> Tensor:
        """(N, C, L) to (N, K)"""
        x = before = windows
        for number, block in enumerate(self.blocks):
            x = block(x)
            if number % 3 == 2:
                x = before = torch.relu(x + self.shortcuts[number // 3](before))
        found: Tensor = self.head(x.mean(dim=2))
        return found


class EncoderNetwork(nn.Module):
    """PyTorch's TransformerEncoder on the rows of a window, its newest row classified: (N, C, L) to (N, K).

    Vaswani et al., Attention Is All You Need, 2017, https://arxiv.org/abs/1706.03762: positions are sinusoids added
    to the embeddings; the layer normalises first, which trains more surely.
    """

    def __init__(self, channels: int, classes: int, window: int, layers: int, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.embed = nn.Linear(channels, width)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.2, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)
        self.register_buffer("positions", sinusoids(window, width))

    def forward(self, windows: Tensor) -> Tensor:
        """(N, C, L) to (N, K)"""
        rows = self.embed(windows.transpose(1, 2)) + self.positions
        found: Tensor = self.head(self.encoder(rows)[:, -1])
        return found


def sinusoids(length: int, width: int) -> Tensor:
    """Sine and cosine of positions, (length, width)."""
    position = torch.arange(length)[:, None]
    rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
    return torch.stack([torch.sin(position * rate), torch.cos(position * rate)], dim=2).flatten(1)
