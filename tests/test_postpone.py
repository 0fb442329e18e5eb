"""Stores of work arrays that wait for a reader: when they do, and who reads."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pyfuser
import pyfuser.numpy as lazy
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.runtime import building, flush, postpone
from pyfuser.runtime.owed import Owed
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.support.counters import COUNTERS
from pyfuser.support.errors import KernelError
from pyfuser.trace.call import Call, Space
from pyfuser.trace.memory import Allocation
from tests.sessions import fresh
from tests.vendors import tune

N = 16


@pk.workunit
def slope(i, k, x, a):
    k[i] = a * x[i]


@pk.workunit
def advance(i, y, x, k):
    y[i] = x[i] + k[i]


@pk.workunit
def total(i, acc, y):
    acc += y[i]


@pk.workunit
def most(i, k, x, a):
    if i > 0:
        k[i] = a * x[i]


@pk.workunit
def more(i, k, x, a):
    k[i] = k[i] + a * x[i]


@pk.workunit
def ratio(i, k: pk.View1D[pk.int64], x: pk.View1D[pk.int64], a: int):
    k[i] = x[i] // a


@pk.workunit
def rows(i, k, x, a):
    for j in range(3):
        k[i][j] = a * x[i] + j


@pk.workunit
def two_of_three(i, k, x, a):
    for j in range(2):
        k[i][j] = a * x[i] + j


@pk.workunit
def sum_of_rows(i, y, x, k):
    y[i] = x[i] + k[i][0] + k[i][1] + k[i][2]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As soon as a trace has come back, however small it is; nothing is known from before."""
    tune(monkeypatch, postponed_bytes=1)
    monkeypatch.setattr(postpone, "_seconds", lambda program: 1.0)  # so small, any may win
    tune(monkeypatch, trial_kernel=0.0)
    with fresh():
        yield


class Loop:
    """A loop whose step overwrites k, from x, and y, and reads the sum of y."""

    def __init__(self, first: Any = slope, shape: tuple[int, ...] = (N,)) -> None:
        self.first = first
        self.second = sum_of_rows if len(shape) > 1 else advance
        self.x, self.y = pk.View([N], pk.double), pk.View([N], pk.double)
        self.k = pk.View([*shape], pk.double)
        pk.parallel_for(N, slope, k=self.x, x=self.x, a=0.0)
        pk.parallel_for(N, advance, y=self.x, x=self.x, k=pk.View([N], pk.double))
        self.x.fill(1.0)
        self.y[0] = 0.0  # which the host has seen, so it is stored

    def step(self, a: float) -> float:
        with pyfuser.fusing():
            pk.parallel_for(N, self.first, k=self.k, x=self.x, a=a)
            pk.parallel_for(N, self.second, y=self.y, x=self.x, k=self.k)
            return float(pk.parallel_reduce(N, total, y=self.y))

    def warm(self, steps: int = 16) -> int:
        """How many calls were postponed by so many steps."""
        before = COUNTERS.postponed
        for n in range(steps):
            assert np.isfinite(self.step(float(n)))
        return COUNTERS.postponed - before


def stored(view: Any) -> bool:
    buffer = view._region.buffer
    return type(buffer) is Allocation and buffer.root is not None


