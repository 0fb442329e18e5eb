"""Sums that run with what they always follow, and all that must keep them from it."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pyfuser
from pyfuser.analysis.inside import elements_choose
from pyfuser.analysis.unasked import may_run_unasked
from pyfuser.engine import native
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.ir.dtypes import DType
from pyfuser.runtime import followers
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.support import passes
from pyfuser.support.counters import COUNTERS
from pyfuser.support.errors import KernelError
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.memory import Allocation, Buffer, Handle, Region, Unmade
from pyfuser.tuning.thresholds import tuned
from tests.sessions import Awaited, fresh
from tests.test_postpone_random import CREDITS

N = 16
TIMES = followers.ROUNDS + 4


@pk.workunit
def produce(i, y, x, a: float):
    y[i] = x[i] * a


@pk.workunit
def numbered(i, j, t, a: float):
    t[i][j] = 10.0 * i + j + a


@pk.workunit
def total(i, acc: pk.Acc[pk.double], y):
    acc += y[i]


@pk.workunit
def times(i, acc: pk.Acc[pk.double], y, f: float):
    acc += y[i] * f


@pk.workunit
def power(i, acc: pk.Acc[pk.double], y, k: int):
    term: pk.double = 1.0
    for _ in range(k):
        term *= y[i]
    acc += term


@pk.workunit
def signs(i, acc: pk.Acc[pk.double], y, f: float):
    acc += 1.0 / (f * y[i])


@pk.workunit
def writes(i, acc: pk.Acc[pk.double], y, log):
    log[i] += 1.0
    acc += y[i]


@pk.workunit
def divides(i, acc: pk.Acc[pk.int64], y, by):
    acc += 7 // by[i]


@pk.workunit
def gathers(i, acc: pk.Acc[pk.double], y, at):
    acc += y[at[i]]


@pk.workunit
def prints(i, acc: pk.Acc[pk.double], y):
    if y[i] < -1e9:
        pk.printf("%f", y[i])
    acc += y[i]


@pk.workunit
def halves(i, acc: pk.Acc[pk.double], y):
    term: pk.double = y[i]
    while term > 1.0:
        term *= 0.5
    acc += term


@pk.workunit
def divides_by_number(i, acc: pk.Acc[pk.int64], y, k: int):
    acc += 7 // k


@pk.workunit
def as_often_as_an_element(i, acc: pk.Acc[pk.double], y, index):
    for _ in range(index[i]):
        acc += y[i]


@pk.workunit
def as_often_as_a_local(i, acc: pk.Acc[pk.double], y, index):
    count: int = index[i]
    for _ in range(count):
        acc += y[i]


@pk.workunit
def as_often_as_a_float(i, acc: pk.Acc[pk.double], y, f: float):
    for _ in range(int(f)):
        acc += y[i]


@pk.workunit
def as_often_as_one_that_changes(i, acc: pk.Acc[pk.double], y, index, k: int):
    for n in range(k):
        n = n + index[i]
        for _ in range(n):
            acc += y[i]


@pk.workunit
def triangle(i, acc: pk.Acc[pk.double], y, k: int):
    for n in range(i, k):
        for _ in range(n):
            acc += y[i]


@pytest.fixture(autouse=True)
def at_once() -> Iterator[None]:
    """Any trace is long enough, and its plan may cost what it likes."""
    with tuned(long=0.0, trial_kernel=0.0, **CREDITS), fresh():
        SESSION.budget.forget()
        yield
        pyfuser.sync()
    SESSION.budget.forget()
    assert TRACER.watch is None or not TRACER.watch.captures


class World:
    def __init__(self) -> None:
        self.x, self.y = (pk.View([N], pk.double) for _ in range(2))
        self.x[:] = np.arange(N, dtype=float) / 8
        self.log = pk.View([N], pk.double)
        self.index = pk.View([N], pk.int64)
        self.index.fill(1)
        self.a = 1.0

    def produce(self) -> None:
        self.a += 0.5
        pk.parallel_for(N, produce, y=self.y, x=self.x, a=self.a)

    def step(self, between: Callable[[], Any] = lambda: None) -> tuple[float, float]:
        """The sum, and another one after something else."""
        self.produce()
        first = float(pk.parallel_reduce(N, total, y=self.y))
        between()
        return first, float(pk.parallel_reduce(N, times, y=self.y, f=2.0))


def early(run: Callable[[], Any]) -> int:
    before = COUNTERS.early
    run()
    return COUNTERS.early - before


def test_a_sum_that_always_follows_runs_with_the_first() -> None:
    world = World()
    with pyfuser.fusing():
        for n in range(TIMES):
            launches, served = COUNTERS.launches, COUNTERS.early
            first, second = world.step()
            assert second == 2.0 * first
            if n == TIMES - 1:
                assert COUNTERS.early == served + 1
                assert COUNTERS.launches == launches + 1


def test_nobody_waits_for_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the first sum with what follows is compiled each runs when it is called."""
    awaited = Awaited()
    monkeypatch.setattr("pyfuser.engine.ahead.left_out", lambda name: False)
    monkeypatch.setattr(native, "begin", lambda _: awaited)
    world = World()

    def step() -> None:
        first, second = world.step()
        assert second == 2.0 * first

    with pyfuser.fusing():
        assert early(lambda: [step() for _ in range(TIMES)]) == 0
        awaited.is_done = True
        step()
        assert early(lambda: [step() for _ in range(TIMES)]) == TIMES


