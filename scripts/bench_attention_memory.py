"""How memory grows with the window: one training step on a single window in which all rows ask, per execution.

    python scripts/bench_attention_memory.py

Each figure is a process of its own: peak resident memory above that of a window of 16 rows, and the time of the second
of two steps. `reference` holds the L x L map, `tiled` never does.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

import torch
from torch.nn.functional import cross_entropy

from netanomaly.build_model import build_classifier
from netanomaly.config_model import ModelConfig

CHANNELS, CLASSES, SMALL = 8, 4, 16
WAYS = ["reference", "sdpa", "tiled"]


def main() -> None:
    """Measure every execution and length, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", nargs="+", type=int, default=[1250, 2500, 5000, 10000])
    parser.add_argument("--executions", nargs="+", default=WAYS, choices=WAYS)
    parser.add_argument("--longest-map", type=int, default=5000, help="longest window for reference")
    parser.add_argument("--one", nargs=2, metavar=("EXECUTION", "LENGTH"), help="measure one and print it")
    options = parser.parse_args()
    if options.one:
        print(*step(options.one[0], int(options.one[1])))
        return
    print("| execution | rows of the window | MiB | MiB per row | s per step |\n| --- | --- | --- | --- | --- |")
    for execution in options.executions:
        ground, _ = measure(execution, SMALL)
        for length in options.lengths:
            if execution == "reference" and length > options.longest_map:
                continue
            peak, seconds = measure(execution, length)
            print(
                f"| {execution} | {length:,} | {peak - ground:,.0f} | {(peak - ground) / length:.3f} | {seconds:.1f} |"
            )


def measure(execution: str, length: int) -> tuple[float, float]:
    """Peak resident memory in MiB and seconds per step, from a process of its own."""
    command = [sys.executable, __file__, "--one", execution, str(length)]
    peak, seconds = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()  # noqa: S603
    return float(peak), float(seconds)


def step(execution: str, length: int) -> tuple[float, float]:
    """Two training steps on one window; peak resident memory of this process in MiB, seconds of the second step."""
    choice = {"kind": "attention", "execution": execution}
    config = ModelConfig.model_validate({"window": length, "read_out": "mean", "sequence_model": choice})
    torch.manual_seed(0)
    model = build_classifier(config, length, 1, CHANNELS, CLASSES)
    optimizer = torch.optim.AdamW(model.parameters())
    channels = torch.randn(1, model.history_rows + 1, CHANNELS)
    valid = torch.rand(1, model.history_rows + 1) < 0.95
    for _ in range(2):
        started = time.perf_counter()
        loss = cross_entropy(model(channels, valid)[:, 0], torch.zeros(1, dtype=torch.long))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seconds = time.perf_counter() - started
    unit = 2**20 if sys.platform == "darwin" else 2**10  # macOS counts bytes, Linux KiB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, seconds


if __name__ == "__main__":
    main()
