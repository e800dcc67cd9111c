"""The trainer: epochs, validation, early stopping, and the best model kept."""

from __future__ import annotations

import copy
import json
import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from netanomaly.data.batches import ChannelSegment, batches, stretches
from netanomaly.errors import TrainingError
from netanomaly.training.engine import train_epoch
from netanomaly.training.losses import ClassWeights, class_weights
from netanomaly.training.schedule import learning_rate_factor

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recipe:
    """How to train; the fields are those of the config's section `training`."""

    epochs: int
    min_steps: int
    batch_size: int
    stretch: int
    stride: int
    learning_rate: float
    warmup: float
    weight_decay: float
    gradient_clip: float
    label_smoothing: float
    class_weights: ClassWeights
    jitter: float
    metric_dropout: float
    patience: int | None


@dataclass(frozen=True)
class EpochRecord:
    """One line of the log; the learning rate is that of the last step."""

    member: int
    epoch: int
    steps: int
    loss: float | None
    gradient_norm: float
    learning_rate: float
    validation_macro_f1: float
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """What training came to; the model holds the weights of the kept epoch: the last, or with patience the best."""

    kept_epoch: int
    validation_macro_f1: float
    epochs: int
    seconds: float
    stopped_by: KeyboardInterrupt | TrainingError | None = None


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
    member: int = 1,
    members: int = 1,
    hide: Callable[[Tensor], Tensor] | None = None,
) -> Outcome:
    """Train the model in place.

    The last epoch is kept: the learning rate has come down to zero, and the best of many epochs on a small validation
    part is largely luck. With patience it is the one with the best validation score. So it is where Ctrl-C or a loss
    that is not finite end training early, once there is an epoch to keep; the outcome then holds what stopped it.

    Args:
        training: segments with targets at training rows only.
        score: the model's macro-F1 on the validation rows.
        counts: training rows of each class, (K,).
        history: rows in front of a stretch.
        log_path: gets one JSON line per epoch.
        member, members: which of how many models this is, for the log.
        hide: takes metrics out of the channels of a batch; see `MetricDropout`.
    """
    title = "training" if members == 1 else f"training {member} of {members}"
    trainer = _Trainer(model, training, score, history, recipe, seed, log_path, member, title, hide)
    return trainer.run(class_weights(counts, recipe.class_weights).to(device))


