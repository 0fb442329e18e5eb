"""Work arrays that a step overwrites in part, or by several calls, wait too: with their twins."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pyfuser
from pyfuser.analysis.work_arrays import Overwritten
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.ir.dtypes import DType
from pyfuser.runtime import postpone, unread
from pyfuser.runtime.session import TRACER
from pyfuser.support.counters import COUNTERS
from tests.sessions import fresh
from tests.vendors import tune

N = 16


@pk.workunit
def slope(i, k, x, a):
    k[i] = a * x[i]


@pk.workunit
def first(i, k, x, a):
    k[0][i] = a * x[i]


@pk.workunit
def second(i, k, x, a):
    k[1][i] = a * x[i] + 1.0


@pk.workunit
def third(i, k, x, a):
    k[2][i] = a * x[i] + 2.0


@pk.workunit
def advance(i, y, x, k):
    y[i] = x[i] + k[i]


@pk.workunit
def advance_all(i, y, x, k):
    y[i] = x[i] + k[0][i] + k[1][i] + k[2][i]


@pk.workunit
def total(i, acc, y):
    acc += y[i]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As soon as a trace has come back, however small it is; nothing is known from before."""
    tune(monkeypatch, postponed_bytes=1)
    monkeypatch.setattr(postpone, "_seconds", lambda program: 1.0)  # so small, any may win
    tune(monkeypatch, trial_kernel=0.0)
    with fresh():
        yield


def inside(begin: int = 1, end: int = N - 1) -> Any:
    return pk.RangePolicy(begin, end)


class Grid:
    """A step computes k inside, from x, and y from that; k has other values around it."""

    def __init__(self, read: Any = None) -> None:
        self.x, self.y, self.k = (pk.View([N], pk.double) for _ in range(3))
        self.read = inside() if read is None else read
        with pyfuser.fusing():
            pk.parallel_for(1, slope, k=self.k, x=self.x, a=0.0)
            self.x.fill(1.0)
            self.k.fill(9.0)
            pyfuser.sync()
        self.y[0] = 0.0  # which the host has seen, so it is stored

    def step(self, a: float) -> None:
        with pyfuser.fusing():
            pk.parallel_for(inside(), slope, k=self.k, x=self.x, a=a)
            pk.parallel_for(self.read, advance, y=self.y, x=self.x, k=self.k)
            assert np.isfinite(float(pk.parallel_reduce(self.read, total, y=self.y)))

    def waiting(self, steps: int = 16) -> int:
        """How many calls were postponed by so many steps."""
        before = COUNTERS.postponed
        for n in range(steps):
            self.step(float(n))
        return COUNTERS.postponed - before


def test_a_part_waits_and_what_is_around_it_stays() -> None:
    grid = Grid()
    assert grid.waiting() > 0 and TRACER.postponed == 1
    assert grid.k[0] == 9.0 and grid.k[N - 1] == 9.0
    assert np.array_equal(grid.k.data[1:-1], np.full(N - 2, 15.0))
    assert grid.y[1] == 16.0


@pytest.mark.parametrize("read", [inside(0, N - 1), inside(1, N)])
def test_a_part_does_not_wait_where_more_is_read(read: Any) -> None:
    grid = Grid(read)
    assert grid.waiting() == 0
    assert (grid.y[0], grid.y[N - 1]) in ((10.0, 0.0), (0.0, 10.0))


def test_another_step_that_overwrites_less_has_it_run() -> None:
    grid = Grid()
    assert grid.waiting() > 0
    for _ in range(3):
        with pyfuser.fusing():
            pk.parallel_for(inside(2, N - 2), slope, k=grid.k, x=grid.x, a=100.0)
            pk.parallel_for(inside(2, N - 2), advance, y=grid.y, x=grid.x, k=grid.k)
            assert float(pk.parallel_reduce(inside(2, N - 2), total, y=grid.y)) > 0.0
    assert [grid.k[n] for n in range(4)] == [9.0, 15.0, 100.0, 100.0]


