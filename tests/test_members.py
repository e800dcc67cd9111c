"""Members of the model: how many, which see the levels, and that no choice knows of the test rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from netanomaly import load, train
from netanomaly.config import parse_config
from netanomaly.errors import ConfigError, TrainingError
from netanomaly.labelled_rows import LabelledRows
from netanomaly.members import MARGIN, Levels, preferred
from netanomaly.model.ensemble import Ensemble
from netanomaly.training import trainer
from networks import link, network, settings

QUICK = {"epochs": 2}


def _train(directory: Path, frame: pd.DataFrame | None = None, **sections: Any) -> Any:
    chosen = settings(directory / "run", **{"training": QUICK, **sections})
    return train(chosen, frames=network() if frame is None else frame, overwrite=True)


def _weights(predictor: Any) -> dict[str, torch.Tensor]:
    return dict(predictor.model.state_dict())


@pytest.mark.parametrize(
    ("scores", "wanted"),
    [
        ({"hidden": 0.7, "seen": 0.6, "both": 0.7}, "both"),
        ({"hidden": 0.7, "seen": 0.6, "both": 0.7 - MARGIN + 1e-9}, "both"),
        ({"hidden": 0.7, "seen": 0.6, "both": 0.7 - MARGIN - 1e-9}, "hidden"),
        ({"hidden": 0.5, "seen": 0.8, "both": 0.6}, "seen"),
        ({"seen": 0.1}, "seen"),
    ],
)
def test_one_kind_has_to_be_clearly_better_to_be_alone(scores: dict[Levels, float], wanted: Levels) -> None:
    assert preferred(scores) == wanted


@pytest.mark.parametrize(
    ("levels", "members", "sees"),
    [("seen", 2, [True, True]), ("hidden", 2, [False, False]), ("both", 2, [False, False, True, True])],
)
def test_so_many_members_see_so_much(tmp_path: Path, levels: str, members: int, sees: list[bool]) -> None:
    predictor = _train(tmp_path, channels={"levels": levels}, model={"members": members})
    assert isinstance(predictor.model, Ensemble)
    widths = [member.encoder.row_layer.in_features for member in predictor.model.members]
    assert [width == predictor.channels.count for width in widths] == sees
    assert {width for width, all_of_it in zip(widths, sees, strict=True) if not all_of_it} <= {15}  # 5 kinds, 3 metrics
    assert len(predictor.facts["training"]["members"]) == len(sees)
    assert (predictor.config.channels.levels, predictor.config.model.members) == (levels, members)
    pd.testing.assert_frame_equal(load(tmp_path / "run").predict(link("x")), predictor.predict(link("x")))


def _with_misleading_levels(rows: int = 400) -> pd.DataFrame:
    """What an anomaly does is the same everywhere; where a metric stands tells it on the links to learn from only."""
    links = []
    for number, name in enumerate("abcdef"):
        rng = np.random.default_rng(number)
        is_odd = (np.arange(rows) // 20) % 2 == 1
        level = 10.0 if name in "abcd" else 1000.0
        rtt = level * np.where(is_odd & (np.arange(rows) % 2 == 0), 1.3, 1.0) * rng.lognormal(0, 0.01, rows)
        links.append(
            pd.DataFrame(
                {
                    "timestamp": pd.date_range("2026-03-01", periods=rows, freq="s", tz="UTC").strftime(
                        "%Y-%m-%dT%H:%M:%SZ"
                    ),
                    "link": name,
                    "rtt_ms": rtt,
                    "throughput_bps": level * 1e6,
                    "loss_ratio": level / 1e5,
                    "label": np.where(is_odd, "odd", "normal"),
                }
            )
        )
    return pd.concat(links, ignore_index=True)


def test_auto_takes_what_validation_prefers(tmp_path: Path) -> None:
    predictor = _train(tmp_path, channels={"levels": "auto"})
    scores = predictor.facts["training"]["levels"]
    assert set(scores) == {"hidden", "seen", "both"}
    chosen = predictor.config.channels.levels
    assert scores[chosen] >= max(scores.values()) - MARGIN
    assert predictor.facts["training"]["validation_macro_f1"] == scores[chosen]


def test_levels_that_mislead_are_hidden(tmp_path: Path) -> None:
    found = _train(
        tmp_path, _with_misleading_levels(), channels={"levels": "auto"}, training={"epochs": 12, "jitter": 0.0}
    )
    scores = found.facts["training"]["levels"]
    assert scores["hidden"] > scores["seen"] + 0.1
    assert found.config.channels.levels in ("hidden", "both")


def test_metrics_are_hidden_while_members_learn(tmp_path: Path) -> None:
    """With most of them hidden training comes to other weights, in members that see the levels and in others."""
    pairs = [
        _train(tmp_path / str(share), channels={"levels": "both"}, training={"epochs": 1, "metric_dropout": share})
        for share in (0.0, 0.9)
    ]
    heads = [[member.head.weight for member in found.model.members] for found in pairs]  # type: ignore[union-attr]
    assert all(not torch.equal(one, other) for one, other in zip(*heads, strict=True))


def test_without_levels_among_the_kinds_there_is_nothing_to_choose(tmp_path: Path) -> None:
    chosen = settings(tmp_path / "run", training=QUICK, channels={"kinds": ["deviation", "change"]})
    chosen["channels"]["levels"] = "auto"
    predictor = train(chosen, frames=network())
    assert set(predictor.facts["training"]["levels"]) == {"seen"}
    chosen["channels"]["levels"] = "hidden"
    with pytest.raises(ConfigError, match="levels: hidden needs in kinds a level"):
        parse_config(chosen)


def test_members_are_trained_from_other_draws_and_the_seed_gives_all_of_them(tmp_path: Path) -> None:
    two, again = (_weights(_train(tmp_path, model={"members": 2}, channels={"levels": "hidden"})) for _ in range(2))
    assert all(torch.equal(two[name], again[name]) for name in two)
    first, second = (two[f"members.{number}.encoder.convolution.weight"] for number in (0, 1))
    assert not torch.equal(first, second)
    chosen = settings(tmp_path / "run", training=QUICK, model={"members": 2}, channels={"levels": "hidden"})
    other = _weights(train({**chosen, "seed": 1}, frames=network(), overwrite=True))
    firsts = {number: other[f"members.{number}.encoder.convolution.weight"] for number in (0, 1)}
    assert not any(torch.equal(found, mine) for found in firsts.values() for mine in (first, second))


def test_no_two_members_share_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the weights that they start from nor the numbers that are drawn while they learn."""
    fit, started = trainer.fit, []

    def spy(model: Any, *given: Any, **named: Any) -> trainer.Outcome:
        started.append((model.head.weight.flatten()[0].item(), torch.get_rng_state().sum().item()))
        return fit(model, *given, **named)

    monkeypatch.setattr(trainer, "fit", spy)
    for seed in (0, 1):
        chosen = settings(tmp_path / "run", training={"epochs": 1}, model={"members": 2}, channels={"levels": "both"})
        train({**chosen, "seed": seed}, frames=network(), overwrite=True)
    assert len({weight for weight, _ in started}) == len({draws for _, draws in started}) == 8


