"""The README's commands, run as written in a copy of the tracked files."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the README's commands are for a POSIX shell")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def run(command: list[str], directory: Path) -> str:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a new user has after cloning, with this environment as .venv so that nothing is installed again."""
    directory = tmp_path_factory.mktemp("clone")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for name in filter(None, listed.split("\0")):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, directory / name)
    (directory / ".venv").mkdir()
    for part in Path(sys.prefix).iterdir():
        if not part.name.startswith("installed-"):
            (directory / ".venv" / part.name).symlink_to(part)
    # as if it was installed from here: installing would turn this environment to the copy, which goes away
    command = "cat pyproject.toml constraints.txt | cksum > .venv/installed-dev"
    subprocess.run(["sh", "-c", command], cwd=directory, check=True)
    return directory


def test_the_quickstart_reports_on_unseen_links_as_well_as_promised(clone: Path) -> None:
    printed = run(["sh", "scripts/quickstart.sh"], clone)
    report = json.loads((clone / "runs/quickstart/evaluation.json").read_text(encoding="utf-8"))
    assert set(report["per_series"]) == {"a07", "a08"} and len(report["per_class"]) == 9
    assert report["macro_f1"] >= 0.72 and report["rows"] == 7142
    assert "evaluation: runs/quickstart/evaluation.json" in printed and "bundle: runs/quickstart" in printed


def test_the_commands_and_the_python_run_as_written(clone: Path) -> None:
    for script in blocks("sh"):
        run(["sh", "-ec", script], clone)
    assert (clone / "labelled.csv").read_text(encoding="utf-8").count("\n") == 28568 + 1
    for program in blocks("python"):
        assert "confidence" in run([str(clone / ".venv/bin/python"), "-c", program], clone)


def test_the_quickstart_table_is_what_the_readme_shows(clone: Path) -> None:
    report = json.loads((clone / "runs/quickstart/evaluation.json").read_text(encoding="utf-8"))
    shown = dict(
        re.findall(r"^(netanomaly|logistic_regression|majority|random) +(0\.\d+) +0\.\d+ ", README, re.MULTILINE)
    )
    assert set(shown) == {"netanomaly", "logistic_regression", "majority", "random"}
    assert float(shown["netanomaly"]) == pytest.approx(report["macro_f1"], abs=0.03)  # other CPUs round otherwise
    for name, entry in report["baselines"].items():
        assert float(shown[name]) == pytest.approx(entry["macro_f1"], abs=0.03)
