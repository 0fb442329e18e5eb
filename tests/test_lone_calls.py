"""Tiny calls that are all of a flush each run at once; with others they fuse again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.runtime import budget
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.support.counters import COUNTERS
from pyfuser.support.extension import HOT
from pyfuser.trace.future import Future
from pyfuser.trace.reason import FORK

N, LOOK, LENT = 50, 32, budget.LENT


@pk.workunit
def scale(i, y, x, a):
    y[i] = a * x[i]


@pk.workunit
def total(i, acc, y):
    acc += y[i]


@pytest.fixture(autouse=True)
def anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if HOT is None:
        pytest.skip("the extension is not built")
    monkeypatch.setattr(budget, "SETTINGS", replace(budget.SETTINGS, arbitrate=True))
    monkeypatch.setattr(TRACER, "limit", TRACER.limit)  # a loop sets another one
    HOT.bind_turns(None, None, None)
    SESSION.clear()
    yield
    TRACER.flush(FORK)  # work arrays, too
    SESSION.clear()


def views(n: int = N) -> tuple[pk.View, pk.View]:
    x, y = pk.View([n], pk.double), pk.View([n], pk.double)
    x.data[:] = y.data[:] = np.random.default_rng(1).random(n)
    return x, y


def recorded() -> int:
    return pyfuser.stats().recorded


def sums(y: pk.View, times: int, n: int = N) -> list[float]:
    with pyfuser.fusing():
        return [float(pk.parallel_reduce(n, total, y=y)) for _ in range(times)]


def steps(x: pk.View, y: pk.View, times: int) -> list[float]:
    found = []
    with pyfuser.fusing():
        for step in range(times):
            pk.parallel_for(N, scale, y=y, x=x, a=float(step))
            found.append(float(pk.parallel_reduce(N, total, y=y)))
    return found


def test_sums_that_are_read_run_at_once() -> None:
    _, y = views()
    first = sums(y, 2 * LOOK)
    before = recorded()
    found = sums(y, 10 * LENT)
    assert recorded() - before <= 2 * 10, "nearly all run at once"
    assert set(first + found) == {first[0]}, "with the same bits"


def test_larger_ones_are_recorded() -> None:
    _, y = views(20_000)
    sums(y, 2 * LOOK, 20_000)
    before = recorded()
    sums(y, LENT, 20_000)
    assert recorded() - before == LENT


def test_what_has_company_fuses_again() -> None:
    x, y = views()
    sums(y, 2 * LOOK)
    with pyfuser.unfused():
        expected = [float(np.sum(0.0 * x.data))]
        for step in range(1, 2 * LENT):
            pk.parallel_for(N, scale, y=y, x=x, a=float(step))
            expected.append(float(pk.parallel_reduce(N, total, y=y)))
    assert steps(x, y, 2 * LENT) == expected
    before = recorded(), COUNTERS.launches
    steps(x, y, 10)
    assert (recorded() - before[0], COUNTERS.launches - before[1]) == (20, 10), "one kernel a step"


def test_two_that_keep_each_other_company_at_times() -> None:
    """Both were alone, then are called one after the other: at most LENT of each run at once."""
    x, y = views()
    with pyfuser.fusing():
        for _ in range(2 * LOOK):
            pk.parallel_for(N, scale, y=y, x=x, a=2.0)
            pyfuser.sync()
    sums(y, 2 * LOOK)
    steps(x, y, 2 * LENT)
    before = recorded()
    steps(x, y, 10)
    assert recorded() - before == 20


def test_it_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "left_out", lambda name: name == "lone-calls")
    _, y = views()
    sums(y, 2 * LOOK)
    before = recorded()
    sums(y, LENT)
    assert recorded() - before == LENT


def test_a_result_is_that_of_what_ran_before_it() -> None:
    """Calls that run at once do not overtake what is pending."""
    x, y = views()
    sums(y, 2 * LOOK)
    with pyfuser.fusing():
        for step in range(1, LENT):
            pk.parallel_for(N, scale, y=y, x=x, a=float(step))
            other = pk.parallel_reduce(N, total, y=x)
            found = pk.parallel_reduce(N, total, y=y)
            assert float(found) == pytest.approx(step * x.data.sum())
            assert float(other) == pytest.approx(x.data.sum())


@pk.workunit
def add(i, y, x):
    y[i] = y[i] + x[i]


@pk.workunit
def prefix(i, acc, last, y):
    acc += y[i]
    if last:
        y[i] = acc


@pk.workunit
def halve(i, y):
    y[i] = 0.5 * y[i]


def one_call(kind: str, x: pk.View, y: pk.View, a: float) -> Future | float | None:
    if kind == "scale":
        return pk.parallel_for(N, scale, y=y, x=x, a=a)
    if kind == "sum":
        return pk.parallel_reduce(N, total, y=y)
    if kind == "prefix":
        return pk.parallel_scan(N, prefix, y=y)
    if kind == "add":
        return pk.parallel_for(N, add, y=y, x=x)
    return pk.parallel_for(N, halve, y=y)


def program(seed: int) -> list[float]:
    """Phases of a pattern each, which comes again and again: calls, and what is read after them."""
    rng = random.Random(seed)
    some = [pk.View([N], pk.double) for _ in range(4)]
    for view in some:
        view.data[:] = np.random.default_rng(seed).random(N)
    some.append(some[0][::-1])
    seen: list[float] = []
    kinds = "scale", "sum", "sum", "prefix", "add", "halve"
    for _ in range(8):
        two = some[:4] if rng.random() < 0.5 else some[1:]  # of which none share memory
        pattern = [(rng.choice(kinds), *rng.sample(two, 2)) for _ in range(rng.randint(1, 3))]
        reads = [rng.choice(("result", "element", "data", "nothing")) for _ in pattern]
        for step in range(rng.choice((40, 80, 300))):
            for (kind, x, y), read in zip(pattern, reads, strict=True):
                result = one_call(kind, x, y, 0.5 + step % 3)
                if read == "result" and result is not None:
                    seen.append(float(result))
                elif read == "element":
                    seen.append(float(y[step % N]))
                elif read == "data":
                    seen.append(float(y.data[step % N]))
            if step % 16 == 0:  # else sums grow beyond all numbers
                for view in some[:4]:
                    pk.parallel_for(N, scale, y=view, x=view, a=1e-3)
    return [*seen, *(float(value) for view in some for value in view.data)]


@pytest.mark.parametrize("seed", range(12))
def test_random_loops(seed: int) -> None:
    with pyfuser.unfused():
        expected = program(seed)
    with pyfuser.fusing():
        found = program(seed)
    np.testing.assert_array_equal(found, expected)
