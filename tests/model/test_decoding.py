"""A causal classifier row by row, against the whole window at once."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from classifiers import CLASSES, classifier, segment, stirred
from netanomaly.model.classifier import NetworkAnomalyClassifier
from netanomaly.model.decoding import CausalDecoder
from netanomaly.model.encoder import MetricEncoder
from netanomaly.model.sequence_model import SequenceModel

WINDOW = 7
CHOICES: list[dict[str, Any]] = [
    {},
    {"stem": 1},
    {"memory": "blocks", "depth": 2},
    {"depth": 2, "share_weights": True, "n_kv_heads": 1, "positions": "none"},
    {"positions": {"kind": "relative_key", "reach": 2}, "local": 3},
    {"positions": {"kind": "relative_bias", "buckets": 8, "furthest": 5}, "score": "distance"},
    {"feed_forward": "none", "scale": "init"},
    {"memory": "blocks", "execution": "tiled", "normalise": "none", "scale": 4.0},
    {"memory": "blocks", "execution": "sdpa"},
]


def _model(**choices: Any) -> NetworkAnomalyClassifier:
    plain = {"window": WINDOW, "mask": "causal", "positions": "rotary"}
    return stirred(classifier(**{**plain, **choices})).double().eval()


def _window(model: NetworkAnomalyClassifier, share: float = 0.7) -> tuple[Tensor, Tensor]:
    """A window, and nothing before it."""
    front = model.encoder.kernel - 1
    channels, valid = segment(3, front + WINDOW, share, dtype=torch.float64)
    valid[:, :front] = False
    valid[:, -1] = True
    return channels, valid


@pytest.mark.parametrize("choices", CHOICES, ids=str)
@torch.no_grad()
def test_the_last_row_has_the_logits_of_the_whole_window(choices: dict[str, Any]) -> None:
    model = _model(**choices)
    channels, valid = _window(model)
    decoder, front = CausalDecoder(model), model.encoder.kernel - 1
    found = [decoder.step(channels[:, n], valid[:, n]) for n in range(front, front + WINDOW)]
    torch.testing.assert_close(found[-1], model(channels, valid)[:, 0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("choices", CHOICES, ids=str)
@torch.no_grad()
def test_every_row_has_the_logits_of_the_full_causal_pass(choices: dict[str, Any]) -> None:
    model = _model(**choices)
    channels, valid = _window(model)
    decoder, front = CausalDecoder(model), model.encoder.kernel - 1
    found = torch.stack([decoder.step(channels[:, n], valid[:, n]) for n in range(front, front + WINDOW)], 1)
    lookups: Any = model.sequence_model
    embeddings = model.encoder(channels, valid)
    rows = lookups.encode(*lookups.tokens(embeddings, valid[:, front:]))
    assert found.shape == (3, WINDOW, CLASSES)
    torch.testing.assert_close(found, model.head(model.norm(rows)), rtol=0, atol=1e-12)


@pytest.mark.parametrize("choices", CHOICES, ids=str)
@torch.no_grad()
def test_every_row_is_named_as_the_newest_of_a_window_that_has_nothing_before_it(choices: dict[str, Any]) -> None:
    model = _model(**choices)
    channels, valid = _window(model)
    decoder, front = CausalDecoder(model), model.encoder.kernel - 1
    for n in range(WINDOW):
        found = decoder.step(channels[:, front + n], valid[:, front + n])
        later, size = WINDOW - 1 - n, channels.shape[1]  # rows that have not come yet: move the others to the end
        moved = torch.cat([channels[:, :later], channels[:, : size - later]], dim=1)
        seen = torch.cat([torch.zeros_like(valid[:, :later]), valid[:, : size - later]], dim=1)
        seen_any = seen[:, front:].any(1)  # a window without any measured row names nothing
        torch.testing.assert_close(found[seen_any], model(moved, seen)[:, 0][seen_any], rtol=0, atol=1e-12)


@torch.no_grad()
def test_what_stands_in_rows_that_are_not_valid_does_not_matter() -> None:
    model = _model()
    channels, valid = _window(model)
    spoilt = channels.masked_fill(~valid[..., None], float("nan"))
    one, other = CausalDecoder(model), CausalDecoder(model)
    for n in range(2, 2 + WINDOW):
        assert torch.equal(one.step(channels[:, n], valid[:, n]), other.step(spoilt[:, n], valid[:, n]))


def test_a_full_window_takes_no_more_rows() -> None:
    model = _model()
    channels, valid = _window(model)
    decoder = CausalDecoder(model)
    for n in range(WINDOW):
        decoder.step(channels[:, n], valid[:, n])
    with pytest.raises(ValueError, match=f"the window is full: it holds {WINDOW} tokens"):
        decoder.step(channels[:, 0], valid[:, 0])


@pytest.mark.parametrize(
    ("choices", "told"),
    [
        ({"mask": "bidirectional"}, "takes look-ups with the mask causal"),
        ({"mask": "prefix", "prefix": 2, "memory": "blocks"}, "takes look-ups with the mask causal"),
        ({"read_out": "cls"}, "takes the read-out last and no patches"),
        ({"read_out": "mean"}, "takes the read-out last and no patches"),
        ({"patch": 7}, "takes the read-out last and no patches"),
        ({"positions": "sinusoidal"}, "takes positions that know distances only"),
        ({"positions": {"kind": "learned", "add_to": "input"}}, "takes positions that know distances only"),
    ],
    ids=str,
)
def test_models_that_cannot_be_asked_row_by_row_are_refused(choices: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        CausalDecoder(_model(**choices))


def test_another_sequence_model_is_refused() -> None:
    model = NetworkAnomalyClassifier(MetricEncoder(3, 4, 1), SequenceModel(4, 4), 2)
    assert isinstance(model, nn.Module)
    with pytest.raises(ValueError, match="takes look-ups with the mask causal"):
        CausalDecoder(model)
