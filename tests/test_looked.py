"""Which calls need no second look for mistakes: `runtime.looked`."""

from __future__ import annotations

import pytest

from pyfuser.analysis.accesses import facts_of
from pyfuser.analysis.inside import is_inside
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Workunit
from pyfuser.lower.lower import lower
from pyfuser.lower.types import ScalarType, ViewType
from pyfuser.runtime.looked import (
    LOOKED,
    WALKED,
    between_looks,
    facts_with,
    look_at,
    was_looked_at,
)
from pyfuser.trace.call import Space
from pyfuser.trace.shape import CallShape, FutureShape, RegionShape, ScalarShape


def shifted(i, x, k):
    x[i + k] += 1.0


def strided(i, x, k):
    for j in range(0, 5, k):
        x[i + j] += 1.0


def chosen(i, x, k):
    x[k[i]] = 1.0


def unit_of(function) -> Workunit:
    types = {"x": ViewType(DType.FLOAT64, 1), "k": ScalarType(DType.INT32)}
    return lower(function, "for", 1, types).workunit


def call(function, n: int, k: int | None) -> CallShape:
    x = RegionShape(0, 0, (8,), (20,), DType.FLOAT64)
    return CallShape("for", Space((0,), (n,)), unit_of(function), (x, ScalarShape(DType.INT32, k)))


def test_what_is_known_of_a_call() -> None:
    result = call(shifted, 5, 3)._replace(
        arguments=(FutureShape(DType.FLOAT64, 0), ScalarShape(DType.INT32, 7))
    )
    assert facts_of(call(shifted, 5, 3)) == ((20,), 3)
    assert facts_of(call(shifted, 5, None)) == ((20,), None)
    assert facts_of(result) == (None, 7)
    assert facts_with(call(shifted, 5, None), ("a view", 4)) == [(20,), 4]


@pytest.mark.parametrize(
    ("function", "n", "k", "inside"),
    [
        (shifted, 15, 5, True),
        (shifted, 16, 5, False),
        (shifted, 5, None, False),
        (strided, 5, 1, False),  # a step may be 0
    ],
)
def test_calls_without_a_mistake_for_sure(function, n, k, inside) -> None:
    made = call(function, n, k)
    assert is_inside(made, facts_of(made)) is inside


def known(unit: Workunit, n: int, k: int | None, begin: int = 2) -> bool:
    return was_looked_at(unit, Space((begin,), (n,)), [(20,), k])


def test_the_first_calls_are_looked_at_and_those_of_other_sizes() -> None:
    """A number between powers of two of which calls were looked at, and of their sign."""
    unit, other = unit_of(shifted), unit_of(strided)
    for _ in range(LOOKED):
        assert not known(unit, 5, 3)
        look_at(unit, Space((2,), (5,)), [(20,), 3])
    assert known(unit, 5, 3) and known(unit, 7, 2) and known(unit, 4, None)
    for n, k, begin in [
        (8, 3, 2),
        (3, 3, 2),
        (5, 4, 2),
        (5, 1, 2),
        (5, 0, 2),
        (5, -3, 2),
        (5, 3, 1),
    ]:
        assert not known(unit, n, k, begin)
    assert not was_looked_at(unit, Space((2,), (5,)), [(40,), 3])
    assert not known(other, 5, 3)
    look_at(unit, Space((0,), (5,)), [(20,), -100])
    assert known(unit, 5, -127) and known(unit, 5, 0, begin=0) and known(unit, 5, 1)
    assert not known(unit, 5, -128) and not known(unit, 5, 4) and not known(unit, 5, 3, begin=-1)


def test_more_calls_are_looked_at_where_elements_are_subscripts() -> None:
    types = {"x": ViewType(DType.FLOAT64, 1), "k": ViewType(DType.INT32, 1)}
    unit = lower(chosen, "for", 1, types).workunit
    facts = [(20,), (9,)]
    for _ in range(WALKED):
        assert not was_looked_at(unit, Space((0,), (5,)), facts)
        look_at(unit, Space((0,), (5,)), facts)
    assert was_looked_at(unit, Space((0,), (5,)), facts)


def test_the_part_of_a_box_that_needs_no_look() -> None:
    unit = unit_of(shifted)
    space, facts, box = Space((2,), (5,)), [(20,), 3], [(0, 9), (0, 9), (-9, 9)]

    def part() -> list[tuple[int, int]]:
        return between_looks(unit, space, facts, [1], box)

    assert all(low > high for low, high in part())
    for _ in range(LOOKED):
        look_at(unit, space, facts)
    assert part() == [(2, 3), (4, 7), (2, 3)]
    look_at(unit, Space((0,), (20,)), [(20,), -1])
    assert part() == [(0, 3), (4, 9), (-1, 3)]
