"""Cases that only a wrong law of fusion gets wrong; each was found by a mutant that survived."""

from __future__ import annotations

from pyfuser.analysis import polyhedra
from pyfuser.analysis.accesses import accesses
from pyfuser.analysis.dependences import Kind
from pyfuser.analysis.distances import call_distance
from pyfuser.analysis.overlap import Verdict, overlap
from pyfuser.ir.dtypes import DType
from pyfuser.trace.call import Space
from tests.analysis.build import (
    S,
    View,
    any_of,
    both,
    call,
    expr,
    known,
    loop,
    region,
    when,
    workunit,
)
from tests.analysis.test_dependences import N, X, Y, Z, at, between, reads, verdict, writes


def atomic(dtype):
    i, x = S("i"), View("x", dtype=dtype)
    one = 1 if dtype.is_integer else 1.0
    return workunit("add", [i], [x], [x[expr(0)].update("+", one, atomic=True)])


def test_atomics_on_other_types_of_one_size_do_not_commute():
    floats, integers = region(0, N), region(0, N, dtype=DType.INT64)
    add, add_integer = atomic(DType.FLOAT64), atomic(DType.INT64)
    assert verdict(call(add, N, floats), call(add, N, floats)) == "none"
    assert verdict(call(add, N, floats), call(add_integer, N, integers)) == "cross"


def test_atomics_on_elements_that_overlap_in_part_do_not_commute():
    add = atomic(DType.INT64)
    whole = region(0, N, dtype=DType.INT64)

    def later(offset):
        return call(add, N, region(0, N, offset=offset, dtype=DType.INT64))

    assert verdict(call(add, N, whole), later(0)) == "none"
    assert verdict(call(add, N, whole), later(4)) == "cross"
    assert verdict(later(4), call(add, N, whole)) == "cross"


def test_slices_that_share_one_byte():
    def put(offset):
        i, x = S("i"), View("x", dtype=DType.INT8)
        unit = workunit("put", [i], [x], [x[i] << expr(1, DType.INT8)])
        return call(unit, N, region(0, N, offset=offset, dtype=DType.INT8))

    for first, second in ((0, N - 1), (N - 1, 0)):
        assert verdict(put(first), put(second)) == "cross"
        assert call_distance(put(first), put(second)) == (first - second, first - second)
    assert verdict(put(0), put(N)) == "none"
    assert call_distance(put(0), put(N)) is None


def test_the_worst_of_several_accesses_to_one_view_counts():
    i, x, y = S("i"), View("x"), View("y")
    stencil = workunit("stencil", [i], [x, y], [y[i] << x[i] + x[i + 1]])
    i, x, y = S("i"), View("x"), View("y")
    pointwise = workunit("pointwise", [i], [x, y], [y[i] << x[i] + x[i]])
    assert verdict(writes(at)(X, n=N - 1), call(stencil, N - 1, X, Y)) == "cross"
    assert verdict(writes(at)(X, n=N - 1), call(pointwise, N - 1, X, Y)) == "same"


def test_one_bad_view_of_two_is_kept_though_the_order_follows():
    """0 -> 1 -> 2 keep the iteration; of 0 -> 2, y keeps it and x does not."""
    i, x, y = S("i"), View("x"), View("y")
    two = call(workunit("two", [i], [x, y], [x[i] << 1.0, y[i] << 1.0]), N, X, Y)
    i, y, z = S("i"), View("y"), View("z")
    one = call(workunit("one", [i], [y, z], [z[i] << y[i]]), N, Y, Z)

    def last(mirror):
        i, x, y, z, w = S("i"), *(View(name) for name in "xyzw")
        other = x[(N - 1) - i] if mirror else x[i]
        unit = workunit("last", [i], [x, y, z, w], [w[i] << z[i] + y[i] + other])
        return call(unit, N, X, Y, Z, region(3, N))

    def bad(*calls):
        return [(d.source, d.sink) for d in between(*calls) if not d.same_iteration]

    assert bad(two, one, last(mirror=True)) == [(0, 2)]
    assert bad(two, one, last(mirror=False)) == []


def test_an_index_that_no_subscript_holds_counts():
    i, j, x, m = S("i"), S("j"), View("x"), View("m", 2)
    spread = workunit("spread", [i, j], [x, m], [m[i, j] << x[i]])
    i, j, x = S("i"), S("j"), View("x")
    first = workunit("first", [i, j], [x], [when(j < 1, [x[i] << 1.0])])
    square = region(1, (N, N))
    assert verdict(call(spread, (N, N), X, square), call(first, (N, N), X)) == "cross"
    assert verdict(call(spread, (N, 1), X, square), call(first, (N, 1), X)) == "same"


