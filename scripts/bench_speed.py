"""Windows per second, ours and those of peers, measured side by side: one run, taking turns, medians.

    python scripts/bench_speed.py --out runs/bench_speed.json
    python scripts/bench_speed.py --out runs/bench_speed.json --quick                # in three minutes
    python scripts/bench_speed.py --out runs/bench_speed.json --device cuda          # ours and PyTorch's encoder only

Windows of 64 rows and 8 metrics, one at every row; models 64 wide with 4 heads. The peers (MiniRocket with ridge,
LightGBM on window statistics, tsai's TST) run in an environment of their own, .peers, which the script makes. One that
cannot be installed or run is left out, with a word. One pass of training is all there is for LightGBM (100 rounds of
boosting) and MiniRocket (ridge); networks need more, ours 20 by default. The roofline is the time that the useful
multiplications and exponentials of a window take at the rates of this machine, measured in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts.bench.data import CLASSES, HEADS, METRICS, WIDTH, WINDOW  # noqa: E402
from scripts.bench.worker import Worker  # noqa: E402
from scripts.bench_predict import end_to_end, make_bundle  # noqa: E402

Tasks = dict[str, tuple[str, dict[str, Any], str, dict[str, Any]]]
"""Of each contestant: task and details for scoring, task and details for training."""

OURS: Tasks = {
    "ours": ("scoring", {"rows": 100_000}, "training", {"rows": 40_000}),
    "ours, window by window": (
        "scoring",
        {"rows": 20_000, "execution": "sdpa"},
        "training",
        {"rows": 10_000, "execution": "sdpa"},
    ),
    "transformer_encoder": ("encoder", {"rows": 16_000}, "encoder", {"rows": 2_000, "train": True}),
    "transformer_encoder, no dropout": (
        "encoder",
        {"rows": 16_000, "dropout": 0.0},
        "encoder",
        {"rows": 2_000, "train": True, "dropout": 0.0},
    ),
}
PEERS: Tasks = {
    "lightgbm": ("lightgbm", {"rows": 20_000}, "lightgbm", {"rows": 5_000, "train": True}),
    "minirocket": ("minirocket", {"rows": 2_000}, "minirocket", {"rows": 1_000, "train": True}),
    "tst": ("tst", {"rows": 8_000}, "tst", {"rows": 2_000, "train": True}),
}
MACHINE = "machine"
"""The contestant whose scoring is products of matrices, and whose training is exponentials."""
GROWTH: list[tuple[str, dict[str, Any]]] = [
    *(("scoring", {"window": window}) for window in (16, 64, 256)),
    *(("scoring", {"width": width}) for width in (32, 64, 128)),
    *(("scoring", {"rows": rows}) for rows in (20_000, 200_000)),
    *(("scoring", {"series": series}) for series in (1, 10, 100)),
    *(("training", {"batch_size": stretches}) for stretches in (8, 32, 128)),
    *(("training", {"dropout": dropout}) for dropout in (0.3, 0.0)),
]


def main() -> None:
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.json")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, no growth")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--peers", type=Path, default=Path(".peers"), metavar="DIR", help="the peers' environment")
    parser.add_argument("--no-peers", action="store_true")
    options = parser.parse_args()
    rounds = 3 if options.quick else 7
    workers = {name: _ours(options.device) for name in OURS}
    tasks = dict(OURS)
    if options.device == "cpu" and not options.no_peers:
        python = peers_environment(options.peers)
        workers |= {name: Worker([str(python), "-m", "scripts.bench.peers"], ROOT) for name in PEERS}
        tasks |= PEERS
    results = turns({**tasks, MACHINE: ("matmul", {}, "exp", {})}, {**workers, MACHINE: _ours(options.device)}, rounds)
    report = as_report(results, results.pop(MACHINE))
    if options.device == "cpu" and hasattr(os, "wait4"):
        with tempfile.TemporaryDirectory() as name:
            make_bundle(Path(name) / "bundle")
            report["end_to_end"] = end_to_end(Path(name), 200_000 if options.quick else 1_000_000, 1)
    if not options.quick:
        report["growth"] = growth(_ours(options.device), rounds=3)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(as_table(report))


def turns(
    tasks: dict[str, tuple[str, dict[str, Any], str, dict[str, Any]]], workers: dict[str, Worker], rounds: int
) -> dict[str, dict[str, float]]:
    """Windows per second in scoring and training, medians of rounds in which all take turns, and peak memory."""
    found: dict[str, dict[str, list[float]]] = {name: {"scoring": [], "training": [], "peak_mib": []} for name in tasks}
    for number in range(rounds):
        for name in list(found):
            scoring, score_with, training, train_with = tasks[name]
            try:
                for what, task, details in (("scoring", scoring, score_with), ("training", training, train_with)):
                    answer = workers[name].ask(task, **details)
                    found[name][what].append(answer["windows"] / answer["seconds"])
                    found[name]["peak_mib"].append(answer["peak_mib"])
            except RuntimeError as error:
                print(f"{name} is left out: {error}", file=sys.stderr)
                del found[name]
            print(f"round {number + 1} of {rounds}, {name}: {time.strftime('%H:%M:%S')}", file=sys.stderr)
    for worker in workers.values():
        worker.end()
    return {
        name: {
            "scoring": statistics.median(values["scoring"]),
            "training": statistics.median(values["training"]),
            "peak_mib": max(values["peak_mib"]),
        }
        for name, values in found.items()
    }


def as_report(results: dict[str, dict[str, float]], rates: dict[str, float]) -> dict[str, Any]:
    """The figures, and ours over each peer's."""
    ours = results["ours"]
    multiplications, exponentials = work()
    least = multiplications / (rates["scoring"] * 1e6) + exponentials / (rates["training"] * 1e6)
    return {
        "windows_per_s": {
            what: {name: found[what] for name, found in results.items()} for what in ("scoring", "training")
        },
        "peak_mib": {name: found["peak_mib"] for name, found in results.items()},
        "ratio": {
            what: {name: ours[what] / found[what] for name, found in results.items() if name != "ours"}
            for what in ("scoring", "training")
        },
        "rates": {"matmul_gflops": rates["scoring"] / 1e3, "exp_per_ns": rates["training"] / 1e3},
        "work_per_window": {"flops": multiplications, "exponentials": exponentials},
        "roofline_share": least * ours["scoring"],
    }


