"""The state of a stream as a file: what is kept of each series, and words about it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from netanomaly.errors import DataError
from netanomaly.files import atomic

FORMAT = 2
"""Of the file; 2: series may have been forgotten."""


def write_state(path: str | PathLike[str], arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> None:
    """Write it, whole or not at all."""
    with atomic(Path(path)) as temporary:
        contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        save_file(contiguous, temporary, {"about": json.dumps({"format": FORMAT, **about})})


def read_state(path: str | PathLike[str], bundle: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays and the words about them.

    Args:
        bundle: fingerprint of the bundle that goes on from it.

    Raises:
        DataError: the file is not such a file, or of another bundle.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            about = json.loads((file.metadata() or {})["about"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        version, known = about["format"], about["bundle"]
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file") from error
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path}: not a saved state of a stream: {error}") from error
    if version != FORMAT or known != bundle:
        raise DataError(f"{path}: is the state of a stream with another bundle or of another version")
    return arrays, about
