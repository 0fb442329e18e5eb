"""Arithmetic of few elements in the extension: NumPy's types, bits, shapes, warnings."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import pyfuser.numpy as np
from pyfuser.support.extension import NUMPY

pytestmark = pytest.mark.skipif(NUMPY is None, reason="it is the extension's")

BINARY = (
    numpy.add, numpy.subtract, numpy.multiply, numpy.true_divide, numpy.less, numpy.less_equal,
    numpy.equal, numpy.not_equal, numpy.greater, numpy.greater_equal, numpy.maximum, numpy.minimum,
    numpy.bitwise_and, numpy.bitwise_or, numpy.bitwise_xor, numpy.left_shift, numpy.right_shift,
)  # fmt: skip
UNARY = (numpy.negative, numpy.square, numpy.absolute, numpy.sqrt, numpy.invert)
IN_PLACE = (
    operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.iand, operator.ior,
    operator.ixor, operator.ilshift, operator.irshift,
)  # fmt: skip
TYPES = tuple(map(numpy.dtype, ("f8", "f4", "i8", "i4", "u8", "u4", "u1", "?")))
SPECIAL = (0.0, -0.0, 1.5, -2.0, numpy.inf, -numpy.inf, numpy.nan, 1e308, 5e-324, 1e-38, 3e38)
NUMBERS: tuple[Any, ...] = (
    0, 1, -3, 2.5, 1e300, 1e-50, numpy.nan, numpy.inf, 2**60, 2**60 + 1, 2**70, True,
    1j, numpy.float64(0.1), numpy.float32(0.1), numpy.int64(3), numpy.bool_(True),
)  # fmt: skip

Outcome = tuple[Any, ...]


def outcome(function: Callable[..., Any], *operands: Any) -> Outcome:
    """What a call gives, with its warnings and errors; NaNs are alike."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = function(*operands)
        except Exception as error:
            return type(error), str(error)
    said = [(w.category, str(w.message)) for w in caught]
    if not isinstance(value, np.ndarray):
        return type(value), repr(value), said
    bits = numpy.array(value)
    if bits.dtype.kind in "fc":
        bits[numpy.isnan(bits)] = numpy.nan
    shown = repr(bits) if bits.dtype.char in "Og" else bits.tobytes()  # not pointers, nor padding
    return value.dtype, value.shape, value.strides, shown, said


def values(rng: numpy.random.Generator, shape: tuple[int, ...], dtype: Any) -> Any:
    """Small integers, which are exact and raise no flag but by division."""
    return rng.integers(-9, 70, shape).astype(dtype)


def arrays(dtype: Any, seed: int = 0) -> Iterator[Any]:
    """Of many shapes and layouts."""
    rng = numpy.random.default_rng(seed)
    for shape in [(), (0,), (1,), (5,), (200,), (65536,), (65537,), (4, 1), (1, 5), (4, 5)]:
        yield values(rng, shape, dtype)
    for shape in [(3, 4, 5), (1, 4, 5), (2, 3, 4, 5), (1, 2, 3, 4, 5)]:
        yield values(rng, shape, dtype)
    base = values(rng, (6, 8, 10), dtype)
    yield from (base[1:-1, 2:5, 3:8], base[::2, ::2, ::2], base[:, 3], base[2, :, 1], base[..., 0])
    yield from (base[0].T, base[0, ::-1], numpy.asfortranarray(base[1]), base.transpose(1, 0, 2))
    yield numpy.broadcast_to(base[0, 0], (8, 10))
    yield numpy.lib.stride_tricks.sliding_window_view(base[0, 0], 4)
    yield base[0].astype(base.dtype.newbyteorder())
    raw = numpy.zeros(8 * 5 + 1, numpy.uint8)[1:].view(numpy.float64)
    yield raw  # not aligned


def check(ufunc: Any, *operands: Any) -> bool:
    """Whether the extension computes it; if so, as NumPy does."""
    found = NUMPY.few(ufunc, operands[0], operands[-1])
    if found is None:
        return False
    assert outcome(lambda *_: found) == outcome(ufunc, *operands), (ufunc, operands)
    return True


@pytest.mark.parametrize("dtype", TYPES)
def test_pairs_of_arrays(dtype: Any) -> None:
    computed = 0
    for x in arrays(dtype):
        for y in arrays(dtype, 1):
            try:
                numpy.broadcast_shapes(x.shape, y.shape)
            except ValueError:
                assert all(NUMPY.few(ufunc, x, y) is None for ufunc in BINARY)
            else:
                computed += sum(check(ufunc, x, y) for ufunc in BINARY)
    assert computed > 200


@pytest.mark.parametrize("dtype", TYPES)
def test_arrays_and_numbers(dtype: Any) -> None:
    computed = 0
    for x in arrays(dtype):
        computed += sum(check(ufunc, x, y) for ufunc in BINARY for y in NUMBERS)
        computed += sum(check(ufunc, y, x) for ufunc in BINARY for y in NUMBERS)
        computed += sum(check(ufunc, x) for ufunc in UNARY)
    assert computed > 200


