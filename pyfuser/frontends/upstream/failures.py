"""What PyKokkos cannot compile, in a line.

PyKokkos prints a hundred lines of its compiler, or a syntax tree, without a word of whose workunit
it was, and ends the program by SystemExit. With the hooks it is SystemExit too, whose text names
the workunit and the first error; all that was printed is in a file.
"""

from __future__ import annotations

import builtins
import contextlib
import hashlib
import io
import os
import re
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from pyfuser.engine.cache import private_directory, write_own
from pyfuser.support.errors import CacheError
from pyfuser.support.settings import SETTINGS

#: How the names of files begin that are not the program's own.
_NOT_THE_USERS = [str(Path(__file__).parents[2]) + os.sep, contextlib.__file__, "<frozen importlib"]
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
#: The last line of a failed compilation, by g++ itself or by the CMake of revisions of 2026.
_COMPILED = re.compile(r"^(?:C\+\+ compilation|CMake \w+) in (.+?) failed", re.MULTILINE)
_OF_COMPILER = re.compile(r"^([^\s:]+:\d+)(?::\d+)?: (?:fatal )?error: (.+)$", re.MULTILINE)
_OF_CMAKE = re.compile(r"^CMake Error\b.*:\s+(.+)$", re.MULTILINE)
_OF_TRANSLATOR = re.compile(r"^Error(?: on (line \d+))?\s*: (.+)$", re.MULTILINE)


class _Printed(threading.local):
    """What PyKokkos has printed in this thread while a call runs."""

    text: io.StringIO | None = None


PRINTED = _Printed()
_SAID: dict[str, str] = {}  # of what could not be compiled; PyKokkos does not try it again


def install(package: Any) -> None:
    """Let the modules of PyKokkos' translator, which calls the compiler, print through us."""
    _NOT_THE_USERS.append(os.path.dirname(package.__file__) + os.sep)
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{package.__name__}.core."):
            vars(module)["print"] = _print


def _print(*values: Any, **options: Any) -> None:
    if PRINTED.text is not None:
        options.setdefault("file", PRINTED.text)
    builtins.print(*values, **options)


@contextlib.contextmanager
def in_a_line(arguments: tuple[Any, ...]) -> Iterator[None]:
    """A block in which PyKokkos may compile the workunit or workload among the arguments.

    Raises SystemExit with the line where PyKokkos raises SystemExit after it has printed why.
    """
    before, PRINTED.text = PRINTED.text, io.StringIO()
    text = ""
    try:
        yield
    except SystemExit as stop:
        text = _COLOUR.sub("", PRINTED.text.getvalue()).strip()
        if not text:
            raise
        what = _described(arguments)
        said = f"PyKokkos cannot compile {what}: {_why(text)}; {_kept(what, text)}"
        _SAID[what] = said
        raise _ending(said) from stop
    except ImportError as error:  # of the code that was not made the first time
        said = _SAID.get(_described(arguments), "")
        if not said:
            raise
        raise _ending(said) from error
    finally:
        printed, PRINTED.text = PRINTED.text.getvalue(), before
        if printed and not text:
            _print(printed, end="")


def place() -> tuple[str, int]:
    """The file and line of the program's own code that is running."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_filename.startswith(tuple(_NOT_THE_USERS)):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("pykokkos", 1)


def _ending(said: str) -> SystemExit:
    return SystemExit("{}:{}: {}".format(*place(), said))


def _described(arguments: tuple[Any, ...]) -> str:
    """The name of the workunit among the arguments of a call, or of the workload, and its place."""
    for value in arguments:
        first = value[0] if isinstance(value, list) and value else value
        code = getattr(getattr(first, "__func__", first), "__code__", None)
        if code is not None:
            return f"the workunit {first.__name__!r} of {code.co_filename}:{code.co_firstlineno}"
    return f"a {type(arguments[-1]).__name__}" if arguments else "a kernel"


def _why(text: str) -> str:
    """The first error in what was printed."""
    compiled = _COMPILED.search(text)
    if compiled is None:
        error = _OF_TRANSLATOR.search(text)
        if error:
            return f"{error[1]}: {error[2]}" if error[1] else error[2]
        return " ".join(line.strip() for line in text.splitlines()[:2])
    _forget(Path(compiled[1]))
    error = _OF_COMPILER.search(text)
    if error:
        return f"{error[2]} ({Path(error[1]).name} of its C++)"
    error = _OF_CMAKE.search(text)
    return f"{error[1]} (CMake)" if error else "its compiler failed"


def _kept(what: str, text: str) -> str:
    """Where all that was printed about a workunit is to be read."""
    if SETTINGS.debug:
        builtins.print(text, file=sys.stderr)
    name = f"{hashlib.sha256(what.encode()).hexdigest()[:16]}.txt"
    try:
        path = private_directory(SETTINGS.cache_dir / "pykokkos-errors") / name
        write_own(path, text)
    except (OSError, CacheError):
        return "PYFUSER_DEBUG=1 shows all that it said"
    return f"all that it said is in {path}"


def _forget(folder: Path) -> None:
    """Remove a kernel without code, which PyKokkos would take for a whole one the next time."""
    if (folder / "bindings.cpp").is_file() and not any(folder.glob("*.so")):
        shutil.rmtree(folder, ignore_errors=True)
