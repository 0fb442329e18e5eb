"""Control flow, names and sources: each call keeps its own return, locals and source text."""

# ruff: noqa: B007, SIM108 - workunits are written in PyKokkos' language, which has no such spelling

from __future__ import annotations

import linecache
import sys
import types

import numpy as np
import pykokkos as pk
import pytest
from numpy.testing import assert_array_equal

import pyfuser
from tests.soundness.plans import groups
from tests.soundness.workunits import copy, inc

N = 10
I = np.arange(N, dtype=float)
FACTOR = 2.0


@pk.workunit
def early_return(i, x):
    if i % 2 == 0:
        return
    x[i] = -1.0


@pk.workunit
def return_in_loop(i, x, y):
    for j in range(5):
        if j == i:
            return
        y[i] += x[j]
    y[i] += 100.0


@pk.workunit
def always_return(i, x):
    x[i] += 1.0
    return
    x[i] = 50.0


@pk.workunit
def breaks(i, x, y):
    s: float = 0.0
    for j in range(100):
        if j > i:
            break
        if j % 2 == 1:
            continue
        s += x[i]
    y[i] = s


@pk.workunit
def collatz(i, x, steps):
    n: int = i + 1
    k: int = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        k += 1
    steps[i] = k + x[i]


@pk.workunit
def local_a(i, x, y):
    t: float = x[i] * 2.0
    k: int = i
    for j in range(k):
        t += 1.0
    y[i] = t


@pk.workunit
def local_b(i, x, y):
    t: int = 7
    k: float = 0.5
    for j in range(t):
        k += x[i]
    y[i] = k


@pk.workunit
def same_names(i, y, x):
    j: float = y[i]
    t: float = x[i] + j
    x[i] = t


@pk.workunit
def shadowed(i, x):
    t: int = 1
    if i > 4:
        t: int = 2
        t = 3
        x[i] = t
    x[i] += t


@pk.workunit
def two_cells(i, x, y):
    for k in range(2):
        x[2 * i + k] = y[i] + k
    for k in range(2):
        x[2 * i + k] *= 10.0


@pk.workunit
def pairs(i, x, y):
    y[i] = x[2 * i] - x[2 * i + 1]


@pk.workunit
def fill_inner(i, m, n, v):
    for j in range(n):
        m[i][j] = v + j


@pk.workunit
def inner_total(i, m, y, n):
    y[i] = 0.0
    for j in range(n):
        y[i] += m[i][j]


@pk.workunit
def loop_downwards(i, x, y):
    for j in range(4, -1, -2):
        y[i] = y[i] * 10.0 + j + x[i]


@pk.workunit
def empty_inner(i, x, n):
    for j in range(n):
        x[i] = 5.0


@pk.workunit
def swap_in_place(i, x, y):
    t: float = x[i]
    x[i] = y[i]
    y[i] = t


@pk.function
def helper(a: float, b: float) -> float:
    if a > b:
        return a
    a = a + 1.0
    return a + b


@pk.function
def twice(a: float) -> float:
    return helper(a, 0.0) * 2.0


@pk.workunit
def calls_helper(i, x, y):
    y[i] = helper(x[i], 4.0) + twice(x[i])


@pk.function
def write_through(i: int, v: pk.View1D[pk.double], a: float) -> None:
    v[i] = a


@pk.workunit
def calls_writer(i, x, y):
    write_through(i, y, x[i] * 3.0)


@pk.workunit
def calls_writer_reversed(i, x, y, n):
    write_through(n - 1 - i, y, x[i])


@pk.workunit
def uses_global(i, x):
    x[i] *= FACTOR


def test_early_return_stops_only_its_own_call():
    x = I.copy()
    with pyfuser.fusing():
        pk.parallel_for(N, early_return, x=x)
        pk.parallel_for(N, inc, x=x)
        pk.parallel_for(N, always_return, x=x)
        pk.parallel_for(N, early_return, x=x)
        pk.parallel_for(N, inc, x=x)
    assert_array_equal(x, np.where(np.arange(N) % 2 == 0, I + 3, 0))
    assert len(groups()) == 1


