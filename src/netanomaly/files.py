"""Writing files so that a reader sees the old content or the new, never half of it."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

TEMPORARY = ".*.tmp"
"""What temporary files are called; a killed process may leave one behind."""


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """A temporary path in the same directory that replaces `path` when the block ends without an error.

    Raises:
        OSError: the file cannot be written (a full disk, a device in its place); names `path`, which has not changed.
    """
    if (kind := other_kind(path)) is not None:
        raise OSError(errno.EINVAL, f"is {kind}, not a regular file; it would be replaced", str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(TEMPORARY.replace("*", f"{path.name[:100]}.{secrets.token_hex(4)}"))
    temporary.touch(exist_ok=False)
    mode = temporary.stat().st_mode  # as the user's umask says
    try:
        yield temporary
        temporary.chmod(mode)  # some libraries write a file of their own, for its owner alone
        with temporary.open("rb+") as stream:
            os.fsync(stream.fileno())
        replace(temporary, path)
    except OSError as error:
        if error.errno is not None and error.filename in (None, str(temporary)):  # a failed write names no file
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def replace(source: Path, target: Path) -> None:
    """Give a file the name of another of its directory, whose content is lost, in a way that outlasts a power cut."""
    os.replace(source, target)
    if os.name == "posix":  # elsewhere a directory cannot be opened, and its journal has to do
        with suppress(OSError):  # some network file systems do not offer it; the new content is there all the same
            directory = os.open(target.parent, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)


def other_kind(path: Path) -> str | None:
    """What stands at `path` if that is neither a regular file nor nothing: reading it might never end."""
    if not path.exists() or path.is_file():
        return None
    return "a directory" if path.is_dir() else "a pipe" if path.is_fifo() else "a device or socket"


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with atomic(path) as temporary:
        temporary.write_bytes(text.encode("utf-8"))  # the same bytes on every system


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file, whole or not at all; NaN is refused."""
    write_text(path, json_text(value))


def json_text(value: Any) -> str:
    """What a JSON file holds. Raises ValueError for NaN."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def read_regular(path: Path, most: int) -> bytes:
    """The bytes of a file that a stranger may have made: read once, never waited for, never more than `most`.

    Raises:
        OSError: there is no such file, or it cannot be read.
        ValueError: it is a symbolic link, a directory, a device or a pipe, or larger.
    """
    if not stat.S_ISREG(path.lstat().st_mode):
        raise ValueError("is no regular file (a link, a directory, a pipe or a device)")
    flags = (getattr(os, name, 0) for name in ("O_BINARY", "O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK"))
    handle = os.open(path, os.O_RDONLY | sum(flags))  # it may be another one by now: what counts is what is open
    with os.fdopen(handle, "rb") as stream:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            raise ValueError("is no regular file (a link, a directory, a pipe or a device)")
        if about.st_size > most:
            raise ValueError(f"has {about.st_size} bytes, more than the {most} that are read")
        data = stream.read(about.st_size + 1)
    if len(data) != about.st_size:
        raise ValueError("changed while it was read")
    return data


def sha256(path: Path) -> str:
    """Hex digest of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(2**20):
            digest.update(block)
    return digest.hexdigest()
