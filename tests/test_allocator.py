"""Freed memory that stays."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

from netanomaly.allocator import keep_freed_memory

FAULTS = """
import resource, sys
from netanomaly.allocator import keep_freed_memory
if "keep" in sys.argv:
    assert keep_freed_memory()
def step():
    blocks = [bytearray(b"x") * 20_000_000 for _ in range(10)]
    del blocks
step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def _faults(*arguments: str) -> int:
    """Page faults of steps that each take and free 200 MB."""
    command = [sys.executable, "-c", FAULTS, *arguments]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="glibc")
def test_steps_that_are_alike_do_not_fault_again() -> None:
    assert 5 * _faults("keep") < _faults()


def test_another_system_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not keep_freed_memory()


def test_another_libc_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert not keep_freed_memory()
