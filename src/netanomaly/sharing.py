"""A bundle that one process has written, in all that trained with it."""

from __future__ import annotations

from pathlib import Path

from netanomaly.bundle_files import CONTENT, MANIFEST, WEIGHTS, packed
from netanomaly.packing import load_packed
from netanomaly.predictor import Predictor, load
from netanomaly.training.world import World


def shared_predictor(directory: Path, device: str, world: World) -> Predictor:
    """The predictor of a bundle in the first process's directory, in every process; they need not share a disk.

    Raises:
        BundleError: the bundle is damaged.
    """
    if world.is_alone:
        return load(directory, device=device)
    with world.alike():
        files = packed(directory) if world.is_first else {}
    return load_packed(
        {name: world.broadcast_bytes(files.get(name)) for name in (MANIFEST, CONTENT, WEIGHTS)}, device=device
    )
