"""Every exception: each message says what is wrong, where in the user's file, and what to do."""

from __future__ import annotations

from pyfuser.ir.nodes import SourceLocation


class PyFuserError(Exception):
    """The base of all errors of PyFuser."""


class WorkunitError(PyFuserError):
    """A workunit uses something the language does not have.

    The message shows the user's line with a caret under the place.
    """

    def __init__(self, message: str, location: SourceLocation, source_line: str = "") -> None:
        self.location = location
        text = f"{location.file}:{location.line}: {message}"
        if source_line:
            text += f"\n    {source_line.rstrip()}\n    {' ' * location.column}^"
        super().__init__(text)


class ArgumentError(PyFuserError, TypeError):
    """A call's arguments do not fit its workunit."""


class CompilerError(PyFuserError):
    """The C++ compiler is missing, failed or took too long."""


class CacheError(PyFuserError):
    """The kernel cache cannot be trusted or used."""


class VerificationError(PyFuserError):
    """A fused run differed from the unfused one (PYFUSER_VERIFY=1)."""


class SettingError(PyFuserError):
    """A PYFUSER_* environment variable has a value that makes no sense."""
