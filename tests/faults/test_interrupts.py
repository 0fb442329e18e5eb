"""Ctrl-C during a kernel: it ends, KeyboardInterrupt follows, no call is lost or runs twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import pyfuser
from pyfuser.frontends.embedded import pykokkos as pk
from tests.faults.conftest import Machine
from tests.faults.workunits import SIZE, increment, spin, total

TRIPS = 2_000_000  # of additions that wait for each other: some milliseconds
DELAY = 0.05  # seconds until the signal

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX signals")


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """SIGALRM does what SIGINT does."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def seconds_of_spin(x: pk.View) -> float:
    start = time.perf_counter()
    with pyfuser.unfused():
        pk.parallel_for(1, spin, x=x, n=TRIPS)
    return time.perf_counter() - start


def trips_for(seconds: float, x: pk.View) -> int:
    """How many trips of `spin` take about so long."""
    seconds_of_spin(x)
    return int(TRIPS * seconds / seconds_of_spin(x))


@pytest.mark.parametrize("fused", [True, False])
def test_ctrl_c_in_a_kernel(fused: bool, machine: Machine, ctrl_c: None) -> None:
    x, y = pk.View([SIZE], pk.double), pk.View([SIZE], pk.double)
    trips = trips_for(8 * DELAY, x)
    x.fill(0.0)
    z = np.zeros(SIZE)

    def step():
        pk.parallel_for(1, spin, x=x, n=trips)
        pk.parallel_for(SIZE, increment, x=y)
        pk.parallel_for(SIZE, increment, x=z)
        return pk.parallel_reduce(SIZE, total, x=y)

    if fused:
        for _ in range(2):
            float(step())  # compiled: at first the views are new
        y.fill(1.0)
        z[:] = 1.0
        x.fill(trips)
        pyfuser.sync()
        result = step()
        signal.setitimer(signal.ITIMER_REAL, DELAY)
        start = time.perf_counter()
        with pytest.raises(KeyboardInterrupt):
            float(result)
    else:
        pyfuser.sync()
        with pyfuser.unfused():
            step()
            signal.setitimer(signal.ITIMER_REAL, DELAY)
            start = time.perf_counter()
            with pytest.raises(KeyboardInterrupt):
                pk.parallel_for(1, spin, x=x, n=trips)
            pk.parallel_for(SIZE, increment, x=y)
            pk.parallel_for(SIZE, increment, x=z)
            result = pk.parallel_reduce(SIZE, total, x=y)
    assert time.perf_counter() - start > 2 * DELAY, "the kernel was not at its end"
    assert x[0] == 2 * trips
    assert float(result) == 2 * SIZE and set(y) == {2.0}
    pyfuser.sync()
    assert set(z) == {2.0}


PROGRAM = """
import signal

import pyfuser
import pykokkos as pk

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored


@pk.workunit
def spin(i, x, n):
    value: float = x[i]
    for _ in range(n):
        value = value + 1.0
    x[i] = value


x = pk.View([1], pk.double)
pk.parallel_for(1, spin, x=x, n=0)
print("ready", flush=True)
while True:
    pk.parallel_for(1, spin, x=x, n=20_000_000)
"""


def test_an_interrupted_program_shows_its_own_lines(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYFUSER_FRONTEND": "embedded"},
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(DELAY)
        process.send_signal(signal.SIGINT)
        try:
            _, text = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode not in (0, None)
    assert "pk.parallel_for(1, spin, x=x, n=20_000_000)" in text
    assert text.splitlines()[-1] == "KeyboardInterrupt"
    assert text.count('File "') == 1, text
