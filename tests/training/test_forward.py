"""The model as a step of training calls it: less exact, or compiled."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

from classifiers import classifier, segment, stirred
from netanomaly.errors import ConfigError
from netanomaly.model.classifier import NetworkAnomalyClassifier
from netanomaly.training.forward import Precision, compiler_errors, training_forward
from netanomaly.training.losses import weighted_cross_entropy
from netanomaly.training.world import ALONE

CPU = torch.device("cpu")
CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
OF_PYTORCH = pytest.mark.filterwarnings("default::DeprecationWarning:torch", "default::UserWarning:torch")
"""What it says of itself while it compiles."""
CHOICES: list[dict[str, Any]] = [
    {},
    {"execution": "reference"},
    {"memory": "blocks", "depth": 2, "execution": "sdpa"},
    {"memory": "blocks", "read_out": "mean", "execution": "tiled"},
    {"positions": {"kind": "relative_key", "reach": 4}},
    {"positions": {"kind": "relative_bias"}, "score": "distance"},
]


def _model(**choices: Any) -> NetworkAnomalyClassifier:
    return stirred(classifier(window=16, **choices))


def _step(
    model: NetworkAnomalyClassifier, device: torch.device, precision: Precision = "float32", compiled: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits, and the gradients of their loss as one vector."""
    model = copy.deepcopy(model).to(device)
    channels, valid = segment(4, model.history_rows + 40)
    with compiler_errors(compiled):
        logits = training_forward(model, ALONE, device, precision, compiled)(channels.to(device), valid.to(device), 1)
    targets = torch.from_numpy(np.random.default_rng(0).integers(0, logits.shape[2], (4, 40))).to(device)
    total, weight = weighted_cross_entropy(logits, targets, torch.ones(logits.shape[2], device=device), 0.0, -1)
    (total / weight).backward()
    assert all(one.dtype == torch.float32 for one in model.parameters())
    gradients = torch.cat([one.grad.flatten() for one in model.parameters() if one.grad is not None])
    assert logits.dtype == gradients.dtype == torch.float32
    return logits.detach().cpu(), gradients.cpu()


def _is_near(model: NetworkAnomalyClassifier, device: torch.device, tolerance: float, **how: Any) -> None:
    """Logits and gradients differ by no more than this share of their norms."""
    for found, expected in zip(_step(model, device, **how), _step(model, device), strict=True):
        assert (found - expected).norm() <= tolerance * expected.norm()


def test_as_it_is_it_is_the_model_itself() -> None:
    model = _model()
    assert training_forward(model, ALONE, CPU) is model


@pytest.mark.parametrize("choices", CHOICES, ids=str)
def test_in_bfloat16_logits_and_gradients_are_those_of_float32_to_two_digits(choices: dict[str, Any]) -> None:
    _is_near(_model(**choices), CPU, 0.03, precision="bfloat16")


def test_in_bfloat16_something_is_rounded() -> None:
    model = _model()
    assert not torch.equal(_step(model, CPU, "bfloat16")[0], _step(model, CPU)[0])


def test_scoring_stays_in_float32() -> None:
    model = _model().eval()
    channels, valid = segment(1, model.history_rows + 8)
    before = model(channels, valid)
    training_forward(model, ALONE, CPU, "bfloat16")(channels, valid, 1)
    assert torch.equal(model(channels, valid), before)


@pytest.mark.slow
@OF_PYTORCH
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_compiled_it_gives_the_same_logits_and_gradients(precision: Precision) -> None:
    model = _model()
    names = list(model.state_dict())
    _is_near(model, CPU, 1e-4 if precision == "float32" else 0.03, precision=precision, compiled=True)
    assert list(model.state_dict()) == names


def test_what_cannot_be_compiled_is_told_with_the_key() -> None:
    from torch._dynamo.exc import InternalTorchDynamoError

    said = r"training\.compile: .*no g\+\+ here.*set training\.compile: false"
    with pytest.raises(ConfigError, match=said), compiler_errors(True):
        raise InternalTorchDynamoError("no g++ here")


@pytest.mark.cuda
@CUDA
@pytest.mark.parametrize("choices", CHOICES, ids=str)
def test_on_cuda_in_bfloat16_logits_and_gradients_are_those_of_float32_to_two_digits(choices: dict[str, Any]) -> None:
    _is_near(_model(**choices), torch.device("cuda"), 0.03, precision="bfloat16")


@pytest.mark.cuda
@CUDA
@OF_PYTORCH
def test_on_cuda_compiled_it_gives_the_same_logits_and_gradients() -> None:
    _is_near(_model(), torch.device("cuda"), 1e-3, compiled=True)
