"""The trainer: epochs, validation, early stopping, and the best model kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from recipes import recipe
from torch import Tensor, nn

from classifiers import classifier
from netanomaly.data.batches import ChannelSegment, stretches
from netanomaly.errors import TrainingError
from netanomaly.model.classifier import NetworkAnomalyClassifier
from netanomaly.training.engine import segment_logits
from netanomaly.training.schedule import learning_rate_factor
from netanomaly.training.trainer import Outcome, fit

CHANNELS, CLASSES = 3, 2
CPU = torch.device("cpu")


def _segments(rows: int = 70) -> list[ChannelSegment]:
    """Rows whose class is the sign of their first channel."""
    result = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        channels = rng.standard_normal((rows, CHANNELS)).astype(np.float32)
        result.append(ChannelSegment(channels, np.full(rows, True), (channels[:, 0] > 0).astype(np.int64)))
    return result


def _model(seed: int = 0) -> NetworkAnomalyClassifier:
    return classifier(channels=CHANNELS, classes=CLASSES, seed=seed, window=4, width=8, stem=1, dropout=0.1)


def _fit(
    model: nn.Module,
    log: Path,
    score: Callable[[], float] = lambda: 0.5,
    *,
    seed: int = 0,
    segments: list[ChannelSegment] | None = None,
    **changes: Any,
) -> Outcome:
    counts = torch.tensor([100.0, 100.0], dtype=torch.float64)
    training = _segments() if segments is None else segments
    return fit(model, training, score, counts, 3, recipe(**changes), seed=seed, device=CPU, log_path=log)


def _records(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


class _Scores:
    """Validation scores from a list; keeps the weights that each was given for."""

    def __init__(self, model: nn.Module, *values: float) -> None:
        self.model, self.values = model, values
        self.weights: list[dict[str, Tensor]] = []

    def __call__(self) -> float:
        self.weights.append({name: weight.clone() for name, weight in self.model.state_dict().items()})
        return self.values[len(self.weights) - 1]


def _equal(state: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return all(torch.equal(state[name], other[name]) for name in state)


@pytest.mark.parametrize(
    ("values", "best"),
    [((0.1, 0.9, 0.3, 0.2), 2), ((0.9, 0.3, 0.2, 0.1), 1), ((0.1, 0.2, 0.3, 0.4), 4), ((0.0, 0.0, 0.0, 0.0), 1)],
)
def test_the_weights_of_the_best_epoch_are_left_in_the_model(
    tmp_path: Path, values: tuple[float, ...], best: int
) -> None:
    model = _model()
    score = _Scores(model, *values)
    outcome = _fit(model, tmp_path / "log", score)
    assert (outcome.kept_epoch, outcome.validation_macro_f1, outcome.epochs) == (best, values[best - 1], 4)
    assert _equal(model.state_dict(), score.weights[best - 1])
    assert not _equal(score.weights[0], score.weights[1])


def test_training_stops_when_the_score_gets_no_better(tmp_path: Path) -> None:
    model = _model()
    score = _Scores(model, 0.1, 0.5, 0.5, 0.4, 0.6, 0.7)
    outcome = _fit(model, tmp_path / "log", score, epochs=6, patience=2)
    assert (outcome.epochs, outcome.kept_epoch) == (4, 2)
    assert _equal(model.state_dict(), score.weights[1])


def test_without_patience_the_last_epoch_is_kept(tmp_path: Path) -> None:
    model = _model()
    score = _Scores(model, 0.1, 0.9, 0.3, 0.2)
    outcome = _fit(model, tmp_path / "log", score, patience=None)
    assert (outcome.kept_epoch, outcome.validation_macro_f1, outcome.epochs) == (4, 0.2, 4)
    assert _equal(model.state_dict(), score.weights[-1])


def test_one_line_of_the_log_per_epoch(tmp_path: Path) -> None:
    model = _model()
    _fit(model, tmp_path / "log", _Scores(model, 0.1, 0.5, 0.2, 0.3))
    records = _records(tmp_path / "log")
    assert [record["epoch"] for record in records] == [1, 2, 3, 4]
    assert [record["validation_macro_f1"] for record in records] == [0.1, 0.5, 0.2, 0.3]
    assert set(records[0]) == {
        "member",
        "epoch",
        "steps",
        "loss",
        "gradient_norm",
        "learning_rate",
        "validation_macro_f1",
        "seconds",
    }


@pytest.mark.parametrize(("epochs", "least"), [(1, 0), (3, 0), (1, 17), (1, 18)])
@pytest.mark.parametrize(("rows", "stretch", "size"), [(70, 16, 2), (70, 64, 8), (17, 1, 5)])
def test_the_schedule_ends_with_the_last_step(
    tmp_path: Path, epochs: int, least: int, rows: int, stretch: int, size: int
) -> None:
    segments = _segments(rows)
    sizes = {"epochs": epochs, "min_steps": least, "stretch": stretch, "batch_size": size}
    _fit(_model(), tmp_path / "log", segments=segments, seed=5, patience=None, **sizes)
    plans = [stretches(segments, stretch, np.random.default_rng([5, epoch])) for epoch in range(1, 20)]
    steps = np.cumsum([-(-len(plan) // size) for plan in plans])
    steps = steps[: max(epochs, 1 + int(np.searchsorted(steps, least)))]  # more epochs where they have too few steps
    records = _records(tmp_path / "log")
    assert [record["steps"] for record in records] == steps.tolist()
    chosen, total = recipe(), int(steps[-1])
    warmup = round(chosen.warmup * total)
    rates = [chosen.learning_rate * learning_rate_factor(int(step) - 1, warmup, total) for step in steps]
    assert [record["learning_rate"] for record in records] == pytest.approx(rates, abs=1e-15)


class _Seen(nn.Module):
    """Keeps the rows whose logits it is asked for, by their first channel; one set per epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(CHANNELS, CLASSES)
        self.rows: list[set[float]] = [set()]

    def forward(self, channels: Tensor, valid: Tensor, stride: int = 1) -> Tensor:
        self.rows[-1] |= set(channels[:, 3::stride][valid[:, 3::stride]][:, 0].tolist())  # 3 rows of history
        logits: Tensor = self.head(channels[:, 3::stride])
        return logits

    def score(self) -> float:
        """Ends the epoch."""
        self.rows.append(set())
        return 0.5


