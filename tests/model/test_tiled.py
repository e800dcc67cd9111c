"""The look-up tile by tile: the answers of the look-up written out, without its map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from lookups import TOLERANCE, Table, assert_same_look_up, tables
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakTensorKeyDictionary

from netanomaly.model.choices import Normalise
from netanomaly.model.lookup import Relative, lookup
from netanomaly.model.masks import EVERYTHING, MaskRule
from netanomaly.model.tiled import tiled_lookup


def _in_tiles_of(size: int) -> Callable[..., Tensor]:
    return lambda *args, **kwargs: tiled_lookup(*args, **kwargs, tile=size)


def _table(length: int = 7, share: float = 1.0, **changes: Any) -> Table:
    draw = torch.Generator().manual_seed(0)
    queries, keys, values = (
        torch.randn(1, 1, length, 4, generator=draw, dtype=torch.float64, requires_grad=True) for _ in range(3)
    )
    return replace(Table(queries, keys, values, torch.rand(1, length, generator=draw) < share), **changes)


@pytest.mark.parametrize("dtype", TOLERANCE)
@settings(max_examples=120, deadline=None)
@given(table=tables(), size=st.sampled_from([1, 2, 3, 7, 512]))
def test_values_and_gradients_are_those_of_the_look_up(dtype: torch.dtype, table: Table, size: int) -> None:
    assert_same_look_up(_in_tiles_of(size), lookup, table.as_type(dtype))


@pytest.mark.parametrize("size", [1, 3, 7, 100])
@pytest.mark.parametrize("normalise", ["softmax", "none"])
@pytest.mark.parametrize("mask", [EVERYTHING, MaskRule(causal=True, prefix=5), MaskRule(local=4)], ids=repr)
def test_the_size_of_the_tiles_does_not_matter(size: int, normalise: str, mask: MaskRule) -> None:
    bias = 0.1 * torch.randn(1, 65, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    table = _table(33, 0.7, normalise=normalise, mask=mask, relative=Relative(bias.requires_grad_()))
    assert_same_look_up(_in_tiles_of(size), lookup, table)


@pytest.mark.parametrize("size", [1e2, 1e4])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_large_scores_do_not_overflow(dtype: torch.dtype, size: float) -> None:
    table = _table(20, 0.7).as_type(dtype)
    table = replace(table, queries=table.queries * size)
    found = table.found(_in_tiles_of(3))
    assert found.isfinite().all()
    torch.testing.assert_close(found, table.found(lookup), rtol=1e-4, atol=1e-4)


def test_rows_that_are_not_valid_have_no_influence() -> None:
    table = _table(20, 0.5)
    hidden = ~table.valid[:, None, :, None]
    changed = replace(table, keys=table.keys.masked_fill(hidden, 1e6), values=table.values.masked_fill(hidden, 1e6))
    assert torch.equal(changed.found(_in_tiles_of(3)), table.found(_in_tiles_of(3)))


@pytest.mark.parametrize("normalise", ["softmax", "none"])
@pytest.mark.parametrize("size", [1, 2, 512])
def test_gradcheck(normalise: Normalise, size: int) -> None:
    draw = torch.Generator().manual_seed(0)
    parts = [
        torch.randn(shape, generator=draw, dtype=torch.float64, requires_grad=True)
        for shape in [(2, 2, 3, 2), (2, 1, 5, 2), (2, 1, 5, 3), (2, 9)]
    ]
    valid = torch.tensor([[True, False, True, True, False], [False] * 5])

    def run(queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
        table = Table(queries, keys, values, valid, Relative(bias), MaskRule(causal=True, prefix=1))
        return replace(table, normalise=normalise).found(_in_tiles_of(size))

    assert torch.autograd.gradcheck(run, parts)


def test_a_second_derivative_is_refused_and_not_wrong() -> None:
    table = _table()
    (gradient,) = torch.autograd.grad(table.found(tiled_lookup).square().sum(), table.queries, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


@pytest.mark.parametrize("part", ["keys", "values"])
def test_vectors_per_distance_are_refused(part: str) -> None:
    table = _table(relative=Relative(**{part: torch.zeros(13, 4)}))
    with pytest.raises(ValueError, match="tiles hold no vectors per distance"):
        table.found(tiled_lookup)


def test_tiles_that_no_query_may_see_are_not_computed() -> None:
    counts = {}
    for name, mask in {"all": EVERYTHING, "causal": MaskRule(causal=True), "local": MaskRule(local=2)}.items():
        with _Memory() as memory:
            _table(60, mask=mask).found(_in_tiles_of(10))
        counts[name] = memory.exponentials
    tiles = {"all": 36, "causal": 21, "local": 16}  # 6 x 6, the triangle, the diagonal and its neighbours
    assert counts == {name: 2 * count for name, count in tiles.items()}  # kept = exp, weights = exp


class _Memory(TorchDispatchMode):
    """The largest tensor that any operation makes, and the most bytes that lived at once."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.largest = self.peak = self.exponentials = 0
        self._living = WeakTensorKeyDictionary()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        self.exponentials += func is torch.ops.aten.exp.default
        for tensor in tree_leaves(made):
            if isinstance(tensor, Tensor):
                self.largest = max(self.largest, tensor.untyped_storage().nbytes() // tensor.element_size())
                self._living[tensor] = None
        storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in self._living}
        self.peak = max(self.peak, sum(storages.values()))
        return made


def _memory(way: Callable[..., Tensor], length: int, normalise: str, bias: bool) -> _Memory:
    """Of a forward and a backward pass over one window."""
    relative = Relative(torch.zeros(1, 2 * length - 1, dtype=torch.float64, requires_grad=True)) if bias else None
    table = _table(length, 0.9, normalise=normalise, relative=relative)
    memory = _Memory()
    with memory:
        table.found(way).sum().backward()
    return memory


kinds = pytest.mark.parametrize(
    ("normalise", "bias"), [("softmax", False), ("softmax", True), ("none", False)], ids=["softmax", "bias", "none"]
)


@kinds
def test_no_map_of_a_window_is_ever_made(normalise: str, bias: bool) -> None:
    tile = 128
    assert _memory(_in_tiles_of(tile), 2000, normalise, bias).largest <= tile * tile


@kinds
def test_memory_grows_with_the_window_and_not_with_its_square(normalise: str, bias: bool) -> None:
    one, two, four = (_memory(_in_tiles_of(32), length, normalise, bias).peak for length in (96, 192, 384))
    assert four - two < 3 * (two - one)  # twice as much if it grows with the window, four times with its square


def test_the_look_up_written_out_makes_the_map() -> None:
    one, two, four = (_memory(lookup, length, "softmax", False) for length in (96, 192, 384))
    assert four.largest == 384 * 384  # so the two tests above can fail
    assert four.peak - two.peak > 3 * (two.peak - one.peak)
