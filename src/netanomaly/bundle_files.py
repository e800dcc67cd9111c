"""The three files of a bundle: read once, checked as strictly as if a stranger had made them, replaced all at once.

The manifest says size and SHA-256 of the other two, and its replacement is the moment at which a bundle becomes
another one. Before it the new files wait beside the old ones, with the ending `.new`; after it they take their names.
Whoever reads looks for what the manifest says in both places, so whenever a process is killed there is a whole bundle:
the old one up to that moment, the new one from then on.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from netanomaly.bundle_formats import FORMAT, MIGRATIONS
from netanomaly.errors import BundleError
from netanomaly.files import atomic, json_text, read_regular, replace, sha256, write_json
from netanomaly.strict_json import parse_json

WEIGHTS, CONTENT, MANIFEST = "model.safetensors", "bundle.json", "manifest.json"
LARGEST = {MANIFEST: 2**16, CONTENT: 2**26, WEIGHTS: 2**34}
"""Bytes of each file; none is read that has more. 64 KiB, 64 MiB, 16 GiB (four thousand million float32 numbers)."""
AGAIN = "copy the whole directory again from where it comes from, or train a new one"
"""What to do about a bundle that is not as it was saved."""

_STAGED = ".new"
_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Entry:
    """What the manifest says of a file."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What there is to a bundle."""

    format: int
    files: Mapping[str, Entry]


def read_manifest(directory: Path) -> Manifest:
    """The manifest of a bundle.

    Raises:
        BundleError: there is none, or it is none, or of a newer format.
    """
    path = directory / MANIFEST
    try:
        data = read_regular(path, LARGEST[MANIFEST])
    except (FileNotFoundError, NotADirectoryError) as error:
        raise BundleError(
            f"{directory}: no bundle here (no {MANIFEST}); train one, or name the run's directory"
        ) from error
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    tree = json_object(data, path)
    check_format(tree.get("format"), path)
    files = tree.get("files")
    files = files if isinstance(files, dict) else {}
    for name in (WEIGHTS, CONTENT):
        if not isinstance(files.get(name), dict):
            raise BundleError(f"{path}: says nothing of {name}; {AGAIN}")
    check_keys(tree, ("format", "files"), path)
    check_keys(files, (WEIGHTS, CONTENT), path)
    return Manifest(tree["format"], {name: _entry(name, files[name], path) for name in (WEIGHTS, CONTENT)})


def _entry(name: str, entry: dict[str, Any], path: Path) -> Entry:
    check_keys(entry, ("bytes", "sha256"), path)
    size, digest = entry.get("bytes"), entry.get("sha256")
    if type(size) is not int or size < 0 or not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
        raise BundleError(f"{path}: gives no size and SHA-256 of {name}; {AGAIN}")
    if size > LARGEST[name]:
        raise BundleError(f"{path}: says that {name} has {size} bytes; at most {LARGEST[name]} are read")
    return Entry(size, digest)


def read_file(directory: Path, name: str, entry: Entry) -> bytes:
    """The bytes of a file of a bundle, read once: what was checked is what is returned.

    Raises:
        BundleError: it is not the file that the manifest says.
    """
    for path in (directory / f"{name}{_STAGED}", directory / name):  # in this order: it may be renamed meanwhile
        try:
            if _may_be(path, entry):
                found = read_regular(path, entry.bytes)
                if hashlib.sha256(found).hexdigest() == entry.sha256:
                    return found
        except FileNotFoundError as error:
            if path.name == name:
                raise BundleError(f"{path}: missing from the bundle; {AGAIN}") from error
        except (OSError, ValueError, MemoryError) as error:
            if path.name == name:
                raise _unreadable(path, error) from error
    raise BundleError(
        f"{directory / name}: is not the file that was saved (size or SHA-256 differ from {MANIFEST}); {AGAIN}"
    )


def consistent(directory: Path, read: Callable[[Path, Manifest], _Found]) -> _Found:
    """What is read of the files of one bundle: once more if another process has replaced them meanwhile.

    Raises:
        BundleError: as of `read_manifest` and `read`.
    """
    manifest = read_manifest(directory)
    try:
        return read(directory, manifest)
    except BundleError:
        now = read_manifest(directory)
        if now == manifest:
            raise
    return read(directory, now)


