"""Local Spark and local Ray write the answers of `netanomaly predict`, whatever happens to a worker."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from netanomaly.bundle import save_bundle
from netanomaly.predictor import load
from streams import bundle, hard_network

ROOT = Path(__file__).parents[1]
ENGINES = [
    pytest.param(name, marks=pytest.mark.skipif(find_spec(module) is None, reason=f"needs {module}"))
    for name, module in (("spark", "pyspark"), ("ray", "ray"))
]
PLACE = {"spark": ["--master", "local[2,4]"], "ray": ["--cpus", "2", "--store-mib", "200"]}
DYING = """
import os, signal, sys
from dataclasses import dataclass
from pathlib import Path
from netanomaly.cluster.tasks import Job

@dataclass(frozen=True)
class Dying(Job):  # a worker is killed in the middle of reading, and one in the middle of scoring
    marks: str = ""

    def die_once(self, what):
        try:
            os.close(os.open(os.path.join(self.marks, what), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

    def read(self, packed, file):
        for rows in super().read(packed, file):
            yield rows
            self.die_once("read")

    def score(self, packed, rows):
        found = super().score(packed, rows)
        self.die_once("score")
        return found

bundle, out, marks, *files = sys.argv[2:]
job = Dying(("data.duplicates=mean",), 160, 4, marks)
if sys.argv[1] == "spark":
    from pyspark.sql import SparkSession
    from netanomaly.cluster.on_spark import score_spark
    session = SparkSession.builder.master("local[2,4]").getOrCreate()
    score_spark(session, files, Path(bundle), Path(out), job)
    session.stop()
else:
    import ray
    from netanomaly.cluster.on_ray import score_ray
    ray.init("local", num_cpus=2, object_store_memory=200 * 2**20, include_dashboard=False)
    score_ray(files, Path(bundle), Path(out), job)
"""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle, rows of four links in a CSV and a Parquet file, and their answers from one process."""
    place = tmp_path_factory.mktemp("cluster")
    save_bundle(place / "bundle", bundle(duplicates="mean"))
    rows = hard_network(600, shared=True)
    rows.iloc[:900].to_csv(place / "a.csv", index=False)
    rows.iloc[900:].to_parquet(place / "b.parquet", index=False)
    rows.iloc[:900].replace({"link": {"w": ""}}).to_csv(place / "broken.csv", index=False)
    load(place / "bundle").predict_files([place / "a.csv", place / "b.parquet"]).to_parquet(place / "whole.parquet")
    return place


def run(command: Sequence[str | Path], place: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]),
    }
    given = [sys.executable, *map(str, command)]
    return subprocess.run(given, cwd=place, env=environment, capture_output=True, text=True, check=False)


def score(engine: str, place: Path, out: Path, *files: str) -> subprocess.CompletedProcess[str]:
    script = ROOT / "scripts" / f"score_{engine}.py"
    given = ["--out", out, "--part-rows", "160", "--shares", "4", *PLACE[engine]]
    return run([script, "bundle", *files, *given], place)


def equal_to_one_process(place: Path, out: Path) -> None:
    found = pd.read_parquet(out).sort_values(["file", "row"], ignore_index=True)
    wanted = pd.read_parquet(place / "whole.parquet")
    assert found["file"].tolist() == ["a.csv"] * 900 + ["b.parquet"] * (len(wanted) - 900)
    assert found["row"].tolist() == [*range(900), *range(len(wanted) - 900)]
    assert list(found) == ["file", "row", *wanted]
    for column in ("series", "timestamp", "label"):
        assert found[column].tolist() == wanted[column].tolist()
    numbers = ["confidence", *(column for column in wanted if column.startswith("p_")), "novelty"]
    np.testing.assert_allclose(found[numbers].to_numpy(), wanted[numbers].to_numpy(), rtol=0, atol=1e-6)


def contents(out: Path) -> list[pd.DataFrame]:
    """What each file holds, in order of their numbers (what follows the number differs from run to run in Spark)."""
    return [pd.read_parquet(file) for file in sorted(out.glob("part-*.parquet"), key=lambda file: file.name[:10])]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_writes_the_answers_of_one_process_and_a_rerun_replaces_them(
    engine: str, place: Path, tmp_path: Path
) -> None:
    out, runs = tmp_path / "answers", []
    for _ in range(2):
        result = score(engine, place, out, "a.csv", "b.parquet")
        assert result.returncode == 0, result.stderr[-3000:]
        equal_to_one_process(place, out)
        runs.append(contents(out))
    assert len(runs[0]) == len(runs[1]) > 1
    for first, second in zip(*runs, strict=True):
        pd.testing.assert_frame_equal(first, second)
    assert (out / "_SUCCESS").exists()
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".lock") == ["answers"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_killed_worker_changes_nothing(engine: str, place: Path, tmp_path: Path) -> None:
    marks, out = tmp_path / "marks", tmp_path / "answers"
    marks.mkdir()
    result = run(["-c", DYING, engine, "bundle", out, marks, "a.csv", "b.parquet"], place)
    assert result.returncode == 0, result.stderr[-3000:]
    assert sorted(path.name for path in marks.iterdir()) == ["read", "score"]  # both were killed
    equal_to_one_process(place, out)


@pytest.mark.parametrize("engine", ENGINES)
def test_bad_rows_end_with_one_line_and_leave_nothing(engine: str, place: Path, tmp_path: Path) -> None:
    result = score(engine, place, tmp_path / "answers", "broken.csv")
    assert result.returncode == 3, result.stderr[-3000:]
    told = [line for line in result.stderr.splitlines() if line.startswith("netanomaly: ")]
    assert len(told) == 1
    assert told[0].startswith(f"netanomaly: {place.resolve() / 'broken.csv'}: line ")
    assert "column 'link': empty" in told[0]
    assert not [path for path in tmp_path.iterdir() if path.suffix != ".lock"]
