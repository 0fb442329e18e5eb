"""Whatever is pending, every read sees the last write before it and no write after it."""

# ruff: noqa: B007 - workunits are written in PyKokkos' language, which has no such spelling

from __future__ import annotations

import numpy as np
import pykokkos as pk
import pytest
from numpy.testing import assert_array_equal

import pyfuser
from tests.soundness.plans import groups, reasons
from tests.soundness.workunits import copy, put, total

N = 10
I = np.arange(N, dtype=float)


@pk.workunit
def inc(i, x, v):
    x[i] += v


@pk.workunit
def copy_reversed(i, x, y, n):
    y[i] = x[n - 1 - i]


@pk.workunit
def put_where(i, x, v, k):
    if i < k:
        x[i] = v


@pk.workunit
def put_if_positive(i, x, c, v):
    if c[i] > 0.0:
        x[i] = v


@pk.workunit
def scale(i, x, a):
    x[i] = a * x[i]


@pk.workunit
def put_at(i, x, k, v):
    x[k] = v


@pk.workunit
def pick(i, x, y, k):
    y[i] = x[k]


@pk.workunit
def total_and_double(i, acc, x):
    acc += x[i]
    x[i] = 2.0 * x[i]


@pk.workunit
def count_int(i, acc: pk.Acc[int], x):
    if x[i] > 4.0:
        acc += 1


@pk.workunit
def running(i, acc, last, x, y):
    acc += x[i]
    if last:
        y[i] = acc


@pk.workunit
def prefix_in_place(i, acc, last, x):
    acc += x[i]
    if last:
        x[i] = acc


@pk.workunit
def loop_to(i, x, n):
    for j in range(n):
        x[i] += 1.0


@pk.workunit
def atomic_total(i, x, s):
    pk.atomic_add(s, [0], x[i])


@pk.workunit
def atomic_max(i, x, s):
    pk.atomic_fetch_max(s, [0], x[i])


def test_anti_dependence_elementwise_and_reversed():
    x, y, z = I.copy(), np.zeros(N), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, copy_reversed, x=x, y=y, n=N)
        pk.parallel_for(N, copy, x=x, y=z)
        pk.parallel_for(N, put, x=x, v=-1.0)
    assert_array_equal(y, I[::-1])
    assert_array_equal(z, I)
    assert_array_equal(x, np.full(N, -1.0))
    assert reasons()["copy_reversed|put"] == "anti"


def test_swaps():
    x, y, t = I.copy(), -I, np.zeros(N)
    with pyfuser.fusing():
        for _ in range(5):
            pk.parallel_for(N, copy, x=x, y=t)
            pk.parallel_for(N, copy, x=y, y=x)
            pk.parallel_for(N, copy, x=t, y=y)
    assert_array_equal(x, -I)
    assert_array_equal(y, I)
    assert_array_equal(t, I)
    assert len(groups()) == 1


def test_reversals_back_and_forth():
    x, y = I.copy(), np.zeros(N)
    with pyfuser.fusing():
        for _ in range(3):
            pk.parallel_for(N, copy_reversed, x=x, y=y, n=N)
            pk.parallel_for(N, inc, x=y, v=1.0)
            pk.parallel_for(N, copy, x=y, y=x)
    want = I.copy()
    for _ in range(3):
        want = want[::-1] + 1
    assert_array_equal(x, want)
    assert groups() == ["copy_reversed+inc", "copy"] * 3


