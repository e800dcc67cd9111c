"""scripts/learning_curve.py labels so many incidents of each class and no more, and trains on no row that judges."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts import learning_curve as curve  # noqa: E402

FRAME = curve.read_testbed()
Training = tuple[str, dict[str, pd.DataFrame], list[str]]
"""Name of the run, rows by part, changes to the config."""
LISTED = pd.read_csv(ROOT / "data" / "testbed" / "incidents.csv")


def _runs(frame: pd.DataFrame) -> pd.DataFrame:
    """The incidents among the labelled rows, counted another way: by hand, row after row."""
    found: list[dict[str, Any]] = []
    before: tuple[Any, Any] = (None, None)
    for series, label in zip(frame["series"], frame["label"].fillna(""), strict=True):
        if (series, label) == before:
            found[-1]["rows"] += 1
        else:
            found.append({"series": series, "label": label, "rows": 1})
        before = (series, label)
    return pd.DataFrame(found)


def _incidents(frame: pd.DataFrame) -> pd.DataFrame:
    runs = _runs(frame)
    return runs[~runs["label"].isin(["", "normal"])]


def test_incidents_are_those_of_the_list() -> None:
    number = curve.incident_numbers(FRAME)
    found = FRAME[FRAME["label"] != "normal"].groupby(number)[["series", "label"]].agg(["first", "nunique"])
    assert (found.xs("nunique", axis=1, level=1) == 1).all(axis=None)
    counts = found.xs("first", axis=1, level=1).value_counts()
    pd.testing.assert_series_equal(
        counts.sort_index(), LISTED[["series", "label"]].value_counts().sort_index(), check_names=False
    )


@pytest.mark.parametrize("count", [1, 2, 8])
def test_so_many_incidents_of_each_class_are_labelled_and_the_calm_before_them(count: int) -> None:
    pool = FRAME[FRAME["series"].isin(curve.POOL)]
    found = curve.draw(pool, count, seed=3)
    assert (_incidents(found)["label"].value_counts() == count).all() and len(_incidents(found)) == 8 * count
    labelled = found["label"].notna()
    assert (found.loc[labelled, "label"] == pool.loc[labelled, "label"]).all()
    assert found.drop(columns="label").equals(pool.drop(columns="label"))
    runs = _runs(pool)
    is_known = labelled.to_numpy()[runs["rows"].cumsum() - 1]  # by the last row of each run
    assert (labelled.to_numpy() == np.repeat(is_known, runs["rows"])).all()  # whole runs, or nothing of them
    follows = np.r_[is_known[1:] & (runs["series"].to_numpy()[1:] == runs["series"].to_numpy()[:-1]), False]
    is_normal = (runs["label"] == "normal").to_numpy()
    assert (is_known[is_normal] == follows[is_normal]).all() and follows[is_normal].sum() > 4 * count


def test_seeds_draw_other_incidents_and_more_of_them_hold_the_fewer() -> None:
    pool = FRAME[FRAME["series"].isin(curve.POOL)]
    two, again, other, four = (
        curve.draw(pool, count, seed)["label"] for count, seed in ((2, 0), (2, 0), (2, 1), (4, 0))
    )
    assert two.equals(again) and not two.equals(other)
    assert two.notna().sum() < four.notna().sum() and four[two.notna()].equals(two[two.notna()])


def test_more_incidents_than_there_are_is_told() -> None:
    with pytest.raises(SystemExit, match="10 incidents of bandwidth_drop are asked for, the pool has 9"):
        curve.draw(FRAME[FRAME["series"].isin(curve.POOL)], 10, 0)


class _Calm:
    """Answers normal, to rows without a label."""

    def predict(self, frame: pd.DataFrame) -> pd.DataFrame:
        assert "label" not in frame
        self.asked = sorted(frame["series"].unique())
        return pd.DataFrame({"label": ["normal"] * len(frame)})


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> list[Training]:
    """What would have been trained on what; no training takes place."""
    told: list[Training] = []

    def train(_: Path, frames: dict[str, pd.DataFrame], *, overrides: list[str], overwrite: bool) -> _Calm:
        (place,) = re.findall(r'^run_dir="(.*)"$', "\n".join(overrides), re.MULTILINE)
        Path(place).mkdir(exist_ok=overwrite)
        told.append((Path(place).name, frames, overrides))
        return _Calm()

    monkeypatch.setattr(curve, "train", train)
    monkeypatch.setattr(curve, "load", lambda _: _Calm())
    return told


def _given(frames: dict[str, pd.DataFrame]) -> set[str]:
    """The links with a labelled row."""
    return {link for frame in frames.values() for link in frame[frame["label"].notna()]["series"]}


def _seed(overrides: list[str]) -> str:
    return next(one.removeprefix("seed=") for one in overrides if one.startswith("seed="))


def test_nothing_of_the_judging_links_is_in_a_training(trainings: list[Training], tmp_path: Path) -> None:
    lab = curve.Lab(FRAME, tmp_path, ("threads=1",))
    for count in (0, 2):
        scores = curve.point(lab, count, [0, 1], 1e-4)
        ways = (curve.FROM_BUNDLE, curve.FROM_SCRATCH, curve.FROM_BOTH)[: 2 if count == 0 else 3]
        assert {name: len(values) for name, values in scores.items()} == dict.fromkeys(ways, 2)
    assert [place for place, _, _ in trainings] == ["start0", "start1", *["adapted", "scratch", "both"] * 2]
    for place, frames, overrides in trainings:
        assert set(frames) == {"train", "validation"} and _given(frames) <= {*curve.KNOWN, *curve.POOL}
        assert not any(frame["series"].isin(curve.JUDGES).any() for frame in frames.values())
        assert not set(frames["train"].index) & set(frames["validation"].index)
        if place.startswith("start"):
            assert set(frames["train"]["series"]) == set(curve.KNOWN)
            assert set(frames["train"]["label"]) == set(FRAME["label"])
        else:
            of_pool = frames["train"][~frames["train"]["series"].isin(curve.KNOWN)]
            assert (len(of_pool) < len(frames["train"])) == (place == "both")
            assert set(of_pool["series"]) == set(curve.POOL)
            assert (_incidents(of_pool)["label"].value_counts() == 2).all()
        own = {"training.learning_rate=0.0001", f'training.init_from="{tmp_path / f"start{_seed(overrides)}"}"'}
        assert own & set(overrides) == (own if place == "adapted" else set())


def test_rates_are_chosen_within_the_pool(
    trainings: list[Training], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(
        _Calm, "predict", lambda _, rows: (asked.extend(rows["series"].unique()), rows.assign(label="x"))[1]
    )
    found = curve.compare_rates(curve.Lab(FRAME, tmp_path, ()), [1e-3, 1e-4], [0, 1, 6, 7], [0])
    assert {rate: list(scores) for rate, scores in found.items()} == {1e-3: [1, 6], 1e-4: [1, 6]}  # 7 are too many
    assert set(asked) == {"a06"}
    assert all(
        not frame["series"].isin(["a06", "a07", "a08"]).any() for _, frames, _ in trainings for frame in frames.values()
    )


def test_the_rate_that_is_best_on_average_is_taken() -> None:
    found = {
        1e-2: {1: [0.9, 0.3], 4: [0.2, 0.2]},
        1e-3: {1: [0.5, 0.5], 4: [0.5, 0.5]},
        1e-4: {1: [0.6, 0.6], 4: [0.3, 0.3]},
    }
    assert curve.best_rate(found) == 1e-3
    lines = curve.as_table_of_rates(found).splitlines()
    assert lines[0].endswith("| 1 | 4 |") and lines[2] == "| 0.01 | 0.600 ± 0.424 | 0.200 ± 0.000 |"
    with pytest.raises(SystemExit, match="with 1 to 6 incidents"):
        curve.compare_rates(curve.Lab(FRAME, Path(), ()), [1e-3, 1e-4], [0, 8], [0])


def test_the_table_has_mean_and_spread() -> None:
    scores = {curve.FROM_BUNDLE: [0.5, 0.7], curve.FROM_SCRATCH: [0.1, 0.1], curve.FROM_BOTH: [0.9, 0.9]}
    lines = curve.as_table({0: scores, 4: scores}, 1e-3).splitlines()
    assert lines[0].startswith("| labelled incidents per class | from the bundle (rate 0.001) | from random weights | ")
    assert lines[2:] == [
        "| 0 | 0.600 ± 0.141 | 0.100 ± 0.000 (always `normal`) | |",
        "| 4 | 0.600 ± 0.141 | 0.100 ± 0.000 | 0.900 ± 0.000 |",
    ]