class _Trainer:
    """The state of one training run."""

    def __init__(
        self,
        model: nn.Module,
        training: Sequence[ChannelSegment],
        score: Callable[[], float],
        history: int,
        recipe: Recipe,
        seed: int,
        log_path: Path,
        member: int,
        title: str,
        hide: Callable[[Tensor], Tensor] | None,
    ) -> None:
        self.model, self.training, self.score = model, training, score
        self.history, self.recipe, self.seed, self.log_path, self.member = history, recipe, seed, log_path, member
        self.title, self.hide = title, hide
        groups = _parameter_groups(model, recipe.weight_decay)
        self.optimizer = torch.optim.AdamW(groups, lr=recipe.learning_rate, fused=True)
        self.epochs, self.total_steps = self._lengths()
        if self.epochs > recipe.epochs and member == 1:
            log.info(
                "training.min_steps: %d takes %d epochs instead of %d", recipe.min_steps, self.epochs, recipe.epochs
            )
        self.warmup_steps = round(recipe.warmup * self.total_steps)
        self.step = self.epoch = self.best_epoch = 0
        self.best_score = self.last_score = -1.0
        self.best_weights = copy.deepcopy(model.state_dict())
        self.started = time.perf_counter()

    def run(self, weights: Tensor) -> Outcome:
        """All epochs, or as many as patience and the user allow; the weights to keep end in the model."""
        stopped_by: KeyboardInterrupt | TrainingError | None = None
        hidden = None if log.isEnabledFor(logging.INFO) else True  # None: shown on a terminal
        with tqdm(total=self.total_steps, desc=self.title, unit="step", disable=hidden) as bar:
            try:
                while self.epoch < self.epochs and self.epoch - self.best_epoch < (self.recipe.patience or math.inf):
                    self.epoch += 1
                    record = self._run_epoch(weights, bar)
                    if bar.disable:  # no terminal: a line per epoch instead of the bar
                        log.info(
                            "%s, epoch %d: loss %s, validation macro-F1 %.3f",
                            self.title,
                            record.epoch,
                            "none" if record.loss is None else f"{record.loss:.3f}",
                            record.validation_macro_f1,
                        )
            except (KeyboardInterrupt, TrainingError) as stop:
                if not self.best_epoch:
                    raise
                stopped_by = stop
        seconds = time.perf_counter() - self.started
        if stopped_by is None and self.recipe.patience is None:
            return Outcome(self.epoch, self.last_score, self.epoch, seconds)
        self.model.load_state_dict(self.best_weights)
        return Outcome(self.best_epoch, self.best_score, self.epoch, seconds, stopped_by)

    def _lengths(self) -> tuple[int, int]:
        """Epochs and steps: as many epochs as the recipe says, more if they have less than its least steps."""
        epochs = steps = 0
        while epochs < self.recipe.epochs or steps < self.recipe.min_steps:
            epochs += 1
            planned = len(self.plan(epochs))
            if not planned:
                raise ValueError("training: no row has a target")
            steps += -(-planned // self.recipe.batch_size)
        return epochs, steps

    def plan(self, epoch: int) -> list[tuple[int, int]]:
        """The stretches of an epoch in their order: a function of seed and epoch alone."""
        return stretches(self.training, self.recipe.stretch, np.random.default_rng([self.seed, epoch]))

    def rate(self) -> float:
        """The learning rate of the next step."""
        return self.recipe.learning_rate * learning_rate_factor(self.step, self.warmup_steps, self.total_steps)

    def _run_epoch(self, weights: Tensor, bar: tqdm[NoReturn]) -> EpochRecord:
        last_rate = 0.0

        def after_step(loss: float) -> None:
            nonlocal last_rate
            last_rate = self.rate()
            self.step += 1
            bar.update()
            best = max(self.best_score, 0)
            if not math.isnan(loss):  # a batch without a row to learn
                bar.set_postfix(epoch=self.epoch, loss=f"{loss:.3f}", validation=f"{best:.3f}", refresh=False)

        recipe = self.recipe
        sums = train_epoch(
            self.model,
            batches(self.training, self.plan(self.epoch), recipe.stretch, self.history, recipe.batch_size),
            self.optimizer,
            weights,
            stride=recipe.stride,
            label_smoothing=recipe.label_smoothing,
            gradient_clip=recipe.gradient_clip,
            jitter=recipe.jitter,
            hide=self.hide,
            rate=self.rate,
            after_step=after_step,
        )
        value = self.last_score = self.score()
        if value > self.best_score:
            self.best_score, self.best_epoch = value, self.epoch
            self.best_weights = copy.deepcopy(self.model.state_dict())
        seconds = time.perf_counter() - self.started
        loss = sums.loss if sums.steps else None  # None: the stride left no row to learn in the whole epoch
        record = EpochRecord(self.member, self.epoch, self.step, loss, sums.gradient_norm, last_rate, value, seconds)
        _write(self.log_path, record)
        return record


def _parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, object]]:
    """Weight decay for matrices and kernels, none for biases, norms and tokens (1-D) and for positions."""
    decayed: list[nn.Parameter] = []
    spared: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            is_spared = parameter.dim() < 2 or ".positions." in name or ".on_input." in name
            (spared if is_spared else decayed).append(parameter)
    return [{"params": decayed, "weight_decay": weight_decay}, {"params": spared, "weight_decay": 0.0}]


def _write(path: Path, record: EpochRecord) -> None:
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(asdict(record)) + "\n")
