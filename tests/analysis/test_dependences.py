"""Each rule of the law of fusion, with its illegal twin."""

import pytest

from pyfuser.analysis.dependences import Dependence, Kind, dependences
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import While
from pyfuser.trace.call import Space
from pyfuser.trace.shape import CallShape
from tests.analysis.build import (
    S,
    View,
    any_of,
    assign,
    both,
    call,
    expr,
    known,
    let,
    loop,
    no,
    region,
    trace,
    when,
    workunit,
)

N = 100
X, Y, Z = (region(k, N) for k in range(3))


def between(*calls: CallShape) -> tuple[Dependence, ...]:
    return dependences(trace(*calls)).dependences


def verdict(*calls: CallShape) -> str:
    """none, same, cross or unknown: the worst of the dependences of two calls."""
    found = between(*calls)
    if not found:
        return "none"
    if all(d.same_iteration for d in found):
        return "same"
    return "cross" if any(not d.same_iteration and not d.unknown for d in found) else "unknown"


def writes(index, *names, value=1.0, guard=None, rank=1):
    """A call-maker: `x[index(i)] = value`, one view, with scalars."""
    i, x = S("i"), View("x", rank)
    scalars = [S(name) for name in names]
    subscript = index(i, *scalars)
    store = x[subscript] << value
    body = [when(guard(i, *scalars), [store])] if guard else [store]
    unit = workunit("writes", [i], [x, *scalars], body)
    return lambda where, *values, n=N: call(unit, n, where, *map(known, values))


def reads(index, *names, guard=None, rank=1):
    """A call-maker: `y[i] = x[index(i)]`, over views x and y."""
    i, x, y = S("i"), View("x", rank), View("y")
    scalars = [S(name) for name in names]
    store = y[i] << x[index(i, *scalars)]
    body = [when(guard(i, *scalars), [store])] if guard else [store]
    unit = workunit("reads", [i], [x, y, *scalars], body)
    return lambda where, *values, n=N, out=Y: call(unit, n, where, out, *map(known, values))


def at(i):
    return i


def test_elementwise_chain_keeps_the_iteration():
    found = between(writes(at)(X), reads(at)(X))
    (dependence,) = found
    assert dependence.kind is Kind.FLOW
    assert dependence.same_iteration
    assert (dependence.first_view, dependence.second_view) == ("x", "x")
    assert dependence.first_location is not None


def test_kinds():
    assert [d.kind for d in between(reads(at)(X), writes(at)(X))] == [Kind.ANTI]
    assert [d.kind for d in between(writes(at)(X), writes(at)(X))] == [Kind.OUTPUT]
    assert between(reads(at)(X), reads(at)(X, out=Z)) == ()
    assert between(writes(at)(X), writes(at)(Y)) == ()


