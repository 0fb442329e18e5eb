"""Two names for one memory: what overlaps is a fact about bytes, not about Python objects."""

from __future__ import annotations

import ctypes
import functools
import gc

import numpy as np
import pykokkos as pk
import pytest
from numpy.lib.stride_tricks import as_strided
from numpy.testing import assert_array_equal

import pyfuser
from tests.soundness.plans import groups, reasons
from tests.soundness.workunits import copy, count, count2, inc, total

N = 8


@pk.workunit
def twice(i, x, y, z):
    y[i] = x[i] + 1.0
    z[i] = y[i] * 2.0


@pk.workunit
def put_two(i, x, y):
    x[i] = 1.0
    y[i] = 2.0


@pk.workunit
def temporary(i, x, t):
    t[i] = x[i] * 2.0


@pk.workunit
def use(i, t, y):
    y[i] = t[i] + 1.0


@pk.workunit
def inc2(i, j, m):
    m[i][j] += 1.0


@pk.workunit
def copy2(i, j, m, t):
    t[i][j] = m[i][j]


@pk.workunit
def to_bits(i, b):
    b[i] += 1


def run(first, second, size):
    """first is counted, then second copied out; the copy."""
    y = np.zeros(size)
    with pyfuser.fusing():
        pk.parallel_for(len(first), count, x=first)
        pk.parallel_for(size, copy, x=second, y=y)
    return y


# Slices of one array: (name, slice written, slice read, whether they can share a loop)
SLICES = {
    "same": (slice(0, 8), slice(0, 8), True),
    "shifted": (slice(0, 8), slice(1, 9), False),
    "shifted back": (slice(1, 9), slice(0, 8), False),
    "reversed": (slice(0, 8), slice(7, None, -1), False),
    "both reversed": (slice(7, None, -1), slice(7, None, -1), True),
    "disjoint": (slice(0, 8), slice(8, 16), True),
    "even and odd": (slice(0, 16, 2), slice(1, 16, 2), True),
    "even and even": (slice(0, 16, 2), slice(0, 16, 2), True),
    "even and all": (slice(0, 16, 2), slice(0, 8), False),
    "threes and twos": (slice(0, 24, 3), slice(0, 16, 2), False),
}


@pytest.mark.parametrize("name", SLICES)
def test_numpy_slices(name):
    first, second, fuses = SLICES[name]
    base = np.full(24, -1.0)
    want = base.copy()
    want[first] = np.arange(N) + 1.0
    y = run(base[first], base[second], N)
    assert_array_equal(y, want[second])
    assert_array_equal(base, want)
    assert (len(groups()) == 1) == fuses


@pytest.mark.parametrize("name", ["same", "shifted", "shifted back", "disjoint"])
def test_view_slices(name):
    first, second, fuses = SLICES[name]
    base = pk.View([24], pk.double)
    want = np.zeros(24)
    want[first] = np.arange(N) + 1.0
    y = run(base[first], base[second], N)
    assert_array_equal(y, want[second])
    assert_array_equal(np.asarray(base), want)
    assert (len(groups()) == 1) == fuses


def test_base_written_and_shifted_subview_read():
    base = pk.View([N + 1], pk.double)
    y = run(base, base[1 : N + 1], N)
    assert_array_equal(y, np.arange(N) + 2.0)


def test_subview_of_a_subview():
    base = pk.View([20], pk.double)
    first = base[2:14]
    second = first[3:11]
    y = run(base[5:13], second, N)
    assert_array_equal(y, np.arange(N) + 1.0)
    assert len(groups()) == 1
    y = run(first[0:8], second, N)
    want = np.zeros(20)
    want[5:13] = np.arange(N) + 1.0
    want[2:10] = np.arange(N) + 1.0
    assert_array_equal(y, want[5:13])
    assert len(groups()) == 2


@pytest.mark.parametrize("shift", [0, 1, -1])
def test_two_overlapping_outputs_of_one_call(shift):
    base = np.zeros(N + 2)
    first, second = base[1 : N + 1], base[1 + shift : N + 1 + shift]
    y = np.zeros(N)
    with pyfuser.fusing():
        if shift == 0:
            pk.parallel_for(N, put_two, x=first, y=second)
        else:
            pk.parallel_for(1, put_two, x=first, y=second)
        pk.parallel_for(N, copy, x=first, y=y)
    want = np.zeros(N + 2)
    if shift == 0:
        want[1 : N + 1] = 2.0
    else:
        want[1], want[1 + shift] = 1.0, 2.0
    assert_array_equal(y, want[1 : N + 1])


