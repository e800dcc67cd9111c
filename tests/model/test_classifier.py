"""The whole classifier, with every read-out."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from netanomaly.model.classifier import ROWS_AT_ONCE, NetworkAnomalyClassifier, ReadOut

CHANNELS, CLASSES = 3, 4
READ_OUTS: tuple[ReadOut, ...] = ("last", "mean", "cls", "attention")
read_outs = pytest.mark.parametrize("read_out", READ_OUTS)
depths = pytest.mark.parametrize("depth", [1, 2])


def _model(read_out: ReadOut, seed: int = 0, **changes: object) -> NetworkAnomalyClassifier:
    torch.manual_seed(seed)
    shape = {"window": 7, "width": 16, "n_heads": 2, "stem": 3, **changes}
    return NetworkAnomalyClassifier(CHANNELS, CLASSES, read_out=read_out, **shape).eval()


def _rows(batch: int, rows: int, share: float = 0.8, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Channels, and which rows are valid."""
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(batch, rows, CHANNELS, generator=draw), torch.rand(batch, rows, generator=draw) < share


@read_outs
@depths
@pytest.mark.parametrize("targets", [1, 13, 2 * ROWS_AT_ONCE + 5])
@torch.no_grad()
def test_segments_give_the_logits_of_each_window_on_its_own(read_out: ReadOut, depth: int, targets: int) -> None:
    model = _model(read_out, depth=depth)
    history = model.history_rows
    channels, valid = _rows(2, history + targets)
    found = model(channels, valid)
    assert found.shape == (2, targets, CLASSES)
    for t in range(targets):
        alone = model(channels[:, t : t + history + 1], valid[:, t : t + history + 1])
        torch.testing.assert_close(alone[:, 0], found[:, t], rtol=0, atol=1e-5)


@read_outs
@torch.no_grad()
def test_batch_size_does_not_matter(read_out: ReadOut) -> None:
    model = _model(read_out)
    channels, valid = _rows(64, model.history_rows + 1)
    whole = model(channels, valid)
    for size in (1, 7):
        parts = zip(channels.split(size), valid.split(size), strict=True)
        torch.testing.assert_close(torch.cat([model(*part) for part in parts]), whole, rtol=0, atol=1e-6)


@read_outs
@depths
@torch.no_grad()
def test_logits_depend_on_exactly_history_rows_and_the_row_itself(read_out: ReadOut, depth: int) -> None:
    model = _model(read_out, depth=depth)
    rows = model.history_rows + 9
    channels, valid = _rows(1, rows, share=1.0)
    before = model(channels, valid)  # targets are the rows from history_rows on
    for row in range(rows):
        changed = channels.clone()
        changed[:, row] += 3
        moved = (model(changed, valid) - before).abs().amax(-1)[0]  # (T,)
        target = torch.arange(len(moved)) + model.history_rows
        inside = (target - model.history_rows <= row) & (row <= target)
        assert (moved[~inside] <= 1e-6).all()
        assert (moved[inside] > 1e-6).all()


@read_outs
@depths
@pytest.mark.parametrize("garbage", [float("nan"), float("inf"), 1e6])
@torch.no_grad()
def test_what_stands_in_masked_rows_does_not_matter(read_out: ReadOut, depth: int, garbage: float) -> None:
    model = _model(read_out, depth=depth)
    channels, valid = _rows(3, model.history_rows + 20, share=0.5)
    spoilt = model(channels.masked_fill(~valid[..., None], garbage), valid)
    assert torch.equal(spoilt, model(channels, valid))


@read_outs
@depths
@torch.no_grad()
def test_a_window_with_one_valid_row_is_a_window_of_one_row(read_out: ReadOut, depth: int) -> None:
    long, short = _model(read_out, depth=depth), _model(read_out, depth=depth, window=1)
    short.load_state_dict(long.state_dict())
    channels, valid = _rows(5, long.history_rows + 1, share=0.0)
    valid[:, -1] = True
    rows = short.history_rows + 1
    expected = short(channels[:, -rows:], valid[:, -rows:])
    torch.testing.assert_close(long(channels, valid), expected, rtol=0, atol=1e-5)


