"""What the arithmetic of an iteration costs."""

from __future__ import annotations

from typing import Any

import pykokkos as pk

from pyfuser.ir.dtypes import DType
from pyfuser.ir.weights import TRIPS, arithmetic
from pyfuser.lower.lower import lower
from pyfuser.lower.types import ScalarType, ViewType

VIEW, INDICES = ViewType(DType.FLOAT64, 1), ViewType(DType.INT32, 1)
NUMBER = ScalarType(DType.INT32)


@pk.workunit
def no_loop(i, y, x):
    y[i] = x[i] + 1.0


@pk.workunit
def up_to(i, y, x, n, k):
    t = 0.0
    for j in range(k + 1, 2 * n, 3):
        t += x[j]
    y[i] = t


@pk.workunit
def of_data(i, y, x, m):
    t = 0.0
    for j in range(m[i]):
        t += x[j]
    y[i] = t


def cost(function: Any, **scalars: int) -> int:
    kinds = {"y": VIEW, "x": VIEW, "n": NUMBER, "k": NUMBER, "m": INDICES}
    names = function.__code__.co_varnames[1 : function.__code__.co_argcount]
    unit = lower(function, "for", 1, {name: kinds[name] for name in names}).workunit
    known = {
        param.sym: scalars[param.sym.name] for param in unit.params if param.sym.name in scalars
    }
    return arithmetic(unit, known)


def test_a_loop_that_arguments_bound_has_their_trips() -> None:
    trip = (cost(up_to, n=100, k=10) - cost(up_to, n=50, k=10)) // 33
    assert trip == cost(no_loop)  # a load and an addition
    assert cost(up_to, n=100, k=10) == len(range(11, 200, 3)) * trip
    assert cost(up_to, n=2, k=10) == 0


def test_other_loops_have_as_many_as_is_assumed() -> None:
    trip = cost(no_loop)
    assert cost(up_to) == cost(up_to, n=100) == TRIPS * trip
    assert cost(of_data) == TRIPS * trip + 2  # the load of the bound
