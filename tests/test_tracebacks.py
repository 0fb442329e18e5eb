"""What a program prints that ends with an error of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import pyfuser
import pykokkos as pk


@pk.workunit
def wrong(i, x):
    y = x[i]
    x[i] = y


def simulate(x):
    pk.parallel_for(4, wrong, x=x)


simulate(pk.View([4], pk.double))
"""


def printed(tmp_path: Path, **environment: str) -> str:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYFUSER_FRONTEND": "embedded", **environment},
        check=False,
    )
    assert done.returncode == 1
    return done.stderr


def test_an_error_shows_the_programs_lines_only(tmp_path: Path):
    text = printed(tmp_path)
    assert "'y' is not declared" in text
    assert "pk.parallel_for(4, wrong, x=x)" in text
    assert "simulate(pk.View" in text
    assert os.path.join("pyfuser", "lower") not in text


@pytest.mark.parametrize("level", ["1"])
def test_debugging_shows_all(tmp_path: Path, level: str):
    assert os.path.join("pyfuser", "lower") in printed(tmp_path, PYFUSER_DEBUG=level)
