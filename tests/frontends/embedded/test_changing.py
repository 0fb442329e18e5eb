"""A number from outside that changes is compiled for a few times, whatever its values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyfuser
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.frontends.embedded.changing import VALUES
from pyfuser.support.counters import COUNTERS
from pyfuser.support.errors import ArgumentError, WorkunitError
from tests.sessions import fresh

STEP: Any = 0.5
EXPONENT: Any = 2.0
FIRST: Any = 0
n = 50


def made() -> Any:
    """A new workunit, whose bindings are its own."""

    @pk.workunit
    def move(i, y, x):
        y[i] = y[i] + STEP * x[i]

    return move


def runs(workunit: Any, values: Any, name: str) -> list[np.ndarray[Any, Any]]:
    x, y = pk.View([n + 40], pk.double), pk.View([n + 40], pk.double)
    for k in range(n + 40):
        x[k] = 0.1 * k
    found = []
    for value in values:
        globals()[name] = value
        pk.parallel_for(n, workunit, y=y, x=x)
        found.append(np.array(y)[:n])
    return found


@pytest.fixture(autouse=True)
def put_back() -> Any:
    kept = STEP, EXPONENT, FIRST
    with fresh():
        yield
    globals().update(zip(("STEP", "EXPONENT", "FIRST"), kept, strict=True))


VALUES_OF_STEP = [0.5, 0.25, 0.1, -0.0, 1e300, 0.1, 0.3, math.inf, 0.5, 7.25, 0.7]


def expected(values: Any) -> list[np.ndarray[Any, Any]]:
    x, y = 0.1 * np.arange(n), np.zeros(n)
    found = []
    for value in values:
        with np.errstate(all="ignore"):
            y = y + value * x
        found.append(y)
    return found


@pytest.mark.parametrize("mode", [pyfuser.fusing, pyfuser.unfused])
def test_results_are_those_of_each_value(mode: Callable[[], Any]) -> None:
    with mode():
        found = runs(made(), VALUES_OF_STEP, "STEP")
    for one, other in zip(found, expected(VALUES_OF_STEP), strict=True):
        assert np.array_equal(one, other, equal_nan=True)


def test_values_are_compiled_for_a_few_times() -> None:
    workunit = made()
    state = workunit.__pyfuser__
    with pyfuser.fusing():
        runs(workunit, [0.001 * k for k in range(30)], "STEP")
    assert state.changing == ["STEP"]
    assert len(state.bindings) == 2
    assert sum(len(b.siblings) for b in state.bindings.values()) <= VALUES + 2


def test_what_is_called_before_is_taken_then() -> None:
    """A call that is recorded has the number of its time."""
    workunit = made()
    runs(workunit, [1.0, 2.0, 3.0, 4.0], "STEP")
    x, y = pk.View([n], pk.double), pk.View([n], pk.double)
    x[0] = 1.0
    with pyfuser.fusing():
        for value in (10.0, 200.0, 3000.0):
            globals()["STEP"] = value
            pk.parallel_for(n, workunit, y=y, x=x)
        globals()["STEP"] = 5e9
    assert y[0] == 3210.0


def test_a_number_that_becomes_an_integer_and_back() -> None:
    found = runs(made(), [0.5, 0.25, 0.75, 2, 0.125, 3, True, 0.5], "STEP")
    values = [0.5, 0.25, 0.75, 2, 0.125, 3, 1, 0.5]
    assert [f.tobytes() for f in found] == [e.tobytes() for e in expected(values)]


def test_a_number_that_is_gone() -> None:
    workunit = made()
    runs(workunit, [0.5, 0.25, 0.75, 2.0], "STEP")
    globals()["STEP"] = "text"
    with pytest.raises(WorkunitError, match="STEP"):
        pk.parallel_for(n, workunit, y=pk.View([n], pk.double), x=pk.View([n], pk.double))


def test_it_is_no_argument_that_a_call_may_give() -> None:
    workunit = made()
    runs(workunit, [0.5, 0.25, 0.75, 2.0], "STEP")
    x = pk.View([n], pk.double)
    with pytest.raises(ArgumentError, match="unknown argument 'STEP'"):
        pk.parallel_for(n, workunit, y=x, x=x, STEP=1.0)


def test_a_variable_of_a_closure() -> None:
    factor = 1.0

    @pk.workunit
    def scale(i, y, x):
        y[i] = factor * x[i]

    x, y = pk.View([n], pk.double), pk.View([n], pk.double)
    x[1] = 1.0
    before = COUNTERS.compilations
    for k in range(12):
        factor = 1.0 + k
        pk.parallel_for(n, scale, y=y, x=x)
        assert y[1] == 1.0 + k
    assert scale.__pyfuser__.changing == ["factor"]
    assert COUNTERS.compilations - before <= VALUES + 2


@pytest.mark.parametrize("marked", [True, False])
def test_integers_and_exponents_stay_constants(marked: bool) -> None:
    @pk.workunit
    def power(i, y, x):
        y[i] = x[i] ** EXPONENT

    @pk.workunit
    def shift(i, y, x):
        y[i] = x[i + FIRST]

    power, shift = (pyfuser.fuse(each) if marked else each for each in (power, shift))
    found = runs(power, [2.0, 3.0, 0.5, 1.5], "EXPONENT")
    assert np.allclose(found[3], (0.1 * np.arange(n)) ** 1.5)
    shifted = runs(shift, [0, 1, 2, 3], "FIRST")
    assert shifted[3].tobytes() == (0.1 * np.arange(3, n + 3)).tobytes()
    assert power.__pyfuser__.changing == shift.__pyfuser__.changing == []


def test_the_marked_form_shares_what_changes() -> None:
    workunit = made()
    both = workunit, pyfuser.fuse(workunit)
    runs(workunit, [0.5, 0.25, 0.75, 2.0], "STEP")
    assert both[1].__pyfuser__.changing == ["STEP"]
    found = runs(both[1], [0.5, 0.25], "STEP")
    assert [f.tobytes() for f in found] == [e.tobytes() for e in expected([0.5, 0.25])]
