"""The section `model`: what it takes, what it is short for, and what it refuses."""

from __future__ import annotations

import math
from typing import Any

import pytest

from config_trees import refuse, tree
from netanomaly.config import load_config, parse_config
from netanomaly.config_model import AttentionConfig, ModelConfig
from netanomaly.errors import ConfigError
from netanomaly.yaml_reader import parse_yaml

OURS = "model.sequence_model"
WHERE = f"{OURS}.positions"
TABLES = ["sine", "binary", "linear", "linear_unit", "learned"]
POSITIONS = ["sinusoidal", *TABLES, "rotary", "relative_bias", "relative_key", "none"]
LM = {"kind": "language_model", "path": "lm"}


def attention(**choices: Any) -> AttentionConfig:
    """A config's sequence model."""
    found = parse_config(tree(OURS, choices)).model.sequence_model
    assert isinstance(found, AttentionConfig)
    return found


# What is taken

GOOD: list[tuple[str, list[Any]]] = [
    ("depth", [1, 3]),
    ("share_weights", [False]),  # true: below
    ("n_heads", [1, 2, 4, 8]),
    ("n_kv_heads", [None, 1, 2, 4]),
    ("score", ["dot", "distance"]),
    ("scale", ["sqrt_dim", "init", 0.01, 2.5, 100]),
    ("normalise", ["softmax", "none"]),
    ("mask", ["bidirectional", "causal"]),
    ("local", [None, 1, 1000]),
    ("memory", ["embeddings", "blocks"]),
    (
        "feed_forward",
        ["none", "relu", "leaky_relu", "gelu", "swish", "sigmoid", "tanh", "glu", "swiglu"],
    ),
    ("patch", [1, 2]),
    ("execution", ["auto", "sliding", "sdpa", "tiled", "reference"]),
]


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in GOOD for value in values])
def test_every_choice_is_taken_and_survives_a_dump(key: str, value: Any) -> None:
    config = parse_config(tree(f"{OURS}.{key}", value))
    assert getattr(config.model.sequence_model, key) == value
    assert parse_config(parse_yaml(config.to_yaml(), "dump")) == config


def test_every_key_has_a_test_of_what_it_takes() -> None:
    assert set(AttentionConfig.model_fields) == {key for key, _ in GOOD} | {"kind", "positions", "prefix"}


def test_a_prefix_goes_with_its_mask() -> None:
    assert attention(mask="prefix", prefix=3, memory="blocks").prefix == 3


@pytest.mark.parametrize("read_out", ["last", "cls"])
def test_a_prefix_that_would_change_nothing_is_refused(read_out: str) -> None:
    given = tree("model.sequence_model", {"mask": "prefix", "prefix": 3})
    given["model"]["read_out"] = read_out
    assert f"prefix changes nothing with read_out {read_out}" in refuse(given)


def test_shared_weights_need_blocks_to_share_them() -> None:
    assert attention(share_weights=True, depth=2).share_weights
    assert "share_weights needs a depth of 2 or more" in refuse(tree(f"{OURS}.share_weights", True))


GOOD_POSITIONS: list[dict[str, Any]] = [
    {"kind": "sinusoidal", "base": 50.0, "add_to": "input"},
    *[{"kind": kind, "add_to": add_to} for kind in TABLES for add_to in ("projected", "input")],
    {"kind": "rotary", "base": 1.5},
    {"kind": "relative_bias", "buckets": 4, "furthest": 3},
    {"kind": "relative_key", "reach": 1},
    {"kind": "none"},
]


@pytest.mark.parametrize("positions", GOOD_POSITIONS, ids=str)
def test_every_kind_of_positions_is_taken_and_survives_a_dump(positions: dict[str, Any]) -> None:
    config = parse_config(tree(WHERE, positions))
    assert config.to_dict()["model"]["sequence_model"]["positions"] == positions
    assert parse_config(parse_yaml(config.to_yaml(), "dump")) == config


# What is short for what


@pytest.mark.parametrize("kind", POSITIONS)
def test_a_word_is_the_kind_of_positions(kind: str) -> None:
    assert attention(positions=kind) == attention(positions={"kind": kind})
    assert attention(positions=kind).positions.kind == kind


def test_a_word_of_a_file_is_the_kind_of_positions() -> None:
    text = "data: {metrics: [rtt]}\nmodel:\n  sequence_model:\n    positions: none\n"
    assert parse_config(parse_yaml(text, "c.yaml")) == parse_config(tree(WHERE, {"kind": "none"}))


