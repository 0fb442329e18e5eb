"""Work that the main thread waits for, and that no signal handler can leave half done.

A handler runs on top of what it interrupts. If that holds the lock under which a kernel is
compiled, and the handler launches the same kernel, neither can go on. So another thread compiles,
and whoever needs the kernel waits for it: what was interrupted, and the handler. Signals that come
while a handler waits (but SIGINT and SIGTERM) are handled after: a timer that fires more often than
a kernel compiles would pile up handlers without end.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Build = Callable[[threading.Event | None], Path]
"""build(cancelled): it gives up soon after `cancelled` is set."""

_AT_ONCE = {signal.SIGINT, signal.SIGTERM}


class _Flight:
    """One piece of work, done by a thread of its own."""

    def __init__(self, build: Build) -> None:
        self.cancelled = threading.Event()
        self.done = threading.Event()  # a join that was interrupted takes the thread for ended
        self.path: Path | None = None
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._fly, args=(build,), name="pyfuser-compile")

    def _fly(self, build: Build) -> None:
        try:
            self.path = build(self.cancelled)
        except BaseException as error:  # it is raised where somebody waits
            self.error = error
        finally:
            self.done.set()


class Flights:
    """What is under way, by key; for the main thread alone."""

    def __init__(self) -> None:
        self._known: dict[str, _Flight] = {}
        self._waiting = 0  # how many waits are on the stack

    def get(self, key: str, build: Build) -> Path:
        """What `build` returns, or raises; it is not begun again while it is under way.

        If the caller is interrupted that began it, it is cancelled.
        """
        if threading.current_thread() is not threading.main_thread():
            return build(None)
        flight = self._known.get(key)
        if flight is not None:
            self._wait(flight)
            return _result(flight)
        flight = self._known[key] = _Flight(build)
        try:
            try:
                flight.thread.start()
            except RuntimeError:  # at the exit of the interpreter there are no more threads
                return build(None)
            self._wait(flight)
        except BaseException:
            flight.cancelled.set()
            if flight.thread.ident is not None:  # it was started
                flight.done.wait()
            raise
        finally:
            self._known.pop(key, None)
        return _result(flight)

    def _wait(self, flight: _Flight) -> None:
        self._waiting += 1
        try:
            with _held() if self._waiting > 1 else _nothing():
                flight.done.wait()
        finally:
            self._waiting -= 1


def _result(flight: _Flight) -> Path:
    if flight.error is not None:
        raise flight.error
    assert flight.path is not None
    return flight.path


@contextmanager
def _held() -> Iterator[None]:
    """Signals wait until the end of the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - _AT_ONCE)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _nothing() -> Iterator[None]:
    yield
