"""Small arrays, with which NumPy computes at once: what the extension must not change."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import operator
import pickle
import sys
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import pyfuser.numpy as np
from pyfuser.frontends.numpy.compiled import Array
from pyfuser.frontends.numpy.switches import LIMITS
from pyfuser.runtime.session import TRACER
from pyfuser.support.extension import NUMPY
from pyfuser.support.settings import SETTINGS
from pyfuser.trace import reason

extension = pytest.mark.skipif(NUMPY is None, reason="needs the compiled extension")


def test_a_view_shares_memory_and_its_base() -> None:
    x = np.arange(12.0).reshape(3, 4)
    for part in (x[1], x[:, 1:], x.T, np.flip(x), x.reshape(-1), x[None]):
        part[(0,) * part.ndim] = -1.0
        assert np.shares_memory(x, part) and part.base is not None
        assert (x == -1.0).any()
        x[...] = 0.0


def test_what_is_pending_has_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "most", 10)
    x = np.arange(20.0)
    part = x[:5]
    x += 1.0
    assert TRACER.calls
    assert part[0] == 1.0 and not TRACER.calls  # an element is a read
    x += 1.0
    assert x[3] == 5.0 and x.item(3) == 5.0
    x += 1.0
    assert part @ part == 3.0**2 + 4.0**2 + 5.0**2 + 6.0**2 + 7.0**2
    x += 1.0
    part[1] = 0.0
    assert x[1] == 0.0
    x *= 2.0
    assert part.sum() == 2.0 * (4.0 + 0.0 + 6.0 + 7.0 + 8.0)


@extension
def test_lists_of_numbers_and_named_arrays_are_given_to_numpy() -> None:
    x, places = np.arange(6.0), np.array([0, 1, 1, 3, 0, 1])
    before = np.fallbacks()
    assert np.bincount(places, weights=x, minlength=5).tolist() == [4.0, 8.0, 0.0, 3.0, 0.0]
    assert np.percentile(x, [0, 100]).tolist() == [0.0, 5.0]
    assert np.array([[1, 2.5], (3, x[4])]).tolist() == [[1.0, 2.5], [3.0, 4.0]]
    assert np.append([7.0], x, axis=0).tolist() == [7.0, *range(6)]
    assert x.sum(where=x > 3.0, initial=1.0) == 10.0
    assert np.fallbacks() == before
    assert len(x) == 6 and len(x.reshape(2, 3)) == 2
    for wrong in (lambda: len(x[0:1].sum(keepdims=False)), lambda: len(np.array(1.0)), np.array):
        with pytest.raises(TypeError):
            wrong()


def test_arrays_that_a_result_refers_to_are_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "most", 3)
    whole = np.array([1.0] * 8)
    x, other = whole[:2], whole[5:6]
    kept = np.array([x, other], dtype=object)
    whole += 1.0
    assert kept[0].tolist() == [2.0, 2.0] and np.array(x, copy=False).tolist() == [2.0, 2.0]
    with pytest.raises(ValueError, match="inhomogeneous"):
        np.array([x, other])


def test_an_array_for_the_result_is_given_back() -> None:
    x, y, out = np.arange(4.0), np.ones(4), np.zeros(4)
    assert np.add(x, y, out) is out and np.add(x, y, out=out) is out
    assert np.multiply(x, x, x) is x  # once
    assert x.tolist() == [0.0, 1.0, 4.0, 9.0] and out.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert np.dot(x, y, np.zeros(())) == 14.0
    with pytest.raises(TypeError):
        np.add(x, y, numpy.zeros(4), out=out)


def test_read_only_arrays_are_not_written() -> None:
    x = np.arange(4.0)
    x.setflags(write=False)
    for act in (
        lambda: operator.iadd(x, 1.0), lambda: operator.setitem(x, 0, 1.0),
        lambda: np.add(x, 1.0, out=x), lambda: operator.setitem(x[1:], 0, 1.0),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="read-only"):
            act()
    assert not x[1:].flags.writeable and not np.flip(x).flags.writeable


@pytest.mark.parametrize("scalar", [2.0, 3, True, numpy.float32(2), numpy.int8(3), 1j])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "pow", "lt", "eq"])
def test_numbers_on_either_side(name: str, scalar: Any) -> None:
    function: Callable[[Any, Any], Any] = getattr(operator, name)
    array = numpy.arange(5, dtype="f4") + 1
    ours = np.array(array)
    for left in (True, False):
        expected, error = _tried(function, *((array, scalar) if left else (scalar, array)))
        found, other = _tried(function, *((ours, scalar) if left else (scalar, ours)))
        assert type(error) is type(other)
        if error is None:
            assert type(found) is np.ndarray and found.dtype == expected.dtype
            assert (numpy.asarray(found) == expected).all()


def _tried(function: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    try:
        return function(x, y), None
    except Exception as error:
        return None, error


def test_what_nobody_knows_is_decided_in_python() -> None:
    class Other:
        __array_ufunc__ = None

        def __radd__(self, x: Any) -> str:
            return "added"

    x = np.arange(3.0)
    assert x + Other() == "added"
    assert (x == None).tolist() == [False] * 3  # noqa: E711
    assert (x == "a").tolist() == [False] * 3
    with pytest.raises(TypeError):
        x + None
    with pytest.raises(TypeError):
        x @ "a"


def test_functions_are_numpys() -> None:
    x = np.arange(6.0).reshape(2, 3)
    assert np.sin.nin == 1 and isinstance(np.sin, np.ufunc) and "sin" in repr(np.sin)
    assert pickle.loads(pickle.dumps(np.add)) is np.add
    assert np.add.reduce(x).tolist() == [3.0, 5.0, 7.0]
    assert np.add.outer(x[0], x[0]).shape == (3, 3)
    assert np.sum.__doc__ == numpy.sum.__doc__ and np.dot.__name__ == "dot"
    assert type(np.concatenate([x, x])) is np.ndarray and np.sum(3.0) == 3.0
    assert type(np.mgrid[0:2, 0:3]) is np.ndarray and np.r_[x[0], 1.0].tolist() == [0, 1, 2, 1]
    assert np.sum(x, 0, None, np.zeros(3)).tolist() == [3.0, 5.0, 7.0]


@pytest.mark.skipif(not SETTINGS.extension, reason="the extension is not allowed")
@pytest.mark.skipif(importlib.util.find_spec("pyfuser._numpy") is None, reason="not built")
def test_the_extension_fits() -> None:
    assert NUMPY is not None


@extension
def test_the_extension_computes() -> None:
    """Without a line of Python: its methods are none of the class in Python."""
    assert np.ndarray.__add__ is not Array.__add__
    x = np.arange(3.0)
    np.sin(x)  # the first time that it is asked for, Python makes it
    seen = []
    sys.setprofile(lambda frame, event, argument: seen.append(event))
    try:
        x + x, x[0], x[1:], x.shape, x * 2.0, -x, x < 1.0, np.sin(x), x.sum()
    finally:
        sys.setprofile(None)
    called = [event for event in seen if event == "call"]
    assert len(called) <= 1  # NumPy's own, of `sum`


@extension
def test_nothing_leaks() -> None:
    x, y = np.arange(6.0).reshape(2, 3), np.ones((2, 3))
    mask, places = x > 2.0, np.array([1, 0])

    def act() -> None:
        z = x + y * 2.0
        z[0] = x[1]
        z[mask] = 1.0
        z += 1.0
        z[:, 1:] = z[:, :-1]
        z[places], z[mask], z.sum(axis=0), np.dot(z, y.T), np.add(z, y, out=z), numpy.float64(2) * z
        for wrong in (lambda: z + y[:, :2], lambda: z[5], lambda: np.dot(z, z), lambda: z["a"]):
            with contextlib.suppress(ValueError, IndexError):
                wrong()

    for _ in range(50):
        act()
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.take_snapshot()
    for _ in range(200):
        act()
    gc.collect()
    after = tracemalloc.take_snapshot()
    tracemalloc.stop()
    more = sum(entry.size_diff for entry in after.compare_to(before, "filename"))
    assert more < 20_000
    TRACER.flush(reason.SYNC)


def test_arrays_in_lists_and_tuples() -> None:
    x = np.arange(5.0)
    pair = np.array([x, x + 1.0])
    assert type(pair) is np.ndarray and pair.tolist() == [[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]]
    pair[0, 0] = 7.0
    assert x[0] == 0.0
    objects = np.array([x, None, 3], dtype=object)
    assert type(objects[0]) is np.ndarray and objects[0].tolist() == x.tolist()
    with pytest.raises(ValueError, match="inhomogeneous"):
        np.array([x, x[1:]])
    parts = np.gradient(np.ones((3, 4)))
    assert type(parts) is tuple and [type(part) for part in parts] == [np.ndarray] * 2
    places = np.nonzero(x)
    assert type(places) is tuple and places[0].tolist() == [1, 2, 3, 4]


def test_at_stores_where_it_is_told_to() -> None:
    x, places = np.zeros(4), np.array([1, 1, 3])
    np.add.at(x, places, 2.0)
    np.subtract.at(x, places, np.array([0.5, 0.5, 1.0]))
    np.negative.at(x, [3])
    assert x.tolist() == [0.0, 3.0, 0.0, -1.0]
    part = x[1:]
    np.add.at(part, [0], 1.0)
    assert x[1] == 4.0
    with pytest.raises(IndexError):
        np.add.at(x, [4], 1.0)
    table = np.zeros((3, 3))
    np.add.at(table, (np.array([0, 1, 1]), np.array([2, 0, 0])), 1.0)  # pairs of indices
    assert table.tolist() == [[0, 0, 1], [2, 0, 0], [0, 0, 0]]
    np.add.at(table, ([0, 1], [2, 0]), 1.0)
    np.add.at(table, (slice(None), np.array([1])), 5.0)
    np.add.at(table, (2, 2), 7.0)
    assert table.tolist() == [[0, 5, 2], [3, 5, 0], [0, 5, 7]]
    np.add.at(table, [0, 2], -1.0)  # rows
    np.add.at(table, [np.array([1, 1])], 1.0)
    assert table.tolist() == [[-1, 4, 1], [5, 7, 2], [-1, 4, 6]]
    large = np.zeros(1 << 16)
    large += 1.0
    np.add.at(large, places, 1.0)
    assert (large[1], large[3], large[0]) == (3.0, 2.0, 1.0)


def test_pairs_are_counted_before_an_outer_product_runs_at_once() -> None:
    few, many = np.arange(3.0), np.arange(300.0)
    assert np.add.outer(few, few).tolist() == [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
    before = TRACER.recorded
    table = np.multiply.outer(many, many)
    assert TRACER.recorded == before + 1
    assert (table[2, 3], table.shape) == (6.0, (300, 300))
    assert np.multiply.outer(many, 2.0).tolist() == (many * 2.0).tolist()


def test_arrays_that_were_broadcast_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one, other = np.broadcast_arrays(np.arange(2)[:, None], np.arange(3))
        assert one.tolist() == [[0, 0, 0], [1, 1, 1]] and other.shape == (2, 3)


def test_fields_of_records_are_views() -> None:
    x = np.zeros(4, dtype=[("place", "i4"), ("mass", "f8"), ("at", "f4", 3)])
    mass, at = x["mass"], x["at"]
    mass[1] = 2.5
    at[2] = [1.0, 2.0, 3.0]
    assert x[1]["mass"] == 2.5 and x["at"][2].tolist() == [1.0, 2.0, 3.0]
    assert type(mass) is np.ndarray and mass.base is x and np.shares_memory(x, mass)
    assert (mass.dtype, mass.strides, at.shape) == (np.float64, (24,), (4, 3))
    assert x[1:]["mass"].tolist() == [2.5, 0.0, 0.0] and (mass * 2.0)[1] == 5.0
    assert x[["mass", "place"]].dtype.names == ("mass", "place")
    assert x[:0]["mass"].shape == (0,)
    with pytest.raises(ValueError, match="no field of name charge"):
        x["charge"]
    with pytest.raises(IndexError):
        np.zeros(3)["mass"]
    x.flags.writeable = False
    assert not x["mass"].flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        x["mass"][0] = 1.0


def test_elements_as_of_another_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "most", 10)
    x = np.arange(20.0)
    words = x.view(np.uint64)
    assert words.base is x and words.dtype == np.uint64
    words[0] = np.array(1.5).view(np.uint64)
    assert x[0] == 1.5
    x += 1.0
    assert TRACER.calls
    assert x.view(np.int64)[3] == numpy.float64(4.0).view(numpy.int64)  # after what was pending
    words += words - words
    x *= 2.0
    assert words[1] == numpy.float64(4.0).view(numpy.uint64)
    assert x.view("u1").shape == (160,) and x[::2].view(np.int64).strides == (16,)
    assert x.view(np.complex128).shape == (10,) and x.view().base is x
    assert type(x.view(np.ndarray)) is np.ndarray
    with pytest.raises(ValueError, match="last axis must be contiguous"):
        x[::2].view(np.int32)
    with pytest.raises(ValueError, match="smaller dtype"):
        x.view([])
    x.flags.writeable = False
    assert not x.view(np.int64).flags.writeable


def test_what_is_stored_while_an_array_is_gone_through_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LIMITS, "most", 10)
    x = np.arange(20.0)
    seen = []
    for n, value in enumerate(x):
        seen.append(float(value))
        if n == 4:
            x += 100.0
            assert TRACER.calls
    assert seen[4:7] == [4.0, 105.0, 106.0] and len(seen) == 20
    table = np.zeros((3, 4))
    for row in table:
        assert type(row) is np.ndarray and row.base is table
        row += 1.0
    assert table.sum() == 12.0
    left = iter(x)
    next(left)
    assert operator.length_hint(left) == (0 if NUMPY is None else 19) and len(list(left)) == 19
    assert list(left) == [] and next(left, None) is None
    with pytest.raises(TypeError, match="0-d array"):
        iter(np.array(1.0))
    things = np.array([None, "a"], dtype=object)
    assert [*things] == [None, "a"] and [*np.zeros(0)] == []


def test_lists_of_numbers_among_arrays() -> None:
    x = np.arange(3)
    before = np.fallbacks()
    assert np.concatenate(([7], x, (8, 9))).tolist() == [7, 0, 1, 2, 8, 9]
    assert np.concatenate(([[1, 2, 3]], x[None])).tolist() == [[1, 2, 3], [0, 1, 2]]
    assert np.repeat(x, np.array([2, 0, 1])).tolist() == [0, 0, 2]
    assert np.outer(x, x).tolist() == [[0, 0, 0], [0, 1, 2], [0, 2, 4]]
    if NUMPY is not None:
        assert np.fallbacks() == before
    with pytest.raises(ValueError, match="same number of dimensions"):
        np.concatenate(([[1]], x))


def test_clip_into_an_array(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.array([-1.0, 0.5, 2.0])
    assert np.clip(x, 0, 1, out=x) is x and x.tolist() == [0.0, 0.5, 1.0]
    other = np.zeros(3)
    assert np.clip(x, 0.25, None, out=other) is other and other.tolist() == [0.25, 0.5, 1.0]
    monkeypatch.setattr(LIMITS, "most", 2)
    x += 3.0
    np.clip(x, 0, 3.25, out=x)
    assert x.tolist() == [3.0, 3.25, 3.25]
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        np.clip(x, 0, 1, out=x)


def test_ufuncs_of_two_results_and_their_methods() -> None:
    x = np.arange(5)
    days, hours = np.divmod(x, 2)
    assert days.tolist() == [0, 0, 1, 1, 2] and hours.tolist() == [0, 1, 0, 1, 0]
    out = np.zeros(5), np.zeros(5)
    assert np.modf(x / 2.0, out=out)[0] is out[0] and out[0].tolist() == [0.0, 0.5, 0.0, 0.5, 0.0]
    assert np.frexp(8.0) == (0.5, 4)
    whole = np.zeros(5, dtype=int)
    found = np.divmod(x, np.array([2]), whole)
    assert found[0] is whole and whole.tolist() == [0, 0, 1, 1, 2] and found[1][3] == 1
    assert np.divmod.nout == 2 and np.divmod == numpy.divmod
    assert np.add.reduce is np.add.reduce or NUMPY is None
    assert np.bitwise_xor.reduce(x) == 4 and np.maximum.accumulate(x)[3] == 3
    with pytest.raises(AttributeError):
        _ = np.add.nothing


def test_sorting_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.array([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]])
    row = x[1]
    assert x.sort(axis=1) is None and x.tolist() == [[1, 2, 3], [0, 4, 5]]
    row[0] = 9.0
    row.sort()
    assert x[1].tolist() == [4.0, 5.0, 9.0]
    x.partition(1, axis=0)
    monkeypatch.setattr(LIMITS, "most", 2)
    x *= -1.0
    x.sort()
    assert x.tolist() == [[-3, -2, -1], [-9, -5, -4]]
    with pytest.raises(ValueError, match="order"):
        x.sort(order="mass")
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        x.sort()
