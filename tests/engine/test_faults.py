"""A kernel that dies says which one it is; how the process dies stays as it was."""

from __future__ import annotations

import shutil
import signal
import sys
from pathlib import Path

import pytest

from pyfuser.support.extension import HOT
from pyfuser.support.settings import SETTINGS
from tests.processes import python

pytestmark = [
    pytest.mark.skipif(shutil.which(SETTINGS.compiler) is None, reason="needs a C++ compiler"),
    pytest.mark.skipif(sys.platform == "win32", reason="needs signals"),
]

PROGRAM = """
import numpy as np
import pyfuser
import pykokkos as pk
import faulthandler, signal


@pk.workunit
def scatter(i, y, places):
    y[1 * places[i]] = i  # no element: those are looked at before the first launch


{before}
places = np.full({n}, {place}, dtype=np.int64)
places[: {n} // 2] = 0
y = pk.View([{n}], pk.double)
with pyfuser.fusing():
    pk.parallel_for({n}, scatter, y=y, places=places)
y[0]
print("runs", faulthandler.is_enabled())
"""
FAR = 10**12


def ran(tmp_path: Path, place: int, n: int = 100, before: str = "") -> tuple[int, str, str]:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(place=place, n=n, before=before))
    done = python(program)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("n", [100, 400_000], ids=["one thread", "several"])
def test_the_kernel_and_the_remedy_are_named(tmp_path: Path, n: int) -> None:
    code, _, said = ran(tmp_path, FAR, n)
    assert code == -signal.SIGSEGV
    first = next(line for line in said.splitlines() if "File " in line)
    assert f"<launch of scatter ({tmp_path / 'program.py'}:9)" in first
    assert "PYFUSER_CHECK=bounds finds an index outside of a view" in first
    assert f'File "{tmp_path / "program.py"}", line 1' in said


def test_nothing_is_said_of_programs_that_run(tmp_path: Path) -> None:
    assert ran(tmp_path, 0) == (0, "runs True\n", "")


HANDLERS = {
    "of the program": "signal.signal(signal.SIGSEGV, lambda *args: None)",
    "ignored": "signal.signal(signal.SIGSEGV, signal.SIG_IGN)",
}


@pytest.mark.parametrize("handler", HANDLERS)
def test_a_handler_that_is_there_stays(tmp_path: Path, handler: str) -> None:
    assert ran(tmp_path, 0, before=HANDLERS[handler]) == (0, "runs False\n", "")


LAUNCHES = """
import ctypes, os
import numpy as np
import pyfuser
import pykokkos as pk
{before}

@pk.workunit
def scatter(i, y, places):
    y[1 * places[i]] = i  # no element: those are looked at before the first launch


@pk.workunit
def fine(i, y):
    y[i] += 1.0


y, places = np.zeros(8), np.zeros(8, dtype=np.int64)
for _ in range(5):
    pk.parallel_for(8, scatter, y=y, places=places)
    pk.parallel_for(8, fine, y=y)
{end}
"""
ENDS = {
    "in a kernel that the extension launches": "places[:] = 10**12\n"
    "pk.parallel_for(8, scatter, y=y, places=places)",
    "when Python has ended": "libc = ctypes.CDLL(None)\nlibc.on_exit(libc.abort, None)",
    "in free": "ctypes.CDLL(None).free(ctypes.c_void_p(y.ctypes.data + 8))",
    "on purpose": "os.abort()",
}
PLACES = (("scatter", 9), ("fine", 14))


def died(tmp_path: Path, end: str, before: str = "", **settings: str) -> tuple[int, list[str]]:
    program = tmp_path / "program.py"
    program.write_text(LAUNCHES.format(before=before, end=end))
    done = python(program, **settings)
    lines = [line for line in done.stderr.splitlines() if line.startswith("PyFuser: ")]
    return done.returncode, lines


@pytest.mark.skipif(HOT is None, reason="needs the compiled extension")
@pytest.mark.parametrize("before", ["", "import faulthandler; faulthandler.enable()"])
@pytest.mark.parametrize("end", ENDS)
def test_what_was_launched_last_is_said_in_one_line(tmp_path: Path, end: str, before: str) -> None:
    code, lines = died(tmp_path, ENDS[end], before)
    in_kernel = "kernel" in end
    assert code == -(signal.SIGSEGV if in_kernel else signal.SIGABRT)
    if before and "ended" in end:  # Python takes down the program's own handler, and what is below
        return
    scatter, fine = (f"{name} ({tmp_path / 'program.py'}:{n})" for name, n in PLACES)
    named = f"{scatter}, {fine}" if in_kernel else f"{fine}, {scatter}"
    (line,) = lines
    assert f"Launched last: {named}. If" in line
    assert "PYFUSER_CHECK=bounds finds it" in line


@pytest.mark.skipif(HOT is None, reason="needs the compiled extension")
def test_kernels_that_check_their_indices_are_not_suspected(tmp_path: Path) -> None:
    code, lines = died(tmp_path, "os.abort()", PYFUSER_CHECK="bounds")
    assert (code, lines) == (-signal.SIGABRT, [])


@pytest.mark.skipif(HOT is None, reason="needs the compiled extension")
def test_a_handler_of_aborts_that_is_there_stays(tmp_path: Path) -> None:
    handler = "import signal\nsignal.signal(signal.SIGABRT, signal.SIG_IGN)"
    code, lines = died(tmp_path, "signal.raise_signal(signal.SIGABRT)", handler)
    assert (code, lines) == (0, [])
