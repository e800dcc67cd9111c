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


class PatientSignals:
    """Signals that wait until they are asked for. However many come, they are one: the first."""

    def __init__(self) -> None:
        self._before = {number: signal.getsignal(number) for number in SIGNALS}
        self._waiting: int | None = None

    @property
    def waiting(self) -> int | None:
        """The number of the one that has come."""
        return self._waiting

    def take(self, number: int) -> None:
        """As if this one had come, since it has come to another process."""
        self._waiting = number

    def hear(self) -> None:
        """Do now what would have been done when the signal came: with most handlers, raise."""
        number, self._waiting = self._waiting, None
        if number is None:
            return
        if callable(handler := self._before[signal.Signals(number)]):
            handler(number, None)
        else:  # the system's own way, which ends the process
            self.restore()
            signal.raise_signal(number)

    def catch(self) -> None:
        """From here on signals wait, but for those that are ignored."""
        for number, handler in self._before.items():
            if handler not in (signal.SIG_IGN, None):
                signal.signal(number, self._come)

    def restore(self) -> None:
        """From here on signals do what they did."""
        for number, handler in self._before.items():
            if handler is not None:
                signal.signal(number, handler)

    def _come(self, number: int, frame: FrameType | None) -> None:
        self._waiting = self._waiting or number


@contextmanager
def patient() -> Iterator[PatientSignals]:
    """In the block a Ctrl-C or SIGTERM waits until the block asks for it, or ends without an error.

    In another thread than the main one, which signals do not interrupt, nothing changes.
    """
    signals = PatientSignals()
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return
    signals.catch()
    try:
        yield signals
    finally:
        signals.restore()
    signals.hear()