def test_output_dependences_of_partial_overwrites():
    x = np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, put, x=x, v=1.0)
        pk.parallel_for(N // 2, put, x=x, v=2.0)
        pk.parallel_for(N, put_where, x=x, v=3.0, k=2)
        pk.parallel_for(pk.RangePolicy(8, N), put, x=x, v=4.0)
        pk.parallel_for(N, put_if_positive, x=x, c=np.where(I == 6, 1.0, 0.0), v=5.0)
    assert_array_equal(x, [3, 3, 2, 2, 2, 1, 5, 1, 4, 4])


def test_a_partial_overwrite_does_not_kill_a_store():
    x, y = np.zeros(N), np.zeros(N)
    c = np.where(I % 3 == 0, 1.0, -1.0)
    with pyfuser.fusing():
        pk.parallel_for(N, put, x=x, v=1.0)
        pk.parallel_for(N, put_if_positive, x=x, c=c, v=2.0)
        pk.parallel_for(N, copy, x=x, y=y)
        pk.parallel_for(N, put_where, x=x, v=0.0, k=1)
    want = np.where(I % 3 == 0, 2.0, 1.0)
    assert_array_equal(y, want)
    want[0] = 0
    assert_array_equal(x, want)
    assert len(groups()) == 1


def test_a_full_overwrite_kills_the_store_before_it_but_not_its_readers():
    x, y, z = np.zeros(N), np.zeros(N), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, put, x=x, v=1.0)
        pk.parallel_for(N, copy_reversed, x=x, y=y, n=N)
        pk.parallel_for(N, put, x=x, v=2.0)
        pk.parallel_for(N, copy_reversed, x=x, y=z, n=N)
        pk.parallel_for(N, put, x=x, v=3.0)
    assert_array_equal(y, np.full(N, 1.0))
    assert_array_equal(z, np.full(N, 2.0))
    assert_array_equal(x, np.full(N, 3.0))


def test_reading_one_of_many_pending():
    views = [pk.View([N], pk.double) for _ in range(5)]
    with pyfuser.fusing():
        for k, v in enumerate(views):
            pk.parallel_for(N, put, x=v, v=float(k))
        for k in range(4):
            pk.parallel_for(N, copy_reversed, x=views[k], y=views[k + 1], n=N)
        pk.parallel_for(N, put, x=views[2], v=9.0)
        assert views[4][3] == 0.0
        assert views[2][3] == 9.0
        pk.parallel_for(N, inc, x=views[0], v=1.0)
        assert views[1][0] == 0.0
        pk.parallel_for(N, copy, x=views[0], y=views[1])
    assert [v[0] for v in views] == [1, 1, 9, 0, 0]


def test_reading_a_view_leaves_an_unrelated_call_right():
    a, b = pk.View([N], pk.double), pk.View([N], pk.double)
    x = I.copy()
    with pyfuser.fusing():
        pk.parallel_for(N, put, x=a, v=1.0)
        pk.parallel_for(N, copy, x=x, y=b)
        pk.parallel_for(N, put, x=x, v=5.0)
        assert a[0] == 1.0
        pk.parallel_for(N, inc, x=b, v=1.0)
    assert_array_equal(np.asarray(b), I + 1)
    assert_array_equal(x, np.full(N, 5.0))


def test_reduction_then_overwrite():
    x = I.copy()
    with pyfuser.fusing():
        before = pk.parallel_reduce(N, total, x=x)
        pk.parallel_for(N, put, x=x, v=1.0)
        after = pk.parallel_reduce(N, total, x=x)
        pk.parallel_for(N, put, x=x, v=0.0)
    assert (before, after) == (45.0, 10.0)
    assert_array_equal(x, np.zeros(N))


def test_a_reduction_that_writes():
    x, y = I.copy(), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, inc, x=x, v=1.0)
        first = pk.parallel_reduce(N, total_and_double, x=x)
        pk.parallel_for(N, copy, x=x, y=y)
        second = pk.parallel_reduce(N, total_and_double, x=x)
        third = pk.parallel_reduce(N, count_int, x=x)
    assert (first, second, third) == (55.0, 110.0, 9)
    assert_array_equal(y, 2 * (I + 1))
    assert_array_equal(x, 4 * (I + 1))


def test_future_as_scalar():
    x, y = I.copy(), I.copy()
    with pyfuser.fusing():
        s = pk.parallel_reduce(N, total, x=x)
        pk.parallel_for(N, inc, x=x, v=s)
        t = pk.parallel_reduce(N, total, x=x)
        pk.parallel_for(N, scale, x=y, a=t)
        pk.parallel_for(N, inc, x=y, v=s)
    assert (s, t) == (45.0, 495.0)
    assert_array_equal(x, I + 45)
    assert_array_equal(y, I * 495 + 45)


def test_future_arithmetic():
    x, y = I.copy(), np.zeros(N)
    with pyfuser.fusing():
        s = pk.parallel_reduce(N, total, x=x)
        pk.parallel_for(N, put, x=y, v=s / 9 + 1)
        pk.parallel_for(N, put, x=x, v=-s)
    assert_array_equal(y, np.full(N, 6.0))
    assert_array_equal(x, np.full(N, -45.0))


