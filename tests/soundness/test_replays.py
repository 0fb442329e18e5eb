"""One call site, again and again: whatever a plan was built on must be the same when it is used."""

from __future__ import annotations

import gc

import numpy as np
import pykokkos as pk
import pytest
from numpy.testing import assert_array_equal

import pyfuser
from tests.soundness.plans import groups
from tests.soundness.workunits import copy, inc, reverse

N = 9
I = np.arange(N, dtype=float)


@pk.function
def moved(i: int, k: int) -> int:
    if k > 0:
        return i + k
    return i


@pk.workunit
def count(i, x):
    x[i] = 1.0 * i


@pk.workunit
def by_local(i, x, y, k):
    j: int = k
    j = j + i
    y[i] = x[j]


@pk.workunit
def by_guard(i, x, y, k):
    y[i] = -1.0
    if i < k:
        y[i] = x[0]


@pk.workunit
def by_loop(i, x, y, k):
    y[i] = x[i]
    for j in range(k):
        y[i] = x[i + j + 1]


@pk.workunit
def by_function(i, x, y, k):
    y[i] = x[moved(i, k)]


@pk.workunit
def by_branch(i, x, y, k):
    if k > 0:
        y[i] = x[i + k]
    else:
        y[i] = x[i]


@pk.workunit
def by_while(i, x, y, k):
    j: int = i
    while j < i + k:
        j += 1
    y[i] = x[j]


@pk.workunit
def by_product(i, x, y, k):
    y[i] = x[i * k + i]


@pk.workunit
def by_conversion(i, x, y, k):
    a: float = k * 0.5 + 0.6
    y[i] = x[i + int(a)]


@pk.workunit
def by_comparison(i, x, y, k):
    y[i] = x[i + (k > 0)]


