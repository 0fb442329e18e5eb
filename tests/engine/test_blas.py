"""How long the threads of NumPy's matrix products wait, which OpenBLAS reads when it is loaded."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

TOLD = """
import ctypes, os
{first}
import pyfuser.numpy as np
maps = [line.split()[-1] for line in open("/proc/self/maps") if "openblas" in line]
told = getattr(ctypes.CDLL(maps[0]), "openblas_thread_timeout", None) if maps else None
print(told and told(), os.environ.get("OPENBLAS_THREAD_TIMEOUT"))
"""


def told(first: str = "", **more: str) -> str:
    environment = {key: value for key, value in os.environ.items() if "OPENBLAS" not in key}
    made = subprocess.run(
        [sys.executable, "-c", TOLD.format(first=first)],
        env=environment | more, capture_output=True, text=True, check=True,
    )  # fmt: skip
    if made.stdout.startswith("None"):
        pytest.skip("NumPy has no OpenBLAS that tells")
    return made.stdout.strip()


@pytest.mark.parametrize("first", ["", "import pyfuser", "from pyfuser.ir import dtypes"])
def test_they_sleep_soon(first: str) -> None:
    assert told(first) == "19 None"


def test_the_program_decides() -> None:
    assert told(OPENBLAS_THREAD_TIMEOUT="22") == "22 22"


def test_numpy_is_there_already() -> None:
    assert told("import numpy") == "0 None"
