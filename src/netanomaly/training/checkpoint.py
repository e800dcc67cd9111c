"""A checkpoint: tensors and plain values in one file, whole or not there, and read only if it is what was written.

It is a safetensors file, so that reading it can run no code. Two of its tensors are bytes: `facts`, a JSON object,
and `sha256`, the digest of everything else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from netanomaly.errors import BundleError
from netanomaly.files import atomic
from netanomaly.training.world import ALONE, World

FACTS, DIGEST = "facts", "sha256"
MOST_BYTES = 5 * 16 * 2**30
"""A file that is larger is no checkpoint of ours and is not read: it has the weights, the best ones and two moments of
each, and a bundle has at most 16 GiB of weights."""


@dataclass(frozen=True)
class Checkpoint:
    """What a file holds: tensors by name, on the CPU, and plain values."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]


def save_checkpoint(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write a checkpoint: a reader, or a machine that lost its power, finds the one before or this one.

    Raises:
        OSError: it cannot be written, for example on a full disk; the one before is still there.
    """
    written = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    written[FACTS] = _bytes(json.dumps(facts, allow_nan=False).encode())
    written[DIGEST] = _bytes(_digest(written))
    content = save(written)
    with atomic(path) as temporary:
        temporary.write_bytes(content)


def load_checkpoint(path: Path, world: World = ALONE) -> Checkpoint:
    """Read a checkpoint and check it.

    Args:
        world: the first process reads it for all: the others may have no access to that disk.

    Raises:
        BundleError: it is not what was written.
    """
    content = world.of_first(lambda: _read(path))
    try:
        tensors = load(content)
        digest = tensors.pop(DIGEST)
        if bytes(digest.tolist()) != _digest(tensors):
            raise ValueError("the SHA-256 of its content is not the one that was saved with it")
        facts = json.loads(bytes(tensors.pop(FACTS).tolist()))
        if not isinstance(facts, dict):
            raise ValueError("its facts are no JSON object")
    except (KeyError, TypeError, ValueError, RecursionError, SafetensorError) as error:
        raise _not_whole(path, error) from error
    return Checkpoint(tensors, facts)


def check_weights(weights: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Raise a ValueError if weights have other names, shapes or types than those of a model."""
    for name in sorted(weights.keys() | expected.keys()):
        found, wanted = weights.get(name), expected.get(name)
        if found is None or wanted is None or (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
            raise ValueError(f"its weights are of another model: {name}")


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"larger than {MOST_BYTES:,} bytes")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise _not_whole(path, error) from error


def _not_whole(path: Path, error: Exception) -> BundleError:
    return BundleError(f"{path}: not a whole checkpoint ({error}); --overwrite starts afresh")


def _digest(tensors: Mapping[str, Tensor]) -> bytes:
    """SHA-256 of names, types, shapes and values."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.digest()


def _bytes(content: bytes) -> Tensor:
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)
