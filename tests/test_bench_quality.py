"""The benchmark of quality: nobody sees test labels, every test row counts once, all are scored alike."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netanomaly.config import load_config
from netanomaly.evaluation.metrics import macro_f1
from netanomaly.prepare import Prepared, prepare

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts.bench.quality_data import class_names, make_problem  # noqa: E402
from scripts.bench.quality_features import standardised, statistics, take, view, windows  # noqa: E402
from scripts.bench.quality_problem import NO_TARGET, TEST, TRAIN, VALIDATION, Problem, ProblemSegment, sample  # noqa: E402
from scripts.bench.quality_report import add, as_table, is_done, load, mean_std, ranks, save  # noqa: E402
from scripts.bench.quality_run import Machine, Skipped, ask, open_dataset, run  # noqa: E402
from scripts.bench.quality_scores import judge, labels, merged, pooled, scores  # noqa: E402
from scripts.bench.quality_search import Peer, Task, search  # noqa: E402
from scripts.bench.quality_search import macro_f1 as macro_f1_of_peers  # noqa: E402

CLASSES = ("normal", "loss", "delay")


def network(seed: int = 0) -> pd.DataFrame:
    """Three series of 80 rows with faults in all of them; a few rows unlabelled, a few missing."""
    rng = np.random.default_rng(seed)
    pieces = []
    for name in ("a", "b", "c"):
        label = np.array([CLASSES[(step // 10) % 4 % 3] for step in range(80)], dtype=object)
        metric = rng.normal(size=80) + (label == "loss") * 5 - (label == "delay") * 5
        label[rng.choice(80, 5, replace=False)] = ""
        times = pd.date_range("2026-01-01", periods=80, freq="s", tz="UTC").map(pd.Timestamp.isoformat)
        frame = pd.DataFrame({"link": name, "timestamp": times, "rtt": metric, "rate": metric[::-1], "label": label})
        pieces.append(frame.drop(index=rng.choice(80, 3, replace=False)))
    return pd.concat(pieces, ignore_index=True)


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    return prepare(
        load_config(
            {
                "data": {
                    "series": "link",
                    "metrics": ["rtt", "rate"],
                    "label": "label",
                    "interval": "1s",
                    "split": {"by": "series", "train": "a", "validation": "b", "test": "c"},
                }
            }
        ),
        network(),
    )


@pytest.fixture(scope="module")
def problem(prepared: Prepared) -> Problem:
    return make_problem(prepared, baselines=(8,))


def test_peers_get_no_label_of_a_test_row(prepared: Prepared, problem: Problem, tmp_path: Path) -> None:
    problem.save(tmp_path / "problem.npz")
    read = Problem.load(tmp_path / "problem.npz")
    test = [segment.parts == TEST for segment in read.segments]
    assert sum(mask.sum() for mask in test) == 77
    assert all((segment.targets[mask] == NO_TARGET).all() for segment, mask in zip(read.segments, test, strict=True))
    changed = [
        replace(segment, labels=np.where(parts == TEST, "delay", segment.labels))
        for segment, parts in zip(prepared.grid.segments, prepared.split.parts, strict=True)
    ]
    other = make_problem(replace(prepared, grid=replace(prepared.grid, segments=tuple(changed))), baselines=(8,))
    for one, two in zip(read.segments, other.segments, strict=True):
        np.testing.assert_array_equal(one.targets, two.targets)
        np.testing.assert_array_equal(one.channels[8], two.channels[8])


def test_a_problem_with_test_labels_is_refused(problem: Problem) -> None:
    segment = next(segment for segment in problem.segments if (segment.parts == TEST).any())
    with pytest.raises(ValueError, match="peers must not see it"):
        replace(segment, targets=np.ones_like(segment.targets))


def test_training_and_validation_rows_keep_their_labels(prepared: Prepared, problem: Problem) -> None:
    names = class_names(prepared)
    assert names == ("normal", "delay", "loss")
    for part in (TRAIN, VALIDATION):
        found = [names[number] for number in problem.targets(problem.labelled(part))]
        pairs = zip(prepared.grid.segments, prepared.labelled(part), strict=True)
        assert found == [label for segment, mask in pairs for label in segment.labels[mask]]


def test_every_labelled_test_row_is_scored_once(prepared: Prepared, problem: Problem) -> None:
    wanted = problem.wanted()
    judged = judge(prepared, CLASSES, np.eye(3)[np.arange(len(wanted)) % 3])
    table = prepared.table
    asked = (table.parts == TEST) if (table.parts >= 0).any() else table.series == "c"
    expected = np.flatnonzero(asked & (table.labels != ""))
    np.testing.assert_array_equal(judged.rows.truth, table.labels[expected])
    np.testing.assert_array_equal(judged.rows.times, table.times[expected])
    np.testing.assert_array_equal(judged.probabilities.argmax(axis=1), np.arange(len(wanted)) % 3)
    with pytest.raises(ValueError, match="were asked"):
        judge(prepared, CLASSES, np.eye(3))


def test_windows_end_in_their_row_and_repeat_the_first_row_before_the_start() -> None:
    rows = [np.arange(10, dtype=np.float32)[:, None], np.arange(100, 104, dtype=np.float32)[:, None]]
    places = np.array([[1, 1], [0, 0], [0, 9]])
    assert windows(rows, 4, places)[:, 0].tolist() == [[100, 100, 100, 101], [0, 0, 0, 0], [6, 7, 8, 9]]
    assert take(rows, places)[:, 0].tolist() == [101, 0, 9]


@given(st.integers(2, 12), st.integers(0, 2**32 - 1))
def test_statistics_are_those_of_the_windows(window: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(20, 2)).astype(np.float32)
    values[rng.random((20, 2)) < 0.2] = np.nan
    values[0] = values[-1] = 1.0
    places = np.stack([np.zeros(20, dtype=np.int64), np.arange(20)], axis=1)
    given_windows = windows([values], window, places)
    found = take(statistics([values], window), places).reshape(20, 6, 2)
    np.testing.assert_allclose(found[:, 0], values, equal_nan=True)
    np.testing.assert_allclose(found[:, 5], values - given_windows[:, :, 0], equal_nan=True, atol=1e-5)
    for row in range(20):
        for metric in range(2):
            known = given_windows[row, metric][~np.isnan(given_windows[row, metric])]
            if len(known):
                np.testing.assert_allclose(found[row, 1, metric], known.mean(), atol=1e-5)
                np.testing.assert_allclose(found[row, 3:5, metric], [known.min(), known.max()], atol=1e-6)
            if len(known) > 1:
                np.testing.assert_allclose(found[row, 2, metric], known.std(ddof=1), atol=1e-5)


def test_standardising_learns_from_training_rows_alone(problem: Problem) -> None:
    rows = view(problem, "levels", 0)
    changed = [np.where((s.parts == TRAIN)[:, None], r, r * 1000) for r, s in zip(rows, problem.segments, strict=True)]
    pairs = zip(standardised(problem, rows), standardised(problem, changed), problem.segments, strict=True)
    for one, two, segment in pairs:
        assert np.isfinite(one).all()
        np.testing.assert_array_equal(one[segment.parts == TRAIN], two[segment.parts == TRAIN])


def test_views_are_causal(problem: Problem) -> None:
    cut = tuple(
        ProblemSegment(s.values[:40], {8: s.channels[8][:40]}, s.targets[:40], s.parts[:40], s.wanted[:40])
        for s in problem.segments
    )
    for name in ("levels", "relative", "both", "row"):
        whole, start = (statistics(view(p, name, 8), 6) for p in (problem, replace(problem, segments=cut)))
        for one, two in zip(whole, start, strict=True):
            np.testing.assert_allclose(one[:40], two, rtol=1e-5, atol=1e-5)


def test_a_sample_keeps_shares_and_rare_classes(problem: Problem) -> None:
    places = problem.labelled(TRAIN)
    few = sample(problem, places, 30, seed=0, whole=5)
    shares = np.bincount(problem.targets(places)) / len(places)
    np.testing.assert_allclose(np.bincount(problem.targets(few)), 30 * shares, atol=1)
    assert {tuple(place) for place in few.tolist()} <= {tuple(place) for place in places.tolist()}
    assert np.bincount(problem.targets(sample(problem, places, 3, seed=0, whole=5))).tolist() == [5, 5, 5]
    assert sample(problem, places, 1000, seed=0) is places


def test_a_search_takes_what_validation_likes_best(problem: Problem) -> None:
    """A classifier that is right on as many rows as `skill` says, on validation only through its choice."""
    seen: list[bool] = []

    def fit(task: Task) -> object:
        seen.append(task.final)

        def score(places: np.ndarray) -> np.ndarray:
            truth = problem.targets(places)
            wrong = (truth + 1) % 3
            return np.eye(3)[np.where(np.arange(len(truth)) % 10 < task.choice["skill"], truth, wrong)]

        return score

    chosen = search(Peer({"other": (1, 2), "skill": (3, 9, 5)}, fit, 50, 60), problem, 0, budget=60, threads=1)
    assert chosen.facts["chosen"] == {"other": 1, "skill": 9}
    assert seen == [False] * 4 + [True]
    assert chosen.facts["search_complete"] and len(chosen.facts["tried"]) == 4


def test_a_search_out_of_time_says_so(problem: Problem) -> None:
    peer = Peer({"skill": (1, 2)}, lambda task: lambda places: np.ones((len(places), 3)), 50, 60)
    found = search(peer, problem, 0, budget=0, threads=1).facts
    assert not found["search_complete"] and found["chosen"] == {"skill": 1}


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1))
def test_peers_choose_by_the_projects_own_macro_f1(pairs: list[tuple[int, int]]) -> None:
    truth, predicted = (np.array(values) for values in zip(*pairs, strict=True))
    own = macro_f1(truth.astype(str).astype(object), predicted.astype(str).astype(object))
    assert macro_f1_of_peers(truth, predicted) == pytest.approx(own)


def test_scores_of_perfect_answers(prepared: Prepared) -> None:
    judged = judge(prepared, CLASSES, np.zeros((sum(mask.sum() for mask in prepared.labelled(TEST)), 3)))
    perfect = np.array([[float(name == label) for name in CLASSES] for label in judged.rows.truth])
    found = scores("any", replace(judged, probabilities=perfect))
    assert found["macro_f1"] == found["accuracy"] == found["incident_recall"] == found["pr_auc"] == 1
    assert found["ece"] == found["false_alarms_per_series_day"] == 0
    assert found["worst_series_macro_f1"] == 1 and "merged" not in found
    assert set(labels(judged)) == {"no_data"} and scores("any", judged)["accuracy"] == 0


def test_merged_classes_are_no_longer_mistaken_for_each_other(prepared: Prepared) -> None:
    judged = judge(prepared, CLASSES, np.tile([0.4, 0.35, 0.25], (sum(m.sum() for m in prepared.labelled(TEST)), 1)))
    fewer = merged(judged, {"loss": "fault", "delay": "fault"})
    assert fewer.classes == ("normal", "fault")
    assert set(labels(judged)) == {"normal"} and set(labels(fewer)) == {"fault"}
    np.testing.assert_array_equal(fewer.rows.truth == "fault", judged.rows.truth != "normal")


def test_folds_are_scored_together_whatever_the_order_of_their_classes(prepared: Prepared) -> None:
    asked = sum(mask.sum() for mask in prepared.labelled(TEST))
    one = judge(prepared, ("normal", "loss"), np.tile([0.0, 1.0], (asked, 1)))
    two = judge(prepared, ("delay", "normal"), np.tile([1.0, 0.0], (asked, 1)))
    both = pooled([one, two])
    assert both.classes == ("normal", "loss", "delay")
    assert labels(both).tolist() == ["loss"] * asked + ["delay"] * asked


def machine(tmp_path: Path, budget: float = 60.0) -> Machine:
    return Machine(None, tmp_path, budget, threads=1, device="cpu")


def test_simple_methods_are_scored_like_all_others(tmp_path: Path) -> None:
    parts = open_dataset("testbed_a", None, tmp_path)
    found = run("testbed_a", parts, "majority", 0, machine(tmp_path))
    assert found["accuracy"] == pytest.approx(4680 / 7142) and found["rows"] == 7142
    assert found["incident_recall"] == 0
    drawn = run("testbed_a", parts, "random", 0, machine(tmp_path))
    assert drawn["accuracy"] < found["accuracy"] and drawn["macro_f1"] > found["macro_f1"]
    assert "no peers" in run("testbed_a", parts, "lightgbm", 0, machine(tmp_path))["skipped"]


def test_a_process_that_takes_too_long_or_fails_is_left_out_with_a_word(tmp_path: Path) -> None:
    slow = [sys.executable, "-c", "import time; time.sleep(30)"]
    with pytest.raises(Skipped, match="not done in 0 s"):
        ask(slow, {}, tmp_path / "slow", machine(tmp_path, budget=0.3))
    with pytest.raises(Skipped, match="ZeroDivisionError"):
        ask([sys.executable, "-c", "1 / 0"], {}, tmp_path / "wrong", machine(tmp_path))


def result(score: float) -> dict[str, object]:
    return {"macro_f1": score, "per_class": {"normal": score}, "per_series": {}, "facts": [{"chosen": {"window": 4}}]}


def test_results_grow_and_what_is_there_is_kept(tmp_path: Path) -> None:
    report = load(tmp_path / "none.json")
    add(report, "one", "ours", 0, result(0.5))
    add(report, "one", "ours", 1, result(0.7))
    add(report, "one", "lightgbm", 0, {"skipped": "not done in 10 s", "budget": 10.0})
    add(report, "one", "logistic", 0, {"skipped": "failed with 1: no", "budget": 10.0})
    save(tmp_path / "report.json", report)
    report = load(tmp_path / "report.json")
    assert report["results"]["one"]["ours"]["macro_f1"] == mean_std([0.5, 0.7])
    assert report["results"]["one"]["ours"]["macro_f1"]["mean"] == pytest.approx(0.6)
    assert report["results"]["one"]["ours"]["macro_f1"]["std"] == pytest.approx(np.std([0.5, 0.7], ddof=1))
    assert is_done(report, "one", "ours", 1, 10) and not is_done(report, "one", "ours", 2, 10)
    assert is_done(report, "one", "lightgbm", 0, 10) and not is_done(report, "one", "lightgbm", 0, 20)
    assert not is_done(report, "one", "logistic", 0, 10)
    table = as_table(report)
    assert "0.600 ± 0.141" in table and "left out, not done in 10 s" in table
    assert json.loads((tmp_path / "report.json").read_text())["ranks"]["mean"]["ours"] == 1


def test_ranks() -> None:
    entry = {name: {"macro_f1": {"mean": score}} for name, score in (("a", 0.9), ("b", 0.5), ("c", 0.5))}
    found = ranks({"one": entry, "two": {"a": {"macro_f1": {"mean": 0.1}}, "b": {"macro_f1": {"mean": 0.2}}}})
    assert found["per_dataset"] == {"one": {"a": 1, "b": 2.5, "c": 2.5}, "two": {"a": 2, "b": 1, "c": 3}}
    assert found["mean"] == {"a": 1.5, "b": 1.75, "c": 2.75}