def test_with_a_stride_other_rows_are_learnt_from_each_epoch(tmp_path: Path) -> None:
    model, segments = _Seen(), _segments()
    every = {float(row) for segment in segments for row in segment.channels[:, 0]}
    _fit(model, tmp_path / "log", model.score, segments=segments, epochs=20, patience=20, stride=4, jitter=0.0)
    epochs = model.rows[:-1]
    assert all(0.2 * len(every) < len(rows) < 0.3 * len(every) for rows in epochs)
    assert epochs[0] != epochs[1]
    assert set.union(*epochs) == every


def test_batches_without_a_row_to_learn_count_as_steps_of_the_schedule(tmp_path: Path) -> None:
    segments = _segments()
    for segment in segments:
        segment.targets[np.arange(len(segment.targets)) % 9 > 0] = -1
    _fit(_model(), tmp_path / "log", segments=segments, epochs=3, stride=16, batch_size=1, seed=5)
    plans = [stretches(segments, 16, np.random.default_rng([5, epoch])) for epoch in (1, 2, 3)]
    steps, records = np.cumsum([len(plan) for plan in plans]), _records(tmp_path / "log")
    assert [record["steps"] for record in records] == steps.tolist()
    last = 0.01 * learning_rate_factor(int(steps[-1]) - 1, round(0.1 * steps[-1]), int(steps[-1]))
    assert records[-1]["learning_rate"] == pytest.approx(last, abs=1e-15)


def test_one_seed_gives_the_same_weights_to_the_last_bit(tmp_path: Path) -> None:
    models = [_model(), _model()]
    for model in models:
        torch.manual_seed(3)
        _fit(model, tmp_path / "log", seed=3)
    assert _equal(models[0].state_dict(), models[1].state_dict())


def test_another_seed_gives_other_weights(tmp_path: Path) -> None:
    models = [_model(), _model()]
    for seed, model in enumerate(models):
        torch.manual_seed(3)  # initial weights, dropout and jitter stay; the order of the stretches is another
        _fit(model, tmp_path / "log", seed=seed)
    assert not _equal(models[0].state_dict(), models[1].state_dict())


