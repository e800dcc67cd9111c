"""A run: what it writes, what it refuses, and how it is evaluated."""

from __future__ import annotations

import itertools
import json
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from netanomaly import load, load_config, train
from netanomaly.config import Config
from netanomaly.errors import BundleError, ConfigError, DataError, TrainingError
from netanomaly.evaluation.report import report_text
from netanomaly.predictor import NO_DATA, Predictor
from netanomaly.scoring import evaluate
from netanomaly.training.schedule import learning_rate_factor
from networks import CLASSES, METRICS, link, network, settings

QUICK = {"epochs": 1}
FILES = {
    "RUN.md",
    ".lock",
    "bundle.json",
    "checkpoint",
    "config.yaml",
    "evaluation.json",
    "log.jsonl",
    "manifest.json",
    "model.safetensors",
    "split.json",
}


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    """Trained from a file, as on the command line."""
    directory = tmp_path_factory.mktemp("run")
    network().to_csv(directory / "links.csv", index=False)
    return train(settings(directory / "run", data={"root": str(directory), "files": ["links.csv"]}))


@pytest.fixture(scope="module")
def directory(trained: Predictor) -> Path:
    return Path(trained.config.run_dir)


def test_the_run_directory(directory: Path) -> None:
    assert {path.name for path in directory.iterdir()} == FILES


def test_the_resolved_config_loads_as_what_was_trained(trained: Predictor, directory: Path) -> None:
    assert load_config(directory / "config.yaml") == trained.config == load(directory).config


@pytest.mark.parametrize("name", ["08", "1e5", "-09"])
def test_the_resolved_config_loads_where_series_look_like_numbers(tmp_path: Path, name: str) -> None:
    frame = network("abe" + "f").replace({"link": {"f": name}})
    split = {"by": "series", "validation": ["e"], "test": [name]}
    predictor = train(settings(tmp_path / "run", data={"split": split}, training=QUICK), frames=frame)
    assert load_config(tmp_path / "run" / "config.yaml") == predictor.config


def test_one_line_of_the_log_per_epoch(trained: Predictor, directory: Path) -> None:
    records = [json.loads(line) for line in (directory / "log.jsonl").read_text().splitlines()]
    epochs, facts = range(1, trained.config.training.epochs + 1), trained.facts["training"]
    assert [(record["member"], record["epoch"]) for record in records] == list(itertools.product((1, 2), epochs))
    last = [record["validation_macro_f1"] for record in records if record["epoch"] == epochs[-1]]
    assert [member["validation_macro_f1"] for member in facts["members"]] == last
    assert facts["validation_macro_f1"] == facts["levels"]["both"]


def test_the_split_is_told(directory: Path) -> None:
    report = _json(directory / "split.json")
    assert [report[part]["series"] for part in ("train", "validation", "test")] == [["a", "b", "c", "d"], ["e"], ["f"]]
    assert [report[part]["rows"] for part in ("train", "validation", "test")] == [800, 200, 200]
    assert all(shared == {"series": 0, "rows": 0} for shared in report["shared"].values())


def test_the_evaluation(directory: Path) -> None:
    report = _json(directory / "evaluation.json")
    assert {"macro_f1", "accuracy", "per_class", "per_series", "confusion", "baselines", "rows"} <= set(report)
    assert set(report["baselines"]) - {"lightgbm"} == {"logistic_regression", "majority", "random"}
    assert set(report["per_series"]) == {"f"}
    assert report["rows"] == sum(map(sum, report["confusion"]["matrix"])) == 200
    assert report["scored"] == {"part": "test"}


def test_it_beats_the_baselines_by_a_margin(directory: Path) -> None:
    report = _json(directory / "evaluation.json")
    scores = {name: entry["macro_f1"] for name, entry in report["baselines"].items()}
    assert report["macro_f1"] > 0.98
    assert report["macro_f1"] > max(scores.values()) + 0.02  # of the logistic regression
    assert report["macro_f1"] > max(scores["majority"], scores["random"]) + 0.5


