"""Any bytes, read: nothing but the package's own errors comes out, in bounded time and memory.

    python scripts/fuzz.py csv --runs 20000 --seed 0
    python scripts/fuzz.py csv --replay runs/fuzz/csv-AssertionError-0.bin

Inputs are mutations of small seeds; those that reach a new step from line to line are mutated further. With
`--engine atheris` (`pip install 'netanomaly[fuzz]'`) libFuzzer guides the same mutations and its own. An input that
raises anything else than a NetanomalyError, takes more than `--seconds` of processor time (or ten times as long), or
needs more than `--megabytes` of memory is saved, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

MOST_BYTES = 4096
"""Of an input, or twice the longest seed if that is more."""


class TooSlow(BaseException):
    """An input took too long. Of no class that the package catches."""


def main(arguments: list[str] | None = None) -> int:
    """Fuzz one target; 1 if anything was found."""
    options = _parser().parse_args(arguments)
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    if options.engine == "atheris" and options.replay is None:
        import atheris

        with atheris.instrument_imports(include=["netanomaly", "yaml"]):
            return _fuzz(options)
    return _fuzz(options)


def _fuzz(options: argparse.Namespace) -> int:
    import torch
    from scripts.fuzzing.targets import TARGETS

    torch.set_num_threads(1)
    if options.target not in TARGETS:
        raise SystemExit(f"no target {options.target!r}; there are {', '.join(TARGETS)}")
    target = TARGETS[options.target]
    with tempfile.TemporaryDirectory() as directory:
        run = target.make(Path(directory))
        for seed in target.seeds:
            with contextlib.suppress(Exception):
                run(seed)  # what is imported late is loaded before memory is counted
        _limit_memory(options.megabytes)
        inputs = Inputs(run, options)
        if options.replay is not None:
            run(options.replay.read_bytes())
            return 0
        with contextlib.suppress(KeyboardInterrupt):  # what was found so far is told
            if options.engine == "atheris":
                _guided_by_atheris(inputs, target.seeds, options)
            else:
                _guided_by_steps(inputs, target.seeds, options)
        return inputs.told()


class Inputs:
    """Runs inputs and keeps account of them."""

    def __init__(self, run: Any, options: argparse.Namespace) -> None:
        self._run, self._options = run, options
        self.outcomes: Counter[str] = Counter()
        self.found: Counter[str] = Counter()
        self.slowest: tuple[float, bytes] = (0.0, b"")
        self.steps = 0
        self._begun = time.monotonic()

    def __call__(self, data: bytes) -> None:
        """Run one."""
        from netanomaly.errors import NetanomalyError

        begun = time.process_time()
        executions = sum(self.outcomes.values()) + sum(self.found.values())
        if executions % 5000 == 4999:
            print(f"{self._options.target}: {executions + 1} ...", file=sys.stderr, flush=True)
        try:
            with _alarm(self._options.seconds):
                self._run(data)
            self.outcomes["accepted"] += 1
        except NetanomalyError as error:
            self.outcomes[type(error).__name__] += 1
        except (Exception, TooSlow) as error:
            self._save(data, error)
        took = time.process_time() - begun
        if took > self.slowest[0]:
            self.slowest = (took, data)

    def told(self) -> int:
        """Print what was found; 1 if there is anything."""
        executions, took = sum(self.outcomes.values()) + sum(self.found.values()), time.monotonic() - self._begun
        outcomes = ", ".join(f"{count} {name}" for name, count in self.outcomes.most_common())
        print(f"{self._options.target}: {executions} executions in {took:.0f} s ({outcomes})")
        steps = f"{self.steps}" if self.steps else "see libFuzzer's cov and ft"
        print(f"distinct steps from line to line reached: {steps}")
        print(f"slowest input: {self.slowest[0]:.3f} s, {self.slowest[1][:60]!r}")
        print(f"foreign exceptions: {sum(self.found.values())}", dict(self.found) if self.found else "", flush=True)
        return 1 if self.found else 0

    def _save(self, data: bytes, error: BaseException) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        place = next((frame for frame in reversed(frames) if "netanomaly" in frame.filename), frames[-1])
        kind = f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}"
        self.found[kind] += 1
        if self.found[kind] <= 3:
            self._options.out.mkdir(parents=True, exist_ok=True)
            name = f"{self._options.target}-{type(error).__name__}-{sum(self.found.values())}.bin"
            (self._options.out / name).write_bytes(data)
            print(f"{kind}: {str(error)[:300]!r}; saved: {self._options.out / name}", flush=True)


def _guided_by_steps(inputs: Inputs, seeds: Any, options: argparse.Namespace) -> None:
    """Mutate seeds, and inputs that reached something new."""
    from scripts.fuzzing.mutations import mutate
    from scripts.fuzzing.reached import Reached

    random, corpus, reached = Random(options.seed), list(seeds), Reached()  # noqa: S311 - repeatable, not secret
    most = max(MOST_BYTES, 2 * max(map(len, seeds)))
    for number in range(options.runs):
        chosen = random.choice(corpus[-64:]) if random.random() < 0.5 else random.choice(corpus)
        data = corpus[number] if number < len(seeds) else mutate(chosen, corpus, random, most)
        before = len(reached.steps)
        with reached:
            inputs(data)
        inputs.steps = len(reached.steps)
        if len(reached.steps) > before:
            corpus.append(data)


def _guided_by_atheris(inputs: Inputs, seeds: Any, options: argparse.Namespace) -> None:
    """The same mutations and libFuzzer's, guided by libFuzzer, which ends the process after its last run."""
    import atheris
    from scripts.fuzzing.mutations import mutate

    def mutated(data: bytes, most: int, seed: int) -> bytes:
        random = Random(seed)  # noqa: S311 - repeatable, not secret
        if random.random() < 0.3:
            return bytes(atheris.Mutate(data, most))
        return mutate(data, list(seeds), random, most)

    runs = 0

    def run(data: bytes) -> None:
        nonlocal runs
        inputs(data)
        runs += 1
        if runs >= options.runs:
            code = inputs.told()
            os._exit(code)

    with tempfile.TemporaryDirectory() as corpus:
        for number, seed in enumerate(seeds):
            (Path(corpus) / str(number)).write_bytes(seed)
        most = max(MOST_BYTES, 2 * max(map(len, seeds)))
        flags = [f"-seed={options.seed + 1}", f"-max_len={most}", "-rss_limit_mb=0", "-print_final_stats=1"]
        atheris.Setup([sys.argv[0], *flags, corpus], run, custom_mutator=mutated)
        atheris.Fuzz()


