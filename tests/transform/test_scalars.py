"""Scalar replacement: what goes into locals, and what must not."""

from __future__ import annotations

from collections import Counter

import numpy as np

from pyfuser.ir.nodes import Load, Store, Update
from pyfuser.ir.visit import all_expressions, statements
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


def test_store_is_forwarded_and_kept_for_a_live_view():
    x, y, z = data(), data(), data()
    program = Program(N)
    program.call(double, y=y, x=x)
    program.call(add, z=z, x=x, y=y)
    loads, stores = accesses(program.check())
    assert loads == {"x": 2}
    assert stores == {"y": 1, "z": 1}


def test_temporary_is_contracted():
    x, z, t = data(), data(), Temporary(N)
    program = Program(N)
    program.call(double, y=t, x=x)
    program.call(add, z=z, x=x, y=t)
    kernel = program.check()
    assert params(kernel) == {"x", "z"}


def test_chain_of_updates_stores_once():
    x, y = data(), data()
    program = Program(N)
    program.call(double, y=y, x=x)
    for _ in range(3):
        program.call(increment, x=y)
    loads, stores = accesses(program.check())
    assert loads == {"x": 1}
    assert stores == {"y": 1}


def test_conditional_store_stays_where_it_is():
    x, y, z = data(), data(), data()
    program = Program(N)
    program.call(positive, y=y, x=x)
    program.call(add, z=z, x=x, y=y)
    kernel = program.check()
    loads, stores = accesses(kernel)
    assert loads["y"] == 1, "an iteration that did not store must load what was there"
    assert stores["y"] == 1


def test_conditional_store_to_a_fresh_temporary_starts_at_zero():
    x, z, t = data(), data(), Temporary(N)
    program = Program(N)
    program.call(positive, y=t, x=x)
    program.call(add, z=z, x=x, y=t)
    assert params(program.check()) == {"x", "z"}


def test_conditional_store_to_an_old_temporary_is_not_contracted():
    x, z, t = data(), data(), Temporary(N)
    t.region.buffer.allocate()
    assert t.region.buffer.root is not None
    t.region.array()[:] = 7.0
    program = Program(N)
    program.call(positive, y=t, x=x)
    program.call(add, z=z, x=x, y=t)
    assert "y" in params(program.check())


def test_early_return_does_not_skip_the_next_call():
    x, y, z = data(), data(), data()
    program = Program(N)
    program.call(skip_negative, y=y, x=x)
    program.call(add, z=z, x=x, y=y)
    program.check()


def test_store_on_both_sides_of_an_if():
    x, z, t = data(), data(), Temporary(N)
    t.region.buffer.allocate()
    program = Program(N)
    program.call(both_sides, y=t, x=x)
    program.call(add, z=z, x=x, y=t)
    assert params(program.check()) == {"x", "z"}


def test_map_into_reduction():
    x, t = data(), Temporary(N)
    program = Program(N)
    program.call(double, y=t, x=x)
    program.call(dot, "reduce", x=t, y=x)
    assert params(program.check()) == {"x"}


def test_overlapping_views_are_left_alone():
    base = data(N + 1)
    x, z = data(), data()
    program = Program(N)
    program.call(double, y=base[:-1], x=x)
    program.call(add, z=z, x=x, y=base[:-1])
    program.call(increment, x=base[1:])
    kernel = program.kernel()
    loads, _ = accesses(kernel)
    assert loads["y"] == 1
    assert len(kernel.overlaps) == 1


def left_of_right(i, x, y):
    x[i, 1] = 1.0
    y[i] = x[i + 1, 0]
    x[i, 1] = 2.0


def test_a_view_that_overlaps_itself_is_left_alone():
    """Windows of an array: the end of one is the start of the next."""
    base = data(9)
    windows = np.lib.stride_tricks.as_strided(base, (8, 2), (8, 8))
    program = Program(7)
    program.call(left_of_right, x=windows, y=data(7))
    loads, stores = accesses(program.check())
    assert loads["x"] == 1 and stores["x"] == 2
    program = Program(7)
    program.call(left_of_right, x=data(8, 2), y=data(7))
    loads, stores = accesses(program.check())
    assert stores["x"] == 1, "elsewhere the second store makes the first needless"


