"""Traces that never come back run unfused; those that do are planned, and pay for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.frontends import scalar_work
from pyfuser.runtime import budget, eager
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.support.counters import COUNTERS
from pyfuser.support.extension import HOT
from pyfuser.trace.reason import SYNC
from tests.vendors import tune


@pk.workunit
def column(i, a, f, k):
    f[i] = a[i][k] / a[k][k]


@pk.workunit
def eliminate(i, j, a, f, k):
    a[i][j] -= f[i] * a[k][j]


@pk.workunit
def size(i, acc, a, k):
    acc += abs(a[k + i][k])


@pk.workunit
def shrink(i, a, k, by):
    a[i][k] = a[i][k] / by


@pk.workunit
def halve(i, f, d):
    f[i] = f[i] + 7 // d


@pk.workunit
def one_more(i, f):
    f[i] += 1


@pk.workunit
def quotients(i, f, by):
    f[i] += 8 // by[i]


@pytest.fixture(autouse=True)
def budgeted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(budget, "SETTINGS", replace(budget.SETTINGS, arbitrate=True))
    TRACER.flush(SYNC)
    SESSION.clear()
    COUNTERS.apart = 0
    yield
    TRACER.flush(SYNC)
    SESSION.clear()


@pk.workunit
def doubled(i, x):
    x[i] *= 2.0


@pk.workunit
def added(i, acc, x):
    acc += x[i]


@pk.workunit
def scaled(i, acc, x, by):
    acc += x[i] * by


@pk.workunit
def put(i, x, value):
    x[i] = value


def matrix(n: int) -> np.ndarray:
    return np.random.default_rng(3).random((n, n)) + n * np.eye(n)


def elimination(n: int, reads: bool) -> np.ndarray:
    """Each step has another range and another subscript; or it is read, and divides by a Future."""
    a, f = pk.View([n, n], pk.double), pk.View([n], pk.double)
    a.data[:] = matrix(n)
    for k in range(n - 1):
        if reads:
            total = pk.parallel_reduce(n - k, size, a=a, k=k)
            pk.parallel_for(n, shrink, a=a, k=k, by=total)
            assert float(total) > 0.0
        pk.parallel_for(pk.RangePolicy(k + 1, n), column, a=a, f=f, k=k)
        pk.parallel_for(pk.MDRangePolicy([k + 1, k + 1], [n, n]), eliminate, a=a, f=f, k=k)
    return np.array(a.data)


@pytest.mark.parametrize(("n", "reads"), [(70, False), (90, True)])
def test_steps_that_differ_are_not_planned_for_ever(n: int, reads: bool) -> None:
    with pyfuser.unfused():
        expected = elimination(n, reads)
    plans, compilations, launches = COUNTERS.plans, COUNTERS.compilations, COUNTERS.launches
    with pyfuser.fusing():
        found = elimination(n, reads)
    np.testing.assert_array_equal(found, expected)
    assert COUNTERS.apart >= (8 if reads else n // 2)  # reductions let others run at once
    assert COUNTERS.launches - launches > 0.8 * (4 if reads else 2) * (n - 1)
    assert COUNTERS.plans - plans <= (60 if reads else 0)  # 0.3 s
    assert COUNTERS.compilations - compilations <= 14
    assert "unfused: numbers among their arguments differ" in str(pyfuser.explain())


def test_without_it_each_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "SETTINGS", replace(budget.SETTINGS, arbitrate=False))
    before = COUNTERS.plans
    with pyfuser.fusing():
        elimination(12, True)
    assert COUNTERS.plans - before >= 11
    assert COUNTERS.apart == 0


def test_traces_that_come_back_are_planned() -> None:
    n = 30
    a, f = pk.View([n, n], pk.double), pk.View([n], pk.double)
    a.data[:] = matrix(n)
    for _ in range(200):
        with pyfuser.fusing():
            pk.parallel_for(n, shrink, a=a, k=0, by=1.5)
            pk.parallel_for(n, column, a=a, f=f, k=1)
    assert COUNTERS.apart == 0


def step(k: int, n: int, a: pk.View, f: pk.View) -> None:
    with pyfuser.fusing():
        pk.parallel_for(n, column, a=a, f=f, k=k)
        pk.parallel_for(n, shrink, a=a, k=(k + 1) % n, by=1.01)


def apart_after(count: int, steps: Callable[[int], None]) -> int:
    before = COUNTERS.apart
    for k in range(count):
        steps(k)
        if HOT is not None:
            HOT.forget()  # else some of the next calls run at once
    return COUNTERS.apart - before


def test_what_runs_earns_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that take long may be planned for each integer, as that is a small part of it."""
    monkeypatch.setattr(budget, "PLANNED", 100)
    n = 60
    a, f = pk.View([n, n], pk.double), pk.View([n], pk.double)
    a.data[:] = matrix(n)
    SESSION.budget._plans.credit = SESSION.budget._kernels.credit = 0.0, 0.0
    assert apart_after(5, lambda k: step(k, n, a, f)) == 10
    SESSION.budget.earned = 100.0
    SESSION.budget._refused.clear()  # it looks at its accounts once in a while
    assert apart_after(5, lambda k: step(k + 5, n, a, f)) == 0
    SESSION.budget.earned = 0.0
    SESSION.budget._plans.spent = 200.0
    assert apart_after(5, lambda k: step(k + 10, n, a, f)) == 10


