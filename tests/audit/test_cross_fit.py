"""Every row is judged by a model that does not know its series; the command that tells what it found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml

from netanomaly.audit import cross_fit as module
from netanomaly.audit.cross_fit import cross_fit
from netanomaly.cli import main
from netanomaly.config import load_config
from netanomaly.data.splits import TEST, TRAIN, VALIDATION
from netanomaly.prepare import Prepared, prepare
from networks import network, settings


def _prepared(tmp_path: Path, frame: pd.DataFrame | None = None) -> Prepared:
    tree = settings(tmp_path / "run", channels={"levels": "hidden"})
    return prepare(load_config(tree), network() if frame is None else frame)


def test_folds_hold_every_labelled_series_outside_the_test_part_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[int, set[str]]] = []

    class Enough(Exception):
        pass

    def note(fold: Prepared, *rest: object) -> None:
        parts = {part: set() for part in (TRAIN, VALIDATION, TEST)}
        for segment, own in zip(fold.grid.segments, fold.split.parts, strict=True):
            for part, names in parts.items():
                if (own == part).any():
                    names.add(segment.series)
        seen.append(parts)
        raise Enough

    monkeypatch.setattr(module, "fit_bundle", note)
    prepared = _prepared(tmp_path)
    with pytest.raises(Enough):
        cross_fit(prepared, 4, torch.device("cpu"))
    groups = module._groups(module._labelled_series(prepared), 4, 0)
    assert sorted(name for group in groups for name in group) == ["a", "b", "c", "d", "e"]  # f is to test
    assert seen[0][TEST] == set(groups[0])
    assert not seen[0][TRAIN] & seen[0][VALIDATION] and "f" not in set.union(*seen[0].values())
    assert set.union(*seen[0].values()) == set("abcde")


def test_the_command_finds_labels_that_were_made_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = network()
    swapped, removed = _incident(frame, "b", 1), _incident(frame, "c", 2)
    wrong = {"congestion": "packet_loss", "packet_loss": "congestion"}[frame["label"][swapped[0]]]
    frame.loc[swapped, "label"] = wrong
    frame.loc[removed, "label"] = "normal"
    frame.to_csv(tmp_path / "links.csv", index=False)
    tree = settings(tmp_path / "run", channels={"levels": "hidden"})
    tree["data"] = {"root": str(tmp_path), "files": "links.csv", **tree["data"]}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(tree), encoding="utf-8")
    out, rows = tmp_path / "findings.csv", tmp_path / "rows.csv"
    arguments = ["audit", str(tmp_path / "config.yaml"), "--folds", "2", "--out", str(out), "--rows", str(rows)]
    assert main(arguments) == 0
    found = pd.read_csv(out)
    first = found[found["kind"] == "label"].iloc[0]
    assert (first["series"], first["start"], first["label"]) == ("b", frame["timestamp"][swapped[0]], wrong)
    assert "c" in set(found[found["kind"] == "missing"]["series"])
    assert "incidents that look like another class" in capsys.readouterr().out
    judged = pd.read_csv(rows)
    assert set(judged["series"]) == set("abcde") and len(judged) == 995  # a row of each has no data
    assert judged["p_label"].is_monotonic_increasing
    assert not (tmp_path / "run").exists()  # nothing is trained for keeps


def _incident(frame: pd.DataFrame, link: str, number: int) -> np.ndarray:
    """The rows of a link's n-th incident."""
    own = frame[frame["link"] == link]
    changes = (own["label"] != own["label"].shift()).cumsum()
    groups = [rows.index.to_numpy() for _, rows in own.groupby(changes) if rows["label"].iloc[0] != "normal"]
    return groups[number]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--folds", "1"], 2, "--folds 1: give 2 or more"),
        (["--top", "0"], 2, "--top 0: give 1 or more"),
        ([], 3, "3 labelled series are needed outside the test part, found a, b"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_audited_is_told(
    tmp_path: Path, arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    network("abc").to_csv(tmp_path / "links.csv", index=False)
    tree = settings(tmp_path / "run", data={"split": {"by": "series", "validation": ["b"], "test": ["c"]}})
    tree["data"] = {"root": str(tmp_path), "files": "links.csv", **tree["data"]}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(tree), encoding="utf-8")
    assert main(["audit", str(tmp_path / "config.yaml"), *arguments]) == code
    assert message in capsys.readouterr().err
