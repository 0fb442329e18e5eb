"""Threads that share arrays, and signal handlers that flush while NumPy computes a trace."""

from __future__ import annotations

import signal
import threading

import numpy
import pytest

import pyfuser.numpy as np
from pyfuser.frontends.numpy import switches
from pyfuser.runtime import first_tier
from pyfuser.runtime.session import TRACER
from pyfuser.trace import reason

LARGE = switches.LAZY_FROM


def test_threads() -> None:
    shared = np.arange(float(LARGE)) + 1
    wrong: list[object] = []

    def work(k: int) -> None:
        for trip in range(15):
            x = np.full(LARGE, float(k))
            y = x * 2 + 1
            y[1:] += x[:-1]
            z = shared * k + y
            if trip % 3 == 0:
                array = numpy.asarray(y)
                y += 1
                y -= 1
                if array[5] != 3 * k + 1:
                    wrong.append((k, trip, array[5]))
                del array
            z -= shared * k
            if (z[0], z[9]) != (2 * k + 1, 3 * k + 1):
                wrong.append((k, trip, z[0], z[9]))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_handler_that_flushes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_tier, "runs_here", lambda trace, calls: first_tier.are_direct(calls))
    busy = False
    seen: list[bool] = []

    def handler(*_: object) -> None:
        nonlocal busy
        if not busy:
            busy = True
            own = np.full(LARGE, 3.0)
            own += len(seen)
            seen.append(bool(own[7] == 3.0 + len(seen)))
            TRACER.flush(reason.SYNC)
            busy = False

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
    wrong = 0
    try:
        for _ in range(300):
            x = np.full(LARGE, 1.0)
            x += 1
            x *= 3
            x -= 2
            wrong += bool(x[3] != 4.0 or x[-1] != 4.0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert wrong == 0
    assert all(seen)
    assert len(seen) > 5
