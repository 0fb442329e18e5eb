"""Fills and copies of whole Views that are recorded, and those that are not."""

from __future__ import annotations

import numpy as np
import pykokkos as pk
import pytest
from numpy.testing import assert_array_equal

import pyfuser
from pyfuser.frontends.embedded.fills import WORTH
from pyfuser.runtime.session import TRACER
from tests.soundness.plans import groups

N = 12
LARGE = WORTH // 8


@pk.workunit
def inc(i, x, v):
    x[i] += v


@pk.workunit
def inc_rows(i, x, v):
    for j in range(x.extent(1)):
        x[i][j] += v


@pk.workunit
def put(i, x, v):
    x[i] = v


@pk.workunit
def put2(i, j, x, v):
    x[i][j] = v


@pk.workunit
def copy(i, x, y):
    y[i] = x[i]


def pending() -> list[str]:
    return [call.name for call in TRACER.calls]


def test_a_fill_of_what_is_pending_keeps_its_place():
    v, w = pk.View([N], pk.double), pk.View([N], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(N, inc, x=v, v=1.0)
        pk.parallel_for(N, copy, x=v, y=w)
        v.fill(7)
        pk.parallel_for(N, inc, x=v, v=1.0)
        assert pending() == ["inc", "copy", "fill", "inc"]
    assert groups() == ["inc+copy+fill+inc"]
    assert_array_equal(np.asarray(w), np.ones(N))
    assert_array_equal(np.asarray(v), np.full(N, 8.0))


def stored() -> int:
    (group,) = pyfuser.explain().groups
    return group.removed_stores.get("v", 0) + group.removed_stores.get("view", 0)


def test_a_fill_that_is_overwritten_vanishes():
    v = pk.View([N], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(N, inc, x=v, v=1.0)
        v.fill(7)
        pk.parallel_for(N, put, x=v, v=2.0)
    assert groups() == ["inc+fill+put"]
    assert stored() == 2
    assert_array_equal(np.asarray(v), np.full(N, 2.0))


@pytest.mark.parametrize("part", [0, 1, N - 1])
def test_a_fill_that_is_overwritten_in_part_does_not(part):
    v = pk.View([N], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(N, inc, x=v, v=1.0)
        v.fill(7)
        pk.parallel_for(part, put, x=v, v=2.0)
    assert_array_equal(np.asarray(v), [2.0] * part + [7.0] * (N - part))


def test_short_rows_fuse_with_loops_over_rows():
    v = pk.View([N, 3], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(N, inc_rows, x=v, v=1.0)
        v.fill(7)
        pk.parallel_for(N, inc_rows, x=v, v=1.0)
    assert groups() == ["inc_rows+fill+inc_rows"]
    assert_array_equal(np.asarray(v), np.full((N, 3), 8.0))


@pytest.mark.parametrize("shape", [(N,), (N, 3), (N, 40), (3, 4, 5), (1,), (1, 1)])
@pytest.mark.parametrize("dtype", [pk.double, pk.float, pk.int32, pk.uint8, pk.int64])
@pytest.mark.parametrize("layout", [pk.LayoutRight, pk.LayoutLeft])
def test_recorded_fills_store_what_numpy_stores(shape, dtype, layout):
    v = pk.View(shape, dtype, layout=layout)
    w = pk.View(shape, dtype)
    flat = pk.View([N], dtype)
    with pyfuser.fusing():
        pk.parallel_for(N, inc, x=flat, v=1)
        v[:1].fill(3) if len(shape) == 1 else None
        for view in (v, w):
            view.fill(200)
            view[...] = 3
        v.fill(100)
        w[(slice(None),) * len(shape)] = v
        v[:] = 7
    assert_array_equal(np.asarray(v), np.full(shape, 7))
    assert_array_equal(np.asarray(w), np.full(shape, 100))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_views_without_elements_are_filled_by_no_call(shape):
    v, w = pk.View(shape, pk.double), pk.View(shape, pk.double)
    with pyfuser.fusing():
        pk.parallel_for(pk.MDRangePolicy([0, 0], shape), put2, x=v, v=1.0)
        v.fill(7)
        v[...] = w
        w.fill(7)
        assert not {"fill", "copy"} & set(pending())
    assert np.asarray(v).shape == np.asarray(w).shape == shape


@pytest.mark.parametrize(
    "value", [0.1, -0.0, float("nan"), float("inf"), 3, np.float32(0.1), 1e300]
)
@pytest.mark.parametrize("dtype", [pk.double, pk.float])
@pytest.mark.filterwarnings("ignore:overflow")
def test_floating_point_values_round_as_numpys_do(value, dtype):
    filled, v = pk.View([N], dtype), pk.View([N], dtype)
    filled.fill(value)
    with pyfuser.fusing():
        pk.parallel_for(N, inc, x=v, v=1.0)
        v.fill(value)
    assert np.asarray(v).tobytes() == np.asarray(filled).tobytes()


@pytest.mark.parametrize(("dtype", "value"), [(pk.int32, 2.5), (pk.uint8, -1), (pk.int32, 2**40)])
def test_what_a_kernel_might_store_otherwise_is_done_at_once(dtype, value):
    v = pk.View([N], dtype)
    expected = np.zeros(N, v.dtype.np_equiv)
    try:
        expected.fill(value)
    except OverflowError:
        with pyfuser.fusing(), pytest.raises(OverflowError):
            pk.parallel_for(N, inc, x=v, v=1)
            v.fill(value)
    else:
        with pyfuser.fusing():
            pk.parallel_for(N, inc, x=v, v=1)
            v.fill(value)
            assert pending() == []
        assert_array_equal(np.asarray(v), expected)


def test_memory_that_numpy_reaches_is_filled_at_once():
    v = pk.View([N], pk.double)
    array = v.data
    with pyfuser.fusing():
        pk.parallel_for(N, inc, x=v, v=1.0)
        v.fill(7)
        assert pending() == []
        assert_array_equal(array, np.full(N, 7.0))


def test_without_calls_before_it_only_a_large_fill_is_recorded():
    small, large = pk.View([N], pk.double), pk.View([LARGE], pk.double)
    large.fill(1.0)
    assert pending() == []
    with pyfuser.fusing():
        small.fill(1.0)
        assert pending() == []
        large.fill(2.0)
        assert pending() == ["fill"]
        with pyfuser.unfused():
            large.fill(3.0)
            assert pending() == []
            assert large[0] == 3.0
    assert_array_equal(np.asarray(large), np.full(LARGE, 3.0))
    assert_array_equal(np.asarray(small), np.ones(N))


def test_a_new_view_is_zero_already_but_not_minus_zero():
    v, w = pk.View([LARGE], pk.double), pk.View([LARGE], pk.double)
    with pyfuser.fusing():
        v.fill(0)
        assert pending() == []
        w.fill(-0.0)
        assert pending() == ["fill"]
    assert not np.signbit(np.asarray(v)).any()
    assert np.signbit(np.asarray(w)).all()


def test_a_part_is_filled_in_part():
    v = pk.View([N], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(N, inc, x=v, v=1.0)
        part = v[2:7:2]
        part.fill(7)
        assert pending() == ["inc", "fill"]
        part[:] = 8.0
        pk.parallel_for(N, inc, x=v, v=1.0)
    expected = np.full(N, 2.0)
    expected[2:7:2] = 9.0
    assert_array_equal(np.asarray(v), expected)


def test_a_copy_takes_the_values_of_its_time():
    v, w = pk.View([N], pk.double), pk.View([N], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(N, inc, x=v, v=1.0)
        w[:] = v
        pk.parallel_for(N, inc, x=v, v=1.0)
        assert pending() == ["inc", "copy", "inc"]
    assert groups() == ["inc+copy+inc"]
    assert_array_equal(np.asarray(w), np.ones(N))
    assert_array_equal(np.asarray(v), np.full(N, 2.0))


def test_copies_within_one_memory_are_made_at_once():
    v = pk.View([N], pk.double)
    v[:] = np.arange(N)
    with pyfuser.fusing():
        pk.parallel_for(N, inc, x=v, v=1.0)
        v[1:][:] = v[:-1]
        assert pending() == []
    assert_array_equal(np.asarray(v), [1.0, *np.arange(1.0, N)])


@pytest.mark.parametrize("other", [pk.View([N], pk.float), pk.View([1], pk.double)])
def test_copies_that_convert_or_repeat_are_made_at_once(other):
    v = pk.View([N], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(N, inc, x=v, v=1.0)
        v[:] = other
        assert pending() == []
    assert_array_equal(np.asarray(v), np.zeros(N))


def test_the_report_names_the_line_that_filled():
    v = pk.View([N], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(N, inc, x=v, v=1.0)
        v.fill(3.0)
    (group,) = pyfuser.explain().groups
    line = test_the_report_names_the_line_that_filled.__code__.co_firstlineno + 4
    assert group.calls[1].location.endswith(f"test_fills.py:{line}")
