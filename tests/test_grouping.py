"""Fewer heads of keys and values, pooled from many."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from netanomaly import ConfigError, Predictor, load
from netanomaly.build_members import build_model
from netanomaly.bundle import Bundle, save_bundle
from netanomaly.cli import main
from netanomaly.config import parse_config
from netanomaly.data.channels import Channels
from netanomaly.decisions import Decisions
from netanomaly.grouping import group_heads
from networks import CLASSES, METRICS, link, settings

ATTENTION = "members.0.sequence_model.blocks.0.attention"


def _bundle(**attention: object) -> Bundle:
    """An untrained one with four heads of width 4."""
    torch.manual_seed(0)
    chosen = {"n_heads": 4, **attention}
    config = parse_config(settings(Path("nowhere"), model={"sequence_model": chosen}))
    values = np.random.default_rng(0).lognormal(0, 1, (200, len(METRICS)))
    channels = Channels.fit([values], [np.full(200, True)], config.channels.kinds, (48,))
    weights = build_model(config, channels.count, len(CLASSES)).state_dict()
    return Bundle(config, channels, CLASSES, weights, Decisions.plain(CLASSES, CLASSES[0]), {})


def _with_equal_neighbours(bundle: Bundle, group: int) -> Bundle:
    """Every `group` neighbouring heads of keys and values alike, so that pooling them loses nothing."""

    def repeated(weight: Tensor) -> Tensor:
        heads = weight.unflatten(0, (4, 4))[::group]  # (4 / group, 4, ...)
        return heads.repeat_interleave(group, 0).flatten(0, 1)

    ends = tuple(f"attention.{part}.{what}" for part in ("key", "value") for what in ("weight", "bias"))
    names = {name for name in bundle.weights if name.endswith(ends)}
    return replace(bundle, weights={n: repeated(w) if n in names else w for n, w in bundle.weights.items()})


def _probabilities(bundle: Bundle) -> np.ndarray:
    predictor = Predictor(bundle, torch.device("cpu"))
    return predictor.predict(link("f", 60)).filter(like="p_").to_numpy(dtype=float)


@pytest.mark.parametrize("execution", ["sliding", "reference", "sdpa", "tiled"])
@pytest.mark.parametrize("n_kv_heads", [2, 1])
def test_pooling_equal_heads_changes_no_answer(n_kv_heads: int, execution: str) -> None:
    bundle = _with_equal_neighbours(_bundle(execution=execution), 4 // n_kv_heads)
    grouped = group_heads(bundle, n_kv_heads)
    np.testing.assert_allclose(_probabilities(grouped), _probabilities(bundle), rtol=0, atol=1e-6)
    assert grouped.weights[f"{ATTENTION}.key.weight"].shape == (4 * n_kv_heads, 16)


def test_a_pooled_head_is_the_mean_of_its_heads() -> None:
    bundle = _bundle()
    for part in ("key.weight", "value.weight", "value.bias"):
        before, after = (b.weights[f"{ATTENTION}.{part}"] for b in (bundle, group_heads(bundle, 2)))
        torch.testing.assert_close(after[:4], (before[:4] + before[4:8]) / 2)
        torch.testing.assert_close(after[4:], (before[8:12] + before[12:]) / 2)


def test_grouping_in_steps_is_grouping_at_once() -> None:
    once, twice = group_heads(_bundle(), 1), group_heads(group_heads(_bundle(), 2), 1)
    torch.testing.assert_close(once.weights, twice.weights)
    assert once.config == twice.config
    assert twice.facts["converted"] == [{"n_kv_heads": 2, "from": 4}, {"n_kv_heads": 1, "from": 2}]


@pytest.mark.parametrize("number", [0, -1, 3, 8])
def test_heads_that_do_not_divide_are_refused(number: int) -> None:
    with pytest.raises(ConfigError, match="4 heads of keys and values cannot be grouped into"):
        group_heads(_bundle(), number)


def test_as_many_heads_as_there_are_is_no_conversion() -> None:
    with pytest.raises(ConfigError, match="has 4 heads of keys and values already"):
        group_heads(_bundle(), 4)


def test_the_command_writes_a_bundle_and_refuses_to_replace_anything(tmp_path: Path) -> None:
    save_bundle(tmp_path / "run", _bundle())
    command = ["convert", str(tmp_path / "run"), "--kv-heads", "1", "--out", str(tmp_path / "mqa")]
    assert main(command) == 0
    assert load(tmp_path / "mqa").config.model.sequence_model.n_kv_heads == 1
    content = json.loads((tmp_path / "mqa" / "bundle.json").read_text(encoding="utf-8"))
    assert content["facts"]["converted"] == [{"n_kv_heads": 1, "from": 4}]
    assert main(command) == 2
    assert main([*command[:3], "3", "--out", str(tmp_path / "other")]) == 2
    assert not (tmp_path / "other").exists()
