"""Captured steps: what a function does is done again, and what cannot be promised is told."""

from __future__ import annotations

import contextlib
import math
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.runtime.session import TRACER
from pyfuser.support.extension import HOT
from tests import sessions

N = 16
LIVES = 5  # calls after which the extension runs a step, if it is there


@pk.workunit
def scale(i, y, x, a):
    y[i] = a * x[i]


@pk.workunit
def axpy(i, y, x, a):
    y[i] = y[i] + a * x[i]


@pk.workunit
def add(i, y, x):
    y[i] += x[i]


@pk.workunit
def total(i, acc, x):
    acc += x[i]


@pk.workunit
def relax(i, new, u):
    new[i] = u[i] if i == 0 or i == 15 else 0.5 * (u[i - 1] + u[i + 1])


@pk.workunit
def divide(i, y, d):
    y[i] = y[i] // d[i]


class Counted:
    """A function, and how often it ran."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.runs = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.runs += 1
        return self.function(*args, **kwargs)


@pytest.fixture(autouse=True)
def session() -> Iterator[None]:
    with sessions.fresh():
        yield
        assert not TRACER.calls and TRACER.watch is None and type(TRACER.calls) is list
    pyfuser.discard()


def view(*values: float, dtype: Any = pk.double) -> pk.View:
    made = pk.View([N], dtype)
    made[:] = np.resize(np.array(values, float), N)
    return made


def captured(function: Callable[..., Any]) -> tuple[Any, Counted]:
    counted = Counted(function)
    return pyfuser.capture(counted), counted


@contextlib.contextmanager
def told(*parts: str) -> Iterator[None]:
    """One warning, with these words, at a line of this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    found = [w for w in caught if w.category is pyfuser.CaptureWarning]
    assert len(found) == 1, [str(w.message) for w in caught]
    assert all(part in str(found[0].message) for part in parts), str(found[0].message)
    assert found[0].filename == __file__


def smoothed(u: pk.View, v: pk.View, a: float) -> Any:
    t = pk.View([N], pk.double)
    pk.parallel_for(N, scale, y=t, x=u, a=a)
    pk.parallel_for(N, axpy, y=v, x=t, a=0.5)
    return pk.parallel_reduce(N, total, x=v)


def test_the_function_runs_once_and_its_calls_each_time() -> None:
    step, counted = captured(smoothed)
    u, v, expected = view(1.0), view(0.0), np.zeros(N)
    for k in range(LIVES):
        expected += 0.5 * k
        assert float(step(u, v, float(k))) == expected.sum()
    assert counted.runs == 1
    assert np.array_equal(np.asarray(v), expected)
    assert len(step.entries) == (HOT is not None)


def test_what_runs_in_the_extension_counts_and_is_explained() -> None:
    step, _ = captured(smoothed)
    u, v = view(1.0), view(0.0)
    for _ in range(LIVES):
        step(u, v, 1.0)
    before = pyfuser.stats()
    step(u, v, 1.0)
    after = pyfuser.stats()
    assert (after.flushes - before.flushes, after.launches - before.launches) == (1, 1)
    assert after.replays - before.replays == 1
    assert "a captured step runs" in str(pyfuser.explain())


def test_other_memory_of_the_same_kind_is_taken() -> None:
    step, counted = captured(smoothed)
    for k in range(2 * LIVES):
        u, v = view(float(k)), view(1.0)
        assert float(step(u, v, 2.0)) == N * (1.0 + k)
    assert counted.runs == 1


def test_rows_are_taken() -> None:
    table, y = pk.View([4, N], pk.double), view(*[0.0] * N)
    table[:] = np.arange(4.0 * N).reshape(4, N)
    added = Counted(lambda y, x: pk.parallel_for(N, add, y=y, x=x))
    step = pyfuser.capture(added)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in (1, 3, 1, 0, 2, 3, 3):
            step(y, table[k])
            step(table[k], y)
    assert added.runs < 4
    expected, rows = np.zeros(N), np.arange(4.0 * N).reshape(4, N)
    for k in (1, 3, 1, 0, 2, 3, 3):
        expected += rows[k]
        rows[k] += expected
    assert np.array_equal(np.asarray(y), expected) and np.array_equal(np.asarray(table), rows)


def test_other_shapes_and_types_are_other_kinds() -> None:
    def double(x: pk.View) -> None:
        pk.parallel_for(x.extent(0), add, y=x, x=x)

    step, counted = captured(double)
    x, y, z = view(1.0), view(1.0, dtype=pk.float), pk.View([3], pk.double)
    z.fill(1.0)
    for _ in range(LIVES):
        for one in (x, y, z):
            step(one)
    assert counted.runs == 3
    for one in (x, y, z):
        assert np.all(np.asarray(one) == 2.0**LIVES)


