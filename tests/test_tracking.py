"""Trackers are told how a training goes, and never end one."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from netanomaly import ConfigError, load_config, train
from netanomaly.build_tracking import build_trackers
from netanomaly.tracking.mlflow import MLflow
from netanomaly.tracking.tracker import Trackers, epoch_values, scores
from netanomaly.training.recipe import EpochRecord
from networks import network, settings

QUICK: dict[str, Any] = {"channels": {"levels": "hidden"}, "training": {"epochs": 2}}
RECORD = EpochRecord(2, 1, 30, None, 0.5, 1e-3, 0.7, 4.0)


class Notes:
    """A tracker that notes what it is told, and may fail."""

    name = "notes"

    def __init__(self, fails_at: str = "") -> None:
        self.told: list[str] = []
        self._fails_at = fails_at

    def _note(self, what: str) -> None:
        self.told.append(what)
        if what == self._fails_at:
            raise OSError("the server\nis down")

    def log_config(self, config: Mapping[str, Any]) -> None:
        self._note("config")

    def log_epoch(self, member: int, record: EpochRecord) -> None:
        self._note(f"epoch {record.epoch} of member {member}")

    def log_evaluation(self, report: Mapping[str, Any]) -> None:
        self._note("evaluation")

    def close(self, *, failed: bool) -> None:
        self._note("failed" if failed else "close")


def test_one_that_fails_is_told_of_once_and_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    good, bad = Notes(), Notes("epoch 1 of member 2")
    told = Trackers([bad, good])
    told.log_config({})
    told.log_epoch(RECORD)
    told.log_evaluation({})
    told.close()
    assert good.told == ["config", "epoch 1 of member 2", "evaluation", "close"]
    assert bad.told == good.told[:2]
    assert [record.message for record in caplog.records] == [
        "tracking.notes: the server is down; training goes on without it"
    ]


def test_an_epoch_without_a_loss_has_none() -> None:
    assert set(epoch_values(RECORD)) == {"gradient_norm", "learning_rate", "validation_macro_f1", "seconds"}


def test_a_training_tells_its_epochs_and_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = Notes()
    monkeypatch.setattr("netanomaly.run.build_trackers", lambda config: Trackers([notes]))
    train(settings(tmp_path / "run", **QUICK), network("abcef", 120))
    assert notes.told == ["config", "epoch 1 of member 1", "epoch 2 of member 1", "evaluation", "close"]


class Client:
    """In the place of MLflow's; notes calls."""

    def __init__(self, uri: str) -> None:
        self.calls: list[tuple[Any, ...]] = [(uri,)]

    def __getattr__(self, name: str) -> Any:
        def called(*given: Any, **named: Any) -> Any:
            self.calls.append((name, *given, *named.values()))
            made = SimpleNamespace(info=SimpleNamespace(run_id="r1"))
            return {"get_experiment_by_name": None, "create_experiment": "7", "create_run": made}.get(name)

        return called


