"""What needs a CUDA device; skipped without one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import netanomaly
from classifiers import classifier, model_config, segment, stirred
from netanomaly.config_model import AttentionConfig
from networks import network, settings

pytestmark = [pytest.mark.cuda, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]


def test_a_bundle_trained_on_cuda_gives_the_same_probabilities_on_the_cpu(tmp_path: Path) -> None:
    frame = network()
    on_cuda = netanomaly.train({**settings(tmp_path / "run"), "device": "cuda"}, frames=frame)
    on_cpu = netanomaly.load(tmp_path / "run", device="cpu")
    columns = [f"p_{name}" for name in on_cpu.classes]
    difference = on_cuda.predict(frame)[columns].to_numpy() - on_cpu.predict(frame)[columns].to_numpy()
    assert np.abs(difference).max() < 1e-4
    found, expected = (one.explain(frame, "f", frame["timestamp"][40]) for one in (on_cuda, on_cpu))
    np.testing.assert_allclose(found.attribution, expected.attribution, rtol=0, atol=0.05)
    np.testing.assert_allclose(found.looked_up, expected.looked_up, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"n_kv_heads": 1, "mask": "causal", "read_out": "mean", "depth": 2},
        {"memory": "blocks", "mask": "prefix", "prefix": 3, "positions": "rotary"},
        {"positions": {"kind": "relative_bias", "buckets": 8, "furthest": 9}, "local": 6, "score": "distance"},
        {"positions": {"kind": "relative_key", "reach": 4}, "read_out": "cls"},
        {"positions": {"kind": "learned", "add_to": "input"}, "patch": 2, "read_out": "attention"},
        {"normalise": "none", "scale": 8.0, "memory": "blocks", "read_out": "cls"},
    ],
    ids=str,
)
@pytest.mark.parametrize("share", [1.0, 0.5])
def test_however_it_is_computed_cuda_gives_the_logits_and_gradients_of_the_cpu(
    choices: dict[str, Any], share: float
) -> None:
    config = model_config(window=16, **choices)
    assert isinstance(config.sequence_model, AttentionConfig)
    for execution in config.sequence_model.able(config.read_out):
        outcomes = []
        for device in ("cpu", "cuda"):
            model = stirred(classifier(window=16, execution=execution, **choices)).to(device)
            channels, valid = segment(4, model.history_rows + 40, share)
            logits = model(channels.to(device), valid.to(device))
            logits.square().mean().backward()
            gradients = [p.grad.flatten().cpu() for p in model.parameters() if p.grad is not None]
            outcomes.append((logits.detach().cpu(), torch.cat(gradients)))
        for found, expected in zip(*outcomes, strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4, msg=execution)
