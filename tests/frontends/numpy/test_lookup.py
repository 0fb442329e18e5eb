"""Searches in tables: recorded, with NumPy's results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import pyfuser.numpy as np
from pyfuser.frontends.numpy import lookup
from pyfuser.runtime.session import TRACER
from pyfuser.trace import reason

NUMBERS = numpy.random.default_rng(11)
MANY = 1 << 16
X = NUMBERS.normal(size=MANY) * 2
SPECIALS = numpy.array([numpy.nan, numpy.inf, -numpy.inf, 0.0, -0.0, 1.0, 2.0, 3.0, 1e-300])
X[: len(SPECIALS)] = SPECIALS
TABLES = [
    numpy.linspace(-3, 3, size) if size > 1 else numpy.ones(1)
    for size in (1, 2, 3, 4, 7, 8, 63, 64)
]
REPEATED = numpy.array([-1.0, 0.0, 0.0, 0.0, 1.0, 2.0, 2.0])


@pytest.fixture(autouse=True)
def nothing_pending() -> Iterator[None]:
    TRACER.flush(reason.SYNC)
    yield
    TRACER.flush(reason.SYNC)


def calls() -> list[str]:
    return [call.workunit.name for call in TRACER.calls]


def same(function: Callable[..., Any], *arrays: Any, recorded: bool = True) -> None:
    """A function finds what it finds in NumPy's arrays."""
    expected = function(numpy, *arrays)
    found = function(np, *[np.array(array) for array in arrays])
    assert bool(TRACER.calls) == recorded
    assert found.dtype == expected.dtype and found.strides == expected.strides
    assert numpy.array_equal(numpy.asarray(found), expected, equal_nan=True)
    zeros = expected == 0
    if expected.dtype.kind == "c":
        return
    assert (numpy.signbit(numpy.asarray(found)) == numpy.signbit(expected))[zeros].all()


@pytest.mark.parametrize("table", [*TABLES, REPEATED], ids=len)
@pytest.mark.parametrize("side", ["left", "right"])
def test_places_in_a_table(table: Any, side: Any) -> None:
    same(lambda m, x, t: m.searchsorted(t, x, side), X, table)
    same(lambda m, x, t: t.searchsorted(x, side), X, table)
    same(lambda m, x, t: m.digitize(x, t, side == "left"), X, table)


@pytest.mark.parametrize("dtype", ["f4", "i4", "i8", "u1", "i1", "u8"])
@pytest.mark.parametrize("other", ["f8", "f4", "i8", "u8", "i1"])
def test_numbers_of_other_types(dtype: str, other: str) -> None:
    x = NUMBERS.integers(0, 100, MANY).astype(dtype)
    table = numpy.array([0, 1, 5, 50, 50, 99, 127], other)
    same(lambda m, x, t: m.searchsorted(t, x), x, table)
    same(lambda m, x, t: m.searchsorted(t, x, "right"), x, table)


def test_the_greatest_integers_are_no_padding() -> None:
    most = numpy.iinfo("i8").max
    x = NUMBERS.integers(most - 3, most, MANY, endpoint=True)
    same(lambda m, x, t: m.searchsorted(t, x, "right"), x, numpy.array([0, most - 1, most]))


@pytest.mark.parametrize("table", TABLES[1:], ids=len)
@pytest.mark.parametrize("ends", [{}, {"left": -1.0}, {"left": 5, "right": float("nan")}])
def test_values_between_those_of_a_table(table: Any, ends: dict[str, Any]) -> None:
    same(lambda m, x, t, v: m.interp(x, t, v, **ends), X, table, numpy.sin(table) * 7)
    same(lambda m, x, t, v: m.interp(x, t, v, **ends), X.astype("f4"), table, table.astype("i2"))


@pytest.mark.parametrize(
    "table",
    [
        numpy.array([0.0, 2.0, 1.0]),
        numpy.array([3.0, 2.0, 1.0]),
        numpy.array([0.0, 1.0, numpy.nan]),
        numpy.array([numpy.nan]),
        numpy.array([[0.0, 1.0]]),
        numpy.linspace(0.0, 1.0, MANY),
        numpy.array([0, 1], "f2"),
        numpy.array([0, 1], "c16"),
        numpy.array([0, 1], ">f8"),
        numpy.empty(0),
    ],
)
def test_tables_that_numpy_looks_through(table: Any) -> None:
    x = X if table.dtype.kind != "c" else numpy.nan_to_num(X)
    if table.ndim == 1:
        same(lambda m, x, t: m.searchsorted(t, x), x, table, recorded=False)
    else:
        with pytest.raises(ValueError):
            np.searchsorted(np.array(table), np.array(x))
    assert not TRACER.calls


@pytest.mark.parametrize(
    ("places", "values"),
    [
        (REPEATED, REPEATED),  # which of equal ones NumPy finds depends on where it was before
        (numpy.array([0.0, 1.0, 2.0]), numpy.array([0.0, numpy.inf, 1.0])),
        (numpy.array([0.0, 1.0, 2.0]), numpy.array([0.0, numpy.nan, 1.0])),
        (numpy.array([-1e308, 1e308]), numpy.array([0.0, 1.0])),
        (numpy.array([0.0, 1e-300]), numpy.array([0.0, 1e300])),
        (numpy.array([-numpy.inf, 0.0, 1.0]), numpy.array([0.0, 1.0, 2.0])),
        (numpy.ones(1), numpy.ones(1)),
        (numpy.array([0.0, 1.0]), numpy.array([0.0, 1j])),
    ],
)
def test_interpolation_that_is_numpys(places: Any, values: Any) -> None:
    with numpy.errstate(all="ignore"):
        same(lambda m, x, t, v: m.interp(x, t, v), X, places, values, recorded=False)