COMMON = {
    "f": BINARY[:12], "i": BINARY[:3] + BINARY[4:], "u": BINARY[:3] + BINARY[4:],
    "b": BINARY[4:10] + BINARY[12:15],
}  # fmt: skip
COMMON_UNARY = {
    "f": UNARY[:4], "i": (*UNARY[:2], UNARY[4]), "u": (*UNARY[:2], UNARY[4]), "b": UNARY[4:],
}  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES)
def test_the_common_cases_are_computed(dtype: Any) -> None:
    rng = numpy.random.default_rng(0)
    x = rng.integers(1, 10, (6, 7)).astype(dtype)
    inner = x[1:-1, 1:-1]
    one: Any = 2 if dtype.kind != "b" else numpy.True_
    for ufunc in COMMON[dtype.kind]:
        assert check(ufunc, x, x)
        assert check(ufunc, inner, x[:-2, 1:-1])
        assert check(ufunc, x, x[0])
        assert check(ufunc, x[:, :1], x)
        assert check(ufunc, x, one)
        assert check(ufunc, one, x[0])
    for ufunc in COMMON_UNARY[dtype.kind]:
        assert check(ufunc, x)


# fmt: off
TWINS = {
    "too many elements": (numpy.add, numpy.ones(65537), 1.0),
    "too many elements in all": (numpy.add, numpy.ones((256, 1)), numpy.ones(257)),
    "another order": (numpy.add, numpy.ones((4, 5)).T, 1.0),
    "two types": (numpy.add, numpy.ones(4), numpy.ones(4, numpy.float32)),
    "integers are divided": (numpy.true_divide, numpy.ones(4, int), 2),
    "a wide number": (numpy.add, numpy.ones(4, numpy.float32), numpy.float64(1)),
    "a real number and integers": (numpy.add, numpy.ones(4, int), 1.0),
    "an inexact integer": (numpy.add, numpy.ones(4), 2**60 + 1),
    "a flag of overflow": (numpy.multiply, numpy.full(4, 1e300), 1e300),
    "a flag of division": (numpy.true_divide, numpy.ones(4), 0.0),
    "a flag of invalid": (numpy.sqrt, -numpy.ones(4), -numpy.ones(4)),
    "a flag of underflow": (numpy.multiply, numpy.full(4, 1e-300), 1e-300),
    "backwards": (numpy.add, numpy.ones((4, 5))[::-1], 1.0),
    "one row again and again": (numpy.add, numpy.broadcast_to(numpy.ones(5), (4, 5)), 1.0),
    "not aligned": (numpy.add, numpy.zeros(33, numpy.uint8)[1:].view(float), 1.0),
    "a number that is rounded to 0": (numpy.add, numpy.ones(4, numpy.float32), 1e-50),
    "no axes": (numpy.add, numpy.ones(()), 1.0),
    "another type": (numpy.add, numpy.ones(4, numpy.int16), 1),
    "a number that does not fit": (numpy.add, numpy.ones(4, numpy.uint8), 256),
    "a negative number": (numpy.add, numpy.ones(4, numpy.uint64), -1),
    "truth values are added": (numpy.add, numpy.ones(4, bool), numpy.ones(4, bool)),
    "bits of floats": (numpy.bitwise_and, numpy.ones(4), numpy.ones(4)),
    "the larger of two zeros": (numpy.maximum, numpy.zeros(4), -numpy.zeros(4)),
    "the smaller of two zeros": (numpy.minimum, numpy.zeros(4), -numpy.zeros(4)),
    "the smaller of two zeros of 32 bits": (
        numpy.minimum, numpy.zeros(4, "f4"), -numpy.zeros(4, "f4"),
    ),
    "the smaller of NaN and a number": (numpy.minimum, numpy.full(4, numpy.nan), 1.0),
    "a truth value": (numpy.add, numpy.ones(4), True),
    "other bytes first": (numpy.add, numpy.ones(4, ">f8"), 1.0),
    "a subclass": (numpy.add, numpy.ma.ones(4), 1.0),
}
# fmt: on


@pytest.mark.parametrize("name", TWINS)
def test_is_left_to_numpy(name: str) -> None:
    assert NUMPY.few(*TWINS[name]) is None