def test_an_integer_is_a_part_of_the_kind_and_so_is_a_number_that_is_looked_at() -> None:
    def powers(x: pk.View, n: int, a: float) -> None:
        for _ in range(n):
            pk.parallel_for(N, scale, y=x, x=x, a=2.0 * a if a > 0 else 0.0)

    step, counted = captured(powers)
    for n, a in [(1, 1.0), (2, 1.0), (1, 3.0), (2, 1.0), (1, 3.0), (1, 1.0)] * LIVES:
        x = view(1.0)
        step(x, n, a)
        assert np.all(np.asarray(x) == (2.0 * a) ** n)
    assert counted.runs == 3


def test_a_number_that_is_only_passed_on_may_change() -> None:
    step, counted = captured(lambda x, a: pk.parallel_for(N, scale, y=x, x=x, a=a))
    for a in range(1, LIVES + 3):
        x = view(1.0)
        step(x, float(a))
        assert np.all(np.asarray(x) == a)
        step(x, np.float64(a))
        assert np.all(np.asarray(x) == a * a)
    assert counted.runs == 1


def test_a_number_that_does_not_fit_raises_as_it_does_elsewhere() -> None:
    @pk.workunit
    def single(i, y, a: pk.float):
        y[i] = a

    step, _ = captured(lambda y, a: pk.parallel_for(N, single, y=y, a=a))
    y = view(0.0)
    for _ in range(LIVES):
        step(y, 2.0)
    step(y, 1e300)
    assert np.all(np.isinf(np.asarray(y)))


def test_the_same_view_twice_is_another_kind_than_two_views() -> None:
    step, counted = captured(lambda y, x: pk.parallel_for(N, add, y=y, x=x))
    x, y = view(1.0), view(1.0)
    for _ in range(LIVES):
        step(y, x)
    for _ in range(LIVES):
        step(x, x)
    assert counted.runs == 2
    assert np.asarray(y)[0] == 1.0 + LIVES and np.asarray(x)[0] == 2.0**LIVES


def shifted(a: pk.View, b: pk.View) -> None:
    pk.parallel_for(8, add, y=a, x=b)
    pk.parallel_for(8, add, y=b, x=a)


@pytest.mark.parametrize("starts", [(0, 8), (0, 4), (4, 0), (0, 0), (2, 3)])
@pytest.mark.filterwarnings("ignore:workunit 'add'")
def test_parts_that_overlap_in_another_way(starts: tuple[int, int]) -> None:
    """Views of the same kinds: what the memory allows is found anew."""
    step, counted = captured(shifted)
    apart, values = pk.View([N], pk.double), np.arange(N, dtype=float)
    for round_ in range(2 * LIVES):
        one, other = (0, 8) if round_ < LIVES else starts
        apart[:] = values
        expected = values.copy()
        for i in range(8):  # the workunits' own order, where parts overlap by accident
            expected[one + i] += expected[other + i] if abs(one - other) >= 8 else 0.0
        a, b = apart[one : one + 8], apart[other : other + 8]
        step(a, b)
        if abs(one - other) >= 8:
            expected[other : other + 8] += expected[one : one + 8]
            assert np.array_equal(np.asarray(apart), expected)
    assert counted.runs == 1


