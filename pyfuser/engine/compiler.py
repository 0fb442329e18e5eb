"""The C++ compiler: which one, with which flags, and how it is run."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shlex
import shutil
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyfuser.support.caches import once
from pyfuser.support.counters import COUNTERS
from pyfuser.support.errors import CompilerError, KernelError
from pyfuser.support.records import dataclass
from pyfuser.support.settings import SETTINGS
from pyfuser.tuning.host import cpu_identity
from pyfuser.tuning.thresholds import NOW

if TYPE_CHECKING:
    import subprocess

_POLL = 0.1  # seconds between looks at whether to give up

_FLAGS = (
    "-O3",
    "-march=native",
    "-std=c++17",
    "-fopenmp",
    "-fPIC",
    "-shared",
    "-ffp-contract=off",  # a * b + c is rounded twice, fused with other kernels or not
    "-fno-math-errno",
    "-fno-trapping-math",  # floating-point exceptions are not observed: changes no value
    "-fno-strict-aliasing",  # arrays of two types may share memory
    # A loop may never end, as `while t != 1.0: t += 0.1` does not: C++ would have it end, with a t
    # that is 1.0.
    "-fno-finite-loops",
    "-fwrapv",  # 32-bit index arithmetic wraps, as in the reference interpreter
    # g++ before 12.4, 13.3 and 14 may address the memory of a loop as 0 + index (its bug 110702:
    # one base with steps of two sizes or signs), and drop calls that touch only "invalid" memory.
    "-fno-delete-null-pointer-checks",
    # Stores that became values of one local meet behind their branches. g++ makes no vector
    # operations of more than four that do, though it does of as many stores.
    "--param=max-tree-if-conversion-phi-args=64",
    # A loop makes vectors of inlined maths only, and g++ stops inlining where a function has grown:
    # of 20 calls with an exp and a log each, fused, it made a loop six times as slow.
    "--param=large-function-insns=1000000",
    "--param=large-unit-insns=1000000",
    # Of the time to compile large kernels it takes a third, and gains nothing measurable.
    "-fno-gcse",
    "-fno-gcse-after-reload",
    "-fno-exceptions",
    "-fno-rtti",
    "-w",
    "-Wl,--as-needed",  # do not load a C++ run-time library that nothing uses
)
# g++ 12 takes a vector of two doubles for its floats, where it makes vectors of statements that
# follow each other: `z[0] = (float)x[0]; z[1] = (float)x[1]` keeps all digits if z is of doubles.
# It does not where it makes vectors of loops.
_FLOAT_FLAGS = ("-fno-tree-slp-vectorize",)
LINK_FLAGS = ("-lm",)  # it brings libmvec where that is needed
_FLOAT = re.compile(r"\bfloat\b")
# g++ 12 may move a copy `t[i] = x[i]` out of a loop and behind a later store to x[i]: where `ivdep`
# lets it distribute a loop, it forgets that order. Only loops that store twice can be distributed.
IN_ONE_LOOP = ("-fno-tree-loop-distribution", "-fno-tree-loop-distribute-patterns")
# g++ makes of what is left of a loop's vectors a loop of shorter ones: half of the text of large
# kernels, and of the time to compile it, for one iteration less of each end of a loop of doubles.
ONE_VECTOR_LOOP = ("--param=vect-epilogues-nomask=0",)
_X86_FLAGS = ("-mprefer-vector-width=512",)
# g++ before 13 adds code to such a library that, once it is loaded, lets the thread and those it
# starts take subnormal numbers for 0: NumPy's, too. It is in the start files; kernels need none.
_FASTMATH_FLAGS = ("-ffast-math", "-ffp-contract=fast", "-nostartfiles")


@dataclass(frozen=True, slots=True)
class Compiler:
    """A compiler that was found. `identity` changes when it is replaced or upgraded."""

    command: tuple[str, ...]
    identity: str


@once
def find_compiler(command: str) -> Compiler:
    """The compiler a command line such as "g++" or "ccache g++" names.

    Raises CompilerError if there is no such program.
    """
    words = shlex.split(command) or ["g++"]
    programs = []
    for word in words:
        path = shutil.which(word) if not word.startswith("-") else None
        if path is not None:
            programs.append(os.path.realpath(path))
    if shutil.which(words[0]) is None:
        raise CompilerError(
            f"no C++ compiler found ({words[0]!r}): install g++ (Debian/Ubuntu: apt install g++) "
            "or set PYFUSER_CXX"
        )
    return Compiler(tuple(words), " ".join([command, *map(_stamp, programs)]))


def _stamp(path: str) -> str:
    """What changes when a program is replaced; asking it for its version costs 10 ms a start."""
    status = os.stat(path)
    return f"{path}:{status.st_mtime_ns}:{status.st_size}"


@once
def flags(fastmath: bool) -> tuple[str, ...]:
    """The options that every kernel is compiled with."""
    x86 = platform.machine() in ("x86_64", "AMD64", "i686")
    return _FLAGS + (_X86_FLAGS if x86 else ()) + (_FASTMATH_FLAGS if fastmath else ())


def build_identity(compiler: Compiler, fastmath: bool) -> str:
    """Everything but its source that a compiled kernel depends on."""
    options = flags(fastmath) + _FLOAT_FLAGS + LINK_FLAGS
    return "\n".join([compiler.identity, " ".join(options), cpu_identity()])


def command_of(
    compiler: Compiler, text: str, source: Path, target: Path, options: Sequence[str]
) -> list[str]:
    """What compiles a C++ file of this text in its directory to a shared library."""
    return [
        *compiler.command,
        *flags(SETTINGS.fastmath),
        *(_FLOAT_FLAGS if _FLOAT.search(text) else ()),
        *options,
        source.name,
        "-o",
        str(target),
        *LINK_FLAGS,
    ]


def compile_library(
    compiler: Compiler,
    source: Path,
    target: Path,
    cancelled: threading.Event | None = None,
    options: Sequence[str] = (),
) -> None:
    """Compile a C++ file to a shared library, with further `options`.

    Raises CompilerError with what the compiler said if it fails, writes nothing, when
    its time is up, or once `cancelled` is set. No process of the compiler outlives the call.
    """
    import subprocess  # loaded only when something must be compiled

    command = command_of(compiler, source.read_text("utf-8"), source, target, options)
    start = time.perf_counter()
    try:
        with subprocess.Popen(
            command,
            # Without a path it is looked for with other filters of warnings, upon which Python
            # forgets which of ours it has shown.
            executable=shutil.which(command[0]),
            cwd=source.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C reaches us only: we decide
        ) as process:
            try:
                output = _wait(process, _shown(command), cancelled)
            except BaseException:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # the driver's children, too
                raise
    except OSError as error:
        raise CompilerError(f"{_shown(command)}: cannot be run: {error.strerror}") from error
    if process.returncode or not _whole(target):
        said = _shortened(output.decode(errors="replace").strip())
        kind = KernelError if process.returncode > 0 else CompilerError
        raise kind(f"{_shown(command)}: {_fate(process.returncode)}\n{said}".rstrip())
    COUNTERS.compilations += 1
    COUNTERS.compile_seconds += time.perf_counter() - start


def _wait(process: subprocess.Popen[bytes], shown: str, cancelled: threading.Event | None) -> bytes:
    """What the compiler writes to stderr until it ends."""
    import subprocess

    deadline = time.monotonic() + NOW.running.compile_seconds
    while True:
        left = deadline - time.monotonic()
        try:
            return process.communicate(timeout=max(0.0, min(_POLL, left)))[1]
        except subprocess.TimeoutExpired:
            if cancelled is not None and cancelled.is_set():
                raise CompilerError("compilation was interrupted") from None
            if left <= _POLL:
                raise CompilerError(
                    f"{shown}: no result after {NOW.running.compile_seconds:.0f} s; gave up"
                ) from None


def _fate(status: int) -> str:
    """How the compiler ended."""
    if status == -signal.SIGKILL:
        return "was killed (SIGKILL): is there enough memory?"
    if status < 0:
        return f"was ended by signal {-status}"
    if status:
        return f"failed with status {status}"
    return (
        "reported success but wrote no complete library: is it a C++ compiler? "
        "(PYFUSER_CXX names one)"
    )


def _whole(library: Path) -> bool:
    """Whether a file is there, and not shorter than its ELF header says.

    Loading a cut library ends the process: the missing pages are mapped all the same.
    """
    try:
        size = library.stat().st_size
        with open(library, "rb") as file:
            header = file.read(64)
    except FileNotFoundError:
        return False
    if header[:5] != b"\x7fELF\x02" or len(header) < 64:  # not ELF, or not of 64 bits
        return size > 0
    table = int.from_bytes(header[40:48], sys.byteorder)  # the section headers come last
    entry = int.from_bytes(header[58:60], sys.byteorder)
    return size >= table + entry * int.from_bytes(header[60:62], sys.byteorder)


def _shown(command: list[str]) -> str:
    return shlex.join(command)


def _shortened(text: str, lines: int = 40) -> str:
    parts = text.splitlines()
    more = [f"... ({len(parts) - lines} more lines)"] if len(parts) > lines else []
    return "\n".join(parts[:lines] + more)
