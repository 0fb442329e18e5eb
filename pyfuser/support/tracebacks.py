"""An error of the user's shows the user's lines, not the way through our own."""

from __future__ import annotations

import linecache
import os
import re
import sys
from collections.abc import Callable
from types import FrameType, FunctionType, TracebackType
from typing import Any

import numpy as np

from pyfuser.support.errors import PyFuserError, PyFuserWarning

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
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
_FUNCTIONS = frozenset(
    os.path.join(_PACKAGE, "frontends", "embedded", name)
    for name in ("array_functions.py", "elementwise.py", "pykokkos.py", "ufuncs.py")
)
_DEBUG = os.path.join(_PACKAGE, "frontends", "embedded", "debug.py")
_ARRAYS = os.path.join(_PACKAGE, "frontends", "numpy", "")  # which raise what NumPy does
_NUMPY = os.path.join(os.path.dirname(np.__file__), "")
_OF_FUNCTIONS = (AttributeError, NotImplementedError, RuntimeError, ValueError)
_OF_ARRAYS = re.compile(
    r"(operand|operator|supported|bad).*'(View|Subview)'|^'(View|Subview)' object has no attribute "
)
_NO_ARRAY = "return arrays must be of ArrayType"  # what NumPy says of a wrong `out=`
_BLOCK = "with pyfuser.fusing():"
_FUTURE = re.compile(r"\bFuture\b")
_MISSING = re.compile(r"(\w+)\(\) missing \d+ required positional argument")
_NO_BLOCK = re.compile(r"context manager protocol|__enter__")
_WITH = re.compile(r"^\s*with\b.*?\b((?:pyfuser\.)?(?:fusing|unfused))\b(?!\s*\()")
_SWITCH = re.compile(
    r"^\s*with\b.*?\b((?:pyfuser\.)?(?:enable|disable|sync|explain|fuse|capture))\b"
)
_GIVEN = re.compile(r"^(?:fusing|unfused)\(\) takes 0 positional arguments")
_CALLED = re.compile(r"^'(?:pyfuser\._hot\.)?Block' object is not callable")
_OURS = (_PACKAGE, "<launch of ")  # the latter: see `engine.marshal`
_OF_PYTHON = ("<frozen importlib", "<frozen runpy")


def users_line() -> tuple[str, int]:
    """The file and line of the program that runs code of this package, or imports it."""
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith((*_OURS, *_OF_PYTHON)):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


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
    """Whether an error is of what the program does with a View or Future, or calls for one,
    as if it were built in.

    What Python and NumPy raise for that says what is wrong with the line that does it.
    """
    file = ""
    while traceback is not None:
        name = traceback.tb_frame.f_code.co_filename
        if not name.startswith(_NUMPY):
            file = name
        traceback = traceback.tb_next
    if file in _FUNCTIONS:
        return isinstance(error, _OF_FUNCTIONS)
    return (file in _VALUES or file.startswith(_ARRAYS)) and isinstance(error, _OF_VALUES)


def advice(error: BaseException, traceback: TracebackType | None) -> str:
    """What to do where Python's own error does not say it; empty for other errors.

    A Future is no number, a View no array, a workunit is not called, `fusing` is.
    """
    if not isinstance(error, (TypeError, AttributeError)) or isinstance(error, PyFuserError):
        return ""
    if _OF_ARRAYS.search(str(error)):
        return (
            "A View computes in workunits, or by functions of whole Views such as pk.add(v, w) and "
            "pk.sum(v); v.data is the NumPy array of its memory."
        )
    shown = users_part(traceback)
    while shown is not None and shown.tb_next is not None:
        shown = shown.tb_next
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if shown is None or traceback is None:
        return ""
    frame, missing = shown.tb_frame, _MISSING.match(str(error))
    if missing is not None and _is_workunit(missing[1], frame):
        return (
            f"{missing[1]} is a workunit: a launch takes it without a call, and calls it for each "
            f"index, as in pk.parallel_for(n, {missing[1]}, x=x)."
        )
    line = linecache.getline(frame.f_code.co_filename, shown.tb_lineno)
    given = _GIVEN.match(str(error))
    if given is not None or _CALLED.match(str(error)):
        block = "pyfuser.unfused()" if "unfused" in line else "pyfuser.fusing()"
        return (
            f"{block} is a block, takes nothing and decorates nothing: with {block}: "
            "The decorator of workunits is @pyfuser.fuse."
        )
    if _NO_BLOCK.search(str(error)):
        uncalled, switch = _WITH.search(line), _SWITCH.search(line)
        if uncalled is not None:
            return f"{uncalled[1]} has to be called: with {uncalled[1]}():"
        if switch is not None:
            return f"{switch[1]} is no block; the one that records calls is `{_BLOCK}`"
    return _of_values(error, frame, traceback.tb_frame)


