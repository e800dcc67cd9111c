"""The directory that a run saves: exact, checked, and unable to run code."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from bundles import Change, change_json, sign, untrained
from netanomaly.bundle import load_bundle, save_bundle
from netanomaly.bundle_files import CONTENT, MANIFEST, WEIGHTS
from netanomaly.bundle_formats import FORMAT
from netanomaly.errors import BundleError
from netanomaly.predictor import load


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save_bundle(tmp_path / "run", untrained())
    return tmp_path / "run"


def test_what_was_saved_is_loaded(saved: Path) -> None:
    bundle, found = untrained(), load_bundle(saved)
    assert found.config == bundle.config
    assert found.classes == bundle.classes
    assert found.facts == bundle.facts
    assert found.weights.keys() == bundle.weights.keys()
    assert all(torch.equal(found.weights[name], weight) for name, weight in bundle.weights.items())


def test_channels_are_loaded_to_the_last_bit(saved: Path) -> None:
    channels, found = untrained().channels, load_bundle(saved).channels
    assert (found.kinds, found.baselines) == (channels.kinds, channels.baselines)
    for name in ("centre", "floor", "offset", "scale"):
        np.testing.assert_array_equal(getattr(found, name), getattr(channels, name))


def test_saving_what_was_loaded_gives_the_same_files(saved: Path, tmp_path: Path) -> None:
    save_bundle(tmp_path / "again", load_bundle(saved))
    for name in (WEIGHTS, CONTENT, MANIFEST):
        assert (tmp_path / "again" / name).read_bytes() == (saved / name).read_bytes()


def test_the_files_are_tensors_and_json_and_nothing_else(saved: Path) -> None:
    assert sorted(path.name for path in saved.iterdir()) == sorted([WEIGHTS, CONTENT, MANIFEST])


def test_saving_again_replaces_the_bundle(saved: Path) -> None:
    save_bundle(saved, untrained(seed=1))
    found, expected = load_bundle(saved).weights, untrained(seed=1).weights
    assert all(torch.equal(found[name], weight) for name, weight in expected.items())


@pytest.mark.parametrize("name", [WEIGHTS, CONTENT])
@pytest.mark.parametrize("place", [0, 0.5, 1])
def test_a_flipped_byte_is_found(saved: Path, name: str, place: float) -> None:
    content = bytearray((saved / name).read_bytes())
    content[int(place * (len(content) - 1))] ^= 1
    (saved / name).write_bytes(content)
    with pytest.raises(BundleError, match=f"{name}: is not the file that was saved"):
        load_bundle(saved)


@pytest.mark.parametrize("name", [WEIGHTS, CONTENT])
@pytest.mark.parametrize("share", [0, 0.5, 0.99])
def test_a_file_cut_short_is_found(saved: Path, name: str, share: float) -> None:
    content = (saved / name).read_bytes()
    (saved / name).write_bytes(content[: int(share * len(content))])
    with pytest.raises(BundleError, match=f"{name}: is not the file that was saved"):
        load_bundle(saved)


@pytest.mark.parametrize("name", [WEIGHTS, CONTENT])
def test_a_missing_file_is_named(saved: Path, name: str) -> None:
    (saved / name).unlink()
    with pytest.raises(BundleError, match=f"{name}: missing from the bundle"):
        load_bundle(saved)


def test_without_a_manifest_there_is_no_bundle(saved: Path) -> None:
    (saved / MANIFEST).unlink()
    with pytest.raises(BundleError, match="no bundle here"):
        load_bundle(saved)


@pytest.mark.parametrize("made", [False, True])
def test_a_directory_that_is_none_or_empty_holds_no_bundle(tmp_path: Path, made: bool) -> None:
    if made:
        (tmp_path / "run").mkdir()
    with pytest.raises(BundleError, match="no bundle here"):
        load_bundle(tmp_path / "run")


@pytest.mark.parametrize("name", [CONTENT, MANIFEST])
@pytest.mark.parametrize(("number", "message"), [(FORMAT + 1, "newer than this version reads"), (0, "unknown bundle")])
def test_another_format_is_refused(saved: Path, name: str, number: int, message: str) -> None:
    change_json(saved / name, lambda tree: tree.update(format=number))
    if name == CONTENT:
        sign(saved)
    with pytest.raises(BundleError, match=message):
        load_bundle(saved)


@pytest.mark.parametrize("number", [None, "1", [1], "newest"])
def test_a_format_that_is_no_number_is_refused(saved: Path, number: object) -> None:
    change_json(saved / MANIFEST, lambda tree: tree.update(format=number))
    with pytest.raises(BundleError, match="unknown bundle format"):
        load_bundle(saved)


GARBAGE = [b"", b"{", b"\xff\xfe\x00", b"null", b"[1, 2]", b"7", b'"text"', b"[" * 100_000, b"1" * 10_000]


@pytest.mark.parametrize("content", GARBAGE, ids=range(len(GARBAGE)))
@pytest.mark.parametrize("name", [CONTENT, MANIFEST])
def test_garbage_for_json_is_refused(saved: Path, name: str, content: bytes) -> None:
    (saved / name).write_bytes(content)
    if name == CONTENT:
        sign(saved)
    with pytest.raises(BundleError, match=name):
        load_bundle(saved)


def _forged(**header: Any) -> bytes:
    """A safetensors file with this header and 8 bytes of numbers."""
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(8)


TENSORS = [
    b"",
    b"PK\x03\x04 a zip, as torch.save writes",
    b"\x80\x04\x95 a pickle",
    struct.pack("<Q", 2**62) + b"{}",
    _forged(a={"dtype": "F32", "shape": [2**40], "data_offsets": [0, 8]}),
    _forged(a={"dtype": "F32", "shape": [2], "data_offsets": [0, 2**40]}),
    _forged(a={"dtype": "WHAT", "shape": [2], "data_offsets": [0, 8]}),
    _forged(a={"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}),
]


@pytest.mark.parametrize("content", TENSORS, ids=range(len(TENSORS)))
def test_garbage_for_tensors_is_refused(saved: Path, content: bytes) -> None:
    (saved / WEIGHTS).write_bytes(content)
    sign(saved)
    with pytest.raises(BundleError, match="not as expected"):
        load_bundle(saved)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *[(key, value) for key in ("classes", "config", "channels", "facts") for value in (None, 5, ["x"], "text")],
        *[(key, value) for key in ("config", "channels") for value in ({"x": 1}, {}, [])],
        ("classes", {"x": 1}),
    ],
    ids=str,
)
def test_content_of_another_kind_is_refused(saved: Path, key: str, value: object) -> None:
    change_json(saved / CONTENT, lambda tree: tree.update({key: value}))
    sign(saved)
    with pytest.raises(BundleError):
        load(saved)


@pytest.mark.parametrize("key", ["classes", "config", "channels", "facts"])
def test_content_that_is_missing_is_refused(saved: Path, key: str) -> None:
    change_json(saved / CONTENT, lambda tree: tree.pop(key))
    sign(saved)
    with pytest.raises(BundleError, match=f"not as expected: '{key}'"):
        load_bundle(saved)


def _shorten(key: str) -> Change:
    return lambda tree: tree["channels"][key].pop()


BROKEN: dict[str, Change] = {
    "offset too short": _shorten("offset"),
    "a scale of text": lambda tree: tree["channels"]["scale"].__setitem__(0, "x"),
    "scales of several lengths": lambda tree: tree["channels"].update(scale=[[1.0], [1.0, 2.0]]),
    "a class twice": lambda tree: tree["classes"].__setitem__(0, tree["classes"][1]),
    "no interval": lambda tree: tree["config"]["data"].update(interval=None),
    "one metric more": lambda tree: tree["config"]["data"]["metrics"].append({"name": "more"}),
    "a scale that is no number": lambda tree: tree["channels"]["scale"].__setitem__(0, float("nan")),
    "no centre": lambda tree: tree["channels"].pop("centre"),
    "no classes": lambda tree: tree["classes"].clear(),
    "centre too short": _shorten("centre"),
    "floor too short": _shorten("floor"),
    "scale too short": _shorten("scale"),
    "scales in a table": lambda tree: tree["channels"].update(scale=[tree["channels"]["scale"]]),
    "an unknown kind": lambda tree: tree["channels"]["kinds"].__setitem__(0, "exec"),
    "a kind twice": lambda tree: tree["channels"]["kinds"].insert(0, tree["channels"]["kinds"][0]),
    "kinds in another order": lambda tree: tree["channels"]["kinds"].reverse(),
    "a baseline of text": lambda tree: tree["channels"].update(baselines=["48"]),
    "a negative baseline": lambda tree: tree["channels"].update(baselines=[-5]),
    "a scale of zero": lambda tree: tree["channels"]["scale"].__setitem__(0, 0.0),
    "other kinds than the config's": lambda tree: tree["config"]["channels"].update(kinds=["level"]),
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_content_that_cannot_work_is_refused(saved: Path, change: Change) -> None:
    change_json(saved / CONTENT, change)
    sign(saved)
    with pytest.raises(BundleError):
        load(saved)


def test_another_baseline_than_that_of_the_config_is_refused(saved: Path) -> None:
    change_json(saved / CONTENT, lambda tree: tree["channels"].update(baselines=[7]))
    sign(saved)
    with pytest.raises(BundleError):
        load(saved)


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("model", "window", "auto"),
        ("model", "stem", "auto"),
        ("channels", "baselines", ["auto"]),
        ("channels", "levels", "auto"),
    ],
)
def test_what_training_has_to_settle_must_not_be_open(saved: Path, section: str, key: str, value: object) -> None:
    change_json(saved / CONTENT, lambda tree: tree["config"][section].update({key: value}))
    sign(saved)
    with pytest.raises(BundleError, match=r"leaves open \(auto\)"):
        load_bundle(saved)


def _resized(weights: dict[str, torch.Tensor]) -> None:
    name = "members.0.head.weight"
    weights[name] = weights[name][:, 1:].contiguous()


def _renamed(weights: dict[str, torch.Tensor]) -> None:
    weights["members.0.tail.weight"] = weights.pop("members.0.head.weight")


def _missing(weights: dict[str, torch.Tensor]) -> None:
    del weights["members.0.head.bias"]


def _surplus(weights: dict[str, torch.Tensor]) -> None:
    weights["more"] = torch.zeros(2)


@pytest.mark.parametrize("change", [_resized, _renamed, _missing, _surplus])
def test_weights_that_do_not_fit_are_refused(saved: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    weights = load_file(saved / WEIGHTS)
    change(weights)
    save_file(weights, saved / WEIGHTS)
    sign(saved)
    with pytest.raises(BundleError, match="weights do not fit"):
        load(saved)


def test_another_number_of_classes_than_the_weights_have_is_refused(saved: Path) -> None:
    def change(tree: dict[str, Any]) -> None:
        tree["classes"].append("more")
        tree["decisions"]["calibration"]["weights"].append(1.0)
        tree["decisions"]["alarms"]["thresholds"]["more"] = 0.5

    change_json(saved / CONTENT, change)
    sign(saved)
    with pytest.raises(BundleError, match="weights do not fit"):
        load(saved)


def _known(**changes: Any) -> dict[str, Any]:
    """What a bundle says of its training rows."""
    plain = {"chosen": [0, 1], "rows": 3, "means": [[0.0, 0.0]], "scale": [1.0, 1.0], "joint": [[0.1], [0.1]]}
    return {**plain, "limit": 2.0, **changes}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tree: tree["classes"].append("more"), "3 calibrated classes, 4 classes"),
        (lambda tree: tree["decisions"]["calibration"].update(temperature=0), "positive numbers"),
        (lambda tree: tree["decisions"]["calibration"].update(temperature=float("nan")), "NaN is no number"),
        (lambda tree: tree["decisions"]["calibration"].update(weights=[1, -1, 1]), "positive numbers"),
        (lambda tree: tree["decisions"]["alarms"]["thresholds"].update(congestion=1.5), "congestion: 1.5 is not"),
        (lambda tree: tree["decisions"]["alarms"]["thresholds"].pop("congestion"), "thresholds are not of the classes"),
        (lambda tree: tree["decisions"]["alarms"].update(min_rows=0), "min_rows has to be at least 1"),
        (lambda tree: tree["decisions"]["alarms"].update(min_rows=1.9), "no numbers of rows"),
        (lambda tree: tree["decisions"]["alarms"].update(min_rows=float("inf")), "Infinity is no number"),
        (lambda tree: tree["decisions"].update(known=_known(limit=0)), "not above 0"),
        (lambda tree: tree["decisions"].update(known=_known(limit=-1.0)), "not above 0"),
        (lambda tree: tree["decisions"].update(known=_known(joint=[[1.0], [1.0]])), "more than there is"),
        (lambda tree: tree["decisions"].update(known=_known(rows=10**7)), "there are none of"),
        (lambda tree: tree["decisions"].update(known=_known(chosen=[0, 999])), "there are none of"),
        (lambda tree: tree["decisions"].update(known="no"), "not as expected"),
        (lambda tree: tree.pop("decisions"), "'decisions'"),
    ],
)
def test_decisions_that_cannot_be_are_refused(saved: Path, change: Change, message: str) -> None:
    change_json(saved / CONTENT, change)
    sign(saved)
    with pytest.raises(BundleError, match=message):
        load_bundle(saved)


def test_a_manifest_cannot_point_elsewhere(saved: Path, tmp_path: Path) -> None:
    (saved / CONTENT).rename(tmp_path / "stolen.json")
    change_json(saved / MANIFEST, lambda tree: tree["files"].update({"../stolen.json": tree["files"].pop(CONTENT)}))
    with pytest.raises(BundleError, match=f"says nothing of {CONTENT}"):
        load_bundle(saved)


def test_facts_that_are_no_json_leave_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        save_bundle(tmp_path / "run", replace(untrained(), facts={"seconds": float("nan")}))
    with pytest.raises(BundleError, match="no bundle here"):
        load_bundle(tmp_path / "run")