def test_the_first_member_does_not_depend_on_how_many_follow(tmp_path: Path) -> None:
    one, three = (
        _weights(_train(tmp_path, model={"members": members}, channels={"levels": "hidden"})) for members in (1, 3)
    )
    assert all(torch.equal(one[name], three[name]) for name in one)


@pytest.mark.parametrize("place", [0, 1, 2, 3])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), TrainingError("nan")])
def test_stopped_early_whole_members_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int, error: BaseException
) -> None:
    """Four members: two that do not see the levels, two that do; stopped in one of them, before an epoch is over."""
    fit, calls = trainer.fit, []

    def stopped(*given: Any, **named: Any) -> trainer.Outcome:
        calls.append(None)
        if len(calls) == place + 1:
            raise error
        return fit(*given, **named)

    monkeypatch.setattr(trainer, "fit", stopped)
    with pytest.raises(type(error)):
        _train(tmp_path, channels={"levels": "both"}, model={"members": 2})
    if place == 0:
        assert not (tmp_path / "run" / "manifest.json").exists()
        return
    predictor = load(tmp_path / "run")
    assert (predictor.config.channels.levels, predictor.config.model.members) == ("hidden", 1 if place == 1 else 2)
    assert predictor.predict(link("x"))["label"].notna().all()


def test_a_first_member_that_was_stopped_after_an_epoch_is_kept_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = trainer.fit

    def stopped(model: Any, *given: Any, **named: Any) -> trainer.Outcome:
        found = fit(model, *given, **named)
        return trainer.Outcome(1, found.validation_macro_f1, 1, found.seconds, KeyboardInterrupt())

    monkeypatch.setattr(trainer, "fit", stopped)
    with pytest.raises(KeyboardInterrupt):
        _train(tmp_path, channels={"levels": "both"}, model={"members": 2})
    assert load(tmp_path / "run").config.model.members == 1


