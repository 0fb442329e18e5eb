"""Compiling says so on a terminal, and what happens goes to `logging`, for who listens."""

from __future__ import annotations

import io
import logging
import os
import pty
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import pyfuser
from pyfuser.runtime.session import SESSION
from pyfuser.support import progress
from pyfuser.support.settings import SETTINGS

pk = pytest.importorskip("pykokkos")
needs_compiler = pytest.mark.skipif(
    shutil.which(SETTINGS.compiler) is None, reason="needs a C++ compiler"
)


@pk.workunit
def scale_for_logs(i, x, k):
    x[i + k] *= 2.0


def planned(caplog: pytest.LogCaptureFixture, n: int, x: object, k: int = 0) -> list[str]:
    caplog.clear()
    with pyfuser.fusing():
        pk.parallel_for(n, scale_for_logs, x=x, k=k)
        pk.parallel_for(n, scale_for_logs, x=x, k=k)
    return [r.getMessage() for r in caplog.records if r.name == "pyfuser.plan"]


@needs_compiler
def test_plans_and_why_again(caplog: pytest.LogCaptureFixture) -> None:
    SESSION.programs.clear()
    SESSION.families.clear()
    with caplog.at_level(logging.DEBUG, "pyfuser"):
        x = pk.View([100], pk.double)
        x.fill(1.0)
        (said,) = planned(caplog, 90, x)
        assert said.startswith("planned 2 calls as 1 kernel in 0.") and "again" not in said
        assert planned(caplog, 90, x) == []
        (said,) = planned(caplog, 80, x)
        assert said.endswith(
            "s, again, as scale_for_logs runs over 0:80 on OpenMP, before over 0:90 on OpenMP"
        )
        y = pk.View([200], pk.double)
        y.fill(1.0)
        (said,) = planned(caplog, 80, y)
        assert said.endswith("as x of scale_for_logs has shape (200,), before (100,)")
        (said,) = planned(caplog, 80, y, 3)
        assert said.endswith("as k of scale_for_logs is 3, before 0, which decides on indices")
        single = pk.View([200], pk.float)
        single.fill(1.0)
        (said,) = planned(caplog, 80, single, 3)
        assert said.endswith("has arguments of other types, or other values from outside")


@needs_compiler
def test_flushes_say_what_they_are_for(caplog: pytest.LogCaptureFixture) -> None:
    x = pk.View([100], pk.double)
    with caplog.at_level(logging.DEBUG, "pyfuser.flush"), pyfuser.fusing():
        pk.parallel_for(90, scale_for_logs, x=x, k=0)
        pyfuser.sync()
    (said,) = [r.getMessage() for r in caplog.records if r.name == "pyfuser.flush"]
    assert said.startswith("flush of 1 call: ") and said.endswith(": pyfuser.sync()")
    assert __file__ in said


PROGRAM = """
import sys
import pyfuser, pykokkos as pk
assert "logging" not in sys.modules
if "log" in sys.argv:
    import logging
    logging.basicConfig(level=logging.DEBUG)

@pk.workunit
def bump(i, x):
    x[i] += 1.5

x = pk.View([10], pk.double)
pk.parallel_for(10, bump, x=x)
print(x[3])
"""


def command(tmp_path: Path, *arguments: str) -> tuple[list[str], dict[str, str]]:
    """A program that compiles, by a compiler that takes its time."""
    program, slow = tmp_path / "program.py", tmp_path / "slow"
    program.write_text(PROGRAM)
    slow.write_text(f'#!/bin/sh\nsleep 1\nexec {SETTINGS.compiler} "$@"\n')
    slow.chmod(0o755)
    environment = os.environ | {
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "PYFUSER_CACHE_DIR": str(tmp_path / "cache"),
        "PYFUSER_CXX": str(slow),
    }
    return [sys.executable, str(program), *arguments], environment


def on_terminal(words: list[str], environment: dict[str, str]) -> str:
    """What a program writes to a terminal that is its stderr."""
    master, slave = pty.openpty()
    process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=slave)
    os.close(slave)
    said = b""
    try:
        while part := os.read(master, 1024):
            said += part
    except OSError:  # the other end is closed
        pass
    os.close(master)
    assert process.wait(60) == 0
    return said.decode()


@needs_compiler
def test_compiling_says_so_on_a_terminal_and_cleans_up(tmp_path: Path) -> None:
    words, environment = command(tmp_path)
    assert on_terminal(words, environment) == "compiling 1 kernel ...\r\x1b[K"
    assert on_terminal(words, environment) == ""  # it is in the cache


@needs_compiler
def test_nothing_goes_into_a_pipe_but_what_logging_is_told(tmp_path: Path) -> None:
    for arguments, expected in (("log",), "DEBUG:pyfuser.compile:compiled bump in "), ((), ""):
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)
        words, environment = command(tmp_path, *arguments)
        done = subprocess.run(
            words, env=environment, capture_output=True, text=True, check=True, timeout=120
        )
        assert done.stderr.startswith(expected) and bool(done.stderr) is bool(expected)


def test_what_is_quick_is_not_said(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal:
        said = ""

        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> None:
            self.said += text

        def flush(self) -> None:
            pass

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress.noted("quick"):
        pass
    assert terminal.said == ""
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    with pytest.raises(KeyError), progress.noted("slow"):
        time.sleep(0.3)
        raise KeyError
    assert terminal.said == "slow ...\r\x1b[K"


def test_a_missing_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with progress.noted("unseen"):
        pass


def test_no_note_below_a_progress_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """What rich prints above its bar stays there: the note could not be erased."""
    from rich.console import Console
    from rich.progress import Progress

    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with (text := io.StringIO()):
        console = Console(file=text, force_terminal=True, width=80)
        with Progress(console=console, transient=True):
            monkeypatch.setattr(type(sys.stderr), "isatty", lambda _: True, raising=False)
            with progress.noted("compiling 1 kernel"):
                time.sleep(0.05)
        assert "compiling" not in text.getvalue()