def test_future_as_index_and_loop_bound():
    x, y, z = I.copy(), np.zeros(N), np.zeros(N)
    with pyfuser.fusing():
        k = pk.parallel_reduce(N, count_int, x=x)  # 5
        pk.parallel_for(N, pick, x=x, y=y, k=k)
        pk.parallel_for(1, put_at, x=x, k=k, v=-1.0)
        pk.parallel_for(N, loop_to, x=z, n=k)
    assert k == 5
    assert_array_equal(y, np.full(N, 5.0))
    assert_array_equal(z, np.full(N, 5.0))
    assert x[5] == -1.0


@pytest.mark.parametrize(
    "policy",
    [lambda k: k, lambda k: pk.RangePolicy(0, k), lambda k: pk.RangePolicy(pk.Default, 0, int(k))],
)
def test_future_as_range(policy):
    x, y = I.copy(), np.zeros(N)
    with pyfuser.fusing():
        k = pk.parallel_reduce(N, count_int, x=x)
        pk.parallel_for(policy(k), put, x=y, v=1.0)
        pk.parallel_for(N, inc, x=y, v=1.0)
    assert_array_equal(y, [2] * 5 + [1] * 5)


def test_future_as_view_size_and_condition():
    x = I.copy()
    with pyfuser.fusing():
        k = pk.parallel_reduce(N, count_int, x=x)
        v = pk.View([int(k)], pk.double)
        pk.parallel_for(5, put, x=v, v=2.0)
        if k > 4:
            pk.parallel_for(5, inc, x=v, v=1.0)
        for _ in range(k):
            pk.parallel_for(N, inc, x=x, v=1.0)
        assert f"{k}" == "5" and [0, 1, 2, 3, 4, 5][k] == 5 and hash(k) == hash(5)
    assert_array_equal(np.asarray(v), np.full(5, 3.0))
    assert_array_equal(x, I + 5)


def test_a_future_that_nobody_reads_still_writes():
    x = I.copy()
    with pyfuser.fusing():
        pk.parallel_reduce(N, total_and_double, x=x)
        pk.parallel_for(N, inc, x=x, v=1.0)
    assert_array_equal(x, 2 * I + 1)


def test_scans():
    x, y, z = I.copy(), np.zeros(N), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, inc, x=x, v=1.0)
        s = pk.parallel_scan(N, running, x=x, y=y)
        pk.parallel_for(N, copy_reversed, x=y, y=z, n=N)
        pk.parallel_for(N, put, x=x, v=0.0)
        t = pk.parallel_scan(N, prefix_in_place, x=y)
        pk.parallel_for(N, inc, x=y, v=1.0)
    want = np.cumsum(I + 1)
    assert (s, t) == (55.0, want.sum())
    assert_array_equal(z, want[::-1])
    assert_array_equal(x, np.zeros(N))
    assert_array_equal(y, np.cumsum(want) + 1)


def test_atomics_of_the_same_and_of_other_operators():
    x, s = I.copy(), np.zeros(1)
    y = np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, atomic_total, x=x, s=s)
        pk.parallel_for(N, atomic_total, x=x, s=s)
    assert s[0] == 90.0
    assert groups() == ["atomic_total+atomic_total"]
    s[0] = 0.0
    with pyfuser.fusing():
        pk.parallel_for(N, atomic_total, x=x, s=s)
        pk.parallel_for(N, atomic_max, x=x, s=s)
        pk.parallel_for(N, atomic_total, x=x, s=s)
        pk.parallel_for(N, pick, x=s, y=y, k=0)
    assert s[0] == 90.0
    assert_array_equal(y, np.full(N, 90.0))
    assert len(groups()) == 4
    s[0] = 0.0
    with pyfuser.fusing():
        pk.parallel_for(N, atomic_max, x=x, s=s)
        pk.parallel_for(1, put_at, x=s, k=0, v=1.0)
        pk.parallel_for(N, atomic_total, x=x, s=s)
    assert s[0] == 46.0


