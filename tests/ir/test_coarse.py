"""Coarsened workunits compute what they did, row by row."""

from __future__ import annotations

import numpy as np
import pytest

from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Assign, Binary, Cast, Workunit
from pyfuser.ir.reference.interpret import interpret
from pyfuser.ir.verify import verify
from pyfuser.ir.visit import all_expressions
from pyfuser.lower.lower import ScalarType, ViewType, lower
from pyfuser.plan.rewrites.coarse_body import boxed, folded, split
from tests.analysis.build import E, S, View
from tests.analysis.build import workunit as by_hand

ROWS, C = 5, 4
VIEW, WHOLE = ViewType(DType.FLOAT64, 1), ScalarType(DType.INT32)


def by_row(k, x, y, c):
    row: int = k // c
    x[k] = y[row] + k % c


def by_constant(k, x, y, c):
    x[k] = y[k // 4] + k % 4 + k


def by_another_number(k, x, y, c):
    x[k] = y[k // (c + 1)] + k % 3


def from_behind(k, x, y, c):
    k = 19 - k
    x[k] = y[k // c] + k % c


def by_less_than_nothing(k, x, y, c):
    x[k] = y[0] + (k - 7) % c + (k - 7) // c


def workunit(function, rank: int = 1) -> Workunit:
    types = {"x": ViewType(DType.FLOAT64, rank), "y": VIEW, "c": WHOLE}
    return lower(function, "for", rank, types).workunit


def ran(unit: Workunit, begin: tuple[int, ...], end: tuple[int, ...], x: np.ndarray) -> np.ndarray:
    verify(unit)
    interpret(unit, "for", begin, end, [x, np.arange(ROWS) * 100.0, C], order=3)
    return x


def quotients(unit: Workunit) -> int:
    return sum(isinstance(e, Binary) and e.op in ("/", "%") for e in all_expressions(unit.body))


@pytest.mark.parametrize(
    ("function", "left"),
    [
        (by_row, 0),
        (by_constant, 0),
        (by_another_number, 2),
        (from_behind, 2),
        (by_less_than_nothing, 2),
    ],
)
def test_split(function, left):
    """Quotients by the factor of the index itself, and no others, are rows and columns."""
    unit = workunit(function)
    coarse = split(unit, C, ROWS * C, {unit.params[2].sym: C})
    expected = ran(unit, (0,), (ROWS * C,), np.zeros(ROWS * C))
    np.testing.assert_array_equal(ran(coarse, (0,), (ROWS,), np.zeros(ROWS * C)), expected)
    assert quotients(coarse) == left


@pytest.mark.parametrize(
    ("function", "left"),
    [(by_row, 0), (by_constant, 0), (by_another_number, 2), (by_less_than_nothing, 2)],
)
def test_boxed(function, left):
    unit = workunit(function)
    box = boxed(unit, C, ROWS * C, {unit.params[2].sym: C})
    expected = ran(unit, (0,), (ROWS * C,), np.zeros(ROWS * C))
    np.testing.assert_array_equal(ran(box, (0, 0), (ROWS, C), np.zeros(ROWS * C)), expected)
    assert quotients(box) == left


def test_a_scalar_that_nobody_knows_is_no_factor():
    unit = workunit(by_row)
    assert quotients(split(unit, C, ROWS * C, {})) == 2
    assert quotients(split(unit, C, ROWS * C, {unit.params[2].sym: 2})) == 2


def test_an_index_that_changes_is_no_row():
    k, x = S("k"), View("x")
    body = [Assign(k.sym, (ROWS * C - 1 - k).node), x[k] << (k // C).cast(DType.FLOAT64)]
    unit = by_hand("w", [k], [x], body)
    coarse = split(unit, C, ROWS * C, {})
    expected, found = np.zeros(ROWS * C), np.zeros(ROWS * C)
    interpret(unit, "for", (0,), (ROWS * C,), [expected])
    interpret(coarse, "for", (0,), (ROWS,), [found])
    np.testing.assert_array_equal(found, expected)
    assert expected[-1] == ROWS - 1


def converted(dtype: DType, extent: int, factor: int) -> Workunit:
    """`k // factor` computed in another type, coarsened; both compute the same."""
    k, c, x = S("k"), S("c", DType.INT64), View("x")
    quotient = Binary("/", k.cast(dtype).node, Cast(c.node, dtype))
    unit = by_hand("w", [k], [c, x], [x[k] << E(Cast(quotient, DType.FLOAT64))])
    coarse = split(unit, factor, extent, {c.sym: factor})
    expected, found = np.zeros(extent), np.zeros(extent)
    interpret(unit, "for", (0,), (extent,), [factor, expected])
    interpret(coarse, "for", (0,), (extent // factor,), [factor, found])
    np.testing.assert_array_equal(found, expected)
    return coarse


def test_conversions_that_keep_all_values_are_looked_through():
    assert quotients(converted(DType.INT64, 20, 4)) == 0
    assert quotients(converted(DType.INT8, 20, 4)) == 0
    assert quotients(converted(DType.INT8, 400, 4)) == 1  # indices wrap
    assert quotients(converted(DType.FLOAT64, 20, 4)) == 1  # not a whole number


def test_a_folded_index_that_changes_counts_on():
    i, j, x = S("i"), S("j"), View("x", 2)
    body = [Assign(j.sym, (C - 1 - j).node), x[i, j] << (10 * i + j).cast(DType.FLOAT64)]
    unit = by_hand("w", [i, j], [x], body)
    expected, found = np.zeros((ROWS, C)), np.zeros((ROWS, C))
    interpret(unit, "for", (0, 0), (ROWS, C), [expected])
    interpret(folded(unit, ((0, C),)), "for", (0,), (ROWS,), [found])
    np.testing.assert_array_equal(found, expected)
    assert expected[-1, -1] == 10 * (ROWS - 1) + C - 1


def plane(i, j, x, y, c):
    x[i, j] = y[i] + j


def turned_plane(i, j, x, y, c):
    j = c - j
    x[i, j] = y[i] + j


@pytest.mark.parametrize("function", [plane, turned_plane])
def test_folded(function):
    unit = workunit(function, 2)
    expected = ran(unit, (1, 1), (ROWS, C), np.zeros((ROWS, C)))
    found = ran(folded(unit, ((1, C),)), (1,), (ROWS,), np.zeros((ROWS, C)))
    np.testing.assert_array_equal(found, expected)
    assert expected.any()