def test_one_view_under_two_names():
    """A store through y must be seen through x of the next call, and the load of z is not stale."""
    x = np.arange(float(N))
    with pyfuser.fusing():
        pk.parallel_for(N, twice, x=x, y=x, z=x)
        pk.parallel_for(N, twice, x=x, y=x, z=x)
    want = np.arange(float(N))
    for _ in range(2):
        want = (want + 1) * 2
    assert_array_equal(x, want)
    assert len(groups()) == 1


def test_the_alias_pattern_of_one_call_site_changes():
    def step(x, y, z):
        with pyfuser.fusing():
            pk.parallel_for(N, twice, x=x, y=y, z=z)
            pk.parallel_for(N, twice, x=z, y=x, z=y)

    def numpy_step(x, y, z):
        for a, b, c in ((x, y, z), (z, x, y)):
            for i in range(N):
                b[i] = a[i] + 1
                c[i] = b[i] * 2

    arrays = [np.arange(float(N)) * (k + 1) for k in range(3)]
    expected = [a.copy() for a in arrays]
    for a, b, c in [(0, 1, 2), (0, 0, 1), (0, 1, 0), (1, 0, 0), (2, 2, 2), (0, 1, 2), (1, 2, 0)]:
        step(arrays[a], arrays[b], arrays[c])
        numpy_step(expected[a], expected[b], expected[c])
        for got, want in zip(arrays, expected, strict=True):
            assert_array_equal(got, want)


def test_the_shift_between_arguments_of_one_call_site_changes():
    for shift in (0, 1, 0, 8, -1, 2):
        base = np.zeros(32)
        y = run(base[8:16], base[8 + shift : 16 + shift], N)
        assert_array_equal(y, base[8 + shift : 16 + shift])
        assert_array_equal(base[8:16], np.arange(N) + 1.0)
        assert (len(groups()) == 1) == (shift in (0, 8))


def test_pending_calls_of_a_loop_with_other_slices_each_time():
    base = np.zeros(N + 4)
    want = base.copy()
    with pyfuser.fusing():
        for k in range(4):
            pk.parallel_for(N, inc, x=base[k : k + N])
            pk.parallel_for(N, inc, x=base[4 - k : 4 - k + N])
    for k in range(4):
        want[k : k + N] += 1
        want[4 - k : 4 - k + N] += 1
    assert_array_equal(base, want)


def test_one_iteration_that_reads_what_its_neighbour_writes():
    base = np.zeros(N + 1)
    base[0] = 1.0
    with pyfuser.fusing():
        for k in range(N):
            pk.parallel_for(1, copy, x=base[k:], y=base[k + 1 :])
    assert_array_equal(base, np.ones(N + 1))


def test_broadcast_view():
    one = np.array([3.0])
    wide = np.broadcast_to(one, (N,))
    y = np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(1, inc, x=one)
        pk.parallel_for(N, copy, x=wide, y=y)
        pk.parallel_for(1, inc, x=one)
    assert_array_equal(y, np.full(N, 4.0))
    assert one[0] == 5.0


def test_zero_stride_is_not_one_cell_for_each():
    one = np.array([3.0])
    wide = as_strided(one, (N,), (0,))
    y = np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, copy, x=wide, y=y)
        pk.parallel_for(1, inc, x=wide)
        pk.parallel_for(N, use, t=wide, y=y)
    assert_array_equal(y, np.full(N, 5.0))
    assert len(groups()) == 3


def test_overlapping_windows():
    base = np.zeros(N + 3)
    windows = as_strided(base, (N, 4), (8, 8))
    t = np.zeros((N, 4))
    policy = pk.MDRangePolicy([0, 0], [N, 4])
    with pyfuser.fusing():
        pk.parallel_for(N + 3, count, x=base)
        pk.parallel_for(policy, copy2, m=windows, t=t)
        pk.parallel_for(N + 3, inc, x=base)
    assert_array_equal(t, np.add.outer(np.arange(N), np.arange(4)) + 1.0)
    assert_array_equal(base, np.arange(N + 3) + 2.0)