HOST_WRITES = {
    "item": lambda v: v.__setitem__(3, 100.0),
    "numpy item": lambda v: v.__setitem__(np.int64(3), 100.0),
    "slice": lambda v: v.__setitem__(slice(3, 4), 100.0),
    "subview": lambda v: v[2:5].__setitem__(1, 100.0),
    "asarray": lambda v: np.asarray(v).__setitem__(3, 100.0),
    "data": lambda v: v.data.__setitem__(3, 100.0),
    "copyto": lambda v: np.copyto(np.asarray(v), np.where(I == 3, 100.0, np.asarray(v))),
    "add at": lambda v: np.add.at(np.asarray(v), [3], 99.0),
    "memoryview": lambda v: memoryview(v.data).__setitem__(3, 100.0),
}


@pytest.mark.parametrize("name", HOST_WRITES)
def test_host_write_between_calls(name):
    v = pk.View([N], pk.double)
    y, z = np.zeros(N), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, put, x=v, v=1.0)
        pk.parallel_for(N, copy_reversed, x=v, y=y, n=N)
        HOST_WRITES[name](v)
        pk.parallel_for(N, inc, x=v, v=1.0)
        pk.parallel_for(N, copy, x=v, y=z)
    assert_array_equal(y, np.ones(N))
    assert_array_equal(z, np.where(I == 3, 101.0, 2.0))


def test_fill_and_slice_assignment_between_calls():
    v, w = pk.View([N], pk.double), pk.View([N], pk.double)
    y = np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, put, x=v, v=1.0)
        pk.parallel_for(N, copy, x=v, y=y)
        v.fill(7.0)
        pk.parallel_for(N // 2, inc, x=v, v=1.0)
        w[:] = v
        v[:] = 0.0
        pk.parallel_for(N, inc, x=v, v=w[9])
    assert_array_equal(y, np.ones(N))
    assert_array_equal(np.asarray(w), [8] * 5 + [7] * 5)
    assert_array_equal(np.asarray(v), np.full(N, 7.0))


def test_resize_between_calls():
    v = pk.View([N], pk.double)
    y = np.zeros(2 * N)
    with pyfuser.fusing():
        pk.parallel_for(N, put, x=v, v=1.0)
        old = v.data
        v.resize(0, 2 * N)
        pk.parallel_for(2 * N, inc, x=v, v=1.0)
        pk.parallel_for(2 * N, copy, x=v, y=y)
    assert_array_equal(y, [2.0] * N + [1.0] * N)
    assert_array_equal(old, np.ones(N))


def test_spaces_and_policies():
    x, y = I.copy(), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(pk.RangePolicy(pk.OpenMP, 0, N), inc, x=x, v=1.0)
        pk.parallel_for(pk.RangePolicy(pk.Serial, 0, N), inc, x=x, v=1.0)
        pk.parallel_for("a label", pk.RangePolicy(0, N), inc, x=x, v=1.0)
        pk.parallel_for(pk.RangePolicy(2, 5), inc, v=1.0, x=x)
        pk.parallel_for(0, inc, x=x, v=1.0)
        pk.parallel_for(pk.RangePolicy(5, 5), inc, x=x, v=1.0)
        pk.parallel_for("copy", N, copy, y=y, x=x)
        s = pk.parallel_reduce("sum", pk.RangePolicy(2, 5), total, x=x)
    want = I + 3 + ((I >= 2) & (I < 5))
    assert_array_equal(y, want)
    assert s == want[2:5].sum()


def test_ranges_that_touch_and_ranges_that_overlap():
    x, y = I.copy(), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(pk.RangePolicy(0, 5), inc, x=x, v=1.0)
        pk.parallel_for(pk.RangePolicy(5, 10), inc, x=x, v=2.0)
        pk.parallel_for(pk.RangePolicy(3, 7), scale, x=x, a=-1.0)
        pk.parallel_for(N, copy_reversed, x=x, y=y, n=N)
        pk.parallel_for(pk.RangePolicy(9, 10), put, x=x, v=0.0)
    want = I + np.where(I < 5, 1, 2)
    want[3:7] *= -1
    assert_array_equal(y, want[::-1])
    want[9] = 0
    assert_array_equal(x, want)


def test_nested_blocks():
    x, y = I.copy(), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, inc, x=x, v=1.0)
        with pyfuser.unfused():
            pk.parallel_for(N, scale, x=x, a=2.0)
            assert x[0] == 2.0
            with pyfuser.fusing():
                pk.parallel_for(N, copy_reversed, x=x, y=y, n=N)
                pk.parallel_for(N, put, x=x, v=0.0)
            assert y[0] == 20.0
        pk.parallel_for(N, inc, x=y, v=1.0)
        assert pyfuser.pending()
    assert_array_equal(y, 2 * (I + 1)[::-1] + 1)
    assert_array_equal(x, np.zeros(N))


