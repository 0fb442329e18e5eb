"""Handlers of signals that wait until a block ends: after it, one after the other, none lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pyfuser.support.signals import handled_later

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs POSIX signals")


@pytest.fixture
def handled() -> Iterator[list[int]]:
    """The signals that were handled, of the two that programs have for themselves."""
    before = {number: signal.getsignal(number) for number in (signal.SIGUSR1, signal.SIGUSR2)}
    seen: list[int] = []
    for number in before:
        signal.signal(number, lambda number, frame: seen.append(number))
    yield seen
    for number, handler in before.items():
        signal.signal(number, handler)


def test_handlers_wait(handled: list[int]) -> None:
    own = signal.getsignal(signal.SIGUSR1)
    with handled_later():
        for _ in range(3):
            signal.raise_signal(signal.SIGUSR1)
        with handled_later():
            signal.raise_signal(signal.SIGUSR2)
        assert not handled
    assert sorted(handled) == [signal.SIGUSR1, signal.SIGUSR2]
    assert signal.getsignal(signal.SIGUSR1) is own
    signal.raise_signal(signal.SIGUSR1)
    assert len(handled) == 3


def test_ctrl_c_does_not_wait(handled: list[int]) -> None:
    with pytest.raises(KeyboardInterrupt), handled_later():
        signal.raise_signal(signal.SIGUSR1)
        signal.raise_signal(signal.SIGINT)
        pytest.fail("it went on")
    assert handled == [signal.SIGUSR1]


def test_a_handler_is_not_nested_in_itself() -> None:
    depth, most = [0], [0]

    def handler(*_: Any) -> None:
        depth[0] += 1
        most[0] += 1
        assert depth[0] == 1
        with handled_later():
            if most[0] < 50:
                signal.raise_signal(signal.SIGUSR1)
        depth[0] -= 1

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with handled_later():
            signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert most == [50]


def test_a_handler_that_raises_leaves_the_others(handled: list[int]) -> None:
    def fails(*_: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGUSR2, fails)
    with pytest.raises(TimeoutError), handled_later():
        signal.raise_signal(signal.SIGUSR1)
        signal.raise_signal(signal.SIGUSR2)
    assert handled == [signal.SIGUSR1]
    assert signal.getsignal(signal.SIGUSR2) is fails


def test_a_handler_may_set_another_one(handled: list[int]) -> None:
    def last(*_: Any) -> None:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)

    signal.signal(signal.SIGUSR1, last)
    with handled_later():
        signal.raise_signal(signal.SIGUSR1)
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN


def test_other_threads_have_no_handlers(handled: list[int]) -> None:
    own = signal.getsignal(signal.SIGUSR1)

    def run() -> None:
        with handled_later():
            assert signal.getsignal(signal.SIGUSR1) is own

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
