"""A bundle that came as bytes, from another process or machine."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from netanomaly.predictor import Predictor, load


def load_packed(files: Mapping[str, bytes], device: str | None = None, overrides: Iterable[str] = ()) -> Predictor:
    """The predictor of what `bundle_files.packed` gave; loaded, and so checked, as from a directory.

    Args:
        device, overrides: as of `load`.

    Raises:
        BundleError, ConfigError: as of `load`.
    """
    with tempfile.TemporaryDirectory(prefix="netanomaly-", ignore_cleanup_errors=True) as name:
        for file, content in files.items():
            (Path(name) / file).write_bytes(content)
        return load(name, device, overrides)
