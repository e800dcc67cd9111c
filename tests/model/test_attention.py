"""The look-up against PyTorch's attention, and what positions may and may not reach."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from netanomaly.model.attention import SlidingAttention, lookup
from netanomaly.model.classifier import NetworkAnomalyClassifier

SHAPES = [(1, 1, 1, 2), (2, 3, 7, 4), (3, 4, 33, 8)]  # B, H, L, d
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5}


def _table(shape: tuple[int, ...], dtype: torch.dtype, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    query, key, value = (torch.randn(shape, generator=draw, dtype=dtype, requires_grad=True) for _ in range(3))
    return query, key, value


def _mask(shape: tuple[int, int], share: float) -> Tensor:
    """Some rows that are valid, the newest always."""
    valid = torch.rand(shape, generator=torch.Generator().manual_seed(1)) < share
    valid[:, -1] = True
    return valid


@pytest.mark.parametrize("share", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", SHAPES)
def test_lookup_equals_scaled_dot_product_attention(
    shape: tuple[int, int, int, int], dtype: torch.dtype, share: float
) -> None:
    query, key, value = _table(shape, dtype)
    valid = _mask((shape[0], shape[2]), share)
    found = lookup(query, key, value, valid[:, None])
    expected = scaled_dot_product_attention(query, key, value, attn_mask=valid[:, None, None])
    torch.testing.assert_close(found, expected, rtol=0, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_of_lookup_equal_those_of_scaled_dot_product_attention(
    shape: tuple[int, int, int, int], dtype: torch.dtype, share: float
) -> None:
    table = _table(shape, dtype)
    valid = _mask((shape[0], shape[2]), share)
    found = lookup(*table, valid[:, None])
    expected = scaled_dot_product_attention(*table, attn_mask=valid[:, None, None])
    weight = torch.randn(shape, generator=torch.Generator().manual_seed(2), dtype=dtype)
    for ours, theirs in zip(
        torch.autograd.grad((found * weight).sum(), table),
        torch.autograd.grad((expected * weight).sum(), table),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=TOLERANCE[dtype])


def test_weights_of_a_lookup_sum_to_one() -> None:
    query, key, value = _table((2, 3, 7, 4), torch.float64)
    found = lookup(query, key, torch.ones_like(value), _mask((2, 7), 0.5)[:, None])
    torch.testing.assert_close(found, torch.ones_like(found), rtol=0, atol=1e-12)


def test_rows_that_are_not_valid_have_no_influence() -> None:
    query, key, value = _table((2, 3, 7, 4), torch.float32)
    valid = _mask((2, 7), 0.5)
    hidden = ~valid[:, None, :, None]
    found = lookup(query, key, value, valid[:, None])
    changed = lookup(query, key.masked_fill(hidden, 1e6), value.masked_fill(hidden, 1e6), valid[:, None])
    assert torch.equal(found, changed)


def test_lookup_without_any_valid_row_is_the_mean_of_all() -> None:
    query, key, value = _table((2, 3, 7, 4), torch.float64)
    found = lookup(query, key, value, torch.zeros(2, 1, 7, dtype=torch.bool))
    torch.testing.assert_close(found, value.mean(2, keepdim=True).expand_as(found), rtol=0, atol=1e-12)


def test_gradcheck_of_lookup() -> None:
    valid = torch.tensor([[True, False, True], [False, False, False]])
    assert torch.autograd.gradcheck(lambda *table: lookup(*table, valid[:, None]), _table((2, 2, 3, 2), torch.float64))


def _attention(width: int = 8, n_heads: int = 2, length: int = 5, seed: int = 0) -> SlidingAttention:
    torch.manual_seed(seed)
    return SlidingAttention(width, n_heads, length).double()


def _segment(rows: int, width: int = 8, batch: int = 2) -> tuple[Tensor, Tensor]:
    """Memory, and which of its rows are valid."""
    memory = torch.randn(batch, rows, width, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    return memory, _mask((batch, rows), 0.7)


@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("targets", [1, 3, 70])
def test_newest_equals_the_last_row_of_whole(length: int, targets: int) -> None:
    attention = _attention(length=length)
    memory, valid = _segment(targets + length - 1)
    found = attention.newest(memory[:, length - 1 :], memory, valid)
    for t in range(targets):
        window, mask = memory[:, t : t + length], valid[:, t : t + length]
        expected = attention.whole(window, window, mask)[:, -1]
        torch.testing.assert_close(found[:, t], expected, rtol=0, atol=1e-10)


def test_whole_adds_positions_to_projected_queries_and_keys() -> None:
    attention = _attention(width=6, n_heads=1, length=4)
    memory, valid = _segment(4, width=6)
    found = attention.whole(memory, memory, valid)
    query, key = attention.query(memory) + attention.positions, attention.key(memory) + attention.positions
    answers = scaled_dot_product_attention(query, key, attention.value(memory), attn_mask=valid[:, None])
    torch.testing.assert_close(found, attention.output(answers), rtol=0, atol=1e-12)


def _newest(attention: SlidingAttention, memory: Tensor, valid: Tensor) -> Tensor:
    return attention.newest(memory[:, attention.length - 1 :], memory, valid)


def _whole(attention: SlidingAttention, memory: Tensor, valid: Tensor) -> Tensor:
    window, mask = memory[:, : attention.length], valid[:, : attention.length]
    return attention.whole(window, window, mask)


Way = Callable[[SlidingAttention, Tensor, Tensor], Tensor]
both_ways = pytest.mark.parametrize("way", [_newest, _whole])


@both_ways
def test_positions_never_reach_the_values(way: Way) -> None:
    attention = _attention()
    memory, valid = _segment(9)
    with torch.no_grad():  # all values zero: whatever the weights, the answer is zero unless positions leak into it
        attention.value.weight.zero_()
        attention.value.bias.zero_()
    found = way(attention, memory, valid)
    assert torch.equal(found, attention.output.bias.expand_as(found))


@both_ways
@pytest.mark.parametrize("zeroed", ["query", "key"])
def test_positions_reach_queries_and_keys(way: Way, zeroed: str) -> None:
    attention = _attention()
    memory, valid = _segment(9)
    with torch.no_grad():  # one of the two only has its positions left, and they still tell the rows apart
        getattr(attention, zeroed).weight.zero_()
    before = way(attention, memory, valid)
    attention.positions.mul_(-1.5)
    assert (way(attention, memory, valid) - before).abs().max() > 1e-3


@both_ways
def test_without_projections_and_positions_all_valid_rows_weigh_the_same(way: Way) -> None:
    attention = _attention()
    memory, valid = _segment(5)
    with torch.no_grad():
        for part in (attention.query.weight, attention.query.bias, attention.key.weight, attention.positions):
            part.zero_()
    rows = attention.value(memory) * valid[..., None]
    mean = attention.output(rows.sum(1) / valid.sum(1, keepdim=True))
    found = way(attention, memory, valid)
    torch.testing.assert_close(found, mean[:, None].expand_as(found), rtol=0, atol=1e-12)


def test_a_query_that_is_zero_and_without_position_does_not_see_positions() -> None:
    attention = _attention()
    memory, valid = _segment(9)
    with torch.no_grad():
        attention.query.weight.zero_()
        attention.query.bias.zero_()
    before = attention.newest(memory[:, 4:], memory, valid, positioned=False)
    attention.positions.normal_()
    assert torch.equal(attention.newest(memory[:, 4:], memory, valid, positioned=False), before)


@torch.no_grad()
def _permuted_window(read_out: str, *, positions: bool) -> float:
    """How far the logits of one window move when its rows change places, the newest staying where it is."""
    torch.manual_seed(0)
    model = NetworkAnomalyClassifier(3, 4, window=16, width=16, n_heads=2, stem=1, read_out=read_out)
    if not positions:
        for block in model.blocks:
            block.attention.positions.zero_()
    rows = torch.randn(1, 16, 3)
    order = torch.cat([torch.randperm(15), torch.tensor([15])])
    valid = torch.ones(1, 16, dtype=torch.bool)
    return float((model(rows[:, order], valid) - model(rows, valid)).abs().max())


read_outs = pytest.mark.parametrize("read_out", ["last", "mean", "cls", "attention"])


@read_outs
def test_without_positions_the_order_of_the_window_does_not_matter(read_out: str) -> None:
    assert _permuted_window(read_out, positions=False) <= 1e-5


@read_outs
def test_with_positions_the_order_of_the_window_matters(read_out: str) -> None:
    assert _permuted_window(read_out, positions=True) > 1e-3


def test_a_key_bias_would_do_nothing() -> None:
    attention = _attention()
    memory, valid = _segment(5)
    query = attention._heads(attention.query(memory)) + attention.positions
    key = attention._heads(attention.key(memory)) + attention.positions
    value = attention._heads(attention.value(memory))
    found = lookup(query, key, value, valid[:, None])
    shifted = lookup(query, key + 5, value, valid[:, None])
    assert attention.key.bias is None
    torch.testing.assert_close(shifted, found, rtol=0, atol=1e-12)


def test_gradcheck_of_the_attention_layer() -> None:
    attention = _attention(width=4, n_heads=2, length=3)
    memory, valid = _segment(6, width=4, batch=1)
    layer = _Newest(attention)
    names = [name for name, _ in layer.named_parameters()]

    def run(rows: Tensor, *weights: Tensor) -> Tensor:
        found: Tensor = torch.func.functional_call(layer, dict(zip(names, weights, strict=True)), (rows, valid))
        return found

    assert torch.autograd.gradcheck(run, (memory.requires_grad_(), *attention.parameters()))


class _Newest(torch.nn.Module):
    """`newest` as the forward of a module, which `functional_call` needs."""

    def __init__(self, inner: SlidingAttention) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, memory: Tensor, valid: Tensor) -> Tensor:
        return self.inner.newest(memory[:, self.inner.length - 1 :], memory, valid)