def test_windows_written_then_windows_read():
    base = np.zeros(N + 3)
    windows = as_strided(base, (N, 4), (8, 8))
    t = np.zeros((N, 4))
    with pyfuser.fusing():
        pk.parallel_for(pk.MDRangePolicy([0, 0], [1, 4]), count2, m=windows)
        pk.parallel_for(pk.MDRangePolicy([0, 0], [N, 4]), copy2, m=windows, t=t)
    want = np.zeros(N + 3)
    want[:4] = np.arange(4)
    assert_array_equal(t, as_strided(want, (N, 4), (8, 8)))


def test_reshaped():
    m = np.zeros((N, 3))
    flat = m.reshape(-1)
    y = np.zeros(3 * N)
    with pyfuser.fusing():
        pk.parallel_for(pk.MDRangePolicy([0, 0], [N, 3]), count2, m=m)
        pk.parallel_for(3 * N, copy, x=flat, y=y)
    assert_array_equal(y, np.add.outer(10.0 * np.arange(N), np.arange(3)).ravel())


def test_rows_and_columns_of_a_matrix():
    m = np.zeros((N, N))
    y, z = np.zeros(N), np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, count, x=m[3])
        pk.parallel_for(N, copy, x=m[3], y=y)
        pk.parallel_for(N, copy, x=m[4], y=z)
        pk.parallel_for(N, inc, x=m[:, 3])
        pk.parallel_for(N, copy, x=m[3], y=z)
    assert_array_equal(y, np.arange(N) + 1.0)
    want = np.arange(N) + 1.0
    want[3] += 1
    assert_array_equal(z, want)
    assert len(groups()) > 1
    assert reasons()["copy|inc"] == "anti"


def test_rows_of_a_view():
    m = pk.View([N, N], pk.double)
    y = pk.View([N], pk.double)
    with pyfuser.fusing():
        for k in range(3):
            pk.parallel_for(N, count, x=m[k, :])
        pk.parallel_for(N, copy, x=m[1, :], y=y)
        pk.parallel_for(pk.MDRangePolicy([0, 0], [N, N]), inc2, m=m)
    assert_array_equal(np.asarray(y), np.arange(N) + 1.0)
    want = np.ones((N, N))
    want[:3] += np.arange(N) + 1.0
    assert_array_equal(np.asarray(m), want)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
def test_other_dtype_over_the_same_bytes(dtype):
    x, y = np.zeros(N), np.zeros(N)
    bits = x.view(dtype)
    with pyfuser.fusing():
        pk.parallel_for(N, count, x=x)
        pk.parallel_for(len(bits), to_bits, b=bits)
        pk.parallel_for(N, copy, x=x, y=y)
    want = np.arange(N) + 1.0
    want.view(dtype)[:] += 1
    assert_array_equal(y, want)


def test_real_and_imaginary_parts_do_not_overlap():
    z = np.zeros(N, dtype=np.complex128)
    with pyfuser.fusing():
        pk.parallel_for(N, count, x=z.real)
        pk.parallel_for(N, copy, x=z.real, y=z.imag)
    assert_array_equal(z, (1 + 1j) * (np.arange(N) + 1.0))
    assert len(groups()) == 1


def test_field_of_a_structured_array():
    s = np.zeros(N, dtype=[("a", np.float64), ("b", np.float64)])
    with pyfuser.fusing():
        pk.parallel_for(N, count, x=s["a"])
        pk.parallel_for(N, copy, x=s["a"], y=s["b"])
        pk.parallel_for(N, inc, x=s["a"])
    assert_array_equal(s["a"], np.arange(N) + 2.0)
    assert_array_equal(s["b"], np.arange(N) + 1.0)


def test_memory_of_a_bytearray():
    raw = bytearray(8 * N)
    x, y = np.frombuffer(raw), np.frombuffer(raw)
    z = np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, count, x=x)
        pk.parallel_for(N, copy, x=y[::-1], y=z)
    assert_array_equal(z, (np.arange(N) + 1.0)[::-1])
    assert_array_equal(np.frombuffer(raw), np.arange(N) + 1.0)


def test_two_arrays_over_parts_of_one_bytearray():
    """Neither has the other as its base: only addresses tell that they overlap."""
    raw = bytearray(8 * 2 * N)
    x = np.frombuffer(raw, count=N)
    y = np.frombuffer(raw, count=N, offset=8)
    z = np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N, count, x=x)
        pk.parallel_for(N, copy, x=y, y=z)
    assert_array_equal(z, [2, 3, 4, 5, 6, 7, 8, 0])
    assert len(groups()) == 2


