"""A kernel that dies says which one it is; how the process dies stays as it was."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pyfuser.support.settings import SETTINGS

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
    y[places[i]] = i


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
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=120, check=False
    )
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