@pytest.mark.parametrize("waiting", [0.9, 1.1])
def test_what_is_slower_than_with_stores_waits_no_more(
    waiting: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Launches that store may have been tried, and taken apart."""
    loop = Loop()
    assert loop.warm() > 0
    programs = {id(flush.program): flush.program for flush in SESSION.flushes if flush.waiting}
    monkeypatch.setattr(postpone, "_seconds", lambda p: waiting if id(p) in programs else 1.0)
    tune(monkeypatch, timed_runs=3)
    assert loop.warm() > 0, "a run or two may have been disturbed"
    loop.warm(postpone.LOST)
    assert bool(loop.warm()) == (waiting < 1.0)


def test_a_work_array_is_not_stored_until_it_is_read() -> None:
    loop = Loop()
    assert loop.warm() > 0
    assert pyfuser.pending() == () and TRACER.postponed == 1
    pyfuser.sync()
    pk.fence()
    assert TRACER.postponed == 1, "nobody has read it"
    launches = COUNTERS.launches
    assert loop.k[3] == 15.0 and TRACER.postponed == 0
    assert COUNTERS.launches == launches + 1
    assert np.array_equal(loop.k.data, np.full(N, 15.0))
    assert loop.step(2.0) == 3.0 * N and loop.k[0] == 2.0


def test_one_that_never_had_memory_gets_none() -> None:
    loop = Loop()
    loop.warm()
    loop.k = pk.View([N], pk.double)
    loop.warm(3)
    assert not stored(loop.k) or TRACER.postponed
    assert loop.k[5] == 2.0


def test_all_elements_by_loops_and_constants() -> None:
    loop = Loop(rows, (N, 3))
    assert loop.warm() > 0
    assert np.array_equal(loop.k.data[4], [15.0, 16.0, 17.0])


@pytest.mark.parametrize("first, shape", [(most, (N,)), (more, (N,)), (two_of_three, (N, 3))])
def test_what_is_not_overwritten_whole_does_not_wait(first: Any, shape: tuple[int, ...]) -> None:
    loop = Loop(first, shape)
    assert loop.warm() == 0
    if first is more:
        assert loop.k[1] == sum(range(16))


def test_results_that_no_call_reads_do_not_wait() -> None:
    k, x, y = (pk.View([N], pk.double) for _ in range(3))
    before = COUNTERS.postponed
    for n in range(12):
        with pyfuser.fusing():
            pk.parallel_for(N, slope, k=k, x=x, a=float(n))
            assert float(pk.parallel_reduce(N, total, y=x)) == 0.0
    assert COUNTERS.postponed == before
    for n in range(12):  # the twin
        with pyfuser.fusing():
            pk.parallel_for(N, slope, k=k, x=x, a=float(n))
            pk.parallel_for(N, advance, y=y, x=x, k=k)
            assert float(pk.parallel_reduce(N, total, y=x)) == 0.0
    assert COUNTERS.postponed > before and [*TRACER.postponing.arrays.values()] == [
        k._region.buffer
    ]


def test_integers_that_divide_do_not_wait() -> None:
    k, x, y = (pk.View([N], pk.int64) for _ in range(3))
    for a in range(1, 12):
        with pyfuser.fusing():
            pk.parallel_for(N, ratio, k=k, x=x, a=a)
            pk.parallel_for(N, advance, y=y, x=x, k=k)
            assert float(pk.parallel_reduce(N, total, y=y)) == 0.0
    assert TRACER.postponed == 0


def test_what_is_computed_from_memory_that_the_step_changes_does_not_wait() -> None:
    loop = Loop()
    x, k = loop.x, loop.k
    before = COUNTERS.postponed
    for n in range(8):
        with pyfuser.fusing():
            pk.parallel_for(N, slope, k=k, x=x, a=2.0)
            pk.parallel_for(N, advance, y=x, x=x, k=k)  # in place
            assert float(pk.parallel_reduce(N, total, y=x)) == N * 3.0 ** (n + 1)
    assert COUNTERS.postponed == before
    assert k[0] == 2.0 * 3.0**7


def test_memory_that_others_reach_does_not_wait() -> None:
    loop = Loop()
    loop.x = np.ones(N)
    assert loop.warm() == 0
    loop.x[:] = 5.0
    assert loop.k[0] == 15.0
    kept = Loop()
    array = kept.x.data  # alive
    assert kept.warm() == 0
    array[:] = 5.0
    assert kept.k[0] == 15.0
    seen = Loop()
    array = seen.k.data
    assert seen.warm() == 0 and np.array_equal(array, np.full(N, 15.0))


def _set(loop: Loop) -> None:
    loop.x[2] = 7.0


def _fill(loop: Loop) -> None:
    loop.x.fill(7.0)


def _array(loop: Loop) -> None:
    loop.x.data[:] = 7.0


def _unfused(loop: Loop) -> None:
    with pyfuser.unfused():
        pk.parallel_for(N, slope, k=loop.x, x=loop.y, a=3.0)


def _call(loop: Loop) -> None:
    pk.parallel_for(N, slope, k=loop.x, x=loop.y, a=3.0)


def _recorded(loop: Loop) -> None:
    with pyfuser.fusing():
        pk.parallel_for(N, slope, k=loop.x, x=loop.y, a=3.0)


def _copied(loop: Loop) -> None:
    loop.x[:] = loop.y


def _resized(loop: Loop) -> None:
    loop.x.resize(0, 2 * N)


def _thread(loop: Loop) -> None:
    thread = threading.Thread(target=_set, args=(loop,))
    thread.start()
    thread.join()


def _thread_launches(loop: Loop) -> None:
    thread = threading.Thread(target=_call, args=(loop,))
    thread.start()
    thread.join()


CHANGES = (
    _set, _fill, _array, _unfused, _call, _recorded, _copied, _resized, _thread, _thread_launches,
)  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_what_it_is_computed_from_changes_after_the_step(change: Callable[[Loop], None]) -> None:
    loop = Loop()
    loop.warm()
    assert TRACER.postponed == 1
    change(loop)
    assert np.array_equal(loop.k.data, np.full(N, 15.0))


def test_reading_what_it_is_computed_from_has_nothing_run() -> None:
    loop = Loop()
    loop.warm()
    assert loop.x[3] == 1.0 and loop.y[3] == 16.0 and TRACER.postponed == 1
    assert loop.step(1.0) == 2.0 * N


def test_the_read_that_runs_the_step_finds_what_it_reads() -> None:
    loop = Loop()
    with pyfuser.fusing():
        for n in range(16):
            pk.parallel_for(N, slope, k=loop.k, x=loop.x, a=float(n))
            pk.parallel_for(N, advance, y=loop.y, x=loop.x, k=loop.k)
            assert loop.y[3] == n + 1.0
            if n == 12:
                assert loop.k[3] == 12.0
    for n in range(8):
        with pyfuser.fusing():
            k = pk.View([N], pk.double)
            pk.parallel_for(N, slope, k=k, x=loop.x, a=float(n))
            assert k[3] == float(n)


class TwoReads(Loop):
    """A loop whose step reads more sums, one after the other."""

    def __init__(self, more: int = 1, of_k: bool = False) -> None:
        super().__init__()
        self.other = pk.View([N], pk.double)
        self.other.fill(2.0)
        self.more, self.of_k = more, of_k

    def step(self, a: float) -> float:
        found = super().step(a)
        with pyfuser.fusing():
            for _ in range(self.more):
                read = self.k if self.of_k else self.x
                found += float(pk.parallel_reduce(N, total, y=read))
        return found

    def disturbed(self, target: Any, source: Any) -> None:
        """Another flush that is known: target[i] = 2 source[i]."""
        with pyfuser.fusing():
            pk.parallel_for(N, slope, k=target, x=source, a=2.0)
            assert np.isfinite(float(pk.parallel_reduce(N, total, y=target)))


@pytest.mark.parametrize("more", [1, postpone.BETWEEN, postpone.BETWEEN + 1])
def test_flushes_in_between_that_touch_nothing_of_it(more: int) -> None:
    loop = TwoReads(more)
    loop.warm()
    assert bool(loop.warm()) == (more <= postpone.BETWEEN)
    assert loop.step(3.0) == 4.0 * N + more * N
    assert loop.k[5] == 3.0


def test_a_flush_in_between_that_reads_it() -> None:
    loop = TwoReads(of_k=True)
    loop.warm()
    assert loop.warm() == 0
    assert loop.step(3.0) == 4.0 * N + 3.0 * N


def test_a_flush_in_between_that_reads_what_waits() -> None:
    loop = TwoReads()
    for _ in range(8):  # so that it is known
        loop.disturbed(loop.other, loop.k)
    assert loop.warm() > 0 and TRACER.postponed == 1
    loop.disturbed(loop.other, loop.k)
    assert loop.other[5] == 30.0 and loop.k[5] == 15.0


def test_what_is_overwritten_waits_no_more() -> None:
    """Three calls wait: of two arrays, which calls 4 and 7 overwrite, and of what both are made."""
    before = [Call("for", Space((0,), (1,)), None, (), None, None, None, n) for n in range(3)]  # type: ignore[arg-type]
    owed = Owed({}, before, [frozenset(), frozenset({4}), frozenset({7})])
    assert owed.overwritten([]) == owed.overwritten([1, 2]) == []
    assert owed.overwritten([4]) == [before[1]]
    assert owed.overwritten([2, 7]) == [before[2]]
    assert owed.overwritten([7, 4]) == before
    both = owed._replace(over=[frozenset(), frozenset({4, 7}), frozenset({7})])
    assert both.overwritten([4]) == [before[1]]  # it would write over what is new
    assert both.overwritten([4, 7]) == before
    assert Owed().overwritten([1]) == []


@pytest.mark.parametrize("target", ["x", "k", "other"])
def test_a_flush_in_between_that_changes_what_it_is_computed_from(target: str) -> None:
    loop = TwoReads()
    for _ in range(8):  # so that they are known
        loop.disturbed(loop.other, loop.y)
        loop.disturbed(loop.x, loop.other)
        loop.disturbed(loop.k, loop.other)
    loop.x.fill(1.0)
    assert loop.warm() > 0 and TRACER.postponed == 1
    loop.other.fill(2.0)
    loop.disturbed(getattr(loop, target), loop.y if target == "other" else loop.other)
    assert TRACER.postponed == (target == "other")
    assert loop.k[5] == (4.0 if target == "k" else 15.0)


def test_a_flush_in_between_is_the_last_that_needs_what_it_is_computed_from() -> None:
    """An array of that flush would get the memory."""
    y, k = pk.View([N], pk.double), pk.View([N], pk.double)
    y[0] = 0.0
    waited = 0
    for n in range(40):
        x = pk.View([N], pk.double)
        x.fill(float(n))
        with pyfuser.fusing():
            pk.parallel_for(N, slope, k=k, x=x, a=2.0)
            pk.parallel_for(N, advance, y=y, x=x, k=k)
            assert float(pk.parallel_reduce(N, total, y=y)) == 3 * n * N
        waited += TRACER.postponed
        z = pk.View([N], pk.double)
        with pyfuser.fusing():
            found = pk.parallel_reduce(N, total, y=x)
            del x
            pk.parallel_for(N, slope, k=z, x=y, a=found)
            assert float(found) == n * N
        if n > 30:
            assert k[5] == 2.0 * n
    assert waited > 0


@pytest.mark.parametrize("known", [False, True])
def test_what_waits_outlives_an_interrupted_flush_that_is_dropped(
    known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """known: of a flush in between; else of the step that would have overwritten it."""

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    loop = TwoReads()
    assert loop.warm() > 0 and TRACER.postponed == 1
    with monkeypatch.context() as broken:
        broken.setattr(flush, "execute", interrupted)
        with pytest.raises(KeyboardInterrupt), pyfuser.fusing():
            if known:
                float(pk.parallel_reduce(N, total, y=loop.x))
            else:
                Loop.step(loop, 99.0)
    assert len(pyfuser.pending()) == (1 if known else 3)
    pyfuser.discard()
    assert pyfuser.pending() == ()
    assert loop.k[5] == 15.0
    assert loop.step(3.0) == 4.0 * N + N
    assert loop.k[5] == 3.0


def test_a_flush_in_between_that_is_new() -> None:
    loop = TwoReads()
    assert loop.warm() > 0 and TRACER.postponed == 1
    loop.disturbed(loop.other, loop.y)
    assert TRACER.postponed == 0
    assert loop.k[5] == 15.0


def test_a_trace_that_reads_it() -> None:
    loop = Loop()
    loop.warm()
    with pyfuser.fusing():
        assert float(pk.parallel_reduce(N, total, y=loop.k)) == 15.0 * N
    assert loop.k[1] == 15.0


def test_a_trace_that_overwrites_a_part_of_it() -> None:
    loop = Loop()
    loop.warm()
    with pyfuser.fusing():
        pk.parallel_for(N, most, k=loop.k, x=loop.x, a=4.0)
    assert loop.k[0] == 15.0 and loop.k[1] == 4.0


def test_unfused_calls_on_other_memory_leave_it() -> None:
    loop, other = Loop(), Loop()
    loop.warm()
    with pyfuser.unfused():
        pk.parallel_for(N, slope, k=other.k, x=other.x, a=3.0)
    assert TRACER.postponed == 1
    with pyfuser.unfused():
        pk.parallel_for(N, slope, k=loop.y, x=loop.k, a=1.0)  # the twin
    assert loop.y[2] == 15.0


def test_discarded_calls_do_not_take_it_along() -> None:
    loop = Loop()
    loop.warm()
    with pyfuser.fusing():
        pk.parallel_for(N, slope, k=loop.k, x=loop.x, a=99.0)
        assert len(pyfuser.discard()) == 1
    assert loop.k[1] == 15.0


def test_a_step_that_cannot_run_does_not_take_it_along() -> None:
    loop = Loop()
    loop.warm()
    with pytest.raises(MemoryError), pyfuser.fusing():
        pk.parallel_for(N, slope, k=loop.k, x=loop.x, a=99.0)
        huge = pk.View([1 << 58], pk.double)
        pk.parallel_for(pk.RangePolicy(0, N), slope, k=huge, x=loop.x, a=1.0)
        float(pk.parallel_reduce(N, total, y=loop.k))
    pyfuser.discard()
    assert loop.k[1] in (15.0, 99.0)


def test_a_step_of_which_a_part_cannot_run_does_not_take_it_along() -> None:
    loop = Loop()
    loop.warm()
    with pytest.raises(MemoryError), pyfuser.fusing():
        pk.parallel_for(N, slope, k=loop.x, x=loop.y, a=0.5)
        huge = pk.View([1 << 58], pk.double)
        pk.parallel_for(N, slope, k=huge, x=loop.x, a=1.0)
        pk.parallel_for(N, advance, y=loop.k, x=huge, k=loop.x)
        float(pk.parallel_reduce(N, total, y=loop.x))
    pyfuser.discard()
    assert loop.k[1] == 15.0


def test_what_waits_goes_with_the_last_that_could_read_it() -> None:
    loop = Loop()
    loop.warm()
    buffer = weakref.ref(loop.k._region.buffer)
    del loop
    pyfuser.sync()
    assert TRACER.calls == [] and buffer() is None


def test_those_that_nobody_has_any_more() -> None:
    loop = Loop()
    loop.warm()
    launches = COUNTERS.launches
    loop.k = loop.y
    pk.View([N], pk.double).fill(1.0)
    with pyfuser.fusing():
        pk.parallel_for(N, slope, k=loop.y, x=loop.x, a=1.0)
    assert COUNTERS.launches == launches + 1 and TRACER.calls == []


@pytest.mark.parametrize("before", [False, True])
def test_a_recorded_call_reads_one_that_the_program_has_no_more(before: bool) -> None:
    loop, kept = Loop(), pk.View([N], pk.double)
    loop.warm()
    with pyfuser.fusing():
        if before:
            pk.parallel_for(N, slope, k=kept, x=loop.k, a=1.0)
            del loop.k
        else:
            k = loop.k
            del loop.k
            pk.parallel_for(N, slope, k=kept, x=k, a=1.0)
            del k
        assert float(pk.parallel_reduce(N, total, y=kept)) == 15.0 * N
    assert kept[3] == 15.0


def test_what_it_is_computed_from_is_made_anew_and_dropped_in_each_step() -> None:
    y, k = (pk.View([N], pk.double) for _ in range(2))
    y[0] = 0.0
    for n in range(16):
        x = pk.View([N], pk.double)
        x.fill(float(n))
        with pyfuser.fusing():
            pk.parallel_for(N, slope, k=k, x=x, a=2.0)
            pk.parallel_for(N, advance, y=y, x=x, k=k)
            found = pk.parallel_reduce(N, total, y=y)
            del x
            assert float(found) == 3.0 * n * N
        if n > 12:
            assert k[5] == 2.0 * n


def test_arrays_of_lazy_numpy_do_not_wait() -> None:
    size = 100_000
    x = lazy.ones(size)
    y, k = x + 1.0, x + 2.0
    before = COUNTERS.postponed
    for n in range(16):
        with pyfuser.fusing():
            pk.parallel_for(size, slope, k=k, x=x, a=float(n))
            pk.parallel_for(size, advance, y=y, x=x, k=k)
            assert float(pk.parallel_reduce(size, total, y=y)) == size * (n + 1.0)
    assert COUNTERS.postponed == before and k[3] == 15.0


def test_a_loop_that_reads_it_each_time_stops_to_postpone() -> None:
    loop = Loop()
    for n in range(12):
        loop.step(float(n))
        assert loop.k[1] == float(n)
    before = COUNTERS.postponed
    assert loop.warm(4) == 0 and COUNTERS.postponed == before


def test_a_program_that_cannot_be_made_leaves_the_one_that_stores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, plans = Loop(), COUNTERS.plans
    loop.warm(2)

    def refuse(*_: Any) -> None:
        raise KernelError("the compiler ended")

    monkeypatch.setattr(building, "program_for", refuse)
    assert COUNTERS.plans > plans and loop.warm(12) == 0
    assert loop.k[3] == 11.0


def test_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postpone, "left_out", lambda name: name == "postpone")
    loop = Loop()
    loop.x = pk.View([2 * N], pk.double)[:N]  # another trace
    assert loop.warm() == 0
