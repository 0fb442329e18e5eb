"""What the compiler makes of many programs, byte by byte."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pyfuser.ir.dtypes import DType
from pyfuser.tuning.target import host

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(
    ("exp", DType.FLOAT64) not in host().vector_maths, reason="needs libmvec and AVX2"
)
def test_texts_are_those_that_were_last_found_right() -> None:
    """In a process of its own, as texts depend on settings.

    Other sizes: `python -m tests.corpus`.
    """
    command = [sys.executable, "-m", "tests.corpus", "*-small", "seed-?", "seed-1?"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    advice = "python -m tests.corpus --against HEAD shows how, and --update keeps them"
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{advice}"
