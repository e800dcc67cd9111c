"""One writer per directory or file."""

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
    taken = f"run_dir: another process is writing to {directory}; wait for it, or name another run_dir"
    with held(directory / LOCK, taken):
        yield


@contextmanager
def held(path: Path, taken: str) -> Iterator[None]:
    """Nobody else holds this lock file meanwhile. The lock goes with its process, however that ends.

    Args:
        taken: what is said if somebody does already.

    Raises:
        ConfigError: somebody does.
        OSError: the file cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path, blocking=False)
    try:
        lock.acquire()
    except Timeout:
        raise ConfigError(taken) from None
    try:
        yield
    finally:
        lock.release()
