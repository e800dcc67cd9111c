"""What needs a CUDA device; skipped without one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import netanomaly
from networks import network, settings

pytestmark = [pytest.mark.cuda, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]


def test_a_bundle_trained_on_cuda_gives_the_same_probabilities_on_the_cpu(tmp_path: Path) -> None:
    frame = network()
    on_cuda = netanomaly.train({**settings(tmp_path / "run"), "device": "cuda"}, frames=frame)
    on_cpu = netanomaly.load(tmp_path / "run", device="cpu")
    columns = [f"p_{name}" for name in on_cpu.classes]
    difference = on_cuda.predict(frame)[columns].to_numpy() - on_cpu.predict(frame)[columns].to_numpy()
    assert np.abs(difference).max() < 1e-4