class _Still(nn.Module):
    """A matrix, a vector and a scalar that the loss does not depend on: only weight decay can move them."""

    def __init__(self) -> None:
        super().__init__()
        self.matrix = nn.Parameter(torch.ones(2, 2))
        self.vector = nn.Parameter(torch.ones(2))
        self.scalar = nn.Parameter(torch.ones(()))
        self.frozen = nn.Parameter(torch.ones(2, 2), requires_grad=False)
        self.head = nn.Linear(CHANNELS, CLASSES)

    def forward(self, channels: Tensor, valid: Tensor, stride: int = 1) -> Tensor:
        logits: Tensor = self.head(channels[:, 3::stride])
        return logits + 0 * (self.matrix.sum() + self.vector.sum() + self.scalar)


def test_weight_decay_spares_vectors(tmp_path: Path) -> None:
    model = _Still()
    _fit(model, tmp_path / "log", weight_decay=0.5)
    assert (model.matrix < 1).all()
    assert (model.vector == 1).all()
    assert model.scalar == 1
    assert (model.frozen == 1).all()


def test_weight_decay_can_be_switched_off(tmp_path: Path) -> None:
    model = _Still()
    _fit(model, tmp_path / "log", weight_decay=0.0)
    assert (model.matrix == 1).all()


@pytest.mark.parametrize("kind", ["none", "balanced", "sqrt"])
def test_training_learns(tmp_path: Path, kind: str) -> None:
    model, segments = _model(), _segments()
    _fit(model, tmp_path / "log", _Scores(model, *np.linspace(0.1, 0.9, 12)), epochs=12, class_weights=kind)
    found = np.concatenate(segment_logits(model, segments, CLASSES, model.history_rows, CPU)).argmax(1)
    assert (found == np.concatenate([segment.targets for segment in segments])).mean() > 0.9
    losses = [record["loss"] for record in _records(tmp_path / "log")]
    assert losses[-1] < losses[0] / 2


def _interrupting(model: nn.Module, epoch: int) -> tuple[_Scores, Callable[[], float]]:
    scores = _Scores(model, *[0.5] * epoch)

    def score() -> float:
        value = scores()
        if len(scores.weights) == epoch:
            raise KeyboardInterrupt
        return value

    return scores, score


@pytest.mark.parametrize("patience", [10, None])
def test_an_interrupt_leaves_the_best_epoch_so_far(tmp_path: Path, patience: int | None) -> None:
    model = _model()
    scores, score = _interrupting(model, 3)
    outcome = _fit(model, tmp_path / "log", score, patience=patience)
    assert isinstance(outcome.stopped_by, KeyboardInterrupt)
    assert outcome.kept_epoch == 1
    assert _equal(model.state_dict(), scores.weights[0])


def test_an_interrupt_before_the_first_epoch_is_over_goes_on_up(tmp_path: Path) -> None:
    model = _model()
    with pytest.raises(KeyboardInterrupt):
        _fit(model, tmp_path / "log", _interrupting(model, 1)[1])


def _spoiling(model: nn.Module, segments: list[ChannelSegment], epoch: int) -> tuple[_Scores, Callable[[], float]]:
    """Scores that leave data behind, after some epoch, of which no loss is finite."""
    scores = _Scores(model, *[0.5] * 4)

    def score() -> float:
        value = scores()
        if len(scores.weights) == epoch:
            for segment in segments:
                segment.channels[:] = np.inf
        return value

    return scores, score


def test_a_loss_that_is_not_finite_leaves_the_best_epoch_so_far(tmp_path: Path) -> None:
    model, segments = _model(), _segments()
    scores, score = _spoiling(model, segments, 2)
    outcome = _fit(model, tmp_path / "log", score, segments=segments)
    assert isinstance(outcome.stopped_by, TrainingError)
    assert (outcome.kept_epoch, outcome.epochs) == (1, 2)
    assert _equal(model.state_dict(), scores.weights[0])


def test_a_loss_that_is_not_finite_in_the_first_epoch_goes_on_up(tmp_path: Path) -> None:
    segments = _segments()
    segments[0].channels[:] = np.inf
    with pytest.raises(TrainingError):
        _fit(_model(), tmp_path / "log", segments=segments)
