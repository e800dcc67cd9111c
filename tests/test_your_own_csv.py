"""docs/your-own-csv.md: its program and every command of it run as written, and print what it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from netanomaly.cli import main
from netanomaly.config import load_config
from netanomaly.exports.known import EXPORTS

PAGE = (Path(__file__).parents[1] / "docs" / "your-own-csv.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def run(script: str, directory: Path) -> str:
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        ["sh", "-ec", script], cwd=directory, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the export of the page."""
    [program] = blocks("python")
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "export.py", "exec"), {"__name__": "__main__"})
    return tmp_path


def test_inspect_prints_what_the_page_shows(export: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert blocks("sh")[0] == "netanomaly inspect links.csv\n"
    assert main(["inspect", "links.csv"]) == 0
    assert [capsys.readouterr().out] == blocks("text")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the commands are for a POSIX shell")
def test_the_commands_run_as_written(export: Path) -> None:
    look, configure, train, use, start = blocks("sh")
    assert [run(look, export)] == blocks("text")
    assert run(configure, export).endswith("ready: netanomaly train links.yaml\n")
    config = load_config(export / "links.yaml")
    assert [(m.name, m.unit, m.kind) for m in config.data.metrics] == [
        ("ping_ms", "ms", "gauge"),
        ("Loss", "%", "gauge"),
        ("ifHCInOctets", "byte", "counter"),
    ]
    score = re.search(r"^netanomaly +(0\.\d+|1\.000) ", run(train, export), re.MULTILINE)
    assert score is not None and float(score[1]) > 0.8  # easy on purpose
    printed = run(use, export)
    assert (export / "labelled.csv").read_text(encoding="utf-8").count("\n") == 5400 + 1
    assert "900 labelled rows of 1 series" in printed and "interval    10s" in printed
    run(start, export)
    written = load_config(export / "links_starter.yaml").data.metrics
    assert [metric.name for metric in written if metric.measured] == ["throughput_rx", "rtt", "loss"]
    assert (export / "starter_incidents.csv").read_text(encoding="utf-8").count("\n") > 10


def test_the_page_names_every_export() -> None:
    table = PAGE[PAGE.index("| export |") :].lower()
    for export in EXPORTS:
        assert export.name.split()[0].strip(",").lower() in table, export.name
