"""Training that starts from a bundle: which of its members, and what class weights do to classes that have no rows."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from netanomaly import load, train
from netanomaly.errors import ConfigError
from netanomaly.model.ensemble import Ensemble
from netanomaly.training import trainer
from networks import network, settings

OTHER = network(seed=1)
QUICK = {"epochs": 1}


def _started(run_dir: Path, bundle: Path, training: dict[str, Any] | None = None, **sections: Any) -> dict[str, Any]:
    tree = settings(run_dir, training={**QUICK, **(training or {}), "init_from": str(bundle)})
    return {**{key: tree[key] for key in ("run_dir", "device", "training", "data")}, **sections}


@pytest.fixture
def no_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainer, "fit", lambda *_, **__: trainer.Outcome(1, 0.0, 1, 0.0))


@pytest.mark.usefixtures("no_steps")
def test_members_that_do_not_see_the_levels_may_be_taken_alone(tmp_path: Path) -> None:
    both = train(settings(tmp_path / "old", model={"members": 2}), frames=network())  # levels: both
    found = train(_started(tmp_path / "new", tmp_path / "old", channels={"levels": "hidden"}), frames=OTHER)
    assert (found.config.channels.levels, found.config.model.members) == ("hidden", 2)
    alone = Ensemble(list(both.model.members)[:2], [both.model.view_0.tolist()] * 2)
    assert all(torch.equal(weight, found.model.state_dict()[name]) for name, weight in alone.state_dict().items())
    pd.testing.assert_frame_equal(load(tmp_path / "new").predict(OTHER), found.predict(OTHER))
    assert not found.predict(OTHER).equals(both.predict(OTHER))


@pytest.mark.parametrize(("trained", "wanted"), [("hidden", "both"), ("seen", "hidden"), ("hidden", "seen")])
def test_other_members_than_there_are_cannot_be_taken(tmp_path: Path, trained: str, wanted: str) -> None:
    train(settings(tmp_path / "old", channels={"levels": trained}, training=QUICK), frames=network())
    with pytest.raises(ConfigError, match=f"channels.levels: {wanted} is given, .* has {trained}"):
        train(_started(tmp_path / "new", tmp_path / "old", channels={"levels": wanted}), frames=OTHER)


@pytest.mark.usefixtures("no_steps")
@pytest.mark.parametrize(
    ("trained", "wanted", "told"),
    [
        ("both", "auto", "channels.levels: hidden takes those that do not"),
        ("seen", "auto", "it has none that do not"),
        ("both", "hidden", None),
        ("hidden", "auto", None),
    ],
)
def test_levels_of_another_network_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, trained: str, wanted: str, told: str | None
) -> None:
    train(settings(tmp_path / "old", channels={"levels": trained}), frames=network())
    with caplog.at_level(logging.WARNING):
        train(_started(tmp_path / "new", tmp_path / "old", channels={"levels": wanted}), frames=OTHER)
    words = [record.message for record in caplog.records if "see the levels" in record.message]
    assert len(words) == (told is not None) and all(str(told) in word for word in words)


def test_a_class_without_rows_is_not_raised_by_class_weights(tmp_path: Path) -> None:
    train(settings(tmp_path / "old"), frames=network())
    rows = OTHER.assign(label=OTHER["label"].replace("congestion", "normal"))
    recipe = {"epochs": 8, "class_weights": "balanced"}
    found = train(_started(tmp_path / "new", tmp_path / "old", recipe), frames=rows)
    assert "congestion" in found.classes
    before = load(tmp_path / "old").predict(rows)
    assert found.predict(rows)["p_congestion"].mean() < before["p_congestion"].mean()


def test_models_that_choose_among_members_are_on_the_device_of_the_members(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a CPU nothing fails where this is forgotten: so it is looked at."""
    moved: list[Ensemble] = []
    move = Ensemble.to

    def to(self: Ensemble, *arguments: Any, **keywords: Any) -> Any:
        moved.append(self)
        return move(self, *arguments, **keywords)

    scored: list[torch.nn.Module] = []
    monkeypatch.setattr(Ensemble, "to", to)
    monkeypatch.setattr(
        "netanomaly.labelled_rows.LabelledRows.score", lambda _rows, model, _device, *_: scored.append(model) or 0.5
    )
    train(settings(tmp_path / "run", training=QUICK), frames=network())
    ensembles = [model for model in scored if isinstance(model, Ensemble)]
    assert len(ensembles) == 3 and all(any(model is one for one in moved) for model in ensembles)
