"""Rows that are like none of training, from training to what `predict` writes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from netanomaly import DataError, StreamingPredictor, load, train
from netanomaly.build import build_input_format
from netanomaly.bundle import load_bundle, save_bundle
from netanomaly.chunked import ChunkedPredictor
from netanomaly.cli import main
from netanomaly.data.ingest import NO_PART, table_of_frames
from netanomaly.evaluation.novelty import unknown_scores
from networks import link, network, settings


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("unknown")
    network().to_csv(directory / "links.csv", index=False)
    tree = settings(directory / "run", alarms={"unknown_share": 0.02})
    tree["data"] = {"root": str(directory), "files": "links.csv", **tree["data"]}
    (directory / "config.yaml").write_text(yaml.safe_dump(tree), encoding="utf-8")
    train(directory / "config.yaml")
    return directory


def _strange() -> pd.DataFrame:
    """A link on which, from row 150 on, everything is like nothing that training has seen."""
    frame = link("f")
    frame.loc[150:170, "rtt_ms"] *= 0.01
    frame.loc[150:170, "throughput_bps"] *= 20
    return frame


def test_few_rows_of_other_links_are_unknown(trained: Path) -> None:
    shares = []
    for name in "efgh":  # validation, test, and two that nobody has seen: with four links to learn from, one may be odd
        found = load(trained / "run").predict(link(name))
        assert ((found["novelty"] > 1) == (found["label"] == "unknown")).all()
        shares.append((found["label"] == "unknown").mean())
    assert shares[0] <= 0.02  # the limit looks at it
    assert np.mean(shares) <= 0.1


def test_what_training_has_not_seen_is_unknown_and_other_rows_are_not(trained: Path) -> None:
    found = load(trained / "run").predict(_strange())
    assert (found["label"][152:170] == "unknown").mean() > 0.9
    assert (found["label"][:140] == "unknown").mean() < 0.1
    assert (found["label"] == "no_data").sum() == 1  # a row without any value is not strange
    assert found["confidence"][152] > 0  # of the class that it looks like


def test_chunks_and_streams_say_the_same(trained: Path) -> None:
    predictor = load(trained / "run")
    frame = _strange()
    whole = predictor.predict(frame)
    form = build_input_format(predictor.config.data).without_label()
    tables = [table_of_frames([(part, NO_PART, "frame")], form) for part in (frame[:70], frame[70:160], frame[160:])]
    chunks = pd.concat(ChunkedPredictor(predictor).label(tables), ignore_index=True)
    stream = StreamingPredictor(predictor)
    rows = pd.concat([stream.update(frame[i : i + 1]) for i in range(len(frame))])
    for found in (chunks, rows):
        assert (found["label"] == whole["label"]).all()
        np.testing.assert_allclose(found["novelty"], whole["novelty"], rtol=1e-6)


def test_arrays_in_arrays_out_are_probabilities_alone(trained: Path) -> None:
    stream = StreamingPredictor(load(trained / "run"))
    times = np.array(["2026-03-01T00:00:00"], dtype="datetime64[ns]")
    assert stream.update_arrays(["a"], times, np.array([[10.0, 1e6, 0.001]])).shape == (1, 3)


def test_an_incident_of_such_rows_is_unknown(trained: Path) -> None:
    found = load(trained / "run").incidents(_strange())
    inside = found[(found["start"] >= "2026-03-01T00:02:28Z") & (found["end"] <= "2026-03-01T00:02:55Z")]
    usual = load(trained / "run").incidents(link("f"))
    assert (usual["label"] == usual["looks_like"]).all()
    assert len(inside) and (inside["label"] == "unknown").any()
    assert ((inside["novel"] > 0.5) == (inside["label"] == "unknown")).all()
    assert set(inside["looks_like"]) <= {"congestion", "packet_loss"}


def test_the_evaluation_names_every_row_and_tells_how_many_are_unknown(trained: Path) -> None:
    report = json.loads((trained / "run" / "evaluation.json").read_text(encoding="utf-8"))
    assert "unknown" not in report["per_class"]
    assert 0 <= report["unknown"]["known_called_unknown"] < 0.2
    assert report["unknown"]["auroc"] is None


def test_a_metric_that_is_not_there_makes_nothing_unknown(trained: Path) -> None:
    metrics = "[{name: rtt_ms, unit: ms}, {name: throughput_bps, measured: false}, {name: loss_ratio, unit: ratio}]"
    predictor = load(trained / "run", overrides=[f"data.metrics={metrics}"])
    found = predictor.predict(link("f").drop(columns="throughput_bps"))
    assert (found["label"] == "unknown").mean() < 0.1


@pytest.mark.parametrize(("share", "infinite"), [("0", True), ("0.2", False)])
def test_tune_changes_the_share(trained: Path, share: str, infinite: bool, capsys: pytest.CaptureFixture[str]) -> None:
    before = load_bundle(trained / "run")
    assert main(["tune", str(trained / "run"), "--unknown-share", share]) == 0
    told = capsys.readouterr().out
    after = load_bundle(trained / "run")
    assert before.decisions.known is not None and after.decisions.known is not None
    assert (after.decisions.known.limit == np.inf) == infinite == ("no row is called unknown" in told)
    assert after.config.alarms.unknown_share == float(share)
    found = load(trained / "run").predict(link("e"))["label"] == "unknown"
    assert found.mean() == 0 if infinite else 0.02 < found.mean() <= float(share) + 0.01
    assert main(["tune", str(trained / "run"), "--unknown-share", "0.02"]) == 0


def test_a_share_that_is_none_ends_with_2(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", str(trained / "run"), "--unknown-share", "1"]) == 2
    assert "give a share from 0 to less than 1" in capsys.readouterr().err


def test_a_bundle_of_an_older_version_is_asked_to_train_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_bundle(tmp_path / "old", load_bundle(Path(__file__).parent / "fixtures" / "bundle_v4"))
    (tmp_path / "links.csv").write_text(network().to_csv(index=False))
    rows = ["--set", f"data.files=[{json.dumps(str(tmp_path / 'links.csv'))}]"]
    assert main(["tune", str(tmp_path / "old"), "--unknown-share", "0.1", *rows]) == 2
    assert "train it again" in capsys.readouterr().err


def test_unknown_is_no_label(tmp_path: Path) -> None:
    frame = network()
    frame.loc[3, "label"] = "unknown"
    with pytest.raises(DataError, match="'unknown' is reserved for rows like none of training; rename it, or leave it"):
        train(settings(tmp_path / "run"), frames=frame)


def test_scores_of_novelty() -> None:
    truth = np.array(["a", "a", "b", "new", "new"], dtype=object)
    found = unknown_scores(truth, np.array([0.5, 1.5, 0.2, 2.0, 0.9]), ("a", "b"))
    assert found == {"known_called_unknown": 1 / 3, "new_called_unknown": 0.5, "auroc": pytest.approx(5 / 6)}
    none = unknown_scores(truth[:3], np.zeros(3), ("a", "b"))
    assert none == {"known_called_unknown": None, "new_called_unknown": None, "auroc": None}


def test_what_is_very_strange_is_written_as_a_number(trained: Path, tmp_path: Path) -> None:
    frame = _strange()
    frame.loc[150:170, "rtt_ms"] *= 1e6
    frame.to_csv(tmp_path / "rows.csv", index=False)
    assert main(["predict", str(trained / "run"), str(tmp_path / "rows.csv"), "--out", str(tmp_path / "out.csv")]) == 0
    found = pd.read_csv(tmp_path / "out.csv")
    assert found["novelty"].dtype == np.float64 and found["novelty"].max() == 9.0
    np.testing.assert_allclose(found["novelty"], load(trained / "run").predict(frame)["novelty"], atol=1e-6)