def test_return_within_a_loop():
    x, y = I.copy(), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, return_in_loop, x=x, y=y)
        pk.parallel_for(N, inc, x=y)
    want = [sum(range(i)) if i < 5 else 10 + 100 for i in range(N)]
    assert_array_equal(y, np.array(want) + 1.0)


def test_break_and_continue():
    x, y = I.copy(), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, inc, x=x)
        pk.parallel_for(N, breaks, x=x, y=y)
        pk.parallel_for(N, breaks, x=y, y=x)
    k = np.arange(N) // 2 + 1
    assert_array_equal(y, k * (I + 1))
    assert_array_equal(x, k * y)
    assert len(groups()) == 1


def test_while():
    x, y = I.copy(), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, inc, x=x)
        pk.parallel_for(N, collatz, x=x, steps=y)
        pk.parallel_for(N, inc, x=y)
    assert_array_equal(y, np.array([0, 1, 7, 2, 5, 8, 16, 3, 19, 6]) + I + 2)


def test_equal_local_names():
    x, y, z = I.copy(), np.zeros(N), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, local_a, x=x, y=y)
        pk.parallel_for(N, local_b, x=x, y=z)
        pk.parallel_for(N, same_names, y=y, x=z)
        pk.parallel_for(N, local_a, x=z, y=x)
    assert_array_equal(y, 3 * I)
    assert_array_equal(z, 7 * I + 0.5 + 3 * I)
    assert_array_equal(x, 2 * z + I)
    assert len(groups()) == 1


def test_shadowed_locals():
    x = I.copy()
    with pyfuser.fusing():
        pk.parallel_for(N, shadowed, x=x)
        pk.parallel_for(N, shadowed, x=x)
    assert_array_equal(x, np.where(I > 4, 4, I + 2))


def test_inner_loops_that_write_several_cells():
    x, y, z = np.zeros(2 * N), I.copy(), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, two_cells, x=x, y=y)
        pk.parallel_for(N, pairs, x=x, y=z)
        pk.parallel_for(N, two_cells, x=x, y=z)
        pk.parallel_for(N, pairs, x=x, y=y)
    assert_array_equal(z, np.full(N, -10.0))
    assert_array_equal(x, np.tile([-100.0, -90.0], N))
    assert_array_equal(y, np.full(N, -10.0))
    assert len(groups()) == 1


def test_rows_of_temporaries():
    m = pk.View([N, 3], pk.double)
    y, z = np.zeros(N), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, fill_inner, m=m, n=3, v=1.0)
        pk.parallel_for(N, inner_total, m=m, y=y, n=3)
        pk.parallel_for(N, fill_inner, m=m, n=2, v=5.0)
        pk.parallel_for(N, inner_total, m=m, y=z, n=3)
        del m
    assert_array_equal(y, np.full(N, 6.0))
    assert_array_equal(z, np.full(N, 14.0))


def test_downward_and_empty_loops():
    x, y = np.ones(N), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, loop_downwards, x=x, y=y)
        pk.parallel_for(N, empty_inner, x=y, n=0)
        pk.parallel_for(N, copy, x=y, y=x)
        pk.parallel_for(N, empty_inner, x=y, n=2)
    assert_array_equal(x, np.full(N, 531.0))
    assert_array_equal(y, np.full(N, 5.0))


@pk.workunit
def guarded_after_a_loop(i, x, y):
    for _ in range(0):
        y[i] += 1.0
    if i < 3:
        x[i] = y[i] + i + 1.0


@pk.workunit
def shifted(i, x, y):
    y[i] += x[i + 1]


