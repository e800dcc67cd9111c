"""Directories and shapes that do not make a language model, and what is said then."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from language_models import architecture, save, tree
from netanomaly.build_model import build_classifier
from netanomaly.config import load_config
from netanomaly.config_model import ModelConfig
from netanomaly.errors import ConfigError
from netanomaly.predictor import load
from netanomaly.run import train
from networks import network

ROOT = Path(__file__).parents[1]


def _no_directory(directory: Path) -> None:
    shutil.rmtree(directory)


def _no_weights(directory: Path) -> None:
    (directory / "model.safetensors").unlink()


def _pickle(directory: Path) -> None:
    _no_weights(directory)
    (directory / "pytorch_model.bin").write_bytes(b"\x80\x04")


def _no_config(directory: Path) -> None:
    (directory / "config.json").unlink()


def _broken_config(directory: Path) -> None:
    (directory / "config.json").write_text("{")


def _list_config(directory: Path) -> None:
    (directory / "config.json").write_text("[]")


def _change(**keys: object) -> Callable[[Path], None]:
    def change(directory: Path) -> None:
        file = directory / "config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **keys}))

    return change


def _broken_weights(directory: Path) -> None:
    (directory / "model.safetensors").write_bytes(b"no tensors")


def _missing_weights(directory: Path) -> None:
    weights = load_file(directory / "model.safetensors")
    del weights["encoder.layer.1.attention.self.value.bias"]
    save_file(weights, directory / "model.safetensors")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_no_directory, ["there is no directory", "current directory"]),
        (_no_weights, ["there is no model.safetensors"]),
        (_pickle, ["pytorch_model.bin", "pickle", "save it as model.safetensors"]),
        (_no_config, ["config.json", "cannot be read"]),
        (_broken_config, ["config.json", "cannot be read as JSON"]),
        (_list_config, ["config.json", "no JSON object"]),
        (_change(auto_map={"AutoModel": "evil.Model"}), ["auto_map", "never run"]),
        (_change(model_type="mamba"), ["model_type: 'mamba'", "bert, distilbert, gpt2, llama"]),
        (_change(model_type=None), ["model_type: None", "bert, distilbert, gpt2, llama"]),
        (_change(hidden_size="wide"), ["hidden_size", "wide"]),
        (_broken_weights, ["model.safetensors cannot be read"]),
        (_missing_weights, ["1 are missing or of another shape", "encoder.layer.1.attention.self.value.bias"]),
        (_change(intermediate_size=8), ["6 are missing or of another shape", "encoder.layer.0"]),
    ],
)
def test_directories_that_do_not_do(spoil: Callable[[Path], None], words: list[str], tmp_path: Path) -> None:
    save(tmp_path / "weights", "bert")
    spoil(tmp_path / "weights")
    with pytest.raises(ConfigError) as caught:
        train(tree(tmp_path / "run", path=str(tmp_path / "weights")), frames=network("abcdef", rows=60))
    message = str(caught.value)
    key = "architecture" if "hidden_size" in words else "path"
    assert message.startswith(f"model.sequence_model.{key}: ")
    assert "\n" not in message
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"model_type": "xlnet"}, ["architecture.model_type: 'xlnet' is not one of bert, "]),
        ({"model_type": "bert", "hidden_sise": 8}, ["architecture.hidden_sise: unknown key", "hidden_size"]),
        ({"model_type": "bert", "vocab_size": 8}, ["architecture.vocab_size: unknown key"]),
        ({"model_type": "bert", "hidden_size": 10, "num_attention_heads": 3}, ["architecture: ", "multiple"]),
        ({"model_type": "bert", "hidden_act": "loud"}, ["architecture: ", "loud"]),
        ({"model_type": "t5", "feed_forward_proj": "a-b-c"}, ["architecture: ", "feed_forward_proj"]),
    ],
    ids=lambda value: "" if isinstance(value, list) else " ".join(value),
)
def test_shapes_that_do_not_do(sizes: dict[str, Any], words: list[str], tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        train(tree(tmp_path / "run", architecture=sizes), frames=network(rows=60))
    message = str(caught.value)
    assert message.startswith("model.sequence_model.architecture")
    assert "\n" not in message
    assert all(word in message for word in words), message


@pytest.mark.parametrize("model_type", ["bert", "gpt2", "llama"])
@pytest.mark.parametrize(("read_out", "window", "fits"), [("last", 16, True), ("last", 17, False), ("cls", 16, False)])
def test_a_window_has_to_fit_the_positions(model_type: str, read_out: str, window: int, fits: bool) -> None:
    chosen = {"kind": "language_model", "architecture": architecture(model_type)}
    config = ModelConfig.model_validate({"window": window, "read_out": read_out, "sequence_model": chosen})
    if fits:
        assert build_classifier(config, window, 1, 3, 2).sequence_model.window == 16
        return
    with pytest.raises(ConfigError, match=r"positions for 16.*larger patch or a shorter model\.window") as caught:
        build_classifier(config, window, 1, 3, 2)
    assert str(caught.value).startswith("model.sequence_model.patch: ")


def test_a_shape_beside_a_directory_has_to_be_the_same(tmp_path: Path) -> None:
    save(tmp_path / "weights", "bert")
    other = {**architecture("bert"), "num_hidden_layers": 3}
    with pytest.raises(ConfigError, match=r"^model\.sequence_model\.architecture: is not that of .*leave it out"):
        train(tree(tmp_path / "run", path=str(tmp_path / "weights"), architecture=other), frames=network(rows=60))


def test_a_directory_that_nobody_has_looked_at_is_no_shape() -> None:
    config = ModelConfig.model_validate({"window": 8, "sequence_model": {"kind": "language_model", "path": "weights"}})
    with pytest.raises(ConfigError, match=r"^model\.sequence_model\.architecture: is missing"):
        build_classifier(config, 8, 1, 3, 2)


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({}, "give path"),
        ({"path": ""}, "model.sequence_model.path"),
        ({"architecture": {"hidden_size": 8}}, "model_type"),
        ({"path": "x", "train": "lora"}, "lora_rank"),
        ({"path": "x", "lora_rank": 2}, "lora_rank"),
        ({"path": "x", "train": "some"}, "model.sequence_model.train"),
    ],
)
def test_keys_that_do_not_go_together(choice: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        load_config(tree(tmp_path, **choice))


@pytest.mark.parametrize(("package", "choice"), [("transformers", {}), ("peft", {"train": "lora", "lora_rank": 2})])
def test_without_the_extra_it_says_what_to_install(
    package: str, choice: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tree(tmp_path / "run", architecture=architecture("bert"), **choice)
    train(config, frames=network(rows=100))
    monkeypatch.setitem(sys.modules, package, None)
    expected = r"^model\.sequence_model\.kind: language_model needs more packages: pip install 'netanomaly\[lm\]'"
    with pytest.raises(ConfigError, match=expected):
        load(tmp_path / "run")
    with pytest.raises(ConfigError, match=expected):
        train({**config, "run_dir": str(tmp_path / "other")}, frames=network(rows=100))


def test_the_example_can_be_checked_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("transformers", "peft"):
        monkeypatch.setitem(sys.modules, package, None)
    chosen = load_config(ROOT / "configs" / "language_model.yaml").model.sequence_model
    assert chosen.kind == "language_model"
    assert chosen.path == "models/minilm"