def test_update_in_an_inner_loop_keeps_its_value_in_a_local():
    a, y = data(N, 4), data()
    program = Program(N)
    program.call(row_sum, y=y, a=a, m=4)
    program.call(increment, x=y)
    loads, stores = accesses(program.check())
    assert loads == {"a": 1}
    assert stores == {"y": 1}


def neighbours_in_row(i, y, t, m):
    for k in range(m):
        t[i][k] = y[i] + k
        if k > 0:
            y[i] += t[i][k - 1] * t[i][k]


def test_values_that_come_back_in_a_later_trip_are_not_dropped():
    y, t = data(), Temporary(N, 4)
    program = Program(N)
    program.call(neighbours_in_row, y=y, t=t, m=4)
    assert "t" in params(program.check())


def count_up(i, y, t, m):
    for _k in range(m):
        y[i] += t[i]
        t[i] = t[i] + 1.0


def test_load_before_store_in_a_loop_goes_around_the_loop():
    y, t = data(), Temporary(N)
    program = Program(N)
    program.call(count_up, y=y, t=t, m=3)
    program.check()


def shared_cell(i, y, x):
    if i == 0:
        x[0] = 5.0
        y[i] = x[0] + 1.0


def test_guarded_store_to_one_cell_is_not_hoisted():
    x, y = data(), data()
    program = Program(N)
    program.call(shared_cell, y=y, x=x)
    _, stores = accesses(program.check())
    assert stores == {"x": 1, "y": 1}


def even_and_odd(i, x):
    x[2 * i] = 1.0
    x[2 * i + 1] = x[2 * i] + 1.0
    x[2 * i] = x[2 * i + 1] + 2.0


def test_cells_that_differ_by_a_constant_are_told_apart():
    x = data(2 * N)
    program = Program(N)
    program.call(even_and_odd, x=x)
    loads, stores = accesses(program.check())
    assert not loads
    assert stores == {"x": 2}


def unknown_pair(i, x, p):
    x[i] = 1.0
    x[p[i]] = 2.0
    x[i] = x[i] + x[p[i]]


def test_cells_that_may_coincide_are_left_alone():
    x = data()
    p = np.arange(N, dtype=np.int32)
    program = Program(N)
    program.call(unknown_pair, x=x, p=p)
    _, stores = accesses(program.check())
    assert stores == {"x": 3}


def moving(i, x, y):
    k: int = i
    x[k] = 1.0
    k = 0
    y[i] = x[k]


def test_subscript_that_changes_is_left_alone():
    x, y = data(), data()
    program = Program(1)
    program.call(moving, x=x, y=y)
    loads, _ = accesses(program.check())
    assert loads == {"x": 1}


def test_float32_store_rounds():
    x, z = data() / 3.0, data()
    y = np.zeros(N, dtype=np.float32)
    program = Program(N)
    program.call(double, y=y, x=x)
    program.call(add, z=z, x=x, y=y)
    loads, _ = accesses(program.check())
    assert "y" not in loads


def test_dead_store_is_removed():
    x, y = data(), data()
    program = Program(N)
    program.call(double, y=y, x=x)
    program.call(both_sides, y=y, x=x)
    _, stores = accesses(program.check())
    assert stores == {"y": 1}


def test_two_dimensions():
    def scale2(i, j, b, a):
        b[i][j] = a[i][j] * 2.0

    def add2(i, j, c, a, b):
        c[i][j] = a[i][j] + b[i][j]

    a, c, t = data(3, 4), data(3, 4), Temporary(3, 4)
    program = Program(3, 4)
    program.call(scale2, b=t, a=a)
    program.call(add2, c=c, a=a, b=t)
    assert params(program.check()) == {"a", "c"}


def test_transposed_access_is_left_alone():
    def scale2(i, j, b, a):
        b[i][j] = a[i][j] * 2.0
        a[i][j] = b[j][i]

    a, b = data(3, 3), data(3, 3)
    program = Program(3, 3)
    program.call(scale2, b=b, a=a)
    loads, stores = accesses(program.kernel())
    assert loads["b"] == 1
    assert stores["b"] == 1


def test_index_that_the_workunit_changes():
    def shifted(i, x):
        i = i + 1
        x[i - 1] = 4.0

    x, y = data(), data()
    program = Program(N)
    program.call(shifted, x=x)
    program.call(double, y=y, x=x)
    program.check()