def test_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "SETTINGS", replace(SETTINGS, without=frozenset({"following"})))
    world = World()
    with pyfuser.fusing():
        assert early(lambda: [world.step() for _ in range(TIMES)]) == 0


def _disturbances(world: World) -> dict[str, Callable[[], Any]]:
    part = world.y[2:5]
    kept = pk.View([N], pk.double)

    def set_one() -> None:
        world.y[3] = 100.0

    def set_part() -> None:
        part[1] = 100.0

    def array() -> None:
        world.y.data[4] = 100.0

    def recorded() -> None:
        pk.parallel_for(N, produce, y=world.y, x=world.x, a=-3.0)

    def unfused() -> None:
        with pyfuser.unfused():
            recorded()

    def dropped() -> None:
        with pyfuser.fusing():
            pk.parallel_for(N, produce, y=kept, x=world.x, a=1.0)
            pyfuser.discard()
        world.y[5] = 100.0

    def assign() -> None:
        world.y[:] = world.x

    def another() -> None:
        world.y = pk.View([N], pk.double)

    def captured() -> None:
        pyfuser.capture(lambda y, x: pk.parallel_for(N, produce, y=y, x=x, a=4.0))(world.y, world.x)

    return {
        "an element": set_one, "an element of a part": set_part, "its array": array,
        "a call": recorded, "an unfused call": unfused, "a dropped call, then an element": dropped,
        "all of it": assign, "fill": lambda: world.y.fill(9.0), "another View": another,
        "a captured step": captured, "resize": lambda: world.y.resize(0, N),
    }  # fmt: skip


@pytest.mark.parametrize("what", _disturbances(World()))
def test_what_is_held_goes_with_what_changes_it(what: str) -> None:
    world = World()
    with pyfuser.fusing():
        for _ in range(TIMES):
            world.step()
        _, second = world.step(_disturbances(world)[what])
        assert second == 2.0 * sum(np.array(world.y).tolist())


def test_a_sum_that_is_0_is_held() -> None:
    world = World()
    world.x.fill(0.0)
    with pyfuser.fusing():
        assert early(lambda: [world.step() for _ in range(TIMES)]) > 1


def test_a_trace_whose_sum_is_not_read_is_not_looked_at() -> None:
    world = World()
    for _ in range(TIMES):
        with pyfuser.fusing():
            world.produce()
            found = pk.parallel_reduce(N, total, y=world.y)
    assert float(found) > 0
    replays = [r for facts in SESSION.replays.values() for r in facts.values()]
    assert any(r.following is None for r in replays) and not any(r.following for r in replays)


