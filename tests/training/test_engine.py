"""The loops: one pass of training, and logits of whole segments."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from classifiers import classifier
from netanomaly.data.batches import IGNORED, Batch, ChannelSegment, batches, stretches
from netanomaly.model.classifier import NetworkAnomalyClassifier
from netanomaly.training.engine import EpochSums, NonFiniteLoss, segment_logits, train_epoch
from netanomaly.training.losses import weighted_cross_entropy

CHANNELS, CLASSES, STRETCH = 3, 3, 16
WEIGHTS = torch.tensor([0.5, 1.0, 1.5])


def _model(dropout: float = 0.0, **choices: Any) -> NetworkAnomalyClassifier:
    return classifier(channels=CHANNELS, classes=CLASSES, window=5, width=8, stem=2, dropout=dropout, **choices)


def _segment(rows: int, seed: int = 0) -> ChannelSegment:
    """Some rows without data, some without a label; the newest has both."""
    rng = np.random.default_rng(seed)
    channels = rng.standard_normal((rows, CHANNELS)).astype(np.float32)
    valid, targets = rng.random(rows) < 0.9, rng.integers(IGNORED, CLASSES, rows)
    valid[-1], targets[-1] = True, 0
    return ChannelSegment(channels, valid, np.where(valid, targets, IGNORED))


def _batches(model: NetworkAnomalyClassifier, segments: Sequence[ChannelSegment], size: int = 2) -> list[Batch]:
    return list(batches(segments, stretches(segments, STRETCH), STRETCH, model.history_rows, size))


def _train(
    model: nn.Module,
    training: Sequence[Batch],
    *,
    rate: float = 0.1,
    clip: float = math.inf,
    jitter: float = 0.0,
    stride: int = 1,
    seen: list[float] | None = None,
    hide: Callable[[Tensor], Tensor] | None = None,
) -> EpochSums:
    """A pass of plain gradient descent."""
    return train_epoch(
        model,
        training,
        torch.optim.SGD(model.parameters(), lr=123.0),  # replaced by `rate`
        WEIGHTS,
        stride=stride,
        label_smoothing=0.0,
        gradient_clip=clip,
        jitter=jitter,
        hide=hide,
        rate=lambda: rate,
        after_step=[].append if seen is None else seen.append,
    )


def _distance(model: nn.Module, other: nn.Module) -> float:
    pairs = zip(model.parameters(), other.parameters(), strict=True)
    return float(sum((a - b).detach().square().sum() for a, b in pairs)) ** 0.5


def test_a_step_is_one_step_of_gradient_descent_on_the_mean_loss() -> None:
    model, by_hand = _model(), _model()
    (batch,) = _batches(model, [_segment(30)])
    _train(model, [batch], rate=0.1)
    total, weight = weighted_cross_entropy(by_hand(batch.channels, batch.valid), batch.targets, WEIGHTS, 0.0, IGNORED)
    gradients = torch.autograd.grad(total / weight, list(by_hand.parameters()))
    for after, before, gradient in zip(model.parameters(), by_hand.parameters(), gradients, strict=True):
        torch.testing.assert_close(after, before - 0.1 * gradient, rtol=0, atol=1e-6)


def _part_by_part(model: nn.Module, batch: Batch, sizes: list[int]) -> None:
    """A step of gradient descent on a batch given in parts, as to processes that share sums of losses and weights."""
    given = [tensor.split(sizes) for tensor in (batch.channels, batch.valid, batch.targets)]
    total = weight = torch.zeros(())
    for channels, valid, targets in zip(*given, strict=True):
        sums = weighted_cross_entropy(model(channels, valid), targets, WEIGHTS, 0.0, IGNORED)
        total, weight = total + sums[0], weight + sums[1]
    gradients = torch.autograd.grad(total / weight, list(model.parameters()))
    with torch.no_grad():
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            parameter -= 0.1 * gradient


@pytest.mark.parametrize("sizes", [[4, 3], [1, 6], [2, 2, 2, 1]], ids=str)
def test_ten_steps_on_parts_of_a_batch_end_where_those_on_whole_batches_do(sizes: list[int]) -> None:
    model, by_parts = _model(), _model()
    (batch,) = _batches(model, [_segment(STRETCH, seed) for seed in range(7)], size=7)
    for _ in range(10):
        _train(model, [batch], rate=0.1)
        _part_by_part(by_parts, batch, sizes)
    for after, expected in zip(by_parts.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(after, expected, rtol=0, atol=1e-6)


def test_loss_of_the_epoch_is_the_weighted_mean_of_all_rows() -> None:
    model = _model()
    training = _batches(model, [_segment(100), _segment(7, seed=1)])
    found = _train(model, training, rate=0.0)
    sums = [weighted_cross_entropy(model(b.channels, b.valid), b.targets, WEIGHTS, 0.0, IGNORED) for b in training]
    expected = sum(total for total, _ in sums) / sum(weight for _, weight in sums)
    assert found.loss == pytest.approx(expected.item(), abs=1e-6)
    assert found.steps == len(training) > 1


@pytest.mark.parametrize("choices", [{}, {"execution": "reference"}, {"read_out": "mean"}], ids=str)
@pytest.mark.parametrize("stride", [2, 5, STRETCH])
def test_with_a_stride_every_nth_row_of_a_stretch_is_learnt_from(stride: int, choices: dict[str, Any]) -> None:
    model, by_hand = _model(**choices), _model(**choices)
    segment = _segment(2 * STRETCH)
    segment.valid[:], segment.targets[:] = True, np.arange(2 * STRETCH) % CLASSES
    (batch,) = _batches(model, [segment])
    found = _train(model, [batch], rate=0.1, stride=stride)
    logits, targets = by_hand(batch.channels, batch.valid)[:, ::stride], batch.targets[:, ::stride]
    total, weight = weighted_cross_entropy(logits, targets, WEIGHTS, 0.0, IGNORED)
    assert found.loss == pytest.approx((total / weight).item(), abs=1e-6)
    gradients = torch.autograd.grad(total / weight, list(by_hand.parameters()))
    for after, before, gradient in zip(model.parameters(), by_hand.parameters(), gradients, strict=True):
        torch.testing.assert_close(after, before - 0.1 * gradient, rtol=0, atol=1e-6)


def test_a_batch_that_a_stride_leaves_no_row_to_learn_is_left_out() -> None:
    model = _model()
    segments = [_segment(STRETCH, seed) for seed in range(3)]
    for segment in segments:
        segment.targets[0] = 0  # the row that a stride of 16 keeps
        segment.valid[0] = True
    segments[1].targets[0] = IGNORED
    training = _batches(model, segments, size=1)
    seen: list[float] = []
    found = _train(model, training, stride=STRETCH, seen=seen)
    assert [math.isnan(loss) for loss in seen] == [False, True, False]  # told, so that the schedule goes on
    assert found.steps == 2
    assert math.isfinite(found.loss)


def test_an_epoch_without_any_row_to_learn_changes_no_weight() -> None:
    model = _model()
    before = copy.deepcopy(model)
    segment = _segment(STRETCH)
    segment.targets[0] = IGNORED
    found = _train(model, _batches(model, [segment]), stride=STRETCH)
    assert (found.steps, found.loss, found.gradient_norm) == (0, 0.0, 0.0)
    assert _distance(model, before) == 0.0


def test_each_step_is_told_with_its_loss() -> None:
    seen: list[float] = []
    model = _model()
    training = _batches(model, [_segment(100)])
    _train(model, training, seen=seen)
    assert len(seen) == len(training)
    assert all(loss > 0 for loss in seen)


def test_a_step_is_no_longer_than_the_clipped_gradient() -> None:
    model = _model()
    before = copy.deepcopy(model)
    found = _train(model, _batches(model, [_segment(30)]), rate=1.0, clip=0.01)
    assert found.gradient_norm > 0.01  # told as it was before
    assert _distance(model, before) == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize("value", [math.inf, math.nan, 1e38])
def test_a_loss_that_is_not_finite_stops_and_changes_no_weight(value: float) -> None:
    model = _model()
    before = copy.deepcopy(model)
    segment = _segment(30)
    segment.channels[segment.valid] = value
    (batch,) = _batches(model, [segment])
    with pytest.raises(NonFiniteLoss, match=r"loss .*, gradient norm ") as stop:
        _train(model, [batch])
    assert stop.value.batch is batch
    assert _distance(model, before) == 0.0


class _Spy(nn.Module):
    """Keeps what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(CHANNELS, CLASSES)
        self.given: list[Tensor] = []

    def forward(self, channels: Tensor, valid: Tensor, stride: int = 1) -> Tensor:
        self.given.append(channels)
        logits: Tensor = self.head(channels[:, -STRETCH::stride])
        return logits


