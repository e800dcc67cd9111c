"""Nothing is fetched, sent or started: training, scoring and labelling work without a network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from networks import link, network, settings

FIXTURE = Path(__file__).parent / "fixtures" / "bundle_v4"

GUARDED = """
import sys

def guard(event, arguments):
    used = event in ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto")
    if event == "socket.__new__":
        used = arguments[1] in (2, 10, 23, 30)  # AF_INET, and AF_INET6 of Linux, Windows and macOS
    if used or event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "pickle.find_class"):
        raise RuntimeError(f"guarded: {event} {arguments}")

sys.addaudithook(guard)
"""
COMMANDS = """
from netanomaly.cli import main

for command in COMMANDS:
    if code := main(command.split()):
        sys.exit(f"{command}: {code}")
print(*sorted({name.partition(".")[0] for name in sys.modules} & {"requests", "urllib3", "httpx", "aiohttp"}))
"""


def _run(code: str, place: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment.pop("HF_HUB_OFFLINE", None)
    command = [sys.executable, "-c", GUARDED + code]
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)


def _works(place: Path, *commands: str) -> None:
    result = _run(f"COMMANDS = {commands}\n{COMMANDS}", place)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1].strip() == ""  # none of the usual clients of the web is even imported


def test_labelling_uses_no_network_starts_nothing_and_unpickles_nothing(tmp_path: Path) -> None:
    link("f", rows=60).to_csv(tmp_path / "rows.csv", index=False)
    _works(tmp_path, f"predict {FIXTURE} rows.csv --out labels.csv --quiet")
    assert (tmp_path / "labels.csv").stat().st_size > 1000


@pytest.mark.slow
def test_training_and_scoring_use_no_network_start_nothing_and_unpickle_nothing(tmp_path: Path) -> None:
    network(rows=100).to_csv(tmp_path / "rows.csv", index=False)
    config = settings(Path("run"), training={"epochs": 1}, channels={"baselines": [48], "levels": "hidden"})
    config["data"]["files"] = ["rows.csv"]
    (tmp_path / "config.yaml").write_text(json.dumps(config))
    _works(tmp_path, "train config.yaml", "eval run", "predict run rows.csv --out labels.csv", "report run rows.csv")
    assert (tmp_path / "run" / "report.html").is_file()


def test_the_guard_guards(tmp_path: Path) -> None:
    for code in (
        "import socket; socket.socket(socket.AF_INET6)",
        "import socket; socket.getaddrinfo('localhost', 80)",
        "import subprocess; subprocess.run(['true'])",
        "import pickle, pathlib; pickle.loads(pickle.dumps(pathlib.Path()))",
    ):
        result = _run(code, tmp_path)
        assert result.returncode != 0
        assert "guarded: " in result.stderr


def test_importing_the_package_imports_nothing_of_the_network(tmp_path: Path) -> None:
    result = _run("import netanomaly, netanomaly.cli; print(*sys.modules)", tmp_path)
    assert not {"socket", "ssl", "http.client", "urllib.request", "requests", "urllib3"} & set(result.stdout.split())