def _of_values(error: BaseException, frame: FrameType, last: FrameType) -> str:
    """What to do where a View or a Future was given to a library that cannot use it."""
    known = [*frame.f_locals.values(), *frame.f_globals.values()]
    if _NO_ARRAY in str(error) and any(type(v).__name__ in ("View", "Subview") for v in known):
        return "A View is no NumPy array: where a result of NumPy goes to one, give out=view.data."
    around = () if last.f_locals is last.f_globals else last.f_locals.values()
    named = _FUTURE.search(str(error)) is not None
    if not isinstance(error, TypeError) or not (named or any(map(_is_future, around))):
        return ""
    return (
        "A result of parallel_reduce or parallel_scan is a Future in recorded code: where a "
        "library wants a Python number, give it float(total) or int(total)."
    )


def _is_workunit(name: str, frame: FrameType) -> bool:
    found = frame.f_locals.get(name, frame.f_globals.get(name))
    return type(found) is FunctionType and "__pyfuser__" in vars(found)


def _is_future(value: object) -> bool:
    kind = type(value)
    return (kind.__module__, kind.__name__) == ("pyfuser.trace.future", "Future")


def is_users(error: BaseException, traceback: TracebackType | None) -> bool:
    """Whether an error is about the program's lines, not about ours."""
    ours = (PyFuserError, PyFuserWarning, MemoryError)
    if isinstance(error, ours) or in_a_value(error, traceback):
        return True
    while traceback is not None:
        called, traceback = traceback, traceback.tb_next
        if called.tb_frame.f_code.co_filename == _DEBUG and traceback is not None:
            return not is_ours(traceback)  # Python runs a workunit
    return False


def hidden(caught: Any) -> bool:
    """As the global `__tracebackhide__` of a module: whether pytest hides the module's frames.

    It asks the outer frames first: theirs are modules that every program loads.
    """
    hide_in_pytest()
    return is_users(caught.value, caught.tb)


def hide_in_pytest() -> None:
    """Let pytest hide the frames of our modules, of those that are loaded."""
    for name, module in [*sys.modules.items()]:
        if name.split(".")[0] == "pyfuser" and module is not None:
            vars(module)["__tracebackhide__"] = hidden


def hide_in(shell: Any) -> None:
    """Let an IPython shell show errors without our frames."""
    printer = getattr(shell, "InteractiveTB", None)
    format_whole = getattr(printer, "structured_traceback", None)
    if format_whole is None or getattr(format_whole, "hides_pyfuser", False):
        return

    def structured_traceback(
        kind: Any = None, error: Any = None, traceback: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        if not isinstance(error, BaseException):
            return format_whole(kind, error, traceback, *args, **kwargs)
        shown = users_part(traceback) if is_users(error, traceback) else traceback
        lines = format_whole(kind, error, shown, *args, **kwargs)
        advised = advice(error, traceback)
        return [*lines, advised] if advised else lines

    structured_traceback.hides_pyfuser = True  # type: ignore[attr-defined]
    printer.structured_traceback = structured_traceback  # type: ignore[union-attr]


def install() -> None:
    """Print uncaught errors of ours, and Ctrl-C, so: in scripts, pytest and IPython."""
    if sys.excepthook is not _hook:
        global _before
        _before, sys.excepthook = sys.excepthook, _hook
    hide_in_pytest()
    if "IPython" in sys.modules:
        from IPython import get_ipython

        hide_in(get_ipython())


_before: Callable[..., Any] = sys.__excepthook__  # the hook that `install` replaced


def first(error: BaseException) -> BaseException:
    """The error that was raised first, where a block that it ended ran into it again."""
    found, before = error, error.__context__
    while before is not None:
        same = (type(before), str(before)) == (type(error), str(error))
        if same and is_users(before, before.__traceback__):
            found = before
        before = before.__context__
    return found


def _hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    repeated = first(error)
    if repeated is not error:
        error, traceback = repeated, repeated.__traceback__
    advised = advice(error, traceback)
    if isinstance(error, KeyboardInterrupt) or is_users(error, traceback):
        traceback = users_part(traceback)
        error.__traceback__ = traceback
    _before(kind, error, traceback)
    if advised:
        print(advised, file=sys.stderr)
