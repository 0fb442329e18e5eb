"""Runs small scripts as `pyfuser run` does, inside the test process and without a compiler."""

from __future__ import annotations

import _thread
import contextlib
import gc
import io
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from pyfuser.frontends import modes
from pyfuser.frontends.embedded import careful
from pyfuser.run import program
from pyfuser.runtime.session import TRACER
from pyfuser.trace.reason import SYNC
from pyfuser.trace.tracer import Tracer
from tests.conftest import Interpreted

PREAMBLE = """\
import sys
import numpy as np
import pykokkos as pk

@pk.workunit
def add(i, a, s):
    a[i] += s

@pk.workunit
def copy(i, b, a):
    b[i] = a[i]

@pk.workunit
def total(i, acc, a):
    acc += a[i]

def launch(a, s=1.0):
    pk.parallel_for(len(a), add, a=a, s=s)

"""


class Ran:
    """A script's output, and how many calls ran together at most (0: nothing was recorded)."""

    def __init__(self, output: str, together: int) -> None:
        self.output = output
        self.together = together


Runner = Callable[..., Ran]


class Engine(Protocol):
    """What runs the calls of a script."""

    def flush(self, tracer: Tracer) -> None:
        """Run what is pending."""


@pytest.fixture
def run(
    tmp_path: Path,
    interpreted: Interpreted,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Runner]:
    """`run(text, fuse)`: run a script, of which PREAMBLE is the beginning."""
    yield runner(tmp_path, interpreted, monkeypatch)
    TRACER.flush(SYNC)


def runner(folder: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Runner:
    """What runs scripts; it writes them to a folder."""
    monkeypatch.setattr(modes.SWITCHES, "everywhere", None)
    monkeypatch.setattr(modes.SWITCHES, "careful", False)
    monkeypatch.setattr(modes.SWITCHES, "allowed", True)
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    threads = _thread._count()  # those of the test runner
    monkeypatch.setattr(careful, "_other_threads", lambda: _thread._count() - threads)
    modules = set(sys.modules)
    main = sys.modules["__main__"]

    def run(text: str, fuse: bool = True, arguments: tuple[str, ...] = ()) -> Ran:
        script = folder / "script.py"
        script.write_text(PREAMBLE + text, encoding="utf-8")
        sizes = [0]

        def flush(tracer):
            sizes.append(len(tracer.calls))
            engine.flush(tracer)

        monkeypatch.setattr(TRACER, "flush_function", flush)
        modes.SWITCHES.allowed = True
        sys.modules["__main__"] = main
        with contextlib.redirect_stdout(io.StringIO()):
            gc.collect()  # finalisers of the script before must not speak in this one
        out = io.StringIO()
        try:
            with contextlib.redirect_stdout(out):
                program.run(str(script), list(arguments), fuse)
        finally:
            sys.stdout.write(out.getvalue())
        for name in set(sys.modules) - modules:
            if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]
        return Ran(out.getvalue(), max(sizes))

    return run


def outcome(run: Runner, text: str, fuse: bool) -> tuple[str, str]:
    """A script's output, and the error that ended it."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            return _without_addresses(run(text, fuse).output), ""
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        return _without_addresses(printed.getvalue()), _without_addresses(told)


def _without_addresses(text: str) -> str:
    return re.sub(r"0x[0-9a-f]+", "0x", text)
