"""The trainer: epochs, validation, early stopping, the best model kept; stopped and gone on with at any step."""

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

from netanomaly.data.batches import Batch, ChannelSegment, batches, stretches
from netanomaly.errors import TrainingError
from netanomaly.interrupts import PatientSignals, Terminated, patient
from netanomaly.training.engine import EpochSums, NonFiniteLoss, train_epoch
from netanomaly.training.losses import class_weights
from netanomaly.training.progress import Progress, load_progress, save_progress
from netanomaly.training.recipe import EpochRecord, OnEpoch, Recipe
from netanomaly.training.schedule import learning_rate_factor

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outcome:
    """What training came to; the model holds the weights of the kept epoch: the last, or with patience the best.

    Attributes:
        epochs: that were finished.
        records: of each of them, as in the log.
    """

    kept_epoch: int
    validation_macro_f1: float
    epochs: int
    seconds: float
    stopped_by: KeyboardInterrupt | TrainingError | None = None
    records: tuple[EpochRecord, ...] = ()


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
    checkpoint: Path | None = None,
    extremes: Callable[[Batch], str] | None = None,
    on_epoch: OnEpoch | None = None,
) -> Outcome:
    """Train the model in place.

    The last epoch is kept: the learning rate has come down to zero, and the best of many epochs on a small validation
    part is largely luck. With patience it is the one with the best validation score. So it is where Ctrl-C or a loss
    that is not finite end training early, once there is an epoch to keep; the outcome then holds what stopped it.

    A Ctrl-C or SIGTERM waits for the end of the step and for the checkpoint.

    Args:
        training: segments with targets at training rows only.
        score: the model's macro-F1 on the validation rows.
        counts: training rows of each class, (K,).
        history: rows in front of a stretch.
        log_path: gets one JSON line per epoch.
        member, members: which of how many models this is, for the log.
        hide: takes metrics out of the channels of a batch; see `MetricDropout`.
        checkpoint: file to go on from, if it is there; written every `recipe.save_steps` steps and after each epoch.
        extremes: says what stands out in a batch whose loss is not finite.
        on_epoch: is told of every epoch that ends; not of those that a checkpoint goes on from.

    Raises:
        KeyboardInterrupt, TrainingError: what stopped training before there was an epoch to keep; `Terminated` in any
            case, as somebody waits for the program to end.
        BundleError: the checkpoint is damaged, or of another model.
    """
    title = "training" if members == 1 else f"training {member} of {members}"
    trainer = _Trainer(
        model, training, score, history, recipe, seed, log_path, member, title, hide, checkpoint, extremes, on_epoch
    )
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
        checkpoint: Path | None,
        extremes: Callable[[Batch], str] | None,
        on_epoch: OnEpoch | None,
    ) -> None:
        self.model, self.training, self.score = model, training, score
        self.history, self.recipe, self.seed, self.log_path, self.member = history, recipe, seed, log_path, member
        self.title, self.hide, self.checkpoint, self.extremes = title, hide, checkpoint, extremes
        self.on_epoch = on_epoch
        groups = _parameter_groups(model, recipe.weight_decay)
        self.optimizer = torch.optim.AdamW(groups, lr=recipe.learning_rate, fused=True)
        self.epochs, self.total_steps = self._lengths()
        if self.epochs > recipe.epochs and member == 1:
            log.info(
                "training.min_steps: %d takes %d epochs instead of %d", recipe.min_steps, self.epochs, recipe.epochs
            )
        self.warmup_steps = round(recipe.warmup * self.total_steps)
        self.progress, self.best_weights = Progress(), copy.deepcopy(model.state_dict())
        if checkpoint is not None and checkpoint.exists():
            self._go_on_from(checkpoint)
        self.started = time.perf_counter() - self.progress.seconds
        self.signals = PatientSignals()

    def run(self, weights: Tensor) -> Outcome:
        """All epochs, or as many as patience and the user allow; the weights to keep end in the model."""
        now, stopped_by = self.progress, None
        hidden = None if log.isEnabledFor(logging.INFO) else True  # None: shown on a terminal
        with tqdm(total=self.total_steps, initial=now.step, desc=self.title, unit="step", disable=hidden) as bar:
            try:
                with patient() as self.signals:
                    while now.epoch < self.epochs and now.epoch - now.best_epoch < (self.recipe.patience or math.inf):
                        self._run_epoch(weights, bar)
            except Terminated:
                raise
            except (KeyboardInterrupt, TrainingError) as stop:
                if not now.best_epoch:
                    raise
                stopped_by = stop
        seconds, records = time.perf_counter() - self.started, tuple(now.records)
        if stopped_by is None and self.recipe.patience is None:
            return Outcome(now.epoch, now.last_score, now.epoch, seconds, records=records)
        self.model.load_state_dict(self.best_weights)
        return Outcome(now.best_epoch, now.best_score, now.epoch, seconds, stopped_by, records)

    def plan(self, epoch: int) -> list[tuple[int, int]]:
        """The stretches of an epoch in their order: a function of seed and epoch alone."""
        return stretches(self.training, self.recipe.stretch, np.random.default_rng([self.seed, epoch]))

    def rate(self) -> float:
        """The learning rate of the next step."""
        factor = learning_rate_factor(self.progress.step, self.warmup_steps, self.total_steps)
        return self.recipe.learning_rate * factor

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

    def _run_epoch(self, weights: Tensor, bar: tqdm[NoReturn]) -> None:
        """What is left of the epoch that has begun, and its validation."""
        recipe, now = self.recipe, self.progress

        def after_step(loss: float) -> None:
            now.rate = self.rate()
            now.step += 1
            now.batch += 1
            bar.update()
            if not math.isnan(loss):  # a batch without a row to learn
                best = max(now.best_score, 0)
                bar.set_postfix(epoch=now.epoch + 1, loss=f"{loss:.3f}", validation=f"{best:.3f}", refresh=False)
            if self.signals.waiting or (recipe.save_steps is not None and now.step % recipe.save_steps == 0):
                self._save()
            self.signals.hear()

        left = self.plan(now.epoch + 1)[now.batch * recipe.batch_size :]
        try:
            train_epoch(
                self.model,
                batches(self.training, left, recipe.stretch, self.history, recipe.batch_size),
                self.optimizer,
                weights,
                stride=recipe.stride,
                label_smoothing=recipe.label_smoothing,
                gradient_clip=recipe.gradient_clip,
                jitter=recipe.jitter,
                hide=self.hide,
                rate=self.rate,
                after_step=after_step,
                sums=now.sums,
            )
        except NonFiniteLoss as stop:
            raise TrainingError(self._what_went_wrong(stop)) from stop
        self._end_epoch(told=not bar.disable)
        self._save()
        self.signals.hear()

    def _end_epoch(self, *, told: bool) -> None:
        """Validate, write the log, keep the best weights.

        Args:
            told: the progress bar shows it; else a line does.
        """
        now, value = self.progress, self.score()
        now.epoch, now.last_score = now.epoch + 1, value
        if value > now.best_score:
            now.best_score, now.best_epoch = value, now.epoch
            self.best_weights = copy.deepcopy(self.model.state_dict())
        seconds = time.perf_counter() - self.started
        loss = now.sums.loss if now.sums.steps else None  # None: the stride left no row to learn in the whole epoch
        norm = now.sums.gradient_norm
        record = EpochRecord(self.member, now.epoch, now.step, loss, norm, now.rate, value, seconds)
        now.records.append(record)
        write_log(self.log_path, [record])
        if self.on_epoch is not None:
            self.on_epoch(record)
        now.batch, now.sums = 0, EpochSums()
        if not told:
            shown = "none" if loss is None else f"{loss:.3f}"
            log.info("%s, epoch %d: loss %s, validation macro-F1 %.3f", self.title, now.epoch, shown, value)

    def _save(self) -> None:
        """Write the checkpoint, if there is to be one; a full disk does not end what has come so far."""
        if self.checkpoint is None:
            return
        self.progress.seconds = time.perf_counter() - self.started
        try:
            save_progress(self.checkpoint, self.progress, self.model, self.best_weights, self.optimizer)
        except OSError as error:
            why = error.strerror or error
            log.warning("%s: step %d cannot be saved: %s; training goes on", self.checkpoint, self.progress.step, why)

    def _go_on_from(self, checkpoint: Path) -> None:
        self.progress, self.best_weights = load_progress(checkpoint, self.model, self.optimizer)
        write_log(self.log_path, self.progress.records)
        log.info("%s: going on after step %d of %d", self.title, self.progress.step, self.total_steps)

    def _what_went_wrong(self, stop: NonFiniteLoss) -> str:
        """Where the loss was not finite, what stands out in its rows, and what to do."""
        place = f"{self.title}, epoch {self.progress.epoch + 1}, batch {self.progress.batch + 1}: {stop}"
        if self.extremes is not None:
            place += f"; {self.extremes(stop.batch)}"
        return f"{place}; lower training.learning_rate, or look at these rows"


def _parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, object]]:
    """Weight decay for matrices and kernels, none for biases, norms and tokens (1-D) and for positions."""
    decayed: list[nn.Parameter] = []
    spared: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            is_spared = parameter.dim() < 2 or ".positions." in name or ".on_input." in name
            (spared if is_spared else decayed).append(parameter)
    return [{"params": decayed, "weight_decay": weight_decay}, {"params": spared, "weight_decay": 0.0}]


def write_log(path: Path, records: Sequence[EpochRecord]) -> None:
    """Add a JSON line per epoch."""
    with path.open("a", encoding="utf-8") as stream:
        stream.writelines(json.dumps(asdict(record)) + "\n" for record in records)
