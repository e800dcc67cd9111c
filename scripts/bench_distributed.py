"""Training with one process and with several, side by side: steps and rows a second.

    python scripts/bench_distributed.py                      # 1 and 2 processes on the CPU
    python scripts/bench_distributed.py --processes 1 4 8 --device cuda

Each number of processes trains the same small model on the same made-up rows, started by torchrun, one thread a
process; what counts are the steps after the first epoch. Batches are of the same size, so a step is the same work,
shared. The distance is the largest difference of any weight from that of the first number of processes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file

ROWS, LINKS, EPOCHS = 6000, 4, 4


def main() -> None:
    """Train, time, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2], help="how many (default %(default)s)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--batch-size", type=int, default=16, help="stretches of 128 rows (default %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        _write_rows(directory / "links.csv")
        found = [_train(directory, size, options.device, options.batch_size) for size in options.processes]
    print(f"{platform.machine()}, {os.cpu_count()} cores, {options.device}, PyTorch {torch.__version__}")
    print(f"batches of {options.batch_size} stretches of 128 rows\n")
    print("processes  steps/s     rows/s  distance of weights")
    for size, (rate, weights) in zip(options.processes, found, strict=True):
        distance = max(float((weights[name] - found[0][1][name]).abs().max()) for name in weights)
        print(f"{size:9}  {rate:7.2f}  {rate * options.batch_size * 128:9,.0f}  {distance:.1e}")


def _train(directory: Path, size: int, device: str, batch_size: int) -> tuple[float, dict[str, torch.Tensor]]:
    """Steps a second after the first epoch, and the weights in the end."""
    run = directory / f"run-{size}"
    config = {
        "run_dir": str(run),
        "device": device,
        "data": {
            "root": str(directory),
            "files": "links.csv",
            "series": "link",
            "label": "label",
            "interval": "1s",
            "metrics": ["one", "two", "three"],
            "split": {"by": "series", "train": ["0", "1", "2"], "validation": ["3"]},
        },
        "channels": {"levels": "seen", "baselines": 64},
        "model": {"members": 1, "window": 64, "dropout": 0.0},
        "training": {
            "epochs": EPOCHS,
            "min_steps": 0,
            "batch_size": batch_size,
            "jitter": 0.0,
            "save_steps": None,
        },
    }
    (directory / "config.json").write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
    program = Path(__file__).with_name("train.py")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={size}"]
    command += [str(program), str(directory / "config.json"), "--quiet", "--no-report"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)  # noqa: S603  # ours
    log = [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    steps, seconds = (log[-1][key] - log[0][key] for key in ("steps", "seconds"))
    return steps / seconds, load_file(run / "model.safetensors")


def _write_rows(path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = ["timestamp,link,one,two,three,label"]
    for link in range(LINKS):
        values = rng.standard_normal((ROWS, 3)) + 10
        is_fault = np.arange(ROWS) % 100 >= 80
        values[is_fault, 0] *= 3
        for row in range(ROWS):
            time = np.datetime64("2026-03-01T00:00:00") + row
            one, two, three = values[row]
            lines.append(f"{time}Z,{link},{one:.4f},{two:.4f},{three:.4f},{'fault' if is_fault[row] else 'normal'}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