GOLDEN = Path(__file__).parent / "fixtures" / "losses.json"
"""The loss of every epoch of every member, by platform: PyTorch promises the same numbers on no other."""


def test_losses_are_those_of_this_platform(directory: Path) -> None:
    version = ".".join(torch.__version__.split(".")[:2])
    key = f"{platform.system()} {platform.machine()}, torch {version}, CPU"
    losses = [json.loads(line)["loss"] for line in (directory / "log.jsonl").read_text().splitlines()]
    known = _json(GOLDEN)
    if key not in known:
        pytest.skip(f"{GOLDEN.name} has none for '{key}'; here they are {[round(loss, 6) for loss in losses]}")
    assert losses == pytest.approx(known[key], rel=0, abs=1e-4)


def test_the_majority_baseline_is_right_as_often_as_its_class_occurs(directory: Path) -> None:
    report = _json(directory / "evaluation.json")
    assert report["baselines"]["majority"]["accuracy"] == report["per_class"]["normal"]["support"] / report["rows"]


def test_incidents_are_those_of_the_test_series(directory: Path) -> None:
    report, frame = _json(directory / "evaluation.json"), link("f")
    starts = (frame["label"] != "normal") & (frame["label"].shift() != frame["label"])
    assert report["incidents"] == starts.sum() == 4
    assert report["series_days"] == pytest.approx(200 / 86400, rel=1e-12)
    assert report["incident_recall"] == report["incident_detected_any"] == 1.0
    assert 0 <= report["delay_median_s"] <= 5
    assert report["worst_series"]["name"] == "f"


@pytest.mark.parametrize(("unlabelled", "incidents"), [(10, 4), (11, 5)])
def test_an_incident_goes_on_behind_rows_without_a_label_as_far_as_max_gap(
    directory: Path, tmp_path: Path, unlabelled: int, incidents: int
) -> None:
    frame = link("x")
    first = int((frame["label"] != "normal").argmax())
    frame.loc[first + 3 : first + 2 + unlabelled, "label"] = ""
    frame.to_csv(tmp_path / "other.csv", index=False)
    assert evaluate(load(directory), files=[str(tmp_path / "other.csv")])["incidents"] == incidents


def test_probabilities_are_scored_beside_those_of_the_baselines(directory: Path) -> None:
    report = _json(directory / "evaluation.json")
    assert report["pr_auc"] > 0.9 > 0.5 > report["baselines"]["random"]["pr_auc"]
    assert report["baselines"]["logistic_regression"]["pr_auc"] > report["baselines"]["random"]["pr_auc"]
    assert 0 <= report["ece"] < 0.3


