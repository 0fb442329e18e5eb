"""Traces whose sizes never come back run the code of one of other sizes, where that is proved.

Each legal case has its twin: what lies, lives or overlaps otherwise has a program of its own.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pykokkos as pk
import pytest
from numpy.testing import assert_array_equal

import pyfuser
from pyfuser.plan.plan import Note
from pyfuser.runtime import families
from pyfuser.runtime.session import SESSION
from pyfuser.support.counters import COUNTERS
from pyfuser.trace.shape import RegionShape, TraceShape
from tests.soundness.workunits import total


@pk.workunit
def put(i, x, v):
    x[i] = v + i


@pk.workunit
def copy_from(i, x, y, k):
    y[i] = x[i + k]


@pk.workunit
def add(i, x, y):
    y[i] += x[i]


@pk.workunit
def look_up(i, x, y, at):
    y[i] = x[at[i]]


@pk.workunit
def tally(i, count, at):
    pk.atomic_add(count, [at[i]], 1)


@pk.workunit
def scan(i, acc, last, x, y):
    acc += x[i]
    if last:
        y[i] = acc


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    pyfuser.sync()
    SESSION.clear()
    COUNTERS.plans = COUNTERS.resized = 0
    yield
    pyfuser.sync()


def chain(n: int, x: np.ndarray, y: np.ndarray, k: int = 0) -> None:
    with pyfuser.fusing():
        pk.parallel_for(n, put, x=x, v=1.5)
        pk.parallel_for(n, copy_from, x=x, y=y, k=k)
        pk.parallel_for(n, add, x=x, y=y)


def chained(n: int, x: np.ndarray, y: np.ndarray, k: int = 0) -> None:
    x[:n] = 1.5 + np.arange(n)
    y[:n] = x[k : n + k]
    y[:n] += x[:n]


def check(n: int, memory: np.ndarray, x: slice, y: slice, k: int = 0) -> None:
    """The chain on two slices of one array, against NumPy."""
    expected = memory.copy()
    chained(n, expected[x], expected[y], k)
    chain(n, memory[x], memory[y], k)
    assert_array_equal(memory, expected)


def test_sizes_that_change_are_planned_twice() -> None:
    for n in range(70, 100):
        check(n, np.zeros(300), slice(0, 120), slice(150, 290))
    # Two of them, and one more for what is proved for many
    assert COUNTERS.plans == families.LOOKED
    assert COUNTERS.resized == 30 - families.LOOKED


def test_views_that_move_together_are_of_one_family() -> None:
    memory = np.zeros(600)
    for n in range(70, 90):
        check(n, memory, slice(2 * n, 2 * n + 100), slice(2 * n + 100, 2 * n + 300))
    assert COUNTERS.resized == 20 - families.LOOKED


def test_views_that_move_onto_each_other_are_not() -> None:
    """The twin: what is read moves onto what another iteration writes."""
    for n in range(25):
        memory = np.arange(600.0)
        start, out = 120 - 5 * n, np.zeros(70)
        with pyfuser.fusing():
            pk.parallel_for(70, put, x=memory[:100], v=1.5)
            pk.parallel_for(70, copy_from, x=memory[start : start + 100], y=out, k=0)
        expected = np.arange(600.0)
        expected[:70] = 1.5 + np.arange(70)
        assert_array_equal(memory, expected)
        assert_array_equal(out, expected[start : start + 70])
    assert COUNTERS.plans > 15  # one for each distance


@pytest.mark.parametrize("order", [range(70, 126, 2), range(124, 68, -2)])
def test_a_range_that_grows_into_what_is_read(order: range) -> None:
    """From 90 on, what `copy_from` reads at i + 90 is what `put` writes in another iteration."""
    for n in order:
        check(n, np.arange(600.0), slice(0, 300), slice(300, 600), 90)


def test_memory_that_is_still_read_is_kept() -> None:
    """One trace in two lets its View go before it runs: it is no temporary in the other."""
    for n in range(70, 100):
        x, y = pk.View([n], pk.double), pk.View([n], pk.double)
        with pyfuser.fusing():
            pk.parallel_for(n, put, x=x, v=1.5)
            pk.parallel_for(n, copy_from, x=x, y=y, k=0)
            kept = x if n % 2 else None
            del x
        assert_array_equal(y.data, 1.5 + np.arange(n))
        if kept is not None:
            assert_array_equal(kept.data, 1.5 + np.arange(n))
    assert COUNTERS.resized


def test_fresh_views_that_are_written_in_part_are_zero_elsewhere() -> None:
    for n in range(70, 100):
        x, y = pk.View([100], pk.double), pk.View([n], pk.double)
        with pyfuser.fusing():
            pk.parallel_for(n, put, x=x, v=1.5)
            pk.parallel_for(n, copy_from, x=x, y=y, k=0)
        assert_array_equal(x.data, np.where(np.arange(100) < n, 1.5 + np.arange(100), 0.0))
    assert COUNTERS.resized


def test_a_mistake_is_found() -> None:
    x, y = np.zeros(100), np.zeros(100)
    for n in range(70, 90):
        chain(n, x, y)
    assert COUNTERS.resized
    with pytest.raises(IndexError, match="runs from 0 to 100"):
        chain(101, x, y)


def test_scans_sums_and_elements_as_subscripts() -> None:
    """Also what is found by a number that no analysis knows."""
    rng = np.random.default_rng(2)
    for n in range(70, 110):
        at, x = rng.integers(0, n, n).astype(np.int32), rng.integers(0, 9, n).astype(float)
        y, z = np.zeros(n), np.zeros(n)
        with pyfuser.fusing():
            pk.parallel_for(n, look_up, x=x, y=y, at=at)
            pk.parallel_scan(n, scan, x=y, y=z)
            found = pk.parallel_reduce(n, total, x=z)
        assert_array_equal(z, np.cumsum(x[at]))
        assert float(found) == np.cumsum(x[at]).sum()
    assert COUNTERS.resized


def test_tables_have_code_of_their_own() -> None:
    for n in range(70, 80):
        at, count, y = np.arange(4000, dtype=np.int32) % n, pk.View([n], pk.int64), np.zeros(4000)
        with pyfuser.fusing():
            pk.parallel_for(4000, put, x=y, v=0.5)
            pk.parallel_for(4000, tally, count=count, at=at)
        assert_array_equal(count.data, np.bincount(at, minlength=n))


def test_a_trace_of_a_family_that_comes_back_is_replayed() -> None:
    x, y = np.zeros(100), np.zeros(100)
    for n in range(70, 90):
        chain(n, x, y)
    resized, replays = COUNTERS.resized, COUNTERS.replays
    for _ in range(4):
        chain(89, x, y)
    assert COUNTERS.resized == resized
    assert COUNTERS.replays > replays


@pk.workunit
def halve(i, x, d):
    x[i] = x[i] + 7 // d


def test_results_of_the_trace_are_arguments() -> None:
    for n in range(70, 80):
        x = np.ones(n)
        with pyfuser.fusing():
            found = pk.parallel_reduce(n, total, x=x)
            pk.parallel_for(n, put, x=x, v=found)
        assert_array_equal(x, float(n) + np.arange(n))
    assert COUNTERS.resized


def test_divisions_are_looked_at_each_time() -> None:
    for n in range(70, 80):
        x = np.zeros(n)
        with pyfuser.fusing():
            pk.parallel_for(n, put, x=x, v=1.5)
            pk.parallel_for(n, halve, x=x, d=2)
        assert_array_equal(x, 4.5 + np.arange(n))
    assert not COUNTERS.resized


def test_what_decides_the_code_of_a_kernel() -> None:
    chain(80, np.zeros(100), np.zeros(100))
    (program,) = SESSION.programs.values()
    kernel = program.kernels[0]
    unit = kernel.workunit
    sym, shape = kernel.workunit.params[0].sym, kernel.shapes[0]
    assert isinstance(shape, RegionShape)
    assert families._same_code(kernel, replace(kernel, space=kernel.space._replace(end=(90,))))
    for changed in (
        replace(kernel, workunit=replace(unit, body=unit.body[:1])),
        replace(kernel, slots=kernel.slots[1:]),
        replace(kernel, results=(0,)),
        replace(kernel, overlaps=frozenset({frozenset({sym})})),
        replace(kernel, tables=((0, 8),)),
        replace(kernel, pattern="scan"),
        replace(kernel, shapes=(shape._replace(strides=(16,)), *kernel.shapes[1:])),
    ):
        assert not families._same_code(kernel, changed)


@pk.workunit
def as_many(i, acc, x):
    acc += x[i] + x.extent(0)


@pytest.mark.parametrize("unit", [total, as_many])
def test_traces_that_no_plan_is_proved_for_have_no_family(unit: object) -> None:
    values = [np.arange(200, dtype=dtype) for dtype in ("f8", "f4", "i4")]
    views = [
        x[part] for x in values for part in (slice(100), slice(None, None, -2), slice(50, 150))
    ]
    for n in (80, 90, 70, 60):
        for x in views:
            with pyfuser.unfused():
                expected = float(pk.parallel_reduce(n, unit, x=x))
            with pyfuser.fusing():
                assert float(pk.parallel_reduce(n, unit, x=x)) == expected


def test_rewritten_traces_and_those_of_a_gpu_have_no_family() -> None:
    chain(80, np.zeros(100), np.zeros(100))
    (program,) = SESSION.programs.values()
    given = program.given
    assert families._is_plain(program)
    shorter = TraceShape(given.calls[:2], given.clusters)
    assert not families._is_plain(replace(program, trace=shorter))
    noted = replace(program.plan, notes=(Note(0),))
    assert not families._is_plain(replace(program, plan=noted))
    there = tuple(c._replace(space=c.space._replace(execution="Cuda")) for c in given.calls)
    moved = TraceShape(there, given.clusters)
    assert not families._is_plain(replace(program, given=moved, trace=moved))


@pytest.mark.parametrize("seed", range(4))
def test_random_traces(seed: int) -> None:
    """Fused against unfused, with sizes and places drawn anew for each trace.

    All is written to places of one array, or to others, and read from any place of it.
    """
    rng = random.Random(seed)
    kinds = [rng.randrange(4) for _ in range(rng.randint(2, 6))]
    at = [rng.randrange(3) for _ in kinds]
    ks = [rng.choice((0, 0, 1, 70, 100)) for _ in kinds]

    def run(memory: np.ndarray, out: np.ndarray, n: int, starts: tuple[int, ...]) -> list[float]:
        views = [memory[start : start + 240] for start in starts]
        sums = []
        for place, (kind, a, k) in enumerate(zip(kinds, at, ks, strict=True)):
            if kind == 0:
                pk.parallel_for(n, put, x=views[a], v=0.5)
            elif kind == 1:
                pk.parallel_for(n, copy_from, x=views[a], y=out[place % 2], k=k)
            elif kind == 2:
                pk.parallel_for(n, add, x=out[place % 2], y=views[a])
            else:
                sums.append(pk.parallel_reduce(n, total, x=views[a]))
        return [float(s) for s in sums]

    for _ in range(40):
        n, base = rng.randint(64, 127), rng.randrange(40)
        gap = rng.choice((140, 140, 140, 100, 64 + n % 7, 3))
        starts = base, base + gap, base + 2 * gap
        memory, out = np.arange(1000.0), np.zeros((2, 300))
        expected, expected_out = memory.copy(), out.copy()
        with pyfuser.unfused():
            unfused = run(expected, expected_out, n, starts)
        with pyfuser.fusing():
            fused = run(memory, out, n, starts)
        assert_array_equal(memory, expected)
        assert_array_equal(out, expected_out)
        assert fused == unfused