def _spoilt(frame: pd.DataFrame, rows: pd.Series) -> pd.DataFrame:
    """With other values and labels in the rows."""
    other = frame.copy()
    rng = np.random.default_rng(9)
    for metric in ("rtt_ms", "throughput_bps", "loss_ratio"):
        other.loc[rows, metric] = rng.lognormal(3, 2, int(rows.sum()))
    other.loc[rows, "label"] = rng.choice(sorted(set(frame["label"])), int(rows.sum()))
    return other


AUTO = {"channels": {"baselines": ["auto"], "levels": "auto"}, "model": {"window": "auto", "stem": "auto"}}


@pytest.mark.parametrize("by", ["series", "time"])
def test_nothing_is_chosen_on_test_rows(tmp_path: Path, by: str) -> None:
    """Weights, spans, levels, channels: all as before where the test rows hold something else."""
    frame = network()
    if by == "series":
        split: dict[str, Any] = {"by": "series", "validation": ["e"], "test": ["f"]}
        test = frame["link"] == "f"
    else:
        moments = pd.to_datetime(frame["timestamp"])
        first, last = moments.min(), moments.max()
        validation, start = first + 0.5 * (last - first), first + 0.75 * (last - first)
        split = {"by": "time", "validation": validation.isoformat(), "test": start.isoformat(), "purge": 0}
        test = moments >= start
    assert 0 < test.sum() < len(frame)
    found = [_train(tmp_path, rows, data={"split": split}, **AUTO) for rows in (frame, _spoilt(frame, test))]
    one, other = (json.loads(json.dumps(predictor.channels.state())) for predictor in found)
    assert one == other
    assert found[0].config == found[1].config
    assert found[0].facts["training"]["levels"] == found[1].facts["training"]["levels"]
    before, after = (_weights(predictor) for predictor in found)
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    evaluations = json.loads((tmp_path / "run" / "evaluation.json").read_text(encoding="utf-8"))
    assert evaluations["macro_f1"] < 0.9  # they were other rows indeed


def _scored(monkeypatch: pytest.MonkeyPatch, given: dict[str, float]) -> None:
    """Validation scores by what a model sees, in the place of real ones."""

    def score(_rows: Any, model: Any, _device: torch.device, *_: Any) -> float:
        if not isinstance(model, Ensemble):
            return 0.5
        hides = [getattr(model, f"view_{number}") is not None for number in range(len(model.members))]
        return given["both" if len(set(hides)) == 2 else "hidden" if hides[0] else "seen"]

    monkeypatch.setattr("netanomaly.labelled_rows.LabelledRows.score", score)


