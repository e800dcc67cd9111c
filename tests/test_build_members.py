"""How far each member looks back, and that members of different reach answer as one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from netanomaly.build_members import build_metric_dropout, build_model, build_views
from netanomaly.config import Config, parse_config
from netanomaly.data.channels import Channels
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


def _of_two_metrics(share: float, **channels: Any) -> Config:
    data = {"files": "x.csv", "label": "label", "metrics": ["a", "b"], "interval": "1s"}
    model = {"window": 8, "stem": 3}
    return parse_config({"data": data, "channels": channels, "model": model, "training": {"metric_dropout": share}})


@pytest.mark.parametrize(
    "chosen",
    [
        {"baselines": [4, 9], "levels": "seen"},
        {"baselines": [4, 9], "levels": "hidden"},
        {"baselines": 4, "levels": "seen", "kinds": ["deviation", "log_level"]},
    ],
    ids=str,
)
def test_hidden_metrics_are_as_if_they_were_not_measured(chosen: dict[str, Any]) -> None:
    """Of two metrics one is hidden, always, with a share near 1: the channels are those of rows without it."""
    config = _of_two_metrics(0.999, **chosen)
    values = np.random.default_rng(0).lognormal(size=(40, 2))
    baselines = [rows for rows in config.channels.baselines if isinstance(rows, int)]
    channels = Channels.fit([values], [np.full(40, True)], config.channels.kinds, baselines)
    (view,) = build_views(config, channels.count)
    without = []
    for metric in (0, 1):
        missing = values.copy()
        missing[:, metric] = np.nan
        without.append(torch.from_numpy(channels(missing)[:, slice(None) if view is None else view]))
    given = torch.from_numpy(channels(values)[:, slice(None) if view is None else view])
    hide = build_metric_dropout(config, channels.count)
    assert hide is not None
    torch.manual_seed(0)
    found = hide(given.expand(30, -1, -1))
    hidden = [next(m for m in (0, 1) if torch.equal(stretch, without[m])) for stretch in found]
    assert set(hidden) == {0, 1}


def test_without_a_share_nothing_is_hidden() -> None:
    assert build_metric_dropout(_of_two_metrics(0.0, baselines=4, levels="seen"), 12) is None
