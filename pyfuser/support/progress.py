"""What the process says of its work: a note on a terminal, and Python's `logging`.

Loggers: `pyfuser.plan`, `pyfuser.compile` and `pyfuser.flush`, all at DEBUG, as a program's own
messages are often at INFO. This module does not load `logging`: only a program that did can want
messages.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging

PATIENCE = 0.3  # seconds that something may take unsaid
DEBUG = 10  # as in `logging`
_ERASE = "\r\x1b[K"

_loggers: dict[str, logging.Logger] = {}


def listening(name: str) -> logging.Logger | None:
    """The logger `pyfuser.<name>`, if somebody wants its messages."""
    logger = _loggers.get(name)
    if logger is None:
        module = sys.modules.get("logging")
        if module is None:
            return None
        logger = _loggers[name] = module.getLogger(f"pyfuser.{name}")
    return logger if logger.isEnabledFor(DEBUG) else None


@contextlib.contextmanager
def noted(text: str) -> Iterator[None]:
    """Show a text on the terminal, if stderr is one, while a block runs that takes its time.

    Not below a progress bar of rich's, which prints lines and does not let them be erased.
    """
    stream = sys.stderr
    if stream is None or not stream.isatty() or hasattr(stream, "rich_proxied_file"):
        yield
        return
    lock, shown, ended = threading.Lock(), False, False

    def show() -> None:
        nonlocal shown
        with lock:
            if not ended:
                shown = True
                stream.write(f"{text} ...")
                stream.flush()

    timer = threading.Timer(PATIENCE, show)
    timer.daemon = True
    with contextlib.suppress(RuntimeError):  # at the exit of the interpreter no thread starts
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
        with lock:
            ended = True
            if shown:
                stream.write(_ERASE)
                stream.flush()
