"""Scalar replacement: what goes into locals, and what must not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from pyfuser.ir.nodes import Load, Store, Update
from pyfuser.ir.visit import all_expressions, statements
from pyfuser.pipeline import C_PASSES, run_passes
from pyfuser.transform.kernel import Kernel
from tests.transform.build import Program, Temporary

N = 9


def accesses(kernel: Kernel) -> tuple[Counter[str], Counter[str]]:
    """How many loads and stores of each view the kernel's code has."""
    body = kernel.workunit.body
    loads = Counter(e.view.name for e in all_expressions(body) if isinstance(e, Load))
    stores = Counter(s.view.name for s in statements(body) if isinstance(s, Store))
    for stmt in statements(body):
        if isinstance(stmt, Update) and stmt.indices:
            loads[stmt.target.name] += 1
            stores[stmt.target.name] += 1
    return loads, stores


def params(kernel: Kernel) -> set[str]:
    return {param.sym.name for param in kernel.workunit.params}


def double(i, y, x):
    y[i] = 2.0 * x[i]


def add(i, z, x, y):
    z[i] = x[i] + y[i]


def increment(i, x):
    x[i] += 1.0


def positive(i, y, x):
    if x[i] > 0.0:
        y[i] = x[i]


def skip_negative(i, y, x):
    if x[i] < 0.0:
        return
    y[i] = x[i] * 3.0


def both_sides(i, y, x):
    if x[i] > 0.0:
        y[i] = x[i]
    else:
        y[i] = -x[i]


def dot(i, acc, x, y):
    acc += x[i] * y[i]


def row_sum(i, y, a, m):
    y[i] = 0.0
    for k in range(m):
        y[i] += a[i][k]


def data(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).integers(-5, 9, shape or (N,)).astype(float)


def left_of_right(i, x, y):
    x[i, 1] = 1.0
    y[i] = x[i + 1, 0]
    x[i, 1] = 2.0


def neighbours_in_row(i, y, x, m):
    for k in range(m):
        x[i][k] = y[i] + k
        if k > 0:
            y[i] += x[i][k - 1] * x[i][k]


def count_up(i, y, x, m):
    for _k in range(m):
        y[i] += x[i]
        x[i] = x[i] + 1.0


def shared_cell(i, y, x):
    if i == 0:
        x[0] = 5.0
        y[i] = x[0] + 1.0


def even_and_odd(i, x):
    x[2 * i] = 1.0
    x[2 * i + 1] = x[2 * i] + 1.0
    x[2 * i] = x[2 * i + 1] + 2.0


def unknown_pair(i, x, p):
    x[i] = 1.0
    x[p[i]] = 2.0
    x[i] = x[i] + x[p[i]]


def shifted(i, x):
    i = i + 1
    x[i - 1] = 4.0


def old() -> Temporary:
    """A temporary that something has written to."""
    t = Temporary(N)
    t.region.buffer.allocate()
    t.region.array()[:] = 7.0
    return t


def program(*calls: tuple[Callable[..., None], str]) -> Program:
    """Calls with arrays for their parameters; "t", "o" and "rows" are temporaries."""
    arrays = {name: data() for name in "xyz"}
    arrays |= {"t": Temporary(N), "o": old(), "rows": Temporary(N, 4), "a": data(N, 4)}
    arrays |= {"p": np.arange(N, dtype=np.int32)}
    arrays |= {"f": np.zeros(N, dtype=np.float32), "thirds": data() / 3.0, "long": data(2 * N)}
    made = Program(N)
    for function, given in calls:
        names = function.__code__.co_varnames[1 : function.__code__.co_argcount]
        views = [name for name in names if name not in ("acc", "m")]
        bound = dict(zip(views, map(arrays.__getitem__, given.split()), strict=True))
        more = {"m": 4} if "m" in names else {}
        made.call(function, "reduce" if "acc" in names else "for", **bound, **more)
    return made