def test_the_second_half_of_a_wider_element():
    halves = region(0, 2 * N, dtype=DType.FLOAT32)

    def puts(offset):
        i, x = S("i"), View("x", dtype=DType.FLOAT32)
        return workunit("puts", [i], [x], [x[2 * i + offset] << 1.0])

    assert verdict(call(puts(1), N, halves), reads(at)(X)) == "same"
    assert verdict(call(puts(3), N - 1, halves), reads(at)(X, n=N - 1)) == "cross"


def test_wider_elements_at_the_same_strides():
    """Complex numbers that start at every double: each covers its neighbour's first half."""
    overlapping = region(0, N - 1, strides=(8,), dtype=DType.COMPLEX128)
    apart = region(0, N // 2, dtype=DType.COMPLEX128)
    i, x, y = S("i"), View("x", dtype=DType.COMPLEX128), View("y", dtype=DType.COMPLEX128)
    take = workunit("take", [i], [x, y], [y[i] << x[i]])
    out = region(1, N, dtype=DType.COMPLEX128)
    assert verdict(writes(at)(X, n=N - 1), call(take, N - 1, overlapping, out)) == "cross"
    low = writes(lambda i: 2 * i)
    assert verdict(low(X, n=N // 2), call(take, N // 2, apart, out)) == "same"


def test_rows_that_reach_into_the_next_row():
    pairs = region(0, (N, 2))
    windows = region(0, (N - 1, 4), strides=pairs.strides)
    i, k, m = S("i"), S("k"), View("m", 2)
    fill = workunit("fill", [i], [m], [loop(k, 0, 2, [m[i, k] << 1.0])])

    def column(k):
        i, w, y = S("i"), View("w", 2), View("y")
        return workunit("column", [i], [w, y], [y[i] << w[i, expr(k)]])

    assert verdict(call(fill, N - 1, pairs), call(column(2), N - 1, windows, Y)) == "cross"
    assert verdict(call(fill, N - 1, pairs), call(column(1), N - 1, windows, Y)) == "same"


def test_a_reversed_view_reaches_down():
    backwards = region(0, N, offset=8 * (N - 1), strides=(-8,))
    low = reads(at, guard=lambda i: i < N // 2)
    assert verdict(writes(at)(backwards), low(X)) == "cross"
    high = writes(at, guard=lambda i: i < N // 2)
    assert verdict(high(backwards), low(X)) == "none"


def test_one_store_under_two_guards():
    i, x = S("i"), View("x")
    ends = [when(i < 10, [x[i] << 1.0]), when(i > N - 11, [x[i] << 2.0])]
    rim = call(workunit("rim", [i], [x], ends), N, X)
    mirrored = reads(lambda i: (N - 1) - i, guard=lambda i: i < 10)
    assert verdict(rim, mirrored(X)) == "cross"
    middle = reads(lambda i: (N - 1) - i, guard=lambda i: both(i > 9, i < N - 10))
    assert verdict(rim, middle(X)) == "none"


def test_kinds_of_two_writes():
    found = between(writes(at)(X), writes(lambda i: (N - 1) - i)(X))
    assert [(d.kind, d.same_iteration) for d in found] == [(Kind.OUTPUT, False)]


def test_the_right_side_of_or_runs_where_the_left_fails():
    low = writes(at, guard=lambda i: i < N // 2)

    def looks(operator):
        i, x, y = S("i"), View("x"), View("y")
        condition = operator(i < N // 2, x[(N - 1) - i] > 0.0)
        return call(workunit("looks", [i], [x, y], [when(condition, [y[i] << 1.0])]), N, X, Y)

    assert verdict(low(X), looks(any_of)) == "cross"
    assert verdict(low(X), looks(both)) == "none"


def rows(length, first, last, write):
    """Elements `first` to `last` - 1 of iteration i's row, if rows have `length` elements."""
    i, k, x, y = S("i"), S("k"), View("x"), View("y")
    body = x[length * i + k] << 1.0 if write else y[i] << x[length * i + k]
    unit = workunit("rows", [i], [x, y], [loop(k, first, last, [body])])
    return call(unit, N, region(0, 9 * N), Y)


def test_rows_of_iterations_are_told_apart_without_sets(monkeypatch):
    monkeypatch.setattr(polyhedra, "is_empty", None)
    assert verdict(rows(4, 0, 4, True), rows(4, 0, 4, False)) == "same"
    assert verdict(rows(4, 0, 2, True), rows(4, 2, 4, False)) == "none"
    assert verdict(rows(-4, 0, 4, True), rows(-4, 1, 4, False)) in ("none", "same")


def test_rows_that_reach_into_the_next_one_meet_others():
    assert verdict(rows(4, 0, 5, True), rows(4, 0, 4, False)) == "cross"
    assert verdict(rows(4, 0, 4, True), rows(4, 0, 5, False)) == "cross"
    assert verdict(rows(4, 0, 4, True), rows(3, 0, 3, False)) == "cross"
    assert verdict(rows(4, 4, 8, True), rows(4, 0, 4, False)) == "cross"
    assert verdict(rows(4, -1, 3, True), rows(4, 0, 4, False)) == "cross"


def test_a_loop_down_to_an_unsigned_bound():
    """`range(1, n, -2)` goes on from -1 if n is unsigned, as that is greater than any n."""

    def every_other(dtype):
        i, k, x, n = S("i"), S("k"), View("x"), S("n", dtype)
        walk = loop(k, 1, n, [x[k + 1] << 1.0], step=-2)
        return call(workunit("every_other", [i], [x, n], [walk]), 1, X, known(0, dtype))

    first = reads(lambda i: expr(0))(X, n=1)
    assert verdict(every_other(DType.INT32), first) == "none"
    assert verdict(every_other(DType.UINT32), first) != "none"


def on_box(index, store):
    """`x[index(i, j)] = 1.0`, or `y[i] = x[index(i, j)]`; a call-maker of a space."""
    i, j, x, y = S("i"), S("j"), View("x"), View("y", 2)
    cell = x[index(i, j)]
    unit = workunit("w", [i, j], [x, y], [cell << 1.0 if store else y[i, j] << cell])
    out = region(1, (N, N))
    return lambda space: call(unit, space, region(0, 9 * N), out)


def test_what_is_plain_is_told_without_sets(monkeypatch):
    monkeypatch.setattr(polyhedra, "is_empty", None)
    column = on_box(lambda i, j: i, True), on_box(lambda i, j: i, False)
    for space, answer in (((N, 5), "cross"), ((N, 1), "same")):
        assert verdict(*(make(space) for make in column)) == answer
    skewed = on_box(lambda i, j: 2 * i + 3 * j, True), on_box(lambda i, j: 2 * i + 3 * j + 1, False)
    assert verdict(*(make((N, 1)) for make in skewed)) == "none"


def test_spaces_below_zero():
    low = Space((-5,), (1,))
    wide = region(0, 4 * N)
    for index, answer in ((lambda i: i + 6, "cross"), (lambda i: i + 11, "none")):
        first, second = writes(lambda i: i + 5), reads(index)
        assert verdict(first(wide, n=low), second(wide, n=low)) == answer
    cell = writes(lambda i: expr(3))
    assert verdict(cell(wide, n=low), cell(wide, n=low)) == "cross"


def test_iterations_of_other_spaces_are_others():
    """Where only the sets of integers know that an iteration has its own element."""

    def split(i):
        return 2 * (i >> 1) + (i & 1)

    spaces = [Space((begin,), (end,)) for begin in (0, 2) for end in (40, 42)]
    for first in spaces:
        for second in spaces:
            found = overlapping(writes(split)(X, n=first), reads(split)(X, n=second))
            assert found is (Verdict.SAME if first == second else Verdict.CROSS)


def overlapping(first, second):
    """The verdict on the first accesses of two calls."""
    one, other = accesses(first)[0], accesses(second)[0]
    return overlap(one.relation, first.arguments[0], other.relation, second.arguments[0])


def test_what_is_read_under_either_of_two_guards():
    def ends(i):
        return any_of(i.eq(0), i.eq(7))

    inner = writes(at, guard=lambda i: both(i >= 3, i < 7))(X)
    assert verdict(inner, reads(lambda i: i + 1, guard=ends)(X)) == "none"
    assert verdict(inner, reads(lambda i: i - 1, guard=ends)(X)) == "cross"


def test_unknown_elements_of_other_columns():
    whole = (8 * N, 8)
    left, right = region(0, (N, N // 2), 0, whole), region(0, (N, N // 2), 4 * N, whole)
    i, q, x, y = S("i"), View("q", dtype=DType.INT32), View("x", 2), View("y")
    put = workunit("put", [i], [x, q], [x[q[i], q[i + 1]] << 1.0])
    take = workunit("take", [i], [x, q, y], [y[i] << x[q[i], q[i + 1]]])
    places = region(3, N + 1, dtype=DType.INT32)
    assert verdict(call(put, N, left, places), call(take, N, right, places, Y)) == "none"
    assert verdict(call(put, N, left, places), call(take, N, left, places, Y)) == "unknown"
