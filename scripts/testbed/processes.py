"""Processes of a run: known by their handles, bounded in time, gone when the run is."""

from __future__ import annotations

import ctypes
import math
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from types import FrameType

from scripts.testbed.limits import GRACE_S

PR_SET_PDEATHSIG, PR_SET_TIMERSLACK = 1, 29
SPAWN = multiprocessing.get_context("spawn")


class Children:
    """The processes that a run has started; only these are ever ended."""

    def __init__(self) -> None:
        self._started: list[BaseProcess] = []

    def start(self, work: Callable[..., None], *arguments: object, end_s: float, name: str) -> None:
        """Start `work(*arguments)` in a process that does not outlive `end_s` (Unix time) by more than `GRACE_S`."""
        process = SPAWN.Process(target=_begin, args=(os.getpid(), end_s, work, arguments), name=name, daemon=True)
        process.start()
        self._started.append(process)

    def dead(self) -> str | None:
        """The name of one that has ended with an error."""
        return next((process.name for process in self._started if process.exitcode), None)

    def end(self, patience_s: float = 3.0) -> None:
        """End those that still run: SIGTERM, then SIGKILL."""
        for process in self._started:
            if process.is_alive():
                process.terminate()
        until = time.monotonic() + patience_s
        for process in self._started:
            process.join(max(0.0, until - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()


def _begin(parent: int, end_s: float, work: Callable[..., None], arguments: tuple[object, ...]) -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which ends this process in its order
    signal.signal(signal.SIGTERM, _leave)
    signal.alarm(max(1, math.ceil(end_s - time.time()) + GRACE_S))
    if os.getppid() == parent:
        work(*arguments)


def _leave(_number: int, _frame: FrameType | None) -> None:
    os._exit(0)


def hurry(priority: int) -> bool:
    """Run before all ordinary processes, with exact timers; False where that is not allowed: lags are recorded."""
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1)
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(priority))
    except PermissionError:
        return False
    return True


def be_nice(by: int) -> None:
    """Change the priority among ordinary processes, where that is allowed."""
    try:
        os.nice(by)
    except PermissionError:
        return
