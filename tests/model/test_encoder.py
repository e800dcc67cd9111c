"""The embedding of a row: its own channels and those of the few rows before it, nothing else."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from netanomaly.model.encoder import MetricEncoder

ROWS = 20


def _encoder(kernel: int) -> MetricEncoder:
    torch.manual_seed(0)
    return MetricEncoder(3, 8, kernel)


def _channels(seed: int = 0) -> Tensor:
    return torch.randn(2, ROWS, 3, generator=torch.Generator().manual_seed(seed))


EVERY_ROW = torch.ones(2, ROWS, dtype=torch.bool)
kernels = pytest.mark.parametrize("kernel", [1, 2, 5])


@kernels
def test_a_row_in_gives_a_row_out_after_the_first_ones(kernel: int) -> None:
    assert _encoder(kernel)(_channels(), EVERY_ROW).shape == (2, ROWS - kernel + 1, 8)


@kernels
@pytest.mark.parametrize("garbage", [float("nan"), float("inf"), 1e6])
@torch.no_grad()
def test_what_stands_in_masked_rows_does_not_matter(kernel: int, garbage: float) -> None:
    valid = torch.rand(2, ROWS, generator=torch.Generator().manual_seed(1)) < 0.6
    channels = _channels()
    encoder = _encoder(kernel)
    spoilt = channels.masked_fill(~valid[..., None], garbage)
    assert torch.equal(encoder(spoilt, valid), encoder(channels, valid))


@kernels
def test_garbage_in_masked_rows_reaches_no_gradient(kernel: int) -> None:
    valid = torch.rand(2, ROWS, generator=torch.Generator().manual_seed(1)) < 0.6
    encoder = _encoder(kernel)
    encoder(_channels().masked_fill(~valid[..., None], float("nan")), valid).square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in encoder.parameters())


@kernels
@torch.no_grad()
def test_later_rows_change_nothing(kernel: int) -> None:
    encoder, changed = _encoder(kernel), _channels()
    changed[:, 12:] = _channels(seed=1)[:, 12:]
    before, after = encoder(_channels(), EVERY_ROW), encoder(changed, EVERY_ROW)
    first = 12 - kernel + 1  # the embedding of row 12
    assert torch.equal(after[:, :first], before[:, :first])
    assert not torch.equal(after[:, first], before[:, first])


@kernels
@torch.no_grad()
def test_an_embedding_depends_on_exactly_kernel_rows(kernel: int) -> None:
    encoder = _encoder(kernel)
    before = encoder(_channels(), EVERY_ROW)[:, -1]
    for row in range(ROWS):
        changed = _channels()
        changed[:, row] += 1
        moved = not torch.equal(encoder(changed, EVERY_ROW)[:, -1], before)
        assert moved == (row >= ROWS - kernel)


@kernels
@torch.no_grad()
def test_an_embedding_does_not_depend_on_where_the_row_stands(kernel: int) -> None:
    encoder = _encoder(kernel)
    whole = encoder(_channels(), EVERY_ROW)
    part = encoder(_channels()[:, 7:], EVERY_ROW[:, 7:])
    torch.testing.assert_close(part, whole[:, 7:], rtol=0, atol=1e-6)
