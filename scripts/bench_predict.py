"""From a CSV to labels, end to end: time against merely reading the CSV with pandas, and memory against its length.

    python scripts/bench_predict.py --rows 200000 1000000 10000000

Makes a CSV of 10 interleaved series with 8 metrics, one row a second each, and a bundle with fresh default weights;
each figure is that of a process of its own. Then where the time goes, in one process. Needs POSIX (peak memory of a
child).
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import torch

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts.bench.one_block import BASELINE, ONE_BLOCK  # noqa: E402

from netanomaly import keep_freed_memory, load  # noqa: E402
from netanomaly.build import build_input_format  # noqa: E402
from netanomaly.build_members import build_model  # noqa: E402
from netanomaly.bundle import Bundle, save_bundle  # noqa: E402
from netanomaly.chunked import ChunkedPredictor  # noqa: E402
from netanomaly.config import load_config  # noqa: E402
from netanomaly.csv_lines import csv_lines  # noqa: E402
from netanomaly.data.channels import Channels  # noqa: E402
from netanomaly.data.ingest import read_tables  # noqa: E402
from netanomaly.decisions import Decisions  # noqa: E402

Result = TypeVar("Result")

SERIES, METRICS, CHUNK = 10, 8, 200_000
CLASSES = ("normal", *(f"fault_{number}" for number in range(8)))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", type=int, default=[200_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        make_bundle(directory / "bundle")
        print("| rows | pandas.read_csv, s | netanomaly predict, s | times | s per million rows | peak MiB |")
        print("| --- | --- | --- | --- | --- | --- |")
        for rows in options.rows:
            found = end_to_end(directory, rows, options.rounds)
            print(
                f"| {rows:,} | {found['pandas_s']:.1f} | {found['predict_s']:.1f} | {found['times']:.1f} "
                f"| {found['predict_s'] / rows * 1e6:.1f} | {found['peak_mib']:,.0f} |",
                flush=True,
            )
        make_csv(directory / "rows.csv", options.rows[0])
        breakdown(directory, options.rows[0])


def end_to_end(directory: Path, rows: int, rounds: int) -> dict[str, float]:
    """Reading a CSV with pandas and labelling it, taking turns: seconds (medians), their ratio, peak MiB of labelling.

    `directory` holds the bundle.
    """
    make_csv(directory / "rows.csv", rows)
    plain = [sys.executable, "-c", f"import pandas; pandas.read_csv({str(directory / 'rows.csv')!r})"]
    command = [sys.executable, "-m", "netanomaly", "predict", str(directory / "bundle"), "--quiet"]
    command += [str(directory / "rows.csv"), "--out", str(directory / "labels.csv")]
    turns = [(child(plain), child(command)) for _ in range(rounds)]
    reading, labelling = (statistics.median(turn[which][0] for turn in turns) for which in (0, 1))
    return {
        "rows": rows,
        "pandas_s": reading,
        "predict_s": labelling,
        "times": labelling / reading,
        "peak_mib": max(second[1] for _, second in turns),
    }


def make_bundle(directory: Path, changes: Sequence[str] = ()) -> None:
    """Fresh weights of one member of the default configuration, with fixed spans."""
    metrics = [f"metric_{number}" for number in range(METRICS)]
    data = {"metrics": metrics, "series": "series", "interval": "1s"}
    config = load_config({"data": data, "device": "cpu"}, [*ONE_BLOCK, *changes])
    values = np.random.default_rng(0).lognormal(0, 1, (5000, METRICS))
    channels = Channels.fit([values], [np.full(5000, True)], config.channels.kinds, (BASELINE,))
    torch.manual_seed(0)
    weights = build_model(config, channels.count, len(CLASSES)).state_dict()
    facts: dict[str, Any] = {"split": {"train": {"series": []}}}
    plain = Decisions.plain(tuple(CLASSES), "normal")
    save_bundle(directory, Bundle(config, channels, CLASSES, weights, plain, facts))


def make_csv(path: Path, rows: int) -> None:
    """Rows in order of time, the series taking turns, written a part at a time."""
    rng = np.random.default_rng(0)
    with path.open("w", encoding="utf-8", newline="") as stream:
        for first in range(0, rows, CHUNK):
            number = np.arange(first, min(first + CHUNK, rows))
            times = pd.Timestamp("2026-01-01") + pd.to_timedelta(number // SERIES, unit="s")
            values = rng.lognormal(0, 1, (len(number), METRICS)).round(4)
            frame = pd.DataFrame(values, columns=[f"metric_{metric}" for metric in range(METRICS)])
            frame.insert(0, "series", [f"link{link}" for link in number % SERIES])
            frame.insert(0, "timestamp", times.strftime("%Y-%m-%dT%H:%M:%SZ"))
            frame.to_csv(stream, index=False, header=first == 0)


def child(command: list[str]) -> tuple[float, float]:
    """Wall time in seconds and peak memory in MiB of a process (on Linux at least that of this one)."""
    started = time.perf_counter()
    process = subprocess.Popen(command)  # noqa: S603
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}")
    unit = 2**20 if sys.platform == "darwin" else 2**10  # macOS counts bytes, Linux KiB
    return time.perf_counter() - started, usage.ru_maxrss / unit


def breakdown(directory: Path, rows: int) -> None:
    """Where the time goes, each step alone."""
    keep_freed_memory()  # as the command does
    predictor = load(directory / "bundle")
    form = build_input_format(predictor.config.data).without_label()
    read, tables = timed(lambda: list(read_tables([directory / "rows.csv"], form, CHUNK)))
    labelling, frames = timed(lambda: list(ChunkedPredictor(predictor).label(tables)))
    values = np.concatenate([table.values for table in tables])
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:  # as ChunkedPredictor does
        channels, _ = timed(lambda: list(pool.map(predictor.channels, np.array_split(values, SERIES))))
    writing, _ = timed(lambda: [csv_lines(frame, texts=3) for frame in frames])
    print(f"\nwhere the time goes with {rows:,} rows:")
    rest = labelling - channels
    for name, seconds in (("read", read), ("channels", channels), ("grid and model", rest), ("write", writing)):
        print(f"- {name}: {seconds:.1f} s, {seconds / rows * 1e6:.1f} s per million rows")


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    """Seconds and result of some work."""
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


if __name__ == "__main__":
    main()
