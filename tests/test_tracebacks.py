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


def printed(tmp_path: Path, program: str = PROGRAM, **environment: str) -> str:
    script = tmp_path / "program.py"
    script.write_text(program)
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


SUM = """
import json, decimal, fractions
import pyfuser
import pykokkos as pk


@pyfuser.fuse
@pk.workunit
def add(i, acc, x):
    acc += x[i]


total = pk.parallel_reduce(4, add, x=pk.View([4], pk.double))
"""


@pytest.mark.parametrize(
    "use", ["json.dumps({'loss': total})", "decimal.Decimal(total)", "total[0]", "len(total)"]
)
def test_where_no_future_will_do_the_number_is_shown(use: str, tmp_path: Path):
    text = printed(tmp_path, SUM + use + "\n")
    assert "TypeError" in text and "give it float(total) or int(total)" in text


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="fractions take what has a ratio")
def test_an_error_that_does_not_name_the_future(tmp_path: Path):
    text = printed(tmp_path, SUM + "fractions.Fraction(total)\n")
    assert "TypeError" in text and "give it float(total) or int(total)" in text


@pytest.mark.parametrize("use", ["float(total)[0]", "1 + 'a'", "json.dumps({1})", "1 // 0"])
def test_other_errors_have_no_advice(use: str, tmp_path: Path):
    program = SUM.replace("total = ", "float(").replace("pk.double))", "pk.double)))")
    text = printed(tmp_path, program + use.replace("total", "1") + "\n")
    assert "Error" in text and "give it" not in text
