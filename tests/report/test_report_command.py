"""`netanomaly report`; a bundle of an older version stands in for a trained one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from netanomaly import load
from netanomaly.cli import main
from netanomaly.report.incidents import incidents
from netanomaly.reporting import report
from networks import link
from report_figures import figures

OLDER = Path(__file__).parents[1] / "fixtures" / "bundle_v4"


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """labelled.csv, and unlabelled.csv without the column."""
    directory = tmp_path_factory.mktemp("rows")
    frame = link("f", 120)
    frame.to_csv(directory / "labelled.csv", index=False)
    frame.drop(columns="label").to_csv(directory / "unlabelled.csv", index=False)
    return directory


def test_files_with_and_without_labels(frames: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, expected in {
        "labelled": {"timeline-0", "precision-recall", "reliability"},
        "unlabelled": {"timeline-0"},
    }.items():
        out = tmp_path / f"{name}.html"
        assert main(["report", str(OLDER), str(frames / f"{name}.csv"), "--out", str(out), "--quiet"]) == 0
        assert figures(out) == expected
        assert f"report: {out}" in capsys.readouterr().out
        assert "no drift is told" in out.read_text(encoding="utf-8")  # the bundle is too old to know


def test_without_out_a_report_on_files_lies_where_one_stands(
    frames: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(OLDER), str(frames / "unlabelled.csv"), "--quiet"]) == 0
    assert (tmp_path / "report.html").is_file()


@pytest.mark.parametrize(
    ("out", "message"), [("report.pdf", "--out report.pdf: write a .html"), (".html/x", "--out .html/x: write a .html")]
)
def test_a_report_is_html(out: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(OLDER), "x.csv", "--out", out]) == 2
    assert message in capsys.readouterr().err


def test_files_of_both_kinds_are_refused(frames: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(frames / f"{name}.csv") for name in ("labelled", "unlabelled")]
    assert main(["report", str(OLDER), *files, "--out", "x.html"]) == 3
    assert "unlabelled.csv: no column 'label', which other files have" in capsys.readouterr().err


def test_without_the_libraries_it_says_what_to_install(
    frames: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("plotly", "jinja2"):
        monkeypatch.setitem(sys.modules, name, None)
    assert main(["report", str(OLDER), str(frames / "unlabelled.csv"), "--out", str(tmp_path / "r.html")]) == 2
    assert "a report needs plotly and jinja2: pip install 'netanomaly[report]'" in capsys.readouterr().err


def test_unlabelled_rows_among_labelled_ones_are_shown_and_not_scored(frames: Path, tmp_path: Path) -> None:
    frame = link("f", 120)
    frame.loc[:59, "label"] = ""
    frame.to_csv(tmp_path / "half.csv", index=False)
    predictor = load(OLDER)
    half = report(predictor, OLDER, [str(tmp_path / "half.csv")])
    whole = report(predictor, OLDER, [str(frames / "unlabelled.csv")])
    assert half.rows == whole.rows == 120 and half.evaluation is not None and half.evaluation["rows"] == 60
    assert (half.series[0].named == whole.series[0].named).all()
    assert half.alarms.starts.tolist() == whole.alarms.starts.tolist() and len(half.alarms)
    verdicts = [one.verdict for one in incidents(half) if one.number >= 0]
    early = [one.last < int(half.series[0].times[60]) for one in incidents(half) if one.number >= 0]
    assert any(early) and all(
        (verdict == "no label") == is_early for verdict, is_early in zip(verdicts, early, strict=True)
    )
