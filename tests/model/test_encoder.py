"""The embedding of a row: its own channels and those of the few rows before it, nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn.functional import gelu

from netanomaly.model.encoder import MetricEncoder

ROWS = 20


def _encoder(kernel: int, row_layer: bool, dropout: float = 0.0) -> MetricEncoder:
    torch.manual_seed(0)
    return MetricEncoder(3, 8, kernel, row_layer=row_layer, dropout=dropout)


def _channels(seed: int = 0) -> Tensor:
    return torch.randn(2, ROWS, 3, generator=torch.Generator().manual_seed(seed))


EVERY_ROW = torch.ones(2, ROWS, dtype=torch.bool)
rows_alone = pytest.mark.parametrize("row_layer", [False, True], ids=["channels", "row layer"])


def kernels(test: Callable[..., None]) -> Callable[..., None]:
    """Every kernel, with a layer for each row before it and without."""
    return pytest.mark.parametrize("kernel", [1, 2, 5])(rows_alone(test))


@kernels
def test_a_row_in_gives_a_row_out_after_the_first_ones(kernel: int, row_layer: bool) -> None:
    assert _encoder(kernel, row_layer)(_channels(), EVERY_ROW).shape == (2, ROWS - kernel + 1, 8)


@kernels
@pytest.mark.parametrize("garbage", [float("nan"), float("inf"), 1e6])
@torch.no_grad()
def test_what_stands_in_masked_rows_does_not_matter(kernel: int, row_layer: bool, garbage: float) -> None:
    valid = torch.rand(2, ROWS, generator=torch.Generator().manual_seed(1)) < 0.6
    channels = _channels()
    encoder = _encoder(kernel, row_layer)
    spoilt = channels.masked_fill(~valid[..., None], garbage)
    assert torch.equal(encoder(spoilt, valid), encoder(channels, valid))


@kernels
def test_garbage_in_masked_rows_reaches_no_gradient(kernel: int, row_layer: bool) -> None:
    valid = torch.rand(2, ROWS, generator=torch.Generator().manual_seed(1)) < 0.6
    encoder = _encoder(kernel, row_layer)
    encoder(_channels().masked_fill(~valid[..., None], float("nan")), valid).square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in encoder.parameters())


@kernels
@torch.no_grad()
def test_later_rows_change_nothing(kernel: int, row_layer: bool) -> None:
    encoder, changed = _encoder(kernel, row_layer), _channels()
    changed[:, 12:] = _channels(seed=1)[:, 12:]
    before, after = encoder(_channels(), EVERY_ROW), encoder(changed, EVERY_ROW)
    first = 12 - kernel + 1  # the embedding of row 12
    assert torch.equal(after[:, :first], before[:, :first])
    assert not torch.equal(after[:, first], before[:, first])


@kernels
@torch.no_grad()
def test_an_embedding_depends_on_exactly_kernel_rows(kernel: int, row_layer: bool) -> None:
    encoder = _encoder(kernel, row_layer)
    before = encoder(_channels(), EVERY_ROW)[:, -1]
    for row in range(ROWS):
        changed = _channels()
        changed[:, row] += 1
        moved = not torch.equal(encoder(changed, EVERY_ROW)[:, -1], before)
        assert moved == (row >= ROWS - kernel)


@kernels
@torch.no_grad()
def test_an_embedding_does_not_depend_on_where_the_row_stands(kernel: int, row_layer: bool) -> None:
    encoder = _encoder(kernel, row_layer)
    whole = encoder(_channels(), EVERY_ROW)
    part = encoder(_channels()[:, 7:], EVERY_ROW[:, 7:])
    torch.testing.assert_close(part, whole[:, 7:], rtol=0, atol=1e-6)


@kernels
@torch.no_grad()
def test_an_embedding_follows_its_formula(kernel: int, row_layer: bool) -> None:
    encoder = _encoder(kernel, row_layer)
    rows = _channels()
    if encoder.row_layer is not None:
        rows = gelu(rows @ encoder.row_layer.weight.T + encoder.row_layer.bias)
    taps = encoder.convolution.weight.unbind(-1)  # (D, C) of each row joined, the newest last
    joined = sum(rows[:, i : ROWS - kernel + 1 + i] @ tap.T for i, tap in enumerate(taps))
    assert encoder.convolution.bias is not None
    wanted = gelu(joined + encoder.convolution.bias)
    torch.testing.assert_close(encoder(_channels(), EVERY_ROW), wanted, rtol=0, atol=1e-6)


@torch.no_grad()
def test_dropout_is_of_what_the_row_layer_gives_and_of_training_alone() -> None:
    with_dropout, without = _encoder(2, True, 0.5), _encoder(2, True)
    assert not torch.equal(with_dropout(_channels(), EVERY_ROW), without(_channels(), EVERY_ROW))
    assert torch.equal(with_dropout.eval()(_channels(), EVERY_ROW), without(_channels(), EVERY_ROW))
    alone = _encoder(2, False, 0.5)
    assert torch.equal(alone(_channels(), EVERY_ROW), _encoder(2, False)(_channels(), EVERY_ROW))
