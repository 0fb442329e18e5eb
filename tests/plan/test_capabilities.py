"""What an engine cannot do is not planned; what it can do is."""

from __future__ import annotations

import pytest

from pyfuser.analysis.dependences import dependences
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Accumulator, Update
from pyfuser.plan.capabilities import ALL, Capabilities
from pyfuser.plan.partition import partition
from tests.analysis.build import S, View, call, region, trace, workunit

N = 1_000_000
X, Y, Z = (region(k, N) for k in range(3))


def total():
    i, x, acc = S("i"), View("x"), S("acc", DType.FLOAT64)
    return workunit("sum", [i], [x], [Update("+", acc.sym, (), x[i].node)], [Accumulator(acc.sym)])


def shifted(shift):
    i, x, y = S("i"), View("x"), View("y")
    return workunit("map", [i], [x, y], [y[i] << 2.0 * x[i + shift]])


def planned(capabilities, *calls):
    shape = trace(*calls)
    return partition(shape, dependences(shape), capabilities)


@pytest.mark.parametrize(("most", "groups"), [(1, 3), (2, 2), (3, 1)])
def test_accumulators_of_a_kernel(most, groups):
    calls = [call(total(), N, X, pattern="reduce") for _ in range(3)]
    assert len(planned(Capabilities(accumulators=most), *calls).groups) == groups


def test_a_map_joins_a_reduction_that_is_full():
    calls = call(shifted(0), N, X, Y), call(total(), N, Y, pattern="reduce")
    assert len(planned(Capabilities(accumulators=1), *calls).groups) == 1


@pytest.mark.parametrize("sweeps", [True, False])
def test_sweeps(sweeps):
    calls = [
        call(shifted(0), N, X, Y),
        call(shifted(1), N - 1, Y, Z),
    ]
    plan = planned(Capabilities(sweeps=sweeps), *calls)
    assert len(plan.groups) == 2
    assert bool(plan.sweeps) == sweeps
    assert planned(ALL, *calls).sweeps