def work() -> tuple[int, int]:
    """Floating-point operations of matrix products, and exponentials, that one window of the default block needs."""
    stem, square = 9 * METRICS * WIDTH, WIDTH * WIDTH
    projections, feed_forward = 4 * square, 6 * square
    lookup = 3 * WINDOW * WIDTH  # scores, positions, answers
    return 2 * (stem + projections + feed_forward + lookup + WIDTH * CLASSES), HEADS * WINDOW


def growth(worker: Worker, rounds: int) -> list[dict[str, Any]]:
    """Ours with other windows, widths, rows, series, batches and dropout, the rest as it is; all take turns."""
    found: list[list[float]] = [[] for _ in GROWTH]
    for _ in range(rounds):
        for speeds, (task, change) in zip(found, GROWTH, strict=True):
            answer = worker.ask(task, **{"rows": 50_000, **change})
            speeds.append(answer["windows"] / answer["seconds"])
    worker.end()
    medians = map(statistics.median, found)
    return [
        {"task": task, **change, "windows_per_s": speed} for (task, change), speed in zip(GROWTH, medians, strict=True)
    ]


def as_table(report: dict[str, Any]) -> str:
    """The figures as Markdown."""
    lines = [
        "| | scoring, windows/s | ours is | one pass of training, windows/s | ours is | peak MiB |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, speed in report["windows_per_s"]["scoring"].items():
        training = report["windows_per_s"]["training"][name]
        times = [f"{report['ratio'][what][name]:.0f}x" if name != "ours" else "" for what in ("scoring", "training")]
        peak = report["peak_mib"][name]
        lines.append(f"| {name} | {speed:,.0f} | {times[0]} | {training:,.0f} | {times[1]} | {peak:,.0f} |")
    rates = report["rates"]
    lines += [
        "",
        f"Matrix products: {rates['matmul_gflops']:.0f} GFLOP/s; exponentials: {rates['exp_per_ns']:.2f} per ns;",
        f"scoring reaches {report['roofline_share']:.0%} of what they allow.",
    ]
    if whole := report.get("end_to_end"):
        lines.append(
            f"CSV to CSV, {whole['rows']:,} rows: {whole['predict_s']:.1f} s, {whole['times']:.0f} times what pandas "
            f"takes to read it; peak {whole['peak_mib']:,.0f} MiB."
        )
    for line in report.get("growth", []):
        change = ", ".join(f"{key} {value:,}" for key, value in line.items() if key not in ("task", "windows_per_s"))
        lines.append(f"- {line['task']}, {change}: {line['windows_per_s']:,.0f} windows/s")
    return "\n".join(lines)


def peers_environment(directory: Path) -> Path:
    """The Python of the peers' environment, which is made if it is not there."""
    python = directory / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not (directory / "ready").exists():
        print(f"installing peers into {directory} ...", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True)  # noqa: S603
        for wanted, needed in (("peers.txt", True), ("peers_tst.txt", False)):  # each its own step: tsai may fail
            command = [str(python), "-m", "pip", "install", "--quiet", "-r", str(ROOT / "scripts" / "bench" / wanted)]
            subprocess.run(command, check=needed)  # noqa: S603
        (directory / "ready").touch()
    return python


def _ours(device: str) -> Worker:
    return Worker([sys.executable, "-m", "scripts.bench.ours", "--device", device], ROOT)


if __name__ == "__main__":
    main()
