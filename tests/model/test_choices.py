"""Ways to compute a look-up differ in speed and memory, not in the answer."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from classifiers import CLASSES, classifier, model_config, segment, stirred
from netanomaly.config_model import AttentionConfig
from netanomaly.model.choices import executions
from netanomaly.model.classifier import NetworkAnomalyClassifier

TARGETS = 5
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5}
SPACE: dict[str, list[Any]] = {
    "positions": [
        {"base": 50.0},
        {"add_to": "input"},
        "sine",
        "binary",
        "linear",
        "linear_unit",
        {"kind": "linear_unit", "add_to": "input"},
        "learned",
        {"kind": "learned", "add_to": "input"},
        "rotary",
        {"kind": "relative_bias", "buckets": 8, "furthest": 6},
        {"kind": "relative_key", "reach": 3},
        "none",
    ],
    "score": ["dot", "distance"],
    "scale": ["sqrt_dim", "init", 2.0],
    "normalise": ["softmax", "none"],
    "masking": [{}, {"mask": "causal"}, {"mask": "prefix", "prefix": 2}],
    "local": [None, 1, 2],
    "memory": ["embeddings", "blocks"],
    "n_kv_heads": [None, 2, 1],
    "feed_forward": ["swiglu", "none", "relu", "leaky_relu", "gelu", "swish", "sigmoid", "tanh", "glu"],
    "patch": [1, 3],
    "stack": [{"depth": 1}, {"depth": 2}, {"depth": 2, "share_weights": True}],
    "read_out": ["last", "cls", "mean", "attention"],
    "window": [9, 6],
    "stem": [1, 3],
}
DEFAULTS = {key: values[0] for key, values in SPACE.items()}
PREFIX = SPACE["masking"][2]
SINGLE: list[dict[str, Any]] = [{key: value} for key, values in SPACE.items() for value in values if value != PREFIX]
SINGLE += [{"masking": PREFIX, "read_out": "mean"}, {"masking": PREFIX, "memory": "blocks"}]
SINGLE += [
    {"read_out": read_out, key: value}
    for read_out, (key, value) in product(SPACE["read_out"], [("memory", "blocks"), ("patch", 3)])
]
SHARES = [1.0, 0.7, 0.2]


def _sample(count: int) -> list[dict[str, Any]]:
    """Pseudo-random combinations, always the same, that a config takes."""
    chance = random.Random(0)
    found: list[dict[str, Any]] = []
    while len(found) < count:
        choices = {key: chance.choice(values) for key, values in SPACE.items()}
        if choices["positions"] == "linear" and choices["normalise"] == "none":
            continue  # exp of dot products that grow with the square of the place: no number type holds them
        try:
            model_config(**_expanded(choices))
        except ValidationError:
            continue
        found.append(choices)
    return found


def _expanded(choices: dict[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in choices.items() if key not in ("masking", "stack")}
    return {"n_heads": 4, **rest, **choices["masking"], **choices["stack"]}


def _ways(choices: dict[str, Any]) -> list[str]:
    config = model_config(**_expanded(choices))
    assert isinstance(config.sequence_model, AttentionConfig)
    return list(config.sequence_model.able(config.read_out))


def _models(choices: dict[str, Any], dtype: torch.dtype) -> dict[str, NetworkAnomalyClassifier]:
    """One for each way to compute it, with the same weights."""
    models = {way: classifier(**_expanded(choices), execution=way).to(dtype) for way in _ways(choices)}
    stirred(models["reference"])
    for model in models.values():
        model.load_state_dict(models["reference"].state_dict())
    return models


def _outcome(
    model: NetworkAnomalyClassifier, channels: Tensor, valid: Tensor, weight: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    """Logits, and the gradients of the channels and of every parameter."""
    channels = channels.clone().requires_grad_()
    logits = model(channels, valid)
    (logits * weight).sum().backward()
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    assert channels.grad is not None
    return logits.detach(), {**gradients, "channels": channels.grad}


def _compare(choices: dict[str, Any], dtype: torch.dtype, share: float) -> None:
    """Every other way gives what the reference gives."""
    models = _models(choices, dtype)
    channels, valid = segment(2, models["reference"].history_rows + TARGETS, share, dtype=dtype)
    weight = torch.randn(2, TARGETS, CLASSES, generator=torch.Generator().manual_seed(2), dtype=dtype)
    logits, gradients = _outcome(models.pop("reference"), channels, valid, weight)
    tolerance = TOLERANCE[dtype]
    for way, model in models.items():
        found, grads = _outcome(model, channels, valid, weight)
        torch.testing.assert_close(found, logits, rtol=tolerance, atol=tolerance)
        assert grads.keys() == gradients.keys(), way
        scale = max(1.0, max(float(gradient.abs().max()) for gradient in gradients.values()))
        for name, gradient in gradients.items():
            difference = float((grads[name] - gradient).abs().max())
            assert difference <= 10 * tolerance * scale, (way, name, difference)


@pytest.mark.parametrize("choices", SINGLE, ids=str)
def test_every_choice_has_one_answer_however_it_is_computed(choices: dict[str, Any]) -> None:
    for dtype, share in product(TOLERANCE, (1.0, 0.5)):
        _compare({**DEFAULTS, **choices}, dtype, share)


@pytest.mark.parametrize("part", range(8))
def test_combinations_have_one_answer_however_they_are_computed(part: int) -> None:
    for number, choices in enumerate(_sample(440)[part::8]):
        _compare(choices, list(TOLERANCE)[number % 2], SHARES[number % 3])


def test_the_sample_meets_every_way_and_every_choice() -> None:
    sample = _sample(440)
    for key, values in SPACE.items():
        assert all(any(choices[key] == value for choices in sample) for value in values), key
    ways = Counter(way for choices in sample for way in _ways(choices))
    assert min(ways.values()) >= 30
    assert set(ways) == {"sliding", "sdpa", "tiled", "reference"}


CASES = list(
    product(
        ["last", "cls", "mean", "attention"],
        ["embeddings", "blocks"],
        ["softmax", "none"],
        ["sinusoidal", "learned", "rotary", "relative_bias", "relative_key", "none"],
        [False, True],
        [1, 2],
    )
)


def _able(read_out: str, memory: str, normalise: str, positions: str, added_to_input: bool, patch: int) -> list[str]:
    return list(
        executions(
            read_out=read_out,
            memory=memory,
            normalise=normalise,
            positions=positions,
            added_to_input=added_to_input,
            patch=patch,
        )
    )


def test_the_reference_can_compute_everything_and_comes_last() -> None:
    assert all(_able(*case)[-1] == "reference" for case in CASES)


def test_all_windows_at_once_takes_one_query_per_window_and_keys_of_the_row_alone() -> None:
    for case in CASES:
        read_out, memory, _, _, added_to_input, patch = case
        one = read_out in ("last", "cls") and memory == "embeddings" and not added_to_input and patch == 1
        assert ("sliding" in _able(*case)) == one
        assert not one or _able(*case)[0] == "sliding"


def test_fused_kernels_take_softmax_and_neither_they_nor_tiles_take_vectors_per_distance() -> None:
    for case in CASES:
        _, _, normalise, positions, _, _ = case
        assert ("sdpa" in _able(*case)) == (normalise == "softmax" and positions != "relative_key")
        assert ("tiled" in _able(*case)) == (positions != "relative_key")