def test_other_arguments_are_numpys() -> None:
    x, table = np.array(X), np.array(TABLES[4])
    order = numpy.argsort(-TABLES[4])
    falling = np.array(-TABLES[4])
    assert (np.searchsorted(falling, x, sorter=np.array(order)) >= 0).all()
    assert np.interp(x, table, table, period=3.0).shape == x.shape
    assert (np.digitize(x, table[::-1]) <= 7).all()
    with pytest.raises(ValueError):
        np.searchsorted(table, x, "middle")  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        np.interp(x, table, table[1:])
    assert not TRACER.calls


class Claims(str):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


@pytest.mark.parametrize("side", [Claims("foo"), numpy.array(["left"]), numpy.array(["left"] * 2)])
def test_sides_that_are_none(side: Any) -> None:
    """What only seems to be one is refused as NumPy refuses it, at the call."""
    x, table = np.array(X), np.array(TABLES[4])
    for function in (
        lambda m, t, x: m.searchsorted(t, x, side),
        lambda m, t, x: t.searchsorted(x, side),
    ):
        with pytest.raises((TypeError, ValueError)) as expected:
            function(numpy, TABLES[4], X)
        with pytest.raises(type(expected.value)) as found:
            function(np, table, x)
        assert str(found.value) == str(expected.value)
    assert not TRACER.calls


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [((), {}), ((1.0, "left", None, 3), {}), ((1.0,), {"a": 2}), ((1.0, "left"), {"side": "left"})],
)
def test_arguments_that_the_method_does_not_take(args: Any, kwargs: Any) -> None:
    args = tuple(X if type(arg) is float else arg for arg in args)
    with pytest.raises(TypeError) as expected:
        TABLES[4].searchsorted(*args, **kwargs)
    with pytest.raises(TypeError) as found:
        np.array(TABLES[4]).searchsorted(*map(np.array, args[:1]), *args[1:], **kwargs)
    assert str(found.value) == str(expected.value)


def test_numbers_that_signal(recwarn: pytest.WarningsRecorder) -> None:
    x = np.array(numpy.full(MANY, 0x7F800001, "u4").view("f4"))
    found = np.searchsorted(np.array(TABLES[4]), x)
    assert (numpy.asarray(found) == len(TABLES[4])).all() and not recwarn


def test_a_table_that_changes_after() -> None:
    x, table, values = np.array(X), np.array(TABLES[4]), np.array(TABLES[4] ** 2)
    found, between = np.searchsorted(table, x), np.interp(x, table, values)
    table[:] = 0
    values += 1
    assert (numpy.asarray(found) == numpy.searchsorted(TABLES[4], X)).all()
    expected = numpy.interp(X, TABLES[4], TABLES[4] ** 2)
    assert numpy.array_equal(numpy.asarray(between), expected, equal_nan=True)


def test_tables_that_are_lists() -> None:
    x = np.array(X)
    table: list[float] = [-1, 0.5, 2]
    found = np.searchsorted(table, x), np.interp(x, table, (1, 5, 2.0)), np.digitize(x, table)
    assert calls() == ["searchsorted", "interp", "searchsorted"]
    expected = (
        numpy.searchsorted(table, X), numpy.interp(X, table, (1, 5, 2.0)), numpy.digitize(X, table),
    )  # fmt: skip
    for one, other in zip(found, expected, strict=True):
        assert numpy.array_equal(numpy.asarray(one), other, equal_nan=True)


@pytest.mark.parametrize("size", [10, 5000])
def test_tables_are_known_again_by_what_they_have(size: int) -> None:
    for shift in (0.0, 1.0, 0.0, 2.0):
        table = numpy.linspace(-3, 3, size) + shift
        same(lambda m, x, t: m.searchsorted(t, x), X, table)
        same(lambda m, x, t: m.interp(x, t, t * 2 + shift), X, table)  # noqa: B023
        same(lambda m, x, t: m.searchsorted(t, x), X.astype("f4"), table.astype("f4"))


def test_axes_and_order() -> None:
    for part in (lambda x: x.reshape(256, 256), lambda x: x.reshape(256, 256).T, lambda x: x[::-1]):
        same(lambda m, x, t: m.searchsorted(t, part(x)), X, TABLES[4])  # noqa: B023


def test_they_fuse_with_what_is_around_them() -> None:
    x = np.array(X) * 0.5
    found = np.interp(x, np.array(TABLES[5]), np.array(TABLES[5])) + 1.0
    assert calls() == ["multiply", "interp", "add"]
    expected = numpy.interp(X * 0.5, TABLES[5], TABLES[5]) + 1.0
    assert numpy.array_equal(numpy.asarray(found), expected, equal_nan=True)


def test_few_are_looked_for_by_numpy() -> None:
    same(
        lambda m, x, t: m.searchsorted(t, x),
        X[: MANY // lookup.SEARCH - 1],
        TABLES[5],
        recorded=False,
    )


def test_where_numpy_rounds_once_it_interpolates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "_rounds_products", lambda: False)
    same(lambda m, x, t, v: m.interp(x, t, v), X, TABLES[5], TABLES[5], recorded=False)