def test_without_lightgbm_the_report_says_so(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    report = evaluate(load(directory))
    assert "lightgbm" not in report["baselines"]
    assert "lightgbm: not installed (pip install 'netanomaly[lightgbm]')" in report_text(report).splitlines()


def test_with_lightgbm_it_is_one_of_the_baselines(directory: Path) -> None:
    pytest.importorskip("lightgbm")
    report = evaluate(load(directory))
    assert report["baselines_left_out"] == {}
    assert report["baselines"]["lightgbm"]["macro_f1"] > report["baselines"]["random"]["macro_f1"]


def test_evaluating_again_gives_the_same(directory: Path, tmp_path: Path) -> None:
    report = evaluate(load(directory), out=tmp_path / "again.json")
    assert report == _json(tmp_path / "again.json") == _json(directory / "evaluation.json")


def _elapsed(times: pd.Series) -> pd.Series:
    return (times - times.min()).dt.total_seconds().astype(int)


TIMES: dict[str, tuple[dict[str, str], Callable[[pd.Series], pd.Series]]] = {
    "rfc3339": ({}, lambda times: times.dt.strftime("%Y-%m-%dT%H:%M:%SZ")),
    "local": ({"timezone": "Asia/Tokyo"}, lambda times: times.dt.strftime("%Y-%m-%dT%H:%M:%S")),
    "epoch": ({"format": "epoch", "unit": "ms"}, lambda times: times.dt.as_unit("ms").astype("int64")),
    "elapsed": ({"format": "elapsed", "unit": "s"}, _elapsed),
    "pattern": ({"format": "%d.%m.%Y %H:%M:%S", "timezone": "UTC"}, lambda t: t.dt.strftime("%d.%m.%Y %H:%M:%S")),
}


@pytest.mark.parametrize("kind", TIMES)
def test_a_split_at_shares_of_the_time_stays_where_it_was(tmp_path: Path, kind: str) -> None:
    form, write = TIMES[kind]
    frame = network("ab", rows=400)
    frame["timestamp"] = write(pd.to_datetime(frame["timestamp"]))
    path = tmp_path / "links.csv"
    frame.groupby("link").head(360).to_csv(path, index=False)
    split = {"by": "time", "validation": 0.4, "test": 0.3}
    data = {"root": str(tmp_path), "files": ["links.csv"], "split": split, "timestamp": form}
    train(settings(tmp_path / "run", data=data, training=QUICK))
    before = _json(tmp_path / "run" / "evaluation.json")
    assert evaluate(load(tmp_path / "run")) == before
    frame.to_csv(path, index=False)  # the file has grown
    assert evaluate(load(tmp_path / "run"))["rows"] == before["rows"] + 2 * 40


def test_the_explanation_names_every_file(directory: Path) -> None:
    text = (directory / "RUN.md").read_text()
    assert all(name in text for name in FILES - {"RUN.md"})


def test_facts_say_what_was_read(trained: Predictor) -> None:
    assert trained.facts["data"]["rows"] == 1200
    assert [Path(file["path"]).name for file in trained.facts["data"]["files"]] == ["links.csv"]
    assert trained.facts["history_rows"] == 7 + 2 + 47


def test_classes_are_normal_first_then_the_alphabet(trained: Predictor) -> None:
    assert trained.classes == ("normal", "congestion", "packet_loss") == CLASSES


def test_a_run_is_not_replaced_unasked(directory: Path) -> None:
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    with pytest.raises(ConfigError, match="holds a run already"):
        train(settings(directory), frames=network())
    assert {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()} == before


def test_a_run_is_replaced_on_request(tmp_path: Path) -> None:
    config = settings(tmp_path / "run", training=QUICK)
    train(config, frames=network("abef"))
    (tmp_path / "run" / "notes.txt").write_text("mine")
    config["data"]["split"]["test"] = []
    train(config, frames=network("abe"), overwrite=True)
    assert {path.name for path in (tmp_path / "run").iterdir()} == FILES - {"evaluation.json"} | {"notes.txt"}
    assert len((tmp_path / "run" / "log.jsonl").read_text().splitlines()) == 2  # members


@pytest.mark.parametrize("label", ["", NO_DATA])
def test_data_that_are_refused_leave_the_earlier_run(tmp_path: Path, label: str) -> None:
    config = settings(tmp_path / "run", training=QUICK)
    expected = train(config, frames=network("abef")).predict(link("x"))
    with pytest.raises(DataError):
        train(config, frames=network("abef").replace({"label": dict.fromkeys(CLASSES[1:], label)}), overwrite=True)
    pd.testing.assert_frame_equal(load(tmp_path / "run").predict(link("x")), expected)


def test_a_run_that_failed_while_learning_holds_no_bundle(tmp_path: Path) -> None:
    config = settings(tmp_path / "run", training={**QUICK, "learning_rate": 1e30, "warmup": 0.0})
    with pytest.raises(TrainingError, match=r"lower training\.learning_rate"):
        train(config, frames=network("abef"))
    with pytest.raises(BundleError, match="no bundle here"):
        load(tmp_path / "run")


def test_a_run_that_failed_while_learning_can_be_started_again(tmp_path: Path) -> None:
    config = settings(tmp_path / "run", training={**QUICK, "learning_rate": 1e30, "warmup": 0.0})
    with pytest.raises(TrainingError):
        train(config, frames=network("abef"))
    train(config, frames=network("abef"), overrides=["training.learning_rate=1e-3"])


@pytest.mark.parametrize("name", ["config.yaml", "log.jsonl", "model.safetensors"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_that_is_not_of_a_run_is_never_replaced(tmp_path: Path, name: str, overwrite: bool) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(ConfigError, match=f"{name} is not of a run"):
        train(settings(tmp_path), frames=network("abef"), overwrite=overwrite)
    assert (tmp_path / name).read_text() == "mine"


def test_what_a_killed_run_left_behind_is_removed(tmp_path: Path) -> None:
    config = settings(tmp_path / "run", training=QUICK)
    train(config, frames=network("abef"))
    (tmp_path / "run" / ".model.safetensors.0123abcd.tmp").write_text("half")
    train(config, frames=network("abef"), overwrite=True)
    assert {path.name for path in (tmp_path / "run").iterdir()} == FILES


@pytest.fixture
def outage() -> pd.DataFrame:
    """A link of the training was not measured for a long time; somebody labelled that."""
    frame = network("abef")
    frame.loc[40:150, list(METRICS)] = float("nan")
    return frame


def test_labels_of_rows_without_data_teach_nothing(tmp_path: Path, outage: pd.DataFrame) -> None:
    for name, label in (("one", "congestion"), ("two", "packet_loss")):
        outage.loc[40:150, "label"] = label
        train(settings(tmp_path / name, training=QUICK), frames=outage)
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two")]
    assert weights[0] == weights[1]


def test_the_schedule_ends_with_the_last_step(tmp_path: Path, outage: pd.DataFrame) -> None:
    training = {"epochs": 3, "batch_size": 1, "stretch": 16, "warmup": 0.2, "learning_rate": 1e-3}
    train(settings(tmp_path / "run", training=training), frames=outage)
    last = json.loads((tmp_path / "run" / "log.jsonl").read_text().splitlines()[-1])
    steps = last["steps"]
    expected = 1e-3 * learning_rate_factor(steps - 1, round(0.2 * steps), steps)
    assert last["learning_rate"] == pytest.approx(expected, abs=1e-15)


def test_a_part_in_which_nothing_was_measured_is_refused(tmp_path: Path) -> None:
    frame = network("abef")
    frame.loc[frame["link"] == "e", list(METRICS)] = float("nan")
    with pytest.raises(DataError, match="nothing was measured in any labelled row for validation"):
        train(settings(tmp_path / "run"), frames=frame)


def test_threads_of_the_caller_stay(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    train(settings(tmp_path / "run", training=QUICK) | {"threads": before + 1}, frames=network("abef", rows=100))
    assert torch.get_num_threads() == before


def _by_part(**changes: str) -> dict[str, pd.DataFrame]:
    """Frames by part; labels of the test part may be changed."""
    frames = {"train": network("abc"), "validation": network("e"), "test": network("f")}
    frames["test"] = frames["test"].replace({"label": changes})
    return frames


def test_frames_by_part_train_as_one_frame_split_alike(tmp_path: Path) -> None:
    one = train(settings(tmp_path / "one", training=QUICK), frames=network("abcef"))
    parts = train(settings(tmp_path / "parts", training=QUICK), frames=_by_part())
    pd.testing.assert_frame_equal(parts.predict(link("x")), one.predict(link("x")))
    assert _json(tmp_path / "parts" / "evaluation.json") == _json(tmp_path / "one" / "evaluation.json")


@pytest.mark.parametrize("given", ["path", "text", "dict", "config"])
def test_a_config_may_be_given_as(tmp_path: Path, given: str) -> None:
    tree = settings(tmp_path / "run", training=QUICK)
    tree["data"]["split"]["train"] = ["a", "b"]  # what is left would be filled in
    path = tmp_path / "config.yaml"
    path.write_text(json.dumps(tree))
    config: dict[str, str | Path | dict[str, Any] | Config] = {
        "path": path,
        "text": str(path),
        "dict": tree,
        "config": load_config(tree),
    }
    predictor = train(config[given], frames=network("abef"), overrides=["seed=3"])
    assert predictor.config == load_config(tree, ["seed=3"])


def test_without_a_test_part_nothing_is_evaluated(tmp_path: Path) -> None:
    frames = {"train": network("abc"), "validation": network("e")}
    train(settings(tmp_path / "run", training=QUICK), frames=frames)
    assert not (tmp_path / "run" / "evaluation.json").exists()
    assert len(load(tmp_path / "run").predict(link("x"))) == 200


def test_one_seed_gives_the_same_bundle_to_the_last_bit(tmp_path: Path) -> None:
    for name in ("one", "two"):
        torch.rand(3)  # where the caller's own random numbers stand does not matter
        train(settings(tmp_path / name, training=QUICK), frames=network("abef"))
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two")]
    assert weights[0] == weights[1]


def test_another_seed_gives_another_bundle(tmp_path: Path) -> None:
    for seed in (0, 1):
        config = settings(tmp_path / str(seed), training=QUICK)
        train(config, frames=network("abef"), overrides=[f"seed={seed}"])
    weights = [(tmp_path / str(seed) / "model.safetensors").read_bytes() for seed in (0, 1)]
    assert weights[0] != weights[1]


def test_random_numbers_of_the_caller_go_on(tmp_path: Path) -> None:
    before = torch.get_rng_state()
    train(settings(tmp_path / "run", training=QUICK), frames=network("abef"))
    assert torch.equal(torch.get_rng_state(), before)


def test_the_frame_given_is_not_changed(tmp_path: Path) -> None:
    frame = network("abef")
    before = frame.copy(deep=True)
    train(settings(tmp_path / "run", training=QUICK), frames=frame)
    pd.testing.assert_frame_equal(frame, before)


def test_one_class_only_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"one class only \('normal'\)"):
        train(settings(tmp_path / "run"), frames=network().assign(label="normal"))


def test_series_shorter_than_a_window_are_refused(tmp_path: Path) -> None:
    short = network().groupby("link").head(7)
    with pytest.raises(DataError, match=r"has 7 rows, one window \(model.window\) needs 8"):
        train(settings(tmp_path / "run"), frames=short)


@pytest.mark.parametrize(("part", "names"), [("validation", "e"), ("train", "abcd")])
def test_a_part_without_labels_is_refused(tmp_path: Path, part: str, names: str) -> None:
    frame = network()
    frame.loc[frame["link"].isin(list(names)), "label"] = ""
    with pytest.raises(DataError, match=f"no labelled rows for {part}"):
        train(settings(tmp_path / "run"), frames=frame)


def test_a_part_that_the_purge_eats_is_refused_with_the_reason(tmp_path: Path) -> None:
    config = settings(tmp_path / "run", data={"split": {"by": "time"}})
    with pytest.raises(DataError, match=r"no labelled rows for validation \(\d+ rows were purged at boundaries\)"):
        train(config, frames=network())


def test_parts_split_by_time_share_no_rows(tmp_path: Path) -> None:
    split = {"by": "time", "validation": 0.4, "test": 0.3}
    train(settings(tmp_path / "run", data={"split": split}, training=QUICK), frames=network("ab", rows=400))
    report = _json(tmp_path / "run" / "split.json")
    assert report["purged_rows"] > 0
    assert all(shared == {"series": 2, "rows": 0} for shared in report["shared"].values())


def test_rows_shared_for_want_of_a_purge_are_told(tmp_path: Path) -> None:
    split = {"by": "time", "validation": 0.4, "test": 0.3, "purge": 0}
    train(settings(tmp_path / "run", data={"split": split}, training=QUICK), frames=network("ab", rows=400))
    assert _json(tmp_path / "run" / "split.json")["shared"]["train_validation"]["rows"] == 2 * 56


@pytest.mark.parametrize("names", ["train", "train test", "train validation tset"])
def test_frames_of_unknown_or_missing_parts_are_refused(tmp_path: Path, names: str) -> None:
    with pytest.raises(ConfigError, match="expected the keys train, validation and maybe test"):
        train(settings(tmp_path / "run"), frames={name: network() for name in names.split()})


def test_labels_have_to_be_somewhere(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="training needs labels"):
        train(settings(tmp_path / "run", data={"label": None}), frames=network())


def test_the_label_for_rows_without_data_is_reserved(tmp_path: Path) -> None:
    frame = network().replace({"label": {"congestion": NO_DATA}})
    with pytest.raises(DataError, match="'no_data' is reserved"):
        train(settings(tmp_path / "run", training=QUICK), frames=frame)


def test_without_an_interval_the_usual_step_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"data\.interval: .* the usual step in these data is 1s"):
        train(settings(tmp_path / "run", data={"interval": None}), frames=network())


def test_classes_absent_from_training_or_test_are_counted_and_named(tmp_path: Path) -> None:
    frames = _by_part(packet_loss="flood")
    train(settings(tmp_path / "run"), frames=frames)
    report = _json(tmp_path / "run" / "evaluation.json")
    floods = int((frames["test"]["label"] == "flood").sum())
    assert report["classes_absent_from_training"] == {"flood": floods}
    assert report["classes_absent_from_test"] == ["packet_loss"]
    assert report["confusion"]["labels"][:4] == [*CLASSES, "flood"]
    assert report["rows"] == sum(map(sum, report["confusion"]["matrix"])) == 200
    assert report["macro_f1"] < 0.7  # one class of three is out of reach


def test_a_class_only_in_validation_is_no_class_of_the_model(tmp_path: Path) -> None:
    frames = _by_part()
    frames["validation"] = frames["validation"].replace({"label": {"congestion": "flood"}})
    predictor = train(settings(tmp_path / "run", training=QUICK), frames=frames)
    assert predictor.classes == CLASSES
    assert predictor.facts["training"]["validation_macro_f1"] < 0.7


def test_rows_without_data_count_in_the_evaluation(tmp_path: Path) -> None:
    frames = _by_part()
    frames["test"].loc[:49, list(METRICS)] = float("nan")
    train(settings(tmp_path / "run"), frames=frames)
    report = _json(tmp_path / "run" / "evaluation.json")
    assert report["rows"] == 200
    assert report["per_class"][NO_DATA]["predicted"] == 51
    assert report["accuracy"] <= 149 / 200


def test_rows_without_data_count_in_the_validation(tmp_path: Path) -> None:
    frames = _by_part()
    normal = frames["validation"].index[frames["validation"]["label"] == "normal"]
    frames["validation"].loc[normal[::2], list(METRICS)] = float("nan")
    predictor = train(settings(tmp_path / "run"), frames=frames)
    assert predictor.facts["training"]["validation_macro_f1"] < 0.9  # half of one class is named no_data


def test_rows_without_a_label_are_not_scored(tmp_path: Path) -> None:
    frames = _by_part()
    frames["test"].loc[:49, "label"] = ""
    train(settings(tmp_path / "run", training=QUICK), frames=frames)
    assert _json(tmp_path / "run" / "evaluation.json")["rows"] == 150


def test_files_that_are_not_those_of_the_training_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    network("abef").to_csv(tmp_path / "links.csv", index=False)
    data = {"root": str(tmp_path), "files": ["links.csv"]}
    train(settings(tmp_path / "run", data=data, training=QUICK))
    evaluate(load(tmp_path / "run"))
    assert "not the files of the training run" not in caplog.text
    network("abef", seed=1).to_csv(tmp_path / "links.csv", index=False)
    evaluate(load(tmp_path / "run"))
    assert "not the files of the training run" in caplog.text
    assert "links.csv" in caplog.text


def test_a_labelled_file_can_be_evaluated(directory: Path, tmp_path: Path) -> None:
    network("xy").to_csv(tmp_path / "other.csv", index=False)
    path = str(tmp_path / "other.csv")
    report = evaluate(load(directory), files=[path], out=tmp_path / "report.json")
    assert report["rows"] == 400
    assert set(report["per_series"]) == {"x", "y"}
    assert report["macro_f1"] > 0.9
    assert set(report["baselines"]) - {"lightgbm"} == {"logistic_regression", "majority", "random"}
    assert report["scored"] == {"files": [path]}
    assert _json(tmp_path / "report.json") == report


def test_a_file_in_other_units_is_evaluated_alike(directory: Path, tmp_path: Path) -> None:
    frame = network("xy")
    frame.to_csv(tmp_path / "other.csv", index=False)
    expected = evaluate(load(directory), files=[str(tmp_path / "other.csv")])
    factors = {"rtt_ms": 1e3, "throughput_bps": 1e-9, "loss_ratio": 100}
    frame.assign(**{name: frame[name] * factor for name, factor in factors.items()}).to_csv(
        tmp_path / "other.csv", index=False
    )
    metrics = "[{name: rtt_ms, unit: us}, {name: throughput_bps, unit: Gbit/s}, {name: loss_ratio, unit: '%'}]"
    predictor = load(directory, overrides=[f"data.metrics={metrics}"])
    found = evaluate(predictor, files=[str(tmp_path / "other.csv")])
    assert found["macro_f1"] == pytest.approx(expected["macro_f1"], abs=0.01)
    for name, scores in found["baselines"].items():
        assert scores["macro_f1"] == pytest.approx(expected["baselines"][name]["macro_f1"], abs=0.01)


def test_evaluating_another_file_leaves_the_run_as_it_is(directory: Path, tmp_path: Path) -> None:
    before = (directory / "evaluation.json").read_bytes()
    network("xy").to_csv(tmp_path / "other.csv", index=False)
    evaluate(load(directory), files=[str(tmp_path / "other.csv")])
    assert (directory / "evaluation.json").read_bytes() == before


def test_baselines_whose_training_rows_are_gone_are_left_out_with_the_reason(tmp_path: Path) -> None:
    predictor = train(settings(tmp_path / "run", training=QUICK), frames=network("abef"))
    network("xy").to_csv(tmp_path / "other.csv", index=False)
    report = evaluate(predictor, files=[str(tmp_path / "other.csv")])
    assert report["baselines"] == {}
    assert report["baselines_missing"].startswith("the training rows cannot be read: ")


@pytest.mark.parametrize("label", ["", "  "])
def test_a_file_without_labels_cannot_be_evaluated(directory: Path, tmp_path: Path, label: str) -> None:
    network("x").assign(label=label).to_csv(tmp_path / "other.csv", index=False)
    with pytest.raises(DataError, match="no labelled rows to score"):
        evaluate(load(directory), files=[str(tmp_path / "other.csv")])


def test_of_two_rows_on_one_step_only_labelled_ones_are_scored(tmp_path: Path) -> None:
    frames = _by_part()
    again = frames["test"].iloc[50:60].assign(label="")  # polled twice, labelled once
    frames["test"] = pd.concat([again, frames["test"]], ignore_index=True)
    train(settings(tmp_path / "run", data={"duplicates": "last"}, training=QUICK), frames=frames)
    report = _json(tmp_path / "run" / "evaluation.json")
    assert report["classes_absent_from_training"] == {}
    assert report["rows"] == 200
