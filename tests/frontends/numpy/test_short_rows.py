"""Reductions of few elements each: NumPy's bits, from operations on whole arrays."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy
import pytest

import pyfuser.numpy as np
from pyfuser.frontends.numpy import short_rows, switches
from pyfuser.runtime.session import TRACER
from pyfuser.trace import reason

NUMBERS = numpy.random.default_rng(7)
ROWS = 1200
REDUCTIONS = ("sum", "mean", "prod", "max", "min", "any", "all")


@pytest.fixture(autouse=True)
def nothing_pending() -> Iterator[None]:
    TRACER.flush(reason.SYNC)
    yield
    TRACER.flush(reason.SYNC)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The reductions that were computed side by side."""
    names: list[str] = []
    plain = short_rows._reduced

    def noted(x: Any, name: str, *more: Any) -> Any:
        names.append(name)
        return plain(x, name, *more)

    monkeypatch.setattr(short_rows, "_reduced", noted)
    return names


def same(function: Callable[[Any], Any], array: Any) -> None:
    expected, found = function(array), function(np.array(array))
    assert type(found) is (np.ndarray if isinstance(expected, numpy.ndarray) else type(expected))
    found = numpy.asarray(found)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    nans = numpy.isnan(expected) if expected.dtype.kind == "f" else numpy.False_
    assert (numpy.where(nans, 0, found) == numpy.where(nans, 0, expected)).all()
    if expected.dtype.kind == "f":
        assert (numpy.isnan(found) == nans).all()
        assert (numpy.signbit(found) == numpy.signbit(expected))[~nans].all()


def longest(name: str) -> int:
    """How long rows may be that are computed side by side: NumPy's vectors are the processor's."""
    if name not in ("max", "min"):
        return short_rows.LONGEST
    ufunc = numpy.maximum if name == "max" else numpy.minimum
    return short_rows._later_of_equal(ufunc, numpy.dtype(float))


def windows(x: Any, *shape: int) -> Any:
    module = numpy if type(x) is numpy.ndarray else np
    return module.lib.stride_tricks.sliding_window_view(x, shape)