def test_jitter_scales_and_shifts_each_channel_of_each_stretch_as_a_whole() -> None:
    model, history = _Spy(), 6
    segments = [_segment(STRETCH), _segment(STRETCH, seed=1)]
    (batch,) = batches(segments, stretches(segments, STRETCH), STRETCH, history, 2)
    _train(model, [batch], jitter=0.3)
    seen = set()
    for before, after in zip(batch.channels, model.given[0], strict=True):
        for channel in range(CHANNELS):
            x, y = before[:, channel].double(), after[:, channel].double()
            scale = (y[-1] - y[-2]) / (x[-1] - x[-2])
            shift = y[-1] - scale * x[-1]
            torch.testing.assert_close(y, scale * x + shift, rtol=0, atol=1e-4)
            seen.add((round(scale.item(), 4), round(shift.item(), 4)))
    assert len(seen) == 2 * CHANNELS


def test_without_jitter_channels_stay_as_they_are() -> None:
    model = _Spy()
    (batch,) = batches([_segment(STRETCH)], [(0, 0)], STRETCH, 6, 1)
    _train(model, [batch], jitter=0.0)
    assert torch.equal(model.given[0], batch.channels)


def test_what_is_hidden_is_hidden_before_the_jitter() -> None:
    """As a metric that is missing in the rows is: its channels are jittered like all others."""
    (batch,) = batches([_segment(STRETCH)], [(0, 0)], STRETCH, 6, 1)
    for jitter in (0.0, 0.3):
        model = _Spy()
        _train(model, [batch], jitter=jitter, hide=torch.zeros_like)
        (seen,) = model.given
        assert torch.equal(seen, seen[:, :1].expand_as(seen)) and bool(seen.any()) == (jitter > 0)


