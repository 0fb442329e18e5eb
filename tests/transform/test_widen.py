"""Subscripts in 64 bits: where nothing wraps, or where what wraps is no subscript."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Binary, Load, Sym
from pyfuser.ir.visit import all_expressions
from pyfuser.transform.widen import Proof
from tests.codegen.build import Case, as_interpreted, case

N = 8


def table(i, x, y, z):
    for f in range(4):
        z[i] += x[y[i] * 4 + f]


def table_from_its_end(i, x, y, z):
    for f in range(4):
        z[i] += x[f + y[i]]


def moved(i, x, y, z):
    z[i] += x[i + y[0]]


def half(i, x, y, z):
    for f in range(4):
        z[i] += x[(y[i] + f) // 2]


def difference(i, x, y, z):
    for f in range(4):
        z[i] += x[y[i] - f]


def product(i, x, y, z):
    for f in range(4):
        z[i] += x[y[i] * f]


def two_unknown(i, x, y, z):
    for f in range(4):
        z[i] += f * x[y[i] + y[0]]


def backwards(i, x, y, z):
    for f in range(-3, 4):
        z[i] += x[y[i] + f]


def written(i, x, y, z):
    for f in range(4):
        z[i] = y[i] + f


def of(function: Callable[..., None], x: np.ndarray, y: np.ndarray) -> Case:
    return case(function, [N], lambda: [x.copy(), y.copy(), np.zeros(N)])


def subscript_of(function: Callable[..., None]) -> list[Any]:
    found = of(function, np.arange(64.0), np.arange(4, 4 + N, dtype=np.int32))
    return [
        expr.indices[0]
        for expr in all_expressions(found.kernel.workunit.body)
        if isinstance(expr, Load) and expr.view.name == "x"
    ]


@pytest.mark.parametrize("function", [table, table_from_its_end, moved])
def test_a_sum_with_a_counter_wraps_out_of_bounds_alone(function: Callable[..., None]) -> None:
    (index,) = subscript_of(function)
    assert isinstance(index, Binary) and index.left.dtype is DType.INT64


@pytest.mark.parametrize("function", [half, difference, product, two_unknown, backwards])
def test_what_may_wrap_into_bounds_stays_narrow(function: Callable[..., None]) -> None:
    """Also where the sum is no subscript itself, or its counter may be negative."""
    (index,) = subscript_of(function)
    assert not isinstance(index, Binary) and index.operand.dtype is DType.INT32


@pytest.mark.parametrize("function", [table, table_from_its_end, moved, half, two_unknown])
def test_widened_subscripts_touch_the_same(function: Callable[..., None]) -> None:
    y = np.array([5, 0, 3, 2, 7, 1, 4, 6], np.int32)
    as_interpreted(of(function, np.random.default_rng(1).random(64), y))


def test_values_still_wrap() -> None:
    y = np.full(N, 2**31 - 2, np.int32)
    as_interpreted(of(written, np.zeros(1), y))


def test_sums_that_wrap_into_bounds_still_do() -> None:
    """-2^31 + -2^31 is 0."""
    y = np.full(N, -(2**31), np.int32)
    as_interpreted(of(two_unknown, np.arange(1.0, 9.0), y))


def test_a_proof_covers_ranges_of_the_same_symbols_within_its_own() -> None:
    a, b = Sym("a", 0, DType.INT32), Sym("b", 1, DType.INT32)
    proof = Proof(
        {a: (0, 9), b: (-5, 5)},
        of(table, np.arange(64.0), np.arange(4, 4 + N, dtype=np.int32)).kernel.workunit,
    )
    assert proof.covers({a: (0, 9), b: (-5, 5)}) and proof.covers({a: (3, 3), b: (0, 1)})
    for other in [
        {a: (0, 9)},
        {a: (-1, 9), b: (0, 0)},
        {a: (0, 10), b: (0, 0)},
        {a: (0, 9), b: (-6, 0)},
        {a: (0, 9), b: (0, 6)},
        {a: (0, 9), Sym("b", 2, DType.INT32): (0, 0)},
    ]:
        assert not proof.covers(other)
    more = {a: (0, 9), b: (0, 0), Sym("c", 2, DType.INT32): (0, 0)}
    assert not proof.covers(more)