@pytest.mark.parametrize("measured", [1e-9, 10.0])
def test_what_was_too_dear_waits_until_a_tenth_of_its_runs_covers_it(
    measured: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """... as measured, whatever the model gives; then it stays fused."""
    n = 60
    a, f = pk.View([n, n], pk.double), pk.View([n], pk.double)
    a.data[:] = matrix(n)
    SESSION.budget._plans.credit = SESSION.budget._kernels.credit = 0.0, 0.0
    now = iter(range(10**6))
    monkeypatch.setattr(budget, "perf_counter", lambda: measured * next(now))
    tune(monkeypatch, launch=0.0)
    tune(monkeypatch, element=0.0)
    assert apart_after(2, lambda _: step(1, n, a, f)) == 4
    SESSION.budget.earned = 1e6
    apart = apart_after(3 * budget.LOOK, lambda _: step(1, n, a, f))
    assert apart_after(3 * budget.LOOK, lambda _: step(1, n, a, f)) == (
        0 if measured > 1.0 else 6 * budget.LOOK
    )
    assert apart <= (2 * budget.LOOK if measured > 1.0 else 6 * budget.LOOK)


def test_trials_cost_a_tenth_of_what_the_program_ran_for() -> None:
    assert not SESSION.budget.pays_trial(1.0, 9.9)
    assert SESSION.budget.pays_trial(1.0, 10.0)
    assert not SESSION.budget.pays_trial(1.0, 19.9)
    assert SESSION.budget.pays_trial(1.0, 20.0)


def test_what_ran_fused_earns_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "PLANNED", 100)
    n = 60
    a, f = pk.View([n, n], pk.double), pk.View([n], pk.double)
    a.data[:] = matrix(n)
    step(1, n, a, f)
    SESSION.budget._plans.credit = SESSION.budget._kernels.credit = 0.0, 0.0
    (program,) = SESSION.programs.values()
    assert program.launches[0].timing.runs == 1 and program.seconds > 0.0
    program.launches[0].timing.runs = int(100.0 / program.seconds)
    assert apart_after(5, lambda k: step(k + 2, n, a, f)) == 0


def test_sizes_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace's own time earns its plan, too."""
    n = 60
    a, f = pk.View([n, n], pk.double), pk.View([n], pk.double)
    a.data[:] = matrix(n)
    SESSION.budget._plans.credit = SESSION.budget._kernels.credit = 0.0, 0.0
    tune(monkeypatch, element=1.0)
    assert apart_after(5, lambda k: step(k, n, a, f)) == 0


def test_traces_that_do_not_come_back_are_planned_twice_if_that_saves_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(budget, "KERNEL", 0.0)
    n = 60
    a, f = pk.View([n, n], pk.double), pk.View([n], pk.double)
    a.data[:] = matrix(n)
    apart = [apart_after(1, lambda _, k=k: step(k, n, a, f)) for k in range(6)]  # type: ignore[misc]
    assert apart == [0, 0, 2, 2, 2, 2]
    times = 2 * budget.PLAN / (2 * budget.APART)  # two calls, and what pays their plan
    came = 1
    while apart_after(1, lambda _: step(3, n, a, f)):
        came += 1
    assert 0.9 * times < came < times + 2  # each run pays a part; to plan pairs takes longer


def test_traces_are_planned_while_that_takes_less_than_to_compile_what_runs_unfused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(budget, "KERNEL", 3.5 * budget.PLAN / budget.SHARE)  # each of the two
    n = 60
    a, f = pk.View([n, n], pk.double), pk.View([n], pk.double)
    a.data[:] = matrix(n)
    apart = [apart_after(1, lambda _, k=k: step(k, n, a, f)) for k in range(6)]  # type: ignore[misc]
    assert apart == [0, 0, 0, 0, 2, 2]


