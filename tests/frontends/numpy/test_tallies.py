"""Histograms with bins of one width: recorded, with NumPy's counts, sums, edges and errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import pyfuser.numpy as np
from pyfuser.frontends.numpy import tallies
from pyfuser.frontends.numpy.record import LOOP_CALLS
from pyfuser.runtime.session import TRACER
from pyfuser.trace import reason

NUMBERS = numpy.random.default_rng(12)
MANY = (1 << 16) + 1000  # more than one block
FLOATS = ["f8", "f4"]
INTEGERS = ["u1", "i1", "i2", "i4", "u4", "i8", "u8"]


Lazily = Callable[[str], None]


@pytest.fixture(autouse=True)
def nothing_pending() -> Iterator[None]:
    TRACER.flush(reason.SYNC)
    yield
    TRACER.flush(reason.SYNC)


@pytest.fixture(params=["numpy", "interpret"])
def many(request: pytest.FixtureRequest, lazily: Lazily) -> int:
    """How many elements the tier counts."""
    lazily(request.param)
    return MANY if request.param == "numpy" else 500


def numbers(dtype: str, shape: Any = MANY) -> Any:
    if dtype in FLOATS:
        return NUMBERS.normal(size=shape).astype(dtype)
    info = numpy.iinfo(dtype)
    return NUMBERS.integers(max(info.min, -(1 << 40)), min(info.max, 1 << 40), shape).astype(dtype)


def same(x: Any, *args: Any, recorded: bool = True, **kwargs: Any) -> None:
    expected = numpy.histogram(x, *args, **kwargs)
    given = {k: np.array(v) if k == "weights" else v for k, v in kwargs.items()}
    found = np.histogram(np.array(x), *args, **given)
    assert ("histogram" in calls() or "weights" in calls()) == recorded
    assert type(found) is tuple
    for ours, theirs in zip(found, expected, strict=True):
        assert type(ours) is np.ndarray
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        assert numpy.array_equal(numpy.asarray(ours), theirs), (x.dtype, args, kwargs)


def calls() -> list[str]:
    return [call.workunit.name for call in TRACER.calls]


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("bins", [1, 7, 100, 1000])
def test_counts_of_all_types(dtype: str, bins: int, many: int) -> None:
    same(numbers(dtype, many), bins if many == MANY else min(bins, 100))


@pytest.mark.parametrize("dtype", [*FLOATS, "u1", "i2", "i4", "u4"])
@pytest.mark.parametrize(
    "ends",
    [(-1, 1), (-0.3, 0.7), [0, 100], (0.1, 0.30000000000000004), (5, 5), (1, 1), (-300.5, 70),
     (numpy.float64(-0.5), numpy.float64(0.25)), (0, 2**40)],
)  # fmt: skip
def test_counts_between_two_ends(dtype: str, ends: Any, many: int) -> None:
    x = numbers(dtype, many)
    x[:100] = x.dtype.type(ends[0] if x.dtype.kind == "f" else 1)
    x[100:200] = x.dtype.type(ends[1] if x.dtype.kind == "f" else 100)
    for bins in (3, 64):
        try:
            numpy.histogram(x, bins, ends)
        except ValueError:
            with pytest.raises(ValueError, match="Too many bins"):
                np.histogram(np.array(x), bins, ends)
        else:
            same(x, bins, ends)


@pytest.mark.parametrize("dtype", FLOATS)
def test_what_is_no_number_is_outside(dtype: str, many: int) -> None:
    x = numbers(dtype, many)
    x[:3] = numpy.nan, numpy.inf, -numpy.inf
    same(x, 20, (-2.0, 2.0))
    with pytest.raises(ValueError, match="is not finite"):
        np.histogram(np.array(x), 20)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("bins", [10, 100])
def test_numbers_on_and_beside_the_edges(dtype: str, bins: int, many: int) -> None:
    """Where NumPy corrects what its formula gives."""
    for low, high in ((0.0, 1.0), (-3.3, 7.1), (1e6, 2e6)):
        edges = numpy.linspace(low, high, bins + 1).astype(dtype)
        x = numpy.tile(edges, -(-many // len(edges)))
        for moved in (
            x,
            numpy.nextafter(x, x.dtype.type(-1e9)),
            numpy.nextafter(x, x.dtype.type(1e9)),
        ):
            same(moved, bins)
            same(moved, bins, (low, high))


@pytest.mark.parametrize("own", ["f8", "f4", "i4", "u1"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_sums_of_weights_have_numpys_bits(own: str, dtype: str) -> None:
    x, weights = numbers(own), numbers(dtype)
    same(x, 50, weights=weights)
    same(x, 50, (-1, 90), weights=weights)
    same(x.reshape(8, -1), 50, weights=weights.reshape(8, -1))


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u1"])
@pytest.mark.parametrize("ends", [None, (-0.7, 60)])
def test_kernels(dtype: str, ends: Any, lazily: Lazily) -> None:
    lazily("compiled")
    x = numbers(dtype)
    same(x, 33, ends)
    for weights in FLOATS:
        same(x, 33, ends, weights=numbers(weights))


LAYOUTS: list[Callable[[Any], Any]] = [
    lambda x: x[::2],
    lambda x: x[::-1],
    lambda x: x.reshape(8, -1)[:, :-3],
    lambda x: x.reshape(8, -1)[1:],
    lambda x: x.reshape(-1, 4)[:, 1],
    lambda x: x.reshape(4, -1).T,
    lambda x: x.reshape(2, 2, -1)[:, :, ::3],
]


@pytest.mark.parametrize("part", LAYOUTS)
@pytest.mark.parametrize("tier", ["numpy", "compiled", "interpret"])
def test_parts_of_arrays(part: Callable[[Any], Any], tier: str, lazily: Lazily) -> None:
    lazily(tier)
    values, weights = numbers("f8", 640), numbers("f8", 640)
    other = numbers("f8", part(values).shape)
    for x, w in ((values, weights), (values, None), (None, weights)):
        given = np.array(other if x is None else x), np.array(other if w is None else w)
        found = np.histogram(
            given[0] if x is None else part(given[0]), 9,
            weights=given[1] if w is None else part(given[1]),
        )[0]  # fmt: skip
        plain = other if x is None else part(x), other if w is None else part(w)
        expected = numpy.histogram(plain[0], 9, weights=plain[1])[0]
        assert numpy.array_equal(numpy.asarray(found), expected)
    found = np.histogram(part(np.array(values)), 9)[0]
    assert numpy.array_equal(numpy.asarray(found), numpy.histogram(part(values), 9)[0])


@pytest.mark.parametrize("tier", ["numpy", "compiled"])
def test_elements_that_count_several_times(tier: str, lazily: Lazily) -> None:
    lazily(tier)
    x = numbers("f8", 500)
    for shape in ((3, 500), (2, 2, 500)):
        found = np.histogram(np.broadcast_to(np.array(x), shape), 7)[0]
        expected = numpy.histogram(numpy.broadcast_to(x, shape), 7)[0]
        assert numpy.array_equal(numpy.asarray(found), expected)


def test_ends_that_the_program_changes_later() -> None:
    x, ends = numbers("f8"), [-1.0, 1.0]
    found = np.histogram(np.array(x), 4, ends)[0]
    ends[1] = 3.0
    assert numpy.array_equal(numpy.asarray(found), numpy.histogram(x, 4, (-1.0, 1.0))[0])


def test_floating_point_errors_are_none_at_the_read() -> None:
    x = numbers("f8") * 1e-300
    found = np.histogram(np.array(x), 4, (0.0, 1e8))[0]
    with numpy.errstate(all="raise"):
        values = numpy.asarray(found)
    assert numpy.array_equal(values, numpy.histogram(x, 4, (0.0, 1e8))[0])


@pytest.mark.parametrize(("ends", "error"), [((0, 2**63), OverflowError), ((2**70, 0), ValueError)])
def test_ends_that_numpy_refuses(ends: Any, error: type[Exception]) -> None:
    x = numbers("f8")
    with pytest.raises(error):
        numpy.histogram(x, 4, ends)
    with pytest.raises(error):
        np.histogram(np.array(x), 4, ends)


def test_sums_of_weights_are_one_trace() -> None:
    """Also where so much is pending that a loop that begins again would end it."""
    x, weights = numbers("f8"), numbers("f8")
    y = np.array(x)
    for _ in range(LOOP_CALLS + 2):
        y = y + 1.0
    sums = np.histogram(y, 5, (-50.0, 50.0), weights=np.array(weights))[0]
    assert calls()[-2:] == ["weights", "blocks"]
    assert sums[0] is not None


def test_arrays_of_other_layouts() -> None:
    x = numbers("f8", (300, 400))
    found = np.histogram(np.array(x).T, 30)[0], np.histogram(np.array(x)[::2, 1:], 30)[0]
    assert calls()[-1] == "histogram"
    for ours, theirs in zip(found, (x.T, x[::2, 1:]), strict=True):
        assert numpy.array_equal(numpy.asarray(ours), numpy.histogram(theirs, 30)[0])


def test_what_is_pending_is_counted() -> None:
    x = numbers("f8")
    y = np.array(x) * 2.0 + 1.0
    found = np.histogram(y, 30, (-3.0, 3.0))[0]
    assert calls() == ["multiply", "add", "histogram"]
    assert numpy.array_equal(numpy.asarray(found), numpy.histogram(x * 2.0 + 1.0, 30, (-3, 3))[0])


def test_densities() -> None:
    x = numbers("f8")
    for ours, theirs in zip(
        np.histogram(np.array(x), 40, density=True),
        numpy.histogram(x, 40, density=True), strict=True,
    ):  # fmt: skip
        assert numpy.array_equal(numpy.asarray(ours), theirs)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        np.histogram(np.array(x), 4, (50.0, 60.0), density=True)
    assert [w.category for w in caught] == [RuntimeWarning]


def test_what_is_numpys() -> None:
    x = numbers("f8")
    same(x, numpy.linspace(-1, 1, 9), recorded=False)
    same(x, "sturges", recorded=False)
    same(x[:3], 2, recorded=False)
    same(x, tallies.MOST_BINS + 1, recorded=False)
    same(x, 10, weights=numpy.arange(MANY), recorded=False)
    same(x, 10, weights=x + 1j, recorded=False)
    same(numpy.full(MANY, 2**62) + numpy.arange(MANY), 3, recorded=False)
    same(x, 10, (1e-320, 2e-320), recorded=False)
    same(numbers("i8"), 10, (-5, 5), recorded=False)
    for bins, error in ((0, ValueError), (-1, ValueError), (2.5, TypeError)):
        with pytest.raises(error):
            np.histogram(np.array(x), bins)
    with pytest.raises(ValueError, match="same shape"):
        np.histogram(np.array(x), 5, weights=np.array(x[1:]))
    with pytest.raises(ValueError, match="max must be larger"):
        np.histogram(np.array(x), 5, (1, 0))


def test_the_edges_are_the_programs() -> None:
    x = numbers("f8")
    counts, edges = np.histogram(np.array(x), 10, (-1.0, 1.0))
    edges[:] = 0.0
    assert numpy.array_equal(numpy.asarray(counts), numpy.histogram(x, 10, (-1.0, 1.0))[0])
