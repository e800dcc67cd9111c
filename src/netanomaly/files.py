"""Writing files so that a reader sees the old content or the new, never half of it."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TEMPORARY = ".*.tmp"
"""What temporary files are called; a killed process may leave one behind."""


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """A temporary path in the same directory that replaces `path` when the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(TEMPORARY.replace("*", f"{path.name[:100]}.{secrets.token_hex(4)}"))
    temporary.touch(exist_ok=False)
    mode = temporary.stat().st_mode  # as the user's umask says
    try:
        yield temporary
        temporary.chmod(mode)  # some libraries write a file of their own, for its owner alone
        with temporary.open("rb+") as stream:
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file, whole or not at all; NaN is refused."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def sha256(path: Path) -> str:
    """Hex digest of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(2**20):
            digest.update(block)
    return digest.hexdigest()