def test_parts_of_arguments_are_parts_next_time() -> None:
    def halves(x: pk.View) -> None:
        pk.parallel_for(N // 2, add, y=x[: N // 2], x=x[N // 2 :])

    step, counted = captured(halves)
    for k in range(LIVES + 2):
        x = view(*range(k, k + N))
        step(x)
        expected = np.arange(k, k + N, dtype=float)
        expected[: N // 2] += expected[N // 2 :]
        assert np.array_equal(np.asarray(x), expected)
    assert counted.runs == 1


def test_what_is_outside_stays_which_memory_it_is() -> None:
    outside, array = view(1.0), np.full(N, 2.0)

    def both(x: pk.View) -> None:
        pk.parallel_for(N, add, y=x, x=outside)
        pk.parallel_for(N, add, y=x, x=array)

    step, counted = captured(both)
    x = view(0.0)
    for _ in range(LIVES):
        step(x)
    outside.fill(10.0)
    array[:] = 20.0
    step(x)
    assert counted.runs == 1 and np.all(np.asarray(x) == 3.0 * LIVES + 30.0)


def test_an_argument_that_is_outside_as_well() -> None:
    """The part that the function reaches by itself is no argument, also where it is the same."""
    outside = view(1.0)
    step, counted = captured(lambda x: pk.parallel_for(N, axpy, y=x, x=outside, a=1.0))
    x = view(0.0)
    step(outside)
    for _ in range(LIVES):
        step(x)
    assert counted.runs == 1
    assert np.all(np.asarray(outside) == 2.0) and np.all(np.asarray(x) == 2.0 * LIVES)


def test_temporaries_are_zero_each_time() -> None:
    def sums(y: pk.View) -> None:
        t = pk.View([N], pk.double)
        pk.parallel_for(N // 2, add, y=t[: N // 2], x=y[: N // 2])
        pk.parallel_for(N, add, y=y, x=t)

    step, _ = captured(sums)
    y, expected = view(1.0), np.ones(N)
    for _ in range(2 * LIVES):
        step(y)
        expected[: N // 2] *= 2.0
        assert np.array_equal(np.asarray(y), expected)


def test_results_of_all_kinds_are_new_each_time() -> None:
    def made(x: pk.View, y: pk.View) -> Any:
        half, whole = pk.View([N], pk.double), pk.View([N], pk.double)
        pk.parallel_for(N, add, y=whole, x=x)
        pk.parallel_for(N // 2, add, y=half[: N // 2], x=x)
        return {"all": [half, (whole, y)], "sum": pk.parallel_reduce(N, total, x=whole), "n": 3}

    step, counted = captured(made)
    y = view(0.0)
    kept = []
    for k in range(LIVES + 2):
        x = view(float(k))
        result = step(x, y)
        half, (whole, same) = result["all"]
        assert same is y and result["n"] == 3 and float(result["sum"]) == N * k
        kept.append((half, whole))
    assert counted.runs == 1
    for k, (half, whole) in enumerate(kept):
        assert np.all(np.asarray(whole) == k)
        assert np.array_equal(np.asarray(half), np.where(np.arange(N) < N // 2, k, 0.0))


def test_a_result_is_the_argument_itself_the_first_time_too() -> None:
    step = pyfuser.capture(lambda x, a: (x, a))
    x = view(1.0)
    for _ in range(LIVES):
        assert step(x, 2.0) == (x, 2.0)
        assert step(x, 2.0)[0] is x


def test_a_sum_that_a_later_call_uses() -> None:
    def mean(x: pk.View) -> Any:
        s = pk.parallel_reduce(N, total, x=x)
        pk.parallel_for(N, axpy, y=x, x=x, a=s)
        return s

    step, counted = captured(mean)
    x, expected = view(1.0), 1.0
    for _ in range(LIVES):
        assert float(step(x)) == N * expected
        expected += N * expected * expected
        assert np.asarray(x)[3] == expected
    assert counted.runs == 1


def test_a_future_is_a_number_as_any_other() -> None:
    step, counted = captured(lambda x, a: pk.parallel_for(N, scale, y=x, x=x, a=a))
    x = view(1.0)
    for _ in range(LIVES):
        with pyfuser.fusing():
            s = pk.parallel_reduce(N, total, x=view(0.125))
            step(x, s)
    assert counted.runs == 1 and np.all(np.asarray(x) == 2.0**LIVES)


OPERATIONS: list[Callable[[Any, Any, Any], Any]] = [
    lambda s, t, a: s + t,
    lambda s, t, a: s - t,
    lambda s, t, a: s * t,
    lambda s, t, a: s / t,
    lambda s, t, a: -s,
    lambda s, t, a: a * s - t / a,
    lambda s, t, a: 2 * s + 1 / t,
    lambda s, t, a: (1.0 - s) / 3 * -(a - 7),
    lambda s, t, a: a + a * a,
]
SPECIAL = [0.1, -0.0, 3.0, -1e300, 1e300, 5e-324, np.inf, -np.inf, np.nan, 1 / 3]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_arithmetic_on_results_is_pythons_to_the_bit(operation: Callable[..., Any]) -> None:
    def body(x: pk.View, y: pk.View, a: float) -> Any:
        s, t = (pk.parallel_reduce(pk.RangePolicy(0, 1), total, x=v) for v in (x, y))
        return s, t, operation(s, t, a)

    step, counted = captured(body)
    for s in SPECIAL:
        for t in SPECIAL[:1] + SPECIAL[2:]:
            found = step(view(s), view(t), t)
            one, other = map(float, found[:2])  # a sum of -0.0 alone is 0.0
            assert type(found[2]) is type(found[0])
            expected = np.float64(operation(one, other, t))
            assert np.float64(float(found[2])).tobytes() == expected.tobytes(), (s, t)
    assert counted.runs == 1


def test_sums_of_floats_and_arithmetic_that_later_calls_use() -> None:
    @pk.workunit
    def narrow(i: int, acc: pk.Acc[pk.float], x: pk.View1D[pk.float]) -> None:
        acc += x[i]

    def body(x: pk.View, y: pk.View) -> None:
        s = pk.parallel_reduce(N, narrow, x=x)
        pk.parallel_for(N, axpy, y=y, x=y, a=s / 3 - 1.0)

    step, counted = captured(body)
    for k in range(LIVES):
        x, y = view(0.1 * k, dtype=pk.float), view(1.0)
        step(x, y)
        with pyfuser.unfused():
            s = pk.parallel_reduce(N, narrow, x=x)
        assert np.asarray(y)[2] == 1.0 + (float(s) / 3 - 1.0)
    assert counted.runs == 1


def conjugate_gradients(x: Any, r: Any, p: Any, q: Any, rr: Any) -> Any:
    pk.parallel_for(N, relax, new=q, u=p)
    pk.parallel_for(N, axpy, y=q, x=p, a=2.0)
    pq = pk.parallel_reduce(N, product, x=p, y=q)
    alpha = rr / pq
    pk.parallel_for(N, axpy, y=x, x=p, a=alpha)
    pk.parallel_for(N, axpy, y=r, x=q, a=-alpha)
    new = pk.parallel_reduce(N, product, x=r, y=r)
    pk.parallel_for(N, scale, y=p, x=p, a=new / rr)
    pk.parallel_for(N, add, y=p, x=r)
    return new


@pk.workunit
def product(i, acc, x, y):
    acc += x[i] * y[i]


def test_a_solver_does_not_come_back_to_the_host() -> None:
    step, counted = captured(conjugate_gradients)
    results = []
    for function in (step, conjugate_gradients):
        views, rr = [view(0.0), *(view(1.0, 2.0, -3.0) for _ in range(3))], 75.0
        history = []
        for _ in range(LIVES + 3):
            with pyfuser.unfused() if function is not step else contextlib.nullcontext():
                rr = function(*views, rr)
            history.append(float(rr))
        results.append((history, [np.asarray(v).tobytes() for v in views]))
    assert results[0] == results[1] and counted.runs == 1


@pytest.mark.parametrize("zero", ["sum", "number"])
def test_a_quotient_by_zero_is_pythons_error(zero: str) -> None:
    def body(x: pk.View, y: pk.View, z: pk.View, a: float) -> Any:
        pk.parallel_for(N, add, y=y, x=y)
        s = pk.parallel_reduce(N, total, x=x) if zero == "sum" else a
        quotient = 1.0 / s  # HERE
        pk.parallel_for(N - 1, axpy, y=z, x=z, a=quotient)
        return quotient

    step, counted = captured(body)
    y, z = view(1.0), view(1.0)
    for _ in range(LIVES):
        step(view(1.0), y, z, 2.0)
    before = np.asarray(z).copy()
    with pytest.raises(ZeroDivisionError, match=r"a number was divided by 0\n.*# HERE"):
        float(step(view(0.0), y, z, 0.0))
    assert counted.runs == 1 and np.all(np.asarray(y) == 2.0 ** (LIVES + 1))
    assert np.asarray(z).tobytes() == before.tobytes()


@pytest.mark.parametrize(
    "operation",
    [
        lambda s, n: s // 2,
        lambda s, n: s**2,
        lambda s, n: s % 3,
        lambda s, n: s * True,
        lambda s, n: s + ((1 << 53) + 1),
        lambda s, n: s + 1j,
        lambda s, n: n + 1,
        lambda s, n: abs(s),
        lambda s, n: 1.0 if s < 2 else 0.0,
        lambda s, n: np.float64(2.0) * s,
    ],
)
def test_arithmetic_that_is_not_a_double_reads(operation: Callable[..., Any]) -> None:
    @pk.workunit
    def counts(i: int, acc: pk.Acc[int]) -> None:
        acc += 1

    def body(x: pk.View) -> Any:
        s, n = pk.parallel_reduce(N, total, x=x), pk.parallel_reduce(N, counts)
        return operation(s, n)

    step, _ = captured(body)
    with told("a result is read"):
        found = step(view(1.0))
    expected = operation(float(N), N)
    assert found == expected and type(found) is type(expected)


def test_a_quotient_by_a_zero_that_is_written_raises_at_once() -> None:
    step, _ = captured(lambda x: pk.parallel_reduce(N, total, x=x) / 0.0)
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        step(view(1.0))


def test_what_was_recorded_before_runs_before() -> None:
    step, _ = captured(lambda y, x: pk.parallel_for(N, add, y=y, x=x))
    x, y, expected = view(1.0), view(0.0), 0.0
    with pyfuser.fusing():
        for k in range(LIVES + 2):
            pk.parallel_for(N, scale, y=x, x=x, a=2.0)
            step(y, x)
            expected += 2.0 ** (k + 1)
    assert np.all(np.asarray(y) == expected)


def test_an_argument_by_name_and_a_method() -> None:
    class Solver:
        def __init__(self) -> None:
            self.x = view(1.0)

        @pyfuser.capture
        def step(self, y: pk.View, *, a: float) -> None:
            pk.parallel_for(N, axpy, y=y, x=self.x, a=a)

    one, other, y = Solver(), Solver(), view(0.0)
    other.x.fill(10.0)
    for _ in range(LIVES):
        one.step(y, a=1.0)
        other.step(y=y, a=1.0)
    assert np.all(np.asarray(y) == 11.0 * LIVES)


FACTOR = 2.0


@pk.workunit
def by_global(i, y):
    y[i] = y[i] * FACTOR


class Settings:
    def __init__(self) -> None:
        self.dt, self.inner = 1.0, [1.0]


@pk.workunit
def put(i, y, a):
    y[i] = a


SETTINGS, A = Settings(), 1.0


def helper(y: pk.View) -> None:
    pk.parallel_for(N, axpy, y=y, x=y, a=A)


def by_names() -> dict[str, tuple[Callable[..., None], Callable[[float], None]]]:
    """Functions that read a number from outside, and how it is changed."""
    nested, own, cell = Settings(), Settings(), 1.0
    nested.own = own  # type: ignore[attr-defined]

    def in_closure(y: pk.View) -> None:
        pk.parallel_for(N, put, y=y, a=cell)

    def change_cell(a: float) -> None:
        nonlocal cell
        cell = a

    def change_global(a: float) -> None:
        globals()["A"] = a

    def change_factor(a: float) -> None:
        globals()["FACTOR"] = a

    class Simulation(Settings):
        def step(self, y: pk.View) -> None:
            pk.parallel_for(N, put, y=y, a=self.dt)

    mine = Simulation()
    return {
        "global": (lambda y: pk.parallel_for(N, put, y=y, a=A), change_global),
        "helper": (lambda y: (pk.parallel_for(N, put, y=y, a=0.5), helper(y)), change_global),
        "workunit": (lambda y: (pk.parallel_for(N, put, y=y, a=1.0),
                                pk.parallel_for(N, by_global, y=y)), change_factor),
        "closure": (in_closure, change_cell),
        "attribute": (lambda y: pk.parallel_for(N, put, y=y, a=SETTINGS.dt),
                      lambda a: setattr(SETTINGS, "dt", a)),
        "attributes": (lambda y: pk.parallel_for(N, put, y=y, a=nested.own.dt),
                       lambda a: setattr(own, "dt", a)),
        "method": (mine.step, lambda a: setattr(mine, "dt", a)),
        "argument": (lambda y, s=SETTINGS: pk.parallel_for(N, put, y=y, a=s.dt),
                     lambda a: setattr(SETTINGS, "dt", a)),
    }  # fmt: skip


@pytest.mark.parametrize("kind", by_names())
def test_names_that_mean_something_else_later(kind: str) -> None:
    function, change = by_names()[kind]
    step, y = pyfuser.capture(function), view(0.0)
    try:
        for a in [1.0] * LIVES + [2.0, 3.0, 1.0, 1.0, 2.0, -0.0, 0.0]:
            change(a)
            function(y)
            expected = np.asarray(y).tobytes()
            y.fill(7.0)
            step(y)
            assert np.asarray(y).tobytes() == expected, a
        assert HOT is None or step.entries
    finally:
        globals().update(A=1.0, FACTOR=2.0)
        SETTINGS.dt = 1.0


def test_a_view_that_a_name_means_may_be_another_one_next_time() -> None:
    one, other = view(1.0), view(2.0)

    def function() -> None:
        pk.parallel_for(N, add, y=one, x=other)

    step = pyfuser.capture(function)
    for _ in range(LIVES):
        step()
        one, other = other, one
    numbers = [1.0, 2.0]
    for _ in range(LIVES):
        numbers = [numbers[1], numbers[0] + numbers[1]]
    assert [float(one[0]), float(other[0])] == numbers


def test_what_is_inside_of_containers_is_frozen() -> None:
    """As docs/capture.md says; a function that is captured anew sees what there is now."""
    calls = [1]

    def function(y: pk.View) -> None:
        for _ in calls:
            pk.parallel_for(N, by_global, y=y)

    step, y = pyfuser.capture(function), view(1.0)
    for _ in range(LIVES):
        step(y)
    calls.append(2)
    step(y)
    assert np.all(np.asarray(y) == 2.0 ** (LIVES + 1))
    pyfuser.capture(function)(y)
    assert np.all(np.asarray(y) == 2.0 ** (LIVES + 3))


def counts(y: pk.View) -> None:
    global A
    A += 0.0
    pk.parallel_for(N, put, y=y, a=A)


def exchanges(y: pk.View, x: pk.View) -> None:
    pk.parallel_for(N, add, y=y, x=x)
    y, x = x, y


def advances(s: Settings, y: pk.View) -> None:
    s.dt += 1.0
    pk.parallel_for(N, put, y=y, a=s.dt)


ITEMS, NEXT = {"a": [0.0]}, iter([1.0] * 2 * LIVES)


def sets_items(y: pk.View) -> None:
    ITEMS["a"][0] += 1.0
    pk.parallel_for(N, put, y=y, a=ITEMS["a"][0])


def takes_the_next(y: pk.View) -> None:
    pk.parallel_for(N, axpy, y=y, x=y, a=next(NEXT) - 1.0)


def sets_items_of_its_own(y: pk.View) -> None:
    mine = {"a": 2.0}
    mine["a"] -= 1.0
    pk.parallel_for(N, put, y=y, a=mine["a"] + next(iter([1.0])))


@pytest.mark.parametrize(
    ("function", "arguments", "why"),
    [
        (sets_items, (), "it sets items of \"ITEMS['a']\""),
        (takes_the_next, (), "it takes the next item of 'NEXT'"),
        (counts, (), "it sets the global 'A'"),
        (exchanges, (1.0,), "it sets its argument 'y' in the end, which nothing sees"),
        (advances, (Settings(),), "it sets the attribute 'dt'"),
    ],
)
def test_what_happens_once_only_is_not_captured(
    function: Callable[..., None], arguments: tuple[Any, ...], why: str
) -> None:
    step, y = pyfuser.capture(function), view(1.0)
    given = [view(a) if type(a) is float else a for a in arguments]
    with told(why):
        for _ in range(LIVES):
            step(
                *(given if function is advances else []),
                y,
                *(given if function is exchanges else []),
            )
    expected = {counts: A, sets_items: ITEMS["a"][0], takes_the_next: 1.0}
    assert np.all(np.asarray(y) == expected.get(function, 1.0 + LIVES))


def test_a_step_may_change_what_it_made() -> None:
    step, y = pyfuser.capture(sets_items_of_its_own), view(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step(y)
    assert y[0] == 2.0


def test_a_part_of_the_arguments_may_be_set_before_it_is_read() -> None:
    def function(y: pk.View, x: pk.View) -> None:
        for _ in range(2):
            pk.parallel_for(N, add, y=y, x=x)
            y, x = x, y

    step = pyfuser.capture(function)
    y, x = view(1.0), view(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step(y, x)
    assert [float(y[0]), float(x[0])] == [2.0, 3.0]


def test_what_is_no_step() -> None:
    with pytest.raises(pyfuser.ArgumentError, match="'add' is a workunit"):
        pyfuser.capture(add)

    @pyfuser.capture()
    def step(y: pk.View) -> None:
        pk.parallel_for(N, add, y=y, x=y)

    for n in (-1, 2.0, view(1.0), True, "3"):
        with pytest.raises(pyfuser.ArgumentError, match="the number of steps comes first"):
            step.repeat(n, view(1.0))  # type: ignore[arg-type]
    y = view(1.0)
    assert step.repeat(np.int64(3), y).steps == 3 and float(y[0]) == 8.0
    with pytest.raises(pyfuser.ArgumentError, match="a list of pairs"):
        step.repeat(1, y, swap=(y, y))


def test_a_step_within_a_step_and_a_block_that_runs_at_once() -> None:
    inner = pyfuser.capture(lambda y, x: pk.parallel_for(N, add, y=y, x=x))

    def both(y: pk.View, x: pk.View) -> None:
        inner(y, x)
        inner(y, x)

    step, counted = captured(both)
    x, y = view(1.0), view(0.0)
    for _ in range(LIVES):
        step(y, x)
    assert counted.runs == 1
    with pyfuser.unfused():
        step(y, x)
    assert counted.runs == 2 and np.all(np.asarray(y) == 2.0 * (LIVES + 1))


# ----------------------------------------------------------------- what is not promised


def reads_a_result(x: pk.View) -> None:
    s = pk.parallel_reduce(N, total, x=x)
    if s > 100.0:
        pk.parallel_for(N, scale, y=x, x=x, a=0.5)
    pk.parallel_for(N, add, y=x, x=x)


def reads_a_view(x: pk.View) -> None:
    pk.parallel_for(N, scale, y=x, x=x, a=float(x[0]))


def writes_a_view(x: pk.View) -> None:
    x[0] = 7.0
    pk.parallel_for(N, add, y=x, x=x)


def reads_a_part(x: pk.View) -> None:
    pk.parallel_for(N, scale, y=x, x=x, a=float(x[2:][1]))


def syncs(x: pk.View) -> None:
    pk.parallel_for(N, add, y=x, x=x)
    pyfuser.sync()


def has_a_block(x: pk.View) -> None:
    with pyfuser.fusing():
        pk.parallel_for(N, add, y=x, x=x)


def runs_at_once(x: pk.View) -> None:
    with pyfuser.unfused():
        pk.parallel_for(N, add, y=x, x=x)


def takes_an_array(x: pk.View) -> None:
    x.data[:] += 1.0


def drops(x: pk.View) -> None:
    pk.parallel_for(N, add, y=x, x=x)
    pyfuser.discard()


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (reads_a_result, "a result is read"),
        (reads_a_view, "a View is read or written"),
        (writes_a_view, "a View is read or written"),
        (reads_a_part, "a View is read or written"),
        (syncs, "pyfuser.sync()"),
        (has_a_block, "a block of fusing() ends"),
        (runs_at_once, "a block of unfused() begins"),
        (takes_an_array, "a View is read or written"),
        (drops, "it drops calls"),
    ],
)
def test_what_cannot_be_promised_is_told_once_and_runs(
    function: Callable[[Any], None], why: str
) -> None:
    step, counted = captured(function)
    x, other = view(1.0, 2.0, 3.0, 4.0), view(1.0, 2.0, 3.0, 4.0)
    with told(why):
        for _ in range(LIVES):
            step(x)
            with pyfuser.fusing():
                function(other)
    assert counted.runs == LIVES
    assert np.array_equal(np.asarray(x), np.asarray(other))


KEPT: list[Any] = []


def keeps(x: pk.View) -> None:
    KEPT.append(pk.View([N], pk.double))
    pk.parallel_for(N, add, y=KEPT[-1], x=x)


def makes_an_array(x: pk.View) -> None:
    array = np.ones(N)
    pk.parallel_for(N, add, y=array, x=x)
    pk.parallel_for(N, scale, y=x, x=array, a=1.0)


def makes_parts(x: pk.View) -> None:
    array = np.ones(2 * N)
    pk.parallel_for(N, add, y=array[:N], x=x)
    pk.parallel_for(N, scale, y=x, x=array[:N], a=1.0)


def returns_a_part(x: pk.View) -> Any:
    pk.parallel_for(N, add, y=x, x=x)
    return x[1:]


@pytest.mark.parametrize("function", [keeps, makes_an_array, makes_parts, returns_a_part])
def test_memory_that_is_not_new_each_time(function: Callable[[Any], Any]) -> None:
    KEPT.clear()
    step, counted = captured(function)
    x = view(1.0)
    expected = 1.0
    with told("runs as usual each time"):
        for _ in range(LIVES):
            step(x)
            expected += {keeps: 0.0, returns_a_part: expected}.get(function, 1.0)
    assert counted.runs == LIVES
    assert np.all(np.asarray(x) == expected)
    assert all(np.all(np.asarray(kept) == 1.0) for kept in KEPT)


@pytest.mark.parametrize("given", [np.ones(N), [1.0], (1.0,), {"a": 1}])
def test_arguments_that_hold_others_or_are_arrays(given: Any) -> None:
    step, counted = captured(lambda x, given: pk.parallel_for(N, add, y=x, x=x))
    with told("an argument is"):
        for _ in range(LIVES):
            step(view(1.0), given)
    assert counted.runs == LIVES


def test_a_part_that_the_function_keeps_stays_a_view_of_the_argument() -> None:
    parts: list[Any] = []

    def keep(x: pk.View) -> None:
        parts.append(x[1:3])
        pk.parallel_for(N, add, y=x, x=x)

    step, _ = captured(keep)
    x = view(1.0)
    step(x)
    with pyfuser.fusing():
        pk.parallel_for(N, scale, y=x, x=x, a=5.0)
        assert list(parts[0]) == [10.0, 10.0]


def test_an_error_in_the_function_leaves_nothing() -> None:
    def wrong(x: pk.View, fails: bool) -> None:
        pk.parallel_for(N, add, y=x, x=x)
        if fails:
            raise ValueError("mine")

    step = pyfuser.capture(wrong)
    x = view(1.0)
    for _ in range(LIVES):
        with pytest.raises(ValueError, match="mine"):
            step(x, True)
        step(x, False)
    assert np.all(np.asarray(x) == 4.0**LIVES)


def test_a_division_by_zero_ends_the_step() -> None:
    def divided(y: pk.View, d: pk.View, z: pk.View) -> None:
        pk.parallel_for(N, divide, y=y, d=d)
        pk.parallel_for(N - 1, add, y=z, x=z)

    step, counted = captured(divided)
    y, d, z = view(8.0, dtype=pk.int64), view(1.0, dtype=pk.int64), view(1.0)
    for _ in range(LIVES):
        step(y, d, z)
    d[3] = 0
    with pytest.raises(pyfuser.DivisionError, match="divide"):
        step(y, d, z)
    d[3] = 2
    step(y, d, z)
    assert counted.runs == 1 and np.asarray(y)[3] == 0
    assert np.all(np.asarray(z)[: N - 1] == 2.0 ** (LIVES + 1))


# ----------------------------------------------------------------- many steps


def one_step(u: pk.View, new: pk.View) -> Any:
    pk.parallel_for(N, relax, new=new, u=u)
    return pk.parallel_reduce(N, total, x=new)


def by_hand(values: np.ndarray, steps: int) -> np.ndarray:
    for _ in range(steps):
        values = np.concatenate([values[:1], 0.5 * (values[:-2] + values[2:]), values[-1:]])
    return values


@pytest.mark.parametrize("n", [0, 1, 2, 7, 100])
def test_repeat_exchanges_memory(n: int) -> None:
    step, counted = captured(one_step)
    start = np.arange(N, dtype=float) ** 2
    for _ in range(LIVES):
        u, new = pk.View([N], pk.double), view(0.0)
        u[:] = start
        done = step.repeat(n, u, new, swap=[(u, new)])
        assert done.steps == n and np.array_equal(np.asarray(u), by_hand(start, n))
        assert n == 0 or math.isclose(float(done.result), by_hand(start, n).sum(), rel_tol=1e-14)
        assert counted.runs == min(n, 1)


def test_repeat_ends_when_the_result_is_small_enough() -> None:
    def half(x: pk.View) -> Any:
        pk.parallel_for(N, scale, y=x, x=x, a=0.5)
        return pk.parallel_reduce(N, total, x=x)

    step = pyfuser.capture(half)
    for _ in range(LIVES):
        x = view(1.0)
        done = step.repeat(1000, x, until=0.01)
        assert done.steps == 11 and float(done.result) == N / 2**11


def test_repeat_of_three_views_in_turns() -> None:
    step = pyfuser.capture(lambda a, b, c: pk.parallel_for(N, scale, y=c, x=a, a=2.0))
    a, b, c = view(1.0), view(10.0), view(100.0)
    values = [1.0, 10.0, 100.0]
    for n in (1, 2, 3, 4, 5, 6, 50):
        step.repeat(n, a, b, c, swap=[(a, b), (b, c)])
        for _ in range(n):
            values[2] = 2.0 * values[0]
            values = [values[1], values[2], values[0]]
        assert [float(one[0]) for one in (a, b, c)] == values


def test_what_repeat_cannot_exchange_is_told() -> None:
    step = pyfuser.capture(lambda a: pk.parallel_for(N, scale, y=a, x=a, a=2.0))
    a, b = view(1.0), view(2.0)
    with pytest.raises(pyfuser.ArgumentError, match=r"\[16\] of float64 is none of them"):
        step.repeat(2, a, swap=[(a, b)])


def test_repeat_of_what_cannot_be_captured() -> None:
    step = pyfuser.capture(reads_a_result)
    x = view(1.0)
    with told("a result is read"):
        assert step.repeat(5, x).steps == 5
    assert np.asarray(x)[0] == 8.0  # the fourth and fifth sum are above 100


@pytest.mark.parametrize("wrong", ["outside", "twice", "shapes", "number"])
def test_repeat_of_what_cannot_be_exchanged(wrong: str) -> None:
    step = pyfuser.capture(lambda a, b: pk.parallel_for(3, add, y=a, x=b))
    a, b = view(1.0), view(1.0)
    with pytest.raises(pyfuser.ArgumentError):
        if wrong == "outside":
            step.repeat(3, a, b, swap=[(a, view(1.0))])
        elif wrong == "twice":
            step.repeat(3, a, a, swap=[(a, a)])
        elif wrong == "shapes":
            small = pk.View([3], pk.double)
            step.repeat(3, a, small, swap=[(a, small)])
        else:
            step.repeat(3, a, b, until=0.5)


def test_an_error_in_the_middle_of_repeat_leaves_what_was_done() -> None:
    @pk.workunit
    def countdown(i, y, d):
        y[i] = y[i] // d[0]
        if i == 0:
            d[1] = d[1] - 1

    @pk.workunit
    def moved(i, d):
        d[0] = d[1]

    def step_of(y: pk.View, d: pk.View) -> None:
        pk.parallel_for(N, countdown, y=y, d=d)
        pk.parallel_for(1, moved, d=d)

    step = pyfuser.capture(step_of)
    for _ in range(LIVES):
        y, d = view(1.0, dtype=pk.int64), view(4.0, dtype=pk.int64)
        with pytest.raises(pyfuser.DivisionError):
            step.repeat(100, y, d)
        assert np.asarray(d)[1] <= 0


def test_threads_call_the_same_step() -> None:
    step, _ = captured(smoothed)
    failed: list[BaseException] = []

    def work(k: int) -> None:
        try:
            u, v, expected = view(float(k)), view(0.0), 0.0
            for _ in range(100):
                expected += 0.5 * k * k
                assert float(step(u, v, float(k))) == N * expected
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
