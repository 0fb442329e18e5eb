"""What rewrites must not take for theirs; each case was found by a mutant that survived."""

from __future__ import annotations

import pytest

from pyfuser.ir import nodes
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Accumulator, Assign, Eval
from pyfuser.plan.fuse_into_scan import _keeps_its_flag
from pyfuser.plan.plan import Group, Plan, Rolling, Stage, Sweep
from pyfuser.plan.plan_cache import _is_plain
from pyfuser.plan.rewrites.coarsen import factor_between, may_coarsen
from pyfuser.plan.rewrites.delinearize import row_length
from pyfuser.plan.rewrites.enlarge_domain import _classes, may_guard
from pyfuser.plan.rewrites.recomputed_call import computing, stored_by
from pyfuser.trace.call import Space
from tests.analysis.build import (
    S,
    View,
    assign,
    call,
    expr,
    known,
    let,
    region,
    when,
    workunit,
)

N = 12
X, Y, Z = (region(k, 2 * N) for k in range(3))


def on_line(body, space=N, params=(), arguments=(), dtype=DType.INT32):
    """A call of `body(i, x, y)`, which makes statements."""
    i, x, y = S("i", dtype), View("x"), View("y")
    unit = workunit("w", [i], [x, y, *params], body(i, x, y))
    return call(unit, space, X, Y, *arguments)


def plain(i, x, y):
    return [y[i] << 2.0 * x[i]]


def prints(i, x, y):
    return [y[i] << 2.0 * x[i], Eval(nodes.Call("printf", (i.node,), DType.INT32))]


# --------------------------------------------------------------------------- plans taken over


@pytest.mark.parametrize(
    ("stage", "rolling", "taken"),
    [
        (Stage(0, 0), (), True),
        (Stage(1, 0), (), False),
        (Stage(0, 1), (), False),
        (Stage(0, 0), (Rolling(1, 8, 0, 0, 0, 0),), False),
    ],
)
def test_plans_whose_loops_are_behind_others_depend_on_sizes(stage, rolling, taken):
    sweep = Sweep((0, 1), (Stage(0, 0), stage), 64, rolling)
    assert _is_plain(Plan((Group((0,)), Group((1,))), (), (sweep,))) == taken


# --------------------------------------------------------------------------- coarser, larger


def test_what_prints_is_neither_coarsened_nor_guarded():
    assert may_coarsen(on_line(plain)) and may_guard(on_line(plain))
    assert not may_coarsen(on_line(prints)) and not may_guard(on_line(prints))


def test_iterations_that_begin_elsewhere_are_no_multiples():
    assert factor_between(Space((0,), (12,)), Space((0,), (4,))) == 3
    assert factor_between(Space((3,), (12,)), Space((0,), (4,))) is None
    assert factor_between(Space((0,), (12,)), Space((3,), (4,))) is None


def test_locals_that_change_may_be_guarded_and_arguments_not():
    t, c = S("t", DType.FLOAT64), S("c", DType.FLOAT64)

    def own(i, x, y):
        return [let(t, 1.0), assign(t, t + 1.0), y[i] << t]

    def given(i, x, y):
        return [y[i] << c, Assign(c.sym, (c + 1.0).node)]

    assert may_guard(on_line(own))
    assert not may_guard(on_line(given, params=[c], arguments=[known(None, c.sym.dtype)]))


def test_indices_that_do_not_hold_a_bound_are_not_guarded():
    i, j, x = S("i"), S("j"), View("x", 2)
    unit = workunit("w", [i, j], [x], [x[i, j] << 1.0])
    for end, may in ((2**31 - 1, True), (2**31, False)):
        assert may_guard(call(unit, (5, end), region(0, (5, end)))) == may
        assert may_guard(call(unit, (end, 5), region(0, (end, 5)))) == may


def test_calls_that_have_nothing_to_do_with_each_other_get_no_hull():
    i, x = S("i"), View("x")
    fill = workunit("fill", [i], [x], [x[i] << 1.0])
    i, x, y = S("i"), View("x"), View("y")
    copy = workunit("copy", [i], [x, y], [y[i] << x[i]])

    def classes(*calls):
        return len(list(_classes(calls, set())))

    assert classes(call(fill, 100, X), call(fill, 98, Y)) == 2
    assert classes(call(fill, 100, X), call(copy, 98, X, Y)) == 1
    for last in (X, Y):  # which one of the first two has
        assert classes(call(copy, 100, X, Z), call(copy, 98, Z, Y), call(fill, 96, last)) == 1


# --------------------------------------------------------------------------- rows and columns


