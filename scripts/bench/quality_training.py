"""How networks among the peers learn: AdamW on a window at every row, the best epoch on validation; see Task.

Runs in the peers' environment.
"""

from __future__ import annotations

import copy
import math
import time

import numpy as np
import torch
from numpy.typing import NDArray
from scripts.bench.quality_features import Rows, standardised, view, windows
from scripts.bench.quality_networks import EncoderNetwork, InceptionNetwork
from scripts.bench.quality_problem import BASELINES, Places
from scripts.bench.quality_search import Peer, Scorer, Task, macro_f1
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

EPOCHS, TRIAL_EPOCHS, PATIENCE = 30, 5, 8
BATCH, SCORED_AT_A_TIME = 64, 1_024
LEARNING_RATE, WEIGHT_DECAY, WARMUP = 1e-3, 0.05, 0.1


def network(task: Task) -> Scorer:
    """Train the network of the choice until validation gets no better or time is up."""
    torch.manual_seed(task.seed)
    torch.set_num_threads(task.threads)
    device = torch.device(task.device)
    problem, window = task.problem, task.choice["window"]
    rows = view(problem, task.choice["view"], task.choice["baseline"])
    if task.choice["view"] == "levels":
        rows = standardised(problem, rows)  # relative channels are scaled as they come
    model = _model(task, rows[0].shape[1]).to(device)
    truth = problem.targets(task.validation)
    weights = _weights(task).to(device)
    best, best_state, epoch, best_epoch = -1.0, copy.deepcopy(model.state_dict()), 0, 0
    rng = np.random.default_rng(task.seed)
    epochs = EPOCHS if task.final else TRIAL_EPOCHS
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    schedule = _schedule(optimizer, epochs * -(-len(task.training) // BATCH), task.deadline)
    while epoch < epochs and epoch - best_epoch < PATIENCE and time.perf_counter() < task.deadline:
        _epoch(model, optimizer, schedule, task, rows, weights, rng, device)
        epoch += 1
        score = macro_f1(truth, _probabilities(model, rows, window, task.validation, device).argmax(axis=1))
        if score > best:
            best, best_state, best_epoch = score, copy.deepcopy(model.state_dict()), epoch
    model.load_state_dict(best_state)
    task.notes.update(epochs=epoch, best_epoch=best_epoch, out_of_time=time.perf_counter() >= task.deadline)
    return lambda places: _probabilities(model, rows, window, places, device)


def _model(task: Task, channels: int) -> nn.Module:
    classes = len(task.problem.classes)
    if task.choice["network"] == "inception":
        return InceptionNetwork(channels, classes)
    return EncoderNetwork(channels, classes, task.choice["window"], task.choice["layers"])


def _schedule(optimizer: torch.optim.Optimizer, steps: int, deadline: float) -> torch.optim.lr_scheduler.LambdaLR:
    """A tenth of the way up, then half a cosine to zero: at the last step, or at the deadline if that comes first."""
    started = time.perf_counter()

    def factor(step: int) -> float:
        passed = (time.perf_counter() - started) / max(deadline - started, 1e-9)
        progress = min(max((step + 1) / steps, passed), 1.0)
        return min(progress / WARMUP, 1.0) * (1 + math.cos(math.pi * progress)) / 2

    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


def _weights(task: Task) -> Tensor:
    """Of each class in the loss, (K,); those without training rows count for nothing."""
    counts = np.bincount(task.problem.targets(task.training), minlength=len(task.problem.classes))
    if task.choice["class_weight"] is None:
        return torch.ones(len(counts))
    balanced = counts.sum() / ((counts > 0).sum() * np.maximum(counts, 1))
    return torch.tensor(np.where(counts > 0, balanced, 0.0), dtype=torch.float32)


def _epoch(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    schedule: torch.optim.lr_scheduler.LRScheduler,
    task: Task,
    rows: Rows,
    weights: Tensor,
    rng: np.random.Generator,
    device: torch.device,
) -> None:
    """One pass over the training windows, or as much of it as there is time for."""
    model.train()
    shuffled = rng.permutation(task.training)
    for first in range(0, len(shuffled), BATCH):
        some = shuffled[first : first + BATCH]
        if len(some) < 2 or time.perf_counter() >= task.deadline:  # normalisation by batch needs two
            break
        given = torch.from_numpy(windows(rows, task.choice["window"], some)).to(device)
        targets = torch.from_numpy(task.problem.targets(some)).to(device)
        optimizer.zero_grad()
        cross_entropy(model(given), targets, weight=weights).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()


@torch.inference_mode()
def _probabilities(
    model: nn.Module, rows: Rows, window: int, places: Places, device: torch.device
) -> NDArray[np.float64]:
    """(N, 2) to (N, K)"""
    model.eval()
    found = []
    for some in np.array_split(places, max(1, len(places) // SCORED_AT_A_TIME)):
        logits = model(torch.from_numpy(windows(rows, window, some)).to(device))
        found.append(logits.double().softmax(dim=1).cpu().numpy())
    return np.concatenate(found)


_WEIGHTS = {"class_weight": (None, "balanced")}
_BASELINE = {"baseline": (BASELINES[-1], *BASELINES[:-1])}
NETWORKS = {
    "inception": Peer(
        {"network": ("inception",), "view": ("relative", "levels"), "window": (32, 8, 64), **_BASELINE, **_WEIGHTS},
        network,
        few=1_500,
        most=20_000,
    ),
    "transformer_encoder": Peer(
        {
            "network": ("encoder",),
            "view": ("relative",),
            "window": (64, 4, 8, 16, 32),
            **_BASELINE,
            "layers": (1, 2),
            **_WEIGHTS,
        },
        network,
        few=3_000,
        most=60_000,
    ),
}
