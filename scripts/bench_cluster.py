"""Rows a second on one and two cores: Spark, Ray, and `predict` in one process; what a large network costs.

    python scripts/bench_cluster.py                                  # 400,000 rows of 40 series, 3 rounds
    python scripts/bench_cluster.py --rows 2000000 --rounds 5
    python scripts/bench_cluster.py --engines tasks                  # a minute; holds on a busy machine, too

They take turns, and each figure is that of a process of its own. It scores a tenth of the rows first, so that workers
have started and loaded the bundle, then all of them, and only these are timed: from Parquet files to Parquet files.
The bundle has one member of the default configuration with fresh weights, which is as fast as a trained one.

`tasks` is what the tasks of an engine do, one after the other and without an engine, in seconds of processor time,
which other processes on the machine change little: no engine does better on one core.

At last an estimate for 100,000 interfaces that are asked every 30 s for a year: arithmetic from the rates measured
here.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts.bench_predict import METRICS, make_bundle  # noqa: E402

from netanomaly import load  # noqa: E402
from netanomaly.cluster.packed import PackedBundle  # noqa: E402
from netanomaly.cluster.tasks import Job  # noqa: E402
from netanomaly.predictions import label_files  # noqa: E402

FILES, SERIES = 8, 40
INTERFACES, INTERVAL_S, YEAR_S = 100_000, 30, 365 * 86_400
ENGINES = {"tasks": (1,), "predict": (1, 2), "spark": (1, 2), "ray": (1, 2)}
Score = Callable[[str, Path], None]
"""Files in, a place to write."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--child", nargs=3, metavar=("ENGINE", "CORES", "DIR"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        engine, cores, directory = options.child
        print(timed(engine, int(cores), Path(directory)))
        return
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        make_bundle(directory / "bundle")
        make_files(directory / "few", options.rows // 10)
        make_files(directory / "all", options.rows)
        contestants = [(engine, cores) for engine in options.engines for cores in ENGINES[engine]]
        seconds: dict[tuple[str, int], list[float]] = {one: [] for one in contestants}
        for _ in range(options.rounds):
            for engine, cores in contestants:
                seconds[engine, cores].append(child(engine, cores, directory))
        rates = {one: options.rows / statistics.median(found) for one, found in seconds.items()}
        show(rates, seconds, options.rows)
        size = {what: bytes_of(directory / what) / options.rows for what in ("all", "out")}
        estimate(rates, size)


def make_files(directory: Path, rows: int) -> None:
    """Rows of interleaved series, a second apart, in Parquet files that follow each other in time."""
    directory.mkdir()
    rng = np.random.default_rng(0)
    for number, part in enumerate(np.array_split(np.arange(rows), FILES)):
        values = rng.lognormal(0, 1, (len(part), METRICS)).round(4)
        frame = pd.DataFrame(values, columns=[f"metric_{metric}" for metric in range(METRICS)])
        frame.insert(0, "series", [f"link{link}" for link in part % SERIES])
        frame.insert(0, "timestamp", pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(part // SERIES, unit="s"))
        frame.to_parquet(directory / f"{number}.parquet", index=False)


def child(engine: str, cores: int, directory: Path) -> float:
    """Seconds that an engine takes, measured in a process of its own."""
    command = [sys.executable, __file__, "--child", engine, str(cores), str(directory)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if result.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {result.returncode}:\n{result.stderr[-2000:]}")
    return float(result.stdout.split()[-1])


def timed(engine: str, cores: int, directory: Path) -> float:
    """Seconds to score all rows, in a process that has scored some."""
    engines = {"tasks": by_tasks, "predict": by_predict, "spark": by_spark, "ray": by_ray}
    clock = time.process_time if engine == "tasks" else time.perf_counter
    with engines[engine](directory / "bundle", cores) as score:
        score(str(directory / "few" / "*.parquet"), directory / "warm")
        started = clock()
        score(str(directory / "all" / "*.parquet"), directory / "out")
        return clock() - started


@contextmanager
def by_tasks(bundle: Path, cores: int) -> Iterator[Score]:
    """What tasks do on any engine: read all files, score every part of every series, write."""
    packed, job = PackedBundle.of(bundle), Job()

    def score(files: str, out: Path) -> None:
        read = [rows for file in job.check(packed, [files]) for rows in job.read(packed, file)]
        parts = pd.concat(read).groupby(["series", "part"])
        pd.concat([job.score(packed, rows) for _, rows in parts]).to_parquet(out.with_suffix(".parquet"), index=False)

    yield score


@contextmanager
def by_predict(bundle: Path, cores: int) -> Iterator[Score]:
    """What `netanomaly predict` does, with so many threads."""
    predictor = load(bundle, overrides=[f"threads={cores}"])
    yield lambda files, out: print(label_files(predictor, [files], out.with_suffix(".parquet"), 200_000))


@contextmanager
def by_spark(bundle: Path, cores: int) -> Iterator[Score]:
    """Local Spark."""
    from pyspark.sql import SparkSession

    from netanomaly.cluster.on_spark import score_spark

    session = SparkSession.builder.master(f"local[{cores}]").getOrCreate()
    yield lambda files, out: score_spark(session, [files], bundle, out, Job(shares=8))
    session.stop()


@contextmanager
def by_ray(bundle: Path, cores: int) -> Iterator[Score]:
    """Local Ray."""
    import ray

    from netanomaly.cluster.on_ray import score_ray

    ray.init("local", num_cpus=cores, object_store_memory=500 * 2**20, include_dashboard=False)
    yield lambda files, out: score_ray([files], bundle, out, Job(shares=8))
    ray.shutdown()


def show(rates: dict[tuple[str, int], float], seconds: dict[tuple[str, int], list[float]], rows: int) -> None:
    """Medians, and from the fastest to the slowest round."""
    print(f"{rows:,} rows of {SERIES} series with {METRICS} metrics in {FILES} Parquet files\n")
    print("| | cores | rows/s | fastest and slowest round, rows/s | rows/s of one core |")
    print("| --- | --- | --- | --- | --- |")
    for (engine, cores), rate in rates.items():
        most, least = rows / min(seconds[engine, cores]), rows / max(seconds[engine, cores])
        print(f"| {engine} | {cores} | {rate:,.0f} | {most:,.0f}, {least:,.0f} | {rate / cores:,.0f} |")


def bytes_of(place: Path) -> int:
    """Of the Parquet files in a directory; of the file beside it where there is none."""
    files = list(place.glob("*.parquet")) or [place.with_suffix(".parquet")]
    return sum(file.stat().st_size for file in files)


def estimate(rates: dict[tuple[str, int], float], size: dict[str, float]) -> None:
    """A year of a large network, from the rates of the tasks alone and of engines on two cores."""
    rows = INTERFACES * YEAR_S // INTERVAL_S
    print(f"\nestimate: {INTERFACES:,} x {YEAR_S:,} s / {INTERVAL_S} s = {rows:.4g} rows")
    for what, name in (("all", "in"), ("out", "out")):
        print(f"- Parquet {name}: {size[what]:.1f} bytes a row x rows = {size[what] * rows / 1e12:.2f} TB")
    for (engine, cores), rate in rates.items():
        if engine == "tasks" or (cores == 2 and engine != "predict"):
            hours = rows / (rate / cores) / 3600
            print(f"- {engine}: rows / {rate / cores:,.0f} rows/s / 3600 s = {hours:,.0f} core hours", end="")
            print(f", {hours / 256:,.1f} h on 256 cores")
    pace = INTERFACES / INTERVAL_S
    print(f"- to keep up, {pace:,.0f} rows/s come in", end="")
    print(
        "".join(
            f"; {name}: {pace / (rate / c):.1f} cores" for (name, c), rate in rates.items() if c == max(ENGINES[name])
        )
    )


if __name__ == "__main__":
    main()
