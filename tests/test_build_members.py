"""How far each member looks back, and that members of different reach answer as one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from netanomaly.build_members import build_model
from netanomaly.config import parse_config
from netanomaly.model.ensemble import Ensemble

CHANNELS, CLASSES = 6, 4


def _model(**model: Any) -> Ensemble:
    shape = {"window": 8, "stem": 6, "width": 8, "dropout": 0.0, **model}
    return build_model(
        parse_config(
            {
                "data": {"files": "x.csv", "label": "label", "metrics": ["a"], "interval": "1s"},
                "channels": {"baselines": 4, "levels": "seen"},
                "model": shape,
            }
        ),
        CHANNELS,
        CLASSES,
    ).eval()


def _sights(model: Ensemble) -> list[tuple[int, int]]:
    return [(member.sequence_model.window, member.encoder.kernel) for member in model.members]


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        ({"members": 5, "short_windows": [4, 2]}, [(8, 6), (4, 2), (2, 1), (8, 6), (4, 2)]),
        ({"members": 3, "short_windows": []}, [(8, 6)] * 3),
        ({"members": 3}, [(8, 6), (8, 4), (2, 1)]),
        ({"members": 3, "window": 1, "stem": 1}, [(1, 1)] * 3),
        ({"members": 2, "short_windows": 40}, [(8, 6), (8, 4)]),
        ({"members": 2, "short_windows": 5, "stem": 1}, [(8, 1), (5, 1)]),
        ({"members": 3, "short_windows": [3, 1], "sequence_model": {"patch": 2}}, [(8, 6), (4, 2), (2, 1)]),
    ],
)
def test_members_take_turns_with_windows_and_none_is_longer_than_the_first(
    shape: dict[str, Any], wanted: list[tuple[int, int]]
) -> None:
    assert _sights(_model(**shape)) == wanted


def test_what_reaches_over_a_short_window_reaches_over_all_of_it() -> None:
    choice = {"depth": 2, "memory": "blocks", "local": 5, "mask": "prefix", "prefix": 3}
    model = _model(members=2, short_windows=2, read_out="mean", sequence_model=choice)
    assert _sights(model) == [(8, 6), (2, 1)]


def test_the_answer_is_the_mean_of_the_members_each_with_its_own_rows() -> None:
    torch.manual_seed(0)
    model = _model(members=3, short_windows=[3, 1])
    rows = 5
    channels = torch.randn(2, model.history_rows + rows, CHANNELS)
    valid = torch.rand(2, model.history_rows + rows) > 0.2
    answers = []
    for member in model.members:
        own = member.history_rows + rows
        answers.append(member(channels[:, -own:], valid[:, -own:]).softmax(-1))
    mean = torch.stack(answers).mean(0).log()
    torch.testing.assert_close(model(channels, valid), mean, rtol=1e-5, atol=1e-5)
    assert model.history_rows == max(member.history_rows for member in model.members) == 12


def test_a_short_member_does_not_see_older_rows() -> None:
    torch.manual_seed(0)
    model = _model(members=2, short_windows=2)
    short = model.members[1]
    channels, valid = torch.randn(1, model.history_rows + 1, CHANNELS), torch.ones(1, model.history_rows + 1).bool()
    other = channels.clone()
    other[:, :-2] += 1.0
    alone = Ensemble([short], [None])
    assert alone.history_rows == 1
    both, changed = (
        model(rows, valid).exp() * 2 - model.members[0](rows, valid).softmax(-1) for rows in (channels, other)
    )
    torch.testing.assert_close(both, changed, rtol=0, atol=1e-6)
    assert not torch.allclose(model(channels, valid), model(other, valid), rtol=0, atol=1e-6)
