"""Where the calls of a long loop are cut."""

from __future__ import annotations

import pykokkos as pk
import pytest

import pyfuser
from pyfuser.analysis.dependences import dependences
from pyfuser.plan import rounds
from pyfuser.plan.partition import partition
from pyfuser.plan.rounds import MAX_CALLS, cuts_of
from pyfuser.runtime.session import SESSION
from pyfuser.support.caches import clear_caches
from pyfuser.trace.call import Space
from tests.analysis.build import S, View, call, region, trace, workunit

N = 100_000
X, Y = region(0, N), region(1, N)
WHOLE = Space((0,), (N,))


def named(name):
    i, x, y = S("i"), View("x"), View("y")
    return call(workunit(name, [i], [x, y], [y[i] << 2.0 * x[i]]), WHOLE, X, Y)


FIRST, LAST = named("first"), named("last")
ROUND = [named(f"step{n}") for n in range(7)]
PART = MAX_CALLS - MAX_CALLS % 7


def cuts(*calls):
    return sorted(cuts_of(trace(*calls)))


def test_a_loop_is_cut_after_whole_rounds_behind_what_comes_before():
    assert cuts(FIRST, *ROUND * 20, LAST) == [1, 1 + PART, 1 + 2 * PART]
    assert cuts(*ROUND * 18) == [0, PART, 2 * PART]  # nothing is left over


def test_what_would_be_one_part_is_not_cut():
    assert cuts(FIRST, *ROUND * 17, LAST) == []
    assert cuts(*[named(f"other{n}") for n in range(3 * MAX_CALLS)]) == []
    assert cuts(*[FIRST] * MAX_CALLS) == []


def test_a_round_that_is_longer_than_half_a_kernel_is_one_part():
    long = [named(f"step{n}") for n in range(40)]
    assert cuts(*long * 3) == [0, 40, 80, 120]


def test_nothing_is_left_over_where_fewer_rounds_do_without():
    three = ROUND[:3]
    assert cuts(*three * 100) == [60 * n for n in range(6)]
    assert cuts(*three * 101) == [63 * n for n in range(5)]  # 101 is a prime


def test_other_sizes_are_another_loop():
    short = call(FIRST.workunit, Space((0,), (N - 1,)), X, Y)
    assert cuts(*[FIRST] * 128, *[short] * 128) == [0, 64, 128, 192, 256]


def test_parts_have_the_same_groups():
    shape = trace(FIRST, *ROUND * 27, LAST)
    groups = [g.calls for g in partition(shape, dependences(shape)).groups]
    parts = [
        [tuple(n - start for n in g) for g in groups if start <= g[0] < start + PART]
        for start in (1, 1 + PART, 1 + 2 * PART)
    ]
    assert parts[0] == parts[1] == parts[2]
    assert sum(map(len, parts[0])) == PART


@pk.workunit
def push(i: int, x: pk.View1D[pk.double], y: pk.View1D[pk.double]) -> None:
    y[i] += 0.5 * x[i]


@pk.workunit
def pull(i: int, x: pk.View1D[pk.double], y: pk.View1D[pk.double]) -> None:
    x[i] -= 0.25 * y[i]


@pk.workunit
def damp(i: int, y: pk.View1D[pk.double]) -> None:
    y[i] *= 0.75


def kernels() -> int:
    """How many different kernels a loop of three calls, 100 times, has."""
    clear_caches()
    x, y = (pk.View([1000], pk.double) for _ in range(2))
    x.data[:] = 1.0
    with pyfuser.fusing():
        pk.parallel_for(1000, push, x=x, y=y)
        for _ in range(100):
            pk.parallel_for(1000, pull, x=x, y=y)
            pk.parallel_for(1000, push, x=x, y=y)
            pk.parallel_for(1000, damp, y=y)
        pyfuser.sync()
    return len({launch.launchable for launch in SESSION.flushes[-1].program.launches})


def test_all_parts_are_one_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kernels() == 2  # that of the first call, and five times that of 20 rounds
    monkeypatch.setattr(rounds, "left_out", "whole-rounds".__eq__)
    assert kernels() == 5
