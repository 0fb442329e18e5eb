"""Columns: loops under conditions, and beside loops that stay as they are."""
# ruff: noqa: F821

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.kernel import spec_of
from pyfuser.nest.build import nest_of
from pyfuser.nest.passes.columns import columns_of
from pyfuser.nest.passes.scalar_expansion import Branch, Part, Trips
from tests.codegen.build import Case, case
from tests.codegen.test_columns import M, in_columns, on, table, unchanged, weights

SIZES = [15, 16, 75]


def parts(given: Case) -> tuple[Part, ...]:
    found = columns_of(nest_of(spec_of(given.kernel)))
    assert found is not None
    return found.parts


def sometimes(i, x, z, y, w, m):
    value: float = 0.0
    if y[i] > 0.0:
        for j in range(m):
            value += x[j][i]
    y[i] = value


def changing_guard(i, x, z, y, w, m):
    """What the condition asks for changes in the loop, and the other side has its own loop."""
    if y[i] > 0.0:
        for j in range(m):
            y[i] = y[i] - x[j][i] * w[j]
            x[j][i] = y[i]
    else:
        last: float = 1.0
        for j in range(m):
            last = 0.5 * last + x[j][i]
        y[i] = last + 4.0


def condition_in_condition(i, x, z, y, w, m):
    value: float = 0.0
    if y[i] > -0.5:
        top: float = y[i]
        y[i] = -y[i]
        if y[i] > 0.0 or top > 1.0:
            for j in range(m):
                value = 0.5 * value + x[j][i]
        else:
            value = top
            for j in range(1, m):
                z[j][i] = z[j - 1][i] - value
        y[i] = y[i] + value


def in_trips(i, x, z, y, w, m):
    for k in range(m):
        if z[k][i] > 0.0:
            value: float = 0.25
            for j in range(m):
                value += x[j][i] * w[k]
            z[k][i] = value


def one_side(i, x, z, y, w, m):
    if i % 3 == 1:
        y[i] = 2.0
    else:
        for j in range(m):
            x[j][i] = x[j][i] + y[i]


def kept_in_a_branch(i, x, z, y, w, m):
    if y[i] > 0.0:
        d: List[float] = [0.0, 0.0, 0.0]
        for j in range(m):
            d[j % 3] += x[j][i]
        y[i] = d[0] - d[1] * d[2]


BRANCHES = [
    sometimes, changing_guard, condition_in_condition, in_trips, one_side, kept_in_a_branch,
]  # fmt: skip


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("work", BRANCHES)
def test_loops_under_conditions_keep_their_bits(work: Callable[..., None], n: int) -> None:
    given = on(work, n)
    assert in_columns(given)
    unchanged(given)


@pytest.mark.parametrize("share", [0.0, 0.05, 0.25, 0.3, 1.0])
@pytest.mark.parametrize("work", BRANCHES)
def test_branches_that_few_or_many_take(work: Callable[..., None], share: float) -> None:
    n = 300

    def arguments() -> list[Any]:
        asks = np.where(np.random.default_rng(5).random(n) < share, 1.5, -1.5)
        return [table(n), table(n, 1) + asks, asks, weights(), M]

    unchanged(case(work, [n], arguments))


def same_for_all(i, x, z, y, w, m):
    if m > 5:
        value: float = 0.0
        for j in range(m):
            value += x[j][i]
        y[i] = value
    else:
        for j in range(m):
            z[j][i] = y[i]


@pytest.mark.parametrize("m", [3, 9])
def test_conditions_that_are_the_same_for_all(m: int) -> None:
    given = case(same_for_all, [40], lambda: [table(40), table(40, 1), weights(rows=40), 0, m])
    tests = [part.test for part in parts(given) if isinstance(part, Branch)]
    assert len(tests) == 2
    assert None not in tests
    unchanged(given)
    (branch,) = [part for part in parts(on(sometimes, 40)) if isinstance(part, Branch)]
    assert branch.test is None


