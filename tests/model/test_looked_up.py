"""What the rows of a window count in the look-ups."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from classifiers import CHANNELS, classifier, look_up_model, segment, stirred
from netanomaly.model.ensemble import Ensemble
from netanomaly.model.lookup import lookup_weights

WINDOW, WIDTH = 8, 16
CHOICES: dict[str, dict[str, Any]] = {
    "one query": {},
    "grouped, two blocks": {"n_heads": 4, "n_kv_heads": 2, "depth": 2},
    "shared weights": {"depth": 3, "share_weights": True},
    "token": {"read_out": "cls"},
    "no softmax": {"score": "distance", "normalise": "none"},
    "rotary, local": {"positions": {"kind": "rotary"}, "local": 3},
    "relative keys": {"positions": {"kind": "relative_key", "reach": 3}},
    "relative bias": {"positions": {"kind": "relative_bias", "buckets": 8, "furthest": 6}},
    "on input": {"positions": {"kind": "sinusoidal", "add_to": "input"}},
    "patches": {"patch": 2},
    "all rows ask": {"read_out": "mean"},
    "all rows ask, weighted": {"read_out": "attention", "depth": 2},
    "memory of blocks": {"memory": "blocks", "depth": 2},
}


def _rows(batch: int = 4, share: float = 0.7) -> tuple[Tensor, Tensor]:
    rows, valid = segment(batch, WINDOW, share, width=WIDTH, dtype=torch.float64)
    valid[:, -1] = True
    return rows, valid


@pytest.mark.parametrize("choice", CHOICES)
@torch.no_grad()
def test_measured_rows_share_all_that_is_looked_up(choice: str) -> None:
    model = look_up_model(window=WINDOW, width=WIDTH, **CHOICES[choice])
    rows, valid = _rows()
    shares = model.looked_up(rows, valid)
    assert shares.shape == valid.shape and (shares >= 0).all()
    assert not shares[~valid].any() and shares[valid].any()
    torch.testing.assert_close(shares.sum(1), torch.ones(4, dtype=torch.float64), rtol=0, atol=1e-12)


@torch.no_grad()
def test_of_a_token_in_the_table_the_own_share_is_left_out() -> None:
    model = look_up_model(window=WINDOW, width=WIDTH, read_out="cls", memory="blocks")
    shares = model.looked_up(*_rows())
    assert shares.shape == (4, WINDOW) and ((shares.sum(1) > 0) & (shares.sum(1) < 1)).all()


@torch.no_grad()
def test_the_shares_are_the_weights_of_the_answer() -> None:
    model = look_up_model(window=WINDOW, width=WIDTH, n_heads=1, feed_forward="none")
    (block,) = model.blocks
    rows, valid = _rows()
    values = block.attention.value(block.norm_memory(rows))  # (N, L, D)
    answer = block.attention.output(torch.einsum("nl,nld->nd", model.looked_up(rows, valid), values))
    torch.testing.assert_close(rows[:, -1] + answer, model.read(rows, valid), rtol=0, atol=1e-12)


@torch.no_grad()
def test_where_all_rows_ask_the_shares_are_the_mean_of_theirs() -> None:
    model = look_up_model(window=WINDOW, width=WIDTH, read_out="mean", mask="causal", positions={"kind": "rotary"})
    rows, valid = _rows(share=1.0)
    alone = look_up_model(window=WINDOW, width=WIDTH, read_out="mean", positions={"kind": "rotary"})
    alone.load_state_dict(model.state_dict())
    expected = torch.zeros(4, WINDOW, dtype=torch.float64)
    for newest in range(WINDOW):  # the row asks those up to itself
        question = alone.blocks[0].norm_asking(rows[:, [newest]])
        table = alone.blocks[0].norm_memory(rows[:, : newest + 1])
        weights = alone.blocks[0].attention.weights(question, table, valid[:, : newest + 1])  # (N, H, 1, newest + 1)
        expected[:, : newest + 1] += weights.mean(1)[:, 0] / WINDOW
    torch.testing.assert_close(model.looked_up(rows, valid), expected, rtol=0, atol=1e-12)


def test_a_key_like_the_query_is_looked_up_and_one_that_was_not_measured_is_not() -> None:
    query = 20 * torch.eye(4)[None, None, [2]]  # (1, 1, 1, 4)
    weights = lookup_weights(query, torch.eye(4)[None, None], torch.tensor([[True] * 4]))
    assert weights.flatten().argmax() == 2 and weights.max() > 0.99
    hidden = lookup_weights(query, torch.eye(4)[None, None], torch.tensor([[True, True, False, True]]))
    torch.testing.assert_close(hidden.flatten(), torch.tensor([1.0, 1, 0, 1]) / 3)


def _ensemble() -> Ensemble:
    members = [stirred(classifier(window=window, stem=stem, seed=window)) for window, stem in ((7, 3), (3, 1))]
    return Ensemble(members, [None, None]).eval()


@torch.no_grad()
def test_one_window_is_read_as_in_a_segment() -> None:
    model = _ensemble()
    channels, valid = segment(5, model.history_rows + 1, width=CHANNELS)
    torch.testing.assert_close(model.read(channels, valid), model(channels, valid)[:, 0])


@torch.no_grad()
def test_members_count_alike_whatever_they_see() -> None:
    model = _ensemble()
    channels, valid = segment(5, model.history_rows + 1, width=CHANNELS)
    valid[:, -1] = True
    found = model.looked_up(channels, valid)
    assert found is not None
    shares, even = found
    long, short = model.members
    first = long.sequence_model.looked_up(long.encoder(channels, valid), valid[:, -7:])
    second = short.sequence_model.looked_up(short.encoder(channels[:, -3:], valid[:, -3:]), valid[:, -3:])
    first[:, -3:] += second
    torch.testing.assert_close(shares, first / 2)
    counts = valid[:, -7:].sum(1), valid[:, -3:].sum(1)
    torch.testing.assert_close(even[:, -1], (1 / counts[0] + 1 / counts[1]) / 2)
    torch.testing.assert_close(even.sum(1), torch.ones(5))
