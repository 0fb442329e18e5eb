"""Where elements of regions lie, compared with all their bytes."""

from __future__ import annotations

import itertools
import random

from pyfuser.analysis.layout import is_injective, shift
from pyfuser.ir.dtypes import DType
from pyfuser.trace.shape import RegionShape
from tests.analysis.build import region

STRIDES = (8, 8, -8, 16, 24, -24, 32, 64, 0, 4, 40)


def elements(where: RegionShape) -> dict[tuple[int, ...], set[int]]:
    """The bytes of each element."""
    size, places = where.dtype.size, itertools.product(*map(range, where.shape))
    starts = {
        place: where.offset + sum(n * s for n, s in zip(place, where.strides, strict=True))
        for place in places
    }
    return {place: set(range(start, start + size)) for place, start in starts.items()}


def random_region(rng: random.Random, strides: tuple[int, ...], dtype: DType) -> RegionShape:
    shape = tuple(rng.choice((1, 1, 2, 3, 4)) for _ in strides)
    return region(0, shape, 8 * rng.randint(-12, 12) + rng.choice((0, 0, 0, 4)), strides, dtype)


def test_elements_share_bytes_as_the_shift_says() -> None:
    rng = random.Random(1)
    found = 0
    for _ in range(6000):
        strides = tuple(rng.choice(STRIDES) for _ in range(rng.choice((1, 2, 2, 3))))
        dtypes = rng.choices((DType.FLOAT64, DType.FLOAT64, DType.FLOAT32, DType.COMPLEX128), k=2)
        one = random_region(rng, strides, dtypes[0])
        other = random_region(rng, strides, dtypes[rng.random() < 0.2])
        shifts = shift(one, other)
        if shifts is None:
            continue
        found += one.shape != (1,) and any(shifts)
        for i, bytes_ in elements(other).items():
            same = tuple(a + s for a, s in zip(i, shifts, strict=True))
            for j, others in elements(one).items():
                assert (same == j) == (not bytes_.isdisjoint(others)), (one, other)
    assert found > 400


def test_slices_of_one_array_have_a_shift() -> None:
    """Those of other steps have none, and of what is a column only the row may differ."""
    rows = (80, 8)
    whole = region(0, (9, 10), 0, rows)
    assert shift(whole, region(0, (7, 8), 88, rows)) == (1, 1)
    assert shift(whole, region(0, (7, 5), 80 + 40, rows)) == (1, 5)
    assert shift(region(0, (7, 8), 88, rows), whole) == (-1, -1)
    assert shift(region(0, (7, 5), 80 + 24, rows), region(0, (7, 7), 0, rows)) == (-1, -3)
    assert shift(region(0, (8, 4), 0, rows), region(0, (8, 4), 48, rows)) == (1, -4)
    assert shift(region(0, (8, 8), 0, rows), region(0, (8, 8), 48, rows)) is None  # meet rows
    assert shift(region(0, (8, 8), 48, rows), region(0, (8, 8), 0, rows)) is None
    assert shift(whole, region(0, (7, 8), 88, (-80, 8))) is None
    assert shift(whole, region(0, (7, 8), 84, rows)) is None
    broadcast = (0, 8)
    assert shift(region(0, (1, 10), 0, broadcast), region(0, (1, 5), 16, broadcast)) == (0, 2)
    assert shift(region(0, (3, 10), 0, broadcast), region(0, (3, 5), 16, broadcast)) is None
    backwards = (-8,)
    assert shift(region(0, 9, 64, backwards), region(0, 5, 40, backwards)) == (3,)


def test_elements_that_share_no_byte() -> None:
    rng = random.Random(2)
    found = 0
    for _ in range(3000):
        strides = tuple(rng.choice(STRIDES) for _ in range(rng.choice((1, 2, 3))))
        given = random_region(rng, strides, rng.choice((DType.FLOAT64, DType.FLOAT32)))
        if not is_injective(strides, given.shape, given.dtype.size):
            continue
        found += 1
        parts = list(elements(given).values())
        assert len(set().union(*parts)) == sum(map(len, parts))
    assert found > 700


def test_axes_of_one_element_say_nothing() -> None:
    assert is_injective((0, 8), (1, 5), 8)
    assert is_injective((8, 8), (1, 5), 8) and is_injective((4, 8), (1, 5), 8)
    assert not is_injective((0, 8), (2, 5), 8)
