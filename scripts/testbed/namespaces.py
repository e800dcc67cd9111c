"""Network namespaces without a name: held by an open file, they are gone with the last process of a run."""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from netanomaly.errors import ConfigError

CLONE_NEWNET = 0x40000000
HERE = "/proc/thread-self/ns/net"
NEEDED = ("ip", "tc")
HOW = "run it as root (CAP_NET_ADMIN and CAP_SYS_ADMIN), or as `unshare -Urn python scripts/testbed/run.py ...`"


@dataclass(frozen=True)
class Namespace:
    """A network namespace, by a path that all processes of the run can open."""

    path: str

    @contextmanager
    def entered(self) -> Iterator[None]:
        """The calling thread is in it; sockets, devices and open files of /proc made there stay there."""
        back, there = os.open(HERE, os.O_RDONLY), os.open(self.path, os.O_RDONLY)
        try:
            _check(_libc().setns(there, CLONE_NEWNET), "setns")
            try:
                yield
            finally:
                _check(_libc().setns(back, CLONE_NEWNET), "setns")
        finally:
            os.close(back)
            os.close(there)

    def socket(self, kind: int, protocol: int = 0, family: int = socket.AF_INET) -> socket.socket:
        """A socket in it that does not block."""
        with self.entered():
            made = socket.socket(family, kind, protocol)
        made.setblocking(False)
        return made

    def run(self, *command: str, lines: str | None = None) -> None:
        """Run `ip` or `tc` in it.

        Raises:
            ConfigError: with what it said.
        """
        with self.entered():
            done = subprocess.run(command, input=lines, text=True, capture_output=True, check=False)  # noqa: S603
        if done.returncode:
            raise ConfigError(f"{' '.join(command)}: {done.stderr.strip()}")

    def set_kernel(self, **values: object) -> None:
        """Kernel settings below /proc/sys/net of it (`ipv4__ip_forward=1`); those that it lacks are left."""
        with self.entered():
            for name, value in values.items():
                try:
                    with open(f"/proc/sys/net/{name.replace('__', '/')}", "w", encoding="ascii") as file:
                        file.write(str(value))
                except FileNotFoundError:
                    continue


def leave_host() -> None:
    """Move this process into an empty network namespace: nothing that it or its children do reaches the host's.

    Raises:
        ConfigError: not Linux, no privilege, or a program is missing.
    """
    if sys.platform != "linux":
        raise ConfigError("the testbed needs Linux: it is made of network namespaces")
    for name in NEEDED:
        if shutil.which(name) is None:
            raise ConfigError(f"the testbed needs `{name}`: install iproute2")
    if _libc().unshare(CLONE_NEWNET):
        raise ConfigError(f"the testbed may not make network namespaces ({_reason()}): {HOW}")


def create_namespace() -> Namespace:
    """A new one; this process stays where it is and keeps it open."""
    back = os.open(HERE, os.O_RDONLY)
    try:
        _check(_libc().unshare(CLONE_NEWNET), "unshare")
        kept = os.open(HERE, os.O_RDONLY)
        _check(_libc().setns(back, CLONE_NEWNET), "setns")
    finally:
        os.close(back)
    return Namespace(f"/proc/{os.getpid()}/fd/{kept}")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _reason() -> str:
    return os.strerror(ctypes.get_errno())


def _check(result: int, call: str) -> None:
    if result:
        raise ConfigError(f"{call}: {_reason()}: {HOW}")