def test_a_word_is_the_kind_of_sequence_model() -> None:
    assert parse_config(tree(OURS, "attention")) == parse_config(tree())


def test_a_section_without_a_kind_is_of_the_default_one() -> None:
    assert attention(depth=2) == attention(kind="attention", depth=2)
    assert attention(positions={"base": 50.0}) == attention(positions={"kind": "sinusoidal", "base": 50.0})
    assert attention(positions={}) == attention() == attention(positions="sinusoidal")


def test_a_whole_number_is_a_temperature() -> None:
    assert attention(scale=2).scale == 2.0


# What is refused

LIST_OF_POSITIONS = ", ".join(f"'{kind}'" for kind in POSITIONS)
WRONG: list[tuple[str, Any, str, str]] = [
    ("model", None, "model", "object"),
    ("model.window", None, "model.window", "integer"),
    ("model.window", "64", "model.window", "'64' is not a duration"),
    ("model.width", 65, "model", "width 65 must be a multiple of n_heads (4)"),
    ("model.width", 0, "model.width", "greater than or equal to 1, found 0"),
    ("model.stem", 0, "model.stem", "neither auto nor a number of rows"),
    ("model.read_out", "max", "model.read_out", "found 'max'"),
    ("model.dropout", 1, "model.dropout", "less than 1"),
    ("model.dropout", -0.1, "model.dropout", "greater than or equal to 0"),
    ("model.depth", 2, "model.depth", "this key is model.sequence_model.depth"),
    ("model.n_heads", 2, "model.n_heads", "this key is model.sequence_model.n_heads"),
    ("model.position_base", 9.0, "model.position_base", "this key is model.sequence_model.positions.base"),
    (OURS, None, OURS, "object"),
    (OURS, 3, OURS, "object, found 3"),
    (OURS, {"kind": "atention"}, OURS, "kind: 'atention' is not one of 'attention', 'language_model'"),
    (OURS, "transformer", OURS, "kind: 'transformer' is not one of 'attention', 'language_model'"),
    (f"{OURS}.depth", 0, f"{OURS}.depth", "greater than or equal to 1, found 0"),
    (f"{OURS}.depth", 1.0, f"{OURS}.depth", "found 1.0"),
    (f"{OURS}.share_weights", "yes", f"{OURS}.share_weights", "valid boolean, found 'yes'"),
    (f"{OURS}.n_heads", 0, f"{OURS}.n_heads", "greater than or equal to 1, found 0"),
    (f"{OURS}.n_heads", 3, "model", "width 64 must be a multiple of n_heads (3)"),
    (f"{OURS}.n_kv_heads", 0, f"{OURS}.n_kv_heads", "greater than or equal to 1, found 0"),
    (f"{OURS}.n_kv_heads", 3, OURS, "n_heads 4 must be a multiple of n_kv_heads (3)"),
    (f"{OURS}.n_kv_heads", 8, OURS, "n_heads 4 must be a multiple of n_kv_heads (8)"),
    (f"{OURS}.score", "cosine", f"{OURS}.score", "'dot' or 'distance', found 'cosine'"),
    (f"{OURS}.scale", "sqrt", f"{OURS}.scale", "'sqrt_dim' or 'init'"),
    *[(f"{OURS}.scale", value, f"{OURS}.scale", "is not more than 0; write sqrt_dim") for value in (0, -1.5)],
    *[(f"{OURS}.scale", value, f"{OURS}.scale", f"found {value!r}") for value in (True, math.inf)],
    (f"{OURS}.normalise", "sigmoid", f"{OURS}.normalise", "'softmax' or 'none', found 'sigmoid'"),
    (f"{OURS}.mask", "casual", f"{OURS}.mask", "'bidirectional', 'causal' or 'prefix', found 'casual'"),
    (f"{OURS}.mask", "prefix", OURS, "prefix goes with mask: prefix, which needs it"),
    (f"{OURS}.prefix", 2, OURS, "prefix goes with mask: prefix, which needs it"),
    (OURS, {"mask": "causal", "prefix": 2}, OURS, "prefix goes with mask: prefix, which needs it"),
    (OURS, {"mask": "prefix", "prefix": 0}, f"{OURS}.prefix", "greater than or equal to 1, found 0"),
    (f"{OURS}.local", 0, f"{OURS}.local", "greater than or equal to 1, found 0"),
    (f"{OURS}.memory", "rows", f"{OURS}.memory", "'embeddings' or 'blocks', found 'rows'"),
    (f"{OURS}.feed_forward", "elu", f"{OURS}.feed_forward", "'glu' or 'swiglu', found 'elu'"),
    (f"{OURS}.patch", 0, f"{OURS}.patch", "greater than or equal to 1, found 0"),
    (f"{OURS}.execution", "flash", f"{OURS}.execution", "'tiled' or 'sdpa', found 'flash'"),
    (f"{OURS}.n_head", 4, f"{OURS}.n_head", "unknown key; did you mean 'n_heads'?"),
    (f"{OURS}.base", 4, f"{OURS}.base", "unknown key; known here: kind, depth, share_weights"),
    (WHERE, None, WHERE, "object"),
    (WHERE, 3, WHERE, "object, found 3"),
    (WHERE, "rotory", WHERE, f"kind: 'rotory' is not one of {LIST_OF_POSITIONS}"),
    (WHERE, {"bace": 50}, f"{WHERE}.bace", "unknown key; did you mean 'base'?"),
    (WHERE, {"base": 1.0}, f"{WHERE}.base", "greater than 1"),
    (WHERE, {"add_to": "output"}, f"{WHERE}.add_to", "'projected' or 'input', found 'output'"),
    (WHERE, {"kind": "sine", "base": 50.0}, f"{WHERE}.base", "unknown key; known here: kind, add_to"),
    (WHERE, {"kind": "sine", "add_to": 1}, f"{WHERE}.add_to", "'projected' or 'input', found 1"),
    (WHERE, {"kind": "rotary", "base": 0.5}, f"{WHERE}.base", "greater than 1, found 0.5"),
    (WHERE, {"kind": "rotary", "add_to": "input"}, f"{WHERE}.add_to", "unknown key; known here: kind, base"),
    (WHERE, {"kind": "relative_bias", "buckets": 6}, f"{WHERE}.buckets", "multiple of 4, found 6"),
    (WHERE, {"kind": "relative_bias", "buckets": 0}, f"{WHERE}.buckets", "greater than or equal to 4, found 0"),
    (WHERE, {"kind": "relative_bias", "furthest": 1}, f"{WHERE}.furthest", "greater than or equal to 2, found 1"),
    (WHERE, {"kind": "relative_bias", "furthest": 16}, WHERE, "furthest has to be more than half of buckets (16)"),
    (WHERE, {"kind": "relative_key", "reach": 0}, f"{WHERE}.reach", "greater than or equal to 1, found 0"),
    (WHERE, {"kind": "none", "base": 3}, f"{WHERE}.base", "unknown key; known here: kind"),
    (OURS, {"positions": "relative_key", "score": "distance"}, OURS, "relative_key is defined for score: dot only"),
    (OURS, "language_model", OURS, "give path (a local directory) or architecture (model_type and sizes)"),
    (OURS, {**LM, "n_heads": 4}, f"{OURS}.n_heads", "unknown key; known here: kind, path, architecture"),
    (OURS, {**LM, "train": "lora"}, OURS, "lora_rank goes with train: lora, which needs it"),
    (OURS, {**LM, "lora_rank": 2}, OURS, "lora_rank goes with train: lora, which needs it"),
    (OURS, {**LM, "train": "lora", "lora_rank": 0}, f"{OURS}.lora_rank", "greater than or equal to 1, found 0"),
    (OURS, {**LM, "train": "adapters"}, f"{OURS}.train", "found 'adapters'"),
    (OURS, {**LM, "patch": 0}, f"{OURS}.patch", "greater than or equal to 1, found 0"),
    (OURS, {**LM, "architecture": "bert"}, f"{OURS}.architecture", "object, found 'bert'"),
]


