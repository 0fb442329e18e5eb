"""Methods and functions that copy, join, cut and reshape: what of them is recorded, and how."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import pyfuser.numpy as np
from pyfuser.frontends.numpy.memory import is_external
from pyfuser.runtime.session import TRACER
from pyfuser.support.extension import NUMPY
from tests.frontends.numpy.test_known import by_python

compiled = pytest.mark.skipif(NUMPY is None, reason="needs the compiled extension")


@pytest.fixture(autouse=True)
def nothing_pending() -> Iterator[None]:
    if NUMPY is not None:
        NUMPY.forget_plans()
    yield
    TRACER.discard()


def pending(*shape: int, dtype: Any = float) -> Any:
    """An array whose elements are 1, 2, ..., as far as they fit, and have not been computed."""
    values = np.arange(numpy.prod(shape), dtype=dtype).reshape(shape)
    x = values + dtype(1)
    assert TRACER.calls
    return x


def plain(*shape: int, dtype: Any = float) -> Any:
    return numpy.arange(numpy.prod(shape), dtype=dtype).reshape(shape) + dtype(1)


@compiled
def test_no_line_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = by_python(monkeypatch)
    x = np.array(numpy.random.default_rng(0).normal(size=(300, 300)))
    values = numpy.arange(90_000).reshape(300, 300)
    bytes_ = (np.array(values).clip(0, 250) + 5).astype(np.uint8)
    bits = (bytes_ & 15) | (bytes_ >> np.uint8(4))
    y = x.copy() + bits.astype("float32")
    z = np.concatenate([y[1:], y[:1]]) + np.stack((y, x), axis=1)[:, 0] + y.reshape(-1, 300).T.T
    z[:, 10] = z[:, 11] * 2
    parts = np.split(z, 3, axis=1)
    result = np.clip(parts[0] + parts[2], -1.0, 1.0)
    assert asked == [] and len(TRACER.calls) > 15
    x_, asked[:] = numpy.asarray(x), []
    bytes_ = (values.clip(0, 250) + 5).astype(np.uint8)
    y_ = x_.copy() + ((bytes_ & 15) | (bytes_ >> 4)).astype("float32")
    z_ = numpy.concatenate([y_[1:], y_[:1]]) + y_ + y_
    z_[:, 10] = z_[:, 11] * 2
    expected = numpy.clip(z_[:, :100] + z_[:, 200:], -1.0, 1.0)
    assert numpy.array_equal(numpy.asarray(result), expected)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_copy_has_the_order_that_it_is_asked_for(order: Any) -> None:
    x, expected = pending(300, 400).T, plain(300, 400).T.copy(order)
    copy = x.copy() if order == "C" else x.copy(order)
    assert copy.strides == expected.strides
    assert numpy.array_equal(numpy.asarray(copy), expected)
    assert x.astype(np.float32).strides == (4, 1600)  # "K"


def test_bounds_that_are_no_numbers() -> None:
    x, expected = pending(300, 300), plain(300, 300)
    for low, high in ((float("nan"), 5.0), (2, numpy.float32("nan")), (expected * 0.5, 7)):
        ours = np.clip(x, np.array(low) if isinstance(low, numpy.ndarray) else low, high)
        assert numpy.array_equal(numpy.asarray(ours), numpy.clip(expected, low, high), True)


def test_numbers_that_an_operation_does_not_take() -> None:
    x = pending(300, 300, dtype=np.int32)
    with pytest.raises(OverflowError):
        x + 2**40
    recorded = TRACER.recorded
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        assert (x // 0)[0, 0] == 0  # NumPy's, at once: where kernels divide, 0 is refused
    assert TRACER.recorded == recorded
    assert (x // -1)[0, 1] == -2
    assert (x // 2)[0, 1] == 1


def test_other_axes_of_what_has_no_memory_yet() -> None:
    x, expected = pending(256, 512), plain(256, 512)
    assert np.shares_memory(x.reshape(-1), x) and x.reshape(2, -1, 4).shape == (2, 16384, 4)
    assert x.T.strides == expected.T.strides and x.T.base is x
    assert np.shares_memory(x[:, ::2].reshape(-1), x)
    part = x[:, 1:]
    assert not np.shares_memory(part.reshape(-1), x)  # a copy, as elements lie apart
    assert numpy.array_equal(numpy.asarray(part.reshape(-1)), expected[:, 1:].reshape(-1))
    for shape in ((3, -1), (-1, -1), (5,), ()):
        with pytest.raises(ValueError, match=r"reshape|unknown dimension"):
            x.reshape(shape)
    with pytest.raises(TypeError):
        pending(256, 512).ravel(256 * 512)  # that would be an order
    x.reshape(-1)[3] = 7.0
    assert x[0, 3] == 7.0


@pytest.mark.parametrize("name", ["concatenate", "stack", "hstack", "vstack", "column_stack"])
def test_what_is_joined_is_as_numpys(name: str) -> None:
    x, y = pending(300, 300), plain(300, 300)
    for ours, theirs in (
        ([x, x], [y, y]),
        ((x[1:], x[:-1]), (y[1:], y[:-1])),
        ([x.T, x], [y.T, y]),  # in another order
        ([x, x.astype(np.float32)], [y, y.astype(np.float32)]),  # of other types
        ([x[0], x[:, 1]], [y[0], y[:, 1]]),
    ):
        found, expected = getattr(np, name)(ours), getattr(numpy, name)(theirs)
        assert (found.dtype, found.strides) == (expected.dtype, expected.strides)
        assert numpy.array_equal(numpy.asarray(found), expected)
    with pytest.raises(ValueError, match=r"must match|same shape"):
        getattr(np, name)([x, x[1:, 1:]])


@pytest.mark.parametrize("shift", [1, -1, 3, 299, 300, -301, 0])
def test_roll_goes_the_shorter_way(shift: int) -> None:
    """Most elements come from where no index wraps: there kernels ask nothing."""
    x, expected = pending(300, 300), plain(300, 300)
    rolled = np.roll(x, shift, axis=1)
    assert TRACER.calls[-1].arguments[2] == min(shift % 300, -shift % 300)
    assert numpy.array_equal(numpy.asarray(rolled), numpy.roll(expected, shift, axis=1))


@compiled
def test_small_calls_follow_each_large_one() -> None:
    """A trace ends after some small ones in a row, not after so many in all."""
    x = pending(300, 300)
    few = x[0]
    first = TRACER.calls[0]
    few = few + 1.0 + 1.0 + 1.0 + 1.0 + 1.0 + 1.0
    x = x + 1.0
    few = few + 1.0 + 1.0 + 1.0 + 1.0 + 1.0 + 1.0
    assert TRACER.calls[0] is first
    few = few + 1.0 + 1.0 + 1.0 + 1.0 + 1.0 + 1.0
    assert first not in TRACER.calls


@pytest.mark.parametrize(
    "use",
    [
        lambda x: np.quantile(x, 0.5),
        lambda x: np.take_along_axis(x, np.zeros((300, 1), int), 1),
        lambda x: np.histogram(x, 4),
        lambda x: np.einsum("ij,ij->j", x, x),
        lambda x: np.where(x > 1.0),
        lambda x: x @ x,
        lambda x: np.fft.rfft(x),
    ],
)
def test_what_keeps_nothing_lends_nothing(use: Any) -> None:
    """The array stays one that kernels may change later."""
    x = pending(300, 300)
    use(x)
    assert not is_external(x)
    kept = np.nditer(x)
    assert kept is not None and is_external(x)  # the illegal twin: it may look at any time


def test_parts_are_views() -> None:
    for x, expected in ((pending(300, 300), plain(300, 300)), (np.ones(12), numpy.ones(12))):
        for pieces in (np.split(x, 3), np.split(x, [2, 5]), np.array_split(x, 7)):
            assert type(pieces) is list
            assert all(np.shares_memory(piece, x) and piece.base is x for piece in pieces)
        assert numpy.array_equal(numpy.asarray(np.split(x, 3)[1]), numpy.split(expected, 3)[1])
        with pytest.raises(ValueError, match="equal division"):
            np.split(x, 7)
        np.split(x, 2)[1][...] = 5.0
        assert numpy.asarray(x).reshape(-1)[-1] == 5.0
    assert np.atleast_1d(x) is x
    assert np.atleast_2d(x).base is x


def test_generators_that_are_spawned_give_our_arrays() -> None:
    ours = np.random.default_rng(3).spawn(2)[1].random(4)
    theirs = numpy.random.default_rng(3).spawn(2)[1].random(4)
    assert type(ours) is np.ndarray and numpy.array_equal(numpy.asarray(ours), theirs)


def written(name: str, *args: Any) -> tuple[Any, Any]:
    """An array that a function of both modules has written, theirs and ours."""
    for x, y in ((np.array(plain(6, 8)), plain(6, 8)), (pending(300, 300), plain(300, 300))):
        ours = [np.array(a) if isinstance(a, numpy.ndarray) else a for a in args]
        assert getattr(np, name)(x, *ours) is None
        getattr(numpy, name)(y, *args)
        assert numpy.array_equal(numpy.asarray(x), y)
    return x, y


def test_functions_that_write_their_first_argument() -> None:
    written("fill_diagonal", 7.0)
    written("put", numpy.array([3, 1]), numpy.array([-1.0, -2.0]))
    written("copyto", 3.0)
    written("put_along_axis", numpy.array([[2]]), -4.0, 1)
    readonly = np.array(plain(6, 8))
    readonly.setflags(write=False)
    for name, args in (("copyto", (1.0,)), ("fill_diagonal", (1.0,)), ("put", ([1], [2.0]))):
        with pytest.raises(ValueError, match=r"read-only|assignment destination"):
            getattr(np, name)(readonly, *args)
    ours, theirs = np.arange(9.0), numpy.arange(9.0)
    np.random.default_rng(2).shuffle(ours)
    numpy.random.default_rng(2).shuffle(theirs)
    assert numpy.array_equal(numpy.asarray(ours), theirs)
    view = ours[2:]
    np.copyto(view, view[::-1])  # of overlapping memory, as if copied first
    numpy.copyto(theirs[2:], theirs[2:][::-1])
    assert numpy.array_equal(numpy.asarray(ours), theirs)


def test_results_with_names() -> None:
    x, y = np.array(plain(5, 3)), plain(5, 3)
    for name in ("svd", "qr"):
        ours, theirs = getattr(np.linalg, name)(x), getattr(numpy.linalg, name)(y)
        assert type(ours) is type(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert type(one) is np.ndarray and numpy.array_equal(numpy.asarray(one), other)


def test_lists_of_indices() -> None:
    x, y = np.array(plain(5, 6)), plain(5, 6)
    for key in ([1, 3], (slice(None), [0, 5]), ([1, 2], [3, 4]), [[0, 1], [2, 3]], [], [True] * 5):
        found, expected = x[key], y[key]
        assert (found.shape, found.strides) == (expected.shape, expected.strides)
        assert numpy.array_equal(numpy.asarray(found), expected)
        found[...] = -1.0  # a copy
        assert numpy.array_equal(numpy.asarray(x), y)
    with pytest.raises(IndexError):
        x[[7]]
    with pytest.raises(IndexError):
        x[:, [0.5]]


@pytest.mark.parametrize(
    "draw",
    [
        lambda g, x: g.random(3),
        lambda g, x: g.integers(0, 9, (2, 3)),
        lambda g, x: g.choice(x),
        lambda g, x: g.choice(x, 2, axis=1),
        lambda g, x: g.choice([[1, 2], [3, 4]], axis=1),
        lambda g, x: g.permutation(x, axis=1),
        lambda g, x: g.normal(x, 1.0),
        lambda g, x: g.multivariate_normal([0, 0], [[1, 0], [0, 1]], 2),
        lambda g, x: g.random(out=x[0]),
        lambda g, x: g.shuffle(x),
    ],
)
def test_generators_draw_once(draw: Any) -> None:
    """Whatever becomes of the result: a second call draws other numbers."""
    ours, theirs = np.random.default_rng(3), numpy.random.default_rng(3)
    x, y = np.array(plain(4, 6)), plain(4, 6)
    found, expected = draw(ours, x), draw(theirs, y)
    assert ours.bit_generator.state == theirs.bit_generator.state
    assert numpy.array_equal(numpy.asarray(x), y)
    if expected is not None:
        assert type(found) is np.ndarray
        assert numpy.array_equal(numpy.asarray(found), expected)


def test_parts_of_complex_numbers() -> None:
    x, y = np.ones(5) * 2j + 3.0, numpy.ones(5) * 2j + 3.0
    x.real[1:3] = 7.0
    x.imag = x.real * 2
    y.real[1:3] = 7.0
    y.imag = y.real * 2
    assert numpy.array_equal(numpy.asarray(x), y)
    assert np.shares_memory(x.real, x) and x.imag.strides == (16,)
    plain_ones = np.ones(3)
    assert np.shares_memory(plain_ones.real, plain_ones)
    assert not plain_ones.imag.flags.writeable
