"""What C++ makes of an index, a guard or a bound, where mathematics would say otherwise."""

# ruff: noqa: B007, PIE808 - workunits are written in PyKokkos' language, which has no such spelling

from __future__ import annotations

import numpy as np
import pykokkos as pk
import pytest
from numpy.testing import assert_array_equal

import pyfuser
from tests.soundness.plans import groups
from tests.soundness.workunits import copy, count, inc, put, reverse

N = 8
I = np.arange(N, dtype=float)


@pk.workunit
def if_wrapped(i, x, k, v):
    if i + k < 0:
        x[i] = v


@pk.workunit
def read_first_if_wrapped(i, x, y, k):
    if i + k < 0:
        y[i] = x[0]


@pk.workunit
def narrow_local(i, x, v):
    j: pk.int8 = i
    if j < 0:
        x[0] = v


@pk.workunit
def narrow_index(i, x, y):
    j: pk.uint8 = i
    y[i] = x[j]


@pk.workunit
def negative_remainder(i, x, y, n):
    y[i] = x[-((i - n) % n)]


@pk.workunit
def negative_quotient(i, x, y, n):
    y[i] = x[(i - n) // n + 1]


@pk.workunit
def exclusive_or(i, x, y):
    y[i] = x[i ^ 1]


@pk.workunit
def bitwise_or(i, x, y):
    y[i] = x[i | 1]


@pk.workunit
def shifted_left(i, x, y):
    y[i] = x[(i << 1) & 7]


@pk.workunit
def complement(i, x, y, n):
    y[i] = x[~i + n]


@pk.workunit
def unsigned_difference(i, x, k, v):
    if i - k > 1000:
        x[5] = v


@pk.workunit
def truthy(i, x, v):
    if i:
        return
    x[4] = v


@pk.workunit
def bound_grows(i, x):
    m: int = 1
    for j in range(m):
        x[i + j] += 1.0
        if m < 4:
            m += 1


@pk.workunit
def variable_skips(i, x, y):
    s: float = 0.0
    for j in range(0, 4):
        s += x[i + j]
        j += 1
    y[i] = s


@pk.workunit
def bound_of_view(i, x, y, b):
    y[i] = 0.0
    for j in range(b[i]):
        y[i] += x[j]


@pk.workunit
def conditional_index(i, x, y, c, n):
    k: int = i
    if c[i] > 0.0:
        k = n - 1 - i
    y[i] = x[k]


@pk.workunit
def accumulated_index(i, x, y):
    k: int = 0
    for j in range(3):
        k += i
    y[i] = x[k - 2 * i]


@pk.workunit
def accumulated_elsewhere(i, x, y):
    k: int = 0
    for j in range(2):
        k += i
    y[i] = x[k // 2 * 2 % 8]


@pk.workunit
def carried(i, x, n):
    p: int = i
    for j in range(2):
        x[p] = 10.0 * j + i
        p = n + n - 1 - i


@pk.workunit
def negative_scalar_step(i, x, y, s):
    y[i] = -1.0
    for j in range(3, 0, s):
        y[i] = x[j]


@pk.workunit
def last_index_after_break(i, x, y):
    k: int = 0
    for j in range(10):
        k = j
        if j == i // 2:
            break
    y[i] = x[k]


@pk.function
def mirror(i: int, n: int) -> int:
    if i > 0:
        return n - i
    return 0


@pk.workunit
def by_function(i, x, y, n):
    y[i] = x[mirror(i, n)]


BIG = 2**31 - 4


@pytest.mark.parametrize("what", ["write", "read"])
def test_a_guard_that_holds_only_because_it_wraps(what):
    x, y = I.copy(), np.zeros(N)
    with pyfuser.fusing():
        if what == "write":
            pk.parallel_for(N, if_wrapped, x=x, k=BIG, v=-1.0)
            pk.parallel_for(N, reverse, x=x, y=y, n=N)
        else:
            pk.parallel_for(N, inc, x=x)
            pk.parallel_for(N, read_first_if_wrapped, x=x, y=y, k=BIG)
            pk.parallel_for(N, inc, x=x)
    if what == "write":
        assert_array_equal(y, np.where(I >= 4, -1.0, I)[::-1])
    else:
        assert_array_equal(y, np.where(I >= 4, 1.0, 0.0))
    assert len(groups()) > 1


@pytest.mark.usefixtures("nothing_recomputed")
def test_narrow_locals():
    n = 300
    x, y = np.zeros(n), np.zeros(n)
    with pyfuser.fusing():
        pk.parallel_for(n, copy, x=x, y=y)
        pk.parallel_for(pk.RangePolicy(128, 256), narrow_local, x=x, v=5.0)
        pk.parallel_for(n, copy, x=x, y=y)
    assert y[0] == 5.0
    with pyfuser.fusing():
        pk.parallel_for(n, count, x=x)
        pk.parallel_for(n, narrow_index, x=x, y=y)
    assert_array_equal(y, np.arange(n) % 256 + 1.0)
    assert len(groups()) == 2


READS = {
    negative_remainder: (dict(n=N), lambda i: (N - i) % N),
    negative_quotient: (dict(n=N), lambda i: (i > 0).astype(int)),
    exclusive_or: ({}, lambda i: i ^ 1),
    bitwise_or: ({}, lambda i: i | 1),
    shifted_left: ({}, lambda i: (i << 1) & 7),
    complement: (dict(n=N), lambda i: N - 1 - i),
    accumulated_index: ({}, lambda i: i),
    accumulated_elsewhere: ({}, lambda i: i * 2 // 2 * 2 % 8),
    last_index_after_break: ({}, lambda i: i // 2),
    by_function: (dict(n=N), lambda i: (N - i) % N),
}


@pytest.mark.parametrize("workunit", READS, ids=lambda w: w.__name__)
def test_reads(workunit):
    scalars, at = READS[workunit]
    x, y = np.zeros(N), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, count, x=x)
        pk.parallel_for(N, workunit, x=x, y=y, **scalars)
        pk.parallel_for(N, put, x=x, v=-1.0)
    assert_array_equal(y, at(np.arange(N)) + 1.0)
    assert_array_equal(x, np.full(N, -1.0))


@pytest.mark.parametrize(
    ("workunit", "scalars", "cell"),
    [(unsigned_difference, {"k": np.uint32(3)}, 5), (truthy, {}, 4)],
    ids=lambda p: getattr(p, "__name__", None),
)
def test_one_iteration_writes_by_the_rules_of_c(workunit, scalars, cell):
    x, y = I.copy(), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N if cell != 5 else 1, workunit, x=x, v=50.0, **scalars)
        pk.parallel_for(N, reverse, x=x, y=y, n=N)
    want = I.copy()
    want[cell] = 50.0
    assert_array_equal(y, want[::-1])


def test_bounds_that_change_in_the_loop():
    x, y = np.zeros(N + 4), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(1, bound_grows, x=x)
        pk.parallel_for(1, bound_grows, x=x[2:])
        pk.parallel_for(N, copy, x=x, y=y)
    assert_array_equal(y, [1, 1, 2, 2, 1, 1, 0, 0])


def test_a_loop_variable_that_is_assigned():
    x, y = np.zeros(N + 4), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N + 4, count, x=x)
        pk.parallel_for(N, variable_skips, x=x, y=y)
    assert_array_equal(y, 2 * I + 4)
    assert len(groups()) == 2


def test_bounds_read_from_a_view():
    x, y, b = np.zeros(N), np.zeros(N), np.arange(N, dtype=np.int32)[::-1].copy()
    with pyfuser.fusing():
        pk.parallel_for(N, count, x=x)
        pk.parallel_for(N, bound_of_view, x=x, y=y, b=b)
        pk.parallel_for(N, put, x=b, v=0)
    assert_array_equal(y, np.concatenate([[0], np.cumsum(I + 1)])[:N][::-1])
    assert_array_equal(b, np.zeros(N))


@pytest.mark.usefixtures("nothing_recomputed")
def test_an_index_that_depends_on_data():
    x, y, c = np.zeros(N), np.zeros(N), np.where(I < 2, 1.0, 0.0)
    with pyfuser.fusing():
        pk.parallel_for(N, count, x=x)
        pk.parallel_for(N, conditional_index, x=x, y=y, c=c, n=N)
        pk.parallel_for(N, put, x=x, v=0.0)
    assert_array_equal(y, [8, 7, 3, 4, 5, 6, 7, 8])
    assert len(groups()) == 3


def test_an_index_carried_through_a_loop():
    x, y = np.zeros(2 * N), np.zeros(2 * N)
    with pyfuser.fusing():
        pk.parallel_for(N, carried, x=x, n=N)
        pk.parallel_for(N, reverse, x=x, y=y, n=2 * N)
        pk.parallel_for(2 * N, inc, x=x)
    assert_array_equal(y[:N], I + 10)
    assert_array_equal(x, np.concatenate([I, (I + 10)[::-1]]) + 1)


def test_a_negative_step_that_is_not_literal_runs_no_iteration():
    x, y = np.zeros(N), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, count, x=x)
        pk.parallel_for(N, negative_scalar_step, x=x, y=y, s=-1)
    # C++ has j < end: 3 < 0 is false
    assert_array_equal(y, np.full(N, -1.0))