def test_an_exception_halfway_through_a_block():
    x, y = I.copy(), np.zeros(N)
    with pytest.raises(ZeroDivisionError), pyfuser.fusing():
        pk.parallel_for(N, inc, x=x, v=1.0)
        pk.parallel_for(N, copy, x=x, y=y)
        pk.parallel_for(N, put, x=x, v=1 / 0)
    assert_array_equal(x, I + 1)
    assert_array_equal(y, I + 1)
    assert pyfuser.pending() == ()


def test_a_call_with_wrong_arguments_leaves_the_others_right():
    x = I.copy()
    with pyfuser.fusing():
        pk.parallel_for(N, inc, x=x, v=1.0)
        with pytest.raises(Exception, match="nothing"):
            pk.parallel_for(N, inc, x=x, v=1.0, nothing=3)
        pk.parallel_for(N, inc, x=x, v=1.0)
    assert_array_equal(x, I + 2)


def test_a_python_list_changed_after_the_call():
    """Scalars are taken when the call is made."""
    x = np.zeros(N)
    with pyfuser.fusing():
        for k in range(5):
            pk.parallel_for(N, inc, x=x, v=float(k))
    assert_array_equal(x, np.full(N, 10.0))


def test_a_scalar_taken_out_of_an_array_is_the_value_of_that_moment():
    x = np.zeros(N)
    parameters = np.array([1.0, 2.0])
    with pyfuser.fusing():
        pk.parallel_for(N, inc, x=x, v=parameters[0])
        parameters[0] = 50.0
        pk.parallel_for(N, inc, x=x, v=parameters[1])
    assert_array_equal(x, np.full(N, 3.0))


def test_a_scalar_read_from_a_pending_view():
    v, x = pk.View([N], pk.double), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, put, x=v, v=4.0)
        pk.parallel_for(N, inc, x=x, v=v[2])
        pk.parallel_for(N, put, x=v, v=5.0)
        pk.parallel_for(N, inc, x=x, v=float(v[2]))
    assert_array_equal(x, np.full(N, 9.0))


def test_a_raw_array_after_sync_and_fence():
    x, y = I.copy(), I.copy()
    with pyfuser.fusing():
        pk.parallel_for(N, inc, x=x, v=1.0)
        pyfuser.sync(x)
        assert_array_equal(x, I + 1)
        x[0] = 100.0
        pk.parallel_for(N, inc, x=x, v=1.0)
        pk.fence()
        assert x[0] == 101.0
        pk.parallel_for(N, copy_reversed, x=x, y=y, n=N)
        pk.parallel_for(N, put, x=x, v=0.0)
        pyfuser.sync(y[::2])
        assert y[9] == 101.0
        pyfuser.sync()
        assert x[4] == 0.0


def test_sync_of_a_read_array_waits_for_its_readers():
    """After sync(x) the program may write x, although pending calls only read it."""
    x, y = I.copy(), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, copy, x=x, y=y)
        pyfuser.sync(x)
        x[:] = -1.0
    assert_array_equal(y, I)


def test_a_long_trace():
    x, y = np.zeros(N), I.copy()
    with pyfuser.fusing():
        for _ in range(1000):
            pk.parallel_for(N, inc, x=x, v=1.0)
            pk.parallel_for(N, copy_reversed, x=x, y=y, n=N)
    assert_array_equal(x, np.full(N, 1000.0))
    assert_array_equal(y, np.full(N, 1000.0))


def test_a_long_trace_of_one_chain():
    x = np.zeros(N)
    with pyfuser.fusing():
        for k in range(2000):
            pk.parallel_for(N, inc, x=x, v=float(k))
    assert_array_equal(x, np.full(N, 1999.0 * 1000.0))
