"""A directory of answers that appears whole or not at all."""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from netanomaly.errors import ConfigError
from netanomaly.files import TEMPORARY

DONE = "_SUCCESS"
"""An empty file that says that a directory is whole, as Spark's committer writes it."""

_NEW, _OLD, _LOCK = "new", "old", "lock"
"""Endings of what lies beside the answers: those that are being written, the earlier ones, one writer at a time."""


def check_output(out: Path) -> None:
    """Raise a ConfigError unless answers may be written there: a new directory, an empty one, or that of a run.

    Answers that a killed run has moved aside are in their place again.
    """
    out = out.resolve()
    if _left(out, _NEW) or _left(out, _OLD):
        with _alone(out):
            pass
    if out.exists() and not (out.is_dir() and ((out / DONE).exists() or not any(out.iterdir()))):
        raise ConfigError(f"--out {out}: is there and holds no answers (no {DONE}); name a new directory")


@contextmanager
def committed(out: Path) -> Iterator[Path]:
    """A directory beside `out` that takes its place when the block ends without an error, and goes away with one.

    Raises:
        ConfigError: another run is writing there.
    """
    out = out.resolve()
    out.parent.mkdir(parents=True, exist_ok=True)
    token = secrets.token_hex(4)
    staging, old = (out.with_name(f".{out.name}.{token}.{what}") for what in (_NEW, _OLD))
    with _alone(out):
        staging.mkdir()
        try:
            yield staging
            for left in staging.glob(TEMPORARY):  # of a worker that was killed
                left.unlink()
            (staging / DONE).touch()
            if out.exists():
                out.rename(old)
            staging.rename(out)
        finally:
            _tidy(out)


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Nobody else writes these answers meanwhile, and nothing is left of those who were killed as they did."""
    lock = FileLock(out.with_name(f".{out.name}.{_LOCK}"), blocking=False)
    try:
        lock.acquire()
    except Timeout:
        raise ConfigError(
            f"--out {out}: another run is writing there; wait for it, or name another directory"
        ) from None
    try:
        _tidy(out)
        yield
    finally:
        lock.release()


def _tidy(out: Path) -> None:
    """The earlier answers take their place again if there are no others; whatever else was in the making goes."""
    for old in _left(out, _OLD):
        if not out.exists():
            old.rename(out)
    for left in (*_left(out, _NEW), *_left(out, _OLD)):
        shutil.rmtree(left, ignore_errors=True)


def _left(out: Path, ending: str) -> list[Path]:
    """Directories beside the answers with names of this module's making."""
    name = re.compile(rf"\.{re.escape(out.name)}\.[0-9a-f]{{8}}\.{ending}")
    if not out.parent.is_dir():
        return []
    return sorted(path for path in out.parent.iterdir() if name.fullmatch(path.name) and path.is_dir())
