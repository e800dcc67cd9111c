"""Work that a Ctrl-C does not cut in two."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from netanomaly.interrupts import SIGNALS, Terminated, terminable, whole


@pytest.fixture(autouse=True)
def sigterm_raises_as_in_watch() -> Iterator[None]:
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    inside = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    assert {number: signal.getsignal(number) for number in SIGNALS} == inside
    signal.signal(signal.SIGTERM, handlers[signal.SIGTERM])


@pytest.mark.parametrize("number", SIGNALS)
def test_the_block_ends_before_the_signal_is_heard(number: signal.Signals) -> None:
    done = False
    with pytest.raises(KeyboardInterrupt), whole():
        signal.raise_signal(number)
        done = True
    assert done


@pytest.mark.parametrize("second", SIGNALS)
def test_a_second_signal_is_heard_at_once(second: signal.Signals) -> None:
    done = False
    with pytest.raises(KeyboardInterrupt), whole():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(second)
        done = True
    assert not done


def test_a_signal_is_not_lost_with_an_error() -> None:
    with pytest.raises(KeyboardInterrupt), whole():
        signal.raise_signal(signal.SIGINT)
        raise ValueError


def test_without_a_signal_nothing_happens() -> None:
    with whole():
        pass
    with pytest.raises(ValueError, match="x"), whole():
        raise ValueError("x")


def test_another_handler_hears_it_after_the_block() -> None:
    heard: list[str] = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append("signal"))
    try:
        with whole():
            signal.raise_signal(signal.SIGINT)
            heard.append("block")
        assert heard == ["block", "signal"]
    finally:
        signal.signal(signal.SIGINT, before)


def test_blocks_in_blocks_end_all() -> None:
    done: list[int] = []
    with pytest.raises(KeyboardInterrupt), whole():
        with whole():
            signal.raise_signal(signal.SIGINT)
            done.append(1)
        done.append(2)
    assert done == [1, 2]


def test_where_signals_are_ignored_they_stay_so() -> None:
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


def test_sigterm_is_heard_as_terminated_and_then_as_before() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with pytest.raises(Terminated), terminable():
            signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)


def test_sigterm_waits_for_what_is_done_whole() -> None:
    done = False
    with pytest.raises(Terminated), terminable(), whole():
        signal.raise_signal(signal.SIGTERM)
        done = True
    assert done


def test_ctrl_c_is_not_taken_for_sigterm() -> None:
    with pytest.raises(KeyboardInterrupt) as caught, terminable():
        signal.raise_signal(signal.SIGINT)
    assert not isinstance(caught.value, Terminated)


def test_sigterm_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with terminable():
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_another_thread_may_be_terminable() -> None:
    done: list[bool] = []

    def work() -> None:
        with terminable():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]