# Two names for one cell, in one iteration


@pk.workunit
def first_of_row(i, m, v):
    m[i][0] = v + i


@pk.workunit
def read_first_of_row(i, m, y):
    y[i] = m[i][0]


@pk.workunit
def every_fourth(i, x, v):
    x[4 * i] = v + i


@pk.workunit
def read_fourth(i, x, y):
    y[i] = x[4 * i]


@pk.workunit
def offset_put(i, x, k, v):
    x[i + k] = v + i


@pk.workunit
def offset_read(i, x, y, k):
    y[i] = x[i + k]


@pk.workunit
def put_half_word(i, b, v):
    b[i][0] = v


def test_a_cell_reached_through_a_matrix_and_a_vector():
    m = np.zeros((N, 4))
    flat = m.reshape(-1)
    y, z = np.zeros(N), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, first_of_row, m=m, v=1.0)
        pk.parallel_for(N, read_fourth, x=flat, y=y)
        pk.parallel_for(N, every_fourth, x=flat, v=20.0)
        pk.parallel_for(N, read_first_of_row, m=m, y=z)
        pk.parallel_for(N, first_of_row, m=m, v=300.0)
    assert_array_equal(y, I + 1)
    assert_array_equal(z, I + 20)
    assert_array_equal(m[:, 0], I + 300)
    assert_array_equal(m[:, 1:], np.zeros((N, 3)))


