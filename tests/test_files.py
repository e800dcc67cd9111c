"""Files that appear whole or not at all."""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
from pathlib import Path

import pytest

from netanomaly.files import atomic, sha256, write_json, write_text


def test_the_file_appears_with_its_content(tmp_path: Path) -> None:
    with atomic(tmp_path / "new") as temporary:
        temporary.write_text("content")
    assert (tmp_path / "new").read_text() == "content"


def test_the_directory_is_made(tmp_path: Path) -> None:
    write_text(tmp_path / "a" / "b" / "file", "content")
    assert (tmp_path / "a" / "b" / "file").read_text() == "content"


def test_the_old_content_stays_until_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with atomic(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_the_old_content(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(error), atomic(path) as temporary:
        temporary.write_text("half of the n")
        raise error
    assert path.read_text() == "old"


def test_a_disk_that_does_not_take_the_content_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError("no space left on device")

    write_text(tmp_path / "file", "old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        write_text(tmp_path / "file", "new")
    assert (tmp_path / "file").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_an_error_leaves_no_file_where_there_was_none(tmp_path: Path) -> None:
    with pytest.raises(ValueError), atomic(tmp_path / "file") as temporary:
        temporary.write_text("half")
        raise ValueError
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fails", [False, True])
def test_no_temporary_file_is_left(tmp_path: Path, fails: bool) -> None:
    try:
        with atomic(tmp_path / "file") as temporary:
            temporary.write_text("x")
            if fails:
                raise ValueError
    except ValueError:
        pass
    assert [path.name for path in tmp_path.iterdir()] == ([] if fails else ["file"])


def test_the_file_may_be_read_by_whom_a_plain_one_may(tmp_path: Path) -> None:
    write_text(tmp_path / "file", "x")
    (tmp_path / "plain").write_text("x")
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_reader_that_has_the_old_file_open_reads_on(tmp_path: Path) -> None:
    write_text(tmp_path / "file", "old content")
    with (tmp_path / "file").open() as stream:
        write_text(tmp_path / "file", "new")
        assert stream.read() == "old content"


@pytest.mark.parametrize("text", ["", "Störung\n", "a\r\nb\n"])
def test_text_is_written_as_it_is(tmp_path: Path, text: str) -> None:
    write_text(tmp_path / "file", text)
    assert (tmp_path / "file").read_bytes() == text.encode()


def test_json_round_trip(tmp_path: Path) -> None:
    value = {"ü": [1, 0.1 + 0.2, None, True, 5e-324], "b": {}}
    write_json(tmp_path / "file", value)
    assert json.loads((tmp_path / "file").read_text(encoding="utf-8")) == value


@pytest.mark.parametrize("value", [math.nan, math.inf, {"a": [math.nan]}])
def test_json_refuses_what_is_no_json(tmp_path: Path, value: object) -> None:
    write_json(tmp_path / "file", "old")
    with pytest.raises(ValueError):
        write_json(tmp_path / "file", value)
    assert json.loads((tmp_path / "file").read_text()) == "old"


@pytest.mark.parametrize("size", [0, 1, 2**20, 2**20 + 1])
def test_digest_is_that_of_the_bytes(tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    (tmp_path / "file").write_bytes(content)
    assert sha256(tmp_path / "file") == hashlib.sha256(content).hexdigest()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_a_file_has_the_permissions_of_the_user_whoever_wrote_it(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with atomic(tmp_path / "weights") as temporary:
            temporary.unlink()
            temporary.touch(mode=0o600)  # as a library does that writes a file of its own
    finally:
        os.umask(before)
    assert (tmp_path / "weights").stat().st_mode & 0o777 == 0o644
