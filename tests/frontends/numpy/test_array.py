"""What is recorded, when it runs, and who reaches memory."""

from __future__ import annotations

import copy
import gc
import pickle
import warnings
from collections.abc import Callable

import numpy
import pykokkos as pk
import pytest

import pyfuser
import pyfuser.numpy as np
from pyfuser.frontends.numpy import switches
from pyfuser.runtime.session import TRACER
from pyfuser.trace import reason
from tests.frontends.numpy.workunits import twice

LARGE = switches.LAZY_FROM
Lazily = Callable[[str], None]


def pending() -> int:
    return len(TRACER.calls)


@pytest.fixture(autouse=True)
def nothing_pending() -> None:
    TRACER.flush(reason.SYNC)


def test_large_operations_are_recorded_and_small_ones_are_not() -> None:
    x, small = np.zeros(LARGE), np.zeros(LARGE - 1)
    assert pending() == 0
    small + 1
    assert pending() == 0
    y = x + 1
    assert pending() == 1
    assert y[5] == 1.0
    assert pending() == 0


def test_an_operand_changed_later() -> None:
    a = np.zeros(LARGE)
    b = a + 1
    a[0] = 5
    assert b[0] == 1.0
    assert a[0] == 5.0


def test_an_array_that_dies_is_not_computed() -> None:
    x = np.ones(LARGE)
    x += 1
    y = (x * 2) + 1
    del x
    gc.collect()
    assert [call.arguments[0].buffer.reachable for call in TRACER.calls] == [False] * 3 + [True]
    assert y[7] == 5.0


def test_both_kinds_of_arrays_are_instances() -> None:
    assert isinstance(np.zeros(3), np.ndarray)
    assert isinstance(numpy.zeros(3), np.ndarray)
    assert not isinstance(np.zeros(3), numpy.ndarray)
    assert not isinstance([1], np.ndarray)


def test_memory_that_is_handed_out_is_never_pending() -> None:
    x = np.zeros(LARGE)
    x += 1
    array = numpy.asarray(x)
    assert pending() == 0
    array[3] = 7
    y = x + 1  # runs at once, as somebody may change `x`
    assert pending() == 0
    array[3] = 9
    assert y[3] == 8.0
    del array
    z = x + 1
    assert pending() == 1
    assert z[3] == 10.0


def test_a_slice_of_what_was_handed_out_counts() -> None:
    x = np.zeros(LARGE)
    part = numpy.asarray(x)[10:20]
    x += 1
    assert pending() == 0
    assert part[0] == 1.0
    del part
    x += 1
    assert pending() == 1


def test_arrays_of_others_are_never_pending() -> None:
    theirs = numpy.zeros(LARGE)
    x = np.asarray(theirs)
    y = x + 1
    x += 2
    assert pending() == 0
    assert theirs[0] == 2.0
    theirs[0] = 5
    assert x[0] == 5.0
    assert y[0] == 1.0
    z = y * 2  # ours
    assert pending() == 1
    assert z[0] == 2.0


def test_numpys_functions_take_our_arrays() -> None:
    x = np.ones(LARGE)
    assert type(numpy.add(x, 1)) is np.ndarray
    assert type(numpy.ones(LARGE) + x) is np.ndarray
    assert type(numpy.float64(2) * x) is np.ndarray
    assert type(numpy.concatenate([x, x])) is np.ndarray
    theirs = numpy.zeros(LARGE)
    theirs += x
    assert type(theirs) is numpy.ndarray
    assert theirs[1] == 1.0


@pytest.mark.parametrize("n", [5, LARGE])
def test_one_operation_on_overlapping_memory(n: int) -> None:
    x = np.arange(float(n))
    x[1:] += x[:-1]
    expected = numpy.arange(float(n))
    expected[1:] += expected[:-1].copy()
    assert numpy.array_equal(x, expected)
    m = np.arange(n * 2.0).reshape(2, n)[:, :2]
    m += m.T
    assert m.tolist() == [[0.0, n + 1.0], [n + 1.0, 2 * n + 2.0]]


def test_views_share_memory_both_ways() -> None:
    view = pk.View([LARGE], pk.double)
    x = np.asarray(view)
    x += 1
    assert pending() == 1
    assert view[3] == 1.0
    view[4] = 9.0
    assert x[4] == 9.0
    back = pk.View([LARGE], pk.double, array=x)
    x *= 2
    assert back[4] == 18.0
    assert view[3] == 2.0


def test_workunits_and_arrays_share_a_trace() -> None:
    x = np.ones(LARGE)
    y = x + 1
    pk.parallel_for(LARGE, twice, x=y)
    z = y - 1
    assert pending() == 4  # `ones` is one
    assert z[2] == 3.0
    assert pyfuser.stats().launches > 0


