"""A directory of answers that appears whole or not at all."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from netanomaly.errors import ConfigError
from netanomaly.files import TEMPORARY

DONE = "_SUCCESS"
"""An empty file that says that a directory is whole, as Spark's committer writes it."""


def check_output(out: Path) -> None:
    """Raise a ConfigError unless answers may be written there: a new directory, an empty one, or that of a run."""
    if out.exists() and not (out.is_dir() and ((out / DONE).exists() or not any(out.iterdir()))):
        raise ConfigError(f"--out {out}: is there and holds no answers (no {DONE}); name a new directory")


@contextmanager
def committed(out: Path) -> Iterator[Path]:
    """A directory beside `out` that takes its place when the block ends without an error, and goes away with one."""
    out = out.resolve()
    out.parent.mkdir(parents=True, exist_ok=True)
    staging, old = (out.with_name(f".{out.name}.{secrets.token_hex(4)}.{what}") for what in ("tmp", "old"))
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
        shutil.rmtree(staging, ignore_errors=True)
        if old.exists() and not out.exists():
            old.rename(out)
        shutil.rmtree(old, ignore_errors=True)
