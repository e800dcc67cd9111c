"""Language models from a directory or of a given shape: trained, saved, loaded elsewhere."""

from __future__ import annotations

import json
import os
import shutil
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from language_models import architecture, save, tree
from netanomaly.build import resolve_model
from netanomaly.build_members import build_model
from netanomaly.config import load_config
from netanomaly.model.language_families import FAMILIES
from netanomaly.model.language_model import make_transformer, read_architecture
from netanomaly.predictor import load
from netanomaly.run import train
from netanomaly.yaml_reader import read_yaml
from networks import link, network

ROOT = Path(__file__).parents[1]
MINILM = Path(os.environ.get("NETANOMALY_MINILM", ROOT / "models" / "minilm"))


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any use of the network fails."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network is used")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("model_type", FAMILIES)
@torch.no_grad()
def test_the_weights_are_those_of_the_directory(
    model_type: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    original = save(tmp_path, model_type)
    capfd.readouterr()
    model = make_transformer(read_architecture(tmp_path), tmp_path, "all", None)
    assert capfd.readouterr() == ("", "")
    tokens = torch.randn(3, 6, 16)
    found, expected = model.eval()(inputs_embeds=tokens)[0], original(inputs_embeds=tokens)[0]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


@torch.no_grad()
def test_heads_of_the_directory_are_left_behind_and_half_precision_is_read_as_full(tmp_path: Path) -> None:
    original = save(tmp_path, "bert", "BertForMaskedLM")
    weights = load_file(tmp_path / "model.safetensors")
    save_file({name: weight.half() for name, weight in weights.items()}, tmp_path / "model.safetensors")
    model = make_transformer(read_architecture(tmp_path), tmp_path, "all", None)
    tokens = torch.randn(3, 6, 16)
    found, expected = model.eval()(inputs_embeds=tokens)[0], original(inputs_embeds=tokens)[0]
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, rtol=0, atol=0.02)