def test_mlflow_is_asked_for_nothing_before_there_is_something_to_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Client] = []
    module = SimpleNamespace(MlflowClient=lambda uri: made.append(Client(uri)) or made[-1])
    monkeypatch.setitem(sys.modules, "mlflow", module)
    MLflow("http://h", "links", "runs/mine").close(failed=False)
    assert not made
    tracker = MLflow("http://h", "links", "runs/mine")
    tracker.log_config({"a": {"b": "x" * 900}, "c": None})
    tracker.log_epoch(2, RECORD)
    tracker.close(failed=True)
    (client,) = made
    assert client.calls[:4] == [
        ("http://h",),
        ("get_experiment_by_name", "links"),
        ("create_experiment", "links"),
        ("create_run", "7", "runs/mine"),
    ]
    assert client.calls[4][:3] == ("log_param", "r1", "a.b") and len(client.calls[4][3]) == 500
    assert ("log_metric", "r1", "member_2/validation_macro_f1", 0.7, 30) in client.calls
    assert client.calls[-1] == ("set_terminated", "r1", "FAILED")


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run that was told to both; they do not share what it costs."""
    pytest.importorskip("tensorboard", reason="the extra tensorboard is not installed")
    pytest.importorskip("mlflow", reason="the extra mlflow is not installed")
    directory = tmp_path_factory.mktemp("tracked")
    chosen = {"tensorboard": str(directory / "events"), "mlflow": {"uri": (directory / "mlruns").as_uri()}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        train(
            settings(directory / "run", tracking=chosen, channels={"levels": "hidden"}, training={"epochs": 2}),
            network(),
        )
    return directory


def log_of(tracked: Path) -> list[dict[str, Any]]:
    lines = (tracked / "run" / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.slow
def test_tensorboard_has_every_epoch_and_the_scores(tracked: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(tracked / "events"))
    found.Reload()
    records, report = log_of(tracked), json.loads((tracked / "run" / "evaluation.json").read_text(encoding="utf-8"))
    for name in ("loss", "validation_macro_f1", "learning_rate"):
        assert [(one.step, one.value) for one in found.Scalars(f"member 1/{name}")] == [
            (record["steps"], pytest.approx(record[name], rel=1e-5)) for record in records
        ]
    for name, value in scores(report).items():
        assert found.Scalars(f"test/{name}")[0].value == pytest.approx(value, rel=1e-5)
    assert {"macro_f1", "accuracy", "f1/congestion", "baseline_macro_f1/majority"} <= set(scores(report))
    assert found.Tags()["tensors"] == ["config/text_summary"]


@pytest.mark.slow
def test_mlflow_has_a_run_with_config_epochs_and_scores(tracked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mlflow import MlflowClient

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    client = MlflowClient((tracked / "mlruns").as_uri())
    experiment = client.get_experiment_by_name("netanomaly")
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.info.status == "FINISHED" and run.info.run_name == str(tracked / "run")
    assert run.data.params["training.epochs"] == "2" and run.data.params["model.sequence_model.n_heads"] == "2"
    found = client.get_metric_history(run.info.run_id, "member_1/validation_macro_f1")
    records = log_of(tracked)
    assert [(one.step, one.value) for one in found] == [(one["steps"], one["validation_macro_f1"]) for one in records]
    report = json.loads((tracked / "run" / "evaluation.json").read_text(encoding="utf-8"))
    assert run.data.metrics["test/macro_f1"] == report["macro_f1"]


@pytest.mark.slow
def test_a_training_may_go_on_with_other_trackers(tracked: Path) -> None:
    assert train(settings(tracked / "run", **QUICK), network(), resume=True).config.run_dir == str(tracked / "run")


@pytest.mark.parametrize(
    ("chosen", "module", "said"),
    [
        ({"tensorboard": "events"}, "torch.utils.tensorboard", "tracking.tensorboard: tensorboard is not installed"),
        (
            {"mlflow": {"uri": "http://localhost:9"}},
            "mlflow",
            r"tracking.mlflow: .* pip install 'netanomaly\[mlflow\]'",
        ),
    ],
)
def test_what_is_not_installed_is_one_line(
    chosen: dict[str, Any], module: str, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    config = load_config(settings(tmp_path / "run", tracking=chosen))
    with pytest.raises(ConfigError, match=said):
        build_trackers(config)


def test_an_earlier_training_stays_where_a_tracker_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(settings(tmp_path / "run", **QUICK), network("abef", 120))
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ConfigError, match="not installed"):
        train(settings(tmp_path / "run", tracking={"tensorboard": "x"}, **QUICK), network("abef", 120), overwrite=True)
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == before


def test_a_place_that_cannot_be_written_ends_no_training(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("tensorboard", reason="the extra tensorboard is not installed")
    (tmp_path / "file").write_text("")
    told = build_trackers(load_config(settings(tmp_path / "run", tracking={"tensorboard": str(tmp_path / "file/x")})))
    told.log_config({"a": 1})
    assert "tracking.tensorboard: " in caplog.text
    assert "training goes on without it" in caplog.text


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"mlflow": {"uri": "http://ann:secret@host"}}, "tracking.mlflow.uri: .*leave the password out"),
        ({"mlflow": {}}, "tracking.mlflow.uri"),
        ({"tensorboard": ""}, "tracking.tensorboard"),
        ({"wandb": "x"}, "tracking.wandb"),
    ],
)
def test_what_is_wrong_in_the_config_is_named(chosen: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said):
        load_config(settings(tmp_path / "run", tracking=chosen))
