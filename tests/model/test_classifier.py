"""The whole classifier, with every read-out."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from classifiers import CHANNELS, CLASSES, classifier, segment, stirred
from netanomaly.model import windows
from netanomaly.model.classifier import NetworkAnomalyClassifier, window_history

READ_OUTS = ("last", "mean", "cls", "attention")
read_outs = pytest.mark.parametrize("read_out", READ_OUTS)
SHAPES: list[dict[str, Any]] = [{}, {"depth": 2}, {"memory": "blocks", "depth": 2}]
shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)


def _model(read_out: str, **choices: Any) -> NetworkAnomalyClassifier:
    return classifier(read_out=read_out, **choices).eval()


@pytest.fixture
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> int:
    """Windows that are computed at a time."""
    monkeypatch.setattr(windows, "ROWS_AT_ONCE", 4 * 7)
    return 4


@read_outs
@shapes
@pytest.mark.parametrize("targets", [1, 13])
@torch.no_grad()
def test_segments_give_the_logits_of_each_window_on_its_own(
    read_out: str, shape: dict[str, Any], targets: int, few_at_once: int
) -> None:
    model = _model(read_out, **shape)
    history = model.history_rows
    assert targets == 1 or targets > few_at_once
    channels, valid = segment(2, history + targets)
    found = model(channels, valid)
    assert found.shape == (2, targets, CLASSES)
    for t in range(targets):
        alone = model(channels[:, t : t + history + 1], valid[:, t : t + history + 1])
        torch.testing.assert_close(alone[:, 0], found[:, t], rtol=0, atol=1e-5)


@read_outs
@shapes
@pytest.mark.parametrize("execution", ["auto", "reference"])
@pytest.mark.parametrize("stride", [2, 3, 100])
@torch.no_grad()
def test_a_stride_leaves_rows_out_and_changes_none(
    read_out: str, shape: dict[str, Any], execution: str, stride: int, few_at_once: int
) -> None:
    model = _model(read_out, execution=execution, **shape).double()
    channels, valid = segment(2, model.history_rows + 5 * few_at_once, dtype=torch.float64)
    found = model(channels, valid, stride)
    torch.testing.assert_close(found, model(channels, valid)[:, ::stride], rtol=0, atol=1e-12)


@read_outs
@torch.no_grad()
def test_batch_size_does_not_matter(read_out: str) -> None:
    model = _model(read_out)
    channels, valid = segment(64, model.history_rows + 1)
    whole = model(channels, valid)
    for size in (1, 7):
        parts = zip(channels.split(size), valid.split(size), strict=True)
        torch.testing.assert_close(torch.cat([model(*part) for part in parts]), whole, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("window", "stem", "rows"), [(1, 1, 0), (64, 1, 63), (1, 9, 8), (64, 9, 71)])
def test_history_is_that_of_the_window_and_of_the_convolution_of_its_oldest_row(
    window: int, stem: int, rows: int
) -> None:
    assert window_history(window, stem) == classifier(window=window, stem=stem).history_rows == rows


@read_outs
@shapes
@pytest.mark.parametrize("patch", [1, 7])
@torch.no_grad()
def test_logits_depend_on_exactly_history_rows_and_the_row_itself(
    read_out: str, shape: dict[str, Any], patch: int
) -> None:
    model = _model(read_out, patch=patch, **shape).double()
    rows = model.history_rows + 9
    channels, valid = segment(1, rows, share=1.0, dtype=torch.float64)
    before = model(channels, valid)  # targets are the rows from history_rows on
    for row in range(rows):
        changed = channels.clone()
        changed[:, row] += 3
        moved = (model(changed, valid) - before).abs().amax(-1)[0]  # (T,)
        target = torch.arange(len(moved)) + model.history_rows
        inside = (target - model.history_rows <= row) & (row <= target)
        assert (moved[~inside] <= 1e-12).all()
        assert (moved[inside] > 1e-7).all()


@read_outs
@shapes
@pytest.mark.parametrize("garbage", [float("nan"), float("inf"), 1e6])
@torch.no_grad()
def test_what_stands_in_masked_rows_does_not_matter(read_out: str, shape: dict[str, Any], garbage: float) -> None:
    model = _model(read_out, **shape)
    channels, valid = segment(3, model.history_rows + 20, share=0.5)
    spoilt = model(channels.masked_fill(~valid[..., None], garbage), valid)
    assert torch.equal(spoilt, model(channels, valid))


@read_outs
@shapes
@torch.no_grad()
def test_a_window_with_one_valid_row_is_a_window_of_one_row(read_out: str, shape: dict[str, Any]) -> None:
    long, short = (_model(read_out, window=window, positions="rotary", **shape) for window in (7, 1))
    short.load_state_dict(long.state_dict())
    channels, valid = segment(5, long.history_rows + 1, share=0.0)
    valid[:, -1] = True
    rows = short.history_rows + 1
    expected = short(channels[:, -rows:], valid[:, -rows:])
    torch.testing.assert_close(long(channels, valid), expected, rtol=0, atol=1e-5)


@torch.no_grad()
def test_the_token_asks_without_a_position() -> None:
    model = _model("cls", positions="learned")
    channels, valid = segment(5, model.history_rows + 1, share=1.0)
    valid[:, -1] = False  # nobody looks up the newest row, so that its position could only come with the question
    before = model(channels, valid)
    (table,) = (p for name, p in model.named_parameters() if name.endswith("positions.table"))
    table[-1] += 5
    assert torch.equal(model(channels, valid), before)
    table[0] += 5
    assert not torch.equal(model(channels, valid), before)


@read_outs
@shapes
def test_windows_without_any_valid_row_give_finite_logits_and_gradients(read_out: str, shape: dict[str, Any]) -> None:
    model = _model(read_out, **shape)
    channels, valid = segment(2, model.history_rows + 5, share=0.0)
    logits = model(channels, valid)
    assert logits.isfinite().all()
    logits.square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@read_outs
@shapes
@pytest.mark.parametrize("positions", ["learned", "relative_bias", "relative_key"])
def test_every_parameter_learns(read_out: str, shape: dict[str, Any], positions: str) -> None:
    model = stirred(classifier(read_out=read_out, positions={"kind": positions, **_small(positions)}, **shape))
    channels, valid = segment(8, model.history_rows + 9)
    targets = torch.randint(CLASSES, (8, 9), generator=torch.Generator().manual_seed(1))
    cross_entropy(model(channels, valid).flatten(0, 1), targets.flatten()).backward()
    still = [name for name, p in model.named_parameters() if p.grad is None or p.grad.abs().max() <= 1e-9]
    assert not still


def _small(positions: str) -> dict[str, int]:
    return {"relative_bias": {"buckets": 8, "furthest": 6}, "relative_key": {"reach": 3}}.get(positions, {})


@read_outs
@pytest.mark.parametrize("classes", [2, 4, 9])
@torch.no_grad()
def test_fresh_weights_know_nothing(read_out: str, classes: int) -> None:
    losses = []
    for seed in range(10):  # the loss of guessing is ln K
        model = _model(read_out, window=16, width=64, n_heads=4, stem=9, classes=classes, seed=seed)
        logits = model(*segment(4, model.history_rows + 8, share=1.0, seed=seed))
        losses.append(-logits.log_softmax(-1).mean().item())
    assert sum(losses) / len(losses) == pytest.approx(math.log(classes), rel=0.15)


@read_outs
@pytest.mark.parametrize("seed", range(3))
def test_sixteen_windows_are_learnt_by_heart(read_out: str, seed: int) -> None:
    model = classifier(read_out=read_out, width=32, seed=seed)
    channels, valid = segment(16, model.history_rows + 1, share=0.9, seed=seed)
    targets = torch.arange(16) % CLASSES
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(200):
        logits = model(channels, valid)[:, 0]
        loss = cross_entropy(logits, targets)
        if loss < 0.05 and (logits.argmax(1) == targets).all():
            return
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    pytest.fail(f"loss {loss.item():.3f} after 200 steps")


@read_outs
@pytest.mark.parametrize("choices", [{}, {"memory": "blocks", "execution": "tiled"}], ids=str)
def test_gradcheck(read_out: str, choices: dict[str, Any]) -> None:
    sizes: dict[str, Any] = {
        "window": 3,
        "width": 4,
        "n_heads": 1,
        "stem": 2,
        "channels": 2,
        "classes": 2,
        "positions": "learned",
    }
    model = classifier(read_out=read_out, **sizes, **choices).double()
    names = [name for name, _ in model.named_parameters()]
    channels, _ = segment(1, model.history_rows + 2, width=2, dtype=torch.float64)
    valid = torch.tensor([[True, True, False, True, True]])

    def run(rows: Tensor, *weights: Tensor) -> Tensor:
        logits: Tensor = torch.func.functional_call(model, dict(zip(names, weights, strict=True)), (rows, valid))
        return logits

    assert torch.autograd.gradcheck(run, (channels.requires_grad_(), *model.parameters()))


@read_outs
def test_dropout_is_off_when_scoring(read_out: str) -> None:
    model = _model(read_out, dropout=0.5)
    channels, valid = segment(2, model.history_rows + 5)
    with torch.no_grad():
        assert torch.equal(model(channels, valid), model(channels, valid))
        model.train()
        assert not torch.equal(model(channels, valid), model(channels, valid))


@pytest.mark.parametrize("read_out", ["mean", "attention"])
def test_computing_maps_again_draws_the_same_dropout(read_out: str, few_at_once: int) -> None:
    model = classifier(read_out=read_out, dropout=0.5)
    channels, valid = segment(1, model.history_rows + 2 * few_at_once)
    gradients = []
    for _ in range(2):
        torch.manual_seed(7)
        gradients.append(torch.autograd.grad(model(channels, valid).square().sum(), list(model.parameters())))
    torch.manual_seed(7)
    logits = model(channels, valid)
    torch.randn(100)  # moves the generator on between the two passes
    gradients.append(torch.autograd.grad(logits.square().sum(), list(model.parameters())))
    for first, second, third in zip(*gradients, strict=True):
        assert torch.equal(first, second)
        assert torch.equal(first, third)


@torch.no_grad()
def test_the_newest_row_asks_so_that_the_last_read_out_tells_it_from_its_window() -> None:
    model = _model("last", stem=1, positions="none")
    channels, valid = segment(1, 7, share=1.0)
    swapped = channels[:, [0, 1, 2, 6, 4, 5, 3]]
    assert (model(swapped, valid) - model(channels, valid)).abs().max() > 1e-3


def test_fixed_tables_are_not_saved_with_the_weights() -> None:
    for positions in ("sinusoidal", "sine", "binary", "linear_unit", {"add_to": "input"}):
        model = classifier(positions=positions, depth=2)
        assert not [name for name in model.state_dict() if "table" in name or "position" in name]


def test_every_head_has_the_whole_table_of_its_width() -> None:
    model: Any = _model("last", width=16, n_heads=4, positions={"base": 50.0})
    assert model.sequence_model.blocks[0].attention.positions.vectors().shape == (7, 4)


@pytest.mark.parametrize("row_layer", [True, False])
def test_channels_are_those_of_the_encoder(row_layer: bool) -> None:
    encoder = classifier(row_layer=row_layer).encoder
    assert (encoder.row_layer is not None) == row_layer
    first = encoder.convolution.in_channels if encoder.row_layer is None else encoder.row_layer.in_features
    assert first == CHANNELS
