"""Who asked for a flush: the program's line, and what it wanted there."""

from __future__ import annotations

import os
import sys

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_NOTEBOOK = os.path.join(_PACKAGE, "report", "notebook.py")
_FUTURE = os.path.join(_PACKAGE, "trace", "future.py")

_WHY = {
    "parallel_for": "another thread, printf or code that is not rewritten could see its effect",
    "parallel_reduce": "its result is a number",
    "parallel_scan": "its result is a number",
    "record": "the list of recorded calls was full",
    "fence": "pk.fence()",
    "sync": "pyfuser.sync()",
    "__exit__": "a block of fusing() ends",
    "__enter__": "a block of unfused() begins",
    "explain": "pyfuser.explain()",
}

Place = tuple[str, int, str]
"""File, line (0: none) and why."""


class Reason:
    """Why the flush that runs now was asked for; None: by a View, a Future or the program."""

    __slots__ = ("now",)

    def __init__(self) -> None:
        self.now: Place | None = None


REASON = Reason()


def asked_for() -> Place:
    """Who asked for the flush that runs now, and by what."""
    if REASON.now is not None:
        return REASON.now
    why = name = ""
    frame = sys._getframe(1)
    while frame is not None and (file := frame.f_code.co_filename).startswith(_PACKAGE):
        name = frame.f_code.co_name
        if name == "record" or file == _FUTURE:
            why = _WHY["record"] if name == "record" else "a result is read"
        if file == _NOTEBOOK:  # what follows are IPython's own lines, up to the cell's first
            return "", 0, "the end of a cell of %%fuse"
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None or name in ("run", "main", "<module>"):
        return "", 0, "the end of the program"
    why = why or _WHY.get(name, "a View is read or written")
    return frame.f_code.co_filename, frame.f_lineno, why