@torch.no_grad()
def test_the_token_asks_without_a_position() -> None:
    model = _model("cls")
    channels, valid = _rows(5, model.history_rows + 1, share=1.0)
    valid[:, -1] = False  # nobody looks up the newest row, so that its position could only come with the question
    before = model(channels, valid)
    model.blocks[0].attention.positions[-1] += 5
    assert torch.equal(model(channels, valid), before)


@read_outs
@torch.no_grad()
def test_windows_without_any_valid_row_give_finite_logits(read_out: ReadOut) -> None:
    model = _model(read_out)
    channels, valid = _rows(2, model.history_rows + 5, share=0.0)
    assert model(channels, valid).isfinite().all()


@read_outs
def test_windows_without_any_valid_row_give_finite_gradients(read_out: ReadOut) -> None:
    model = _model(read_out)
    channels, valid = _rows(2, model.history_rows + 5, share=0.0)
    model(channels, valid).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@read_outs
@depths
def test_every_parameter_learns(read_out: ReadOut, depth: int) -> None:
    model = _model(read_out, depth=depth).train()
    channels, valid = _rows(4, model.history_rows + 9)
    targets = torch.randint(CLASSES, (4, 9), generator=torch.Generator().manual_seed(1))
    cross_entropy(model(channels, valid).flatten(0, 1), targets.flatten()).backward()
    still = [name for name, p in model.named_parameters() if p.grad is None or p.grad.abs().max() <= 1e-9]
    assert not still


@read_outs
@pytest.mark.parametrize("classes", [2, 4, 9])
@torch.no_grad()
def test_fresh_weights_know_nothing(read_out: ReadOut, classes: int) -> None:
    losses = []
    for seed in range(10):  # the loss of guessing is ln K
        torch.manual_seed(seed)
        model = NetworkAnomalyClassifier(CHANNELS, classes, window=16, read_out=read_out).eval()
        logits = model(*_rows(4, model.history_rows + 8, share=1.0, seed=seed))
        losses.append(-logits.log_softmax(-1).mean().item())
    assert sum(losses) / len(losses) == pytest.approx(math.log(classes), rel=0.15)


@read_outs
@pytest.mark.parametrize("seed", range(3))
def test_sixteen_windows_are_learnt_by_heart(read_out: ReadOut, seed: int) -> None:
    model = _model(read_out, seed=seed, width=32).train()
    channels, valid = _rows(16, model.history_rows + 1, share=0.9, seed=seed)
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
def test_gradcheck(read_out: ReadOut) -> None:
    torch.manual_seed(0)
    model = NetworkAnomalyClassifier(2, 2, window=3, width=4, n_heads=1, stem=2, read_out=read_out).double()
    names = [name for name, _ in model.named_parameters()]
    channels = torch.randn(1, model.history_rows + 2, 2, dtype=torch.float64, requires_grad=True)
    valid = torch.tensor([[True, True, False, True, True]])

    def run(rows: Tensor, *weights: Tensor) -> Tensor:
        logits: Tensor = torch.func.functional_call(model, dict(zip(names, weights, strict=True)), (rows, valid))
        return logits

    assert torch.autograd.gradcheck(run, (channels, *model.parameters()))


@read_outs
def test_dropout_is_off_when_scoring(read_out: ReadOut) -> None:
    model = _model(read_out, dropout=0.5)
    channels, valid = _rows(2, model.history_rows + 5)
    with torch.no_grad():
        assert torch.equal(model(channels, valid), model(channels, valid))
        model.train()
        assert not torch.equal(model(channels, valid), model(channels, valid))


@pytest.mark.parametrize("read_out", ["mean", "attention"])
def test_computing_maps_again_draws_the_same_dropout(read_out: ReadOut) -> None:
    model = _model(read_out, dropout=0.5).train()
    channels, valid = _rows(1, model.history_rows + 2 * ROWS_AT_ONCE)
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
    model = _model("last", stem=1)
    channels, valid = _rows(1, 7, share=1.0)
    swapped = channels[:, [0, 1, 2, 6, 4, 5, 3]]
    assert (model(swapped, valid) - model(channels, valid)).abs().max() > 1e-3