def test_a_guard_after_a_loop_without_trips():
    x, y = pk.View([N + 1], pk.double), pk.View([N], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(N, guarded_after_a_loop, x=x, y=y)
        pk.parallel_for(N, shifted, x=x, y=y)
    assert list(y) == [2.0, 3.0] + [0.0] * (N - 2)
    assert list(x) == [1.0, 2.0, 3.0] + [0.0] * (N - 2)
    assert groups() == ["guarded_after_a_loop", "shifted"]


def test_swaps_within_an_iteration():
    x, y = I.copy(), -I
    with pyfuser.fusing():
        for _ in range(3):
            pk.parallel_for(N, swap_in_place, x=x, y=y)
        pk.parallel_for(N, swap_in_place, x=x, y=x)
    assert_array_equal(x, -I)
    assert_array_equal(y, I)
    assert len(groups()) == 1


def test_functions():
    x, y, z = I.copy(), np.zeros(N), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, calls_helper, x=x, y=y)
        pk.parallel_for(N, calls_writer, x=y, y=z)
        pk.parallel_for(N, inc, x=z)
    want = np.where(I > 4, I, I + 5) + 2 * np.where(I > 0, I, I + 1)
    assert_array_equal(y, want)
    assert_array_equal(z, 3 * want + 1)
    assert len(groups()) == 1


@pytest.mark.usefixtures("nothing_recomputed")
def test_a_function_that_writes_elsewhere():
    x, y, z = I.copy(), np.zeros(N), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, calls_writer_reversed, x=x, y=y, n=N)
        pk.parallel_for(N, copy, x=y, y=z)
    assert_array_equal(z, I[::-1])
    assert len(groups()) == 2


def test_a_global_is_refused_or_taken_at_the_call():
    """PyKokkos refuses Python globals; a value taken at another time would be wrong."""
    global FACTOR
    x, y = np.ones(N), np.ones(N)
    FACTOR = 2.0
    try:
        with pyfuser.fusing():
            pk.parallel_for(N, uses_global, x=x)
            FACTOR = 10.0
            pk.parallel_for(N, uses_global, x=y)
    except Exception as error:
        assert "FACTOR" in str(error)
    else:
        assert_array_equal(x, np.full(N, 2.0))
        assert_array_equal(y, np.full(N, 10.0))
    finally:
        FACTOR = 2.0


def define(text: str, name: str, filename: str, module: str | None = None):
    """What a notebook does with a cell: source in linecache, then exec."""
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    space: dict[str, object] = {"pk": pk, "__name__": module or "__main__"}
    exec(compile(text, filename, "exec"), space)
    return space[name]


CELL = "@pk.workunit\ndef cell(i, x):\n    x[i] = {}\n"


def test_a_workunit_redefined_under_one_file_name():
    x, y = np.zeros(N), np.zeros(N)
    with pyfuser.fusing():
        first = define(CELL.format("1.0"), "cell", "<cell 1>")
        pk.parallel_for(N, first, x=x)
        second = define(CELL.format("2.0"), "cell", "<cell 1>")
        pk.parallel_for(N, second, x=y)
    assert_array_equal(x, np.ones(N))
    assert_array_equal(y, np.full(N, 2.0))


def test_an_old_workunit_after_its_source_was_replaced():
    """The old function was lowered before; its source line cache now has the new text."""
    x = np.zeros(N)
    first = define(CELL.format("1.0"), "cell", "<cell 2>")
    with pyfuser.fusing():
        pk.parallel_for(N, first, x=x)
    assert x[0] == 1.0
    define(CELL.format("2.0"), "cell", "<cell 2>")
    with pyfuser.fusing():
        pk.parallel_for(N, first, x=x)
    assert_array_equal(x, np.ones(N))


def test_an_unused_workunit_whose_source_was_replaced():
    """Its text is gone: refuse, or remember it from the decorator; never run the new text."""
    x = np.zeros(N)
    first = define(CELL.format("1.0"), "cell", "<cell 3>")
    define(CELL.format("2.0"), "cell", "<cell 3>")
    try:
        with pyfuser.fusing():
            pk.parallel_for(N, first, x=x)
    except Exception as error:
        assert "source" in str(error)
    else:
        assert_array_equal(x, np.ones(N))


def test_a_workunit_redefined_with_more_lines():
    x, y = np.zeros(N), np.zeros(N)
    text = "@pk.workunit\ndef cell(i, x):\n    x[i] = 1.0\n    x[i] += i\n"
    first = define(CELL.format("4.0"), "cell", "<cell 4>")
    pk.parallel_for(N, first, x=x)
    second = define("\n\n" + text, "cell", "<cell 4>")
    with pyfuser.fusing():
        pk.parallel_for(N, second, x=y)
        pk.parallel_for(N, inc, x=x)
    assert_array_equal(x, np.full(N, 5.0))
    assert_array_equal(y, I + 1)