def repeated(x: Any, count: int) -> Any:
    """Rows of one element that is there `count` times."""
    module = numpy if type(x) is numpy.ndarray else np
    return module.broadcast_to(x[:, None], (*x.shape, count))


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i2", "u1", "u8", "?"])
@pytest.mark.parametrize("count", [2, 3, 7])
def test_vectors_of_some_elements(name: str, dtype: str, count: int, taken: list[str]) -> None:
    values = (NUMBERS.normal(size=(ROWS, count)) * 50).astype(dtype)
    same(lambda x: getattr(x, name)(axis=1), values)
    same(lambda x: getattr(x, name)(axis=-1, keepdims=True), values)
    floats = values.dtype.kind == "f"
    others = name in ("any", "all") if floats else name == "mean"
    if dtype == "f8" and count > longest(name):
        others = True
    assert len(taken) == (0 if others else 2)


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_zeros_of_either_sign_and_no_numbers(name: str, dtype: str, taken: list[str]) -> None:
    specials = numpy.array([0.0, -0.0, numpy.nan, 1.0], dtype)
    for count in (2, 3, 5):
        rows = specials[numpy.array(list(product(range(4), repeat=count)))]
        rows = numpy.concatenate([rows] * (1 + 2 * ROWS // len(rows)))
        same(lambda x: getattr(x, name)(axis=1), rows)
    assert bool(taken) == (name not in ("any", "all"))


@pytest.mark.parametrize("name", ["sum", "mean", "max", "any"])
def test_blocks_and_windows(name: str, taken: list[str]) -> None:
    picture = NUMBERS.normal(size=(60, 60))
    picture = picture > 0 if name == "any" else picture
    same(lambda x: getattr(x.reshape(30, 2, 30, 2), name)(axis=(1, 3)), picture)
    same(lambda x: getattr(windows(x, 3, 3), name)(axis=(2, 3)), picture)
    same(lambda x: getattr(windows(x, 5), name)(axis=-1), picture[0].repeat(50))
    same(lambda x: getattr(x.reshape(2, 900, 2).T.T, name)(axis=2), picture)
    assert len(taken) == 3 + (longest(name) >= 5)


@pytest.mark.parametrize(
    "part",
    [
        lambda x: x.reshape(-1, 8).sum(axis=1),  # eight: pairwise
        lambda x: x.reshape(4, 900).T.sum(axis=1),  # the rows do not lie along the axis
        lambda x: x.reshape(-1, 4)[:, ::-1].sum(axis=1),
        lambda x: windows(x, 2, 3).sum(axis=(1, 3)),  # both axes lie one element apart
        lambda x: x.reshape(600, 2, 3)[:, :, :2].sum(axis=(1, 2)),  # and with a gap
        lambda x: windows(x, 12, 6).sum(axis=(2, 3)),  # too many for each result
        lambda x: x.reshape(900, 4).sum(axis=(0, 1)),
        lambda x: x.reshape(900, 4).sum(axis=1, dtype="f4"),
        lambda x: x.reshape(900, 4).sum(1, "f4"),
        lambda x: repeated(x.reshape(-1), 3).sum(axis=1),
        lambda x: x.reshape(900, 4).sum(axis=1, initial=3.0),
        lambda x: x.reshape(-1, 4)[:30].sum(axis=1),  # NumPy is done sooner
        lambda x: x.reshape(900, 4)[:, :0].sum(axis=1),
        lambda x: x.reshape(900, 4).std(axis=1, dtype="f8"),
        lambda x: x.reshape(900, 4).astype("i4").var(axis=1),
        lambda x: x.reshape(900, 4).var(axis=1, ddof=0.5),
        lambda x: x.reshape(900, 4).var(axis=1, ddof=-(2**62)),
        lambda x: x.astype("f2").reshape(900, 4).sum(axis=1),
        lambda x: x.astype(">f8").reshape(900, 4).sum(axis=1),
    ],
)
def test_what_numpy_computes(part: Callable[[Any], Any], taken: list[str]) -> None:
    same(part, NUMBERS.normal(size=(60, 60)))
    assert not taken


def test_how_long_rows_may_be_is_tried_out() -> None:
    for ufunc, dtype in product((numpy.maximum, numpy.minimum), ("f4", "f8")):
        assert 1 <= short_rows._later_of_equal(ufunc, numpy.dtype(dtype)) <= short_rows.LONGEST


def test_of_equal_ones_the_first(monkeypatch: pytest.MonkeyPatch, taken: list[str]) -> None:
    """Where NumPy took the first of 0.0 and -0.0, the greatest would be NumPy's to find."""
    monkeypatch.setattr(short_rows, "_later_of_equal", lambda ufunc, dtype: 1)
    same(lambda x: x.max(axis=1), NUMBERS.normal(size=(ROWS, 3)))
    assert not taken


def test_one_element_is_no_row() -> None:
    assert short_rows._rows_of((1, 1), (8, 8), (1,), False, 7) is None


def test_warnings_are_numpys() -> None:
    large = numpy.full((ROWS, 3), 1e308)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        np.array(large).sum(axis=1)
    (warning,) = caught
    assert str(warning.message) == "overflow encountered in reduce"
    with numpy.errstate(over="raise"), pytest.raises(FloatingPointError, match="in reduce"):
        np.array(large).sum(axis=1)
    with numpy.errstate(under="raise"), pytest.raises(FloatingPointError):
        np.array(numpy.full((ROWS, 3), 1e-200)).prod(axis=1)


def test_recorded_they_fuse(taken: list[str]) -> None:
    points = NUMBERS.normal(size=(switches.LAZY_FROM, 3))
    x = np.array(points)
    apart = x - 0.5
    found = (apart * apart).sum(axis=1) + 1.0
    assert len(TRACER.calls) >= 5 and taken == ["sum"]
    assert (numpy.asarray(found) == ((points - 0.5) ** 2).sum(axis=1) + 1.0).all()


def test_recorded_warnings_are_numpys() -> None:
    x = np.array(numpy.full((switches.LAZY_FROM, 3), 1e308))
    found = (x * 1.5).sum(axis=1)
    assert TRACER.calls
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found[0]
    assert {str(warning.message) for warning in caught} == {"overflow encountered in reduce"}


def test_memory_that_is_not_aligned(taken: list[str]) -> None:
    raw = numpy.zeros(ROWS * 24 + 1, "u1")[1:].view("f8").reshape(ROWS, 3)
    raw[:] = NUMBERS.normal(size=(ROWS, 3))
    x = np.asarray(raw)
    assert (numpy.asarray(x.sum(axis=1)) == raw.sum(axis=1)).all() and not taken


@pytest.mark.parametrize(
    "given",
    [
        {"axis": 1}, {"axis": 0}, {"axis": -1, "keepdims": True}, {"axis": 1, "ord": 2},
        {"axis": 1, "ord": 1}, {"axis": (0, 1)}, {}, {"axis": 5}, {"ord": "fro"},
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "c16"])
def test_lengths_of_vectors(given: dict[str, Any], dtype: str) -> None:
    vectors = (NUMBERS.normal(size=(ROWS, 3)) * 9).astype(dtype)
    try:
        expected = numpy.linalg.norm(vectors, **given)
    except ValueError as error:
        with pytest.raises(type(error), match="axis 5 is out of bounds"):
            np.linalg.norm(np.array(vectors), **given)
        return
    found = np.linalg.norm(np.array(vectors), **given)
    assert numpy.asarray(found).tobytes() == expected.tobytes()
    assert found.dtype == expected.dtype and found.shape == expected.shape


def test_lengths_of_vectors_are_recorded() -> None:
    vectors = NUMBERS.normal(size=(switches.LAZY_FROM, 3))
    found = np.linalg.norm(np.array(vectors) * 2.0, axis=1)
    assert len(TRACER.calls) >= 5
    assert (numpy.asarray(found) == numpy.linalg.norm(vectors * 2.0, axis=1)).all()


def test_results_have_their_own_memory() -> None:
    for keepdims in (False, True):
        found = np.array(NUMBERS.normal(size=(ROWS, 3))).sum(axis=1, keepdims=keepdims)
        assert found.base is None and found.flags.owndata


@pytest.mark.parametrize("axis", [True, (True,), (0, False), 1.0, "0"])
def test_axes_that_are_none(axis: Any) -> None:
    for size in (ROWS, switches.LAZY_FROM):
        x = np.array(NUMBERS.normal(size=(size, 3))) * 2.0
        with pytest.raises(TypeError):
            x.sum(axis=axis)


def test_warnings_of_lengths_come_from_numpy() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        np.linalg.norm(np.full((ROWS, 3), 1e308), axis=1)
    assert caught[0].filename.endswith("_linalg.py")
    assert np.linalg.norm.__doc__ == numpy.linalg.norm.__doc__
    assert inspect.signature(np.linalg.norm) == inspect.signature(numpy.linalg.norm)
    assert list(inspect.signature(np.ndarray.__array_ufunc__).parameters)[:2] == ["self", "ufunc"]


@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_spreads(name: str, dtype: str, taken: list[str]) -> None:
    picture = (NUMBERS.normal(size=(60, 60)) * 9 + 5).astype(dtype)
    for more in ({}, {"ddof": 1}, {"keepdims": True}, {"ddof": 2, "keepdims": True}):
        same(lambda x: getattr(x.reshape(-1, 4), name)(axis=1, **more), picture)  # noqa: B023
        same(lambda x: getattr(windows(x, 3, 3), name)(axis=(2, 3), **more), picture)  # noqa: B023
    assert taken == ["mean", "sum"] * 8
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(lambda x: getattr(x.reshape(-1, 4), name)(axis=1, ddof=4), picture)
        picture[3, 3] = numpy.inf
        same(lambda x: getattr(x.reshape(-1, 4), name)(axis=1), picture)


def test_spreads_are_recorded(taken: list[str]) -> None:
    values = NUMBERS.normal(size=(switches.LAZY_FROM, 3))
    found = (np.array(values) * 2.0).std(axis=1) + 1.0
    assert taken == ["mean", "sum"] and len(TRACER.calls) > 8
    assert (numpy.asarray(found) == (values * 2.0).std(axis=1) + 1.0).all()


def test_warnings_of_spreads_come_from_numpy() -> None:
    for values in (numpy.array([1e200, -1e200, 0.0]), numpy.array([numpy.inf, 0.0, 0.0])):
        rows = numpy.tile(values, (ROWS, 1))
        told = []
        for x in (rows, np.array(rows)):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                x.var(axis=1)
            told.append([(str(w.message), w.filename.endswith("_methods.py")) for w in caught])
        assert told[0] == told[1] and told[0]


def test_warnings_of_masked_spreads_name_the_program() -> None:
    x = np.array(NUMBERS.normal(size=(ROWS, 3)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x.var(axis=1, where=np.array([True, False, False]), ddof=1)
    assert {w.filename for w in caught if "Degrees" in str(w.message)} == {__file__}