def test_an_error_leaves_nothing_of_it_pending(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    with pyfuser.fusing():
        for _ in range(TIMES):
            world.step()
        from pyfuser.runtime import flush

        launch = flush.launch
        for error in (KeyboardInterrupt, KernelError):
            failed: list[int] = []

            def fails(
                program: Any,
                calls: Any,
                *rest: Any,
                error: Any = error,
                failed: Any = failed,
                **named: Any,
            ) -> None:
                if len(calls) == 3 and not failed:
                    failed.append(1)
                    raise error("no more")
                launch(program, calls, *rest, **named)

            monkeypatch.setattr(flush, "launch", fails)
            world.produce()
            first = pk.parallel_reduce(N, total, y=world.y)
            with contextlib.suppress(KeyboardInterrupt):
                float(first)
            assert failed
            assert len(pyfuser.pending()) in (0, 2)
            second = float(pk.parallel_reduce(N, times, y=world.y, f=2.0))
            assert second == 2.0 * float(first)
            monkeypatch.undo()


def test_what_touches_other_memory_does_not_matter() -> None:
    world = World()

    def note() -> None:
        world.log[0] = world.log[1] + 1.0

    with pyfuser.fusing():
        assert early(lambda: [world.step(note) for _ in range(TIMES)]) > 0


def test_an_array_over_it() -> None:
    """Who has it may write at any time."""
    world = World()
    array = world.y.data
    with pyfuser.fusing():
        for _ in range(TIMES):
            _, second = world.step(lambda: array.__setitem__(2, 50.0))
            assert second == 2.0 * sum(array.tolist())


def _follows(world: World, call: Callable[[int], Any]) -> int:
    """Steps that end with another sum: how often that had run early."""

    def steps() -> None:
        for n in range(TIMES):
            world.produce()
            float(pk.parallel_reduce(N, total, y=world.y))
            call(n)

    with pyfuser.fusing():
        return early(steps)


@pytest.mark.parametrize("unit", [writes, divides, gathers, prints, halves])
def test_what_may_not_run_unasked(unit: Any) -> None:
    world = World()
    arguments: dict[str, Any] = {"y": world.y}
    if unit is writes:
        arguments["log"] = world.log
    elif unit is divides:
        arguments["by"] = world.index
    elif unit is gathers:
        arguments["at"] = world.index
    assert _follows(world, lambda n: float(pk.parallel_reduce(N, unit, **arguments))) == 0


def lowered(unit: Any, **arguments: Any) -> Any:
    with pyfuser.fusing():
        pk.parallel_reduce(N, unit, **arguments)
        found = TRACER.calls[-1].workunit
        pyfuser.discard()
    return found


def test_which_workunits_may_run_unasked() -> None:
    world = World()
    y = {"y": world.y}
    assert may_run_unasked(lowered(total, **y))
    assert may_run_unasked(lowered(power, **y, k=2))
    assert not may_run_unasked(lowered(divides_by_number, **y, k=2))
    assert not may_run_unasked(lowered(divides, **y, by=world.index))
    assert not may_run_unasked(lowered(prints, **y))
    assert not may_run_unasked(lowered(writes, **y, log=world.log))
    assert not may_run_unasked(lowered(gathers, **y, at=world.index))
    assert not may_run_unasked(lowered(halves, **y))
    assert may_run_unasked(lowered(triangle, **y, k=2))
    index = {"index": world.index}
    assert not may_run_unasked(lowered(as_often_as_an_element, **y, **index))
    assert not may_run_unasked(lowered(as_often_as_a_local, **y, **index))
    assert not may_run_unasked(lowered(as_often_as_a_float, **y, f=2.0))
    assert not may_run_unasked(lowered(as_often_as_one_that_changes, **y, **index, k=2))
    assert not may_run_unasked(lowered(behind_an_element, **y, **index))
    assert not may_run_unasked(lowered(in_local_memory, **y, k=2))
    assert not may_run_unasked(lowered(until_it_converges, **y))
    assert not may_run_unasked(lowered(until_it_returns, **y))


class _Other:
    """A handle as lazy arrays have it."""


def test_whose_memory_it_may_be() -> None:
    handle, other = Handle(), _Other()
    mine, external, gone = (Allocation(8, handle) for _ in range(3))
    assert followers.is_ours(mine) and followers.is_ours(Unmade(8, handle))
    external.external = True
    gone._handle = weakref.ref(Handle())
    assert not followers.is_ours(external)
    assert not followers.is_ours(gone)
    assert not followers.is_ours(Allocation(8, other))  # type: ignore[arg-type]
    assert not followers.is_ours(Buffer.lend(np.zeros(8, np.uint8), handle))


def test_which_calls_are_the_same() -> None:
    world = World()

    def calls(**others: Any) -> Any:
        space, unit = others.pop("space", N), others.pop("unit", times)
        label = others.pop("label", None)
        with pyfuser.fusing():
            pk.parallel_reduce(label, space, unit, **({"y": world.y, "f": 1.0} | others))
            call = TRACER.calls[-1]
            pyfuser.discard()
        return call

    same = followers.is_same_call
    assert same(calls(), calls())
    assert not same(calls(), calls(f=2.0))
    assert not same(calls(f=0.0), calls(f=-0.0))
    assert not same(calls(), calls(space=N - 1))
    assert not same(calls(), calls(unit=signs))
    assert not same(calls(), calls(label="a name"))
    assert not same(calls(), calls(y=world.x))
    assert not same(calls(space=4, y=world.y[1:]), calls(space=4, y=world.y[2:]))
    with pyfuser.fusing():
        pk.parallel_reduce(N, power, y=world.y, k=1)
        pk.parallel_reduce(N, power, y=world.y, k=2)
        first, second = TRACER.calls
        future = pk.parallel_reduce(N, times, y=world.y, f=pk.parallel_reduce(N, total, y=world.y))
        third = TRACER.calls[-1]
        pyfuser.discard()
    assert future is third.result
    assert same(first, first) and not same(first, second)
    assert not same(third, third)


class Steps:
    """A number whose value is found out by a step."""

    def __init__(self, world: World) -> None:
        self.world = world

    def __float__(self) -> float:
        self.world.produce()
        float(pk.parallel_reduce(N, total, y=self.world.y))
        return 50.0

    def __index__(self) -> int:
        return int(float(self)) - 48

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.full(N, float(self))


@pytest.mark.parametrize("what", ["element", "all", "fill", "key", "part"])
def test_a_store_that_comes_after_a_step_in_its_own_value(what: str) -> None:
    world = World()
    with pyfuser.fusing():
        for _ in range(TIMES):
            world.step()
        steps: Any = Steps(world)
        if what == "element":
            world.y[1] = steps
        elif what == "all":
            world.y[:] = steps
        elif what == "fill":
            with contextlib.suppress(TypeError):
                world.y.fill(steps)
        elif what == "key":
            world.y[steps] = 70.0
        else:
            world.y[1:3][0] = steps
        second = float(pk.parallel_reduce(N, times, y=world.y, f=2.0))
    assert second == 2.0 * sum(np.array(world.y).tolist())


def test_lazy_arrays_over_the_memory() -> None:
    import pyfuser.numpy as pn

    world = World()
    lazy = pn.asarray(world.y)

    def write() -> None:
        lazy[3] = 100.0
        lazy[5:7] += 1.0

    with pyfuser.fusing():
        for _ in range(TIMES):
            world.step()
        _, second = world.step(write)
        assert second == 2.0 * sum(np.array(world.y).tolist())


def test_a_signal_handler_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """It writes after the sums have run, and before their flush has ended."""
    from pyfuser.runtime import flush

    world = World()
    launch = flush.launch

    def launched(program: Any, calls: Any, *rest: Any, **named: Any) -> None:
        launch(program, calls, *rest, **named)
        if len(calls) == 3:
            world.y[2] = 100.0

    with pyfuser.fusing():
        for _ in range(TIMES):
            world.step()
        monkeypatch.setattr(flush, "launch", launched)
        _, second = world.step()
        assert world.y[2] == 100.0
        assert second == 2.0 * sum(np.array(world.y).tolist())


def test_what_is_held_counts_as_pending_until_it_goes() -> None:
    world = World()
    with pyfuser.fusing():
        for _ in range(TIMES):
            world.step()
        world.produce()
        float(pk.parallel_reduce(N, total, y=world.y))
        assert world.y._region.buffer.pending == 1
        pk.fence()
        assert world.y._region.buffer.pending == 0
        assert type(TRACER.calls) is list and TRACER._bytes == 0
        world.step()
        assert world.y._region.buffer.pending == 0
        assert type(TRACER.calls) is list and TRACER._bytes == 0


def test_a_list_of_pending_calls_that_others_made() -> None:
    """What happens to memory while it is there is not seen."""
    world = World()

    def unseen() -> None:
        TRACER.calls = []
        world.y[3] = 100.0

    with pyfuser.fusing():
        for _ in range(TIMES):
            world.step()
        _, second = world.step(unseen)
        assert second == 2.0 * sum(np.array(world.y).tolist())


def test_what_came_often_may_be_missing_now_and_then() -> None:
    world = World()

    def step(n: int) -> None:
        if n < 40 or n % 3:
            float(pk.parallel_reduce(N, times, y=world.y, f=2.0))

    with pyfuser.fusing():
        served: list[int] = []
        for n in range(50):
            world.produce()
            float(pk.parallel_reduce(N, total, y=world.y))
            served.append(early(lambda n=n: step(n)))
    assert served[-8:].count(1) >= 5


def test_it_is_not_run_where_the_program_leaves_it_out() -> None:
    """Not for long: it costs as much as it takes."""
    world = World()

    def step(n: int) -> None:
        if n < TIMES - 1:
            float(pk.parallel_reduce(N, times, y=world.y, f=2.0))

    assert _follows(world, step) >= 1
    with pyfuser.fusing():
        launched: list[int] = []
        for _ in range(8):
            world.produce()
            float(pk.parallel_reduce(N, total, y=world.y))
            launched.append(len(SESSION.flushes[-1].made) // 3)
    assert launched[-1] == 2


def test_numbers_that_were_those_of_the_trace() -> None:
    """An argument that changes is that of a call before, or the call does not run early."""
    world = World()

    def scaled(n: int) -> None:
        found = float(pk.parallel_reduce(N, times, y=world.y, f=world.a))
        assert found == pytest.approx(world.a * sum(np.array(world.y).tolist()))

    assert _follows(world, scaled) > 0
    assert (
        _follows(world, lambda n: float(pk.parallel_reduce(N, times, y=world.y, f=n + 0.25))) == 0
    )


def test_another_argument_than_before() -> None:
    world = World()

    def changed(n: int) -> None:
        k = 2 if n < TIMES - 1 else 3
        found = float(pk.parallel_reduce(N, power, y=world.y, k=k))
        assert found == pytest.approx(sum(v**k for v in np.array(world.y).tolist()))

    assert _follows(world, changed) > 0


def test_zeros_of_another_sign() -> None:
    world = World()
    world.x.fill(1.0)

    def sign(n: int) -> None:
        zero = 0.0 if n < TIMES - 1 else -0.0
        found = float(pk.parallel_reduce(1, signs, y=world.log, f=zero))
        assert found == np.copysign(np.inf, zero)

    world.log.fill(1.0)
    _follows(world, sign)


def test_other_spaces_and_parts() -> None:
    world = World()
    for last in (lambda: (N - 1, world.y), lambda: (N - 2, world.y[1:]), lambda: (N, world.x)):

        def changed(n: int, last: Any = last) -> None:
            count, view = (N, world.y) if n < TIMES - 1 else last()
            found = float(pk.parallel_reduce(count, times, y=view, f=2.0))
            assert found == 2.0 * sum(np.array(view).tolist()[:count])

        _follows(world, changed)


def test_a_view_that_is_gone_is_not_kept() -> None:
    world = World()

    def fresh_view(n: int) -> None:
        world.y = pk.View([N], pk.double)
        assert float(pk.parallel_reduce(N, times, y=world.y, f=2.0)) == 0.0

    assert _follows(world, fresh_view) == 0


def test_where_each_int_of_the_last_call_has_others_behind_it() -> None:
    """`for k: f(k), then g(k) twice`: what follows depends on k."""
    world = World()

    def moments(n: int) -> None:
        values = np.array(world.y)
        for k in range(3):
            assert float(pk.parallel_reduce(N, power, y=world.y, k=k)) == pytest.approx(
                (values**k).sum()
            )
            if k == 1:
                assert float(pk.parallel_reduce(N, times, y=world.x, f=1.5)) == pytest.approx(
                    1.5 * np.array(world.x).sum()
                )

    assert _follows(world, moments) >= 3


@pytest.mark.parametrize("fresh_table", [False, True])
def test_sums_of_columns_run_with_that_of_the_first(fresh_table: bool) -> None:
    """Where a trace reads tells of what comes: the columns after this one."""
    table = pk.View([N, 4], pk.double)
    launches = []
    for n in range(TIMES + 2):
        if fresh_table:
            table = pk.View([N, 4], pk.double)
        pk.parallel_for(pk.MDRangePolicy([0, 0], [N, 4]), numbered, t=table, a=float(n))
        before = COUNTERS.launches
        with pyfuser.fusing():
            expected = [sum(10.0 * i + c + n for i in range(N)) for c in range(4)]
            assert [
                float(pk.parallel_reduce(N, total, y=table[:, c])) for c in range(4)
            ] == expected
        launches.append(COUNTERS.launches - before)
    assert launches[-1] == 1


def test_parts_of_memory_that_is_smaller_now() -> None:
    """A part that was always read next is read no more where its memory has ended."""
    read = []
    for n in range(TIMES + 4):
        size = 2 * N if n < TIMES + 2 else N + 1
        with pyfuser.fusing():
            view = pk.View([size], pk.double)
            pk.parallel_for(N, produce, y=view, x=view, a=2.0)
            before = COUNTERS.launches
            assert float(pk.parallel_reduce(N, total, y=view[:N])) == 0.0
            if size == 2 * N:
                assert float(pk.parallel_reduce(N, total, y=view[N:])) == 0.0
            read.append(COUNTERS.launches - before)
    assert read[TIMES + 1] == 1


def test_a_part_is_that_of_memory_as_large() -> None:
    known = followers._In(0, 0, 8 * N, (8, (8,), (N - 1,), DType.FLOAT64))
    for size, fits in ((8 * N, True), (8 * N - 8, False), (8 * N + 8, False)):
        whole = Region(Unmade(size, Handle()), 0, (8,), (size // 8,), DType.FLOAT64)
        assert (followers._part_of(whole, known) is not None) == fits


def test_parts_that_move_on_are_not_waited_for() -> None:
    """Sums of one part at a time, other parts each time, have the same behind them as ever."""
    world = World()
    long = pk.View([8 * followers.PARTS * 2], pk.double)

    def moving(n: int) -> int:
        part = long[8 * n : 8 * n + 8]
        before = COUNTERS.early
        with pyfuser.fusing():
            pk.parallel_for(8, produce, y=part, x=world.x, a=float(n))
            first = float(pk.parallel_reduce(8, total, y=part))
            assert float(pk.parallel_reduce(8, times, y=part, f=2.0)) == 2.0 * first
        return COUNTERS.early - before

    assert [moving(n) for n in range(2 * followers.PARTS)][-1] == 1


@pk.workunit
def behind_an_element(i, acc: pk.Acc[pk.double], y, index):
    acc += y[index[i] + 1]


@pk.workunit
def until_it_converges(i, acc: pk.Acc[pk.double], y):
    term: pk.double = y[i]
    for _ in range(2000000000):
        term *= 0.5
        if term < 1.0:
            break
    acc += term


@pk.workunit
def until_it_returns(i, acc: pk.Acc[pk.double], y):
    term: pk.double = y[i]
    for _ in range(2000000000):
        term *= 0.5
        if term < 1.0:
            acc += term
            return


@pk.workunit
def in_local_memory(i, acc: pk.Acc[pk.double], y, k: int):
    c: List[pk.double] = [y[i], 1.0]  # noqa: F821
    acc += c[i * k]


@pk.workunit
def at_a_number_of_elements(i, acc: pk.Acc[pk.double], y, x):
    k: int = int(x[i] * 0.0)
    acc += y[k]


@pk.workunit
def where_a_float_says(i, acc: pk.Acc[pk.double], y, f: float):
    acc += y[i - int(f)]


@pk.workunit
def under_a_float(i, acc: pk.Acc[pk.double], y, f: float):
    k: int = i
    if f > 1.0:
        k = 100000000
    acc += y[k]


@pk.workunit
def where_an_element_allows(i, acc: pk.Acc[pk.double], y):
    if y[i] > 1e9:
        acc += y[i + 100000000]
    acc += y[i]


@pk.workunit
def ahead(i, acc: pk.Acc[pk.double], y, k: int):
    if i + k < 16:
        acc += y[i + k]


@pk.workunit
def in_steps(i, acc: pk.Acc[pk.double], y, k: int):
    for _ in range(0, 8, k):
        acc += y[i]


@pk.workunit
def running(i, acc: pk.Acc[pk.double], last: bool, y):
    acc += y[i]


@pytest.mark.parametrize(
    "unit, rest, runs",
    [
        (behind_an_element, ["index"], False),
        (at_a_number_of_elements, ["x"], False),
        (where_a_float_says, 0.5, False),
        (under_a_float, 0.5, False),
        (where_an_element_allows, None, False),
        (ahead, 2, True),
    ],
)
def test_sums_that_may_leave_their_views_when_nobody_asks(unit: Any, rest: Any, runs: bool) -> None:
    """A program that asks only while the places are there must not fail before."""
    world = World()
    world.index.fill(0)
    name = {int: "k", float: "f"}.get(type(rest))
    more = {name: rest} if name else {each: vars(world)[each] for each in rest or ()}
    found = _follows(world, lambda n: float(pk.parallel_reduce(N, unit, y=world.y, **more)))
    assert (found > 0) == runs


def test_where_elements_choose() -> None:
    world = World()
    assert elements_choose(lowered(gathers, y=world.y, at=world.index))
    assert elements_choose(lowered(behind_an_element, y=world.y, index=world.index))
    assert elements_choose(lowered(at_a_number_of_elements, y=world.y, x=world.x))
    assert not elements_choose(lowered(where_an_element_allows, y=world.y))
    assert not elements_choose(lowered(as_often_as_a_local, y=world.y, index=world.index))


def test_which_calls_may_run_early() -> None:
    world = World()

    def call(unit: Any, space: Any = N, **arguments: Any) -> Any:
        with pyfuser.fusing():
            pk.parallel_reduce(space, unit, **arguments)
            found = TRACER.calls[-1]
            pyfuser.discard()
        return found

    assert followers.may_run_early(call(ahead, y=world.y, k=2))
    assert followers.may_run_early(call(total, y=world.y[2:], space=N - 2))
    assert not followers.may_run_early(call(ahead, y=world.y[4:], k=2))
    assert not followers.may_run_early(call(where_a_float_says, y=world.y, f=0.0))
    assert not followers.may_run_early(call(gathers, y=world.y, at=world.index))
    assert not followers.may_run_early(call(in_steps, y=world.y, k=2))
    with pyfuser.fusing():
        pk.parallel_scan(N, running, y=world.y)
        assert not followers.may_run_early(TRACER.calls[-1])
        pk.parallel_for(N, produce, y=world.y, x=world.x, a=1.0)
        assert not followers.may_run_early(TRACER.calls[-1])
        pyfuser.sync()