def test_traces_whose_plans_save_much_are_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin of the one above."""
    monkeypatch.setattr("pyfuser.runtime.building.saved", lambda program: 1.0)
    n = 60
    a, f = pk.View([n, n], pk.double), pk.View([n], pk.double)
    a.data[:] = matrix(n)
    assert apart_after(6, lambda k: step(k, n, a, f)) == 0


def test_a_call_alone_with_other_sizes_is_planned_if_these_come_back_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(budget, "APART", budget.PLAN / 1.9)
    monkeypatch.setattr(budget, "KERNEL", 0.0)
    x = pk.View([100], pk.double)
    x.fill(1.0)

    def alone(n: int) -> int:
        def run(_: int) -> None:
            with pyfuser.fusing():
                pk.parallel_for(n, doubled, x=x)

        return apart_after(1, run)

    assert [alone(n) for n in (50, 51, 52, 51, 52, 50)] == [0, 1, 1, 0, 0, 0]


def test_a_result_that_is_divided_by_0_apart_ends_the_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`6.0 / count` is recorded; where its trace runs apart it raises what Python raises."""
    monkeypatch.setattr(budget, "KERNEL", 0.0)
    x = pk.View([scalar_work.LARGE], pk.double)

    def divide(n: int, by: float) -> None:
        with pyfuser.fusing():
            count = pk.parallel_reduce(n, scaled, x=x, by=by)
            pk.parallel_for(n, put, x=x, value=6.0 / count)
            pk.parallel_for(n, doubled, x=x)

    x.fill(1.0)
    for n in range(40, 46):
        before = COUNTERS.apart
        divide(n, 1.0)
        assert (COUNTERS.apart > before) is (n > 41)
    x.fill(1.0)
    before = COUNTERS.apart
    with pytest.raises(ZeroDivisionError):
        divide(47, 0.0)
    pyfuser.sync()
    assert COUNTERS.apart > before
    np.testing.assert_array_equal(x.data, np.ones(scalar_work.LARGE))


@pytest.mark.parametrize("d", [-1, 2])
def test_a_division_runs_apart(d: int) -> None:
    f = pk.View([8], pk.int64)
    SESSION.budget._plans.credit = SESSION.budget._kernels.credit = 0.0, 0.0
    with pyfuser.fusing():
        pk.parallel_for(8, halve, f=f, d=d)
    assert f[0] == int(7 / d)
    assert COUNTERS.apart == 1


def test_a_division_by_0_apart_ends_the_trace() -> None:
    """What was called before has run, once, and what was called after has not."""
    f, by = pk.View([8], pk.int64), pk.View([8], pk.int64)
    by.fill(2)
    pyfuser.sync()
    SESSION.budget._plans.credit = SESSION.budget._kernels.credit = 0.0, 0.0
    for last in (2, 0):
        if HOT is not None:
            HOT.forget()  # else the next calls run at once
        f.fill(7)
        by[5] = last
        with pyfuser.fusing():
            pk.parallel_for(8, one_more, f=f)
            pk.parallel_for(8, quotients, f=f, by=by)
            pk.parallel_for(8, one_more, f=f)
            if last:
                np.testing.assert_array_equal(f.data, np.full(8, 8 + 4 + 1))
                continue
            with pytest.raises(ZeroDivisionError, match=r"called as .quotients"):
                pyfuser.sync()
    np.testing.assert_array_equal(np.delete(f.data, 5), np.full(7, 8 + 4))
    assert COUNTERS.apart == 6 and not TRACER.calls


def test_a_call_that_fails_leaves_what_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 20
    a, f = pk.View([n, n], pk.double), pk.View([n], pk.double)
    a.data[:] = matrix(n)
    SESSION.budget._plans.credit = SESSION.budget._kernels.credit = 0.0, 0.0
    run, seen = eager.run, []

    def failing(call, checked=False, ran=None):
        seen.append(call.name)
        if len(seen) == 2:
            raise MemoryError("no memory")
        run(call, checked, ran)

    monkeypatch.setattr(eager, "run", failing)
    step(1, n, a, f)
    assert seen == ["column", "shrink"]  # the second one ran the second time, in the usual way
    np.testing.assert_array_equal(f.data, matrix(n)[:, 1] / matrix(n)[1, 1])
    np.testing.assert_array_equal(a.data[:, 2], matrix(n)[:, 2] / 1.01)
    assert not TRACER.calls


