"""Distances between dependent iterations: against brute force, and exact in the usual cases."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyfuser.analysis.accesses import accesses
from pyfuser.analysis.distances import call_distance
from pyfuser.ir.dtypes import DType
from pyfuser.trace.call import Space
from tests.analysis.build import S, View, call, expr, loop, region, select, when, workunit
from tests.analysis.test_dependences import N, X, Y, Z, adds, at, reads, writes
from tests.analysis.test_law import calls, regions, touched

# --------------------------------------------------------------------------- brute force


def distances(first, second):
    """All q - p of the outermost indices p and q of iterations that touch a common byte."""
    (mine, writes_first), (other, writes_second) = touched(first), touched(second)
    if not (writes_first or writes_second):
        return set()
    return {q[0] - p[0] for p, a in mine.items() for q, b in other.items() if a & b}


def check(first, second):
    """The bounds hold all distances; returns both."""
    bounds, found = call_distance(first, second), distances(first, second)
    if bounds is None:
        assert not found
    else:
        low, high = bounds
        assert low <= high
        assert all(low <= d <= high for d in found), (bounds, found)
    return bounds, found


SPACES = [
    Space((0,), (5,)),
    Space((2,), (7,)),
    Space((3,), (4,)),
    Space((0, 0), (3, 2)),
    Space((1, 2), (4, 5)),
    Space((0, 0, 0), (3, 2, 2)),
]


@st.composite
def pairs(draw):
    """Two calls over any two spaces, mostly over one region, at least one of them writing."""
    first = draw(regions(draw(st.integers(1, 2))))
    second = first if draw(st.booleans()) else draw(regions(draw(st.integers(1, 2))))
    written = draw(st.sampled_from([(True, True), (True, False), (False, True)]))
    spaces = st.sampled_from(SPACES)
    return tuple(
        draw(calls(draw(spaces), where, write))
        for where, write in zip((first, second), written, strict=True)
    )


@settings(max_examples=250, deadline=None)
@given(pairs())
def test_bounds_hold_every_distance(pair):
    check(*pair)


def random_region(rng):
    """A 1-D or 2-D part of one buffer: any offset, strides of either sign, two types, or bytes."""
    dtype = rng.choice([DType.FLOAT64, DType.FLOAT64, DType.FLOAT64, DType.FLOAT32])
    shape = rng.choice([(24,), (12,), (4, 6), (6, 4), (3, 4)])
    rows = shape[1] if len(shape) == 2 else 1
    strides = {1: [(8,), (8,), (16,), (-8,), (4,)], 2: [(8 * rows, 8), (8, 8 * shape[0])]}
    steps = rng.choice(strides[len(shape)])
    low = sum(min(0, s * (n - 1)) for s, n in zip(steps, shape, strict=True))
    offset = rng.choice([0, 0, 8, 16, 8 * rows, 4, 1]) - low
    return region(0, shape, offset, steps, dtype)


def random_subscript(rng, indices, space, inner, extent):
    """An affine subscript that is inside for most iterations."""
    usual = (0, 1, 1, 1, -1) if extent < 12 else (0, 1, 1, 2, 3, 4, 6, -1, -2)
    factors = [rng.choice(usual) for _ in indices]
    low = sum(
        min(f * b, f * (e - 1)) for f, b, e in zip(factors, space.begin, space.end, strict=True)
    )
    total = expr(rng.choice([0, 0, 1, 2]) - low)
    for factor, index in zip(factors, indices, strict=True):
        total = total + factor * index if factor else total
    return total + rng.choice([0, 1, 2]) * inner if inner else total


def random_call(rng, where, write):
    """`if a < b: for k: x[affine] = 1` (or a load), the guard and the loop sometimes left out."""
    space = rng.choice(SPACES)
    indices = [S(name) for name in "hij"[: len(space.begin)]]
    x, y, k = View("x", len(where.shape), where.dtype), View("y"), S("k")
    inner = k if rng.random() < 0.3 else None
    cell = x[tuple(random_subscript(rng, indices, space, inner, n) for n in where.shape)]
    body = [cell << 1.0 if write else y[0].update("+", expr(cell), atomic=True)]
    if rng.random() < 0.3:
        guard = rng.choice(indices).compare(rng.choice(["<", ">=", "=="]), rng.randint(0, 4))
        body = [when(guard, body)]
    if inner:
        body = [loop(k, rng.randint(0, 2), rng.choice([indices[0], expr(3)]), body)]
    unit = workunit("w", indices, [x, y], body)
    return call(unit, space, where, region(1, 1))


@pytest.mark.parametrize("seed", range(4))
def test_bounds_hold_every_distance_of_affine_accesses(seed):
    rng = random.Random(seed)
    met = apart = 0
    for _ in range(200):
        first = random_region(rng)
        second = first if rng.random() < 0.5 else random_region(rng)
        written = rng.choice([(True, True), (True, False), (False, True)])
        bounds, found = check(
            random_call(rng, first, written[0]), random_call(rng, second, written[1])
        )
        met += bool(found)
        apart += bounds is None
    assert met > 30 and apart > 20, "the cases are worth something"


# --------------------------------------------------------------------------- exact


@pytest.mark.parametrize(
    ("written", "read", "expected"),
    [
        (at, at, (0, 0)),
        (at, lambda i: i - 1, (1, 1)),
        (at, lambda i: i + 3, (-3, -3)),
        (lambda i: i + 2, lambda i: i - 1, (3, 3)),
        (lambda i: 2 * i, lambda i: 2 * i, (0, 0)),
        (lambda i: 2 * i, lambda i: 2 * i + 1, None),  # never one element
        (lambda i: 2 * i, lambda i: 2 * i + 4, (-2, -2)),
        (lambda i: (N - 1) - i, lambda i: N - i, (1, 1)),  # both walk backwards
        (at, lambda i: (N - 1) - i, (1 - N, N - 1)),
        (at, lambda i: i + N, None),
        (at, lambda i: i // 2, (-((N - 1) // 2), N - 1)),  # a bound may be wide
        (at, lambda i: 2 * i, (-((N - 1) // 2), 0)),
        (at, lambda i: expr(0), (0, N - 1)),
        (at, lambda i: expr(7), (-7, N - 8)),
    ],
)
def test_one_axis(written, read, expected):
    wide = region(0, 4 * N)
    assert call_distance(writes(written)(wide), reads(read)(wide)) == expected
    turned = call_distance(reads(read)(wide), writes(written)(wide))
    assert turned == (expected and (-expected[1], -expected[0]))


def test_the_hull_of_all_accesses_counts():
    i, x, y = S("i"), View("x"), View("y")
    stencil = workunit("s", [i], [x, y], [y[i] << x[i - 1] + x[i + 2]])
    assert call_distance(writes(at)(X), call(stencil, Space((1,), (N - 2,)), X, Y)) == (-2, 1)


def test_what_need_not_keep_its_order_has_no_distance():
    assert call_distance(reads(at)(X), reads(at)(X, out=Z)) is None
    assert call_distance(writes(at)(X), writes(at)(Y)) is None
    assert call_distance(adds()(X), adds()(X)) is None  # atomics of one operator
    assert call_distance(adds()(X), adds("max")(X)) is not None


def test_spaces_bound_the_distance():
    early = call(writes(at)(X).workunit, Space((0,), (10,)), X)
    late = call(reads(at)(X).workunit, Space((5,), (90,)), X, Y)
    assert call_distance(early, late) == (0, 0)
    mirrored = call(reads(lambda i: (N - 1) - i)(X).workunit, Space((90,), (93,)), X, Y)
    assert call_distance(early, mirrored) == (81, 85)


def test_a_guard_bounds_the_distance():
    first_three = writes(lambda i: expr(0), guard=lambda i: i < 3)(X)
    only_eight = reads(lambda i: expr(0), guard=lambda i: i.eq(8))(X)
    assert call_distance(first_three, only_eight) == (6, 8)
    assert call_distance(only_eight, first_three) == (-8, -6)


@pytest.mark.parametrize("beyond", [0, 9])
def test_a_window_that_is_clamped_reaches_as_far_as_it_is_wide(beyond):
    """Above the last element, though, it meets another one."""
    k, i, x, y = S("k"), S("i"), View("x"), View("y")
    place = select(i + k < 0, 0, i + k)
    clamped = select(place > N - 1, N - 1 - beyond, place)
    body = [loop(k, -3, 4, [y[i] << y[i] + x[clamped]])]
    window = call(workunit("w", [i], [x, y], body), N, X, Y)
    assert all(access.exact for access in accesses(window))
    last = N - 1
    read = ((q, max(q + n, 0)) for q in range(N) for n in range(-3, 4))
    found = {q - (p if p <= last else last - beyond) for q, p in read}
    assert call_distance(writes(at)(X), window) == (min(found), max(found))


ROWS, COLUMNS = 30, 20


def rows(index, write=True):
    """`m[index(i, j)] = 1` or `y[0] = m[index(i, j)]` over a box."""
    i, j, m, y = S("i"), S("j"), View("m", 2), View("y")
    cell = m[index(i, j)]
    unit = workunit("rows", [i, j], [m, y], [cell << 1.0 if write else y[i] << cell])
    space = Space((1, 1), (ROWS - 1, COLUMNS - 1))
    return lambda where: call(unit, space, where, Y if write else Z)


def test_rows_of_a_matrix():
    matrix = region(5, (ROWS, COLUMNS))
    write = rows(lambda i, j: (i, j))(matrix)
    below = rows(lambda i, j: (i + 1, j - 1), write=False)
    assert call_distance(write, below(matrix)) == (-1, -1)
    beside = rows(lambda i, j: (i, j + 1), write=False)
    assert call_distance(write, beside(matrix)) == (0, 0)
    turned = rows(lambda i, j: (j, i), write=False)
    assert call_distance(write, turned(matrix)) == (3 - COLUMNS, COLUMNS - 3)  # of all columns


def test_a_transposed_view_is_met_anywhere():
    square = region(5, (ROWS, ROWS))
    flipped = region(5, (ROWS, ROWS), strides=(8, 8 * ROWS))
    index = lambda i, j: (i, j)  # noqa: E731
    bounds = call_distance(rows(index)(square), rows(index, write=False)(flipped))
    assert bounds == (3 - COLUMNS, ROWS - 4)  # (3 - COLUMNS, COLUMNS - 3) would be exact


def test_rows_of_a_flat_array():
    i, j, x, y = S("i"), S("j"), View("x"), View("y")
    flat, box = region(5, ROWS * COLUMNS), Space((0, 0), (ROWS - 1, COLUMNS))
    write = call(workunit("w", [i, j], [x], [x[i * COLUMNS + j] << 1.0]), box, flat)
    i, j = S("i"), S("j")
    below = [y[i] << x[i * COLUMNS + j + COLUMNS]]
    assert call_distance(write, call(workunit("r", [i, j], [x, y], below), box, flat, Y)) == (
        -1,
        -1,
    )
    i, j = S("i"), S("j")
    beside = [y[i] << x[i * COLUMNS + j + 1]]  # which may be the next row's first
    assert call_distance(write, call(workunit("r", [i, j], [x, y], beside), box, flat, Y)) == (
        -1,
        0,
    )


def test_rows_that_one_loop_walks():
    i, k, m, y = S("i"), S("k"), View("m", 2), View("y")
    walk = workunit("walk", [i], [m, y], [loop(k, 0, COLUMNS, [y[i] << m[i + 1, k]])])
    matrix = region(5, (ROWS, COLUMNS))
    write = rows(lambda i, j: (i, j))(matrix)
    assert call_distance(write, call(walk, ROWS - 1, matrix, Y)) == (-1, -1)


def test_slices_of_one_buffer():
    base, tail = region(0, N), region(0, N - 1, offset=8)
    assert call_distance(writes(at)(base), reads(at)(tail, n=N - 1)) == (-1, -1)
    even, odd = (region(0, N // 2, offset=k, strides=(16,)) for k in (0, 8))
    n = N // 2
    assert call_distance(writes(at)(even, n=n), reads(at)(odd, n=n)) is None
    assert call_distance(writes(at)(even, n=n), reads(at)(even, n=n)) == (0, 0)


def test_other_types_of_one_buffer():
    i, x, y = S("i"), View("x", dtype=DType.FLOAT32), View("y")
    halves = region(0, 2 * N, dtype=DType.FLOAT32)

    def read(index):
        return call(workunit("r", [i], [x, y], [y[i] << x[index]]), N - 1, halves, Y)

    assert call_distance(writes(at)(X), read(2 * i + 1)) == (0, 0)
    assert call_distance(writes(at)(X), read(2 * i + 2)) == (-1, -1)
    half_way = region(0, N - 1, offset=4)  # each element lies on two of x
    assert call_distance(writes(at)(X), reads(at)(half_way, n=N - 1)) == (-1, 0)


def test_gathered_elements_are_met_anywhere():
    i, x, y, k = S("i"), View("x"), View("y"), View("k", dtype=DType.INT32)
    gather = workunit("gather", [i], [x, y, k], [y[i] << x[k[i]]])
    picks = region(9, N, dtype=DType.INT32)
    assert call_distance(writes(at)(X), call(gather, N, X, Y, picks)) == (1 - N, N - 1)
    i, m, y, k = S("i"), View("m", 2), View("y"), View("k", dtype=DType.INT32)
    in_row = workunit("gather", [i], [m, y, k], [y[i] << m[i + 1, k[i]]])
    matrix = region(5, (ROWS, COLUMNS))
    write = rows(lambda i, j: (i, j))(matrix)
    assert call_distance(write, call(in_row, ROWS - 1, matrix, Y, picks)) == (-1, -1)
