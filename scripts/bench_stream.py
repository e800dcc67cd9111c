"""Rows as they come: the time of one row, rows per second of many series, and whether `watch` keeps up on one core.

    python scripts/bench_stream.py
    python scripts/bench_stream.py --series 5000 --seconds 120      # of `watch`; the rest takes three minutes

The bundle has fresh default weights and 8 metrics. `watch` is a process of its own, pinned to one core where the
system can; its lines come evenly spread, one per series and second, and the latency of a line runs from the moment it
is written to the moment its answer is read.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import torch

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts.bench_predict import METRICS, make_bundle  # noqa: E402

from netanomaly import StreamingPredictor, keep_freed_memory, load  # noqa: E402

SECOND = 10**9
START = pd.Timestamp("2026-01-01", tz="UTC").value
WARM = 300
"""Rows of each series before anything is measured: the window and the baselines are full."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=1000, help="that are watched (default %(default)s)")
    parser.add_argument("--seconds", type=int, default=60, help="for which they are (default %(default)s)")
    options = parser.parse_args()
    keep_freed_memory()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        make_bundle(Path(name) / "bundle")
        print("| one core | median | p99 | rows/s |\n| --- | --- | --- | --- |")
        for what, row in one_row_at_a_time(Path(name) / "bundle").items():
            print(f"| one row of one series, `{what}` | {_spread(row)} |", flush=True)
        for count in (100, 1000, 5000):
            calls = many_series(Path(name) / "bundle", count)
            print(f"| a row of each of {count:,} series, `update_arrays` | {_spread(calls, count)} |", flush=True)
        watched(Path(name) / "bundle", options.series, options.seconds)


def one_row_at_a_time(bundle: Path, rows: int = 2000) -> dict[str, list[float]]:
    """Seconds of each call, as a mapping and as arrays."""
    values = np.random.default_rng(0).lognormal(0, 1, (WARM + rows, METRICS))
    times = START + SECOND * np.arange(WARM + rows)
    texts = pd.to_datetime(times).strftime("%Y-%m-%dT%H:%M:%SZ").tolist()
    by_mapping, by_arrays = (StreamingPredictor(load(bundle)) for _ in range(2))

    def mapping(row: int) -> None:
        metrics = {f"metric_{number}": value for number, value in enumerate(values[row])}
        by_mapping.update({"timestamp": texts[row], "series": "a", **metrics})

    def arrays(row: int) -> None:
        by_arrays.update_arrays(["a"], times[row : row + 1], values[row : row + 1])

    return {"update": _timed(mapping, rows), "update_arrays": _timed(arrays, rows)}


def many_series(bundle: Path, count: int, calls: int = 30) -> list[float]:
    """Seconds of each call with a row of every series."""
    stream, draw = StreamingPredictor(load(bundle)), np.random.default_rng(0)
    names = [f"link{number}" for number in range(count)]

    def call(step: int) -> None:
        stream.update_arrays(names, np.full(count, START + SECOND * step), draw.lognormal(0, 1, (count, METRICS)))

    return _timed(call, calls)


def _timed(call: Callable[[int], None], count: int) -> list[float]:
    for number in range(WARM):
        call(number)
    seconds = []
    for number in range(WARM, WARM + count):
        started = time.perf_counter()
        call(number)
        seconds.append(time.perf_counter() - started)
    return seconds


def watched(bundle: Path, series: int, seconds: int) -> None:
    """Feed `netanomaly watch` in real time and print the latency of its answers."""
    command = [sys.executable, "-m", "netanomaly", "watch", str(bundle), "--set", "threads=1", "--quiet"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("a process without pipes")
    cores = "one core"
    if hasattr(os, "sched_setaffinity") and len(os.sched_getaffinity(0)) > 1:
        first, *others = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(process.pid, {first})
        os.sched_setaffinity(0, set(others))  # the feeder does not stand in its way
    else:
        cores = "one thread (this system pins no process to a core)"
    latencies: list[float] = []
    sent: dict[tuple[str, str], float] = {}

    def read(answers: int) -> None:
        for _ in range(answers):
            line = process.stdout.readline()  # type: ignore[union-attr]
            if not line:  # it has ended
                return
            answer = json.loads(line)
            latencies.append(time.perf_counter() - sent.pop((answer["series"], answer["timestamp"])))

    rows = np.random.default_rng(0).lognormal(0, 1, (series, METRICS)).round(4)
    texts = [",".join(map(str, row)) for row in rows]
    process.stdin.write("timestamp,series," + ",".join(f"metric_{number}" for number in range(METRICS)) + "\n")
    reader = threading.Thread(target=read, args=(series * seconds,))
    reader.start()
    _send(process, sent, texts, 0, pace=False)  # the first rows come with imports and new series
    while sent:
        if process.poll() is not None:
            raise RuntimeError(f"watch has ended with {process.returncode}")
        time.sleep(0.01)
    latencies.clear()
    started = time.perf_counter()
    for second in range(1, seconds):
        _send(process, sent, texts, second, pace=True)
    reader.join()
    took = time.perf_counter() - started
    process.stdin.close()
    process.wait()
    p50, p99, worst = (1000 * np.quantile(latencies, share) for share in (0.5, 0.99, 1.0))
    print(
        f"\n`watch`, {series:,} series at one row a second on {cores}: {len(latencies):,} rows in {took:.1f} s; "
        f"latency {p50:.0f} ms (median), {p99:.0f} ms (p99), {worst:.0f} ms (most)"
    )


def _send(
    process: subprocess.Popen[str], sent: dict[tuple[str, str], float], rows: list[str], second: int, *, pace: bool
) -> None:
    """One row of every series, spread over a second."""
    if process.stdin is None:
        raise RuntimeError("a process without pipes")
    stamp = pd.Timestamp(START + SECOND * second, tz="UTC").strftime("%Y-%m-%dT%H:%M:%SZ")
    begun = time.perf_counter()
    for number, row in enumerate(rows):
        name = f"link{number}"
        if pace:
            time.sleep(max(0.0, begun + number / len(rows) - time.perf_counter()))
        sent[name, stamp] = time.perf_counter()
        process.stdin.write(f"{stamp},{name},{row}\n")
        process.stdin.flush()
    if pace:
        time.sleep(max(0.0, begun + 1 - time.perf_counter()))


def _spread(seconds: list[float], rows: int = 1) -> str:
    median, p99 = np.quantile(seconds, 0.5), np.quantile(seconds, 0.99)
    return f"{1000 * median:.2f} ms | {1000 * p99:.2f} ms | {rows / median:,.0f}"


if __name__ == "__main__":
    main()
