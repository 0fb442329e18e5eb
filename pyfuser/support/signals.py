"""Handlers of signals wait while what would take them longer than until the next signal is done."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what `signal` wraps, at many times the cost
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_CTRL_C = int(_signal.SIGINT)


class _Later:
    """Stands in for the program's handlers of signals, and runs them when asked to."""

    def __init__(self) -> None:
        self.handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
        self.came: dict[int, FrameType | None] = {}

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.came[number] = frame

    def begin(self) -> None:
        """Take the place of all handlers but Ctrl-C's, unless another block has."""
        for number in range(1, _signal.NSIG):
            handler = _signal.getsignal(number)
            if number != _CTRL_C and callable(handler) and type(handler) is not _Later:
                self.handlers[number] = handler
                _signal.signal(number, self)

    def end(self) -> None:
        """Run the handlers of what came, one after the other, and give them their place back."""
        try:
            while self.came:
                number, frame = self.came.popitem()
                self.handlers[number](number, frame)
        finally:
            for number, handler in self.handlers.items():
                if _signal.getsignal(number) is self:  # else a handler has set another one
                    _signal.signal(number, handler)
            for number in self.came:  # one came at last, or a handler has raised
                _signal.raise_signal(number)


@contextmanager
def handled_later() -> Iterator[None]:
    """The program's handlers of signals run at the end of the block; Ctrl-C interrupts it.

    A handler that a timer calls each millisecond, and that waits for kernels which take longer to
    prepare, would otherwise be interrupted by itself without end. (A mask of signals would not do:
    the system delivers to any thread of the process, and Python then calls the handler.)
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # handlers run in the main thread only
        return
    later = _Later()
    try:
        later.begin()
        yield
    finally:
        later.end()
