"""The attention layer: heads, scales, and the same answers for one row, all rows, and row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from classifiers import segment, stirred
from netanomaly.model.attention import Attention
from netanomaly.model.masks import MaskRule
from netanomaly.model.positions import sinusoidal_table
from netanomaly.model.schemes import (
    AdditivePositions,
    NoPositions,
    RelativeBias,
    RelativeVectors,
    RotaryPositions,
)

WIDTH, HEADS, LENGTH = 8, 2, 5
SCHEMES: dict[str, Callable[[int], NoPositions]] = {
    "none": lambda length: NoPositions(),
    "fixed": lambda length: AdditivePositions(sinusoidal_table(length, WIDTH // HEADS)),
    "trained": lambda length: AdditivePositions(0.5 * torch.randn(length, WIDTH // HEADS), trained=True),
    "rotary": lambda length: RotaryPositions(100.0),
    "bias": lambda length: RelativeBias(HEADS, 8, 4),
    "vectors": lambda length: RelativeVectors(WIDTH // HEADS, 2),
}
scored = pytest.mark.parametrize(  # vectors per distance are defined for dot products only
    ("scheme", "score"),
    [
        (scheme, score)
        for scheme in SCHEMES
        for score in ("dot", "distance")
        if (scheme, score) != ("vectors", "distance")
    ],
)
MASKS = [MaskRule(), MaskRule(local=2), MaskRule(causal=True), MaskRule(causal=True, prefix=2, local=4)]


def _attention(scheme: str = "fixed", length: int = LENGTH, **choices: Any) -> Attention:
    torch.manual_seed(0)
    return stirred(Attention(WIDTH, HEADS, length, SCHEMES[scheme](length), **choices)).double()


def _segment(rows: int, share: float = 0.7) -> tuple[Tensor, Tensor]:
    """Memory, and which of its rows are valid."""
    return segment(2, rows, share, width=WIDTH, seed=3, dtype=torch.float64)


@pytest.mark.parametrize("mask", MASKS, ids=repr)
@pytest.mark.parametrize("token", [False, True])
@scored
def test_newest_is_of_windows_asked_by_the_newest_row(scheme: str, token: bool, mask: MaskRule, score: str) -> None:
    attention = _attention(scheme, mask=mask, score=score, n_kv_heads=1)
    memory, valid = _segment(70 + LENGTH - 1)
    found = attention.newest(memory[:, LENGTH - 1 :], memory, valid, token=token)
    windows = memory.unfold(1, LENGTH, 1).transpose(2, 3).flatten(0, 1)  # (2 * 70, L, D)
    held = valid.unfold(1, LENGTH, 1).flatten(0, 1)
    expected = attention.of_windows(windows[:, -1:], windows, held, token=token)
    torch.testing.assert_close(found.flatten(0, 1), expected[:, 0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("targets", [1, 3, 70])
def test_newest_equals_the_last_of_all_rows(length: int, targets: int) -> None:
    attention = _attention(length=length)
    memory, valid = _segment(targets + length - 1)
    found = attention.newest(memory[:, length - 1 :], memory, valid)
    for t in range(targets):
        window, held = memory[:, t : t + length], valid[:, t : t + length]
        expected = attention.of_windows(window, window, held)[:, -1]
        torch.testing.assert_close(found[:, t], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("local", [None, 1, 3])
@scored
def test_row_by_row_equals_all_rows_of_a_causal_look_up(scheme: str, score: str, local: int | None) -> None:
    attention = _attention(scheme, score=score, n_kv_heads=1, mask=MaskRule(causal=True, local=local))
    memory, valid = _segment(LENGTH)
    asking = memory.roll(1, 2)
    cache, found = None, []
    for row in range(LENGTH):
        at = slice(row, row + 1)
        answer, cache = attention.step(asking[:, at], memory[:, at], valid[:, at], cache)
        assert cache.keys.shape == (2, 1, row + 1, WIDTH // HEADS)
        found.append(answer)
    torch.testing.assert_close(torch.cat(found, 1), attention.of_windows(asking, memory, valid), rtol=0, atol=1e-12)


def test_it_is_multi_head_attention_with_positions_on_projected_queries_and_keys() -> None:
    attention = _attention()
    memory, valid = _segment(LENGTH)
    valid[:, -1] = True
    table = sinusoidal_table(LENGTH, WIDTH // HEADS).double()
    heads = [
        scaled_dot_product_attention(
            attention.query(memory)[..., part] + table,
            attention.key(memory)[..., part] + table,
            attention.value(memory)[..., part],
            attn_mask=valid[:, None],
        )
        for part in (slice(0, 4), slice(4, 8))
    ]
    expected = attention.output(torch.cat(heads, dim=-1))
    torch.testing.assert_close(attention.of_windows(memory, memory, valid), expected, rtol=0, atol=1e-12)


def _four_heads(**choices: Any) -> Attention:
    torch.manual_seed(0)
    positions = AdditivePositions(sinusoidal_table(LENGTH, WIDTH // 4))
    return stirred(Attention(WIDTH, 4, LENGTH, positions, **choices)).double()


def _repeated(shared: Attention, times: int) -> Attention:
    """A multi-head layer whose heads of keys and values are copies of the shared ones."""
    full = _four_heads()
    weights = shared.state_dict()
    for name in ("key.weight", "value.weight", "value.bias"):
        heads = weights[name].unflatten(0, (shared.n_kv_heads, -1))
        weights[name] = heads.repeat_interleave(times, dim=0).flatten(0, 1)
    full.load_state_dict(weights)
    return full


@pytest.mark.parametrize("n_kv_heads", [1, 2, 4])
@pytest.mark.parametrize("way", ["reference", "sdpa", "tiled"])
def test_shared_heads_are_equal_heads(way: str, n_kv_heads: int) -> None:
    shared = _four_heads(n_kv_heads=n_kv_heads, way=way)
    memory, valid = _segment(LENGTH)
    expected = _repeated(shared, 4 // n_kv_heads).of_windows(memory, memory, valid)
    torch.testing.assert_close(shared.of_windows(memory, memory, valid), expected, rtol=0, atol=1e-12)
    assert shared.key.weight.shape[0] == shared.value.weight.shape[0] == n_kv_heads * WIDTH // 4


@pytest.mark.parametrize("shared_by", [2, 4])
def test_neighbouring_heads_of_queries_share_a_head_of_keys(shared_by: int) -> None:
    torch.manual_seed(0)
    attention = Attention(WIDTH, 4, LENGTH, NoPositions(), n_kv_heads=4 // shared_by).double()
    memory, valid = _segment(LENGTH)
    before = attention.of_windows(memory, memory, valid)
    with torch.no_grad():
        attention.output.weight.copy_(torch.eye(WIDTH))
        attention.output.bias.zero_()
        before = attention.of_windows(memory, memory, valid)
        attention.value.bias[0] += 1  # of the first head of values
    moved = (attention.of_windows(memory, memory, valid) - before).abs().amax((0, 1)) > 1e-9
    head = WIDTH // 4
    assert moved.unflatten(0, (4, head)).any(1).tolist() == [number < shared_by for number in range(4)]


def test_no_number_of_shared_heads_is_multi_head() -> None:
    memory, valid = _segment(LENGTH)
    by_default, said = _attention(), _attention(n_kv_heads=HEADS)
    assert torch.equal(by_default.of_windows(memory, memory, valid), said.of_windows(memory, memory, valid))


@scored
def test_a_temperature_divides_the_scores(scheme: str, score: str) -> None:
    memory, valid = _segment(LENGTH)
    same = _attention(scheme, score=score, scale=(WIDTH / HEADS) ** 0.5)
    other = _attention(scheme, score=score, scale=0.5)
    expected = _attention(scheme, score=score).of_windows(memory, memory, valid)
    torch.testing.assert_close(same.of_windows(memory, memory, valid), expected, rtol=0, atol=1e-12)
    assert (other.of_windows(memory, memory, valid) - expected).abs().max() > 1e-3


@pytest.mark.parametrize("scale", [1e6, 1e-6])
def test_a_high_temperature_sees_all_alike_and_a_low_one_the_nearest_only(scale: float) -> None:
    attention = _attention("none", score="distance", scale=scale)
    memory, valid = _segment(LENGTH, share=1.0)
    query, key = (part(memory).unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in (attention.query, attention.key))
    value = attention.value(memory).unflatten(-1, (HEADS, -1)).transpose(1, 2)
    weights = torch.full((2, HEADS, LENGTH, LENGTH), 1 / LENGTH, dtype=torch.float64)
    if scale < 1:
        nearest = torch.cdist(query, key).argmin(-1)
        weights = torch.nn.functional.one_hot(nearest, LENGTH).double()
    expected = attention.output((weights @ value).transpose(1, 2).flatten(2))
    torch.testing.assert_close(attention.of_windows(memory, memory, valid), expected, rtol=0, atol=1e-4)


def _fresh(scale: object) -> Attention:
    torch.manual_seed(0)
    return Attention(WIDTH, HEADS, LENGTH, NoPositions(), scale=scale).double()  # type: ignore[arg-type]


def test_scale_init_starts_with_the_scores_of_sqrt_dim_and_scales_nothing_later() -> None:
    memory, valid = _segment(LENGTH)
    init, sqrt_dim = _fresh("init"), _fresh("sqrt_dim")
    torch.testing.assert_close(
        init.of_windows(memory, memory, valid), sqrt_dim.of_windows(memory, memory, valid), rtol=0, atol=1e-6
    )
    for part in ("query", "key"):  # 4 = 8 / 2 is the width of a head
        smaller, weight = getattr(init, part).weight, getattr(sqrt_dim, part).weight
        torch.testing.assert_close(4**0.25 * smaller, weight, rtol=0, atol=1e-7)
    assert (init.score.divisor, sqrt_dim.score.divisor) == (1.0, 2.0)


@torch.no_grad()
def test_scores_by_distance_are_the_pairwise_formula() -> None:
    attention = _attention("none", score="distance")
    memory, valid = _segment(LENGTH)
    valid[:, -1] = True
    heads = []
    for part in (slice(0, 4), slice(4, 8)):
        query, key = attention.query(memory)[..., part], attention.key(memory)[..., part]
        scores = -torch.cdist(query, key, compute_mode="donot_use_mm_for_euclid_dist").square() / 2
        weights = scores.masked_fill(~valid[:, None], -torch.inf).softmax(-1)
        heads.append(weights @ attention.value(memory)[..., part])
    expected = attention.output(torch.cat(heads, dim=-1))
    torch.testing.assert_close(attention.of_windows(memory, memory, valid), expected, rtol=0, atol=1e-12)


def _newest(attention: Attention, memory: Tensor, valid: Tensor) -> Tensor:
    return attention.newest(memory[:, attention.length - 1 :], memory, valid)


def _whole(attention: Attention, memory: Tensor, valid: Tensor) -> Tensor:
    window, held = memory[:, : attention.length], valid[:, : attention.length]
    return attention.of_windows(window, window, held)


both_ways = pytest.mark.parametrize("way", [_newest, _whole])
Way = Callable[[Attention, Tensor, Tensor], Tensor]


@both_ways
@pytest.mark.parametrize("scheme", ["fixed", "trained", "rotary", "bias"])
def test_positions_never_reach_the_values(way: Way, scheme: str) -> None:
    attention = _attention(scheme)
    with torch.no_grad():  # all values zero: whatever the weights, the answer is zero unless positions leak into it
        attention.value.weight.zero_()
        attention.value.bias.zero_()
    found = way(attention, *_segment(9))
    assert torch.equal(found, attention.output.bias.expand_as(found))


@both_ways
def test_vectors_of_distances_reach_the_values(way: Way) -> None:
    attention = _attention("vectors")
    with torch.no_grad():
        attention.value.weight.zero_()
        attention.value.bias.zero_()
    found = way(attention, *_segment(9))
    assert (found - attention.output.bias).abs().max() > 1e-3


@both_ways
@pytest.mark.parametrize("zeroed", ["query", "key"])
def test_positions_reach_queries_and_keys(way: Way, zeroed: str) -> None:
    attention = _attention("trained")
    memory, valid = _segment(9)
    with torch.no_grad():  # one of the two only has its positions left, and they still tell the rows apart
        for parameter in getattr(attention, zeroed).parameters():
            parameter.zero_()
        before = way(attention, memory, valid)
        next(attention.positions.parameters()).mul_(-1.5)
        assert (way(attention, memory, valid) - before).abs().max() > 1e-3


@both_ways
@torch.no_grad()
def test_without_projections_and_positions_all_valid_rows_weigh_the_same(way: Way) -> None:
    attention = _attention("none")
    memory, valid = _segment(LENGTH)
    for part in (attention.query.weight, attention.query.bias, attention.key.weight):
        part.zero_()
    rows = attention.value(memory) * valid[..., None]
    mean = attention.output(rows.sum(1) / valid.sum(1, keepdim=True))
    found = way(attention, memory, valid)
    torch.testing.assert_close(found, mean[:, None].expand_as(found), rtol=0, atol=1e-12)


@torch.no_grad()
def test_a_token_that_asks_nothing_does_not_see_positions() -> None:
    attention = _attention("trained")
    memory, valid = _segment(9)
    attention.query.weight.zero_()
    attention.query.bias.zero_()
    before = attention.newest(memory[:, 4:], memory, valid, token=True)
    next(attention.positions.parameters()).normal_()
    assert torch.equal(attention.newest(memory[:, 4:], memory, valid, token=True), before)


def test_a_key_bias_would_do_nothing() -> None:
    attention = _attention("none")
    memory, valid = _segment(LENGTH)
    assert attention.key.bias is None
    before = attention.of_windows(memory, memory, valid)
    attention.key.bias = torch.nn.Parameter(torch.randn(WIDTH, dtype=torch.float64))
    torch.testing.assert_close(attention.of_windows(memory, memory, valid), before, rtol=0, atol=1e-12)
