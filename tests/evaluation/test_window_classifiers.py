"""The classifiers on window statistics that the model is measured against."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from netanomaly.evaluation import window_classifiers
from netanomaly.evaluation.window_classifiers import (
    WindowClassifier,
    lightgbm_classifier,
    lightgbm_missing,
    logistic_regression,
    sample_rows,
    window_statistics,
)


def _values(rows: int, metrics: int, seed: int = 0, missing: float = 0.2) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    values = rng.normal(10, 3, (rows, metrics))
    values[rng.random(values.shape) < missing] = np.nan
    return values


def _by_hand(values: NDArray[np.float64], window: int) -> NDArray[np.float64]:
    """One row and one metric after the other."""
    rows, metrics = values.shape
    result = np.full((rows, 6, metrics), np.nan)
    for t in range(rows):
        for m in range(metrics):
            held = values[max(0, t - window + 1) : t + 1, m]
            known = held[~np.isnan(held)]
            result[t, 0, m] = values[t, m]
            if len(known):
                result[t, 1, m], result[t, 3, m], result[t, 4, m] = known.mean(), known.min(), known.max()
            if len(known) > 1:
                result[t, 2, m] = known.std(ddof=1)
            if t >= window - 1:
                result[t, 5, m] = values[t, m] - held[0]
    return result.reshape(rows, -1)


@settings(max_examples=40, deadline=None)
@given(
    rows=st.integers(1, 25),
    metrics=st.integers(1, 3),
    window=st.integers(1, 30),
    missing=st.sampled_from([0.0, 0.3, 1.0]),
    seed=st.integers(0, 2**16),
)
def test_statistics_are_those_of_a_loop_over_windows(
    rows: int, metrics: int, window: int, missing: float, seed: int
) -> None:
    values = _values(rows, metrics, seed, missing)
    np.testing.assert_allclose(window_statistics(values, window), _by_hand(values, window), rtol=0, atol=1e-6)


def test_statistics_of_a_row_do_not_depend_on_later_rows() -> None:
    values = _values(30, 2)
    np.testing.assert_allclose(window_statistics(values[:20], 8), window_statistics(values, 8)[:20], rtol=0, atol=1e-9)


def _labelled(rows: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.object_]]:
    """Rows whose label is told by the mean of the last four."""
    values = _values(rows, 2, seed, missing=0.05)
    high = np.arange(rows) // 10 % 2 == 1
    values[high] += 20
    return values, np.where(high, "high", "low").astype(object)


def _named(classifier: WindowClassifier, values: NDArray[np.float64]) -> NDArray[np.object_]:
    """The most probable class of every row."""
    return np.array(classifier.classes)[classifier.probabilities(values, np.full(len(values), True)).argmax(axis=1)]


def test_regression_learns_what_window_statistics_tell() -> None:
    segments, labels = zip(*[_labelled(200, seed) for seed in range(3)], strict=True)
    regression = logistic_regression(4, seed=0)
    regression.fit(segments[:2], labels[:2], [np.full(200, True)] * 2)
    assert (_named(regression, segments[2]) == labels[2]).mean() > 0.9


def test_regression_learns_from_training_rows_alone() -> None:
    values, labels = _labelled(200, 0)
    mask = np.arange(200) < 120
    spoilt = np.where(mask, labels, "never").astype(object)
    found = []
    for names in (labels, spoilt):
        regression = logistic_regression(4, seed=0)
        regression.fit([values], [names], [mask])
        found.append(_named(regression, values))
    np.testing.assert_array_equal(found[0], found[1])


def test_rows_before_the_training_rows_are_the_context_of_their_windows() -> None:
    values, labels = _labelled(200, 0)
    other = values.copy()
    other[99] += 1000
    found = []
    for rows in (values, other):
        regression = logistic_regression(4, seed=0)
        regression.fit([rows], [labels], [np.arange(200) >= 100])
        found.append(regression.estimator[-1].coef_)
    assert (found[0] != found[1]).any()


def test_regression_copes_with_a_metric_that_is_always_missing() -> None:
    values, labels = _labelled(100, 0)
    values[:, 1] = np.nan
    regression = logistic_regression(4, seed=0)
    regression.fit([values], [labels], [np.full(100, True)])
    assert set(_named(regression, values)) == {"high", "low"}


def test_regression_on_a_sample_is_repeatable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_classifiers, "REGRESSION_ROWS", 50)
    monkeypatch.setattr(window_classifiers, "RARE_ROWS", 10)
    values, labels = _labelled(200, 0)
    found = []
    for seed in (0, 0, 1):
        regression = logistic_regression(4, seed=seed)
        regression.fit([values], [labels], [np.full(200, True)])
        found.append(regression.estimator[-1].coef_)
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0] != found[2]).any()


def test_a_sample_keeps_the_shares_of_large_classes_and_the_whole_of_rare_ones() -> None:
    labels = np.repeat(["large", "middle", "rare"], [60_000, 20_000, 30])
    counts = {name: int(sample_rows(labels, 20_000, seed=0)[labels == name].sum()) for name in set(labels)}
    assert counts["rare"] == 30
    assert counts["large"] == pytest.approx(3 * counts["middle"], rel=0.01)
    assert sum(counts.values()) == pytest.approx(20_000, rel=0.01)


def test_probabilities_are_those_of_wanted_rows_and_zero_elsewhere() -> None:
    values, labels = _labelled(100, 0)
    regression = logistic_regression(4, seed=0)
    regression.fit([values], [labels], [np.full(100, True)])
    wanted = np.arange(100) % 3 == 0
    found = regression.probabilities(values, wanted)
    np.testing.assert_allclose(found[wanted].sum(axis=1), 1.0, rtol=1e-6)
    assert not found[~wanted].any()
    np.testing.assert_array_equal(found[wanted], regression.probabilities(values, np.full(100, True))[wanted])
    assert not regression.probabilities(values, np.full(100, False)).any()


class _Trees:
    """Stands for LightGBM's classifier: the wiring alone, from its arguments to its answers."""

    def __init__(self, **arguments: Any) -> None:
        self.arguments = arguments

    def fit(self, features: NDArray[np.float64], labels: NDArray[np.str_]) -> None:
        self.classes_, counts = np.unique(labels, return_counts=True)
        self.shares = counts / counts.sum()
        self.shape = features.shape

    def predict_proba(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.tile(self.shares, (len(features), 1))


def test_lightgbm_gets_the_same_statistics_the_seed_and_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("lightgbm")
    monkeypatch.setattr(module, "LGBMClassifier", _Trees, raising=False)
    monkeypatch.setitem(sys.modules, "lightgbm", module)
    assert lightgbm_missing() is None
    trees = lightgbm_classifier(4, seed=7, threads=3)
    values, labels = _labelled(100, 0)
    trees.fit([values], [labels], [np.arange(100) < 60])
    assert trees.estimator.shape == (60, 12)
    assert trees.estimator.arguments["random_state"] == 7 and trees.estimator.arguments["n_jobs"] == 3
    assert lightgbm_classifier(4, seed=7, threads=None).estimator.arguments["n_jobs"] == 0
    np.testing.assert_allclose(trees.probabilities(values, np.arange(100) > 97)[98:], [[0.5, 0.5]] * 2)


def test_without_lightgbm_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    assert lightgbm_missing() == "not installed (pip install 'netanomaly[lightgbm]')"


def test_a_lightgbm_that_does_not_load_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class _Finder:
        def find_spec(self, name: str, *_: Any) -> None:
            if name == "lightgbm":
                raise OSError("libgomp.so.1: cannot open\nshared object file")

    monkeypatch.delitem(sys.modules, "lightgbm", raising=False)
    monkeypatch.setattr(sys, "meta_path", [_Finder(), *sys.meta_path])
    assert lightgbm_missing() == "installed, but does not load: libgomp.so.1: cannot open shared object file"


def test_lightgbm_learns_what_window_statistics_tell_and_repeats() -> None:
    pytest.importorskip("lightgbm")
    segments, labels = zip(*[_labelled(200, seed) for seed in range(3)], strict=True)
    found = []
    for threads in (1, 2):
        trees = lightgbm_classifier(4, seed=0, threads=threads)
        trees.fit(segments[:2], labels[:2], [np.full(200, True)] * 2)
        found.append(trees.probabilities(segments[2], np.full(200, True)))
    assert (np.array(trees.classes)[found[0].argmax(axis=1)] == labels[2]).mean() > 0.9
    np.testing.assert_array_equal(found[0], found[1])
