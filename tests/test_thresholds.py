"""Other numbers: they are in force in a block alone, and what was made by others does not serve."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyfuser
from pyfuser.codegen.kernel import spec_of
from pyfuser.engine.store.store import STORE
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.runtime.session import SESSION
from pyfuser.tuning.thresholds import DEFAULT, NOW, tuned
from tests.codegen.build import case
from tests.sessions import fresh


@pk.workunit
def doubled(i, y):
    y[i] *= 2.0


def test_numbers_of_both_tables_are_in_force_in_the_block() -> None:
    running = NOW.running
    with tuned(strip=4, soon=1.0):
        assert (NOW.tuning.strip, NOW.running.soon) == (4, 1.0)
        inner = NOW.tuning
        with tuned(soon=2.0):
            assert NOW.tuning is inner
    assert NOW.tuning is DEFAULT and NOW.running is running
    with tuned(strip=4), pytest.raises(ZeroDivisionError), tuned(strip=5):
        raise ZeroDivisionError
    with tuned(strip=4):
        assert NOW.tuning is inner  # what was made by the same numbers is found again
    with pytest.raises(TypeError), tuned(no_such_number=1):
        pass
    assert NOW.tuning is DEFAULT


def test_kernels_and_programs_of_other_numbers_are_others() -> None:
    kernel = case(doubled, [40], lambda: [np.ones(40)]).kernel
    with tuned(tile=1 << 10):
        assert spec_of(kernel) != spec_of(kernel, tuning=DEFAULT)

    def program() -> Any:
        with pyfuser.fusing():
            pk.parallel_for(40, doubled, y=np.ones(40))
        return SESSION.flushes[-1].program

    with fresh():
        first = program()
        assert program() is first
        with tuned(common=0.5):
            assert STORE.entry("kernel", 1) is None
            assert program() is not first
        assert program() is first
        with tuned(common=0.5):
            SESSION.clear()
        assert program() is not first
