"""A process that ends with launches pending on NumPy arrays warns of the first, by its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes import python

PROGRAM = """
import sys
import numpy as np
import pyfuser, pykokkos as pk

@pyfuser.fuse
@pk.workunit
def over(i, x):
    x[i] += 1

@pyfuser.fuse
@pk.workunit
def into(i, x, y):
    y[i] = x[i]

x, v = np.zeros(3), pk.View([3], pk.double)
w = pk.array(np.zeros(3))
"""
LAUNCH = "pk.parallel_for(3, over, x=x)  # the launch\n"


def ended(tmp_path: Path, program: str, *command: str) -> str:
    """What a program whose end differs writes to stderr."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM + program)
    return python(*command, file, PYTHONWARNINGS="").stderr


@pytest.mark.parametrize(
    ("program", "others"),
    [
        (LAUNCH, ""),
        (LAUNCH + "sys.exit(3)", ""),
        (LAUNCH + "pk.parallel_for(3, into, x=w, y=x)", " (and 1 later)"),
        (LAUNCH + "v[0] = 1", ""),  # which runs nothing: another array's launch is pending
    ],
)
def test_launches_that_ran_at_exit_are_warned_of(tmp_path: Path, program: str, others: str) -> None:
    said = ended(tmp_path, program)
    line = PROGRAM.count("\n") + 1
    assert f"program.py:{line}: PyFuserWarning: 'over', launched here{others}, ran only" in said
    assert "# the launch" in said
    assert said.count("PyFuserWarning") == 1


@pytest.mark.parametrize(
    "program",
    [
        LAUNCH + "pyfuser.sync()",
        LAUNCH + "pk.fence()",
        "with pyfuser.fusing():\n    " + LAUNCH,
        "pk.parallel_for(3, into, x=x, y=v)",  # a View: its reads run what is pending
        "pk.parallel_for(3, over, x=w)",  # a View of an array
        LAUNCH + "pyfuser.discard()",
    ],
)
def test_others_are_not(tmp_path: Path, program: str) -> None:
    assert ended(tmp_path, program) == ""


def test_an_uncaught_error_says_enough(tmp_path: Path) -> None:
    said = ended(tmp_path, LAUNCH + "raise KeyError")
    assert "KeyError" in said and "Warning" not in said


def test_run_reads_arrays_in_time(tmp_path: Path) -> None:
    assert ended(tmp_path, LAUNCH, "-m", "pyfuser", "run") == ""