@pytest.mark.parametrize(
    ("first", "second", "answer"),
    [
        (at, at, "same"),
        (lambda i: 2 * i + 1, lambda i: i * 2 + 1, "same"),
        (lambda i: 2 * i, lambda i: 2 * i + 1, "none"),
        (lambda i: i // 2, lambda i: i // 2, "cross"),  # the text is equal
        (lambda i: i % 7, lambda i: i % 7, "cross"),
        (lambda i: i % 128, at, "same"),  # the space is smaller
        (at, lambda i: (N - 1) - i, "cross"),
        (lambda i: (N - 1) - i, lambda i: (N - 1) - i, "same"),
        (at, lambda i: i + 1, "cross"),
        (at, lambda i: i + N, "none"),
        (at, lambda i: i >> 1, "cross"),
        (lambda i: expr(0), lambda i: expr(0), "cross"),
        (lambda i: expr(0), lambda i: expr(1), "none"),
        (lambda i: 3 * i, lambda i: i, "cross"),
    ],
)
def test_subscripts(first, second, answer):
    wide = region(0, 4 * N)
    assert verdict(writes(first)(wide), reads(second)(wide)) == answer


def test_equal_text_with_another_scalar():
    write, read = writes(lambda i, k: i + k, "k"), reads(lambda i, k: i + k, "k")
    wide = region(0, 2 * N)
    assert verdict(write(wide, 1), read(wide, 1)) == "same"
    assert verdict(write(wide, 0), read(wide, 1)) == "cross"
    assert verdict(write(wide, 0), read(wide, None)) == "unknown"


def test_a_write_by_one_iteration_that_all_read():
    write = writes(lambda i: expr(0), guard=lambda i: i.eq(N - 1))
    assert verdict(write(X), reads(lambda i: expr(0))(X)) == "cross"
    only_then = reads(lambda i: expr(0), guard=lambda i: i.eq(N - 1))
    assert verdict(write(X), only_then(X)) == "same"
    assert verdict(write(X), reads(lambda i: expr(1))(X)) == "none"


def test_guards_split_a_view():
    low = writes(at, guard=lambda i: i < 50)
    assert verdict(low(X), reads(at, guard=lambda i: i >= 50)(X)) == "none"
    assert verdict(low(X), reads(lambda i: i + 50, guard=lambda i: i < 50)(X)) == "none"
    assert verdict(low(X), reads(lambda i: i + 49, guard=lambda i: i < 51)(X)) == "cross"
    even = writes(at, guard=lambda i: (i % 2).eq(0))
    odd_neighbour = reads(lambda i: i + 1, guard=lambda i: both((i % 2).eq(0), i < N - 1))
    assert verdict(even(X), odd_neighbour(X)) == "none"
    next_even = reads(lambda i: i + 2, guard=lambda i: both((i % 2).eq(0), i < N - 2))
    assert verdict(even(X), next_even(X)) == "cross"


def test_else_or_and_not():
    i, x = S("i"), View("x")
    ends = any_of(i < 1, i > N - 2)
    rim = workunit("rim", [i], [x], [when(ends, [x[i] << 0.0])])
    i, x, y = S("i"), View("x"), View("y")
    ends = any_of(i < 1, i > N - 2)
    inner = workunit("inner", [i], [x, y], [when(ends, [], [y[i] << x[i]])])
    i, x, y = S("i"), View("x"), View("y")
    ends = any_of(i < 1, i > N - 2)
    outer = workunit("outer", [i], [x, y], [when(no(no(ends)), [y[i] << x[i]])])
    assert verdict(call(rim, N, X), call(inner, N, X, Y)) in ("none", "same")
    i, x, y = S("i"), View("x"), View("y")
    shifted = workunit("sh", [i], [x, y], [when(i < N - 2, [y[i] << x[i + 1]])])
    assert verdict(call(rim, N, X), call(shifted, N, X, Y)) == "none"
    assert verdict(call(rim, N, X), call(outer, N, X, Y)) == "same"


def test_data_dependent_guard_is_dropped():
    i, x, f = S("i"), View("x"), View("f")
    unit = workunit("w", [i], [x, f], [when(f[i] > 0.0, [x[0] << 1.0])])
    assert verdict(call(unit, N, X, Z), reads(lambda i: expr(0))(X)) == "cross"
    i, x, f = S("i"), View("x"), View("f")
    unit = workunit("w", [i], [x, f], [when(f[i] > 0.0, [x[i] << 1.0])])
    assert verdict(call(unit, N, X, Z), reads(at)(X)) == "same"


# --------------------------------------------------------------------------- memory


def test_shifted_slices_of_one_array():
    first, second = region(0, N - 1), region(0, N - 1, offset=8)
    assert verdict(writes(at)(first, n=N - 1), reads(at)(second, n=N - 1)) == "cross"
    back = reads(lambda i: i - 1)
    assert verdict(writes(at)(first, n=N - 1), back(second, n=N - 1)) == "same"


def test_disjoint_and_interleaved_slices():
    low, high = region(0, 50), region(0, 50, offset=400)
    assert verdict(writes(at)(low, n=50), reads(at)(high, n=50)) == "none"
    even, odd = region(0, 50, strides=(16,)), region(0, 50, offset=8, strides=(16,))
    assert verdict(writes(at)(even, n=50), reads(at)(odd, n=50)) == "none"
    assert verdict(writes(at)(even, n=50), reads(at)(region(0, N), n=50)) == "cross"
    doubled = reads(lambda i: 2 * i)
    assert verdict(writes(at)(even, n=50), doubled(region(0, N), n=50)) == "same"


def test_reversed_view():
    backwards = region(0, N, offset=8 * (N - 1), strides=(-8,))
    assert verdict(writes(at)(X), reads(at)(backwards)) == "cross"
    assert verdict(writes(at)(X), reads(lambda i: (N - 1) - i)(backwards)) == "same"
    assert verdict(writes(at)(backwards), reads(at)(backwards)) == "same"


def test_broadcast_view():
    everywhere = region(0, N, strides=(0,))
    assert verdict(writes(at)(everywhere), reads(at)(everywhere)) == "cross"
    assert verdict(reads(at)(everywhere), reads(at)(everywhere, out=Z)) == "none"


def test_flat_alias_of_a_matrix():
    i, j, m = S("i"), S("j"), View("m", 2)
    flat = region(0, 100)
    square = region(0, (10, 10))
    fill = workunit("fill", [i, j], [m], [m[i, j] << 1.0])
    i, j, v, w = S("i"), S("j"), View("v"), View("w", 2)
    matching = workunit("matching", [i, j], [v, w], [w[i, j] << v[10 * i + j]])
    i, j, v, w = S("i"), S("j"), View("v"), View("w", 2)
    swapped = workunit("swapped", [i, j], [v, w], [w[i, j] << v[10 * j + i]])
    out = region(1, (10, 10))
    assert verdict(call(fill, (10, 10), square), call(matching, (10, 10), flat, out)) == "same"
    assert verdict(call(fill, (10, 10), square), call(swapped, (10, 10), flat, out)) == "cross"


def test_elements_of_other_sizes():
    halves = region(0, 2 * N, dtype=DType.FLOAT32)
    i, x = S("i"), View("x", dtype=DType.FLOAT32)
    first_half = workunit("w", [i], [x], [x[2 * i] << 1.0])
    assert verdict(call(first_half, N, halves), reads(at)(X)) == "same"
    i, x = S("i"), View("x", dtype=DType.FLOAT32)
    same_number = workunit("w", [i], [x], [x[i] << 1.0])
    assert verdict(call(same_number, N, halves), reads(at)(X)) == "cross"


def test_rows_columns_and_transpose():
    square = region(0, (N, N))
    transposed = region(0, (N, N), strides=(8, 8 * N))

    def row(name, index):
        i, j, m = S("i"), S("j"), View("m", 2)
        return workunit(name, [i], [m], [loop(j, 0, N, [m[index(i, j)].update("+", 1.0)])])

    rows, columns = row("rows", lambda i, j: (i, j)), row("columns", lambda i, j: (j, i))
    assert verdict(call(rows, N, square), call(rows, N, square)) == "same"
    assert verdict(call(columns, N, square), call(columns, N, square)) == "same"
    assert verdict(call(rows, N, square), call(columns, N, square)) == "cross"
    assert verdict(call(rows, N, square), call(columns, N, transposed)) == "same"
    assert verdict(call(rows, N, square), call(rows, N, transposed)) == "cross"


def test_stencil_by_rows():
    grid, out = region(0, (N, N)), region(1, (N, N))
    inner = Space((1,), (N - 1,))

    def sweep(down):
        i, j, u, v = S("i"), S("j"), View("u", 2), View("v", 2)
        return workunit("s", [i], [u, v], [loop(j, 1, N - 1, [v[i, j] << u[i + down, j]])])

    assert verdict(call(sweep(0), inner, out, grid), call(sweep(0), inner, grid, out)) == "same"
    assert verdict(call(sweep(0), inner, out, grid), call(sweep(1), inner, grid, out)) == "cross"


def test_inner_loops():
    i, k, x, y = S("i"), S("k"), View("x"), View("y")
    triangle = workunit("t", [i], [x, y], [loop(k, 0, i, [y[i].update("+", x[k])])])
    assert verdict(writes(at)(X), call(triangle, N, X, Y)) == "cross"
    i, k, x, y = S("i"), S("k"), View("x"), View("y")
    itself = workunit("t", [i], [x, y], [loop(k, i, i + 1, [y[i] << x[k]])])
    assert verdict(writes(at)(X), call(itself, N, X, Y)) == "same"
    wide = region(0, 3 * N)
    i, k, x = S("i"), S("k"), View("x")
    triples = workunit("t", [i], [x], [loop(k, 3 * i, 3 * i + 3, [x[k] << 1.0])])
    assert verdict(call(triples, N, wide), call(triples, N, wide)) == "same"
    i, k, x = S("i"), S("k"), View("x")
    fours = workunit("t", [i], [x], [loop(k, 3 * i, 3 * i + 4, [x[k] << 1.0])])
    assert verdict(call(triples, N, wide), call(fours, N, wide)) == "cross"
    i, k, x = S("i"), S("k"), View("x")
    strided = workunit("t", [i], [x], [loop(k, i, 200 + i, [x[k] << 1.0], step=N)])
    assert verdict(call(strided, N, wide), call(strided, N, wide)) == "same"
    i, k, x = S("i"), S("k"), View("x")
    downwards = workunit("t", [i], [x], [loop(k, 3 * i + 2, 3 * i - 1, [x[k] << 1.0], step=-1)])
    assert verdict(call(triples, N, wide), call(downwards, N, wide)) == "same"


def test_data_dependent_loop_bound_along_another_dimension():
    i, k, m, n = S("i"), S("k"), View("m", 2), View("n", dtype=DType.INT32)
    counts = region(1, N, dtype=DType.INT32)
    unit = workunit("w", [i], [m, n], [loop(k, 0, n[i], [m[i, k] << 1.0])])
    square = region(0, (N, N))
    assert verdict(call(unit, N, square, counts), call(unit, N, square, counts)) == "same"
    i, k, m, n = S("i"), S("k"), View("m", 2), View("n", dtype=DType.INT32)
    turned = workunit("w", [i], [m, n], [loop(k, 0, n[i], [m[k, i] << 1.0])])
    assert verdict(call(unit, N, square, counts), call(turned, N, square, counts)) == "cross"


# --------------------------------------------------------------------------- unknown


def test_indirect():
    i, x, y, k = S("i"), View("x"), View("y"), View("k", dtype=DType.INT32)
    gather = workunit("gather", [i], [x, y, k], [y[i] << x[k[i]]])
    picks = region(2, N, dtype=DType.INT32)
    assert verdict(writes(at)(X), call(gather, N, X, Y, picks)) == "unknown"
    assert verdict(reads(at)(X, out=Z), call(gather, N, X, Y, region(3, N))) == "none"


def test_indirect_in_one_dimension_only():
    i, m, k = S("i"), View("m", 2), View("k", dtype=DType.INT32)
    unit = workunit("w", [i], [m, k], [m[i, k[i]].update("+", 1.0)])
    picks = region(2, N, dtype=DType.INT32)
    square = region(0, (N, N))
    assert verdict(call(unit, N, square, picks), call(unit, N, square, picks)) == "same"


def test_of_a_local_that_a_loop_looks_for_nobody_knows_more_than_bounds():
    i, j, k, x, f = S("i"), S("j"), S("k"), View("x"), View("f")
    found = [let(k, 0), loop(j, 0, 4, [when(f[j] > 0.0, [assign(k, j)])]), x[k] << 1.0]
    unit = workunit("w", [i], [x, f], found)
    for pair in ((call(unit, N, X, Z), reads(at)(X)), (writes(at)(X), call(unit, N, X, Z))):
        assert verdict(*pair) == "unknown"


def test_while_and_reassigned_locals():
    i, k, x = S("i"), S("k"), View("x")
    body = [
        let(k, i),
        While((k < 10).node, (x[k] << 1.0, assign(k, k + 1))),
    ]
    unit = workunit("w", [i], [x], body)
    assert verdict(call(unit, N, X), reads(at)(X)) == "unknown"
    i, k, x = S("i"), S("k"), View("x")
    straight = workunit("w", [i], [x], [let(k, i + 1), assign(k, k - 1), x[k] << 1.0])
    assert verdict(call(straight, N, X), reads(at)(X)) == "same"
    i, k, x, f = S("i"), S("k"), View("x"), View("f")
    body = [let(k, i), when(f[i] > 0.0, [assign(k, 0)]), x[k] << 1.0]
    joined = workunit("w", [i], [x, f], body)
    assert verdict(call(joined, N, X, Z), reads(at)(X)) == "cross"
    i, k, x, f = S("i"), S("k"), View("x"), View("f")
    body = [let(k, 0), when(f[i] > 0.0, [assign(k, i)], [assign(k, i)]), x[k] << 1.0]
    agreed = workunit("w", [i], [x, f], body)
    assert verdict(call(agreed, N, X, Z), reads(at)(X)) == "same"
    i, j, k, x = S("i"), S("j"), S("k"), View("x")
    body = [let(k, i), loop(j, 0, 2, [x[k] << 1.0, assign(k, k + 1)])]
    stepping = workunit("w", [i], [x], body)
    assert verdict(call(stepping, N, X), reads(at)(X)) == "unknown"


def test_division_rounds_to_zero():
    """(i - 3) / 4 is 0 for i in 0 .. 6, though its floor is -1 for i < 3."""
    wide = region(0, N)
    write = writes(lambda i: (i - 3) // 4, guard=lambda i: i < 3)
    assert verdict(write(wide), reads(lambda i: expr(0))(wide)) != "none"
    guarded = writes(lambda i: (i - 3) // 4, guard=lambda i: i > 6)
    assert verdict(guarded(wide), reads(lambda i: expr(0))(wide)) == "none"


def test_a_remainder_keeps_the_sign():
    """(i - 3) % 16 is i - 3 as long as that lies between -16 and 16, and not in general."""
    read = reads(at)(region(0, 2 * N))

    def written(offset: int, end: int) -> str:
        near = writes(lambda i: (i - offset) % 16 + offset, guard=lambda i: i < end)
        return verdict(near(region(0, 2 * N)), read)

    assert written(3, 19) == "same"
    assert written(3, 20) == "unknown"
    assert written(16, 20) == "unknown"


def test_low_bits_are_a_remainder():
    """(i + 4) & 3 is i for i in 0 .. 3, and i - 4 behind."""
    read = reads(at)(region(0, N))
    near = writes(lambda i: (i + 4) & 3, guard=lambda i: i < 4)
    assert verdict(near(region(0, N)), read) == "same"
    far = writes(lambda i: (i + 4) & 3, guard=lambda i: i < 5)
    assert verdict(far(region(0, N)), read) != "same"


def test_overflow_of_32_bits_is_not_understood():
    huge = region(0, 2**33)
    big = writes(lambda i: i * 100_000_000)
    assert verdict(big(huge, n=20), big(huge, n=20)) == "same"
    assert verdict(big(huge), big(huge)) == "unknown"
    narrow = writes(lambda i: i.cast(DType.INT8).cast(DType.INT32))
    assert verdict(narrow(X), narrow(X)) == "same"
    assert verdict(narrow(region(0, 300), n=200), narrow(region(0, 300), n=200)) == "unknown"


def test_a_question_that_isl_gives_up_is_unknown(monkeypatch):
    write, read = writes(at), reads(lambda i: (N - 1) - i)
    assert verdict(write(region(0, N)), read(region(0, N))) == "cross"
    monkeypatch.setattr("pyfuser.analysis.polyhedra.is_empty", lambda *_: None)
    write, read = writes(at), reads(lambda i: (N - 3) - i)
    assert verdict(write(region(0, N)), read(region(0, N))) == "unknown"


# --------------------------------------------------------------------------- atomics


def adds(op="+", index=lambda i: expr(0), dtype=DType.FLOAT64):
    i, x = S("i"), View("x", dtype=dtype)
    unit = workunit("adds", [i], [x], [x[index(i)].update(op, 1.0, atomic=True)])
    return lambda where, n=N: call(unit, n, where)


def test_atomics_of_one_operator_commute():
    assert verdict(adds()(X), adds()(X)) == "none"
    assert verdict(adds("+")(X), adds("-")(X)) == "none"
    assert verdict(adds("+")(X), adds("max")(X)) == "cross"
    assert verdict(adds("exchange")(X), adds("exchange")(X)) == "cross"
    assert verdict(adds()(X), reads(lambda i: expr(0))(X)) == "cross"
    assert verdict(writes(at)(X), adds("+", at)(X)) == "same"
    floats = adds(dtype=DType.FLOAT32)
    assert verdict(adds()(X), floats(region(0, 2 * N, dtype=DType.FLOAT32))) == "cross"


def test_atomic_whose_old_value_is_used_does_not_commute():
    i, x, y = S("i"), View("x"), View("y")
    unit = workunit("ticket", [i], [x, y], [y[i] << x[0].fetch("+", 1.0)])
    assert verdict(call(unit, N, X, Y), call(unit, N, X, Z)) == "cross"


# --------------------------------------------------------------------------- spaces, graphs


def test_other_spaces_still_are_ordered():
    assert verdict(writes(at)(X), reads(at)(X, n=50)) == "cross"
    half = Space((50,), (N,))
    i, x = S("i"), View("x")
    unit = workunit("w", [i], [x], [x[i] << 1.0])
    assert verdict(call(unit, half, X), reads(at)(X, n=50)) == "none"
    assert verdict(call(unit, Space((5,), (5,)), X), reads(at)(X)) == "none"
    assert verdict(call(unit, Space((5,), (6,)), X), call(unit, Space((5,), (6,)), X)) == "same"


def test_implied_dependences_are_left_out():
    chain = [writes(at)(X) for _ in range(40)]
    assert [(d.source, d.sink) for d in between(*chain)] == [(k, k + 1) for k in range(39)]
    far = [reads(lambda i: i // 2)(X, out=region(k, N)) for k in (2, 3)]
    found = between(writes(at)(X), *far, writes(at)(X))
    assert [(d.source, d.sink) for d in found] == [(0, 1), (0, 2), (1, 3), (2, 3)]


def test_a_bad_pair_is_kept_though_the_order_follows():
    """0 -> 1 -> 2 keep the iteration, 0 -> 2 does not: the path does not imply it."""
    i, x, y = S("i"), View("x"), View("y")
    two = workunit("two", [i], [x, y], [x[i] << 1.0, y[i] << 1.0])
    found = between(call(two, N, X, Y), reads(at)(Y, out=Z), reads(lambda i: (N - 1) - i)(X, out=Z))
    assert {(d.source, d.sink): d.same_iteration for d in found if d.kind is Kind.FLOW} == {
        (0, 1): True,
        (0, 2): False,
    }


def test_spaces_of_different_rank_touch_one_cell():
    i, j, x, y = S("i"), S("j"), View("x"), View("y")
    both_indices = workunit("both", [i, j], [x], [x[i] << 1.0])
    one_index = workunit("one", [i], [y], [y[i] << 2.0])
    square = Space((0, 0), (1, 1))
    assert verdict(call(both_indices, square, X), call(one_index, 1, X)) == "cross"
    assert verdict(call(one_index, 1, X), call(both_indices, square, X)) == "cross"
    assert verdict(call(both_indices, square, X), call(one_index, 1, Y)) == "none"
