"""Programs that only a wrong pass gets wrong; each was found by a mutant that survived."""

from __future__ import annotations

import numpy as np

from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Update
from pyfuser.ir.reference.interpret import interpret
from pyfuser.ir.visit import assigned, statements
from pyfuser.transform.cells import cells_of
from pyfuser.transform.fuse import fuse
from pyfuser.transform.group import GroupShape, group_shapes
from tests.analysis.build import S, View, assign, call, region, workunit
from tests.transform.build import Program, Temporary
from tests.transform.test_scalars import N, accesses, add, data, double, increment, params, positive


def test_a_view_is_zero_only_for_those_who_see_it_first():
    x, z, t = data(), data(), Temporary(N)
    program = Program(N)
    program.call(increment, x=t)
    program.call(positive, y=t, x=x)
    program.call(add, z=z, x=x, y=t)
    shape = program.shape()
    first, second = group_shapes(shape, [[0], [1, 2]])
    assert len(first.fresh) == 1
    assert not second.fresh
    (together,) = group_shapes(shape, [[0, 1, 2]])
    assert len(together.fresh) == 1


def test_a_group_is_the_same_whatever_becomes_of_what_it_does_not_use():
    """Whether a view that it only writes was zero, or one that it only reads is read again."""
    x, t, u = data(), Temporary(N), Temporary(N)
    program = Program(N)
    program.call(double, y=t, x=x)
    program.call(increment, x=t)
    program.call(double, y=u, x=t)
    program.call(double, y=x, x=t)
    program.call(double, y=t, x=u)
    *_, overwrites, copies, remains = group_shapes(program.shape(), [[n] for n in range(5)])
    assert copies.dead == frozenset()  # t is, and is only read here
    assert overwrites.fresh == frozenset()  # u is, and is only written here
    assert remains.fresh == frozenset()
    assert remains.dead == frozenset({0})  # t is, and is written


