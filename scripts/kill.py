"""Kills netanomaly at random moments and looks whether anything is lost.

    python scripts/kill.py                                   # 240 kills, about half an hour
    python scripts/kill.py --training 10 --predict 3 --tune 3 --seed 7

Three commands are killed with SIGKILL, each at a moment drawn evenly from the time that it takes: `train --resume`,
half of the times over an earlier run (`--overwrite` at first), `predict` and `tune`. After every kill:

- every checkpoint of the run loads, its SHA-256 included; an earlier bundle, or the new one, loads;
- a training that came to its end in spite of it has the weights of one that nobody killed, bit for bit;
- predictions are there as a whole or not at all; a bundle that `tune` was changing is the old one or the new one;
- a start that follows removes what the killed process left half-written.

One process at a time, forked from this one, which has imported everything: a kill that hits the imports would show
nothing. POSIX only.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported: a fork has one thread

import pandas as pd
import torch
from tqdm import tqdm

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts.bench.command import run_command  # noqa: E402

import netanomaly.retuning  # noqa: E402  # imported before forking
import netanomaly.run  # noqa: E402
from netanomaly.bundle import load_bundle  # noqa: E402
from netanomaly.bundle_files import MANIFEST  # noqa: E402
from netanomaly.checkpoints import DIRECTORY as CHECKPOINT  # noqa: E402
from netanomaly.cli import main as netanomaly_main  # noqa: E402
from netanomaly.files import TEMPORARY  # noqa: E402
from netanomaly.training.checkpoint import load_checkpoint  # noqa: E402

LINKS = ("a01", "a02", "a06")
ROWS = 1500
"""Rows of each link that the training reads: it is about how a run ends, not about what it learns."""


def main() -> None:
    """Kill, look, print; exits with 1 if anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--training", type=int, default=180, help="kills of trainings (default %(default)s)")
    parser.add_argument("--predict", type=int, default=30, help="kills of predict (default %(default)s)")
    parser.add_argument("--tune", type=int, default=30, help="kills of tune (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments (default %(default)s)")
    options = parser.parse_args()
    if not hasattr(os, "fork"):
        parser.error("needs POSIX: processes are forked and killed")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        killer = _Killer(Path(name), random.Random(options.seed))  # noqa: S311  # moments, no secrets
        killer.trainings(options.training)
        killer.predictions(options.predict)
        killer.tunings(options.tune)
        print(killer.table())
    raise SystemExit(1 if killer.losses else 0)


