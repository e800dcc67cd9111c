"""A bundle that one process has written, in all that trained with it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from netanomaly.bundle_files import CONTENT, MANIFEST, WEIGHTS
from netanomaly.predictor import Predictor, load
from netanomaly.training.world import World


def shared_predictor(directory: Path, device: str, world: World) -> Predictor:
    """The predictor of a bundle in the first process's directory, in every process; they need not share a disk.

    Raises:
        BundleError: the bundle is damaged.
    """
    if world.is_alone:
        return load(directory, device=device)
    with tempfile.TemporaryDirectory() as name:
        for file in (MANIFEST, CONTENT, WEIGHTS):
            content = world.broadcast_bytes((directory / file).read_bytes() if world.is_first else None)
            (Path(name) / file).write_bytes(content)
        return load(name, device=device)
