"""From the section `model` to a classifier: every key reaches what it is about."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from classifiers import classifier, model_config, segment
from netanomaly.build_model import build_classifier
from netanomaly.errors import ConfigError
from netanomaly.model.attention import WAYS
from netanomaly.model.fused import fused_lookup
from netanomaly.model.lookup import lookup
from netanomaly.model.lookup_model import LookupModel
from netanomaly.model.masks import MaskRule
from netanomaly.model.positions import binary_table, linear_table, linear_unit_table, sine_table, sinusoidal_table
from netanomaly.model.schemes import AdditivePositions, NoPositions, RelativeBias, RelativeVectors, RotaryPositions
from netanomaly.model.tiled import tiled_lookup


def _lookups(**choices: Any) -> LookupModel:
    found = classifier(**choices).sequence_model
    assert isinstance(found, LookupModel)
    return found


def _first(model: LookupModel) -> Any:
    return model.blocks[0]


def test_sizes_are_those_of_the_config_and_of_the_data() -> None:
    model = classifier(window=5, width=12, n_heads=3, stem=4, channels=6, classes=7, positions="none")
    assert model(torch.zeros(2, model.history_rows + 3, 6), torch.ones(2, model.history_rows + 3).bool()).shape == (
        2,
        3,
        7,
    )
    assert (model.sequence_model.window, model.sequence_model.width, model.encoder.kernel) == (5, 12, 4)


def test_the_window_is_that_in_rows() -> None:
    assert build_classifier(model_config(window="8s"), 16, 3, 3, 2).history_rows == 15 + 2


@pytest.mark.parametrize(
    ("choices", "table"),
    [
        ({"positions": {"base": 50.0}}, sinusoidal_table(7, 8, 50.0)),
        ({"positions": "sine"}, sine_table(7, 8)),
        ({"positions": "binary"}, binary_table(7, 8)),
        ({"positions": "linear"}, linear_table(7, 8)),
        ({"positions": "linear_unit"}, linear_unit_table(7, 8)),
        ({"positions": "binary", "read_out": "cls", "memory": "blocks"}, binary_table(8, 8)),  # and the token
        ({"positions": "binary", "read_out": "cls"}, binary_table(7, 8)),
        ({"positions": "binary", "window": 8, "patch": 2}, binary_table(4, 8)),
    ],
)
def test_tables_have_a_row_for_every_token_and_the_width_of_a_head(
    choices: dict[str, Any], table: torch.Tensor
) -> None:
    model = _lookups(**choices)
    positions = _first(model).attention.positions
    assert isinstance(positions, AdditivePositions)
    assert torch.equal(positions.table, table)
    assert type(model.on_input) is NoPositions


@pytest.mark.parametrize("kind", ["sinusoidal", "sine", "binary", "linear", "linear_unit", "learned"])
def test_tables_on_the_input_have_the_whole_width_and_stand_nowhere_else(kind: str) -> None:
    model = _lookups(positions={"kind": kind, "add_to": "input"})
    assert isinstance(model.on_input, AdditivePositions)
    assert model.on_input.table.shape == (7, 16)
    assert type(_first(model).attention.positions) is NoPositions


@pytest.mark.parametrize(
    ("positions", "scheme", "numbers"),
    [
        ({"kind": "rotary", "base": 50.0}, RotaryPositions, {"base": 50.0}),
        ({"kind": "relative_bias", "buckets": 8, "furthest": 5}, RelativeBias, {"furthest": 5}),
        ({"kind": "relative_key", "reach": 3}, RelativeVectors, {"reach": 3}),
        ({"kind": "none"}, NoPositions, {}),
    ],
    ids=str,
)
def test_schemes_get_their_numbers(positions: dict[str, Any], scheme: type, numbers: dict[str, Any]) -> None:
    found: nn.Module = _first(_lookups(positions=positions)).attention.positions
    assert type(found) is scheme
    assert {name: getattr(found, name) for name in numbers} == numbers
    shapes = {name: tuple(parameter.shape) for name, parameter in found.named_parameters()}
    expected = {RelativeBias: {"bias": (2, 8)}, RelativeVectors: {"keys": (4, 8), "values": (4, 8)}}  # distances 0 to 3
    assert shapes == expected.get(scheme, {})


@pytest.mark.parametrize(
    ("choices", "rule"),
    [
        ({}, MaskRule()),
        ({"local": 3}, MaskRule(local=3)),
        ({"mask": "causal"}, MaskRule(causal=True)),
        ({"mask": "prefix", "prefix": 2, "local": 3, "memory": "blocks"}, MaskRule(causal=True, prefix=2, local=3)),
    ],
    ids=str,
)
def test_the_mask_is_that_of_the_config(choices: dict[str, Any], rule: MaskRule) -> None:
    assert _first(_lookups(**choices)).attention.mask == rule


@pytest.mark.parametrize(
    ("choices", "sliding", "way"),
    [
        ({}, True, lookup),
        ({"execution": "sliding"}, True, lookup),
        ({"execution": "tiled"}, False, tiled_lookup),
        ({"execution": "sdpa"}, False, fused_lookup),
        ({"execution": "reference"}, False, lookup),
        ({"memory": "blocks"}, False, fused_lookup),
        ({"memory": "blocks", "normalise": "none"}, False, tiled_lookup),
        ({"memory": "blocks", "positions": "relative_key"}, False, lookup),
        ({"positions": "relative_key"}, True, lookup),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_the_execution_is_the_one_that_was_chosen_or_the_best(choices: dict[str, Any], sliding: bool, way: Any) -> None:
    model = _lookups(**choices)
    assert model.sliding == sliding
    assert _first(model).attention._lookup is way


def test_blocks_get_their_choices() -> None:
    model = _lookups(
        depth=3, feed_forward="none", n_kv_heads=1, score="distance", scale=3.0, normalise="none", dropout=0.2
    )
    assert (model.depth, len(model.blocks)) == (3, 3)
    for block in model.blocks:
        attention: Any = block.attention
        assert block.feed_forward is None
        assert (attention.n_heads, attention.n_kv_heads, attention.normalise) == (2, 1, "none")
        assert (attention.score.kind, attention.score.divisor) == ("distance", 3.0)
        assert block.dropout.share == pytest.approx(0.2, abs=1e-5)
    assert len({id(parameter) for parameter in model.blocks.parameters()}) == len(list(model.blocks.parameters()))


@pytest.mark.parametrize(
    ("choices", "told"),
    [
        ({"window": 7, "patch": 2}, "patch: a window of 7 rows does not divide into 2 each"),
        ({"window": 4, "mask": "prefix", "prefix": 5, "memory": "blocks"}, "prefix: 5 is more than the 4 tokens"),
        (
            {"window": 4, "patch": 2, "mask": "prefix", "prefix": 3, "memory": "blocks"},
            "prefix: 3 is more than the 2 tokens of a window",
        ),
        ({"window": 4, "local": 5}, "local: 5 is more than the 4 tokens of a window"),
        (
            {"window": 300, "positions": "binary"},
            "positions: 8 bits cannot tell 300 positions apart; use a wider model or fewer heads",
        ),
        (
            {"window": 256, "positions": "binary", "read_out": "cls", "memory": "blocks"},
            "positions: 8 bits cannot tell 257 positions apart",
        ),
    ],
    ids=str,
)
def test_what_does_not_fit_the_window_is_told_with_its_path(choices: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        classifier(**choices)
    assert str(caught.value).startswith(f"model.sequence_model.{told}")


@pytest.mark.parametrize(
    "choices",
    [
        {"window": 8, "patch": 8},
        {"window": 4, "mask": "prefix", "prefix": 4, "memory": "blocks"},
        {"window": 4, "local": 4},
        {"window": 256, "positions": "binary"},
    ],
    ids=str,
)
def test_what_just_fits_is_built(choices: dict[str, Any]) -> None:
    assert _lookups(**choices).window == choices["window"]


@pytest.mark.parametrize("score", ["dot", "distance"])
@pytest.mark.parametrize(
    "positions",
    [
        "sinusoidal",
        "sine",
        "binary",
        "linear",
        "linear_unit",
        "learned",
        "rotary",
        "relative_bias",
        "relative_key",
        "none",
    ],
)
@torch.no_grad()
def test_scale_init_starts_where_sqrt_dim_does_whatever_the_positions(positions: str, score: str) -> None:
    if (positions, score) == ("relative_key", "distance"):
        return  # not defined
    channels, valid = segment(2, 20)
    found = [
        classifier(positions=positions, score=score, scale=scale)(channels, valid) for scale in ("init", "sqrt_dim")
    ]
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("choices", "both_ways"),
    [
        ({}, False),
        ({"read_out": "mean"}, True),
        ({"memory": "blocks"}, True),
        ({"read_out": "mean", "mask": "causal"}, False),
        ({"read_out": "mean", "mask": "prefix", "prefix": 2}, True),
    ],
    ids=str,
)
def test_distances_ahead_have_weights_only_where_rows_see_later_ones(choices: dict[str, Any], both_ways: bool) -> None:
    vectors = _first(_lookups(positions={"kind": "relative_key", "reach": 3}, **choices)).attention.positions
    bias = _first(
        _lookups(positions={"kind": "relative_bias", "buckets": 8, "furthest": 5}, **choices)
    ).attention.positions
    assert isinstance(vectors, RelativeVectors) and isinstance(bias, RelativeBias)
    assert vectors.keys.shape[0] == (7 if both_ways else 4)
    assert bias.both_ways == both_ways


@pytest.mark.parametrize(("window", "way"), [(64, "sdpa"), (4096, "tiled")])
def test_long_windows_in_which_all_rows_ask_are_computed_in_tiles(window: int, way: str) -> None:
    attention = _first(_lookups(window=window, read_out="mean")).attention
    assert attention._lookup is WAYS[way]
    assert _lookups(window=4096).sliding  # one row asks


@torch.no_grad()
def test_linear_positions_in_a_distance_score_keep_their_digits_in_long_windows() -> None:
    choices = {"window": 256, "positions": "linear", "score": "distance"}
    model = classifier(**choices)
    channels, valid = segment(1, model.history_rows + 5)
    single = model(channels, valid).double()
    torch.testing.assert_close(single, model.double()(channels.double(), valid), rtol=0, atol=1e-3)