@pytest.mark.parametrize(
    ("path", "value", "where", "told"), WRONG, ids=[f"{path}={value!r:.50}" for path, value, _, _ in WRONG]
)
def test_a_wrong_value_is_told_with_its_path(path: str, value: Any, where: str, told: str) -> None:
    message = refuse(tree(path, value))
    assert f"c.yaml: {where}: " in message
    assert told in message


@pytest.mark.parametrize(
    ("width", "positions", "told"),
    [
        (12, "sinusoidal", "each head's width (width / n_heads) is 3; sinusoidal positions take channels in pairs"),
        (12, "rotary", "each head's width (width / n_heads) is 3; rotary positions take channels in pairs"),
        (12, {"add_to": "input"}, None),
        (12, "learned", None),
        (12, "none", None),
    ],
)
def test_channels_in_pairs_need_an_even_width(width: int, positions: Any, told: str | None) -> None:
    given = tree("model", {"width": width, "sequence_model": {"positions": positions}})
    if told is None:
        parse_config(given)
    else:
        assert f"c.yaml: model: {told}: make it even" in refuse(given)


def test_positions_on_the_input_take_pairs_of_the_whole_width() -> None:
    section = {"n_heads": 3, "positions": {"add_to": "input"}}
    told = "the width is 9; sinusoidal positions take channels in pairs: make it even"
    assert f"c.yaml: model: {told}" in refuse(tree("model", {"width": 9, "sequence_model": section}))