STORED = (double, "y x"), (add, "z x y")
LEFT = {
    "a store is forwarded, and kept for a live view": (STORED, {"x": 2}, {"y": 1, "z": 1}),
    "a chain of updates stores once": (
        [(double, "y x"), *[(increment, "y")] * 3], {"x": 1}, {"y": 1}
    ),
    "an iteration that did not store loads what was there": (
        [(positive, "y x"), (add, "z x y")], {"x": 3, "y": 1}, {"y": 1, "z": 1}
    ),
    "an update in an inner loop has a local": (
        [(row_sum, "y a"), (increment, "y")], {"a": 1}, {"y": 1}
    ),
    "a guarded store to one cell is not hoisted": ([(shared_cell, "y x")], {}, {"x": 1, "y": 1}),
    "cells a constant apart": ([(even_and_odd, "long")], {}, {"x": 2}),
    "cells that may coincide": ([(unknown_pair, "x p")], None, {"x": 3}),
    "a dead store": ([(double, "y x"), (both_sides, "y x")], None, {"y": 1}),
    "a rounded store": ([(double, "f thirds"), (add, "z thirds f")], {"x": 2}, {"y": 1, "z": 1}),
    "an early return skips no other call": ([(skip_negative, "y x"), (add, "z x y")], None, None),
    "a load before a store goes around the loop": ([(count_up, "y t")], None, None),
    "an index that changes": ([(shifted, "x"), (double, "y x")], None, None),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
def test_loads_and_stores_that_are_left(name: str) -> None:
    calls, loads, stores = LEFT[name]
    found = accesses(program(*calls).check())
    assert loads in (None, found[0]) and stores in (None, found[1])


PARAMS = {
    "a temporary": ([(double, "t x"), (add, "z x t")], {"x", "z"}),
    "a map into a sum": ([(double, "t x"), (dot, "t x")], {"x"}),
    "a store under a condition, over zeros": ([(positive, "t x"), (add, "z x t")], {"x", "z"}),
    "a store under a condition, over others": (
        [(positive, "o x"), (add, "z x o")],
        {"x", "y", "z"},
    ),
    "stores on both sides": ([(both_sides, "o x"), (add, "z x o")], {"x", "z"}),
    "what comes back in a later trip": ([(neighbours_in_row, "y rows")], {"y", "x", "m"}),
}


@pytest.mark.parametrize("name", PARAMS)
def test_arrays_that_are_left(name: str) -> None:
    calls, left = PARAMS[name]
    assert params(program(*calls).check()) == left


def test_overlapping_views_are_left_alone():
    base = data(N + 1)
    x, z = data(), data()
    made = Program(N)
    made.call(double, y=base[:-1], x=x)
    made.call(add, z=z, x=x, y=base[:-1])
    made.call(increment, x=base[1:])
    kernel = made.kernel()
    loads, _ = accesses(kernel)
    assert loads["y"] == 1
    assert len(kernel.overlaps) == 1


def test_a_view_that_overlaps_itself_is_left_alone():
    """Windows of an array: the end of one is the start of the next."""
    base = data(9)
    windows = np.lib.stride_tricks.as_strided(base, (8, 2), (8, 8))
    made = Program(7)
    made.call(left_of_right, x=windows, y=data(7))
    loads, stores = accesses(made.check())
    assert loads["x"] == 1 and stores["x"] == 2
    made = Program(7)
    made.call(left_of_right, x=data(8, 2), y=data(7))
    loads, stores = accesses(made.check())
    assert stores["x"] == 1, "elsewhere the second store makes the first needless"


def moving(i, x, y):
    k: int = i
    x[k] = 1.0
    k = 0
    y[i] = x[k]


def test_subscript_that_changes_is_left_alone():
    x, y = data(), data()
    made = Program(1)
    made.call(moving, x=x, y=y)
    loads, _ = accesses(made.check())
    assert loads == {"x": 1}


def test_two_dimensions():
    def scale2(i, j, b, a):
        b[i][j] = a[i][j] * 2.0

    def add2(i, j, c, a, b):
        c[i][j] = a[i][j] + b[i][j]

    a, c, t = data(3, 4), data(3, 4), Temporary(3, 4)
    made = Program(3, 4)
    made.call(scale2, b=t, a=a)
    made.call(add2, c=c, a=a, b=t)
    assert params(made.check()) == {"a", "c"}


def test_transposed_access_is_left_alone():
    def scale2(i, j, b, a):
        b[i][j] = a[i][j] * 2.0
        a[i][j] = b[j][i]

    a, b = data(3, 3), data(3, 3)
    made = Program(3, 3)
    made.call(scale2, b=b, a=a)
    loads, stores = accesses(made.kernel())
    assert loads["b"] == 1
    assert stores["b"] == 1


def scale_pixel(i, x):
    for c in range(3):
        x[i, c] = x[i, c] * 0.5


def grey(i, y, x):
    y[i] = x[i, 0] + x[i, 1] + x[i, 2]


def shade(i, x, y):
    for c in range(3):
        x[i, c] -= y[i]


def shade_one(i, x, y, k):
    x[i, k] -= y[i]


def pixels(*more: Callable[..., None], aliased: bool = False, **others: int) -> Counter[str]:
    """The loads and stores of `x` in code for calls on points of three."""
    program, x, y = Program(N), np.arange(3.0 * N).reshape(N, 3), np.zeros(N)
    x = x[::-1] if aliased else x  # of such strides no view is a part (see `transform.parts`)
    program.call(scale_pixel, x=x)
    program.call(grey, x=x, y=x[:, 0] if aliased else y)
    for function in more:
        program.call(function, x=x, y=y, **others)
    program.check()
    loads, stores = accesses(run_passes(C_PASSES, program.kernel()))
    return Counter(loads=loads["x"], stores=stores["x"])


def test_elements_of_points_stay_in_registers() -> None:
    assert pixels() == Counter(loads=3, stores=3)
    assert pixels(shade) == Counter(loads=3, stores=3)


def test_elements_that_may_be_others_are_loaded_again() -> None:
    """One is chosen by a number that changes from call to call; one has another name."""
    assert pixels(shade_one, k=1)["stores"] == 4
    assert pixels(aliased=True)["loads"] == 6
