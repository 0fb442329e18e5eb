"""Single elements, and parts of few, read and assigned: NumPy's values, types, errors, warnings."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import pyfuser
import pyfuser.numpy as np
from pyfuser.support.counters import COUNTERS
from tests.frontends.numpy.test_few import outcome

TYPES = (
    "f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?", "c16", "c8", ">f8",
    ">i4", "O", "U3", "M8[s]", "m8[s]", "g",
)  # fmt: skip
NUMBERS: tuple[Any, ...] = (
    0, 1, -3, 300, 70_000, 2.5, 1e300, 1e-50, numpy.nan, -numpy.inf, 2**31, 2**63, -(2**70), True,
    1j, numpy.float64(0.1), numpy.float32(0.1), numpy.int64(-7), numpy.uint8(200), numpy.bool_(1),
    numpy.complex128(1 + 2j), numpy.complex64(2j), numpy.int16(-5), numpy.array(3), "7", None, [1],
)  # fmt: skip
INDICES: tuple[Any, ...] = (
    0, 2, -1, -3, 3, -4, 2**70, numpy.int64(1), numpy.int64(-3), numpy.int64(3), numpy.int32(1),
    numpy.uint64(2), True, numpy.array(1), 1.0, "a", None, ..., slice(None), slice(1, 3),
    slice(None, None, -1), slice(2, 0), slice(-2, None, 2), slice(0, 2.0), slice(None, 1),
)  # fmt: skip
SHAPES = ((), (3,), (3, 4), (2, 3, 3))


def of(shape: tuple[int, ...], dtype: str) -> Any:
    size = int(numpy.prod(shape))
    numbers = numpy.arange(size) % 5
    kind = numpy.dtype(dtype).kind
    return (numbers.astype("i8") if kind in "mM" else numbers).astype(dtype).reshape(shape)


def keys(rank: int) -> list[Any]:
    found: list[Any] = list(INDICES) if rank < 3 else []
    few = INDICES[:3] + INDICES[4:5] + INDICES[7:8] + INDICES[17:21]
    for count in range(min(rank + 2, 4)):
        found += itertools.product(*[few] * count)
    return found[:: 7 if rank == 3 else 2 if rank == 2 else 1]


def in_ours(value: Any) -> Any:
    return np.array(value) if isinstance(value, numpy.ndarray) else value


def got(array: Any, key: Any) -> Any:
    return array[key]


def put(array: Any, key: Any, value: Any) -> Any:
    array[key] = value
    return array


def added(array: Any, key: Any, value: Any) -> Any:
    array[key] += value
    return array


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_is_read_as_numpy_reads(dtype: str, shape: tuple[int, ...]) -> None:
    whole = of(shape, dtype)
    ours = np.array(whole)
    for key in keys(len(shape)):
        assert outcome(got, ours, in_ours(key)) == outcome(got, whole, key), key


@pytest.mark.parametrize("do", [put, added])
@pytest.mark.parametrize("dtype", [each for each in TYPES if each not in ("U3", "M8[s]", "m8[s]")])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_is_assigned_as_numpy_does(
    do: Callable[..., Any], dtype: str, shape: tuple[int, ...]
) -> None:
    for place, key in enumerate(keys(len(shape))):
        for value in NUMBERS[place % 5 :: 5]:
            theirs, ours = of(shape, dtype), np.array(of(shape, dtype))
            said = outcome(do, theirs, key, value)
            assert outcome(do, ours, in_ours(key), in_ours(value)) == said, (key, value)
            assert repr(numpy.asarray(ours)) == repr(theirs), (key, value)


@pytest.mark.parametrize("dtype", ["f8", "f4", "u1", "?", "c16", "i2"])
@pytest.mark.parametrize("rows", [5, 80])
def test_parts_take_parts_of_themselves(dtype: str, rows: int) -> None:
    def parts(array: Any) -> list[Any]:
        found = [array[:-1], array[1:], array[::-1], array[:, ::-1], array.T, array[:, :1]]
        return [*found, array[:1], array[2], array[:, 2], array[..., None][..., 0], array[:]]

    shape = (rows, rows)
    for to, key in enumerate(
        [
            slice(1, None),
            slice(None, -1),
            slice(None),
            (slice(None), 2),
            2,
            (slice(None), slice(1, 3)),
        ]
    ):
        for chosen in range(len(parts(of(shape, dtype)))):
            theirs, ours = of(shape, dtype), np.array(of(shape, dtype))
            said = outcome(put, theirs, key, parts(theirs)[chosen])
            assert outcome(put, ours, key, parts(ours)[chosen]) == said, (to, chosen)


@pytest.mark.parametrize("dtype", ["f8", "i4", "u1", "?", "c16"])
def test_overlapping_rows_are_copied_as_numpy_copies_them(dtype: str) -> None:
    """Element by element, whatever their strides are."""
    steps = [
        slice(None),
        *(slice(a, b, c) for a in (0, 1, 3) for b in (None, 5) for c in (1, 2, 3)),
    ]
    for size in (6, 9):
        for to, other in itertools.product([*steps, slice(None, None, -1)], repeat=2):
            theirs, ours = of((size,), dtype), np.array(of((size,), dtype))
            said = outcome(put, theirs, to, theirs[other])
            assert outcome(put, ours, to, ours[other]) == said, (to, other)
    theirs, ours = of((5, 5), dtype), np.array(of((5, 5), dtype))
    theirs[:, 2], ours[:, 2] = theirs[1], ours[1]
    assert numpy.array_equal(numpy.asarray(ours), theirs)
    whole = of((9,), dtype)
    theirs, ours = whole.copy(), whole.copy()
    theirs[0:8:2] = theirs[:4]
    np.asarray(ours)[0:8:2] = np.asarray(ours)[:4]  # no array that both are parts of
    assert numpy.array_equal(ours, theirs)


@pytest.mark.parametrize("key", [(0, 0), 0, (slice(None), 1)])
def test_what_numpy_warns_of_writing_to(key: Any) -> None:
    def broadcast(module: Any) -> Any:
        return module.asarray(numpy.broadcast_arrays(numpy.arange(3.0), numpy.zeros((2, 3)))[0])

    said = outcome(put, broadcast(numpy), key, 3.0)
    assert outcome(put, broadcast(np), key, 3.0) == said and said[-1]


class Asked:
    """A number that counts how often it is asked."""

    def __init__(self, value: int) -> None:
        self.value, self.times = value, 0

    def __index__(self) -> int:
        self.times += 1
        return self.value


def test_parts_ask_their_numbers_as_often_as_numpy_does() -> None:
    counts = []
    for array in (numpy.arange(6.0), np.array(numpy.arange(6.0))):
        first, last = Asked(1), Asked(4)
        for value in (None, 5.0):
            if value is None:
                assert array[first:last].shape == (3,) and array[last:first].shape == (0,)
            else:
                array[first:last] = value
        counts.append((first.times, last.times))
    assert counts[0] == counts[1]


def test_what_is_only_read_is_not_assigned_to() -> None:
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    x.flags.writeable = False
    for key in (0, (0, 1), slice(None), (slice(None), 1)):
        with pytest.raises(ValueError, match="read-only"):
            x[key] = 5.0
    row = x[0]
    with pytest.raises(ValueError, match="read-only"):
        row[1] = 5.0
    foreign = numpy.ones(3)
    foreign.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(foreign)[1] = 2.0
    assert x[0, 1] == 2.0 and foreign[1] == 1.0


def test_what_is_pending_runs_before(lazily: Callable[[str], None]) -> None:
    lazily("interpret")
    x = np.ones(40_000)
    x += 1.0
    assert x[3] == 2.0
    x *= 3.0
    x[3] = 5.0
    y = x + 1.0
    x[4] = 7.0
    assert (y[3], y[4], x[4], x[5]) == (6.0, 7.0, 7.0, 6.0)
    x *= 2.0
    x[10:20] = 1.0
    x[20:30] = y[:10]
    assert list(x[8:12]) == [12.0, 12.0, 1.0, 1.0] and list(x[20:25]) == [7.0, 7.0, 7.0, 6.0, 7.0]


def test_memory_of_others_changes_with_it() -> None:
    foreign = numpy.zeros((4, 4))
    ours = np.asarray(foreign)
    ours[1, 2] = 3.0
    ours[2, 1:3] = 4.0
    assert foreign[1, 2] == 3.0 and foreign[2, 1] == foreign[2, 2] == 4.0
    foreign[0, 0] = 9.0
    assert ours[0, 0] == 9.0


def test_elements_of_arrays_that_have_no_memory_make_none() -> None:
    pyfuser.sync()
    before = COUNTERS.flushes
    x = np.zeros(3_000_000)
    x[5] = 2.0
    assert x[5] == 2.0 and x[6] == 0.0
    assert COUNTERS.flushes == before


@pytest.mark.parametrize("dtype", ["i1", "i2", "u2", "c8", "c16"])
def test_types_that_only_elements_are_read_of(dtype: str, lazily: Callable[[str], None]) -> None:
    lazily("interpret")
    theirs = numpy.arange(24).reshape(2, 3, 4).astype(dtype)
    ours = np.array(theirs)
    for array in (theirs, ours):
        array -= array[::-1]
        array[1, 2, 3] = array[0, 1, 1]
        array += array.T.reshape(2, 3, 4)
    assert numpy.array_equal(numpy.asarray(ours), theirs)
    assert numpy.array_equal(numpy.asarray(ours.view("u1")), theirs.view("u1"))
