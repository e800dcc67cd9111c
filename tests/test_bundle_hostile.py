"""Bundles that somebody made to do harm, or that were damaged on the way: refused, with a word, and nothing happens."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from bundles import Change, change_json, sign, untrained
from netanomaly.bundle import load_bundle, save_bundle
from netanomaly.bundle_files import CONTENT, LARGEST, MANIFEST, WEIGHTS
from netanomaly.cli import main
from netanomaly.errors import BundleError
from netanomaly.predictor import load

FILES = (WEIGHTS, CONTENT, MANIFEST)
HUGE = 2**40


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save_bundle(tmp_path / "run", untrained())
    return tmp_path / "run"


def _refused(directory: Path, *words: str) -> None:
    """Loading is an error that says these words, and leaves the directory as it was."""
    before = _state(directory)
    with pytest.raises(BundleError) as raised:
        load_bundle(directory)
    message = str(raised.value)
    assert "\n" not in message
    assert all(word in message for word in words), message
    assert _state(directory) == before


def _state(directory: Path) -> dict[str, tuple[int, int]]:
    return {path.name: (path.lstat().st_size, path.lstat().st_mtime_ns) for path in directory.parent.rglob("*")}


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_anywhere_is_found(saved: Path, name: str) -> None:
    """Of every region of the file; in the manifest, which no hash covers, of every other byte."""
    whole = (saved / name).read_bytes()
    places = np.linspace(0, len(whole) - 1, 150 if name == MANIFEST else 30).astype(int).tolist()
    for place in places:
        broken = bytearray(whole)
        broken[place] ^= 1 << (place % 8)
        (saved / name).write_bytes(broken)
        if name == MANIFEST and _same_json(bytes(broken), whole):
            continue  # a space that became a tab
        with pytest.raises(BundleError, match=name if name != MANIFEST else MANIFEST + "|is not the file"):
            load_bundle(saved)


def _same_json(one: bytes, other: bytes) -> bool:
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:
        return False


@pytest.mark.parametrize("name", FILES)
def test_a_file_cut_short_anywhere_is_found(saved: Path, name: str) -> None:
    whole = (saved / name).read_bytes()
    for length in np.linspace(0, len(whole) - 2, 10).astype(int).tolist():  # the last byte ends a line, no more
        (saved / name).write_bytes(whole[:length])
        with pytest.raises(BundleError, match=name):
            load_bundle(saved)


@pytest.mark.parametrize("name", [WEIGHTS, CONTENT])
def test_a_file_of_another_bundle_is_found(saved: Path, tmp_path: Path, name: str) -> None:
    save_bundle(tmp_path / "other", untrained(seed=1))
    shutil.copy(tmp_path / "other" / name, saved / name)
    _refused(saved, name, "is not the file that was saved", "copy the whole directory again")


def test_another_bundle_s_manifest_is_found(saved: Path, tmp_path: Path) -> None:
    save_bundle(tmp_path / "other", untrained(seed=1))
    shutil.copy(tmp_path / "other" / MANIFEST, saved / MANIFEST)
    _refused(saved, "is not the file that was saved")


@pytest.mark.skipif(os.name != "posix", reason="links, pipes and devices as POSIX has them")
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", ["link out", "link in", "pipe", "device", "directory", "dangling link"])
@pytest.mark.timeout(20)  # a pipe nobody writes to is waited for
def test_only_regular_files_are_read(saved: Path, tmp_path: Path, name: str, kind: str) -> None:
    kept = tmp_path / "elsewhere"
    (saved / name).rename(kept)
    match kind:
        case "link out":
            (saved / name).symlink_to(kept)
        case "link in":
            kept.rename(saved / "renamed")
            (saved / name).symlink_to("renamed")
        case "pipe":
            os.mkfifo(saved / name)
        case "device":
            (saved / name).symlink_to("/dev/zero")
        case "directory":
            (saved / name).mkdir()
        case "dangling link":
            (saved / name).symlink_to(tmp_path / "nothing")
    _refused(saved, name, "is no regular file")


@pytest.mark.skipif(os.name != "posix", reason="links as POSIX has them")
@pytest.mark.timeout(20)
def test_what_waits_to_take_its_place_is_read_as_carefully(saved: Path) -> None:
    for name in (WEIGHTS, CONTENT):
        os.mkfifo(saved / f"{name}.new")
    assert load_bundle(saved).classes == untrained().classes
    save_bundle(saved, untrained(seed=1))
    assert sorted(path.name for path in saved.iterdir()) == sorted(FILES)


@pytest.mark.skipif(os.name != "posix", reason="links as POSIX has them")
def test_the_directory_itself_may_be_a_link(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to(saved)
    assert load_bundle(tmp_path / "latest").classes == untrained().classes


@pytest.mark.parametrize("name", FILES)
def test_a_huge_file_is_refused_before_it_is_read(saved: Path, name: str) -> None:
    with (saved / name).open("rb+") as stream:
        stream.truncate(HUGE)  # sparse: it takes no room on the disk
    _refused(saved, name)


@pytest.mark.parametrize("name", [WEIGHTS, CONTENT])
def test_a_huge_file_that_the_manifest_agrees_to_is_refused_before_it_is_read(saved: Path, name: str) -> None:
    with (saved / name).open("rb+") as stream:
        stream.truncate(HUGE)
    change_json(saved / MANIFEST, lambda tree: tree["files"][name].update(bytes=HUGE))
    _refused(saved, MANIFEST, f"{name} has {HUGE} bytes; at most {LARGEST[name]} are read")


def test_weights_larger_than_the_model_are_refused_before_they_are_read(saved: Path) -> None:
    size = 2**33
    with (saved / WEIGHTS).open("rb+") as stream:
        stream.truncate(size)
    change_json(saved / MANIFEST, lambda tree: tree["files"][WEIGHTS].update(bytes=size))
    _refused(saved, f"{size} bytes are more than its model has")


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: tree.update(more=1),
        lambda tree: tree["files"].update({"evil.py": {"bytes": 1, "sha256": "0" * 64}}),
        lambda tree: tree["files"].update({"../bundle.json": tree["files"][CONTENT]}),
        lambda tree: tree["files"].update({"/etc/passwd": tree["files"][CONTENT]}),
        lambda tree: tree["files"][WEIGHTS].update(path="../other"),
        lambda tree: tree["files"][WEIGHTS].update(bytes="100"),
        lambda tree: tree["files"][WEIGHTS].update(bytes=-1),
        lambda tree: tree["files"][WEIGHTS].update(bytes=True),
        lambda tree: tree["files"][WEIGHTS].update(bytes=1e3),
        lambda tree: tree["files"][WEIGHTS].update(sha256=None),
        lambda tree: tree["files"][WEIGHTS].update(sha256=""),
        lambda tree: tree["files"][WEIGHTS].update(sha256=tree["files"][WEIGHTS]["sha256"] + "\n"),
        lambda tree: tree["files"].pop(WEIGHTS),
        lambda tree: tree["files"].update({WEIGHTS: [1, "0" * 64]}),
        lambda tree: tree.update(files=[]),
        lambda tree: tree.update(format=True),
        lambda tree: tree.pop("format"),
    ],
)
def test_a_manifest_says_what_a_manifest_says_and_no_more(saved: Path, change: Change) -> None:
    change_json(saved / MANIFEST, change)
    _refused(saved, MANIFEST)


def test_a_manifest_of_a_newer_format_is_called_newer_whatever_else_is_in_it(saved: Path) -> None:
    change_json(saved / MANIFEST, lambda tree: tree.update(format=99, signature="x", files={}))
    _refused(saved, MANIFEST, "format 99 is newer than this version reads", "upgrade netanomaly")


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: tree.update(imports="os.system"),
        lambda tree: tree["config"].update(hook="builtins.exec"),
        lambda tree: tree["config"]["model"]["sequence_model"].update(kind="netanomaly.cli.main"),
        lambda tree: tree["config"]["model"]["sequence_model"].update(positions={"kind": "__import__('os')"}),
        lambda tree: tree["channels"].update(function="eval"),
        lambda tree: tree["channels"].update(kinds=["os.system"]),
        lambda tree: tree["decisions"].update(more=None),
        lambda tree: tree["decisions"]["calibration"].update(more=None),
        lambda tree: tree["decisions"]["alarms"].update(more=None),
    ],
)
def test_a_name_that_is_not_known_selects_nothing(saved: Path, change: Change) -> None:
    change_json(saved / CONTENT, change)
    sign(saved)
    _refused(saved, CONTENT)


@pytest.mark.parametrize(
    "text",
    ['{"format": 5, "format": 5, ', '{"more": NaN, ', '{"more": 1e999, ', '{"more": ' + "9" * 4000 + ", "],
    ids=["a key twice", "NaN", "infinite", "a huge number"],
)
def test_json_that_is_not_strict_is_refused(saved: Path, text: str) -> None:
    content = (saved / CONTENT).read_text(encoding="utf-8")
    (saved / CONTENT).write_text(text + content.lstrip()[1:], encoding="utf-8")
    sign(saved)
    _refused(saved, CONTENT, "not readable as JSON")


def _marker(directory: Path) -> bytes:
    """A pickle that makes a file when it is loaded."""
    code = f"open({str(directory / 'marker')!r}, 'w').close()"
    return f"cbuiltins\nexec\n(V{code}\ntR.".encode()


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("signed", [False, True])
def test_a_pickle_is_not_loaded(saved: Path, tmp_path: Path, name: str, signed: bool) -> None:
    (saved / name).write_bytes(_marker(tmp_path))
    if signed and name != MANIFEST:
        sign(saved)
    _refused(saved)
    assert not (tmp_path / "marker").exists()


def test_the_pickle_of_the_test_before_would_have_worked(tmp_path: Path) -> None:
    import pickle

    pickle.loads(_marker(tmp_path))
    assert (tmp_path / "marker").exists()


def _half(weights: dict[str, torch.Tensor]) -> None:
    name = "members.0.head.weight"
    weights[name] = weights[name].half()


def _double(weights: dict[str, torch.Tensor]) -> None:
    name = "members.0.head.weight"
    weights[name] = weights[name].double()


def _turned(weights: dict[str, torch.Tensor]) -> None:
    name = "members.0.head.weight"
    weights[name] = weights[name].T.contiguous()


def _traversing(weights: dict[str, torch.Tensor]) -> None:
    weights["../../head.weight"] = torch.zeros(1)


def _not_finite(weights: dict[str, torch.Tensor]) -> None:
    weights["members.0.head.bias"][0] = torch.inf


@pytest.mark.parametrize("change", [_half, _double, _turned, _traversing, _not_finite])
def test_weights_have_the_names_shapes_and_types_of_the_model(
    saved: Path, change: Callable[[dict[str, torch.Tensor]], None]
) -> None:
    weights = load_file(saved / WEIGHTS)
    change(weights)
    save_file(weights, saved / WEIGHTS)
    sign(saved)
    _refused(saved, WEIGHTS)


def _header(data: bytes) -> tuple[dict[str, Any], bytes]:
    length = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def _overlapping(header: dict[str, Any]) -> None:
    one, other = [name for name in header if name.endswith("bias")][:2]
    header[other]["data_offsets"] = header[one]["data_offsets"]


def _vast(header: dict[str, Any]) -> None:
    header["members.0.head.weight"]["shape"] = [2**40, 2**20]


def _wrapping(header: dict[str, Any]) -> None:
    header["members.0.head.weight"]["shape"] = [2**62, 8]


def _twice(header: dict[str, Any]) -> None:
    header["more"] = header["members.0.head.weight"]


@pytest.mark.parametrize("change", [_overlapping, _vast, _wrapping, _twice])
def test_a_header_that_lies_is_refused(saved: Path, change: Callable[[dict[str, Any]], None]) -> None:
    header, numbers = _header((saved / WEIGHTS).read_bytes())
    change(header)
    text = json.dumps(header).encode()
    (saved / WEIGHTS).write_bytes(struct.pack("<Q", len(text)) + text + numbers)
    sign(saved)
    _refused(saved, WEIGHTS)


def _set(*path: str, value: object) -> Change:
    def change(tree: dict[str, Any]) -> None:
        for key in path[:-1]:
            tree = tree[key]
        tree[path[-1]] = value

    return change


_LLAMA = {"model_type": "llama", "hidden_size": 2**16, "num_hidden_layers": 500, "num_attention_heads": 2**9}
_LANGUAGE: dict[str, Any] = {"kind": "language_model", "architecture": _LLAMA}
_BUCKETS = {"kind": "relative_bias", "buckets": 2**40, "furthest": 2**50}
VAST: dict[str, Change] = {
    "width": _set("config", "model", "width", value=2**40),
    "a width that overflows": _set("config", "model", "width", value=2**62),
    "members": _set("config", "model", "members", value=2**40),
    "depth": _set("config", "model", "sequence_model", "depth", value=2**40),
    "one block again and again": lambda tree: tree["config"]["model"]["sequence_model"].update(
        depth=2**40, share_weights=True
    ),
    "stem": _set("config", "model", "stem", value=2**50),
    "window": _set("config", "model", "window", value=2**40),
    "a window of a duration": _set("config", "model", "window", value="50000d"),
    "window that is almost possible": _set("config", "model", "window", value=2**24),
    "learned positions": lambda tree: tree["config"]["model"].update(
        window=2**22, sequence_model={"n_heads": 1, "positions": {"kind": "learned"}}, width=2**12
    ),
    "buckets": _set(
        "config",
        "model",
        "sequence_model",
        "positions",
        value=_BUCKETS,
    ),
    "gaps": _set("config", "data", "max_gap", value=2**60),
    "a language model": _set("config", "model", "sequence_model", value=_LANGUAGE),
    "a language model of many layers": _set(
        "config", "model", "sequence_model", value={**_LANGUAGE, "architecture": {**_LLAMA, "num_hidden_layers": 2**40}}
    ),
    "positions of a language model": _set(
        "config",
        "model",
        "sequence_model",
        value={"kind": "language_model", "architecture": {"model_type": "bert", "max_position_embeddings": 2**40}},
    ),
    "computed positions of a language model": _set(
        "config",
        "model",
        "sequence_model",
        value={
            "kind": "language_model",
            "architecture": {"model_type": "distilbert", "sinusoidal_pos_embds": True, "dim": 2**30},
        },
    ),
}


@pytest.mark.parametrize("change", VAST.values(), ids=VAST)
@pytest.mark.timeout(60)
def test_a_model_of_billions_of_weights_is_refused_without_making_it(saved: Path, change: Change) -> None:
    change_json(saved / CONTENT, change)
    sign(saved)
    _refused(saved)


LIMITED = """
import resource, sys
from pathlib import Path