def test_only_what_divides_the_index_makes_rows():
    k = S("k")
    number = [known(35, k.sym.dtype)]

    def length(*divided):
        def body(i, x, y):
            return [y[i] << x[sum((make(i) for make in divided), start=expr(0))]]

        return row_length(on_line(body, params=[k], arguments=number))

    assert length(lambda i: i // 4) == 4
    assert length(lambda i: i // 4, lambda i: i % 4) == 4
    assert length(lambda i: i // 4, lambda i: i % 3) is None
    assert length(lambda i: i // 4, lambda i: k % 3) == 4
    assert length(lambda i: k % 3) is None


# --------------------------------------------------------------------------- scans


def test_every_accumulator_of_a_scan_keeps_its_flag():
    def scan(*changed):
        i, x = S("i"), View("x")
        flags = [S("last", DType.BOOL), S("end", DType.BOOL)]
        sums = [Accumulator(S("acc", DType.FLOAT64).sym, flag.sym) for flag in flags]
        body = [assign(flags[n], False) for n in changed]
        return workunit("scan", [i], [x], [*body, x[i] << 1.0], sums)

    assert _keeps_its_flag(scan())
    assert not any(_keeps_its_flag(scan(n)) for n in (0, 1))


# --------------------------------------------------------------------------- computed again


def stored(body, space=N, where=Y, indices=1):
    """Whether what a call `body(i, ..., x, y)` stores to its last view can be computed again."""
    own, x, y = [S(name) for name in "ij"[:indices]], View("x"), View("y", len(where.shape))
    unit = workunit("w", own, [x, y], body(*own, x, y))
    return stored_by(call(unit, space, X, where), where) is not None


def test_stores_that_can_be_computed_again():
    assert stored(plain)
    assert stored(lambda i, x, y: [y[N - i] << x[i]])
    assert stored(lambda i, x, y: [when(i > 2, [y[i] << x[i]])])
    assert stored(lambda i, x, y: [y[i] << x[i], y[i] << 2.0 * x[i]])
    assert stored(lambda i, x, y: [when(x[i] > 0.0, [y[i] << x[i]], [y[i] << 2.0])])
    assert stored(lambda i, x, y: [when(i > 8, [y[i] << x[i]]), when(i < 3, [y[i] << 2.0])])


@pytest.mark.parametrize(
    "body",
    [
        prints,
        lambda i, x, y: [y[(i + 1) % N] << x[i]],  # two functions of the iteration
        lambda i, x, y: [y[(2 * i) >> 1] << x[i]],  # a quotient is no iteration
        lambda i, x, y: [y[2 * i] << x[i]],
        lambda i, x, y: [y[expr(3)] << x[i]],
        lambda i, x, y: [when(i > N, [y[i] << x[i]])],  # nothing is stored
        lambda i, x, y: [when(x[i] > 0.0, [y[i] << x[i]])],
        lambda i, x, y: [when(i.ne(3), [y[i] << x[i]])],
        lambda i, x, y: [y[x[i].cast(DType.INT32)] << x[i]],
    ],
)
def test_stores_that_cannot_be_computed_again(body):
    assert not stored(body)


def test_elements_that_are_no_iteration_of_their_own():
    square = region(1, (N, N))
    assert stored(lambda i, j, x, y: [y[j, i] << x[i]], (N, N), square, 2)
    assert not stored(lambda i, j, x, y: [y[i, i] << x[i]], (N, 1), square, 2)
    assert not stored(lambda i, j, x, y: [y[i] << x[i]], (N, 1), Y, 2)
    assert not stored(lambda i, x, y: [y[i, expr(3)] << x[i]], N, square)
    assert not stored(lambda i, x, y: [y[i, i] << x[i]], N, square)
    overlapping = region(1, (N, N), strides=(8, 8))
    assert not stored(lambda i, j, x, y: [y[j, i] << x[i]], (N, N), overlapping, 2)


def test_what_other_names_of_the_memory_are_stored_to():
    i, x, y, z = S("i"), View("x"), View("y"), View("z")
    unit = workunit("w", [i], [x, y, z], [y[i] << x[i], z[i] << 2.0 * x[i]])
    assert stored_by(call(unit, N, X, Y, Z), Y) is not None
    for other in (region(1, N, offset=8 * N), Y):
        assert stored_by(call(unit, N, X, Y, other), Y) is None
    assert stored_by(on_line(plain)._replace(arguments=(Y, Y)), Y) is None
    assert stored_by(on_line(plain), Z) is None

    apart = region(1, N, offset=8 * N)
    assert stored_by(on_line(plain)._replace(arguments=(apart, region(1, N))), region(1, N))


@pytest.mark.parametrize(
    ("first", "count", "fits"), [(2, N - 2, True), (1, N - 2, False), (2, N - 1, False)]
)
def test_only_what_was_stored_is_computed_again(first, count, fits):
    i, y, z = S("i"), View("y"), View("z")
    reads = workunit("reads", [i], [y, z], [z[i] << y[i + first]])
    source = on_line(plain, Space((2,), (N,)))
    assert (computing(call(reads, count, Y, Z), source, Y) is not None) == fits


def test_any_element_of_what_was_stored_whole():
    i, q, y, z = S("i"), View("q", dtype=DType.INT32), View("y"), View("z")
    gather = workunit("gather", [i], [y, z, q], [z[i] << y[q[i]]])
    whole, places = region(1, N), region(3, N, dtype=DType.INT32)
    for begin, end in ((0, N), (1, N), (0, N - 1)):
        source = on_line(plain, Space((begin,), (end,)))._replace(arguments=(X, whole))
        made = computing(call(gather, N, whole, Z, places), source, whole)
        assert (made is not None) == (end - begin == N)


def test_a_call_that_changes_a_region_does_not_compute_it():
    i, y, z = S("i"), View("y"), View("z")
    reads = workunit("reads", [i], [y, z], [z[i] << y[i + 1]])
    changes = workunit("changes", [i], [y, z], [y[i].update("+", 1.0), z[i] << y[i + 1]])
    source = on_line(plain)
    assert computing(call(reads, N - 1, Y, Z), source, Y) is not None
    assert computing(call(changes, N - 1, Y, Z), source, Y) is None


def test_only_maps_are_computed_again():
    i, x, y, acc = S("i"), View("x"), View("y"), S("acc", DType.FLOAT64)
    sums = [Accumulator(acc.sym)]
    for pattern, accumulators in (("for", ()), ("reduce", sums), ("scan", sums)):
        unit = workunit("w", [i], [x, y], plain(i, x, y), accumulators)
        found = stored_by(call(unit, N, X, Y, pattern=pattern), Y)
        assert (found is not None) == (pattern == "for")