class _Killer:
    """What is killed, in a directory of its own, and what was found."""

    def __init__(self, directory: Path, draw: random.Random) -> None:
        self.directory, self.draw = directory, draw
        self.kills: Counter[str] = Counter()
        self.found: Counter[str] = Counter()
        self.losses: list[str] = []
        self.bar = tqdm(unit="kill", disable=None)
        self.rows = _write_rows(directory / "links.csv")
        self.config = _write_config(directory)
        self.whole = directory / "whole"
        train: list[str | Path] = ["train", self.config, "--run-dir", self.whole, *QUIET]
        self.training_seconds = _twice_timed(lambda: _run([*train, "--overwrite"]))
        self.weights = _weights(self.whole)

    def trainings(self, kills: int) -> None:
        """Kill trainings until there are so many kills; every one is gone on with until it comes to its end."""
        number = 0
        while self.kills["train"] < kills:
            number += 1
            run = self.directory / f"run-{number}"
            is_over_another = number % 2 == 0
            if is_over_another:
                shutil.copytree(self.whole, run)
            start = ["--overwrite"] if is_over_another else []
            while True:
                killed = self._kill(["train", self.config, "--run-dir", run, *start, *QUIET], self.training_seconds)
                self._look_at_run(run, has_bundle=is_over_another)
                if not killed:
                    break
                self.kills["train"] += 1
                start = ["--resume"] if (run / CHECKPOINT / "run.json").exists() else start
            self._check(_weights(run) == self.weights, f"{run.name}: its weights are not those of an unbroken training")
            left = [path for path in run.rglob(TEMPORARY) if path.is_file()]
            self._check(not left, f"{run.name}: left behind {left}")
            self.found["trainings ended, weights bit for bit those of an unbroken one"] += 1
            shutil.rmtree(run)

    def predictions(self, kills: int) -> None:
        """Kill `predict`: the file is the whole one or not there."""
        out, expected = self.directory / "out.csv", self.directory / "expected.csv"
        seconds = _twice_timed(lambda: _run(["predict", self.whole, self.rows, "--out", expected, "--quiet"]))
        whole = expected.read_bytes()
        while self.kills["predict"] < kills:
            out.unlink(missing_ok=True)
            if not self._kill(["predict", self.whole, self.rows, "--out", out, "--quiet"], seconds):
                self._check(out.read_bytes() == whole, "predict: another answer")
                continue
            self.kills["predict"] += 1
            if out.exists():
                self._check(out.read_bytes() == whole, "predict: half a file under the name of a whole one")
                self.found["predictions whole"] += 1
            else:
                self.found["predictions not there"] += 1

    def tunings(self, kills: int) -> None:
        """Kill `tune`: the bundle is the old one or the new one."""
        run = self.directory / "tuned"
        shutil.copytree(self.whole, run)
        wishes, number = ("24", "2400"), 0
        seconds = _twice_timed(lambda: _run(["tune", run, "--false-alarms-per-day", wishes[0], "--quiet"]))
        while self.kills["tune"] < kills:
            number += 1
            before = load_bundle(run).decisions.state()
            killed = self._kill(["tune", run, "--false-alarms-per-day", wishes[number % 2], "--quiet"], seconds)
            try:
                after = load_bundle(run).decisions.state()
            except netanomaly.NetanomalyError as error:
                self._check(False, f"tune: the bundle is lost: {error}")
                return
            if killed:
                self.kills["tune"] += 1
                self.found["bundles as before tune" if after == before else "bundles as tuned"] += 1

    def table(self) -> str:
        """The kills and what was found after them."""
        lines = [f"{sum(self.kills.values())} kills: {dict(self.kills)}"]
        lines += [f"{count:6} {what}" for what, count in sorted(self.found.items())]
        lines.append(f"{len(self.losses)} losses" + "".join(f"\n  {loss}" for loss in self.losses))
        return "\n".join(lines)

    def _kill(self, arguments: list[str | Path], seconds: float) -> bool:
        """Run a command and kill it at some moment; whether it was still alive."""
        child = os.fork()
        if child == 0:
            os._exit(_run(arguments, exits=False))
        time.sleep(self.draw.uniform(0, 1.05 * seconds))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            self.bar.update()
            return True
        self._check(os.WEXITSTATUS(status) == 0, f"{arguments}: exit code {os.WEXITSTATUS(status)}")
        return False

    def _look_at_run(self, run: Path, *, has_bundle: bool) -> None:
        """Whatever is there loads."""
        for path in sorted((run / CHECKPOINT).glob("*.safetensors")):
            try:
                load_checkpoint(path)
                self.found["checkpoints looked at, whole"] += 1
            except netanomaly.NetanomalyError as error:
                self._check(False, str(error))
        if has_bundle or (run / MANIFEST).exists():
            try:
                load_bundle(run)
                self.found["bundles looked at, whole"] += 1
            except netanomaly.NetanomalyError as error:
                self._check(False, str(error))
        self.found["files left half-written, for the next start to remove"] += len(list(run.rglob(TEMPORARY)))

    def _check(self, is_well: bool, loss: str) -> None:
        if not is_well:
            self.losses.append(loss)


QUIET: list[str | Path] = ["--quiet", "--no-report"]


def _run(arguments: list[str | Path], *, exits: bool = True) -> int:
    """A command in this process. Exits if it fails, unless a fork wants its exit code."""
    if not exits:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    with contextlib.redirect_stdout(io.StringIO()):
        code = netanomaly_main([str(argument) for argument in arguments])
    if code and exits:
        raise SystemExit(code)
    return code


def _twice_timed(work: Callable[[], object]) -> float:
    """Seconds of the second time: what was imported the first time is there in every fork."""
    work()
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _weights(run: Path) -> str:
    """SHA-256 of a bundle's weights."""
    digest = hashlib.sha256()
    for name, tensor in sorted(load_bundle(run).weights.items()):
        digest.update(name.encode() + tensor.numpy().tobytes())
    return digest.hexdigest()


def _write_rows(path: Path) -> Path:
    frame = pd.read_csv(ROOT / "data/testbed/data.csv.gz")
    frame[frame["series"].isin(LINKS)].groupby("series").head(ROWS).to_csv(path, index=False)
    return path


def _write_config(directory: Path) -> Path:
    """Two small members, a checkpoint every five steps."""
    path = directory / "kill.yaml"
    path.write_text(
        f"""
data:
  root: {directory}
  files: links.csv
  series: series
  label: label
  interval: 500ms
  max_gap: 5s
  metrics: [rtt_ms, loss_ratio, throughput_rx_bps]
  split: {{by: series, train: [a01, a02], validation: [a06]}}
channels: {{levels: both}}
model: {{members: 1, width: 16, window: 16, stem: 4}}
training: {{epochs: 4, min_steps: 0, save_steps: 5, stretch: 64}}
device: cpu
threads: 1
""",
        encoding="utf-8",
    )
    return path


if __name__ == "__main__":
    run_command(main)