@pytest.mark.parametrize("view", [False, True])
def test_a_cell_reached_through_a_base_and_its_slice(view):
    base = pk.View([N + 2], pk.double) if view else np.zeros(N + 2)
    part = base[2 : N + 2]
    y, z = np.zeros(N), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, offset_put, x=base, k=2, v=1.0)
        pk.parallel_for(N, offset_read, x=part, y=y, k=0)
        pk.parallel_for(N, offset_put, x=part, k=0, v=20.0)
        pk.parallel_for(N, offset_read, x=base, y=z, k=2)
        pk.parallel_for(N, offset_put, x=base, k=2, v=300.0)
    assert_array_equal(y, I + 1)
    assert_array_equal(z, I + 20)
    assert_array_equal(np.asarray(part), I + 300)


def test_half_of_a_cell_written_in_the_same_iteration():
    x, y = np.zeros(N), np.zeros(N)
    halves = x.view(np.int32).reshape(N, 2)
    with pyfuser.fusing():
        pk.parallel_for(N, count, x=x)
        pk.parallel_for(N, put_half_word, b=halves, v=77)
        pk.parallel_for(N, copy, x=x, y=y)
        pk.parallel_for(N, count, x=x)
    want = I + 1
    want.view(np.int32).reshape(N, 2)[:, 0] = 77
    assert_array_equal(y, want)
    assert_array_equal(x, I + 1)


