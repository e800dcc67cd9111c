"""What must not be learnt: nothing from rows that are held out, and nothing where there is nothing to learn."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from netanomaly import load, train
from netanomaly.bundle import load_bundle
from netanomaly.predictor import Predictor
from netanomaly.scoring import evaluate
from networks import METRICS, network, settings

Change = Callable[[pd.DataFrame, pd.Series], pd.DataFrame]


def _evaluation(directory: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((directory / "evaluation.json").read_text())
    return report


def _shuffled(frame: pd.DataFrame, links: str) -> pd.DataFrame:
    """The labels of these links dealt out again among all of their rows."""
    rows = frame["link"].isin(list(links))
    labels = frame["label"].copy()
    labels[rows] = np.random.default_rng(0).permutation(labels[rows])
    return frame.assign(label=labels)


@pytest.mark.parametrize("seed", [0, 1])
def test_shuffled_labels_teach_nothing_and_true_ones_a_lot(tmp_path: Path, seed: int) -> None:
    frame = network(seed=seed)
    scores = {}
    for name, given in (("true", frame), ("shuffled", _shuffled(frame, "abcde"))):
        train(settings(tmp_path / name), frames=given, overrides=[f"seed={seed}"])
        scores[name] = _evaluation(tmp_path / name)["macro_f1"]
    assert scores["true"] > 0.9
    assert scores["shuffled"] < 0.4  # guessing among three classes


@pytest.mark.parametrize("baseline", ["logistic_regression", "majority"])
def test_shuffled_labels_teach_the_baselines_nothing(tmp_path: Path, baseline: str) -> None:
    train(settings(tmp_path / "run", training={"epochs": 1}), frames=_shuffled(network(), "abcde"))
    assert _evaluation(tmp_path / "run")["baselines"][baseline]["macro_f1"] < 0.4


def _other_values(frame: pd.DataFrame, held_out: pd.Series) -> pd.DataFrame:
    changed = frame.copy()
    changed.loc[held_out, list(METRICS)] = changed.loc[held_out, list(METRICS)] * 1e6 + 5
    return changed


def _other_labels(frame: pd.DataFrame, held_out: pd.Series) -> pd.DataFrame:
    return frame.assign(label=frame["label"].mask(held_out, "flood"))


def _no_values(frame: pd.DataFrame, held_out: pd.Series) -> pd.DataFrame:
    changed = frame.copy()
    changed.loc[held_out, list(METRICS)] = np.nan
    return changed


BY_SERIES = {"by": "series", "validation": ["b"], "test": ["f"]}
BY_TIME = {"by": "time", "validation": "2026-03-01T00:02:30Z", "test": "2026-03-01T00:04:30Z"}


@pytest.mark.parametrize("change", [_other_values, _other_labels, _no_values])
@pytest.mark.parametrize("split", [BY_SERIES, BY_TIME], ids=["series", "time"])
def test_test_rows_change_nothing_in_the_bundle(tmp_path: Path, split: dict[str, Any], change: Change) -> None:
    frame = network("abf", rows=360)
    held_out = frame["link"] == "f" if split is BY_SERIES else frame["timestamp"] >= str(split["test"])
    bundles = []
    for name, given in (("before", frame), ("after", change(frame, held_out))):
        config = settings(tmp_path / name, data={"split": split}, training={"epochs": 2})
        train(config, frames=given)
        bundles.append(load_bundle(tmp_path / name))
    before, after = bundles
    assert after.classes == before.classes
    assert after.channels.state() == before.channels.state()
    assert all((after.weights[name] == weight).all() for name, weight in before.weights.items())
    assert after.facts["training"]["validation_macro_f1"] == before.facts["training"]["validation_macro_f1"]


@pytest.mark.parametrize("change", [_other_values, _other_labels])
@pytest.mark.parametrize("split", [BY_SERIES, BY_TIME], ids=["series", "time"])
def test_validation_rows_change_no_channel(tmp_path: Path, split: dict[str, Any], change: Change) -> None:
    frame = network("abf", rows=360)
    times = frame["timestamp"]
    is_validation = (times >= str(split.get("validation"))) & (times < str(split.get("test")))
    held_out = frame["link"] == "b" if split is BY_SERIES else is_validation
    states = []
    for name, given in (("before", frame), ("after", change(frame, held_out))):
        config = settings(tmp_path / name, data={"split": split}, training={"epochs": 1})
        train(config, frames=given)
        states.append(load_bundle(tmp_path / name).channels.state())
    assert states[0] == states[1]


def _random_walks(seed: int, links: int = 16, rows: int = 200) -> pd.DataFrame:
    """Walks from levels of their own; a link has one label, drawn without any regard to its values."""
    rng = np.random.default_rng(seed)
    frames = []
    for number in range(links):
        walk = rng.uniform(100, 1000, 3) + rng.standard_normal((rows, 3)).cumsum(axis=0)
        frame = network("x", rows=rows).assign(link=f"{number:02d}x", label="ab"[number % 2])
        frame[list(METRICS)] = walk
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def _accuracy(directory: Path, frame: pd.DataFrame, split: dict[str, Any], kinds: list[str]) -> float:
    """On test rows."""
    config = settings(
        directory,
        data={"split": split},
        channels={"kinds": kinds, "baselines": [16]},
        training={"epochs": 12, "jitter": 0.0},
    )
    train(config, frames=frame)
    return float(_evaluation(directory)["accuracy"])


@pytest.mark.parametrize(
    "kinds", [["deviation", "log_ratio", "spread", "change"], ["level", "deviation"]], ids="-".join
)
def test_a_label_without_any_cause_is_guessed_on_new_series(tmp_path: Path, kinds: list[str]) -> None:
    found = []
    for seed in range(3):
        frame = _random_walks(seed)
        names = sorted(set(frame["link"]))
        split = {"by": "series", "validation": names[:4], "test": names[4:10]}
        found.append(_accuracy(tmp_path / str(seed), frame, split, kinds))
    assert sum(found) / len(found) == pytest.approx(0.5, abs=0.15)


def test_a_label_without_any_cause_is_known_by_level_on_series_of_the_training(tmp_path: Path) -> None:
    """The control of the test above: the same rows leave the range of chance, 0.35 to 0.65, if links are known."""
    split = {"by": "time", "validation": "2026-03-01T00:01:30Z", "test": "2026-03-01T00:02:30Z"}
    assert _accuracy(tmp_path / "run", _random_walks(seed=2), split, ["level", "deviation"]) > 0.75


def _trained_on_shares(directory: Path) -> Predictor:
    """From a file, with series drawn for the parts."""
    network().to_csv(directory / "links.csv", index=False)
    data = {"root": str(directory), "files": ["links.csv"], "split": {"by": "series", "validation": 0.2, "test": 0.2}}
    return train(settings(directory / "run", data=data, training={"epochs": 1}))


@pytest.mark.parametrize("added", ["g", "z"])
def test_series_of_the_training_are_not_scored_when_the_files_have_grown(tmp_path: Path, added: str) -> None:
    predictor = _trained_on_shares(tmp_path)
    network("abcdef" + added + "hi").to_csv(tmp_path / "links.csv", index=False)
    scored = evaluate(load(tmp_path / "run"))["per_series"]
    assert not set(scored) & set(predictor.facts["split"]["train"]["series"])
