"""What runs in the project's own environment: our paths, PyTorch's encoder, and the rates of the machine.

Run as a worker: `python -m scripts.bench.ours --device cpu`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scripts.bench.data import BATCH, CLASSES, HEADS, METRICS, WIDTH, WINDOW, rows
from scripts.bench.one_block import STEM
from scripts.bench.worker import Task, serve
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from netanomaly.build_model import build_classifier
from netanomaly.config_model import ModelConfig
from netanomaly.data.batches import ChannelSegment, batches, stretches
from netanomaly.model.classifier import NetworkAnomalyClassifier
from netanomaly.model.positions import sinusoidal_table
from netanomaly.training.engine import segment_logits, train_epoch

DEVICE = torch.device("cpu")


def segments(count: int, metrics: int, series: int = 1) -> list[ChannelSegment]:
    """Series of `count` rows together."""
    channels, labels = rows(count, metrics)
    parts = zip(np.array_split(channels, series), np.array_split(labels, series), strict=True)
    return [ChannelSegment(part, np.ones(len(part), dtype=bool), targets) for part, targets in parts]


def classifier(request: dict[str, Any]) -> NetworkAnomalyClassifier:
    """The default block, with the sizes of the request."""
    torch.manual_seed(0)
    choice: dict[str, Any] = {"kind": "attention", "n_heads": HEADS, "execution": request.get("execution", "auto")}
    sizes = {"width": request.get("width", WIDTH), "window": request.get("window", WINDOW)}
    dropout = {key: request[key] for key in ("dropout",) if key in request}
    config = ModelConfig.model_validate({**sizes, **dropout, "row_layer": False, "sequence_model": choice})
    return build_classifier(config, sizes["window"], STEM, request.get("metrics", METRICS), CLASSES).to(DEVICE)


def scoring(request: dict[str, Any]) -> Task:
    """Logits of every row, as `predict` computes them."""
    model = classifier(request)
    given = segments(request["rows"], request.get("metrics", METRICS), request.get("series", 1))

    def run() -> int:
        segment_logits(model, given, CLASSES, model.history_rows, DEVICE)
        return int(request["rows"])

    return run


def training(request: dict[str, Any]) -> Task:
    """One epoch, as `train` runs it."""
    model, given = classifier(request), segments(request["rows"], METRICS)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    weights = torch.ones(CLASSES, device=DEVICE)

    def run() -> int:
        pieces = stretches(given, 128, np.random.default_rng(0))
        train_epoch(
            model,
            batches(given, pieces, 128, model.history_rows, request.get("batch_size", 8)),
            optimizer,
            weights,
            stride=1,
            label_smoothing=0.05,
            gradient_clip=1.0,
            jitter=0.1,
            rate=lambda: 1e-3,
            after_step=lambda loss: None,
        )
        return int(request["rows"])

    return run


class Encoder(nn.Module):
    """PyTorch's encoder, one layer of our width and as many heads, its last row classified."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.embed = nn.Linear(METRICS, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=dropout, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.head = nn.Linear(WIDTH, CLASSES)
        self.register_buffer("positions", sinusoidal_table(WINDOW, WIDTH))

    def forward(self, windows: Tensor) -> Tensor:
        """(N, L, M) to (N, K)"""
        found: Tensor = self.head(self.encoder(self.embed(windows) + self.positions)[:, -1])
        return found


def encoder_task(request: dict[str, Any]) -> Task:
    """nn.TransformerEncoder on windows at every row."""
    torch.manual_seed(0)
    model = Encoder(request.get("dropout", 0.1)).to(DEVICE)  # PyTorch's default
    channels, labels = rows(request["rows"] + WINDOW - 1)
    windows = torch.from_numpy(channels).to(DEVICE).unfold(0, WINDOW, 1).transpose(1, 2)  # (N, L, M), a view
    targets = torch.from_numpy(labels[WINDOW - 1 :]).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def score() -> int:
        model.eval()
        with torch.inference_mode():
            for some in windows.split(BATCH):
                model(some.contiguous())
        return len(windows)

    def train() -> int:
        model.train()
        for some, wanted in zip(windows.split(BATCH), targets.split(BATCH), strict=True):
            optimizer.zero_grad()
            cross_entropy(model(some.contiguous()), wanted).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        return len(windows)

    return train if request.get("train") else score


def matmul_rate(request: dict[str, Any]) -> Task:
    """Products of matrices; a window stands for a million multiplications with addition, times two."""
    size = 1024
    left, right = torch.randn(2, size, size, device=DEVICE)

    def run() -> int:
        for _ in range(10):
            left @ right
        return 10 * 2 * size**3 // 10**6

    return run


def exp_rate(request: dict[str, Any]) -> Task:
    """Exponentials; a window stands for a million."""
    count, times = (2**16, 1000) if DEVICE.type == "cpu" else (2**26, 10)  # in the cache; more than a launch
    numbers = torch.randn(count, device=DEVICE)

    def run() -> int:
        for _ in range(times):
            numbers.exp()
        return times * count // 10**6

    return run


def finished(make: Callable[[dict[str, Any]], Task]) -> Callable[[dict[str, Any]], Task]:
    """The same task, over when the device has done its work: launches on CUDA return before."""

    def made(request: dict[str, Any]) -> Task:
        task = make(request)

        def run() -> int:
            done = task()
            if DEVICE.type == "cuda":
                torch.cuda.synchronize(DEVICE)
            return done

        return run

    return made


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    DEVICE = torch.device(parser.parse_args().device)
    serve(
        {
            "scoring": finished(scoring),
            "training": finished(training),
            "encoder": finished(encoder_task),
            "matmul": finished(matmul_rate),
            "exp": finished(exp_rate),
        }
    )
