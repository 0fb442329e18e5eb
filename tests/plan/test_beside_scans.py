"""What can go with a scan stands beside it, where dependences leave the order free."""

from __future__ import annotations

import pytest

from pyfuser.analysis.dependences import dependences
from pyfuser.plan import partition as partitions
from pyfuser.plan.cost_model import CostModel
from pyfuser.plan.partition import partition
from pyfuser.trace.call import Space
from tests.analysis.build import S, View, call, region, trace, workunit
from tests.plan.test_scans import scan
from tests.plan.test_sweeps import COPY, INNER, MACHINE, NEAR, N, W, X, Y, Z

FEW = 256
TINY = Space((0,), (FEW,))
T, U = region(8, FEW), region(9, FEW)
SMALL = COPY(T, U, TINY)
SUMS, TWICE = scan(X, Y), COPY(X, Z)


def added():
    i, x, y, z = S("i"), View("x"), View("y"), View("z")
    unit = workunit("add", [i], [x, y, z], [z[i] << x[i] + y[i]])
    return lambda x, y, z, space=INNER: call(unit, space, x, y, z)


ADD = added()


@pytest.fixture(autouse=True)
def small_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "cost_model", lambda shape: CostModel(shape, MACHINE))


def launches(*calls):
    """The calls of each launch."""
    shape = trace(*calls)
    graph = dependences(shape)
    plan = partition(shape, graph)
    order = [n for group in plan.groups for n in group.calls]
    for link in graph.dependences:
        assert order.index(link.source) < order.index(link.sink)
    return {
        tuple(sorted(n for place in places for n in plan.groups[place].calls))
        for places in plan.launches()
    }


def test_a_small_call_between_a_scan_and_a_map():
    assert launches(SUMS, SMALL, TWICE) == {(0, 2), (1,)}
    assert launches(TWICE, SMALL, SUMS) == {(0, 2), (1,)}
    assert launches(SUMS, SMALL, SMALL, TWICE, COPY(Y, W)) >= {(0, 3, 4)}


def test_a_small_call_before_a_map_and_a_scan():
    assert launches(SMALL, TWICE, SUMS) == {(0,), (1, 2)}
    assert launches(SMALL, SUMS, TWICE) == {(0,), (1, 2)}


def test_dependences_keep_their_order():
    """The map reads what the small call between writes; the scan reads what it writes."""
    part = region(0, FEW)  # the beginning of X
    assert launches(SUMS, COPY(T, part, TINY), TWICE) == {(0,), (1, 2)}
    assert launches(COPY(X, Z), COPY(region(2, FEW), T, TINY), scan(Z, Y)) == {(0, 1), (2,)}


def test_the_launch_that_saves_more_is_chosen():
    """The sum shares two arrays with the call before it, or one, and one with the scan."""
    shifted, scanned = Space((5,), (N - 5,)), scan(W, Y)
    v, u = region(6, N), region(7, N)
    assert launches(ADD(X, Z, v, shifted), ADD(X, Z, W), scanned) == {(0, 1), (2,)}
    assert launches(ADD(X, u, v, shifted), ADD(X, Z, W), scanned) == {(0, 1), (2,)}
    assert launches(ADD(X, Z, v, TINY), ADD(X, Z, W), scanned) == {(0,), (1, 2)}
    assert launches(ADD(X, Z, v), ADD(X, Z, W), scanned) == {(0, 1, 2)}
    assert launches(ADD(X, Z, v, shifted), SMALL, ADD(X, Z, W), scanned) == {(0, 1, 2), (3,)}


def test_a_map_of_other_memory_stays():
    other = COPY(region(6, N), region(7, N))
    assert launches(SUMS, SMALL, other) == {(0,), (1, 2)}


def test_a_map_that_needs_other_iterations_stays():
    assert launches(SUMS, SMALL, NEAR(Y, Z)) == {(0,), (1, 2)}
