"""`netanomaly watch` for hours of simulated time, on a network that misbehaves, killed again and again.

    python scripts/soak.py                                              # 2 million rows, 2 hours of simulated time
    python scripts/soak.py --rows 40000 --series 200 --kills 4          # a minute or so

A process of `watch --follow --state` reads a CSV that grows and is rotated. Series come, go and come back; rows are
late, come twice or from the future, clocks jump by years, lines are garbage. The first half of the rows goes to one
process, whose memory is sampled; in the second half it is killed at random moments (SIGKILL, a quarter of the times
SIGTERM) and started again. A ledger holds what is owed: every row that may be taken is answered once in a run; after a
kill those since the last saved state are answered again, and alike; a sample of series has the answers of a batch.
Ends with 1 if a promise is broken.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts.bench.soak_ledger import AnswerFile, Ledger  # noqa: E402
from scripts.bench.soak_network import Network  # noqa: E402
from scripts.bench_predict import METRICS, make_bundle  # noqa: E402

from netanomaly import load  # noqa: E402

SMALL = ("model.window=16", "model.width=16", "model.sequence_model.n_heads=2")
"""Changes that make the bundle's model quick: it is not the model that is tried here."""
LEAD = 40_000
"""Rows that may be written before they are answered."""
PATIENCE = 300.0
"""Seconds without an answer after which something hangs."""


