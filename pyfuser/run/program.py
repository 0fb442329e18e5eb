"""Runs a script as Python would run it, and traced."""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import os
import runpy
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from types import CodeType, ModuleType, TracebackType
from typing import NoReturn

from pyfuser.frontends import modes
from pyfuser.frontends.embedded.register import installed
from pyfuser.run import guards, hook
from pyfuser.run.rewrite import rewritten
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.support import tracebacks
from pyfuser.support.errors import FAILURES, CompilerError, KernelError, PyFuserError
from pyfuser.support.settings import SETTINGS
from pyfuser.trace import reason

_SPAWNED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "spawned")
_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")


def watch(folder: str) -> None:
    """Trace every call from here on; modules below the folder are rewritten when imported."""
    guards.install()
    hook.install(folder)
    modes.SWITCHES.careful = True
    modes.SWITCHES.everywhere = True


def watch_from_environment() -> None:
    """With PYFUSER=on, trace every call of the program that imports PyFuser.

    The script itself was compiled before, so its launches on NumPy arrays run at once; so do not
    those of modules below its folder that it imports later.
    """
    if SETTINGS.on:
        watch(os.path.dirname(os.path.abspath(sys.argv[0] or ".")))


class ScriptError(PyFuserError):
    """A script cannot be run as asked."""


def run(script: str, arguments: list[str], fuse: bool) -> None:
    """Run a script as `python script arguments` does; what is pending runs at its end.

    Raises ScriptError if it cannot be read, and what the script raises, SystemExit too; its
    traceback is printed by then.
    """
    path = os.path.abspath(script)
    source = _read(script, path)
    folder = os.path.dirname(os.path.realpath(script))
    _begin(folder, [script, *arguments], fuse)
    module = ModuleType("__main__")
    vars(module).update(__file__=path, __cached__=None, __builtins__=__builtins__)
    module.__loader__ = SourceFileLoader("__main__", path)
    _execute(module, lambda: _compiled(source, path, fuse))


def run_module(name: str, arguments: list[str], fuse: bool) -> None:
    """Run a module, or a package's `__main__`, as `python -m name arguments` does.

    Raises ScriptError if there is no such module, and what `run` does.
    """
    folder = os.getcwd()
    _begin(folder, ["-m", *arguments], fuse)  # the name while packages are imported, see runpy
    try:
        # pdb and cProfile find their modules by this function, too.
        found = runpy._get_module_details(name, ScriptError)  # type: ignore[attr-defined]
    except ScriptError as error:
        raise ScriptError(f"cannot run -m {name}: {error}") from None
    except SystemExit:
        raise
    except BaseException as error:  # of a package's own
        _fail(error.with_traceback(tracebacks.users_part(error.__traceback__)))
    _, spec, code = found
    sys.argv[0] = spec.origin
    module = ModuleType("__main__")
    vars(module).update(
        __file__=spec.origin,
        __cached__=spec.cached,
        __loader__=spec.loader,
        __package__=spec.parent,
        __spec__=spec,
        __builtins__=__builtins__,
    )
    _execute(module, lambda: code)


def _read(script: str, path: str) -> bytes:
    """A script's text. Raises ScriptError if there is none."""
    if path.endswith(".ipynb"):
        raise ScriptError(f"cannot run {script}: a notebook; in it, use %load_ext pyfuser")
    try:
        with io.open_code(path) as file:
            text = file.read()
    except OSError as error:
        raise ScriptError(f"cannot run {script}: {error.strerror}") from None
    if b"\0" in text:
        raise ScriptError(f"cannot run {script}: a binary file, not the text of a Python program")
    return text


def _begin(folder: str, argv: list[str], fuse: bool) -> None:
    """Give the process the arguments and the path of the program, and watch what it calls."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = folder
    if not installed():
        sys.path.append(_SPAWNED)  # for what `multiprocessing` spawns
    sys.argv[:] = argv
    # What is loaded stays: nobody need look for garbage in it. Not what is the program's own, its
    # main module first: in the end it is garbage, whose finalisers run.
    gc.freeze()
    if fuse:
        watch(folder)
    else:
        modes.SWITCHES.allowed = False


def _execute(module: ModuleType, code: Callable[[], CodeType]) -> None:
    """Run code as the process's main module, and then what is pending."""
    sys.modules["__main__"] = module
    atexit.register(_end)  # the last to run of those that are registered from here on
    try:
        text = code()
        try:
            exec(text, vars(module))
        finally:
            TRACER.flush(reason.PROGRAM_ENDS)
    except SystemExit:
        raise
    except BaseException as error:
        _fail(error)


def _end() -> None:
    """Let the program's modules go, as the interpreter does when all else has ended.

    Before it does: it takes the names that rewritten code uses from `builtins` first. A file in a
    cycle of garbage may be closed below its buffers, which would be lost.
    """
    for found in gc.get_objects():
        if type(found) in (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom):
            with contextlib.suppress(OSError, ValueError):
                found.flush()
    found = None
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        if hasattr(sys, name):
            setattr(sys, name, None)
    for name in hook.rewritten_modules():
        sys.modules[name] = None  # type: ignore[assignment]
    SESSION.clear()
    gc.collect()


def _compiled(source: bytes, path: str, fuse: bool) -> CodeType:
    if fuse:
        return rewritten(source, path)
    return compile(source, path, "exec", dont_inherit=True)


def _fail(error: BaseException) -> NoReturn:
    """Report an error as the interpreter does, and end as it does, without our own frames."""
    error = _first(error)
    if isinstance(error, CompilerError) and not isinstance(error, KernelError):
        TRACER.discard()  # no call can run: that need not be said again at the end
    traceback = _users(error.__traceback__)
    error.__traceback__ = traceback
    sys.excepthook(type(error), error, traceback)
    sys.excepthook = lambda *_: None
    raise error


def _first(error: BaseException) -> BaseException:
    """The error that was raised first, of one that flushes on the way out repeated."""
    first, before = error, error.__context__
    while before is not None:
        if isinstance(before, FAILURES) and (type(before), str(before)) == (
            type(error),
            str(error),
        ):
            first = before
        before = before.__context__
    return first


def _users(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without the first frames, which are ours."""
    while traceback is not None and traceback.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        traceback = traceback.tb_next
    return traceback