def packed(directory: Path) -> dict[str, bytes]:
    """The files of a bundle by name, as the manifest says that they are: what is sent to other processes.

    Raises:
        BundleError: there is none, or a file is not the one that was saved.
    """
    return consistent(directory, _packed)


def _packed(directory: Path, manifest: Manifest) -> dict[str, bytes]:
    entries = manifest.files
    files = {name: read_file(directory, name, entries[name]) for name in (CONTENT, WEIGHTS)}
    said = {name: {"bytes": entry.bytes, "sha256": entry.sha256} for name, entry in entries.items()}
    return {**files, MANIFEST: json_text({"format": manifest.format, "files": said}).encode("utf-8")}


def replace_files(directory: Path, writers: Mapping[str, Callable[[Path], None]]) -> None:
    """Make a bundle of new files, in the place of the one that is there.

    Args:
        writers: for weights and content what writes them to a path.

    Raises:
        BundleError: a file has more bytes than would be read.
        OSError: it cannot be written, such as for want of space. Then, as after any other error, the old one stays.
    """
    directory.mkdir(parents=True, exist_ok=True)
    _finish(directory)  # what a killed process has left
    try:
        files = {}
        for name, write in writers.items():
            staged = directory / f"{name}{_STAGED}"
            with atomic(staged) as temporary:
                write(temporary)
            size = staged.stat().st_size
            if size > LARGEST[name]:
                raise BundleError(f"{directory / name}: would have {size} bytes; at most {LARGEST[name]} are read")
            files[name] = {"bytes": size, "sha256": sha256(staged)}
        write_json(directory / MANIFEST, {"format": FORMAT, "files": files})
    finally:
        _finish(directory)


def _finish(directory: Path) -> None:
    """Files that wait take their names if the manifest says so; else they go."""
    waiting = [name for name in (WEIGHTS, CONTENT) if os.path.lexists(directory / f"{name}{_STAGED}")]
    if not waiting:
        return
    try:
        said: Mapping[str, Entry] = read_manifest(directory).files
    except BundleError:
        said = {}
    for name in waiting:
        staged = directory / f"{name}{_STAGED}"
        if name in said and _is(staged, said[name]):
            replace(staged, directory / name)
        else:
            staged.unlink(missing_ok=True)


def _is(path: Path, entry: Entry) -> bool:
    """Whether it is a regular file with the bytes that the manifest says."""
    try:
        return _may_be(path, entry) and sha256(path) == entry.sha256
    except ValueError:
        return False


def _may_be(path: Path, entry: Entry) -> bool:
    """Whether it has the right size, so that it is worth reading. Raises ValueError if it is no regular file."""
    about = path.lstat()
    if not stat.S_ISREG(about.st_mode):
        raise ValueError("is no regular file (a link, a directory, a pipe or a device)")
    return about.st_size == entry.bytes


def json_object(data: bytes, path: Path) -> dict[str, Any]:
    """The JSON object of a file. Raises BundleError if it holds none, or not one that means one thing."""
    try:
        return parse_json(data)
    except ValueError as error:
        raise BundleError(f"{path}: not readable as JSON: {error}; {AGAIN}") from error


def check_format(found: object, path: Path) -> None:
    """Raise a BundleError if this version does not read the format."""
    if type(found) is int and (found == FORMAT or found in MIGRATIONS):
        return
    if isinstance(found, int) and found > FORMAT:
        raise BundleError(
            f"{path}: bundle format {found} is newer than this version reads ({FORMAT}); upgrade netanomaly"
        )
    raise BundleError(f"{path}: unknown bundle format {found!r}; {AGAIN}")


def check_keys(tree: Mapping[str, Any], known: tuple[str, ...], path: Path) -> None:
    """Raise a BundleError if there is a key that nobody knows what it asks for."""
    if strange := sorted(tree.keys() - set(known)):
        raise BundleError(f"{path}: has {strange[0][:80]!r}, which is none of {', '.join(known)}; {AGAIN}")


def _unreadable(path: Path, error: Exception) -> BundleError:
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or "out of memory"
    return BundleError(f"{path}: cannot be read: {said}; {AGAIN}")