def _logits(model: NetworkAnomalyClassifier, segments: Sequence[ChannelSegment]) -> list[NDArray[np.float32]]:
    return segment_logits(model, segments, CLASSES, model.history_rows, torch.device("cpu"))


@pytest.mark.parametrize("rows", [1, 4, 511, 512, 513, 1300])
@torch.no_grad()
def test_logits_of_a_segment_are_those_of_one_pass_over_it(rows: int) -> None:
    model = _model().eval()
    segment = _segment(rows)
    (found,) = _logits(model, [segment])
    front = model.history_rows
    channels = torch.cat([torch.zeros(front, CHANNELS), torch.from_numpy(segment.channels)])[None]
    valid = torch.cat([torch.zeros(front, dtype=torch.bool), torch.from_numpy(segment.valid)])[None]
    expected = model(channels, valid)[0].numpy()
    asked = segment.targets != IGNORED
    np.testing.assert_allclose(found[asked], expected[asked], rtol=0, atol=1e-5)
    assert found.shape == (rows, CLASSES)


def test_logits_of_segments_do_not_depend_on_the_others() -> None:
    model = _model()
    segments = [_segment(rows, seed=rows) for rows in (1, 700, 5, 40, 2, 3000)]
    for segment, found in zip(segments, _logits(model, segments), strict=True):
        asked = segment.targets != IGNORED
        np.testing.assert_allclose(found[asked], _logits(model, [segment])[0][asked], rtol=0, atol=1e-5)


def test_logits_of_steps_that_are_not_asked_for_are_finite() -> None:
    segment = _segment(1500)
    asked = np.zeros(1500, dtype=bool)
    asked[[3, 700]] = True
    some = ChannelSegment(segment.channels, asked, np.where(asked, 0, IGNORED))
    assert np.isfinite(_logits(_model(), [some])[0]).all()


def test_which_steps_are_asked_for_does_not_change_their_logits() -> None:
    model, whole = _model(), _segment(1500)
    asked = (np.random.default_rng(1).random(1500) < 0.01) & whole.valid
    some = ChannelSegment(whole.channels, whole.valid, np.where(asked, 0, IGNORED))
    every = ChannelSegment(whole.channels, whole.valid, np.where(whole.valid, 0, IGNORED))
    np.testing.assert_allclose(_logits(model, [some])[0][asked], _logits(model, [every])[0][asked], rtol=0, atol=1e-5)


def test_scoring_has_no_dropout_and_learning_has() -> None:
    model = _model(dropout=0.5)
    segments = [_segment(40)]
    np.testing.assert_array_equal(_logits(model, segments)[0], _logits(model, segments)[0])
    models = [copy.deepcopy(model), copy.deepcopy(model)]
    for seed, learning in enumerate(models):
        torch.manual_seed(seed)
        _train(learning, _batches(learning, segments))
    assert _distance(*models) > 0
