"""Every exception: each message says what is wrong, where in the user's file, and what to do."""

from __future__ import annotations

import linecache
import os
import warnings
from collections.abc import Iterable
from typing import Any

from pyfuser.ir.nodes import SourceLocation


class PyFuserError(Exception):
    """The base of all errors of PyFuser."""


class WorkunitError(PyFuserError):
    """A workunit uses something the language does not have.

    The message shows the user's line with a caret under the place.
    """

    def __init__(self, message: str, location: SourceLocation, source_line: str = "") -> None:
        self.location = location
        text = f"{location}: {message}"
        if source_line:
            text += f"\n    {source_line.rstrip()}\n    {' ' * location.column}^"
        super().__init__(text)


class UsageError(PyFuserError):
    """A command was given options or files that it cannot use."""


class ArgumentError(PyFuserError, TypeError):
    """A call's arguments do not fit its workunit."""


class ArgumentValueError(ArgumentError, ValueError):
    """Arguments of the right kind that make no sense, where PyKokkos raises ValueError."""


class DeviceError(PyFuserError, ValueError):
    """A GPU is asked for and cannot be used, or not for this call."""


class CompilerError(PyFuserError):
    """The C++ compiler is missing, failed or took too long."""


class KernelError(CompilerError):
    """The C++ compiler rejects the code of a kernel: its call can never run, others can."""


class DeclinedError(DeviceError, KernelError):
    """No GPU can run the code of a kernel: its call can never run there, others can."""


class CacheError(PyFuserError):
    """The kernel cache cannot be trusted or used."""


class VerificationError(PyFuserError):
    """A fused run differed from the unfused one (PYFUSER_VERIFY=1)."""


class CheckError(PyFuserError):
    """A mistake in a workunit that was found while it ran, most of them by PYFUSER_CHECK."""


class BoundsError(CheckError, IndexError):
    """An index outside a view or local array (PYFUSER_CHECK=bounds).

    The access that the message shows was not made: no memory outside the view was touched.
    """

    def __init__(
        self,
        message: str,
        view: str,
        axis: int,
        index: int,
        extent: int,
        iteration: tuple[int, ...],
        location: SourceLocation | None,
    ) -> None:
        self.view, self.axis, self.index, self.extent = view, axis, index, extent
        self.iteration, self.location = iteration, location
        super().__init__(message)


class DivisionError(CheckError, ZeroDivisionError):
    """A workunit divided an integer by 0.

    Its other iterations ran, and with PYFUSER_CHECK=bounds none after the mistake.

    ran: whether it was raised after the kernel, and not for an argument that one should have made.
    """

    ran = False


class StepError(CheckError, ValueError):
    """The step of a loop is 0: it would never end, and the call was not launched."""


class RaceError(CheckError):
    """Iterations of one kernel touch one cell, one writing, not atomically (PYFUSER_CHECK=races).

    locations: of the two accesses. iterations: which two, where the check ran the kernel.
    """

    def __init__(
        self,
        message: str,
        locations: tuple[SourceLocation | None, SourceLocation | None],
        iterations: tuple[tuple[int, ...], tuple[int, ...]] | None = None,
    ) -> None:
        self.locations, self.iterations = locations, iterations
        super().__init__(message)


class SettingError(PyFuserError):
    """A PYFUSER_* environment variable has a value that makes no sense."""


class PyFuserWarning(UserWarning):
    """The base of all warnings of PyFuser: what is probably a mistake, but may be meant."""


class WorkunitWarning(PyFuserWarning):
    """A workunit does what is rarely meant; shown once for each workunit and line."""


class CaptureWarning(PyFuserWarning):
    """A function given to `pyfuser.capture` that has to run in Python each time."""


class SettingWarning(PyFuserWarning):
    """A PYFUSER_* environment variable that nothing reads."""


# This package, and the text that functions of whole Views are made of.
_OURS = (
    os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), ""),
    "<pykokkos.",
)

_WARNED: dict[Any, Any] = {}  # the registry in which Python notes what was shown


def warn(message: str, file: str, line: int, category: type[PyFuserWarning]) -> None:
    """Warn about a line of the user's; Python's filters decide what becomes of it.

    Nothing is said of a line of our own, which nobody else can mend. Raises the warning where a
    filter makes it an error.
    """
    if file.startswith(_OURS):
        return
    module = os.path.splitext(os.path.basename(file))[0]
    warnings.warn_explicit(message, category, file, line, module, _WARNED)


FAILURES = (PyFuserError, MemoryError, OverflowError)
"""What may be raised where a call cannot run."""


def quoted(location: SourceLocation | None, indent: str = "    ") -> str:
    """A line of source with a caret under the place, to end a message; empty without source."""
    line = linecache.getline(location.file, location.line).rstrip() if location else ""
    if location is None or not line:
        return ""
    return f"\n{indent}{line}\n{indent}{' ' * location.column}^"


def whole(value: object) -> str:
    """The end of a message about a number that should be an integer, but is a float."""
    is_float = hasattr(value, "is_integer") and not isinstance(value, int)
    return "; make it an integer, as n // 2 is and n / 2 is not" if is_float else ""


def close(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: which known one may be meant."""
    import difflib  # only a mistake needs it

    found = difflib.get_close_matches(name, list(known), 1)
    return f": did you mean {found[0]!r}?" if found else ""