@pytest.mark.parametrize("other", [np.float32, np.uint64])
def test_a_cell_as_two_types(other):
    x = np.zeros(N, np.float32 if other is not np.float32 else np.int32)
    z = np.zeros(N)
    bits = x.view(np.int32 if x.dtype == np.float32 else np.float32)
    with pyfuser.fusing():
        pk.parallel_for(N, count, x=x)
        pk.parallel_for(N, put, x=bits, v=5)
        pk.parallel_for(N, copy, x=x, y=z)
    want = np.full(N, 5, bits.dtype).view(x.dtype)
    assert_array_equal(x, want)
    assert_array_equal(z, want.astype(float))


# Atomics


@pk.workunit
def ticket(i, c, y):
    o: int = pk.atomic_fetch_add(c, [0], 1)
    y[i] = o


@pk.workunit
def modulo(i, s, a):
    pk.atomic_fetch_mod(s, [0], a[i])


@pk.workunit
def compact(i, x, y, c):
    if x[i] > 3.0:
        k: int = pk.atomic_fetch_add(c, [0], 1)
        y[k] = x[i]


@pk.workunit
def histogram(i, x, h):
    pk.atomic_add(h, [int(x[i]) % 4], 1)


@pk.workunit
def own_atomic(i, x):
    pk.atomic_add(x, [i], 1.0)


@pk.workunit
def plain_and_atomic(i, x, y):
    pk.atomic_add(x, [0], 1.0)
    y[i] = 1.0


@pk.workunit
def zero_first(i, x):
    if i == 0:
        x[0] = 0.0


def test_values_that_atomics_return_do_not_commute():
    c, y, z = np.zeros(1, np.int32), np.zeros(N), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, ticket, c=c, y=y)
        pk.parallel_for(N, ticket, c=c, y=z)
    assert c[0] == 2 * N
    assert_array_equal(np.sort(y), I)
    assert_array_equal(np.sort(z), I + N)
    assert len(groups()) == 2


def test_remainders_do_not_commute():
    s = np.array([7], np.int32)
    with pyfuser.fusing():
        pk.parallel_for(2, modulo, s=s, a=np.array([100, 5], np.int32))
        pk.parallel_for(2, modulo, s=s, a=np.array([3, 100], np.int32))
    assert s[0] == 2
    assert len(groups()) == 2


def test_compaction():
    x, y, z, c = np.zeros(N), np.zeros(N), np.zeros(N), np.zeros(1, np.int32)
    with pyfuser.fusing():
        pk.parallel_for(N, count, x=x)
        pk.parallel_for(N, compact, x=x, y=y, c=c)
        pk.parallel_for(N, copy, x=y, y=z)
        pk.parallel_for(1, put, x=c, v=0)
        pk.parallel_for(N, compact, x=z, y=y, c=c)
    assert_array_equal(np.sort(z), [0, 0, 0, 4, 5, 6, 7, 8])
    assert_array_equal(np.sort(y), [0, 0, 0, 4, 5, 6, 7, 8])
    assert c[0] == 5


def test_histograms():
    x, h, g = np.zeros(N), np.zeros(4, np.int32), np.zeros(4)
    with pyfuser.fusing():
        pk.parallel_for(N, count, x=x)
        pk.parallel_for(N, histogram, x=x, h=h)
        pk.parallel_for(N, histogram, x=x, h=h)
        pk.parallel_for(4, copy, x=h, y=g)
        pk.parallel_for(4, put, x=h, v=0)
    assert_array_equal(g, [4, 4, 4, 4])
    assert_array_equal(h, [0, 0, 0, 0])
    assert groups()[0] == "count+histogram+histogram"


