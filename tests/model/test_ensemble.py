"""Several classifiers that answer as one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from classifiers import CHANNELS, CLASSES, classifier, stirred
from netanomaly.model.ensemble import Ensemble

VIEWS = [None, [0, 2], [1]]


def _ensemble(views: list[list[int] | None] = VIEWS) -> Ensemble:
    members = [
        stirred(classifier(channels=CHANNELS if view is None else len(view), seed=number), seed=number + 1)
        for number, view in enumerate(views)
    ]
    return Ensemble(members, views).eval()


def _rows(model: Ensemble, targets: int = 9) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    rows = model.history_rows + targets
    return torch.randn(2, rows, CHANNELS, generator=draw), torch.rand(2, rows, generator=draw) > 0.1


def test_the_answer_is_the_mean_of_the_members_probabilities() -> None:
    model = _ensemble()
    channels, valid = _rows(model)
    seen = [channels, channels[..., [0, 2]], channels[..., [1]]]
    wanted = [member(some, valid).softmax(-1) for member, some in zip(model.members, seen, strict=True)]
    torch.testing.assert_close(model(channels, valid).exp(), torch.stack(wanted).mean(0))
    assert model(channels, valid).shape == (2, 9, CLASSES)


def test_one_member_answers_for_itself() -> None:
    model = _ensemble([None])
    channels, valid = _rows(model)
    assert torch.equal(model(channels, valid), model.members[0](channels, valid))


def test_a_stride_leaves_out_rows() -> None:
    model = _ensemble()
    channels, valid = _rows(model)
    torch.testing.assert_close(model(channels, valid, 4), model(channels, valid)[:, ::4])


def test_what_a_member_does_not_see_changes_nothing() -> None:
    model = _ensemble([[0, 2], [0]])
    channels, valid = _rows(model)
    other = channels.clone()
    other[..., 1] += 5
    assert torch.equal(model(channels, valid), model(other, valid))


@pytest.mark.parametrize("views", [VIEWS, [None], [[0], [0, 1]]])
def test_row_by_row_it_gives_the_same(views: list[list[int] | None]) -> None:
    model = _ensemble(views)
    channels, valid = _rows(model)
    wanted = model(channels, valid)  # (2, 9, K)
    window, kernel = model.members[0].sequence_model.window, model.kernel
    embedded = [
        model.embed(channels[:, t - kernel + 1 : t + 1], valid[:, t - kernel + 1 : t + 1])
        for t in range(kernel - 1, channels.shape[1])
    ]
    kept = torch.stack([model.remember(row) for row in embedded], dim=1)  # (2, 9 + L - 1, M R)
    for target in range(9):
        held = valid[:, kernel - 1 :][:, target : target + window]
        found = model.recall(embedded[target + window - 1], kept[:, target : target + window], held)
        torch.testing.assert_close(found, wanted[:, target], rtol=1e-5, atol=1e-5)


def test_views_follow_from_the_config_and_are_no_weights() -> None:
    assert all(name.startswith("members.") for name in _ensemble().state_dict())


def test_the_order_of_the_members_does_not_matter() -> None:
    model = _ensemble()
    channels, valid = _rows(model)
    members, views = list(model.members)[::-1], VIEWS[::-1]
    turned = Ensemble(members, views).eval()
    torch.testing.assert_close(turned(channels, valid), model(channels, valid), rtol=1e-5, atol=1e-6)
    assert not torch.allclose(model.members[0](channels, valid).softmax(-1), model(channels, valid).exp(), atol=1e-3)


def test_members_that_are_all_too_sure_give_finite_logits() -> None:
    """A probability that a float32 cannot hold is small, not zero: its logarithm stays a number."""
    model = _ensemble([None, None])
    with torch.no_grad():
        for member in model.members:
            member.head.weight *= 1e4
    found = model(*_rows(model))
    assert found.min() < -200
    assert found.isfinite().all()
    torch.testing.assert_close(found.exp().sum(-1), torch.ones(found.shape[:-1]))


@pytest.mark.parametrize(
    "choices",
    [
        {"stem": 1, "row_layer": False},
        {"stem": 12, "window": 4},
        {"read_out": "mean", "depth": 2},
        {"memory": "blocks", "depth": 2},
        {"read_out": "attention", "patch": 2, "window": 8},
        {"read_out": "cls", "positions": {"kind": "relative_key", "reach": 3}},
    ],
    ids=str,
)
def test_row_by_row_it_gives_the_same_for_every_sequence_model(choices: dict[str, Any]) -> None:
    """Members with a view each, in double precision."""
    members = [
        stirred(classifier(channels=CHANNELS if view is None else len(view), seed=number, **choices), seed=number)
        for number, view in enumerate(VIEWS)
    ]
    model = Ensemble(members, VIEWS).double().eval()
    channels, valid = (rows[:1] for rows in _rows(model, targets=4))
    wanted, kernel = model(channels.double(), valid), model.kernel
    window = model.history_rows - kernel + 2
    rows = [(channels[:, t : t + kernel].double(), valid[:, t : t + kernel]) for t in range(window + 3)]
    embedded = [model.embed(*row) for row in rows]
    kept = torch.stack([model.remember(row) for row in embedded], dim=1)
    for target in range(4):
        held = valid[:, kernel - 1 :][:, target : target + window]
        found = model.recall(embedded[target + window - 1], kept[:, target : target + window], held)
        torch.testing.assert_close(found, wanted[:, target], rtol=1e-9, atol=1e-9)
