"""The look-up model: who sees whom across blocks, the order of rows, row by row."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from classifiers import classifier, look_up_model, segment
from netanomaly.model.lookup_model import LookupModel

WINDOW, WIDTH = 8, 16
SCHEMES: dict[str, Any] = {
    "none": "none",
    "sinusoidal": {"base": 50.0},
    "sinusoidal on input": {"add_to": "input"},
    "sine": "sine",
    "binary": "binary",
    "linear_unit": "linear_unit",
    "learned": "learned",
    "learned on input": {"kind": "learned", "add_to": "input"},
    "rotary": {"kind": "rotary", "base": 50.0},
    "relative_bias": {"kind": "relative_bias", "buckets": 8, "furthest": 6},
    "relative_key": {"kind": "relative_key", "reach": 3},
}
schemes = pytest.mark.parametrize("scheme", SCHEMES)
memories = pytest.mark.parametrize("memory", ["embeddings", "blocks"])


def _model(scheme: str = "sinusoidal", **choices: Any) -> LookupModel:
    return look_up_model(window=WINDOW, width=WIDTH, positions=SCHEMES[scheme], **choices)


def _rows(batch: int = 2, count: int = WINDOW, share: float = 0.8) -> tuple[Tensor, Tensor]:
    return segment(batch, count, share, width=WIDTH, dtype=torch.float64)


def _influence(model: LookupModel) -> Tensor:
    """Whether row j of the window moves row i of `encode`. (L, L)"""
    rows, valid = _rows(1, share=1.0)
    before = model.encode(*model.tokens(rows, valid))
    moved = []
    for row in range(WINDOW):
        changed = rows.clone()
        changed[:, row] += torch.linspace(-1, 1, WIDTH)
        moved.append((model.encode(*model.tokens(changed, valid)) - before).abs().amax(-1)[0] > 1e-12)
    return torch.stack(moved, dim=1)


@memories
@pytest.mark.parametrize("read_out", ["last", "mean", "attention", "cls"])
@pytest.mark.parametrize("depth, share_weights", [(1, False), (3, False), (3, True)])
def test_rows_projected_once_are_rows_projected_in_every_window(
    memory: str, read_out: str, depth: int, share_weights: bool
) -> None:
    if memory == "embeddings" and read_out in ("last", "cls"):
        pytest.skip("one row asks: sliding")
    choices = {"memory": memory, "read_out": read_out, "depth": depth, "share_weights": share_weights}
    model = _model(execution="sdpa", **choices)
    assert model.projects_once == (read_out != "cls")  # the token is a row of every table
    rows, valid = _rows(count=WINDOW + 5)
    found = model(rows, valid)
    model.projects_once = False
    expected = model(rows, valid)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    weights = list(model.parameters())
    ours, theirs = (torch.autograd.grad(read.square().sum(), weights) for read in (found, expected))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


@pytest.mark.parametrize("execution", ["reference", "tiled", "sdpa"])
@memories
@torch.no_grad()
def test_rows_of_a_causal_model_see_exactly_the_rows_before_them(memory: str, execution: str) -> None:
    model = _model(mask="causal", memory=memory, depth=2, read_out="mean", execution=execution)
    assert torch.equal(_influence(model), torch.ones(WINDOW, WINDOW, dtype=torch.bool).tril())


@schemes
@memories
@torch.no_grad()
def test_no_scheme_lets_later_rows_through(scheme: str, memory: str) -> None:
    model = _model(scheme, mask="causal", memory=memory, depth=2, read_out="mean")
    assert not _influence(model).triu(1).any()


@memories
@torch.no_grad()
def test_the_prefix_is_seen_by_all(memory: str) -> None:
    model = _model(mask="prefix", prefix=3, memory=memory, read_out="mean")
    expected = torch.ones(WINDOW, WINDOW, dtype=torch.bool).tril()
    expected[:, :3] = True
    assert torch.equal(_influence(model), expected)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("memory", ["embeddings", "blocks"])
@torch.no_grad()
def test_a_local_look_up_reaches_further_with_depth_only_through_blocks(memory: str, depth: int) -> None:
    model = _model(local=3, depth=depth, memory=memory, read_out="mean")
    reach = 2 * depth if memory == "blocks" else 2
    place = torch.arange(WINDOW)
    assert torch.equal(_influence(model), (place - place[:, None]).abs() <= reach)


@torch.no_grad()
def _moved_by_another_order(read_out: str, positions: Any, **choices: Any) -> float:
    """How far the logits of one window move when its rows change places, the newest staying where it is."""
    model = classifier(
        window=16, width=16, stem=1, n_heads=2, read_out=read_out, positions=positions, seed=3, **choices
    ).double()
    rows, valid = segment(1, 16, share=0.8, dtype=torch.float64)
    valid[:, -1] = True
    order = torch.cat([torch.randperm(15, generator=torch.Generator().manual_seed(1)), torch.tensor([15])])
    return float((model(rows[:, order], valid[:, order]) - model(rows, valid)).abs().max())


read_outs = pytest.mark.parametrize("read_out", ["last", "mean", "cls", "attention"])


@read_outs
@memories
def test_without_positions_the_window_is_a_set(read_out: str, memory: str) -> None:
    assert _moved_by_another_order(read_out, "none", memory=memory, depth=2) <= 1e-12


@read_outs
@pytest.mark.parametrize("scheme", [scheme for scheme in SCHEMES if scheme not in ("none", "relative_bias")])
def test_with_every_scheme_the_order_counts(read_out: str, scheme: str) -> None:
    assert _moved_by_another_order(read_out, SCHEMES[scheme]) > 1e-5


@read_outs
@torch.no_grad()
def test_with_a_bias_the_order_counts_once_it_is_trained(read_out: str) -> None:
    assert _moved_by_another_order(read_out, SCHEMES["relative_bias"]) <= 1e-12
    model = _model("relative_bias", read_out=read_out)  # stirred
    rows, valid = _rows(1, share=1.0)
    order = torch.tensor([3, 1, 5, 0, 2, 6, 4, 7])
    assert (model(rows[:, order], valid) - model(rows, valid)).abs().max() > 1e-4


@read_outs
@pytest.mark.parametrize("mask", [{"mask": "causal"}, {"mask": "prefix", "prefix": 4}, {"local": 3}])
def test_a_mask_is_a_kind_of_position(read_out: str, mask: dict[str, Any]) -> None:
    one_asks = read_out in ("last", "cls")
    if one_asks and "prefix" in mask:
        return  # refused by the config: it would change nothing
    moved = _moved_by_another_order(read_out, "none", **mask)
    assert (moved <= 1e-12) == (one_asks and "local" not in mask)  # the newest row sees every row before it


def _row_by_row(model: LookupModel, rows: Tensor, valid: Tensor) -> Tensor:
    caches, found = None, []
    for n in range(rows.shape[1]):
        row, caches = model.step(rows[:, n : n + 1], valid[:, n : n + 1], caches)
        found.append(row)
    return torch.cat(found, dim=1)


@schemes
@memories
@pytest.mark.parametrize("share_weights", [False, True])
@torch.no_grad()
def test_row_by_row_equals_all_rows_at_once(scheme: str, memory: str, share_weights: bool) -> None:
    for n_kv_heads, depth, local in product([1, 4], [2, 3] if share_weights else [1, 2], [None, 3]):
        choices = {"n_heads": 4, "n_kv_heads": n_kv_heads, "depth": depth, "local": local}
        model = _model(scheme, mask="causal", memory=memory, share_weights=share_weights, **choices)
        rows, valid = _rows(4)
        valid[0] = False
        valid[1] = True
        tokens, held = model.tokens(rows, valid)
        expected = model.encode(tokens, held)
        torch.testing.assert_close(_row_by_row(model, rows, valid), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("score", ["dot", "distance"])
@pytest.mark.parametrize("normalise", ["softmax", "none"])
@torch.no_grad()
def test_row_by_row_knows_every_score(score: str, normalise: str) -> None:
    model = _model(mask="causal", score=score, normalise=normalise, scale=4.0)
    rows, valid = _rows()
    torch.testing.assert_close(_row_by_row(model, rows, valid), model.encode(rows, valid), rtol=0, atol=1e-12)


@pytest.mark.parametrize("mask", [{}, {"mask": "prefix", "prefix": 2, "memory": "blocks"}, {"local": 3}])
def test_row_by_row_refuses_rows_that_depend_on_later_ones(mask: dict[str, Any]) -> None:
    model = _model(**mask)
    assert not model.is_causal
    with pytest.raises(ValueError, match="works with the mask causal only"):
        model.step(*_rows(count=1))


@pytest.mark.parametrize(("patch", "tokens"), [(1, 8), (2, 4)])
def test_row_by_row_refuses_more_rows_than_a_window_holds(patch: int, tokens: int) -> None:
    model = _model(mask="causal", patch=patch)
    _row_by_row(model, *_rows(count=tokens))
    with pytest.raises(ValueError, match=f"the window is full: it holds {tokens} tokens"):
        _row_by_row(model, *_rows(count=tokens + 1))


@pytest.mark.parametrize("share_weights", [False, True])
def test_shared_weights_are_those_of_one_block_at_every_depth(share_weights: bool) -> None:
    one, three = _model(), _model(depth=3, share_weights=share_weights)
    blocks = len(list(three.parameters())) / len(list(one.parameters()))
    assert blocks == (1 if share_weights else 3)
    rows, valid = _rows()
    if share_weights:
        three.load_state_dict(one.state_dict())
        asking: Tensor = rows[:, -1:]
        block: Any = one.blocks[0]
        for _ in range(3):
            asking = block.of_windows(asking, rows, valid)
        torch.testing.assert_close(three(rows, valid), asking, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("choices", "newest_only"),
    [
        ({"read_out": "last"}, True),
        ({"read_out": "cls"}, True),
        ({"read_out": "last", "memory": "blocks"}, False),
        ({"read_out": "mean"}, False),
        ({"read_out": "attention"}, False),
    ],
)
def test_one_query_per_window_where_that_is_enough(choices: dict[str, Any], newest_only: bool) -> None:
    assert _model(**choices).one_asks == _model(**choices).sliding == newest_only


def test_a_token_in_the_table_is_the_last_row_of_its_window() -> None:
    model = _model(read_out="cls", memory="blocks")
    tokens, valid = model.tokens(*_rows(share=0.0))
    assert tokens.shape[1] == WINDOW + 1
    assert valid.tolist() == [[False] * WINDOW + [True]] * 2


@torch.no_grad()
def test_patches_are_looked_up_and_not_their_rows() -> None:
    patched = _model("none", patch=2)
    rows, valid = _rows(share=1.0)
    order = torch.tensor([1, 0, 3, 2, 5, 4, 7, 6])  # within patches
    torch.testing.assert_close(patched(rows[:, order], valid), patched(rows, valid), rtol=0, atol=1e-12)
    assert (patched(rows.flip(1), valid) - patched(rows, valid)).abs().max() > 1e-3
