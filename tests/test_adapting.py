"""Training that starts from a bundle: what is taken over, what is refused, what is left of the bundle."""

from __future__ import annotations

import json
import logging
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from language_models import save, tree
from netanomaly import load, load_config, train
from netanomaly.adapting import Start, adapt
from netanomaly.adapting_config import with_shape_of
from netanomaly.build import build_input_format
from netanomaly.build_members import build_member, build_views
from netanomaly.bundle import Bundle
from netanomaly.config import parse_config
from netanomaly.data.channels import Channels, channel_groups
from netanomaly.data.ingest import NO_PART, table_of_frames
from netanomaly.data.schema import Metric
from netanomaly.decisions import Decisions
from netanomaly.errors import BundleError, ConfigError
from netanomaly.files import sha256, write_text
from netanomaly.model.ensemble import Ensemble
from netanomaly.predictor import Predictor
from netanomaly.prepare import prepare
from netanomaly.run import fit_bundle
from netanomaly.training import trainer
from networks import METRICS, link, network, settings

PLAIN = Decisions.plain(("normal", "a"), "normal")

QUICK = {"epochs": 1}
OTHER = network(seed=1)  # a network that the bundle does not know


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("bundle") / "run"
    train(settings(directory, training={"epochs": 2}), frames=network())
    return directory


@pytest.fixture
def no_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Training changes no weight."""
    monkeypatch.setattr(trainer, "fit", lambda *_, **__: trainer.Outcome(1, 0.0, 1, 0.0))


def plain(run_dir: Path, bundle: Path, **sections: Any) -> dict[str, Any]:
    """A config that says nothing of model and channels but what `sections` say."""
    given_tree = settings(run_dir, training={**QUICK, "init_from": str(bundle)})
    data = {**given_tree["data"], **sections.pop("data", {})}
    return {**{key: given_tree[key] for key in ("run_dir", "device", "training")}, "data": data, **sections}


def refused(*arguments: Any, frames: pd.DataFrame = OTHER, overrides: Sequence[str] = (), **sections: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        train(plain(*arguments, **sections), frames=frames, overrides=overrides)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.usefixtures("no_steps")
@pytest.mark.parametrize("levels", ["hidden", "seen", "both"])
@pytest.mark.parametrize("row_layer", [True, False])
def test_before_the_first_step_it_answers_as_the_bundle(tmp_path: Path, levels: str, row_layer: bool) -> None:
    model = {"members": 2, "row_layer": row_layer}
    before = train(settings(tmp_path / "old", channels={"levels": levels}, model=model), frames=network())
    after = train(plain(tmp_path / "new", tmp_path / "old"), frames=OTHER)
    assert (after.config.model, after.config.channels) == (before.config.model, before.config.channels)
    _same_classes(after, before)


def _same_classes(found: Predictor, expected: Predictor) -> None:
    """The same answers, but for how sure they are: what is calibrated and what is unknown is settled anew."""
    answers = []
    for predictor in (found, expected):
        grid = predictor.grid(table_of_frames([(OTHER, NO_PART, "frame")], build_input_format(predictor.config.data)))
        own = [predictor.decisions.calibration.undone(rows) for rows in predictor.probabilities(grid.segments)]
        answers.append(np.concatenate(own))
    np.testing.assert_allclose(*answers, atol=1e-6)


def _random_bundle(names: Sequence[str], kinds: Sequence[str], baselines: int, levels: str, row_layer: bool) -> Bundle:
    chosen = {"kinds": list(kinds), "baselines": list(range(5, 5 + baselines)), "levels": levels}
    model = {"members": 1, "window": 4, "stem": 2, "width": 8, "row_layer": row_layer}
    given_tree = {"data": {"metrics": list(names), "interval": "1s"}, "channels": chosen, "model": model}
    config = parse_config(given_tree)
    channels = _random_channels(len(names), config.channels.kinds, baselines)
    fresh = _fresh(Bundle(config, channels, ("normal", "a"), {}, PLAIN, {}), channels, 2)
    return Bundle(config, channels, ("normal", "a"), dict(fresh.state_dict()), PLAIN, {})


def _random_channels(metrics: int, kinds: Sequence[str], baselines: int) -> Channels:
    rng = np.random.default_rng(metrics)
    values = rng.lognormal(1, 1, (40, metrics)) * rng.lognormal(0, 2, metrics)
    return Channels.fit([values], [np.ones(40, dtype=bool)], kinds, range(5, 5 + baselines))


def _fresh(bundle: Bundle, channels: Channels, classes: int) -> Ensemble:
    views = build_views(bundle.config, channels.count)
    sizes = [channels.count if view is None else len(view) for view in views]
    return Ensemble([build_member(bundle.config, 0, size, classes) for size in sizes], views)


KINDS = ("deviation", "spread", "missing", "log_level", "change")


@examples(deadline=None, max_examples=60)
@given(
    st.permutations(["rtt", "loss", "rate", "new", "newer"]),
    st.lists(st.sampled_from(KINDS), min_size=2, unique=True),
    st.integers(1, 2),
    st.sampled_from(["hidden", "seen", "both"]),
    st.booleans(),
)
@torch.no_grad()
def test_metrics_are_found_by_name_wherever_they_stand(
    names: list[str], kinds: list[str], baselines: int, levels: str, row_layer: bool
) -> None:
    """With more metrics in any order, the fresh classifier answers as the bundle's does without them."""
    if not {"log_level"} < {*kinds} - {"missing"}:
        levels = "seen"  # there is nothing to hide, or nothing else to see
    old = _random_bundle(["loss", "rtt", "rate"], kinds, baselines, levels, row_layer)
    fitted = _random_channels(len(names), old.config.channels.kinds, baselines)
    found = adapt(Start("x", "", old), [Metric(name, name) for name in names], fitted, ["b"], "normal", levels)
    model = _fresh(old, found.channels, len(found.classes))
    for place, member in enumerate(model.members):
        found.fill(member, place)
    values = np.random.default_rng(0).lognormal(1, 1, (20, len(names)))
    values[3, 2] = np.nan
    before = Predictor(old, torch.device("cpu")).model.eval()
    theirs = values[:, [names.index(name) for name in ("loss", "rtt", "rate")]]
    valid = torch.ones(1, 20, dtype=torch.bool)
    mine, wanted = (
        torch.from_numpy(channels(rows))[None] for channels, rows in ((found.channels, values), (old.channels, theirs))
    )
    assert found.classes == ("normal", "a", "b")
    for one, other, (_, seen), (_, known) in zip(
        model.eval().members, before.members, model._each(mine), before._each(wanted), strict=True
    ):
        logits = one(seen, valid)  # (1, T, 3)
        torch.testing.assert_close(logits[..., :2], other(known, valid), rtol=1e-4, atol=1e-5)
        assert logits[..., 2].abs().max() > 0
    of_new = [place for place, name in enumerate(names) if name.startswith("new")]
    by_metric, scaled = (one.scale.reshape(-1, len(names))[:, of_new] for one in (found.channels, fitted))
    np.testing.assert_array_equal(by_metric, scaled)


