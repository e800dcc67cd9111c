"""A process that waits for work: a line of JSON in, one out. The parent says when, so that all take turns."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Task = Callable[[], int]
"""Does some work once; returns how many windows that were."""
ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": str(32 * 2**20), "MALLOC_TRIM_THRESHOLD_": str(512 * 2**20)}
"""What `netanomaly.keep_freed_memory` does, for ours and for peers alike."""
THREADS = os.cpu_count() or 1
"""Of every contestant."""
LEAST_SECONDS = 1.0
"""How long a measurement takes at least: a process that has just been woken is slower."""


def serve(tasks: Mapping[str, Callable[[dict[str, Any]], Task]]) -> None:
    """Answer requests until standard input ends: {"task": name, ...} -> {"windows", "seconds", "peak_mib"}.

    A task is made at its first request (data, weights, a first run), and then run again and again for a second.
    """
    made: dict[str, Task] = {}
    for line in sys.stdin:
        request = json.loads(line)
        key = json.dumps(request, sort_keys=True)
        if key not in made:
            made[key] = tasks[request.pop("task")](request)
            made[key]()
        windows, started = 0, time.perf_counter()
        while (seconds := time.perf_counter() - started) < LEAST_SECONDS:
            windows += made[key]()
        print(json.dumps({"windows": windows, "seconds": seconds, "peak_mib": peak_mib()}), flush=True)


def peak_mib() -> float:
    """The most memory this process has had, in MiB; NaN where the system does not say."""
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage says on Linux begins with the parent's
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="ascii"))
        return int(found[1]) / 2**10 if found else math.nan
    try:
        import resource
    except ImportError:  # Windows
        return math.nan
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # macOS counts bytes


class Worker:
    """The other end: a process with `serve` in it."""

    def __init__(self, command: Sequence[str], directory: Path) -> None:
        environment = os.environ | ALLOCATOR | {"OMP_NUM_THREADS": str(THREADS)}
        self._process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=directory, env=environment
        )

    def ask(self, task: str, **details: object) -> dict[str, float]:
        """The answer to one request. Raises RuntimeError if the process has died."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("a worker without pipes")
        try:
            stdin.write(json.dumps({"task": task, **details}) + "\n")
            stdin.flush()
            line = stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise RuntimeError(f"the worker for {task} has died with {self._process.wait()}")
        answer: dict[str, float] = json.loads(line)
        return answer

    def end(self) -> None:
        """No more requests."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