def test_view_and_its_numpy_array():
    v = pk.View([N + 1], pk.double)
    a = np.asarray(v)
    y = np.zeros(N)
    with pyfuser.fusing():
        pk.parallel_for(N + 1, count, x=v)
        pk.parallel_for(N, copy, x=a[1:], y=y)
        pk.parallel_for(N, inc, x=a)
    assert_array_equal(y, np.arange(N) + 2.0)
    assert_array_equal(np.asarray(v), [2, 3, 4, 5, 6, 7, 8, 9, 9])


def test_a_temporary_is_not_contracted_while_an_array_of_it_lives():
    x, y = np.arange(float(N)), np.zeros(N)
    v = pk.View([N], pk.double)
    a = np.asarray(v)
    with pyfuser.fusing():
        pk.parallel_for(N, temporary, x=x, t=v)
        pk.parallel_for(N, use, t=v, y=y)
        del v
        gc.collect()
    assert_array_equal(y, 2 * x + 1)
    assert_array_equal(a, 2 * x)


def test_a_temporary_is_not_contracted_while_a_subview_of_it_lives():
    x, y = np.arange(float(N)), np.zeros(N)
    v = pk.View([N], pk.double)
    part = v[2:5]
    with pyfuser.fusing():
        pk.parallel_for(N, temporary, x=x, t=v)
        pk.parallel_for(N, use, t=v, y=y)
        del v
        gc.collect()
    assert_array_equal(y, 2 * x + 1)
    assert_array_equal(np.asarray(part), 2 * x[2:5])


@pytest.mark.parametrize("keep", ["closure", "list", "cycle", "attribute", "memoryview", "default"])
def test_a_temporary_that_something_else_keeps(keep):
    x, y = np.arange(float(N)), np.zeros(N)
    kept: list[object] = []

    def program():
        v = pk.View([N], pk.double)
        if keep == "closure":
            kept.append(lambda: np.asarray(v))
        elif keep == "default":
            kept.append(lambda w=v: np.asarray(w))
        elif keep == "list":
            kept.append(v)
        elif keep == "cycle":
            box: list[object] = [v]
            box.append(box)
            kept.append(box)
        elif keep == "attribute":
            holder = type("Holder", (), {})()
            holder.v = v
            kept.append(holder)
        elif keep == "memoryview":
            kept.append(memoryview(v.data))
        pk.parallel_for(N, temporary, x=x, t=v)
        pk.parallel_for(N, use, t=v, y=y)

    with pyfuser.fusing():
        program()
        gc.collect()
    assert_array_equal(y, 2 * x + 1)
    thing = kept[0]
    if keep in ("closure", "default"):
        thing = thing()
    elif keep == "cycle":
        thing = thing[0]
    elif keep == "attribute":
        thing = thing.v
    assert_array_equal(np.asarray(thing), 2 * x)


KEEPERS = {
    "dlpack": (lambda v: np.from_dlpack(np.asarray(v)), lambda k: k),
    "ctypes pointer": (
        lambda v: np.asarray(v).ctypes.data_as(ctypes.POINTER(ctypes.c_double)),
        lambda k: k[:N],
    ),
    "ctypes array": (lambda v: (ctypes.c_double * N).from_buffer(np.asarray(v)), list),
    "method": (lambda v: v.__getitem__, lambda k: [k(j) for j in range(N)]),
    "partial": (lambda v: functools.partial(np.asarray, v), lambda k: k()),
    "iterator": (iter, list),
    "flat": (lambda v: np.asarray(v).flat, list),
    "reshaped": (lambda v: np.asarray(v).reshape(2, -1).T, lambda k: k.T.ravel()),
    "bytes": (lambda v: memoryview(np.asarray(v)).cast("B"), np.frombuffer),
    "array over its buffer": (lambda v: np.ndarray((N,), buffer=np.asarray(v)), lambda k: k),
}