@pytest.mark.usefixtures("no_steps")
def test_a_metric_that_is_gone_counts_as_usual(tmp_path: Path, bundle: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As if all its channels were at the middle of what the bundle has seen; a warning names it."""
    metrics = [{"name": "loss_ratio", "unit": "ratio"}, {"name": "rtt_ms", "unit": "us"}]  # another unit of the same
    with caplog.at_level(logging.INFO):
        found = train(plain(tmp_path / "run", bundle, data={"metrics": metrics}), frames=OTHER)
    (told,) = (record for record in caplog.records if "only the bundle has" in record.message)
    assert told.levelno == logging.WARNING and told.message.endswith(": throughput_bps")
    groups = len(channel_groups(found.channels.kinds, found.channels.baselines))
    channels = np.random.default_rng(0).normal(size=(1, 30, groups, 3)).astype(np.float32)
    channels[..., METRICS.index("throughput_bps")] = 0
    valid = torch.ones(1, 30, dtype=torch.bool)
    old = load(bundle).model(torch.from_numpy(channels.reshape(1, 30, -1)), valid)
    new = found.model(torch.from_numpy(channels[..., [2, 0]].reshape(1, 30, -1)), valid)
    torch.testing.assert_close(new, old, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("no_steps")
def test_what_the_bundle_does_not_know_is_learnt_from_the_new_rows(tmp_path: Path, bundle: Path) -> None:
    frame = OTHER.assign(queue=OTHER["rtt_ms"] * 7).replace({"label": {"congestion": "flood"}})
    metrics = ["queue", *settings(tmp_path)["data"]["metrics"]]
    found, old = train(plain(tmp_path / "run", bundle, data={"metrics": metrics}), frames=frame), load(bundle)
    assert found.classes == ("normal", "congestion", "flood", "packet_loss")
    own = train(settings(tmp_path / "own", data={"metrics": metrics}), frames=frame)
    for key in ("centre", "floor", "offset", "scale"):
        new, before, fitted = (getattr(one.channels, key) for one in (found, old, own))
        np.testing.assert_array_equal(new.reshape(-1, 4)[:, 1:], before.reshape(-1, 3))
        np.testing.assert_array_equal(new.reshape(-1, 4)[:, 0], fitted.reshape(-1, 4)[:, 0])
    for one, other in zip(found.model.members, old.model.members, strict=True):
        torch.testing.assert_close(one.head.weight[[0, 1, 3]], other.head.weight, rtol=0, atol=0)
        assert not any(torch.equal(one.head.weight[2], row) for row in other.head.weight) and one.head.bias[2] == 0


@pytest.mark.parametrize(
    ("section", "key", "value", "told"),
    [
        ("model", "width", 32, "model.width: 32 is given, but the bundle"),
        ("model", "window", 9, "model.window: 9 is given, .* has 8,"),
        ("model", "window", "9s", "model.window: 9s is given, .* has 8,"),
        ("model", "members", 2, "model.members: 2 is given, .* has 1,"),
        ("model", "sequence_model", {"n_heads": 4}, "model.sequence_model.n_heads: 4 is given, .* has 2,"),
        (
            "model",
            "sequence_model",
            {"positions": "none"},
            "model.sequence_model.positions.kind: none is given, .* has sinusoidal,",
        ),
        ("channels", "kinds", ["change", "log_level"], r"channels.kinds: \[change, log_level\] is given, .* has \["),
        ("channels", "levels", "seen", "channels.levels: seen is given, .* has both,"),
        ("channels", "baselines", [48, "auto"], r"channels.baselines: \[48, auto\] is given, .* has \[48\]"),
    ],
)
def test_a_shape_that_is_not_the_bundles_is_refused(
    tmp_path: Path, bundle: Path, section: str, key: str, value: Any, told: str
) -> None:
    by_key = refused(tmp_path / "run", bundle, **{section: {key: value}})
    by_option = refused(tmp_path / "run", bundle, overrides=[f"{section}.{key}={json.dumps(value)}"])
    assert re.match(told, by_key) and by_key == by_option
    assert str(bundle) in by_key and "leave the key out" in by_key


@pytest.mark.usefixtures("no_steps")
def test_auto_the_same_value_and_what_shapes_no_weight_may_be_given(tmp_path: Path, bundle: Path) -> None:
    model = {"window": "8s", "stem": "auto", "width": 16, "dropout": 0.6, "sequence_model": {"execution": "reference"}}
    channels = {"levels": "auto", "baselines": "auto"}
    found, old = train(plain(tmp_path / "run", bundle, model=model, channels=channels), frames=OTHER), load(bundle)
    assert found.config.model.dropout == 0.6 and found.config.model.sequence_model.execution == "reference"
    free = {"dropout": 0.1, "sequence_model": old.config.model.sequence_model}
    assert found.config.model.model_copy(update=free) == old.config.model
    given_config = load_config(plain(tmp_path / "again", bundle))  # a config knows which keys were given
    assert train(given_config, frames=OTHER, overrides=["seed=1"]).config.model == old.config.model


def test_one_auto_stands_for_all_baselines() -> None:
    data = {"metrics": ["x"], "interval": "1s"}
    two = parse_config({"data": data, "channels": {"baselines": ["8s", 16]}})
    for given_one in ("auto", ["auto", 16], [8, "auto"]):
        found = with_shape_of(parse_config({"data": data, "channels": {"baselines": given_one}}), two, "x")
        assert found.channels.baselines == ("8s", 16)


def test_rows_of_another_kind_are_refused(tmp_path: Path, bundle: Path) -> None:
    place = (tmp_path / "run", bundle)
    assert "data.interval: 2s is given" in refused(*place, data={"interval": "2s"})
    assert "data.interval: this key is required" in refused(*place, data={"interval": None})
    assert "data.normal: 'ok' is given" in refused(*place, data={"normal": "ok"})
    none = refused(*place, data={"metrics": ["x"]}, frames=OTHER.assign(x=OTHER["rtt_ms"]))
    assert "none is a metric of the bundle" in none and "rtt_ms, throughput_bps, loss_ratio" in none
    for metric, told in (
        ({"name": "rtt_ms", "unit": "bit"}, "data.metrics: 'rtt_ms' is in bit, in the bundle .* it is in ms"),
        ({"name": "rtt_ms", "unit": "ms", "kind": "counter"}, "data.metrics: 'rtt_ms' is a counter, .* a gauge"),
    ):
        assert re.match(told, refused(*place, data={"metrics": [metric]}))


def test_what_is_no_bundle_is_told(tmp_path: Path, bundle: Path) -> None:
    with pytest.raises(BundleError, match=r"training.init_from: .*nowhere: no bundle here"):
        train(plain(tmp_path / "run", tmp_path / "nowhere"), frames=OTHER)
    with pytest.raises(BundleError, match=r"training.init_from: .*no bundle here \(no manifest.json\)"):
        train(plain(tmp_path / "run", tmp_path), frames=OTHER)
    shutil.copytree(bundle, tmp_path / "half")
    (tmp_path / "half" / "model.safetensors").write_bytes(b"x")
    with pytest.raises(BundleError, match=r"training.init_from: .*is not the file that was saved"):
        train(plain(tmp_path / "run", tmp_path / "half"), frames=OTHER)
    assert not (tmp_path / "run").exists()


def test_rows_prepared_for_another_shape_are_refused(tmp_path: Path, bundle: Path) -> None:
    prepared = prepare(parse_config(plain(tmp_path / "run", bundle, model={"window": 8, "stem": 3})), OTHER)
    with pytest.raises(ConfigError, match=r"model.members: 3 is given, .* so differ model.width"):
        fit_bundle(prepared, torch.device("cpu"), tmp_path / "log.jsonl")


@pytest.mark.usefixtures("no_steps")
@pytest.mark.parametrize("name", ["bundle_v1", "bundle_v2", "bundle_v3"])
def test_a_bundle_of_an_older_format_is_a_start_too(tmp_path: Path, name: str) -> None:
    old = Path(__file__).parent / "fixtures" / name
    found = train(plain(tmp_path / "run", old), frames=OTHER)
    _same_classes(found, load(old))


def test_a_language_model_is_a_start_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its weights are in the bundle: the directory that they came from is not needed any more."""
    save(tmp_path / "bert", "bert")
    old = train(tree(tmp_path / "old", path=str(tmp_path / "bert")), frames=network())
    shutil.rmtree(tmp_path / "bert")
    monkeypatch.setattr(trainer, "fit", lambda *_, **__: trainer.Outcome(1, 0.0, 1, 0.0))
    found = train(plain(tmp_path / "new", tmp_path / "old"), frames=OTHER)
    _same_classes(found, old)


def test_the_command_and_that_the_new_bundle_stands_alone(tmp_path: Path, bundle: Path) -> None:
    shutil.copytree(bundle, tmp_path / "runs" / "old")
    weights = sha256(bundle / "model.safetensors")
    OTHER.to_csv(tmp_path / "links.csv", index=False)
    chosen = plain(Path("runs/new"), Path("x"), data={"files": ["links.csv"]})
    write_text(tmp_path / "c.yaml", json.dumps(chosen))  # JSON is YAML
    command = [sys.executable, "-m", "netanomaly", "train", "c.yaml", "--set", "training.init_from=runs/old"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert load_config(tmp_path / "runs/new/config.yaml").training.init_from == "runs/old"
    shutil.rmtree(tmp_path / "runs" / "old")
    found = load(tmp_path / "runs" / "new")
    assert found.facts["init_from"] == {"path": "runs/old", "sha256": weights}
    assert weights in (tmp_path / "runs/new/RUN.md").read_text(encoding="utf-8")
    assert not found.predict(link("x")).equals(load(bundle).predict(link("x")))  # it has learnt
    scored = [sys.executable, "-m", "netanomaly", "eval", "runs/new"]
    assert subprocess.run(scored, cwd=tmp_path, capture_output=True, text=True).returncode == 0