@pk.workunit
def by_division(i, x, y, k):
    y[i] = x[i // (k + 1)]


@pk.workunit
def by_start(i, x, y, k):
    y[i] = x[i]
    for j in range(i + k, i + 2 * k):
        y[i] = x[j]


EXPECTED = {
    by_local: lambda x, k: x[np.arange(N) + k],
    by_guard: lambda x, k: np.where(np.arange(N) < k, x[0], -1.0),
    by_loop: lambda x, k: x[np.arange(N) + k],
    by_function: lambda x, k: x[np.arange(N) + k],
    by_branch: lambda x, k: x[np.arange(N) + k],
    by_while: lambda x, k: x[np.arange(N) + k],
    by_product: lambda x, k: x[np.arange(N) * (k + 1)],
    by_conversion: lambda x, k: x[np.arange(N) + int(k * 0.5 + 0.6)],
    by_comparison: lambda x, k: x[np.arange(N) + (k > 0)],
    by_division: lambda x, k: x[np.arange(N) // (k + 1)],
    by_start: lambda x, k: x[np.arange(N) + (2 * k - 1 if k else 0)],
}


@pytest.mark.parametrize("workunit", EXPECTED, ids=lambda w: w.__name__)
def test_a_scalar_that_moves_an_access(workunit):
    """With k = 0 the two calls may share a loop; with k > 0 they may not."""
    for k in (0, 1, 0, 2, np.int64(1), 0, True):
        x, y = np.full(4 * N, -5.0), np.zeros(N)
        with pyfuser.fusing():
            pk.parallel_for(N, count, x=x)
            pk.parallel_for(N, workunit, x=x, y=y, k=k)
            pk.parallel_for(4 * N, count, x=x)
        want = np.full(4 * N, -5.0)
        want[:N] = I
        assert_array_equal(y, EXPECTED[workunit](want, int(k)), err_msg=f"k = {k}")


@pk.workunit
def gather(i, x, y, idx):
    y[i] = x[idx[i]]


@pk.workunit
def total(i, acc: pk.Acc[int], x):
    acc += x[i]


@pk.workunit
def shift_by(i, x, y, k):
    y[i] = x[i + k]


@pk.workunit
def scale(i, x, t):
    t[i] = 2.0 * x[i]


@pk.workunit
def stencil(i, t, y, n):
    y[i] = t[i]
    if i > 0:
        y[i] += t[i - 1]
    if i < n - 1:
        y[i] += t[i + 1]


def test_an_index_view_with_other_contents():
    x, y = np.zeros(N), np.zeros(N)
    idx = np.arange(N, dtype=np.int32)
    for _ in range(3):
        x[:] = -1.0
        with pyfuser.fusing():
            pk.parallel_for(N, count, x=x)
            pk.parallel_for(N, gather, x=x, y=y, idx=idx)
        assert_array_equal(y, idx)
        idx = idx[::-1].copy()
        idx[3] = 0


def test_an_index_view_that_is_computed_in_the_same_trace():
    x, y = I.copy(), np.zeros(N)
    idx, other = np.zeros(N, np.int32), np.arange(N, dtype=np.int32)
    with pyfuser.fusing():
        pk.parallel_for(N, reverse, x=other, y=idx, n=N)
        pk.parallel_for(N, inc, x=x)
        pk.parallel_for(N, gather, x=x, y=y, idx=idx)
        pk.parallel_for(N, copy, x=other, y=idx)
    assert_array_equal(y, (I + 1)[::-1])
    assert_array_equal(idx, other)


@pytest.mark.parametrize("sizes", [(1, 2, 1, 5), (4, 1, 3, 2)])
def test_ranges_of_other_sizes(sizes):
    """One cell reversed is itself; two are not."""
    for n in sizes:
        x, y = np.full(n, -1.0), np.zeros(n)
        with pyfuser.fusing():
            pk.parallel_for(n, count, x=x)
            pk.parallel_for(n, reverse, x=x, y=y, n=n)
        assert_array_equal(y, np.arange(n)[::-1])


def test_ranges_that_begin_elsewhere():
    for begin, end, k in ((0, 4, 4), (0, 5, 4), (2, 6, 4), (0, 4, 0), (1, 5, 1)):
        x, y = np.full(20, -1.0), np.zeros(20)
        with pyfuser.fusing():
            pk.parallel_for(pk.RangePolicy(begin, end), count, x=x)
            pk.parallel_for(pk.RangePolicy(begin, end), shift_by, x=x, y=y, k=k)
        want = np.full(20, -1.0)
        i = np.arange(begin, end)
        want[i] = i
        assert_array_equal(y[i], want[i + k])


def test_a_future_whose_value_differs():
    for k in (0, 1, 0, 2):
        x, y = np.full(4 * N, -1.0), np.zeros(N)
        parts = np.zeros(4, np.int32)
        parts[1] = k
        with pyfuser.fusing():
            s = pk.parallel_reduce(4, total, x=parts)
            pk.parallel_for(N, count, x=x)
            pk.parallel_for(N, shift_by, x=x, y=y, k=s)
            pk.parallel_for(4 * N, count, x=x)
        want = np.full(4 * N, -1.0)
        want[:N] = I
        assert_array_equal(y, want[k : k + N])


def test_strides_that_differ():
    base = np.zeros((4 * N, 4))
    for a, b in (
        (base[:N, 0], base[:N, 0]),
        (base[:N, 0], base.reshape(-1)[:N]),
        (base[:N, 1], base[:N, 0]),
        (base[N - 1 :: -1, 0], base[:N, 0]),
        (base[: 2 * N : 2, 0], base[:N, 0]),
        (base[:N, 0], base[:N, 0]),
    ):
        base[:] = -1.0
        want, y = np.zeros(N), np.zeros(N)
        with pyfuser.fusing():
            pk.parallel_for(N, count, x=a)
            pk.parallel_for(N, copy, x=b, y=y)
        want[:] = b
        assert_array_equal(a, I)
        assert_array_equal(y, want)


def test_a_temporary_that_is_dropped_and_then_kept():
    x = I.copy()
    kept = []
    for keep in (False, True, False, True, False):
        y = np.zeros(N)
        with pyfuser.fusing():
            t = pk.View([N], pk.double)
            pk.parallel_for(N, scale, x=x, t=t)
            pk.parallel_for(N, copy, x=t, y=y)
            if keep:
                kept.append(t)
            del t
            gc.collect()
        assert_array_equal(y, 2 * x)
        assert (pyfuser.explain().groups[-1].contracted == ("t",)) != keep
        if keep:
            assert_array_equal(np.asarray(kept[-1]), 2 * x)


def test_a_temporary_kept_by_a_subview_or_an_array():
    x = I.copy()
    for how in ("none", "subview", "none", "array", "memoryview", "none", "data slice"):
        y = np.zeros(N)
        kept = None
        with pyfuser.fusing():
            t = pk.View([N], pk.double)
            if how == "subview":
                kept = t[2:4]
            elif how == "array":
                kept = np.asarray(t)[2:4]
            elif how == "memoryview":
                kept = memoryview(t.data)[2:4]
            elif how == "data slice":
                kept = t.data[::-1][N - 4 : N - 2][::-1]
            pk.parallel_for(N, scale, x=x, t=t)
            pk.parallel_for(N, copy, x=t, y=y)
            del t
            gc.collect()
        assert_array_equal(y, 2 * x)
        if kept is not None:
            assert_array_equal(np.asarray(kept), 2 * x[2:4], err_msg=how)


def test_a_temporary_that_a_later_trace_still_reads():
    x, y = I.copy(), np.zeros(N)
    for later in (False, True, False):
        t = pk.View([N], pk.double)
        with pyfuser.fusing():
            pk.parallel_for(N, scale, x=x, t=t)
            pk.parallel_for(N, copy, x=t, y=y)
            if not later:
                del t
        if later:
            with pyfuser.fusing():
                pk.parallel_for(N, copy, x=t, y=y)
                pk.parallel_for(N, inc, x=y)
            assert_array_equal(y, 2 * x + 1)


@pytest.mark.usefixtures("nothing_recomputed")
def test_a_temporary_read_by_its_neighbours():
    x, y = I.copy(), np.zeros(N)
    for _ in range(2):
        with pyfuser.fusing():
            t = pk.View([N], pk.double)
            pk.parallel_for(N, scale, x=x, t=t)
            pk.parallel_for(N, stencil, t=t, y=y, n=N)
            pk.parallel_for(N, inc, x=y)
            del t
        t = 2 * I
        want = t.copy()
        want[1:] += t[:-1]
        want[:-1] += t[1:]
        assert_array_equal(y, want + 1)
        assert len(groups()) == 2


def test_numpy_temporaries_are_dropped_and_kept():
    x = I.copy()
    for keep in (False, True, False, True):
        y = np.zeros(N)
        t = np.empty(N)
        with pyfuser.fusing():
            pk.parallel_for(N, scale, x=x, t=t)
            pk.parallel_for(N, copy, x=t, y=y)
            part = t[3:] if keep else None
            del t
        assert_array_equal(y, 2 * x)
        if part is not None:
            assert_array_equal(part, 2 * x[3:])


def test_a_view_owned_by_an_exception_traceback():
    x, y = I.copy(), np.zeros(N)
    caught = None

    def failing():
        t = pk.View([N], pk.double)
        pk.parallel_for(N, scale, x=x, t=t)
        pk.parallel_for(N, copy, x=t, y=y)
        raise KeyError

    with pyfuser.fusing():
        try:
            failing()
        except KeyError as error:
            caught = error
    t = caught.__traceback__.tb_next.tb_frame.f_locals["t"]
    assert_array_equal(np.asarray(t), 2 * x)


def test_a_generator_keeps_its_view():
    x = I.copy()

    def steps():
        t = pk.View([N], pk.double)
        pk.parallel_for(N, scale, x=x, t=t)
        yield
        pk.parallel_for(N, inc, x=t)
        yield
        yield t[4]

    with pyfuser.fusing():
        g = steps()
        next(g)
    next(g)
    assert next(g) == 9.0


def test_large_ranges_with_threads():
    n = 60_000
    x, y, z = np.arange(float(n)), np.zeros(n), np.zeros(n)
    for _ in range(2):
        with pyfuser.fusing():
            pk.parallel_for(n, inc, x=x)
            pk.parallel_for(n, reverse, x=x, y=y, n=n)
            pk.parallel_for(n, copy, x=y, y=z)
            s = pk.parallel_reduce(n, total, x=np.ones(n, np.int32))
            pk.parallel_for(n, count, x=x)
            pk.parallel_for(n, stencil, t=x, y=y, n=n)
        i = np.arange(float(n))
        assert s == n
        assert_array_equal(z, (i + 1)[::-1])
        want = 3 * i
        want[[0, -1]] = 1, 2 * n - 3
        assert_array_equal(y, want)


def test_views_of_other_types_at_one_call_site():
    for dtype in (np.float64, np.float32, np.int32, np.float64, np.uint8, np.int64):
        x, y, t = np.full(N, 300.7).astype(np.int16).astype(dtype), np.zeros(N), np.zeros(N, dtype)
        with pyfuser.fusing():
            pk.parallel_for(N, scale, x=x, t=t)
            pk.parallel_for(N, copy, x=t, y=y)
        want = (2.0 * x).astype(np.int64).astype(dtype)
        assert_array_equal(t, want)
        assert_array_equal(y, want.astype(float))
