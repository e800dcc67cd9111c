"""Scores of our defaults and of peers on labelled data sets, side by side; nobody is tuned to a data set by hand.

    python scripts/bench_quality.py --out runs/bench_quality.json --datasets testbed_a
    python scripts/bench_quality.py --out runs/bench_quality.json --data-root DIR          # the public ones as well
    python scripts/bench_quality.py --out runs/bench_quality.json --methods ours lightgbm --seeds 0

Ours is `netanomaly.train` with the defaults and nothing but a data section (configs/benchmark). Peers run in an
environment of their own, .peers, which the script makes; each chooses its window, baseline and class weights on the
validation rows, trial by trial, from lists of its own that are much alike. They get the test rows without labels. Every
labelled test row is scored once, from the window that ends in it; where that begins before its series does, a peer's
repeats the first row, and ours hides it. Whoever is not done within the budget is left out, and the table says so.
Results go into the file as they come, each with the commit and the machine; what is there already is kept, whatever the
commit (--again: run it again). Times of peers include neither reading nor the making of relative channels, ours do.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts.bench.command import run_command  # noqa: E402
from scripts.bench.quality_data import DATASETS, PUBLIC  # noqa: E402
from scripts.bench.quality_report import add, as_table, is_done, load, plot, save  # noqa: E402
from scripts.bench.quality_run import METHODS, PEERS, Machine, open_dataset, run  # noqa: E402
from scripts.bench_speed import peers_environment  # noqa: E402


def main() -> None:
    """Run what is missing, print, and write the results."""
    options = arguments()
    work = options.work.resolve()
    peers = None
    if not options.no_peers and set(options.methods) & set(PEERS):
        peers = peers_environment(options.peers).absolute()  # not resolved: the link is what makes the environment
    machine = Machine(peers, work, options.budget, options.threads, options.device)
    report = load(options.out)
    save(options.out, report)  # rather now than after the first training, should it not be possible
    report["machine"] = {**facts(), "threads": options.threads, "device": options.device}
    for dataset in options.datasets:
        missing = [
            (seed, method)
            for seed in options.seeds
            for method in options.methods
            if options.again or not is_done(report, dataset, method, seed, options.budget)
        ]
        if not missing:
            continue
        parts = open_dataset(dataset, options.data_root, work)
        for seed, method in missing:
            found = run(dataset, parts, method, seed, machine)
            said = found.get("skipped") or f"macro-F1 {found['macro_f1']:.3f}"
            print(f"{time.strftime('%H:%M:%S')} {dataset}, {method}, seed {seed}: {said}", file=sys.stderr, flush=True)
            add(report, dataset, method, seed, {**found, "machine": report["machine"]})
            save(options.out, report)
    save(options.out, report)
    print(as_table(report))
    if options.plot is not None and not plot(report, options.plot):
        print("no plot: Matplotlib is not installed (pip install matplotlib)", file=sys.stderr)


def arguments() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.json", help="results; those in it are kept")
    parser.add_argument("--data-root", type=Path, metavar="DIR", help=f"holds {', '.join(PUBLIC)}; see data/README.md")
    every = f"default: all of {', '.join(DATASETS)}"
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, metavar="NAME", help=every)
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, default=METHODS, metavar="NAME", help=", ".join(METHODS)
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], help="default: 0 1 2")
    parser.add_argument("--budget", type=float, default=900.0, metavar="SECONDS", help="for each training: 900")
    parser.add_argument("--peers", type=Path, default=Path(".peers"), metavar="DIR", help="the peers' environment")
    parser.add_argument("--no-peers", action="store_true", help="leave out what needs the peers' environment")
    parser.add_argument("--again", action="store_true", help="run what there is a result of, too")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--device", default="cpu", help="of ours and of the peers' networks: cpu or cuda")
    parser.add_argument(
        "--work", type=Path, default=Path("runs/bench_quality"), metavar="DIR", help="for what is between"
    )
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="needs Matplotlib")
    options = parser.parse_args()
    if options.datasets is None:
        options.datasets = [name for name in DATASETS if name not in PUBLIC or options.data_root is not None]
    if options.data_root is None and (needed := sorted(set(options.datasets) & set(PUBLIC))):
        parser.error(f"{', '.join(needed)}: not bundled; --data-root DIR says where they are (see data/README.md)")
    if options.data_root is not None:
        options.data_root = options.data_root.resolve()
    if options.no_peers:
        options.methods = _without_peers(parser, options.methods)
    if min(options.seeds) < 0:
        parser.error("--seeds: numbers from 0 on")
    if options.budget <= 0:
        parser.error("--budget: more than no second")
    return options


def _without_peers(parser: argparse.ArgumentParser, methods: Sequence[str]) -> list[str]:
    """The methods that need no peers' environment; who asks for others by name is told."""
    left = [name for name in methods if name in PEERS]
    if left and tuple(methods) != METHODS:
        print(f"left out (--no-peers): {', '.join(left)}", file=sys.stderr)
    if len(left) == len(methods):
        parser.error("--no-peers leaves none of --methods")
    return [name for name in methods if name not in PEERS]


def facts() -> dict[str, Any]:
    """The machine and what runs on it."""
    import torch

    import netanomaly

    return {
        "system": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "netanomaly": netanomaly.__version__,
        "revision": revision(),
    }


def revision() -> str | None:
    """Which commit the project is at, with a `+` where files differ from it; None without git."""
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return None


if __name__ == "__main__":
    run_command(main)