@torch.no_grad()
def test_weights_in_several_files_are_read(tmp_path: Path) -> None:
    original = save(tmp_path, "gpt2")
    weights = load_file(tmp_path / "model.safetensors")
    (tmp_path / "model.safetensors").unlink()
    names = sorted(weights)
    parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, some in parts.items():
        save_file({name: weights[name] for name in some}, tmp_path / file)
    index = {"weight_map": {name: file for file, some in parts.items() for name in some}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    model = make_transformer(read_architecture(tmp_path), tmp_path, "all", None)
    tokens = torch.randn(3, 6, 16)
    torch.testing.assert_close(model.eval()(inputs_embeds=tokens)[0], original(inputs_embeds=tokens)[0])


@pytest.mark.parametrize(
    ("model_type", "choice"),
    [
        ("bert", {"train": "all", "read_out": "cls"}),
        ("distilbert", {"train": "head"}),
        ("gpt2", {"train": "lora", "lora_rank": 2}),
        ("llama", {"train": "norms", "read_out": "mean"}),
        ("t5", {"train": "lora", "lora_rank": 2, "read_out": "attention"}),
    ],
    ids=lambda value: value if isinstance(value, str) else value["train"],
)
def test_a_bundle_needs_no_other_directory(model_type: str, choice: dict[str, Any], tmp_path: Path) -> None:
    save(tmp_path / "weights", model_type)
    predictor = train(tree(tmp_path / "run", path=str(tmp_path / "weights"), **choice), frames=network(rows=120))
    shutil.rmtree(tmp_path / "weights")
    shutil.move(tmp_path / "run", tmp_path / "moved")
    state = torch.random.get_rng_state()
    loaded = load(tmp_path / "moved")
    assert torch.equal(torch.random.get_rng_state(), state)  # the caller's draws are left alone
    frame = link("x", rows=60)
    found, expected = loaded.predict(frame), predictor.predict(frame)
    numbers = [name for name in found if name.startswith("p_")]
    np.testing.assert_allclose(found[numbers], expected[numbers], rtol=0, atol=1e-6)
    assert found["label"].tolist() == expected["label"].tolist()
    assert expected["p_normal"].std() > 1e-4
    saved = read_yaml(tmp_path / "moved" / "config.yaml")["model"]["sequence_model"]
    assert saved["architecture"] == {"model_type": model_type, **saved["architecture"]}
    assert set(saved["architecture"]) == {"model_type", *FAMILIES[model_type].keys}


def test_weights_of_a_directory_are_where_training_starts_and_loading_does_not(tmp_path: Path) -> None:
    original = save(tmp_path / "weights", "bert")
    config = load_config(
        {**tree(tmp_path / "run", path=str(tmp_path / "weights")), "data": {"metrics": ["x"], "interval": "1s"}}
    )
    resolved = resolve_model(config)
    place = "embeddings.position_embeddings.weight"
    expected = original.state_dict()[place]
    started, fresh = build_model(resolved, 6, 2, pretrained=True), build_model(resolved, 6, 2)  # a metric, six kinds
    for member in (0, 1):
        name = f"members.{member}.sequence_model.model.{place}"
        assert torch.equal(started.state_dict()[name], expected)
        assert not torch.equal(fresh.state_dict()[name], expected)


def test_a_run_can_be_repeated_from_its_own_config(tmp_path: Path) -> None:
    save(tmp_path / "weights", "bert")
    first = train(tree(tmp_path / "run", path=str(tmp_path / "weights")), frames=network(rows=100))
    again = train(tmp_path / "run" / "config.yaml", network(rows=100), overrides=[f"run_dir={tmp_path / 'again'}"])
    frame = link("x", rows=60)
    np.testing.assert_array_equal(first.predict(frame)["confidence"], again.predict(frame)["confidence"])


def test_a_shape_alone_learns(tmp_path: Path) -> None:
    config = tree(tmp_path / "run", architecture=architecture("bert"), epochs=12)
    config["training"] = {**config["training"], "stride": 1, "learning_rate": 3e-3}
    predictor = train(config, frames=network())
    frame = network("xyz", rows=180)
    assert (predictor.predict(frame)["label"] == frame["label"]).mean() > 0.8


def test_what_is_asked_for_stays_asked_for(tmp_path: Path) -> None:
    """Other sequence models are none of its business."""
    config = load_config({"data": {"metrics": ["x"]}})
    assert resolve_model(config) == config


@pytest.mark.slow
@pytest.mark.skipif(not MINILM.is_dir(), reason=f"no {MINILM}: sh scripts/fetch_minilm.sh, or NETANOMALY_MINILM=DIR")
def test_minilm_labels_rows(tmp_path: Path) -> None:
    config = tree(tmp_path / "run", path=str(MINILM), train="head", epochs=4)
    config["channels"]["levels"] = "seen"  # one member
    predictor = train(config, frames=network())
    assert predictor.facts["training"]["parameters"] < 11e6  # 22.7 million with its words
    frame = network("xyz", rows=100)
    assert (predictor.predict(frame)["label"] == frame["label"]).mean() > 0.8
    place = "encoder.layer.5.output.dense.weight"
    kept = load_file(tmp_path / "run" / "model.safetensors")[f"members.0.sequence_model.model.{place}"]
    assert torch.equal(kept, load_file(MINILM / "model.safetensors")[place])


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not MINILM.is_dir(), reason=f"no {MINILM}: sh scripts/fetch_minilm.sh, or NETANOMALY_MINILM=DIR")
def test_the_config_of_minilm_learns_from_the_bundled_measurements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    changes = [
        f"run_dir={json.dumps(str(tmp_path / 'run'))}",
        f"model.sequence_model.path={json.dumps(str(MINILM))}",
        "model.sequence_model.train=head",  # the fastest
        "training.learning_rate=2e-3",
        "training.epochs=5",
        "training.stride=8",
    ]
    train(ROOT / "configs" / "language_model.yaml", overrides=changes)
    report = json.loads((tmp_path / "run" / "evaluation.json").read_text(encoding="utf-8"))
    assert report["rows"] == 7142
    assert report["macro_f1"] > 2 * report["baselines"]["majority"]["macro_f1"]
