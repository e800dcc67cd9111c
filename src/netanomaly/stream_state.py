"""The state of a stream as a file: what is kept of each series, and words about it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from netanomaly.errors import DataError
from netanomaly.files import atomic, other_kind

FORMAT = 3
"""Of the file; 2: series may have been forgotten; 3: with a digest."""


def write_state(path: str | PathLike[str], arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> None:
    """Write it, whole or not at all. Raises OSError if it cannot be written."""
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    words = json.dumps({"format": FORMAT, **about})
    content = save(contiguous, {"about": words, "sha256": _digest(contiguous, words)})
    with atomic(Path(path)) as temporary:
        temporary.write_bytes(content)


def read_state(path: str | PathLike[str], bundle: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays and the words about them.

    Args:
        bundle: fingerprint of the bundle that goes on from it.

    Raises:
        DataError: the file is not such a file, or of another bundle.
    """
    if (kind := other_kind(Path(path))) is not None:
        raise DataError(f"{path}: is {kind}, not a saved state of a stream")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            words = metadata["about"]
            about = json.loads(words)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        version, known = about["format"], about["bundle"]
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file") from error
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: not a saved state of a stream: {error}") from error
    if version != FORMAT or known != bundle:
        raise DataError(f"{path}: is the state of a stream with another bundle or of another version")
    if metadata.get("sha256") != _digest(arrays, words):
        raise DataError(f"{path}: is damaged: its SHA-256 is another one")
    return arrays, about


def _digest(arrays: Mapping[str, NDArray[Any]], words: str) -> str:
    """SHA-256 of the words and of all arrays, with their names and shapes."""
    digest = hashlib.sha256(words.encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