@pytest.mark.parametrize(
    ("scores", "levels", "sees"),
    [
        ({"hidden": 0.9, "seen": 0.2, "both": 0.8}, "hidden", [False, False]),
        ({"hidden": 0.2, "seen": 0.9, "both": 0.8}, "seen", [True, True]),
        ({"hidden": 0.805, "seen": 0.2, "both": 0.8}, "both", [False, False, True, True]),
    ],
)
def test_the_members_that_validation_prefers_are_kept_as_they_were_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scores: dict[str, float], levels: str, sees: list[bool]
) -> None:
    all_of_them = _weights(_train(tmp_path, channels={"levels": "both"}, model={"members": 2}))
    _scored(monkeypatch, scores)
    found = _train(tmp_path, channels={"levels": "auto"}, model={"members": 2})
    assert (found.config.channels.levels, found.config.model.members) == (levels, 2)
    assert found.facts["training"]["levels"] == scores
    assert found.facts["training"]["validation_macro_f1"] == scores[levels]
    first = 2 if levels == "seen" else 0
    renamed = {
        name.replace(name[:9], f"members.{int(name[8]) + first}"): weight for name, weight in _weights(found).items()
    }
    assert {int(name[8]) for name in renamed} == set(range(first, first + len(sees)))
    assert all(torch.equal(weight, all_of_them[name]) for name, weight in renamed.items())
    assert [getattr(found.model, f"view_{number}") is None for number in range(len(sees))] == sees
    pd.testing.assert_frame_equal(load(tmp_path / "run").predict(link("x")), found.predict(link("x")))


def test_in_one_network_levels_are_seen(tmp_path: Path) -> None:
    """What stands high is odd, for much longer than the baseline: only where it stands tells the two apart."""
    frame = network("ab", 600)
    odd = (np.arange(len(frame)) // 100) % 2 == 1
    frame["label"] = np.where(odd, "odd", "normal")
    noise = np.random.default_rng(0).lognormal(0, 0.05, len(frame))
    for metric in ("rtt_ms", "throughput_bps", "loss_ratio"):
        frame[metric] = noise * np.where(odd, 1.5, 1.0)
    split = {"by": "time", "validation": "2026-03-01T00:04:00Z", "test": "2026-03-01T00:07:00Z", "purge": 0}
    seen, learn = {"levels": "auto", "baselines": [12]}, {"epochs": 10, "jitter": 0.0}
    found = _train(tmp_path, frame, data={"split": split}, channels=seen, training=learn)
    scores = found.facts["training"]["levels"]
    assert scores["seen"] > scores["hidden"] + 0.1
    assert found.config.channels.levels in ("seen", "both")


@pytest.mark.parametrize(
    ("levels", "epoch", "kept"),
    [
        ("both", 2, 1),
        pytest.param("auto", 3, 1, marks=pytest.mark.slow),
        pytest.param("both", 4, 1, marks=pytest.mark.slow),
        pytest.param("auto", 5, 2, marks=pytest.mark.slow),
        pytest.param("both", 6, 2, marks=pytest.mark.slow),
        ("auto", 8, 2),
    ],
)
def test_interrupted_at_any_epoch_whole_members_of_the_first_kind_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, levels: str, epoch: int, kept: int
) -> None:
    """Four members of two epochs each; Ctrl-C as the epoch, counted over all of them, is scored."""
    undisturbed = _weights(_train(tmp_path, channels={"levels": "both"}, model={"members": 2}))
    score, calls = LabelledRows.score, []

    def interrupted(rows: Any, *given: Any) -> float:
        calls.append(None)
        if len(calls) == epoch:
            raise KeyboardInterrupt
        return score(rows, *given)

    monkeypatch.setattr(LabelledRows, "score", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _train(tmp_path, channels={"levels": levels}, model={"members": 2})
    found = load(tmp_path / "run")
    assert (found.config.channels.levels, found.config.model.members) == ("hidden", kept)
    assert set(found.facts["training"]["levels"]) == {"hidden"}
    assert [member["kept_epoch"] for member in found.facts["training"]["members"]] == [1 if epoch == 2 else 2] * kept
    same = [torch.equal(weight, undisturbed[name]) for name, weight in _weights(found).items()]
    assert all(same) == (epoch > 2)
    assert np.isfinite(found.predict(link("x"))["confidence"].dropna()).all()


def test_the_callers_draws_are_left_alone(tmp_path: Path) -> None:
    before = torch.manual_seed(77).get_state()  # none that an earlier training may have left
    _train(tmp_path, model={"members": 2})
    assert torch.equal(torch.get_rng_state(), before)