@pytest.mark.parametrize("made_by", ["pykokkos", "numpy"])
@pytest.mark.parametrize("name", KEEPERS)
def test_memory_that_only_another_object_keeps(name, made_by):
    keep, values = KEEPERS[name]
    x, y = np.arange(float(N)), np.zeros(N)
    with pyfuser.fusing():
        t = pk.View([N], pk.double) if made_by == "pykokkos" else np.zeros(N)
        kept = keep(t)
        pk.parallel_for(N, temporary, x=x, t=t)
        pk.parallel_for(N, use, t=t, y=y)
        del t
        gc.collect()
    assert_array_equal(y, 2 * x + 1)
    assert_array_equal(values(kept), 2 * x)


def test_a_temporary_that_nobody_keeps_is_contracted():
    x, y = np.arange(float(N)), np.zeros(N)
    with pyfuser.fusing():
        t = pk.View([N], pk.double)
        pk.parallel_for(N, temporary, x=x, t=t)
        pk.parallel_for(N, use, t=t, y=y)
        del t
    assert_array_equal(y, 2 * x + 1)
    assert pyfuser.explain().groups[-1].contracted == ("t",)


def test_numpy_temporaries_whose_memory_is_reused():
    """A freed array's address comes back in the next; pending calls must keep theirs."""
    out = [np.zeros(N) for _ in range(6)]
    with pyfuser.fusing():
        for k in range(6):
            t = np.full(N, float(k))
            pk.parallel_for(N, inc, x=t)
            pk.parallel_for(N, copy, x=t, y=out[k])
            del t
            gc.collect()
            junk = np.full(N, -99.0)
            del junk
    for k in range(6):
        assert_array_equal(out[k], np.full(N, k + 1.0))


def test_view_temporaries_whose_memory_is_reused():
    out = np.zeros((6, N))
    with pyfuser.fusing():
        for k in range(6):
            t = pk.View([N], pk.double)
            t.fill(float(k))
            pk.parallel_for(N, inc, x=t)
            pk.parallel_for(N, copy, x=t, y=out[k])
            del t
            gc.collect()
    assert_array_equal(out, np.add.outer(np.arange(6) + 1.0, np.zeros(N)))


def test_a_temporary_dies_and_another_takes_its_place():
    x = np.arange(float(N))
    y, z = np.zeros(N), np.zeros(N)
    with pyfuser.fusing():
        t = pk.View([N], pk.double)
        pk.parallel_for(N, temporary, x=x, t=t)
        pk.parallel_for(N, use, t=t, y=y)
        del t
        t = pk.View([N], pk.double)
        pk.parallel_for(N, use, t=t, y=z)
        pk.parallel_for(N, temporary, x=y, t=t)
        pk.parallel_for(N, inc, x=t)
    assert_array_equal(y, 2 * x + 1)
    assert_array_equal(z, np.ones(N))
    assert_array_equal(np.asarray(t), 2 * y + 1)


def test_a_fresh_view_is_zero_where_it_was_not_written():
    x, y = np.arange(float(N)), np.zeros(N)
    with pyfuser.fusing():
        t = pk.View([N], pk.double)
        pk.parallel_for(N // 2, temporary, x=x, t=t)
        pk.parallel_for(N, use, t=t, y=y)
        del t
    assert_array_equal(y, np.where(np.arange(N) < N // 2, 2 * x + 1, 1))


def test_reduction_of_overlapping_slices():
    base = np.zeros(N + 1)
    with pyfuser.fusing():
        pk.parallel_for(N, count, x=base[:N])
        first = pk.parallel_reduce(N, total, x=base[1:])
        pk.parallel_for(N, inc, x=base[1:])
        second = pk.parallel_reduce(N, total, x=base[:N])
    assert float(first) == N * (N + 1) / 2 - 1
    assert float(second) == N * (N + 1) / 2 + N - 1


def test_a_read_only_array_is_read():
    x, y = np.arange(float(N)), np.zeros(N)
    x.flags.writeable = False
    with pyfuser.fusing():
        pk.parallel_for(N, copy, x=x, y=y)
        pk.parallel_for(N, inc, x=y)
    assert_array_equal(y, x + 1)


def test_the_same_slices_made_anew_are_the_same_memory():
    base = np.zeros((4, N))
    with pyfuser.fusing():
        for _ in range(3):
            for row in range(4):
                pk.parallel_for(N, inc, x=base[row])
    assert_array_equal(base, np.full((4, N), 3.0))
    assert len(groups()) == 1
    assert reasons() == {}