@contextlib.contextmanager
def _alarm(seconds: float) -> Any:
    """Raise TooSlow in the block after so many seconds of work, or ten times as many in all, where signals can."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        raise TooSlow(f"more than {seconds} s")

    for which, timer, limit in (
        (signal.SIGPROF, signal.ITIMER_PROF, seconds),
        (signal.SIGALRM, signal.ITIMER_REAL, 10 * seconds),
    ):
        signal.signal(which, ring)
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
            signal.setitimer(timer, 0)


def _limit_memory(megabytes: int) -> None:
    """So much more than now, on systems that can."""
    status = Path("/proc/self/status")
    if not status.exists():
        return
    import resource

    size = next(line for line in status.read_text().splitlines() if line.startswith("VmSize:"))
    limit = int(size.split()[1]) * 1024 + megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", help="csv, yaml, config, bundle, incidents, timestamps or watch-lines")
    parser.add_argument("--runs", type=int, default=10_000, help="executions (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the mutations (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=5.0, help="for one input (default %(default)s)")
    parser.add_argument("--megabytes", type=int, default=1024, help="of address space (default %(default)s)")
    parser.add_argument("--engine", choices=("own", "atheris"), default="own", help="what guides (default %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("runs/fuzz"), help="directory of what is found")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="run one saved input, its error shown")
    return parser


if __name__ == "__main__":
    sys.exit(main())