def test_a_workunit_must_not_write_a_read_only_array() -> None:
    x = np.broadcast_to(np.ones(1), (LARGE,))
    with pytest.raises(pyfuser.ArgumentError, match="read-only"):
        pk.parallel_for(LARGE, twice, x=x)


def test_reads() -> None:
    x = np.full((2, LARGE), 3, dtype="i4")
    x += 1
    assert x[0, 0] == 4
    assert type(x[0, 0]) is numpy.int32
    assert type(x.sum()) is numpy.int64
    assert len(x) == 2
    assert [row.shape for row in x] == [(LARGE,)] * 2
    assert bool((x == 4).all())
    assert repr(x + 1) == repr(numpy.full((2, LARGE), 5, dtype="i4"))


def test_copies() -> None:
    x = np.arange(float(LARGE))
    x += 1
    for other in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), np.array(x)):
        assert type(other) is np.ndarray
        assert not np.shares_memory(x, other)
        assert numpy.array_equal(x, other)


def test_flags_and_bases() -> None:
    x = np.zeros((2, LARGE))
    y = (x + 1).T
    assert y.flags.f_contiguous
    assert not y.flags["C_CONTIGUOUS"]
    assert not y.flags.owndata
    assert y.base is not None
    y.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        y[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        y += 1


def test_errors_come_at_the_call() -> None:
    x = np.zeros(LARGE)
    x += 1
    with pytest.raises(ValueError, match="broadcast"):
        x + np.zeros(LARGE + 1)
    with pytest.raises(numpy._core._exceptions.UFuncTypeError):
        np.zeros(LARGE, dtype="i4").__iadd__(0.5)
    with pytest.raises(IndexError):
        x[LARGE]
    with pytest.raises(OverflowError):
        np.zeros(LARGE, dtype="u1") + 300
    with pytest.raises(AttributeError):
        x.no_such_method  # noqa: B018


def test_division_of_integers_by_zero_warns_at_once() -> None:
    x, zero = np.ones(LARGE, dtype="i8"), np.zeros(LARGE, dtype="i8")
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in floor_divide"):
        y = x // zero
    assert y[0] == 0
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in remainder"):
        x % 0


def test_floating_point_errors_warn_where_they_were_recorded() -> None:
    x = np.zeros(LARGE)
    y = 1 / x  # the line
    line = test_floating_point_errors_warn_where_they_were_recorded.__code__.co_firstlineno + 2
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in divide") as found:
        assert y[0] == numpy.inf
    assert (found[0].filename, found[0].lineno) == (__file__, line)
    with np.errstate(divide="ignore"):
        y = 1 / x * 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert y[0] == numpy.inf
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        1 / x


def test_a_loop_runs_trip_by_trip() -> None:
    x = np.ones(LARGE)
    most = 0
    for _ in range(40):
        x += 1
        x *= 0.5
        x -= 0.25
        most = max(most, pending())
    assert most <= 18
    expected = 1.0
    for _ in range(40):
        expected = (expected + 1) * 0.5 - 0.25
    assert x[0] == expected


def test_other_names_are_numpys() -> None:
    assert np.float32 is numpy.float32
    assert np.pi == numpy.pi
    assert np.newaxis is None
    with pytest.raises(AttributeError):
        np.no_such_name  # noqa: B018
    before = sum(np.fallbacks().values())
    x = np.apply_along_axis(numpy.sort, 0, np.ones(3))
    assert type(x) is np.ndarray
    assert sum(np.fallbacks().values()) == before + 1


def test_eager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switches.LIMITS, "eager", True)
    x = np.ones(LARGE) + 1
    assert pending() == 0
    assert x[0] == 2.0
    monkeypatch.undo()
    with pyfuser.unfused():
        x += 1
    assert pending() == 0
    assert x[0] == 3.0


def test_vectorize_and_generators_give_our_arrays() -> None:
    assert type(np.vectorize(lambda x: x * 2)(np.arange(3))) is np.ndarray
    assert type(np.random.default_rng(1).normal(size=3)) is np.ndarray
    assert type(np.fft.fft(np.ones(4))) is np.ndarray
    assert type(np.linalg.inv(np.eye(2))) is np.ndarray


def test_copies_of_parts_are_recorded() -> None:
    array = numpy.arange(2.0 * LARGE).reshape(2, LARGE)
    x = np.array(array)
    for name, args in (
        ("roll", (3,)), ("roll", (-1, 1)), ("concatenate", (1,)), ("stack", (1,)), ("diff", ()),
    ):  # fmt: skip
        given = ([x, x], *args) if name in ("concatenate", "stack") else (x, *args)
        theirs = ([array, array], *args) if name in ("concatenate", "stack") else (array, *args)
        found = getattr(np, name)(*given)
        assert pending() > 0
        assert numpy.array_equal(found, getattr(numpy, name)(*theirs))