@dataclass
class Soak:
    """One run of the whole.

    Attributes:
        memory: (rows answered, MiB) of the process that is not killed.
        said: what the processes said on standard error.
    """

    directory: Path
    network: Network
    ledger: Ledger
    state_every: str
    forget_after: str
    memory: list[tuple[int, float]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    runs: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    rotations: int = 0
    process: subprocess.Popen[bytes] | None = None
    answers: AnswerFile | None = None

    @property
    def csv(self) -> Path:
        """The file that grows."""
        return self.directory / "links.csv"

    def start(self) -> None:
        """Start a process."""
        self.runs += 1
        self.answers = AnswerFile(self.directory / f"answers{self.runs}")
        command = [
            sys.executable,
            "-m",
            "netanomaly",
            "watch",
            str(self.directory / "bundle"),
            str(self.csv),
            "--follow",
        ]
        command += ["--state", str(self.directory / "state"), "--state-every", self.state_every]
        command += ["--forget-after", self.forget_after, "--set", "threads=1"]
        with self.answers.path.open("ab") as out, (self.directory / f"said{self.runs}").open("wb") as error:
            self.process = subprocess.Popen(command, stdout=out, stderr=error)  # noqa: S603

    def stop(self, number: signal.Signals) -> None:
        """End the process with a signal and read what it left."""
        if self.process is None:
            raise RuntimeError("no process")
        self.process.send_signal(number)
        code = self.process.wait(120)
        self.read()
        self.ledger.end_run()
        self.kills[number.name] += 1
        text = (self.directory / f"said{self.runs}").read_text(encoding="utf-8")
        self.said.append(text)
        if "Traceback" in text or (number == signal.SIGTERM and code != 143):
            self.ledger.broken.append(f"run {self.runs} ended with {code}: {text[-300:]}")

    def read(self) -> int:
        """Read new answers; how many came."""
        lines = [] if self.answers is None else self.answers.new_lines()
        self.ledger.read(lines)
        return len(lines)

    def write(self) -> None:
        """The lines of the next second."""
        with self.csv.open("a", encoding="utf-8", newline="") as stream:
            stream.write(self.network.next_lines())

    def rotate(self) -> None:
        """As logrotate does: rename and create."""
        self.csv.rename(self.directory / f"links.csv.{self.rotations + 1}")
        self.csv.write_text(self.network.header, encoding="utf-8")
        self.rotations += 1

    def wait(self, owed: int) -> None:
        """Wait until so many rows have had an answer."""
        last = time.monotonic()
        while self.answered < owed:
            if self.read():
                last = time.monotonic()
            elif self.process is not None and self.process.poll() is not None:
                raise SystemExit(f"watch has ended: {(self.directory / f'said{self.runs}').read_text()[-2000:]}")
            elif time.monotonic() - last > PATIENCE:
                raise SystemExit(f"{owed - self.answered} rows have had no answer for {PATIENCE:.0f} s")
            time.sleep(0.02)

    @property
    def answered(self) -> int:
        """Rows that have had an answer."""
        return self.ledger.rows - self.ledger.again - self.ledger._again_in_run

    @property
    def owed(self) -> int:
        """Rows that are owed one."""
        return self.network.owed_rows

    def sample(self) -> None:
        """Memory of the process, where the system tells it."""
        status = Path(f"/proc/{self.process.pid}/status") if self.process else Path()
        with contextlib.suppress(OSError):
            if found := re.search(r"VmRSS:\s+(\d+) kB", status.read_text()):
                self.memory.append((self.answered, int(found[1]) / 1024))

    def feed(self, rows: int) -> Iterator[None]:
        """Write until so many rows are owed, no more than `LEAD` ahead; stops after each second."""
        while self.owed < rows:
            self.write()
            if self.owed - self.answered > LEAD:
                self.wait(self.owed - LEAD)
            self.read()
            yield


def slope(memory: list[tuple[int, float]], warm: float = 0.3) -> tuple[float, float]:
    """MiB per million rows by least squares after the first part of the rows, and its standard error."""
    points = np.array([point for point in memory if point[0] >= warm * memory[-1][0]])
    if len(points) < 4:
        return float("nan"), float("nan")
    rows, used = points[:, 0] / 1e6, points[:, 1]
    (steep, at), rest = np.polyfit(rows, used, 1), 0.0
    rest = float(((used - steep * rows - at) ** 2).sum()) / (len(rows) - 2)
    return float(steep), float(np.sqrt(rest / ((rows - rows.mean()) ** 2).sum()))


def soak(
    directory: Path,
    rows: int,
    series: int,
    kills: int,
    seed: int,
    state_every: str,
    forget_after: str,
    bundle: Path | None,
) -> Soak:
    """Run it all."""
    if bundle is None:
        make_bundle(directory / "bundle", SMALL)
    else:
        (directory / "bundle").symlink_to(bundle.resolve())
    rng = np.random.default_rng(seed)
    network = Network(series, METRICS, rng)
    run = Soak(directory, network, Ledger(network), state_every, forget_after)
    run.csv.write_text(network.header, encoding="utf-8")
    turn_every = max(LEAD * 3, rows // 12)
    next_turn = turn_every
    run.start()
    half = rows // 2 if kills else rows
    for _ in run.feed(half):
        run.sample()
        if run.owed > next_turn:
            steep, error = slope(run.memory)
            grows = f"{run.memory[-1][1]:.0f} MiB, {steep:+.1f} ± {error:.1f} MiB per million"
            print(f"{run.answered:,} rows answered, {grows}", file=sys.stderr, flush=True)
            run.rotate()
            next_turn += turn_every
    run.wait(run.owed)
    run.sample()
    for kill, goal in enumerate(np.sort(rng.integers(half, rows, kills)).tolist()):
        for _ in run.feed(goal):
            if run.owed > next_turn and run.owed - run.answered < LEAD:
                run.rotate()
                next_turn += turn_every
        if rng.random() < 0.5:
            run.wait(run.owed - int(rng.integers(0, LEAD // 4)))
        time.sleep(float(rng.uniform(0, 1)))
        run.stop(signal.SIGTERM if kill % 4 == 3 else signal.SIGKILL)
        print(f"stopped {kill + 1} of {kills}: {run.answered:,} rows answered", file=sys.stderr, flush=True)
        run.start()
    for _ in run.feed(rows):
        pass
    run.wait(run.owed)
    run.stop(signal.SIGTERM)
    return run


def report(run: Soak, compared: int, took: float) -> str:
    """The table."""
    network, ledger = run.network, run.ledger
    steep, error = slope(run.memory)
    left_out = ", ".join(f"{count:,} {kind}" for kind, count in sorted(network.left_out.items()))
    lines = [
        ("rows that are owed an answer", f"{run.owed:,}"),
        ("series, in all and at a time", f"{network.born:,}, {len(network.links):,}"),
        ("simulated time", f"{network.second / 3600:.2f} h, in {took / 60:.1f} min"),
        ("lines to be left out", left_out),
        ("rotations of the file", f"{run.rotations}"),
        ("stopped", ", ".join(f"{count} {name}" for name, count in run.kills.items())),
        ("rows never answered, answered twice in a run or wrongly", f"{len(ledger.broken)}"),
        ("rows answered again after a kill, in all and at most", f"{ledger.again:,}, {ledger.most_again:,}"),
        ("rows compared with a batch", f"{compared:,}"),
        ("memory of the process that was not killed", f"{run.memory[0][1]:.0f} to {run.memory[-1][1]:.0f} MiB"),
        ("its slope after warm-up", f"{steep:+.1f} ± {error:.1f} MiB per million rows"),
    ]
    return "| | |\n| --- | --- |\n" + "".join(f"| {name} | {value} |\n" for name, value in lines)


def main() -> int:
    """Run, report, and say whether all promises were kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000, help="that are owed an answer (default %(default)s)")
    parser.add_argument("--series", type=int, default=250, help="at a time (default %(default)s)")
    parser.add_argument("--kills", type=int, default=24, help="in the second half (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--state-every", default="5s", help="as of watch (default %(default)s)")
    parser.add_argument("--forget-after", default="5m", help="as of watch (default %(default)s)")
    parser.add_argument("--bundle", type=Path, help="with the metrics metric_0 ...; default: fresh weights")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        run = soak(
            Path(name),
            options.rows,
            options.series,
            options.kills,
            options.seed,
            options.state_every,
            options.forget_after,
            options.bundle,
        )
        compared = run.ledger.settle(load(Path(name) / "bundle"))
    print(report(run, compared, time.monotonic() - begun))
    for broken in run.ledger.broken[:20]:
        print(broken, file=sys.stderr)
    return 1 if run.ledger.broken else 0


if __name__ == "__main__":
    sys.exit(main())
