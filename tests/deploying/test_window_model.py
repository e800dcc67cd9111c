"""The model of a window in plain tensors: the same channels, and the same answers."""

from __future__ import annotations

import bottleneck
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import streams
from exportable import tiny
from netanomaly.data.channels import CHANNEL_KINDS, Channels
from netanomaly.data.rolling import rolling_std as numpy_rolling_std
from netanomaly.deploying.channels import WindowChannels, rolling_median, rolling_std
from netanomaly.deploying.export import window_model
from netanomaly.deploying.parity import hard_windows, measured
from netanomaly.predictor import load

COUNT = 42


@given(st.integers(1, 40), st.integers(1, 12), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_medians_are_those_of_the_rolling_ones(length: int, count: int, missing: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.choice(rng.standard_normal(20) * 1e9, (2, length + count - 1))  # the same values come again
    values[rng.random(values.shape) < missing] = np.nan
    found = rolling_median(torch.from_numpy(values), length).numpy()
    wanted = bottleneck.move_median(values, length, min_count=1, axis=1)[:, length - 1 :]
    np.testing.assert_array_equal(found, wanted)


@given(st.integers(1, 20), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_deviations_are_those_of_training(length: int, missing: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((1, 30, 2)) * 1e9
    values[rng.random(values.shape) < missing] = np.nan
    found = rolling_std(torch.from_numpy(values), length).numpy()[0]
    np.testing.assert_allclose(found, numpy_rolling_std(values[0], length), rtol=1e-14, atol=0)  # roots differ, too


@pytest.mark.parametrize("kinds", [CHANNEL_KINDS, ("change",), ("missing", "level"), ("deviation", "spread")])
@pytest.mark.parametrize("baselines", [(3, 20), (128,)])
def test_channels_are_those_of_training(kinds: tuple[str, ...], baselines: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    training = np.array([0.01, 30.0, 1e9, 0.0]) + np.array([0.02, 3.0, 1e8, 0.0]) * rng.standard_normal((300, 4))
    channels = Channels.fit([training], [np.full(300, True)], kinds, baselines)
    windows = hard_windows(channels, 5 + channels.history_rows, COUNT)
    windows[0, -3:, 1] = [1e200, -1e300, 1.7e308]  # the largest that there are
    with np.errstate(over="ignore"):
        found = WindowChannels(channels, 5)(torch.from_numpy(windows)).numpy()
    wanted = np.stack([channels(window)[-5:] for window in windows])
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7)  # logarithms may differ in the last bit


QUICK = ("plain", "memory of blocks", "patches, on input")


@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in streams.MODELS if name not in QUICK)]
)
def test_answers_are_those_of_the_predictor(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tiny(tmp_path_factory.mktemp("bundle"), **{"stem": 3, "window": 8, "width": 16, **streams.MODELS[name]})
    predictor = load(directory, "cpu")
    model, rows = window_model(predictor)
    windows = hard_windows(predictor.channels, rows, COUNT)

    def run(given: np.ndarray) -> tuple[np.ndarray, ...]:
        return tuple(part.numpy() for part in model(torch.from_numpy(given)))

    label, *_ = run(windows)
    assert {3, 4} < set(label)  # unknown and no_data, and classes too
    parity = measured(run, predictor, windows)
    assert parity.holds and parity.windows == COUNT


def test_a_window_has_exactly_the_rows_that_its_answer_depends_on(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tiny(tmp_path_factory.mktemp("bundle"))
    predictor = load(directory, "cpu")
    model, rows = window_model(predictor)
    assert rows == 1 + predictor.model.history_rows + predictor.channels.history_rows == 4 + 1 + 11
    windows = torch.from_numpy(hard_windows(predictor.channels, rows, COUNT))
    other = windows.clone()
    other[:, 0] = other[:, 0] * 3 + 1  # the oldest row
    before, after = model(windows)[1], model(other)[1]
    assert (before - after).abs().max() > 0
