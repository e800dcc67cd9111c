"""A bundle as bytes: sent to the machines of a cluster once, loaded once in each process that scores."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from netanomaly.bundle_files import packed
from netanomaly.packing import load_packed
from netanomaly.predictor import Predictor

_loaded: dict[tuple[str, tuple[str, ...]], Predictor] = {}
"""The predictor that this process used last, by the bundle's SHA-256 and what is changed about it."""


@dataclass(frozen=True)
class PackedBundle:
    """The files of a bundle by name, as they lie in its directory."""

    files: dict[str, bytes]

    @classmethod
    def of(cls, directory: Path) -> PackedBundle:
        """Read the files; whether what they say fits together is checked where they are loaded.

        Raises:
            BundleError: there is no bundle, or a file of it is not the one that was saved.
        """
        return cls(packed(directory))

    @cached_property
    def sha256(self) -> str:
        """Hex digest of the names, lengths and bytes of all files."""
        digest = hashlib.sha256()
        for name, content in sorted(self.files.items()):
            digest.update(f"{name} {len(content)}\n".encode())
            digest.update(content)
        return digest.hexdigest()

    def predictor(self, overrides: tuple[str, ...] = ()) -> Predictor:
        """The predictor of these bytes, loaded as from a directory; the same one as long as a process asks for it.

        Args:
            overrides: see `netanomaly.load`; the number of threads is one unless they say otherwise, since an engine
                runs a task on every core.

        Raises:
            BundleError, ConfigError: as of `netanomaly.load`.
        """
        key = (self.sha256, overrides)
        if key not in _loaded:
            predictor = load_packed(self.files, overrides=("threads=1", "device=cpu", *overrides))
            _loaded.clear()  # one at a time: a process scores with one bundle
            _loaded[key] = predictor
        return _loaded[key]