# Which execution can compute which look-up

CANNOT: list[tuple[str, dict[str, Any], str]] = [
    ("sliding", {"read_out": "mean"}, "sdpa, tiled, reference"),
    ("sliding", {"read_out": "attention"}, "sdpa, tiled, reference"),
    ("sliding", {"memory": "blocks"}, "sdpa, tiled, reference"),
    ("sliding", {"patch": 2}, "sdpa, tiled, reference"),
    ("sliding", {"positions": {"add_to": "input"}}, "sdpa, tiled, reference"),
    ("sliding", {"positions": {"kind": "learned", "add_to": "input"}}, "sdpa, tiled, reference"),
    ("sliding", {"memory": "blocks", "positions": "relative_key"}, "reference"),
    ("sdpa", {"normalise": "none"}, "sliding, tiled, reference"),
    ("sdpa", {"normalise": "none", "memory": "blocks"}, "tiled, reference"),
    ("sdpa", {"positions": "relative_key"}, "sliding, reference"),
    ("tiled", {"positions": "relative_key"}, "sliding, reference"),
    ("tiled", {"positions": "relative_key", "read_out": "mean"}, "reference"),
]


def _section(execution: str, choices: dict[str, Any]) -> dict[str, Any]:
    own = {key: value for key, value in choices.items() if key in ModelConfig.model_fields}
    rest = {key: value for key, value in choices.items() if key not in own}
    return {**own, "sequence_model": {"execution": execution, **rest}}


@pytest.mark.parametrize(("execution", "choices", "able"), CANNOT, ids=str)
def test_an_execution_that_cannot_is_told_with_those_that_can(
    execution: str, choices: dict[str, Any], able: str
) -> None:
    told = f"c.yaml: model: sequence_model.execution: {execution} cannot compute this choice of "
    message = refuse(tree("model", _section(execution, choices)))
    assert message.startswith(told)
    assert message.endswith(f"; these can: {able}")


@pytest.mark.parametrize(("execution", "choices", "able"), CANNOT, ids=str)
def test_those_that_can_are_taken(execution: str, choices: dict[str, Any], able: str) -> None:
    for other in ["auto", *able.split(", ")]:
        parse_config(tree("model", _section(other, choices)))


def test_an_override_reaches_every_depth() -> None:
    changed = load_config(tree(), [f"{OURS}.depth=2", f"{WHERE}.kind=rotary", f"{OURS}.scale=0.5"])
    found = changed.model.sequence_model
    assert isinstance(found, AttentionConfig)
    assert (found.depth, found.scale, found.positions.kind) == (2, 0.5, "rotary")
    with pytest.raises(ConfigError, match=r"model\.sequence_model\.dept: unknown key; did you mean 'depth'"):
        load_config(tree(), [f"{OURS}.dept=2"])


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("model.positions", "this key is model.sequence_model.positions"),
        ("model.feed_forward", "this key is model.sequence_model.feed_forward"),
        ("model.sequence_model.read_out", "this key is model.read_out"),
        ("model.sequence_model.window", "this key is model.window"),
    ],
)
def test_a_key_of_another_section_is_sent_there(path: str, told: str) -> None:
    assert told in refuse(tree(path, "last"))


def test_a_stride_longer_than_a_stretch_is_refused() -> None:
    given = tree("training", {"stretch": 32, "stride": 33})
    assert "training: stride 33 is more than the 32 rows of a stretch" in refuse(given)