def test_an_atomic_and_a_plain_access():
    x, y = np.zeros(N), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, own_atomic, x=x)
        pk.parallel_for(N, copy, x=x, y=y)
        pk.parallel_for(N, own_atomic, x=x)
    assert_array_equal(y, np.ones(N))
    assert_array_equal(x, np.full(N, 2.0))
    assert len(groups()) == 1
    with pyfuser.fusing():
        pk.parallel_for(N, plain_and_atomic, x=x, y=y)
        pk.parallel_for(N, zero_first, x=x)
        pk.parallel_for(N, plain_and_atomic, x=x, y=y)
    assert x[0] == N
    assert len(groups()) == 3


# Reductions


@pk.workunit
def norm(i, acc, x):
    acc += x[i] * x[i]


@pk.workunit
def partial(i, acc, x):
    if x[i] < 3.0:
        return
    acc += x[i]


@pk.workunit
def times(i, x, a):
    x[i] *= a


@pk.workunit
def prefix(i, acc, last, x, y):
    acc += x[i]
    if last:
        y[i] = acc


@pk.workunit
def running_with_effect(i, acc, last, x, y):
    if last:
        x[i] += 1.0
    acc += 1.0
    if last:
        y[i] = acc


def test_conjugate_gradients_shape():
    x, y = I.copy(), np.ones(N)
    with pyfuser.fusing():
        for _ in range(3):
            s = pk.parallel_reduce(N, norm, x=x)
            t = pk.parallel_reduce(N, partial, x=x)
            pk.parallel_for(N, times, x=x, a=1.0 / (1.0 + s))
            pk.parallel_for(N, times, x=x, a=t)
            pk.parallel_for(N, inc, x=x)
    want = I.copy()
    for _ in range(3):
        s, t = sum(want * want), sum(want[want >= 3])
        want = want * (1.0 / (1.0 + s)) * t + 1
    np.testing.assert_allclose(x, want, rtol=1e-13)
    assert_array_equal(y, np.ones(N))


@pytest.mark.parametrize("n", [1, 7, 50_000])
def test_a_map_fused_with_a_scan_runs_once(n):
    x, y = np.zeros(n), np.zeros(n)
    with pyfuser.fusing():
        pk.parallel_for(n, inc, x=x)
        s = pk.parallel_scan(n, prefix, x=x, y=y)
        pk.parallel_for(n, inc, x=x)
        t = pk.parallel_reduce(n, norm, x=x)
    assert (s, t) == (n, 4 * n)
    assert_array_equal(x, np.full(n, 2.0))
    assert_array_equal(y, np.arange(n) + 1.0)
    with pyfuser.fusing():
        u = pk.parallel_scan(n, running_with_effect, x=x, y=y)
        pk.parallel_for(n, inc, x=x)
    assert u == n
    assert_array_equal(x, np.full(n, 4.0))


@pytest.mark.parametrize("n", [5, 50_000])
def test_two_reductions_and_a_map_over_parts(n):
    x = np.ones(n)
    with pyfuser.fusing():
        a = pk.parallel_reduce(n // 2, norm, x=x)
        pk.parallel_for(n, times, x=x, a=2.0)
        b = pk.parallel_reduce(pk.RangePolicy(n // 2, n), norm, x=x)
        c = pk.parallel_reduce(n, norm, x=x)
        pk.parallel_for(n, times, x=x, a=a - a)
    assert (a, b, c) == (n // 2, 4 * (n - n // 2), 4 * n)
    assert_array_equal(x, np.zeros(n))


def test_dead_stores_of_a_reduction_s_input():
    x = I.copy()
    with pyfuser.fusing():
        pk.parallel_for(N, inc, x=x)
        s = pk.parallel_reduce(N, norm, x=x)
        pk.parallel_for(N, put, x=x, v=0.0)
    assert s == ((I + 1) ** 2).sum()
    assert_array_equal(x, np.zeros(N))