def test_one_name_in_two_modules():
    x, y, z = np.zeros(N), np.zeros(N), np.zeros(N)
    first = define(CELL.format("1.0"), "cell", "<module a>", "a")
    second = define(CELL.format("2.0"), "cell", "<module b>", "b")
    with pyfuser.fusing():
        pk.parallel_for(N, first, x=x)
        pk.parallel_for(N, second, x=y)
        pk.parallel_for(N, first, x=z)
    assert (x[1], y[1], z[1]) == (1.0, 2.0, 1.0)


FUNCTION = """
@pk.function
def f(a: float) -> float:
    return a + {}

@pk.workunit
def cell(i, x):
    x[i] = f(x[i])
"""


def test_a_function_redefined_while_its_workunit_has_the_same_text():
    x, y = np.zeros(N), np.zeros(N)
    with pyfuser.fusing():
        first = define(FUNCTION.format("1.0"), "cell", "<functions 1>")
        pk.parallel_for(N, first, x=x)
        second = define(FUNCTION.format("2.0"), "cell", "<functions 1>")
        pk.parallel_for(N, second, x=y)
    assert_array_equal(x, np.ones(N))
    assert_array_equal(y, np.full(N, 2.0))


def test_a_function_replaced_in_its_module():
    x, y = np.zeros(N), np.zeros(N)
    module = types.ModuleType("replaced")
    text = FUNCTION.format("1.0")
    linecache.cache["<replaced>"] = (len(text), None, text.splitlines(True), "<replaced>")
    module.pk = pk
    exec(compile(text, "<replaced>", "exec"), module.__dict__)
    pk.parallel_for(N, module.cell, x=x)
    other = "@pk.function\ndef f(a: float) -> float:\n    return a + 2.0\n"
    linecache.cache["<other>"] = (len(other), None, other.splitlines(True), "<other>")
    exec(compile(other, "<other>", "exec"), module.__dict__)
    with pyfuser.fusing():
        pk.parallel_for(N, module.cell, x=y)
    assert x[0] == 1.0
    assert y[0] in (1.0, 2.0)
    assert_array_equal(y, np.full(N, 2.0), err_msg="the function was looked up too early")


def test_a_workunit_made_in_a_function():
    def make(k):
        @pk.workunit
        def made(i, x):
            x[i] = k

        return made

    x, y = np.zeros(N), np.zeros(N)
    try:
        with pyfuser.fusing():
            pk.parallel_for(N, make(1.0), x=x)
            pk.parallel_for(N, make(2.0), x=y)
    except Exception as error:
        assert "k" in str(error)
    else:
        assert (x[0], y[0]) == (1.0, 2.0)


def test_labels_and_order_of_keywords():
    x, y = I.copy(), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for("one", N, copy, y=y, x=x)
        pk.parallel_for("two", N, copy, x=y, y=x)
        pk.parallel_for("one", N, swap_in_place, y=x, x=y)
        pk.parallel_for(None, N, inc, x=y)
    assert_array_equal(x, I)
    assert_array_equal(y, I + 1)


@pytest.mark.parametrize("depth", [150])
def test_calls_made_deep_in_a_recursion(depth):
    x = np.zeros(N)

    def step(k):
        pk.parallel_for(N, inc, x=x)
        if k:
            step(k - 1)

    with pyfuser.fusing():
        step(depth)
    assert_array_equal(x, np.full(N, depth + 1.0))


def test_near_the_recursion_limit():
    """A flush from a deep stack must not fail halfway and lose what was recorded."""
    x = pk.View([N], pk.double)

    def step(k):
        pk.parallel_for(N, inc, x=x)
        return step(k - 1) if k else float(x[0])

    frame, depth = sys._getframe(), 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    limit = sys.getrecursionlimit()
    try:
        with pyfuser.fusing():
            got = step(limit - depth - 60)
    except RecursionError:
        got = None
    pyfuser.sync()
    assert got in (None, limit - depth - 59.0)
    assert x[0] == x[9] == limit - depth - 59.0
