"""PyTorch's fused kernels against the look-up written out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
import torch
from hypothesis import given, settings
from lookups import TOLERANCE, Table, assert_same_look_up, tables
from torch.nn.functional import scaled_dot_product_attention

from netanomaly.model import fused
from netanomaly.model.fused import fused_lookup
from netanomaly.model.lookup import Relative, lookup
from netanomaly.model.masks import EVERYTHING, MaskRule

softmax_tables = tables(normalise=("softmax",))


@pytest.mark.parametrize("dtype", TOLERANCE)
@settings(max_examples=120, deadline=None)
@given(table=softmax_tables)
def test_values_and_gradients_are_those_of_the_look_up(dtype: torch.dtype, table: Table) -> None:
    assert_same_look_up(fused_lookup, lookup, table.as_type(dtype))


def _table(share: float = 1.0, asking: int = 6) -> Table:
    draw = torch.Generator().manual_seed(0)
    queries, keys, values = (torch.randn(2, 2, n, 4, generator=draw).requires_grad_() for n in (asking, 6, 6))
    return Table(queries, keys, values, torch.rand(2, 6, generator=draw) < share)


@pytest.mark.parametrize(
    ("mask", "asking", "share", "mask_given", "causal"),
    [
        (EVERYTHING, 6, 1.0, False, False),
        (EVERYTHING, 1, 1.0, False, False),
        (MaskRule(causal=True), 6, 1.0, False, True),
        (MaskRule(causal=True), 1, 1.0, True, False),  # the kernels' own causal mask starts with the first row
        (MaskRule(causal=True, prefix=2), 6, 1.0, True, False),
        (MaskRule(local=2), 6, 1.0, True, False),
        (EVERYTHING, 6, 0.5, True, False),
        (MaskRule(causal=True), 6, 0.5, True, False),
    ],
)
def test_a_mask_is_handed_over_only_where_something_is_hidden(
    mask: MaskRule, asking: int, share: float, mask_given: bool, causal: bool
) -> None:
    table = replace(_table(share, asking), mask=mask)
    with patch.object(fused, "scaled_dot_product_attention", wraps=scaled_dot_product_attention) as kernel:
        found = table.found(fused_lookup)
    assert (kernel.call_args.kwargs["attn_mask"] is not None) == mask_given
    assert kernel.call_args.kwargs["is_causal"] == causal
    torch.testing.assert_close(found, table.found(lookup), rtol=1e-5, atol=1e-5)


def test_heads_that_share_keys_are_left_to_the_kernels() -> None:
    table = _table()
    shared = replace(table, keys=table.keys[:, :1], values=table.values[:, :1])
    with patch.object(fused, "scaled_dot_product_attention", wraps=scaled_dot_product_attention) as kernel:
        shared.found(fused_lookup)
    assert kernel.call_args.args[1].shape[1] == 1
    assert kernel.call_args.kwargs["enable_gqa"]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("bias", [False, True])
def test_windows_without_any_valid_row_have_the_gradients_of_the_formula(dtype: torch.dtype, bias: bool) -> None:
    relative = Relative(torch.randn(2, 11, generator=torch.Generator().manual_seed(1))) if bias else None
    table = replace(_table(0.0), relative=relative, mask=MaskRule(causal=True)).as_type(dtype)
    assert table.found(fused_lookup).isfinite().all()
    assert_same_look_up(fused_lookup, lookup, table)


@pytest.mark.parametrize(
    "changes",
    [
        {"normalise": "none"},
        {"relative": Relative(keys=torch.zeros(11, 4))},
        {"relative": Relative(values=torch.zeros(11, 4))},
        {"relative": Relative(torch.zeros(2, 11), torch.zeros(11, 4), torch.zeros(11, 4))},
    ],
    ids=["without softmax", "vectors for keys", "vectors for values", "all"],
)
def test_what_the_kernels_do_not_know_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="know softmax only, and no vectors per distance"):
        replace(_table(), **changes).found(fused_lookup)
