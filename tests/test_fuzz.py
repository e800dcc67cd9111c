"""`scripts/fuzz.py`, a few hundred inputs of it; a longer run is a command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts.fuzzing.mutations import mutate  # noqa: E402
from scripts.fuzzing.targets import TARGETS  # noqa: E402

from netanomaly.errors import NetanomalyError  # noqa: E402

RUNS = {"csv": 60, "yaml": 40, "config": 15, "bundle": 40, "incidents": 60, "timestamps": 80, "watch-lines": 6}


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_but_the_package_s_own_errors_comes_out(name: str, tmp_path: Path) -> None:
    target, random = TARGETS[name], Random(0)
    run = target.make(tmp_path)
    inputs = [
        *target.seeds[: RUNS[name]],
        *(mutate(random.choice(target.seeds), target.seeds, random, 4096) for _ in range(RUNS[name])),
    ]
    for data in inputs:
        try:
            run(data)
        except NetanomalyError as error:
            assert str(error)


@pytest.mark.parametrize("name", TARGETS)
def test_mutations_are_the_same_for_the_same_seed(name: str) -> None:
    seeds = TARGETS[name].seeds
    one, two = ([mutate(seeds[0], seeds, random, 500) for _ in range(20)] for random in (Random(1), Random(1)))
    assert one == two and max(map(len, one)) <= 500 and len(set(one)) > 10


@pytest.mark.slow
def test_the_script_tells_what_it_did_and_replays_what_it_saved(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "scripts" / "fuzz.py"), "timestamps"]
    done = subprocess.run([*command, "--runs", "50", "--out", str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0 and "timestamps: 50 executions" in done.stdout
    assert "foreign exceptions: 0" in done.stdout and "distinct steps" in done.stdout
    (tmp_path / "saved.bin").write_bytes(b"0not a time")
    again = subprocess.run([*command, "--replay", str(tmp_path / "saved.bin")], capture_output=True, text=True)
    assert again.returncode == 1 and "DataError" in again.stderr
