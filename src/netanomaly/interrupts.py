"""Work that a signal does not cut in two."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Terminated(KeyboardInterrupt):
    """SIGTERM was heard: a service manager, a scheduler or `kill` asks the program to end."""


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM raises `Terminated` in the block, as a Ctrl-C raises KeyboardInterrupt; afterwards it does what it did.

    In another thread than the main one, which signals do not interrupt, and where SIGTERM is ignored, nothing changes.
    """
    in_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM)
    if not in_main or before in (signal.SIG_IGN, None):
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


@contextmanager
def whole() -> Iterator[None]:
    """What the block does is done to its end; a Ctrl-C or SIGTERM is heard after it, a second one at once.

    Heard means: by whoever would have heard it without the block. In another thread than the main one, which signals do
    not interrupt, and for signals that are ignored, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    before = {number: handler for number, handler in before.items() if handler not in (signal.SIG_IGN, None)}
    heard: list[int] = []

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def hear(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        if len(heard) > 1:
            restore()
            signal.raise_signal(number)

    for number in before:
        signal.signal(number, hear)
    try:
        yield
    finally:
        restore()
        if len(heard) == 1:
            signal.raise_signal(heard[0])
