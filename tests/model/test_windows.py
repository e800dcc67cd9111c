"""Windows one by one, and rows pooled into tokens."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from netanomaly.model import windows
from netanomaly.model.windows import over_windows, pool


def _segment(rows: int, batch: int = 2, share: float = 0.7) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    memory = torch.randn(batch, rows, 3, generator=draw, dtype=torch.float64)
    return memory, torch.rand(batch, rows, generator=draw) < share


def _read(rows: Tensor, valid: Tensor) -> Tensor:
    """Depends on every row, its place and whether it is valid."""
    place = torch.arange(1, rows.shape[1] + 1, dtype=rows.dtype)
    return (rows * valid[..., None] * place[:, None]).sum(1).sin()


@pytest.mark.parametrize("stride", [1, 2, 3, 7, 100])
@pytest.mark.parametrize(("targets", "length"), [(1, 1), (1, 5), (13, 5), (7, 1)])
@pytest.mark.parametrize("at_once", [1, 10, 2048])
def test_every_nth_window_is_read_on_its_own(
    targets: int, length: int, stride: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "ROWS_AT_ONCE", at_once)  # a window alone, two at a time, all together
    memory, valid = _segment(targets + length - 1)
    found = over_windows(_read, memory, valid, length, stride)
    assert found.shape == (2, math.ceil(targets / stride), 3)
    for number, t in enumerate(range(0, targets, stride)):
        expected = _read(memory[:, t : t + length], valid[:, t : t + length])
        torch.testing.assert_close(found[:, number], expected, rtol=0, atol=1e-12)


def test_few_windows_are_computed_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "ROWS_AT_ONCE", 40)
    seen = []

    def read(rows: Tensor, valid: Tensor) -> Tensor:
        seen.append(rows.shape)
        return rows[:, -1]

    over_windows(read, *_segment(14), 5)  # ten windows
    assert seen == [(8, 5, 3), (8, 5, 3), (4, 5, 3)]  # four of each of the two segments at a time


def test_computing_again_gives_the_same_gradients_and_dropout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "ROWS_AT_ONCE", 20)
    torch.manual_seed(0)
    layer = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)).double()
    memory, valid = _segment(9)
    memory.requires_grad_()
    leaves = [memory, *layer.parameters()]

    def gradients(again: bool) -> tuple[Tensor, tuple[Tensor, ...]]:
        torch.manual_seed(7)
        if again:
            found = over_windows(lambda rows, held: _read(layer(rows), held), memory, valid, 5)
        else:
            parts = [(memory[:, t : t + 5], valid[:, t : t + 5]) for t in range(5)]
            pairs = [parts[:2], parts[2:4], parts[4:]]  # as many windows at a time, so that dropout draws alike
            found = torch.cat(
                [
                    _read(
                        layer(torch.stack([m for m, _ in some], 1).flatten(0, 1)),
                        torch.stack([v for _, v in some], 1).flatten(0, 1),
                    ).unflatten(0, (2, -1))
                    for some in pairs
                ],
                dim=1,
            )
        torch.randn(100)  # moves the generator on between the two passes
        return found, torch.autograd.grad(found.square().sum(), leaves)

    (found, ours), (expected, theirs) = gradients(again=True), gradients(again=False)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("recompute", [True, False])
def test_what_is_read_is_computed_again_unless_it_is_kept(recompute: bool) -> None:
    calls = []

    def read(rows: Tensor, valid: Tensor) -> Tensor:
        calls.append(len(rows))
        return rows.square().sum(1)

    memory, valid = _segment(9)
    over_windows(read, memory.requires_grad_(), valid, 5, recompute=recompute).sum().backward()
    assert len(calls) == 1 + recompute


@pytest.mark.parametrize("patch", [1, 2, 3, 6])
def test_a_token_is_the_mean_of_its_valid_rows(patch: int) -> None:
    rows, valid = _segment(6, share=0.5)
    valid[0] = False
    found, held = pool(rows, valid, patch)
    assert found.shape == (2, 6 // patch, 3)
    for n in range(2):
        for token in range(6 // patch):
            some = slice(token * patch, (token + 1) * patch)
            measured = rows[n, some][valid[n, some]]
            assert held[n, token] == (len(measured) > 0)
            if len(measured) or patch > 1:
                expected = measured.mean(0) if len(measured) else torch.zeros(3, dtype=torch.float64)
                torch.testing.assert_close(found[n, token], expected, rtol=0, atol=1e-12)


def test_pooling_ignores_what_stands_in_rows_that_are_not_valid() -> None:
    rows, valid = _segment(6, share=0.5)
    spoilt = rows.masked_fill(~valid[..., None], float("nan"))
    assert torch.equal(pool(spoilt, valid, 3)[0], pool(rows, valid, 3)[0])


def test_a_training_step_keeps_rows_not_their_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[int, int] = {}  # the storage of each tensor that is kept to compute a part again, and its bytes

    def noted(*given: object, **how: object) -> object:
        for part in given:
            if isinstance(part, Tensor):
                kept[part.untyped_storage().data_ptr()] = part.untyped_storage().nbytes()
        return checkpoint(*given, **how)

    monkeypatch.setattr(windows, "checkpoint", noted)
    memory = torch.randn(1, 327, 16, requires_grad=True)
    valid = torch.ones(1, 327, dtype=torch.bool)
    over_windows(lambda rows, _: rows.mean(1), memory, valid, 128)
    assert sum(kept.values()) == memory.untyped_storage().nbytes() + valid.untyped_storage().nbytes()
