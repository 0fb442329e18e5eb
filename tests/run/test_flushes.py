"""The report of `pyfuser run --report`."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import pyfuser
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.frontends.modes import SWITCHES
from pyfuser.run.flushes import FlushLog
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.support.settings import SETTINGS

needs_a_compiler = pytest.mark.skipif(
    shutil.which(SETTINGS.compiler) is None, reason="needs a C++ compiler"
)


@pk.workunit
def scale(i, x):
    x[i] = 2.0 * x[i]


@pk.workunit
def shift(i, x):
    x[i] = x[i] + 1.0


@needs_a_compiler
def test_programs_that_differ_in_nothing_that_is_printed_are_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, x = FlushLog(), np.zeros(8)
    monkeypatch.setattr(TRACER, "flush_function", log.flush)
    monkeypatch.setattr(SWITCHES, "watched", True)
    for units in ((scale, shift), (scale, shift), (shift, shift)):
        with pyfuser.fusing():
            for unit in units:
                pk.parallel_for(8, unit, x=x)
        SESSION.clear()  # so that the next is planned anew
    assert len(log.programs) == 3
    assert log.text().count("2 calls ran as 1 kernel") == 2
    assert log.text().splitlines()[0].endswith(", waited for 3 times:")
    assert "\n2 times: 2 calls ran" in log.text() and "\nonce: 2 calls ran" in log.text()
