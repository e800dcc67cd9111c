"""Work that a Ctrl-C does not cut in two."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from netanomaly.interrupts import whole


@pytest.fixture(autouse=True)
def same_handler_after() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    assert signal.getsignal(signal.SIGINT) is before


def test_the_block_ends_before_the_interrupt_is_heard() -> None:
    done = False
    with pytest.raises(KeyboardInterrupt), whole():
        signal.raise_signal(signal.SIGINT)
        done = True
    assert done


def test_a_second_interrupt_is_heard_at_once() -> None:
    done = False
    with pytest.raises(KeyboardInterrupt), whole():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        done = True
    assert not done


def test_an_interrupt_is_not_lost_with_an_error() -> None:
    with pytest.raises(KeyboardInterrupt), whole():
        signal.raise_signal(signal.SIGINT)
        raise ValueError


def test_without_an_interrupt_nothing_happens() -> None:
    with whole():
        pass
    with pytest.raises(ValueError, match="x"), whole():
        raise ValueError("x")


def test_where_interrupts_are_ignored_they_stay_so(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with whole():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_may_use_it() -> None:
    done: list[bool] = []

    def work() -> None:
        with whole():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]