def divided(i, x, y, m, k):
    """Where no iteration takes the branch nobody divides by zero."""
    if y[i] > 0.0:
        for j in range(m // k):
            y[i] = y[i] + x[j][i]


@pytest.mark.parametrize(("k", "least"), [(0, -9.0), (2, 0.5)])
def test_bounds_are_computed_for_those_who_ask(k: int, least: float) -> None:
    given = case(divided, [40], lambda: [table(40), np.full(40, least), M, k])
    assert in_columns(given)
    unchanged(given)


def summed_sometimes(i, acc, x, z, y, w, m):
    if y[i] > 0.0:
        value: float = 0.0
        for j in range(m):
            value += x[j][i]
        acc += value
    for j in range(m):
        z[j][i] = x[j][i] * w[j]


def sum_of_branches(i, acc, x, z, y, w, m):
    value: float = 0.0
    if y[i] > 0.0:
        for j in range(m):
            value += x[j][i]
    else:
        for j in range(m):
            value -= x[j][i]
    acc += value


@pytest.mark.parametrize("work", [summed_sometimes, sum_of_branches])
def test_sums_beside_branches(work: Callable[..., None]) -> None:
    given = on(work, 700, "reduce")
    assert in_columns(given)
    unchanged(given)
    branches = [part for part in parts(given) if isinstance(part, Branch)]
    assert bool(branches) == (work is sum_of_branches)  # sums under conditions stay as they are


# --------------------------------------------------------------------------- others beside them


def beside_a_while(i, x, z, y, w, m):
    value: float = 0.0
    k: int = 0
    while k < m:
        value += x[k][i]
        k += 1
    for j in range(m):
        z[j][i] = x[j][i] * value
    for j in range(m):
        if x[j][i] > 1.0:
            break
        value += x[j][i]
    for j in range(i % m):
        value += x[j][i]
    y[i] = value


def test_loops_across_rows_stay_as_they_are_beside_others() -> None:
    given = on(beside_a_while, 40)
    assert sum(isinstance(part, Trips) for part in parts(given)) == 1
    unchanged(given)


def rows_then_columns(i, x, z, y, w, m):
    """Only what is between the two loops along one row stays as it is."""
    value: float = 0.0
    for k in range(m):
        value += z[i][k]
    for j in range(m):
        value += x[j][i]
    for k in range(m):
        z[i][k] = value
    for j in range(m):
        x[j][i] = value


def begun_then_columns(i, x, z, y, w, m):
    """Only what is between the uses of an array that a strip cannot have stays as it is."""
    d: List[float] = [0.0, 1.0, 0.0]
    for j in range(m):
        d[j % 3] += x[j][i]
    y[i] = d[0] + d[1] * d[2]
    for j in range(m):
        x[j][i] = x[j][i] * y[i]


def triangle_in_trips(i, x, z, y, w, m):
    """A loop in a trip that walks through the column on its own keeps its loop as it is."""
    for k in range(m):
        value: float = 0.0
        for j in range(i % m):
            value += x[j][i]
        z[k][i] = value
    for j in range(m):
        x[j][i] = x[j][i] * w[j]


@pytest.mark.parametrize("work", [rows_then_columns, begun_then_columns, triangle_in_trips])
def test_what_stays_as_it_is_costs_others_nothing(work: Callable[..., None]) -> None:
    given = on(work, M)
    assert sum(isinstance(part, Trips) for part in parts(given)) == 1
    unchanged(given)


def one_after_the_other(i, x, z, y, w, m):
    first: float = 0.0
    for j in range(m):
        first += x[j][i]
    y[i] = first
    second: float = 0.5
    for j in range(m):
        second = 0.5 * second - x[j][i]
    z[0][i] = second


def both_at_once(i, x, z, y, w, m):
    first: float = 0.0
    for j in range(m):
        first += x[j][i]
    second: float = 0.5
    for j in range(m):
        second = 0.5 * second - x[j][i] + first
    z[0][i] = second


def test_locals_share_an_array_if_one_is_dead() -> None:
    for work, arrays in ((one_after_the_other, 1), (both_at_once, 2)):
        given = on(work, 40)
        found = columns_of(nest_of(spec_of(given.kernel)))
        assert found is not None
        assert len(found.arrays) == 2
        assert len(set(found.arrays.values())) == arrays
        assert found.bytes == 8 * arrays
        unchanged(given)