import torch, transformers
from netanomaly.bundle import load_bundle
from netanomaly.errors import BundleError

good, *bad = map(Path, sys.argv[2:])
load_bundle(good)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for directory in bad:
    try:
        load_bundle(directory)
    except BundleError as error:
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) // 1024
        if grown > int(sys.argv[1]):
            sys.exit(f"{directory}: {grown} MiB more ({error})")
    else:
        sys.exit(f"{directory}: loaded")
"""


def _bombs(saved: Path, place: Path) -> Iterator[Path]:
    """Forged copies of a bundle, each of which asks for far more memory than it has bytes."""
    for number, change in enumerate(VAST.values()):
        copy = Path(shutil.copytree(saved, place / f"config{number}"))
        change_json(copy / CONTENT, change)
        sign(copy)
        yield copy
    for number, text in enumerate((b'{"a":[' + b"[]," * 10**7 + b"1]}", b"[" * 2**24, b'{"a":' * 10**6)):
        copy = Path(shutil.copytree(saved, place / f"json{number}"))
        (copy / CONTENT).write_bytes(text)
        sign(copy)
        yield copy
    for name in (WEIGHTS, CONTENT):
        copy = Path(shutil.copytree(saved, place / f"sparse-{name}"))
        with (copy / name).open("rb+") as stream:
            stream.truncate(2**33)
        change_json(copy / MANIFEST, lambda tree, name=name: tree["files"][name].update(bytes=2**33))
        yield copy


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="counts memory as Linux does")
def test_refusing_takes_little_memory(saved: Path, tmp_path: Path) -> None:
    most = 256  # MiB; the largest of these files has 30 MB
    bombs = [str(path) for path in _bombs(saved, tmp_path / "bombs")]
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LIMITED, str(most), str(saved), *bombs],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["predict", "BUNDLE", "rows.csv", "--out", "labels.csv"],
        ["eval", "BUNDLE"],
        ["inspect", "BUNDLE"],
        ["tune", "BUNDLE"],
        ["tune", "BUNDLE", "--min-rows", "2"],
        ["explain", "BUNDLE", "rows.csv", "--series", "a", "--at", "2026-03-01T00:00:00Z"],
        ["report", "BUNDLE", "rows.csv"],
        ["convert", "BUNDLE", "--kv-heads", "1", "--out", "new"],
        ["watch", "BUNDLE"],
    ],
    ids=lambda command: " ".join(command[:1] + command[2:3]),
)
def test_every_command_goes_through_the_same_door(
    saved: Path,
    tmp_path: Path,
    command: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("timestamp,link,rtt_ms,throughput_bps,loss_ratio\n")
    with (saved / WEIGHTS).open("rb+") as stream:
        stream.seek(-1, os.SEEK_END)
        stream.write(b"\x55")
    before = sorted(tmp_path.rglob("*"))
    assert main([str(saved) if part == "BUNDLE" else part for part in command]) == 4
    assert "is not the file that was saved" in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


def test_what_was_checked_is_what_is_loaded(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that are exchanged after they were read and before they are parsed change nothing."""
    import netanomaly.bundle as module

    read, expected = module.read_file, untrained().weights
    save_bundle(tmp_path / "other", untrained(seed=1))

    def exchanged(directory: Path, name: str, entry: Any) -> bytes:
        data = read(directory, name, entry)
        shutil.copy(tmp_path / "other" / name, saved / name)
        return data

    monkeypatch.setattr(module, "read_file", exchanged)
    found = load_bundle(saved).weights
    assert all(torch.equal(found[name], weight) for name, weight in expected.items())


def test_a_bundle_that_is_replaced_while_it_is_read_is_read_again(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import netanomaly.bundle as module

    read, calls = module.read_file, []

    def slow(directory: Path, name: str, entry: Any) -> bytes:
        if not calls:
            save_bundle(saved, untrained(seed=1))
        calls.append(name)
        return read(directory, name, entry)

    monkeypatch.setattr(module, "read_file", slow)
    found, expected = load_bundle(saved).weights, untrained(seed=1).weights
    assert all(torch.equal(found[name], weight) for name, weight in expected.items())


def test_a_bundle_that_would_not_be_read_is_not_written(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LARGEST, CONTENT, 100)
    with pytest.raises(BundleError, match=r"bundle\.json: would have \d+ bytes; at most 100 are read"):
        save_bundle(saved, untrained(seed=1))
    monkeypatch.undo()
    assert load(saved).facts == untrained().facts
