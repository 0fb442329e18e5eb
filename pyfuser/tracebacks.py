"""An error of the user's shows the user's lines, not the way through our own."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

from pyfuser.errors import PyFuserError
from pyfuser.settings import SETTINGS

_PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
_VALUES = frozenset(
    os.path.join(_PACKAGE, *place.split("/"))
    for place in (
        "trace/future.py",
        "trace/memory.py",
        "frontends/embedded/views.py",
        "frontends/embedded/view_memory.py",
        "frontends/embedded/indexing.py",
    )
)
_OF_VALUES = (
    IndexError, TypeError, ValueError, OverflowError, ZeroDivisionError, MemoryError
)  # fmt: skip
_OF_ARRAYS = re.compile(
    r"(operand|operator|supported|bad).*'(View|Subview)'|^'(View|Subview)' object has no attribute "
)
_FUTURE = re.compile(r"\bFuture\b")
_OURS = (_PACKAGE, "<launch of ")  # the latter: see `engine.marshal`


def users_part(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of this package; the whole of it if no other is left."""
    frames = []
    step = traceback
    while step is not None:
        if not is_ours(step):
            frames.append(step)
        step = step.tb_next
    shown: TracebackType | None = None
    for step in reversed(frames):
        shown = TracebackType(shown, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return shown or traceback


def is_ours(step: TracebackType) -> bool:
    """Whether a step of a traceback is in a line of this package."""
    return step.tb_frame.f_code.co_filename.startswith(_OURS)


def in_a_value(error: BaseException, traceback: TracebackType | None) -> bool:
    """Whether an error is of what the program does with a View or Future, as if it were built in.

    What Python and NumPy raise for that says what is wrong with the line that does it.
    """
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None or not isinstance(error, _OF_VALUES):
        return False
    return traceback.tb_frame.f_code.co_filename in _VALUES


def advice(error: BaseException, traceback: TracebackType | None) -> str:
    """What to do where a Future is no number, or a View no array; empty for other errors."""
    if isinstance(error, (TypeError, AttributeError)) and _OF_ARRAYS.search(str(error)):
        return (
            "A View computes in workunits, or by functions of whole Views such as pk.add(v, w) and "
            "pk.sum(v); v.data is the NumPy array of its memory."
        )
    if not isinstance(error, TypeError):
        return ""
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    given = traceback.tb_frame.f_locals.values() if traceback is not None else ()
    if not _FUTURE.search(str(error)) and not any(map(_is_future, given)):
        return ""
    return (
        "A result of parallel_reduce or parallel_scan is a Future in recorded code: where a "
        "library wants a Python number, give it float(total) or int(total)."
    )


def _is_future(value: object) -> bool:
    kind = type(value)
    return (kind.__module__, kind.__name__) == ("pyfuser.trace.future", "Future")


def install() -> None:
    """Print uncaught errors of ours, and Ctrl-C, so; with PYFUSER_DEBUG they are printed whole."""
    if SETTINGS.debug:
        return
    before: Callable[..., Any] = sys.excepthook

    def hook(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, (PyFuserError, KeyboardInterrupt)) or in_a_value(error, traceback):
            traceback = users_part(traceback)
            error.__traceback__ = traceback
        advised = advice(error, traceback)
        before(kind, error, traceback)
        if advised:
            print(advised, file=sys.stderr)

    sys.excepthook = hook
