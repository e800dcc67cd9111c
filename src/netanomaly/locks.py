"""One writer per directory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from netanomaly.errors import ConfigError

LOCK = ".lock"


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Nobody else writes a run there meanwhile. The lock goes with its process, however that ends.

    Raises:
        ConfigError: somebody does already.
    """
    lock = FileLock(directory / LOCK, blocking=False)
    try:
        lock.acquire()
    except Timeout:
        raise ConfigError(
            f"run_dir: another process is writing to {directory}; wait for it, or name another run_dir"
        ) from None
    try:
        yield
    finally:
        lock.release()
