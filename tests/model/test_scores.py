"""How well a key answers a query, against the formulas pair by pair."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from netanomaly.model.scores import ScoreRule

DIVISORS = [1.0, 2.5]
divisors = pytest.mark.parametrize("divisor", DIVISORS)
kinds = pytest.mark.parametrize("kind", ["dot", "distance"])


def _vectors(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _pairs(rule: ScoreRule, queries: Tensor, keys: Tensor) -> Tensor:
    return rule.asking(queries) @ rule.held(keys).transpose(-1, -2)


@divisors
def test_dot_is_the_dot_product(divisor: float) -> None:
    queries, keys = _vectors(2, 3, 5, 4), _vectors(2, 3, 7, 4, seed=1)
    expected = torch.einsum("nhqd,nhld->nhql", queries, keys) / divisor
    torch.testing.assert_close(_pairs(ScoreRule("dot", divisor), queries, keys), expected, rtol=0, atol=1e-12)


@divisors
def test_distance_is_minus_the_squared_distance(divisor: float) -> None:
    queries, keys = _vectors(2, 3, 5, 4), _vectors(2, 3, 7, 4, seed=1)
    expected = -torch.cdist(queries, keys, compute_mode="donot_use_mm_for_euclid_dist").square() / divisor
    torch.testing.assert_close(_pairs(ScoreRule("distance", divisor), queries, keys), expected, rtol=0, atol=1e-12)


def test_a_key_that_is_the_query_has_distance_zero_and_no_key_more() -> None:
    queries, keys = _vectors(5, 4), _vectors(50, 4, seed=1)
    rule = ScoreRule("distance")
    assert _pairs(rule, queries, queries).diagonal().abs().max() <= 1e-12
    assert _pairs(rule, queries, keys).max() < 0


@kinds
@divisors
@pytest.mark.parametrize("shared", [1, 2, 4])
def test_positions_add_to_the_score_what_they_add_to_the_keys(kind: str, divisor: float, shared: int) -> None:
    targets, length, heads = 5, 4, 4
    rule = ScoreRule(kind, divisor)  # type: ignore[arg-type]
    queries, vectors = _vectors(2, heads, targets, 6), _vectors(length, 6, seed=2)
    keys = _vectors(2, heads // shared, targets + length - 1, 6, seed=1)
    found = _at_places(rule, queries, keys, vectors)
    assert found.shape == (2, heads, targets, length)
    for t in range(targets):
        window = keys[:, :, t : t + length].repeat_interleave(shared, dim=1)
        query = queries[:, :, t : t + 1]
        expected = _pairs(rule, query, window + vectors) - _pairs(rule, query, window)
        torch.testing.assert_close(found[:, :, t : t + 1], expected, rtol=0, atol=1e-12)


def test_positions_reach_the_gradients_of_queries_keys_and_vectors() -> None:
    parts = [_vectors(1, 2, 3, 2), _vectors(1, 1, 5, 2, seed=1), _vectors(3, 2, seed=2)]
    rule = ScoreRule("distance", 1.5)
    assert torch.autograd.gradcheck(partial(_at_places, rule), [part.requires_grad_() for part in parts])


def _at_places(rule: ScoreRule, queries: Tensor, keys: Tensor, vectors: Tensor) -> Tensor:
    """What the position vectors of keys add to the scores. (B, H, T, L)"""
    terms = rule.asking(queries) @ rule.of_places(vectors).T
    more = rule.of_places_and_keys(keys, vectors, queries.shape[1])
    return terms if more is None else terms + more
