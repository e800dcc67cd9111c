"""The trainer: epochs, validation, early stopping, the best model kept; stopped and gone on with at any step."""

from __future__ import annotations

import copy
import json
import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from netanomaly.data.batches import Batch, ChannelSegment, batches, stretches
from netanomaly.errors import ProcessLost, TrainingError
from netanomaly.interrupts import PatientSignals, Terminated, patient
from netanomaly.training.engine import EpochSums, NonFiniteLoss, train_epoch
from netanomaly.training.forward import compiler_errors, training_forward
from netanomaly.training.losses import class_weights
from netanomaly.training.optimizer import adamw
from netanomaly.training.progress import Progress, load_progress, save_progress
from netanomaly.training.recipe import EpochRecord, OnEpoch, Outcome, Recipe
from netanomaly.training.schedule import learning_rate_factor
from netanomaly.training.sharding import own_batches
from netanomaly.training.stops import Stops
from netanomaly.training.world import ALONE, World

log = logging.getLogger(__name__)


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
    world: World = ALONE,
) -> Outcome:
    """Train the model in place.

    The last epoch is kept: the learning rate has come down to zero, and the best of many epochs on a small validation
    part is largely luck. With patience it is the one with the best validation score. So it is where Ctrl-C or a loss
    that is not finite end training early, once there is an epoch to keep; the outcome then holds what stopped it.

    A Ctrl-C or SIGTERM waits for the end of the step and for the checkpoint.

    With other processes, each learns from its share of every batch, and all have the same weights after every step; the
    first of them writes.

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
        world: this process and those that it trains with.

    Raises:
        KeyboardInterrupt, TrainingError: what stopped training before there was an epoch to keep; `Terminated` in any
            case, as somebody waits for the program to end.
        BundleError: the checkpoint is damaged, or of another model.
        ProcessLost: another process has ended; what all had done before is saved.
        ConfigError: the model cannot be compiled here.
    """
    title = "training" if members == 1 else f"training {member} of {members}"
    trainer = _Trainer(
        model,
        training,
        score,
        history,
        recipe,
        seed,
        log_path,
        member,
        title,
        hide,
        checkpoint,
        extremes,
        on_epoch,
        world,
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
        world: World,
    ) -> None:
        self.model, self.training, self.score = model, training, score
        self.history, self.recipe, self.seed, self.log_path, self.member = history, recipe, seed, log_path, member
        self.title, self.hide, self.checkpoint, self.extremes, self.world = title, hide, checkpoint, extremes, world
        self.on_epoch = on_epoch
        self.optimizer = adamw(model, recipe.learning_rate, recipe.weight_decay)
        self.epochs, self.total_steps = self._lengths()
        if self.epochs > recipe.epochs and member == 1:
            log.info(
                "training.min_steps: %d takes %d epochs instead of %d", recipe.min_steps, self.epochs, recipe.epochs
            )
        self.warmup_steps = round(recipe.warmup * self.total_steps)
        self.progress, self.best_weights = Progress(), copy.deepcopy(model.state_dict())
        if checkpoint is not None and world.first_says(checkpoint.exists()):
            self._go_on_from(checkpoint)
        self.started = time.perf_counter() - self.progress.seconds
        device = next(model.parameters()).device
        self.forward = training_forward(model, world, device, recipe.precision, recipe.compile)
        self.stops = Stops(world, PatientSignals())

    def run(self, weights: Tensor) -> Outcome:
        """All epochs, or as many as patience and the user allow; the weights to keep end in the model."""
        now, stopped_by = self.progress, None
        hidden = None if log.isEnabledFor(logging.INFO) else True  # None: shown on a terminal
        with tqdm(total=self.total_steps, initial=now.step, desc=self.title, unit="step", disable=hidden) as bar:
            try:
                with patient() as signals:
                    self.stops = Stops(self.world, signals)
                    while now.epoch < self.epochs and now.epoch - now.best_epoch < (self.recipe.patience or math.inf):
                        self._run_epoch(weights, bar)
            except ProcessLost:
                self._save()  # the weights are those after the last step that all have taken
                raise
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
            if self.stops.due or (recipe.save_steps is not None and now.step % recipe.save_steps == 0):
                self._save()
            self.stops.hear()

        left = self.plan(now.epoch + 1)[now.batch * recipe.batch_size :]
        try:
            with self.world.watched(), compiler_errors(recipe.compile):
                train_epoch(
                    self.model,
                    self._batches(left),
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
                    forward=self.forward,
                    world=self.world,
                    add_up=self.stops.add_up,
                )
        except NonFiniteLoss as stop:
            raise self._what_went_wrong(stop) from stop
        self._end_epoch(told=not bar.disable)
        self.stops.agree()
        self._save()
        self._tell()
        self.stops.hear()

    def _batches(self, left: Sequence[tuple[int, int]]) -> Iterator[Batch]:
        """This process's share of every batch; random numbers start anew before each, where there are others."""
        recipe = self.recipe
        for batch in own_batches(self.training, left, recipe.stretch, self.history, recipe.batch_size, self.world):
            self.world.draw_anew(self.seed, self.progress.step)
            yield batch

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
        self._log([record])
        now.batch, now.sums = 0, EpochSums()
        if not told:
            shown = "none" if loss is None else f"{loss:.3f}"
            log.info("%s, epoch %d: loss %s, validation macro-F1 %.3f", self.title, now.epoch, shown, value)

    def _tell(self) -> None:
        """Tell of the epoch that has ended; after its checkpoint, since a server may take its time."""
        if self.on_epoch is not None and self.world.is_first:
            self.on_epoch(self.progress.records[-1])

    def _save(self) -> None:
        """Write the checkpoint, if there is to be one; a full disk does not end what has come so far."""
        if self.checkpoint is None or not self.world.is_first:
            return
        self.progress.seconds = time.perf_counter() - self.started
        try:
            save_progress(self.checkpoint, self.progress, self.model, self.best_weights, self.optimizer)
        except OSError as error:
            why = error.strerror or error
            log.warning("%s: step %d cannot be saved: %s; training goes on", self.checkpoint, self.progress.step, why)

    def _go_on_from(self, checkpoint: Path) -> None:
        self.progress, self.best_weights = load_progress(checkpoint, self.model, self.optimizer, self.world)
        self._log(self.progress.records)
        log.info("%s: going on after step %d of %d", self.title, self.progress.step, self.total_steps)

    def _log(self, records: Sequence[EpochRecord]) -> None:
        if self.world.is_first:
            write_log(self.log_path, records)

    def _what_went_wrong(self, stop: NonFiniteLoss) -> TrainingError:
        """Where the loss was not finite, what stands out in its rows, and what to do; all processes have it."""
        place = f"{self.title}, epoch {self.progress.epoch + 1}, batch {self.progress.batch + 1}: {stop}"
        if self.extremes is not None:
            place += f"; {self.extremes(self._whole(stop.batch))}"
        error = TrainingError(f"{place}; lower training.learning_rate, or look at these rows")
        error.is_told = not self.world.is_first
        return error

    def _whole(self, share: Batch) -> Batch:
        """The batch of which a process has had its share."""
        if self.world.is_alone:
            return share
        first, size = self.progress.batch * self.recipe.batch_size, self.recipe.batch_size
        pieces = self.plan(self.progress.epoch + 1)[first : first + size]
        return next(batches(self.training, pieces, self.recipe.stretch, self.history, size))


def write_log(path: Path, records: Sequence[EpochRecord]) -> None:
    """Add a JSON line per epoch."""
    with path.open("a", encoding="utf-8") as stream:
        stream.writelines(json.dumps(asdict(record)) + "\n" for record in records)