@pytest.mark.parametrize("dtype", TYPES)
def test_programs_get_what_numpy_gives(dtype: Any) -> None:
    rng = numpy.random.default_rng(2)
    with numpy.errstate(all="ignore"):
        special = numpy.array(SPECIAL * 3).astype(dtype)
    for x in (special, values(rng, (4, 5), dtype), values(rng, (5, 4), dtype).T):
        y = rng.permutation(x.reshape(-1)).reshape(x.shape)
        ours, other = np.array(x), np.array(y)
        ours, other = (ours, other) if x.flags.c_contiguous else (np.array(x.T).T, np.array(y))
        for ufunc in BINARY:
            assert outcome(ufunc, ours, other) == outcome(ufunc, x, y)
            assert outcome(getattr(np, ufunc.__name__), ours, other) == outcome(ufunc, x, y)
            for number in NUMBERS:
                assert outcome(ufunc, ours, number) == outcome(ufunc, x, number)
                assert outcome(ufunc, number, ours) == outcome(ufunc, number, x)
        for function in (operator.neg, abs, lambda a: a**2, lambda a: a.copy(), lambda a: a**2.0):
            assert outcome(function, ours) == outcome(function, x)
        assert outcome(np.sqrt, ours) == outcome(numpy.sqrt, x)


@pytest.mark.parametrize("function", IN_PLACE)
@pytest.mark.parametrize("dtype", TYPES)
def test_in_place(function: Any, dtype: Any) -> None:
    parts: tuple[Any, ...] = (
        lambda a: a, lambda a: a[1:-1, 2:], lambda a: a[::2], lambda a: a[:, 1], lambda a: a.T,
        lambda a: a[::-1], lambda a: a[:, None, 1],
    )  # fmt: skip
    others: tuple[Any, ...] = (
        2, 0.5, 0, 2**70, 1j, numpy.float64(0.1), lambda p: p, lambda p: p[0], lambda p: p[::-1],
        lambda p: p[..., None], lambda p: p.T, lambda p: p[:1],
    )  # fmt: skip
    for part in parts:
        for other in others:
            results = []
            for module in (np, numpy):
                whole = module.array(values(numpy.random.default_rng(3), (6, 6), dtype) + 10)
                at = part(whole)
                found = outcome(function, at, other(at) if callable(other) else other)
                results.append((found, outcome(lambda x: x, whole)))
            assert results[0] == results[1]


@pytest.mark.parametrize("dtype", TYPES)
def test_where(dtype: Any) -> None:
    rng = numpy.random.default_rng(4)
    computed = 0
    for shape in [(1,), (7,), (200,), (4, 5), (2, 3, 4)]:
        x, y = values(rng, shape, dtype), values(rng, shape, dtype)
        masks = (x > y, numpy.zeros(shape, bool), (x > y).T, (x > y)[..., ::2], x.astype(int))
        others = (y, y[..., :1], y.T, 2, 0.5, 300, numpy.float64(2), True, y.astype("i2"))
        for mask in masks:
            for one, other in [(x, other) for other in others] + [(other, x) for other in others]:
                found = NUMPY.few(numpy.where, mask, one, other)
                if found is None:
                    continue
                computed += 1
                assert outcome(lambda *_, it=found: it) == outcome(numpy.where, mask, one, other)
                ours = [np.array(a) if isinstance(a, numpy.ndarray) else a for a in (one, other)]
                assert outcome(np.where, np.array(mask), *ours) == outcome(
                    numpy.where, mask, one, other
                )
    assert computed > 15


def test_where_is_left_to_numpy() -> None:
    x, mask = numpy.ones(4), numpy.ones(4, bool)
    for given in (
        (x, x, x), (mask, 1.0, 2.0), (mask, x, x.astype("f4")), (mask[::2], x[::2], x[::2]),
        (mask, x, x[:1]), (mask, x.astype("f4"), numpy.float64(1)), (mask[0], x, x),
        (numpy.ones(65537, bool), numpy.ones(65537), 0.0), (mask.reshape(2, 2), x, x),
        (mask, numpy.ones((4, 1)), numpy.ones((4, 1))), (numpy.ones((4, 4), bool), x, x),
    ):  # fmt: skip
        assert NUMPY.few(numpy.where, *given) is None


def test_an_operand_that_overlaps_is_read_before() -> None:
    ours, numpys = np.arange(8.0), numpy.arange(8.0)
    ours[1:] += ours[:-1]
    numpys[1:] += numpys[:-1].copy()
    assert numpy.asarray(ours).tolist() == numpys.tolist()


def test_memory_that_is_not_to_be_written_is_not() -> None:
    x = np.ones(4)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        x += 1.0
    assert x.tolist() == [1.0] * 4


def test_errors_that_are_asked_for() -> None:
    x = np.ones(4)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        x / 0.0
    with np.errstate(under="raise"), pytest.raises(FloatingPointError):
        (x * 1e-300) * 1e-300
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        x /= 0.0
    assert x.tolist() == [numpy.inf] * 4


def test_an_elements_flag_of_before_is_not_its_own() -> None:
    with numpy.errstate(all="ignore"):
        numpy.ones(3) / numpy.zeros(3)
    assert check(numpy.add, numpy.ones(3), 1.0)
