"""Several classifiers that answer as one."""

from __future__ import annotations

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
