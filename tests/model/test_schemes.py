"""What each position scheme adds, and that it adds nothing else."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from netanomaly.model.lookup import lookup
from netanomaly.model.positions import distance_buckets, rotate, sinusoidal_table
from netanomaly.model.schemes import (
    AdditivePositions,
    NoPositions,
    RelativeBias,
    RelativeVectors,
    RotaryPositions,
)

HEADS, LENGTH, WIDTH = 2, 9, 4


def _schemes() -> dict[str, NoPositions]:
    """Fresh, the trained numbers no longer small."""
    draw = torch.Generator().manual_seed(0)
    schemes = {
        "none": NoPositions(),
        "fixed": AdditivePositions(sinusoidal_table(LENGTH, WIDTH)),
        "trained": AdditivePositions(torch.randn(LENGTH, WIDTH, generator=draw), trained=True),
        "rotary": RotaryPositions(100.0),
        "bias": RelativeBias(HEADS, 8, 6),
        "vectors": RelativeVectors(WIDTH, 3),
    }
    for scheme in schemes.values():
        for parameter in scheme.parameters():
            parameter.data = torch.randn(parameter.shape, generator=draw)
        scheme.double()
    return schemes


SCHEMES = _schemes()
by_distance = pytest.mark.parametrize("name", ["none", "rotary", "bias", "vectors"])
every = pytest.mark.parametrize("name", SCHEMES)


def _vectors(rows: int = LENGTH, seed: int = 0) -> Tensor:
    return torch.randn(2, HEADS, rows, WIDTH, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _scores(scheme: NoPositions, queries: Tensor, keys: Tensor) -> Tensor:
    """Of every row with every row of a window, through the look-up: its values are one row each. (N, H, L, L)"""
    length = keys.shape[2]
    at = torch.arange(length)
    relative = scheme.relative(length)
    scores = scheme.asking(queries, at) @ scheme.held(keys, at).transpose(-1, -2)
    if relative is not None and relative.bias is not None:
        scores = scores + torch.stack([relative.bias[:, length - 1 + i - at] for i in range(length)], 1)
    if relative is not None and relative.keys is not None:
        added = torch.stack([relative.keys[length - 1 + i - at] for i in range(length)])  # (L, L, d)
        scores = scores + torch.einsum("nhid,ijd->nhij", queries, added)
    return scores


@by_distance
def test_scores_depend_on_distances_alone(name: str) -> None:
    queries, keys = _vectors(), _vectors(seed=1)
    before = _scores(SCHEMES[name], queries, keys)
    after = _scores(SCHEMES[name], queries.roll(1, 2), keys.roll(1, 2))  # every row one place further on
    torch.testing.assert_close(after[..., 1:, 1:], before[..., :-1, :-1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["fixed", "trained"])
def test_with_tables_the_place_in_the_window_counts(name: str) -> None:
    queries, keys = _vectors(), _vectors(seed=1)
    before = _scores(SCHEMES[name], queries, keys)
    after = _scores(SCHEMES[name], queries.roll(1, 2), keys.roll(1, 2))
    assert (after[..., 1:, 1:] - before[..., :-1, :-1]).abs().max() > 0.1


@pytest.mark.parametrize("name", ["bias", "vectors"])
def test_the_look_up_adds_what_distances_add(name: str) -> None:
    queries, keys = _vectors(), _vectors(seed=1)
    relative = SCHEMES[name].relative(LENGTH)
    valid = torch.ones(2, LENGTH, dtype=torch.bool)
    values = torch.eye(LENGTH, dtype=torch.float64).expand(2, HEADS, -1, -1)  # the answer is the row of weights
    assert relative is not None
    no_values = type(relative)(relative.bias, relative.keys)
    weights = lookup(queries, keys, values, valid, relative=no_values)
    expected = _scores(SCHEMES[name], queries, keys).softmax(-1)
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-12)


@every
def test_rows_may_come_a_few_at_a_time(name: str) -> None:
    scheme, keys = SCHEMES[name], _vectors()
    at = torch.arange(LENGTH)
    for some in (slice(0, 1), slice(3, 7), slice(8, 9)):
        assert torch.equal(scheme.held(keys[:, :, some], at[some]), scheme.held(keys, at)[:, :, some])
        assert torch.equal(scheme.asking(keys[:, :, some], at[some]), scheme.asking(keys, at)[:, :, some])


@every
def test_a_shorter_table_has_the_nearer_distances(name: str) -> None:
    long, short = SCHEMES[name].relative(LENGTH), SCHEMES[name].relative(LENGTH - 3)
    assert (long is None) == (short is None) == (name not in ("bias", "vectors"))
    if long is None or short is None:
        return
    if long.bias is not None and short.bias is not None:
        assert torch.equal(short.bias, long.bias[:, 3:-3])
    for nearer, every_one in ((short.keys, long.keys), (short.values, long.values)):
        assert (nearer is None) == (every_one is None)
        assert nearer is None or every_one is None or torch.equal(nearer, every_one[3:-3])


def test_none_changes_nothing() -> None:
    scheme, rows = SCHEMES["none"], _vectors()
    assert scheme.asking(rows, torch.arange(LENGTH)) is rows
    assert scheme.held(rows, torch.arange(LENGTH)) is rows
    assert not list(scheme.parameters())


@pytest.mark.parametrize("name", ["fixed", "trained"])
def test_tables_are_added_but_not_to_a_token(name: str) -> None:
    scheme, rows, at = SCHEMES[name], _vectors(2), torch.tensor([7, 2])
    table = scheme.vectors()
    assert table is not None
    torch.testing.assert_close(scheme.held(rows, at), rows + table[at], rtol=0, atol=1e-12)
    torch.testing.assert_close(scheme.asking(rows, at), rows + table[at], rtol=0, atol=1e-12)
    assert torch.equal(scheme.asking(rows, at, token=True), rows)


def test_rotary_turns_queries_keys_and_tokens() -> None:
    scheme, rows, at = SCHEMES["rotary"], _vectors(2), torch.tensor([7, 2])
    for turned in (scheme.held(rows, at), scheme.asking(rows, at), scheme.asking(rows, at, token=True)):
        assert torch.equal(turned, rotate(rows, at, 100.0))


def test_the_bias_of_a_distance_is_that_of_its_bucket() -> None:
    scheme = SCHEMES["bias"]
    assert isinstance(scheme, RelativeBias)
    relative = scheme.relative(LENGTH)
    bucket = distance_buckets(torch.arange(1 - LENGTH, LENGTH), 8, 6)
    assert relative.bias is not None
    assert torch.equal(relative.bias, scheme.bias[:, bucket])
    assert not RelativeBias(HEADS, 8, 6).bias.any()  # fresh weights prefer no distance


def test_vectors_of_distances_beyond_the_reach_are_alike() -> None:
    scheme = SCHEMES["vectors"]
    assert isinstance(scheme, RelativeVectors)
    relative = scheme.relative(LENGTH)
    for found, vectors in ((relative.keys, scheme.keys), (relative.values, scheme.values)):
        assert found is not None
        for distance in range(1 - LENGTH, LENGTH):
            assert torch.equal(found[LENGTH - 1 + distance], vectors[max(-3, min(3, distance)) + 3])
    assert not torch.equal(scheme.keys, scheme.values)


@pytest.mark.parametrize(
    ("name", "trained"),
    [
        ("none", []),
        ("fixed", []),
        ("trained", ["table"]),
        ("rotary", []),
        ("bias", ["bias"]),
        ("vectors", ["keys", "values"]),
    ],
)
def test_only_what_is_trained_is_saved(name: str, trained: list[str]) -> None:
    assert sorted(SCHEMES[name].state_dict()) == trained
    assert [found for found, _ in SCHEMES[name].named_parameters()] == trained


def test_a_table_follows_the_model_to_another_type() -> None:
    table = AdditivePositions(sinusoidal_table(5, 4)).double().vectors()
    assert table is not None
    assert table.dtype == torch.float64
