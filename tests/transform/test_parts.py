"""Parts of arrays that become one parameter with all of it."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Const
from pyfuser.ir.verify import verify
from pyfuser.ir.visit import all_expressions
from pyfuser.lower.lower import ViewType
from pyfuser.pipeline import kernel_of
from pyfuser.trace.shape import RegionShape
from pyfuser.transform.group import GroupShape
from pyfuser.transform.parts import MOST, part_of
from tests.analysis.build import region
from tests.transform.build import Program
from tests.transform.test_sizes import ADD, DOUBLES, PUT, call_on, lowered

N, M = 12, 5
WHOLE = region(0, (N, M))


def addresses(shape: RegionShape) -> dict[tuple[int, ...], int]:
    return {
        at: shape.offset + sum(i * stride for i, stride in zip(at, shape.strides, strict=True))
        for at in itertools.product(*map(range, shape.shape))
    }


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (region(0, (N, M - 1))._replace(strides=WHOLE.strides), ((0, 0), (1, 0))),
        (region(0, (N - 2, M))._replace(offset=16 * M), ((0, 2), (1, 0))),
        (region(0, M)._replace(offset=8 * 3 * M), ((-1, 3), (0, 0))),  # a row
        (region(0, N)._replace(offset=16, strides=(8 * M,)), ((0, 0), (-1, 2))),  # a column
        (region(0, ())._replace(offset=8 * (M + 2)), ((-1, 1), (-1, 2))),  # an element
        (region(0, 2)._replace(offset=8 * (N * M - 2)), ((-1, N - 1), (0, M - 2))),
    ],
)
def test_parts(part: RegionShape, expected: Any) -> None:
    assert part_of(part, WHOLE) == expected
    of_whole, of_part = addresses(WHOLE), addresses(part)
    for at, address in of_part.items():
        assert address == of_whole[tuple([b + (at[a] if a >= 0 else 0) for a, b in expected])]


@pytest.mark.parametrize(
    ("part", "whole"),
    [
        (WHOLE, WHOLE),
        (WHOLE, region(0, (N, M - 1))._replace(strides=WHOLE.strides)),  # the smaller one
        (region(1, M), WHOLE),  # other memory
        (region(0, M, dtype=DType.INT64), WHOLE),
        (region(0, 2 * M), WHOLE),  # over the end of a row
        (region(0, M)._replace(offset=8), WHOLE),
        (region(0, (N, M - 1))._replace(strides=WHOLE.strides, offset=16), WHOLE),
        (region(0, M)._replace(offset=8 * N * M), WHOLE),  # behind its end
        (region(0, M)._replace(offset=-8 * M), region(0, (N, M))),  # before it
        (region(0, M)._replace(offset=4), WHOLE),  # between elements
        (region(0, M)._replace(strides=(-8,), offset=8 * (M - 1)), WHOLE),
        (region(0, 3)._replace(strides=(16,)), WHOLE),
        (region(0, (M, N))._replace(strides=(8, 8 * M), shape=(M - 1, N)), WHOLE),  # transposed
        (region(0, (0, M)), WHOLE),  # nothing
        (region(0, M), WHOLE._replace(strides=(-8 * M, 8))),
        (region(0, 3), region(0, (N, M))._replace(strides=(8, 8))),  # whose elements share memory
        (region(0, 3), region(0, MOST + 1)),  # subscripts have 32 bits
        (region(0, 3), region(0, (2, MOST + 1))),
        (region(0, 3), region(0, (1, M))._replace(strides=(0, 8))),
    ],
)
def test_what_is_no_part(part: RegionShape, whole: RegionShape) -> None:
    assert part_of(part, whole) is None


def test_random_parts_are_where_they_are_told_to_be() -> None:
    rng, found = random.Random(1), 0
    for _ in range(3000):
        size = rng.choice([4, 8])
        shape = tuple(rng.randint(1, 4) for _ in range(rng.randint(1, 3)))
        strides, step = [], size
        for extent in reversed(shape):
            step += size * rng.choice([0, 0, 1])
            strides.insert(0, step)
            step *= extent
        kind = DType.FLOAT64 if size == 8 else DType.INT32
        whole = RegionShape(0, 64, tuple(strides), shape, kind)
        own = tuple(rng.randint(1, 4) for _ in range(rng.randint(0, len(shape))))
        steps = rng.choices(strides, k=len(own))
        part = RegionShape(0, 64 + size * rng.randint(-2, 20), tuple(steps), own, kind)
        told = part_of(part, whole)
        if told is None:
            continue
        found += 1
        of_whole = addresses(whole)
        for at, address in addresses(part).items():
            place = tuple([begin + (at[axis] if axis >= 0 else 0) for axis, begin in told])
            assert of_whole[place] == address
    assert found > 200


def asks(i, x, y):
    y[i] = x[i] + x.extent(0)


def rows_of(i, u, m):
    for k in range(m):
        u[k][i] = 2.0 * u[k][i]


def three_rows(i, a, b, c, y):
    y[i] = a[i] + 10.0 * b[i] + 100.0 * c[i]


def shift(i, u, y, n):
    if i < n:
        y[i] = u[i] + 1.0


def store_row(i, a):
    a[i] = a[i] + 1.5


def whole_sum(i, u, y):
    y[i] = u[0][i] + u[1][i] + u[2][i]


def params_of(group: GroupShape) -> int:
    return len(kernel_of(group).workunit.params)


def test_only_what_is_written_and_asks_for_no_extents_is_united(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unit = lowered(asks, x=DOUBLES, y=DOUBLES).workunit
    x, y, part = region(0, 9), region(1, 8), region(0, 8)
    put = call_on(PUT, 8, x, 1.0)
    assert params_of(GroupShape((put, call_on(ADD, 8, part, y)))) == 3
    assert params_of(GroupShape((put, call_on(unit, 8, part, y)))) == 4
    other = call_on(ADD, 8, x, region(2, 8))
    assert params_of(GroupShape((call_on(ADD, 8, part, y), other))) == 4  # both are read only
    assert params_of(GroupShape((call_on(ADD, 8, part, x),))) == 2  # one call: as it was given
    as_integers = region(0, 9, dtype=DType.INT64)
    bits = call_on(lowered(store_row, a=ViewType(DType.INT64, 1)).workunit, 8, as_integers)
    assert params_of(GroupShape((put, bits, call_on(ADD, 8, part, y)))) == 4
    monkeypatch.setattr("pyfuser.transform.parts.left_out", "unite-views".__eq__)
    fresh = call_on(PUT, 8, x, 2.5)
    assert params_of(GroupShape((fresh, call_on(ADD, 8, part, region(3, 8))))) == 4


def test_rows_of_an_array_that_is_written_row_by_row() -> None:
    u, y = np.random.default_rng(3).random((3, N)), np.zeros(N)
    program = Program(N)
    for k in range(3):
        program.call(store_row, a=u[k])
    program.call(whole_sum, u=u, y=y)
    program.check()
    assert len(program.kernel().workunit.params) == 2
    assert not program.kernel().overlaps


def test_rows_that_are_read_after_all_was_written() -> None:
    u, y = np.random.default_rng(4).random((3, N)), np.zeros(N)
    program = Program(N)
    program.call(rows_of, u=u, m=3)
    program.call(three_rows, a=u[0], b=u[1], c=u[2], y=y)
    program.check()
    assert len(program.kernel().workunit.params) == 3  # with m


def test_the_beginning_of_an_array() -> None:
    u, y, z = np.arange(1.0, N + 1), np.zeros(N), np.zeros(N)
    program = Program(N)
    program.call(shift, u=u, y=u[:-1], n=N - 1)
    program.call(shift, u=u, y=y, n=N)
    program.call(shift, u=u[:-1], y=z, n=N - 1)
    program.check()
    assert not program.kernel().overlaps


def test_parts_in_the_middle() -> None:
    u, y = np.random.default_rng(5).random((4, 3, N)), np.zeros(N)
    program = Program(N)
    program.call(rows_of, u=u[1, 1:], m=2)
    program.call(store_row, a=u[1, 2])
    program.call(shift, u=u[1, 1], y=y, n=N)
    program.check()
    assert not program.kernel().overlaps


def gathered(i, k, u, y):
    y[i] = u[k[i]]


def above(i, x, u, y):
    y[i] = u[x[i] > 0.5]


def increment_all(i, u):
    u[i] = u[i] + 1.0


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_subscripts_of_narrow_types_reach_any_part(kind: str) -> None:
    u, y = np.arange(41_000.0), np.zeros(N)
    places = (np.arange(N) % 2).astype(kind)
    program = Program(N)
    program.call(increment_all, u=u)
    program.call(gathered, k=places, u=u[40_000:], y=y)
    program.check()
    assert not program.kernel().overlaps


def test_a_condition_is_a_subscript_of_a_part() -> None:
    u, x, y = np.arange(400.0), np.linspace(0.0, 1.0, N), np.zeros(N)
    program = Program(N)
    program.call(increment_all, u=u)
    program.call(above, x=x, u=u[300:], y=y)
    unit = program.kernel().workunit
    verify(unit)
    begins = [e for e in all_expressions(unit.body) if e == Const(300, DType.INT32)]
    assert len(begins) == 1
