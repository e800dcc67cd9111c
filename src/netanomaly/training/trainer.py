"""The trainer: epochs, validation, early stopping, and the best model kept."""

from __future__ import annotations

import copy
import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from netanomaly.data.batches import ChannelSegment, batches, stretches
from netanomaly.training.engine import train_epoch
from netanomaly.training.losses import ClassWeights, class_weights
from netanomaly.training.schedule import learning_rate_factor

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recipe:
    """How to train; the fields are those of the config's section `training`."""

    epochs: int
    batch_size: int
    stretch: int
    learning_rate: float
    warmup: float
    weight_decay: float
    gradient_clip: float
    label_smoothing: float
    class_weights: ClassWeights
    jitter: float
    patience: int


@dataclass(frozen=True)
class EpochRecord:
    """One line of the log."""

    epoch: int
    steps: int
    loss: float
    gradient_norm: float
    learning_rate: float
    validation_macro_f1: float
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """What training came to; the model holds the weights of the best epoch."""

    best_epoch: int
    best_validation_macro_f1: float
    epochs: int
    seconds: float


def fit(
    model: nn.Module,
    training: Sequence[ChannelSegment],
    score: Callable[[], float],
    counts: Tensor,
    history: int,
    recipe: Recipe,
    *,
    seed: int,
    device: torch.device,
    log_path: Path,
) -> Outcome:
    """Train the model in place and leave the weights of its best validation score in it.

    Args:
        training: segments with targets at training rows only.
        score: the model's macro-F1 on the validation rows.
        counts: training rows of each class, (K,).
        history: rows in front of a stretch.
        log_path: gets one JSON line per epoch.
    """

    def plan(epoch: int) -> list[tuple[int, int]]:
        """The stretches of an epoch in their order: a function of seed and epoch alone."""
        return stretches(training, recipe.stretch, np.random.default_rng([seed, epoch]))

    weights = class_weights(counts, recipe.class_weights).to(device)
    optimizer = torch.optim.AdamW(_parameter_groups(model, recipe.weight_decay), lr=recipe.learning_rate)
    total_steps = sum(-(-len(plan(epoch)) // recipe.batch_size) for epoch in range(1, recipe.epochs + 1))
    warmup_steps = round(recipe.warmup * total_steps)
    best_score, best_epoch, best_weights = -1.0, 0, copy.deepcopy(model.state_dict())
    started, step, epoch = time.perf_counter(), 0, 0

    def rate() -> float:
        return recipe.learning_rate * learning_rate_factor(step, warmup_steps, total_steps)

    with tqdm(total=total_steps, desc="training", unit="step", disable=None) as bar:

        def after_step(loss: float) -> None:
            nonlocal step
            step += 1
            bar.update()
            bar.set_postfix(epoch=epoch, loss=f"{loss:.3f}", validation=f"{max(best_score, 0):.3f}", refresh=False)

        for epoch in range(1, recipe.epochs + 1):
            sums = train_epoch(
                model,
                batches(training, plan(epoch), recipe.stretch, history, recipe.batch_size),
                optimizer,
                weights,
                label_smoothing=recipe.label_smoothing,
                gradient_clip=recipe.gradient_clip,
                jitter=recipe.jitter,
                rate=rate,
                after_step=after_step,
            )
            value = score()
            seconds = time.perf_counter() - started
            _write(log_path, EpochRecord(epoch, step, sums.loss, sums.gradient_norm, rate(), value, seconds))
            log.info("epoch %d: loss %.3f, validation macro-F1 %.3f", epoch, sums.loss, value)
            if value > best_score:
                best_score, best_epoch, best_weights = value, epoch, copy.deepcopy(model.state_dict())
            if epoch - best_epoch >= recipe.patience:
                break
    model.load_state_dict(best_weights)
    return Outcome(best_epoch, best_score, epoch, time.perf_counter() - started)


def _parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, object]]:
    """Weight decay for matrices and kernels, none for biases, norms and tokens (1-D)."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]


def _write(path: Path, record: EpochRecord) -> None:
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(asdict(record)) + "\n")
