"""PYFUSER_CHECK=sync: who reads a NumPy array, or writes it, while launches on it are pending?

While a recorded call waits, the pages of the arrays that it writes are protected from any access,
and those of arrays that it only reads from stores. The first access of each is reported with the
program's line, and let through. Every array that NumPy makes from here on has pages of its own, so
that small ones are seen as well, and nothing else is in the way.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from pyfuser.checks.pages_source import SOURCE
from pyfuser.engine.cache import key_of
from pyfuser.engine.compiler import build_identity, compile_library, find_compiler
from pyfuser.engine.native import kernel_cache
from pyfuser.ir.nodes import SourceLocation
from pyfuser.support.errors import PyFuserWarning, SettingError
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.call import Call
from pyfuser.trace.memory import Region
from pyfuser.trace.raw import raw_arguments
from pyfuser.trace.reason import Reason
from pyfuser.trace.tracer import Tracer

_SET_HANDLER = 304  # PyDataMem_SetHandler in NumPy's table of functions, since 1.22
_ADDRESS = ctypes.c_size_t
_TELL = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int)
_NOT_USERS = tuple(
    os.path.join(os.path.dirname(os.path.abspath(file)), "")
    for file in (os.path.dirname(__file__), np.__file__)
)


def install(tracer: Tracer) -> None:
    """Watch what the tracer records from here on, and give NumPy's arrays their own pages.

    Raises SettingError where there is no such protection, CompilerError or CacheError.
    """
    if sys.platform != "linux":
        raise SettingError("PYFUSER_CHECK=sync works on Linux only")
    Watch(tracer, _library())


def _library() -> Any:
    compiler = find_compiler(SETTINGS.compiler)

    def build(text: Path, target: Path) -> None:
        compile_library(compiler, text, target)

    key = key_of(SOURCE, build_identity(compiler, SETTINGS.fastmath))
    library = ctypes.CDLL(str(kernel_cache().obtain(key, SOURCE, build)))
    library.pf_catch.argtypes = [_TELL]
    library.pf_handler.restype = ctypes.c_void_p
    library.pf_late.restype = ctypes.c_int64
    library.pf_late.argtypes = [ctypes.POINTER(ctypes.c_int)]
    library.pf_protect.argtypes = [_ADDRESS, _ADDRESS, ctypes.c_int, ctypes.c_int, ctypes.c_int64]
    return library


class Watch:
    """Protects what pending calls touch.

    error: of a report that `-W error` made one; it is raised by the next launch or flush.
    """

    def __init__(self, tracer: Tracer, library: Any) -> None:
        self.library = library
        self.waiting: list[tuple[Call, str, bool]] = []  # by id of a guard: does it write?
        self.error: Exception | None = None
        self._tell = _TELL(self.tell)
        self._record, self._discard = tracer.record, tracer.discard
        self._flush, self._tracer = tracer._flush, tracer
        tracer.record = self.record  # type: ignore[method-assign]
        tracer.discard = self.discard  # type: ignore[method-assign]
        tracer._flush = self.flush  # type: ignore[method-assign]
        _give_numpy(library.pf_handler())

    def record(self, call: Call) -> None:
        """What `Tracer.record` does, and protect the call's arrays."""
        self.raise_error()
        self._record(call)
        self.protect((call,))

    def flush(self, why: Reason) -> None:
        """What `Tracer.flush` and `compute` do; calls that are left keep their protection."""
        with self._tracer.lock:
            self.open()
            try:
                self._flush(why)
            finally:
                self.protect(self._tracer.calls)
        self.raise_error()

    def discard(self) -> list[Call]:
        """What `Tracer.discard` does."""
        self.open()
        return self._discard()

    def protect(self, calls: Sequence[Call]) -> None:
        """Protect the arrays of calls."""
        self.library.pf_catch(self._tell)  # faulthandler may have taken the signal meanwhile
        for call in calls:
            for name, region, writes in raw_arguments(call):
                kind = _kind(region)
                if kind is not None:
                    low, high = (region.buffer.address + at for at in region.bounds())
                    self.library.pf_protect(low, high, writes, kind, len(self.waiting))
                    self.waiting.append((call, name, writes))

    def open(self) -> None:
        """Let everybody have the memory."""
        self.library.pf_open()
        stored = ctypes.c_int()
        while (ident := self.library.pf_late(ctypes.byref(stored))) >= 0:
            self.warn(ident, stored.value, None)
        self.waiting.clear()

    def tell(self, ident: int, stored: int) -> None:
        """Report an access; called in the middle of it, in the thread of Python that makes it."""
        self.warn(ident, stored, sys._getframe(0).f_back)

    def warn(self, ident: int, stored: int, frame: FrameType | None) -> None:
        """Report an access by a frame, or by a thread that Python does not know."""
        call, name, writes = self.waiting[ident]
        done, does = "written" if stored else "read", "writes" if writes else "reads"
        where = _users_place(frame)
        message = (
            f"a NumPy array is {done} here before the launch of {call.name!r} at {call.location}, "
            f"which {does} it as {name!r}, has run: call pyfuser.sync() in between"
        )
        try:
            warnings.warn_explicit(message, PyFuserWarning, where.file, where.line)
        except PyFuserWarning as error:
            self.error = error

    def raise_error(self) -> None:
        """Raise the error that could not be raised where it was found."""
        error, self.error = self.error, None
        if error is not None:
            raise error


def _users_place(frame: FrameType | None) -> SourceLocation:
    """The program's line that a frame of a library, or of ours, was called by."""
    while frame is not None and frame.f_code.co_filename.startswith(_NOT_USERS):
        frame = frame.f_back
    if frame is None:
        return SourceLocation("<a thread of a library>", 0)
    return SourceLocation(frame.f_code.co_filename, frame.f_lineno)


def _kind(region: Region) -> bool | None:
    """Whether its pages are the array's own; None: leave them, they have other permissions."""
    owner: Any = region.buffer.root
    if not owner.flags.writeable:
        return None
    below = owner
    while below is not None:
        owner = below
        below = next((getattr(owner, n) for n in _OWNERS if hasattr(owner, n)), None)
    if isinstance(owner, mmap.mmap):
        return None
    return isinstance(owner, np.ndarray) and _multiarray().get_handler_name(owner) == _HANDLER


_OWNERS = ("base", "owner", "obj")  # of an array, of our own memory, of a memoryview
_HANDLER = "pyfuser_pages"


def _multiarray() -> Any:
    """NumPy's compiled module, which has been renamed."""
    names = ("numpy._core._multiarray_umath", "numpy.core._multiarray_umath")
    return next(sys.modules[name] for name in names if name in sys.modules)


def _give_numpy(handler: int) -> None:
    """Let NumPy's arrays of this thread have a PyDataMem_Handler."""
    api = ctypes.pythonapi
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    api.PyCapsule_New.restype = ctypes.py_object
    api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    table = api.PyCapsule_GetPointer(_multiarray()._ARRAY_API, None)
    entry = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[_SET_HANDLER]
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(entry)
    set_handler(api.PyCapsule_New(handler, b"mem_handler", None))