@pk.workunit
def increment(i, x, by):
    x[i] = x[i] + by


def recorded_of(x: np.ndarray, calls: int) -> int:
    """How many of as many calls on the rows of an array are recorded."""
    before = TRACER.recorded
    with pyfuser.fusing():
        for k in range(calls):
            pk.parallel_for(x.shape[1], increment, x=x[k % len(x)], by=1.0)
    return TRACER.recorded - before


@pytest.mark.skipif(HOT is None, reason="the extension runs them")
def test_tiny_calls_that_run_apart_are_not_recorded_for_long() -> None:
    """To record a tiny call takes longer than to run it."""
    x = np.zeros((5000, 10))
    assert recorded_of(x, 5000) == TRACER.limit and COUNTERS.apart == TRACER.limit
    assert (x == 1.0).all()
    (refusal,) = SESSION.budget._refused.values()
    recorded_of(x, 16 * 1024)  # some are recorded again, to look at the accounts
    assert refusal.ran == 2 * TRACER.limit + budget.LOOK * TRACER.limit
    assert x.sum() == 10 * (5000 + 16 * 1024)


@pytest.mark.skipif(HOT is None, reason="the extension runs them")
def test_calls_that_are_not_tiny_are_recorded() -> None:
    x = np.zeros((600, 10))
    assert recorded_of(x, 600) == TRACER.limit
    large = np.zeros((20, 300_000))
    assert recorded_of(large, 20) == 20 and (large == 1.0).all()


@pytest.mark.skipif(HOT is None, reason="the extension runs them")
def test_calls_behind_pending_ones_are_recorded() -> None:
    x, y = np.zeros((600, 10)), np.full(10, 7.0)
    assert recorded_of(x, 600) == TRACER.limit
    with pyfuser.fusing():
        pk.parallel_for(10, halve, f=pk.View([10], pk.int64), d=2)  # another workunit
        pk.parallel_for(10, increment, x=y, by=1.0)
        assert len(pyfuser.pending()) == 2 and y[0] == 7.0
    assert (y == 8.0).all()


@pk.workunit
def marked(i, x, keep, bound):
    keep[i] = 1 if x[i] < bound else 0


@pk.workunit
def numbered(i, acc: pk.Acc[pk.int32], last_pass, keep, place):
    acc += keep[i]
    if last_pass:
        place[i] = acc


@pk.workunit
def gathered(i, x, y, keep, place):
    if keep[i] == 1:
        y[place[i] - 1] = x[i]


@pytest.mark.skipif(HOT is None, reason="Python records all calls")
def test_lists_whose_length_changes_run_at_once_their_scans_too() -> None:
    """By numbers of indices that are new; a recorded scan would have the others wait."""
    values = np.random.default_rng(4).random(3000)
    x, y = (pk.View([3000], pk.double) for _ in range(2))
    keep, place = (pk.View([3000], pk.int32) for _ in range(2))
    x.data[:] = values
    count, recorded = 3000, pyfuser.stats().recorded
    with pyfuser.fusing():
        for k in range(300):
            bound = 1.0 - 0.002 * (k + 1)
            pk.parallel_for(count, marked, x=x, keep=keep, bound=bound)
            left = pk.parallel_scan(count, numbered, keep=keep, place=place)
            pk.parallel_for(count, gathered, x=x, y=y, keep=keep, place=place)
            count, x, y = int(left), y, x
            values = values[values < bound]
    np.testing.assert_array_equal(x.data[:count], values)
    assert pyfuser.stats().recorded - recorded < 150  # of 900


@pk.workunit
def turned(i, a, f, n, k):
    f[i] = f[i] + a[(i + k) % n][k]


def test_steps_that_wrap_around_are_not_planned_for_ever() -> None:
    """They divide by a number, which is not 0."""

    def run() -> np.ndarray:
        a, f = pk.View([n, n], pk.double), pk.View([n], pk.double)
        a.data[:] = matrix(n)
        for k in range(n - 1):
            pk.parallel_for(pk.RangePolicy(k, n), turned, a=a, f=f, n=n, k=k)
            pk.parallel_for(n, shrink, a=a, k=k, by=1.5)
            f[0]
        return np.array(f.data)

    n = 120
    with pyfuser.unfused():
        expected = run()
    plans = COUNTERS.plans
    with pyfuser.fusing():
        np.testing.assert_array_equal(run(), expected)
    assert COUNTERS.plans - plans <= 80 and COUNTERS.apart
