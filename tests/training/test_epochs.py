"""How many epochs there are, which of them is kept, and which member they are of."""

from __future__ import annotations

import json
import logging
import tempfile
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from recipes import recipe
from torch import Tensor, nn

from netanomaly.data.batches import IGNORED, ChannelSegment, stretches
from netanomaly.errors import TrainingError
from netanomaly.training.trainer import Outcome, fit

CHANNELS, CLASSES, HISTORY = 2, 2, 3
SEED = 5


class _Line(nn.Module):
    """The smallest model there is; with the weights that it had when each score was asked for."""

    def __init__(self, scores: Sequence[float]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.head = nn.Linear(CHANNELS, CLASSES)
        self.scores, self.seen = scores, list[Tensor]()

    def forward(self, channels: Tensor, valid: Tensor, stride: int = 1) -> Tensor:
        logits: Tensor = self.head(channels[:, HISTORY::stride])
        return logits

    def score(self) -> float:
        self.seen.append(self.head.weight.detach().clone())
        return self.scores[(len(self.seen) - 1) % len(self.scores)]

    def holds(self, epoch: int) -> bool:
        """Whether the weights are those that the epoch ended with."""
        return torch.equal(self.head.weight, self.seen[epoch - 1])


def _segments(rows: int = 40) -> list[ChannelSegment]:
    """Two segments; one row in five has no target."""
    result = []
    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        targets = np.where(np.arange(rows) % 5 == 0, IGNORED, rng.integers(CLASSES, size=rows))
        result.append(
            ChannelSegment(rng.standard_normal((rows, CHANNELS)).astype(np.float32), np.full(rows, True), targets)
        )
    return result


def _fit(
    model: _Line,
    log: Path,
    *,
    score: Callable[[], float] | None = None,
    segments: list[ChannelSegment] | None = None,
    member: int | None = None,
    members: int | None = None,
    **changes: Any,
) -> Outcome:
    which = {key: value for key, value in (("member", member), ("members", members)) if value is not None}
    return fit(
        model,
        _segments() if segments is None else segments,
        model.score if score is None else score,
        torch.tensor([10.0, 10.0], dtype=torch.float64),
        HISTORY,
        recipe(**{"weight_decay": 0.0, "jitter": 0.0, "patience": None, **changes}),
        seed=SEED,
        device=torch.device("cpu"),
        log_path=log,
        **which,
    )


def _records(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def _steps(segments: list[ChannelSegment], stretch: int, size: int, epoch: int) -> int:
    """Batches of an epoch."""
    pieces = stretches(segments, stretch, np.random.default_rng([SEED, epoch]))
    return -(-len(pieces) // size)


@effort(deadline=None, max_examples=25)
@given(
    rows=st.integers(6, 60),
    stretch=st.sampled_from([4, 16, 128]),
    size=st.integers(1, 5),
    epochs=st.integers(1, 6),
    least=st.integers(0, 40),
)
def test_epochs_go_on_until_there_are_enough_steps(rows: int, stretch: int, size: int, epochs: int, least: int) -> None:
    """As many as the recipe says or, if they have too few steps, as few as have enough; whole ones always."""
    segments = _segments(rows)
    wanted, steps = 0, list[int]()
    for epoch in count(1):
        steps.append(_steps(segments, stretch, size, epoch))
        if epoch >= epochs and sum(steps) >= least:
            wanted = epoch
            break
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "log"
        outcome = _fit(
            _Line([0.5]), log, segments=segments, stretch=stretch, batch_size=size, epochs=epochs, min_steps=least
        )
        records = _records(log)
    assert outcome.epochs == outcome.kept_epoch == wanted
    assert [record["steps"] for record in records] == np.cumsum(steps).tolist()


def test_the_learning_rate_comes_down_over_the_added_epochs_too(tmp_path: Path) -> None:
    _fit(_Line([0.5]), tmp_path / "log", epochs=1, min_steps=50)
    rates = [record["learning_rate"] for record in _records(tmp_path / "log")]
    assert len(rates) > 10
    assert rates[1:] == sorted(rates[1:], reverse=True)
    assert rates[-1] < 0.01 / 50 < max(rates)


@pytest.mark.parametrize("scores", [(0.9, 0.1, 0.2, 0.3), (0.1, 0.2, 0.3, 0.9), (0.0, 0.0, 0.0, 0.0)])
def test_without_patience_the_last_epoch_is_kept(tmp_path: Path, scores: tuple[float, ...]) -> None:
    model = _Line(scores)
    outcome = _fit(model, tmp_path / "log")
    assert (outcome.kept_epoch, outcome.epochs, outcome.validation_macro_f1) == (4, 4, scores[-1])
    assert outcome.stopped_by is None
    assert model.holds(4)
    assert not any(model.holds(epoch) for epoch in (1, 2, 3))


def test_without_patience_no_score_ends_training(tmp_path: Path) -> None:
    assert _fit(_Line([0.9, 0.1]), tmp_path / "log", epochs=40).epochs == 40


def _by_hand(scores: Sequence[float], patience: int) -> tuple[int, int]:
    """Epochs run and the epoch kept, for scores of all epochs there might be."""
    best = 0
    for epoch in range(1, len(scores) + 1):
        if not best or scores[epoch - 1] > scores[best - 1]:
            best = epoch
        if epoch - best >= patience:
            return epoch, best
    return len(scores), best


@effort(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), min_size=1, max_size=9), st.integers(1, 4))
def test_with_patience_the_best_epoch_is_kept_and_the_wait_for_a_better_one_ends(
    scores: list[float], patience: int
) -> None:
    model = _Line(scores)
    with tempfile.TemporaryDirectory() as directory:
        outcome = _fit(model, Path(directory) / "log", epochs=len(scores), patience=patience)
    epochs, best = _by_hand(scores, patience)
    assert (outcome.epochs, outcome.kept_epoch) == (epochs, best)
    assert outcome.validation_macro_f1 == scores[best - 1]
    assert model.holds(best)


def test_patience_ends_training_before_the_least_steps_too(tmp_path: Path) -> None:
    outcome = _fit(_Line([0.9] + [0.1] * 99), tmp_path / "log", epochs=2, min_steps=100, patience=3)
    assert (outcome.epochs, outcome.kept_epoch) == (4, 1)


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), TrainingError("nan")])
def test_stopped_early_the_best_epoch_is_kept_without_patience_too(
    tmp_path: Path, stop: KeyboardInterrupt | TrainingError
) -> None:
    model = _Line([0.2, 0.8, 0.3, 0.9])

    def score() -> float:
        value = model.score()
        if len(model.seen) == 4:
            raise stop
        return value

    outcome = _fit(model, tmp_path / "log", score=score)
    assert outcome.stopped_by is stop
    assert (outcome.kept_epoch, outcome.validation_macro_f1, outcome.epochs) == (2, 0.8, 3)
    assert model.holds(2)
    assert len(_records(tmp_path / "log")) == 3  # of whole epochs


def test_the_log_says_which_member_an_epoch_is_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = tmp_path / "log"
    with caplog.at_level(logging.INFO):
        for member in (1, 2):
            _fit(_Line([0.25]), log, epochs=2, member=member, members=3)
    assert [(record["member"], record["epoch"]) for record in _records(log)] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    told = [message for message in caplog.messages if "epoch" in message]
    assert [message.split(":")[0] for message in told] == [
        f"training {member} of 3, epoch {epoch}" for member in (1, 2) for epoch in (1, 2)
    ]
    assert all("validation macro-F1 0.250" in message for message in told)


def test_one_member_needs_no_number_in_what_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        _fit(_Line([0.25]), tmp_path / "log", epochs=1)
    assert caplog.messages[-1].startswith("training, epoch 1: loss ")
    assert [record["member"] for record in _records(tmp_path / "log")] == [1]