class Components(Grid):
    """A step computes the rows of k by a call each."""

    def __init__(self, rows: tuple[int, ...] = (0, 1, 2)) -> None:
        super().__init__()
        self.rows, self.k = rows, pk.View([3, N], pk.double)

    def step(self, a: float) -> None:
        with pyfuser.fusing():
            for c in self.rows:
                pk.parallel_for(N, (first, second, third)[c], k=self.k, x=self.x, a=a)
            pk.parallel_for(N, advance_all, y=self.y, x=self.x, k=self.k)
            assert np.isfinite(float(pk.parallel_reduce(N, total, y=self.y)))


def test_rows_that_calls_overwrite_together_wait() -> None:
    loop = Components()
    assert loop.waiting() > 0 and TRACER.postponed == 3
    assert np.array_equal(loop.k.data[:, 4], [15.0, 16.0, 17.0])


@pytest.mark.parametrize("rows", [(0, 1), (0, 2), (1, 1, 2)])
def test_rows_that_are_not_all_there_do_not(rows: tuple[int, ...]) -> None:
    loop = Components(rows)
    assert loop.waiting() == 0
    assert loop.k[1][4] == (16.0 if 1 in rows else 0.0)


def test_calls_of_several_launches_may_be_interrupted_in_between() -> None:
    part = Overwritten(True, (((0, 2), (0, 9)),), frozenset([0, 1, 2]))

    def program(*launches: tuple[int, ...]) -> Any:
        return SimpleNamespace(launches=[SimpleNamespace(calls=calls) for calls in launches])

    together, apart = program((0, 1, 2, 3), (4,)), program((0, 1), (2, 3))
    assert unread.is_at_once([together], part) and unread.is_at_once([], part)
    assert not unread.is_at_once([apart], part)
    assert not unread.is_at_once([together, apart], part)


def test_reads_at_the_end_of_a_run_do_not_count_as_reads_of_the_arrays() -> None:
    """More flushes than may come in between say nothing of them."""
    grid = Grid()
    for _ in range(3):
        grid.waiting(5)
        with pyfuser.fusing():
            for _ in range(postpone.BETWEEN + 3):
                assert float(pk.parallel_reduce(N, total, y=grid.x)) == N
    assert grid.waiting() > 0


F64, F32 = DType.FLOAT64, DType.FLOAT32


@pytest.mark.parametrize(
    ("shape", "strides", "dtype", "box", "covered"),
    [
        ((4, 3), (24, 8), F64, ((1, 2), (0, 2)), True),
        ((3, 4), (24, 8), F64, ((1, 2), (0, 2)), False),  # other elements have these numbers
        ((4, 3), (8, 32), F64, ((1, 2), (0, 2)), False),
        ((4, 3), (24, 8), F32, ((1, 2), (0, 2)), False),
        ((4, 3), (24, 8), F64, ((0, 2), (0, 2)), False),  # more than is overwritten
    ],
)
def test_a_part_is_compared_in_the_same_view_of_memory(
    shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType, box: Any, covered: bool
) -> None:
    region: Any = SimpleNamespace(shape=(4, 3), strides=(24, 8), dtype=F64)
    before: Any = SimpleNamespace(shape=shape, strides=strides, dtype=dtype)
    part = Overwritten(False, (((1, 3), (0, 2)),), frozenset([0]))
    other = Overwritten(False, (box,), frozenset([0]))
    assert unread.covers(region, part, before, other) is covered
    assert unread.covers(region, part._replace(whole=True), before, other)


@pk.workunit
def grow(i, k, x):
    k[i] = k[i] + x[i]


@pk.workunit
def use(i, y, k):
    y[i] = k[i] + 1.0


def test_a_part_that_each_step_adds_to_is_added_to_once() -> None:
    """The other part is overwritten, all that its argument has; y is computed from both."""
    grid = Grid()
    x, k, y = grid.x, grid.k, pk.View([N], pk.double)
    for n in range(24):
        with pyfuser.fusing():
            pk.parallel_for(8, slope, k=k[8:], x=x, a=2.0)
            pk.parallel_for(8, grow, k=k[:8], x=x)
            pk.parallel_for(N, use, y=y, k=k)
            assert float(pk.parallel_reduce(N, total, y=y)) == 8.0 * (10.0 + n + 1) + 8.0 * 3.0
    assert y[0] == 10.0 + 24 and k[0] == 9.0 + 24
