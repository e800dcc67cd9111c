"""Which rows see which: every rule on every small window, against the rule said in words."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from lookups import sees

from netanomaly.model.masks import EVERYTHING, MaskRule

LENGTH = 6
RULES = [
    MaskRule(causal, prefix, local)
    for causal, prefix, local in product([False, True], [0, 1, 3, LENGTH], [None, 1, 2, 4, LENGTH])
    if causal or not prefix
]
rules = pytest.mark.parametrize("rule", RULES, ids=repr)


def _allowed(rule: MaskRule, asking: range, held: range) -> list[list[bool]]:
    allowed = rule.allowed(torch.tensor(list(asking)), torch.tensor(list(held)))
    return [[True] * len(held)] * len(asking) if allowed is None else allowed.tolist()


@rules
def test_every_pair_of_rows_is_as_the_rule_says(rule: MaskRule) -> None:
    every = range(LENGTH)
    expected = [[sees(rule, asking, held) for held in every] for asking in every]
    assert _allowed(rule, every, every) == expected


def test_a_mask_written_out() -> None:
    x, o = True, False
    assert _allowed(MaskRule(causal=True, prefix=2, local=3), range(5), range(5)) == [
        [x, x, o, o, o],  # the prefix is ahead, and seen
        [x, x, o, o, o],
        [x, x, x, o, o],
        [o, x, x, x, o],
        [o, o, x, x, x],  # the prefix is too far away
    ]


@rules
def test_every_row_sees_itself(rule: MaskRule) -> None:
    assert all(sees(rule, row, row) for row in range(LENGTH))  # so that no softmax is empty
    assert all(row[place] for place, row in enumerate(_allowed(rule, range(LENGTH), range(LENGTH))))


@rules
def test_a_tile_is_left_out_exactly_if_nobody_sees_anything_in_it(rule: MaskRule) -> None:
    tiles = [range(first, last) for first in range(LENGTH) for last in range(first + 1, LENGTH + 1)]
    for asking, held in product(tiles, tiles):
        expected = any(sees(rule, row, place) for row in asking for place in held)
        assert rule.any_allowed(asking, held) == expected, (asking, held)


def test_a_mask_that_hides_nothing_is_none() -> None:
    places = torch.arange(LENGTH)
    assert EVERYTHING.allowed(places, places) is None