def even_half(i, y):
    if i % 2 == 0:
        y[i // 2] = 1.0


def even_half_again(i, y):
    if i % 2 == 0:
        y[i // 2] += 1.0


def test_iterations_that_do_not_write_do_not_store_either():
    """Odd iterations name the cell of their neighbour, which they must leave alone."""
    t = Temporary(N)
    reachable = t._handle  # so its stores stay, and it starts at zero
    program = Program(N)
    program.call(even_half, y=t)
    program.call(even_half_again, y=t)
    kernel = program.kernel()
    assert reachable is not None
    for order in range(4):
        found = np.zeros(N)
        interpret(kernel.workunit, "for", (0,), (N,), [found], order=order)
        np.testing.assert_array_equal(found, 2.0 * (np.arange(N) < (N + 1) // 2))


def leave_between(i, y, a, m):
    for k in range(m):
        y[i] = a[k]
        if a[k] > 0.0:
            break
        y[i] = -a[k] - 1.0


def test_a_store_before_a_break_is_kept():
    a, y = np.array([-1.0, -2.0, 5.0, -3.0]), data()
    program = Program(N)
    program.call(leave_between, y=y, a=a, m=4)
    program.check()
    np.testing.assert_array_equal(y, 5.0)


def previous(i, y):
    if i > 0:
        y[i - 1] += 1.0


def previous_twice(i, y):
    if i > 0:
        y[i - 1] *= 2.0


def test_a_guarded_load_stays_behind_its_guard():
    y = data()
    program = Program(N)
    program.call(previous, y=y)
    program.call(previous_twice, y=y)
    program.check()  # the interpreter refuses y[-1]


def plus_one(i, y):
    y[i] = y[i] + 1.0


def test_a_store_of_what_it_loads():
    y = data()
    program = Program(N)
    program.call(plus_one, y=y)
    program.call(plus_one, y=y)
    loads, stores = accesses(program.check())
    assert (loads["y"], stores["y"]) == (1, 1)


def two_cells(i, x, y, p):
    x[i] = 1.0
    x[p] = 2.0
    y[i] = x[i]


def test_subscripts_of_scalars_that_may_coincide():
    for p in (0, 1):
        x, y = data(2), data(2)
        program = Program(1)
        program.call(two_cells, x=x, y=y, p=p)
        program.check()
        assert y[0] == (1.0 if p else 2.0)


def histogram(i, x):
    pk.atomic_add(x, [i // 2], 1.0)


def test_atomic_updates_stay_atomic():
    x = data()
    program = Program(N)
    program.call(histogram, x=x)
    program.call(histogram, x=x)
    updates = [s for s in statements(program.check().workunit.body) if isinstance(s, Update)]
    assert [u.atomic for u in updates] == [True, True]


def tickets(i, t, c):
    t[i] = pk.atomic_fetch_add(c, [0], 1.0)


def ticket_in_a_local(i, y, c):
    mine: float = pk.atomic_fetch_add(c, [0], 1.0)  # noqa: F841
    y[i] = 3.0


def test_a_dead_store_s_atomic_still_counts():
    c, t = np.zeros(1), Temporary(N)
    program = Program(N)
    program.call(tickets, t=t, c=c)
    program.check()
    assert c[0] == N


def test_an_unread_local_s_atomic_still_counts():
    c, y = np.zeros(1), data()
    program = Program(N)
    program.call(ticket_in_a_local, y=y, c=c)
    program.check()
    assert c[0] == N


def scale(i, x, a):
    x[i] *= a


def test_two_scalars_of_unknown_value():
    x = data()
    expected = 6.0 * x
    program = Program(N)
    program.call(scale, x=x, a=2.0)
    program.call(scale, x=x, a=3.0)
    assert "a" in params(program.check())
    np.testing.assert_array_equal(x, expected)


def test_increments_of_one_view_under_two_names():
    base = data()
    program = Program(N - 1)
    program.call(increment, x=base[:-1])
    program.call(increment, x=base[1:])
    assert len(program.kernel().overlaps) == 1
    program = Program(N // 2)
    program.call(increment, x=base[: N // 2])
    program.call(increment, x=base[N // 2 :])
    assert not program.kernel().overlaps


def test_an_index_that_the_code_assigns_to_is_not_shared():
    """Lowering copies such an index; code made otherwise may not."""
    i, x = S("i"), View("x")
    moves = workunit("moves", [i], [x], [assign(i, i + 1), x[i - 1] << 2.0])
    i, y = S("i"), View("y")
    after = workunit("after", [i], [y], [y[i] << 3.0])
    calls = call(moves, N, region(0, N)), call(after, N, region(1, N))
    kernel = fuse(GroupShape(calls))
    x, y = np.zeros(N), np.zeros(N)
    interpret(kernel.workunit, "for", (0,), (N,), [x, y])
    np.testing.assert_array_equal(x, 2.0)
    np.testing.assert_array_equal(y, 3.0)


def wrapping_subscript(i, y, x):
    y[i] = x[i * 65536 * 65536]


def wrapping_in_later_trips(i, y, x, m):
    for j in range(m):
        y[i] += x[j * 65536 * 65536]


def wrapping_local(i, y, x, m):
    k: int = 0
    for _trip in range(m):
        k = k + 65536
    y[i] = x[k * 65536]


def test_a_subscript_that_wraps_stays_narrow():
    x, y = data(), data()
    program = Program(N)
    program.call(wrapping_subscript, y=y, x=x)
    program.check()
    np.testing.assert_array_equal(y, x[0])


def test_a_subscript_that_wraps_in_later_trips_stays_narrow():
    x, y = data(), data()
    before = y.copy()
    program = Program(N)
    program.call(wrapping_in_later_trips, y=y, x=x, m=2)
    program.check()
    np.testing.assert_array_equal(y, before + x[0] + x[0])


def test_a_local_that_changes_has_no_range():
    x, y = data(), data()
    program = Program(N)
    program.call(wrapping_local, y=y, x=x, m=1)
    program.check()
    np.testing.assert_array_equal(y, x[0])


def some_sides(i, y, x):
    if x[i] > 0.0:
        if x[i] > 2.0:
            y[i] = 1.0
    else:
        y[i] = 2.0
    y[i] = y[i] + x[i]


def updated_side(i, y, x):
    if x[i] > 0.0:
        y[i] += 1.0
    else:
        y[i] = 2.0
    y[i] = y[i] + x[i]


def test_a_side_that_may_not_store_loads_before():
    for work in (some_sides, updated_side):
        program = Program(N)
        program.call(work, y=data(), x=data() - 1.0)
        program.check()


def test_elements_that_are_not_one_or_not_known_are_no_cells():
    i, k, x, m, q = S("i"), S("k"), View("x"), View("m", 2), View("q", dtype=DType.INT32)
    fixed = frozenset((i.sym, k.sym))

    def cells(view, *body):
        found = cells_of(body, view.sym, {}, fixed, assigned(body))
        return None if found is None else len(found)

    assert cells(x, x[i] << 1.0, x[i + 1] << 2.0) == 2
    assert cells(x, x[i + 1] << 1.0, x[1 + i] << 2.0) is None  # one cell by two names
    assert cells(x, x[i] << 1.0, x[k] << 2.0) is None
    assert cells(x, x[i].update("+", 1.0)) == 1
    assert cells(x, x[i].update("max", 1.0)) is None
    assert cells(x, x[i].update("+", 1.0, atomic=True)) is None
    assert cells(x, x[q[0]] << 1.0) is None
    assert cells(m, m[i, k] << 1.0) == 1
    assert cells(m, m[i, q[0]] << 1.0) is None and cells(m, m[q[0], i] << 1.0) is None
