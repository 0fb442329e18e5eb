"""`max` and `min` of workunits are Python's: each workunit is run, and called as Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.ir.canonical import canonical
from pyfuser.ir.dtypes import DType
from pyfuser.ir.reference.interpret import interpret
from pyfuser.ir.verify import verify
from pyfuser.lower.lower import ViewType, lower
from pyfuser.support.errors import WorkunitError
from tests.codegen.test_pykokkos import lowered_again

NUMBERS = [0.0, -0.0, 1.5, -2.5, math.inf, -math.inf, math.nan, 3.0]
PAIRS = [(x, y) for x in NUMBERS for y in NUMBERS]
N = len(PAIRS)


@pk.workunit
def of_numbers(i, y, a, b):
    y[i] = max(a[i], b[i])


@pk.workunit
def least_of_numbers(i, y, a, b):
    y[i] = min(a[i], b[i], 0.5)


@pk.workunit
def most_of_four(i, y, a, b):
    y[i] = max(a[i], 0, b[i], i - 3)


@pk.workunit
def clipped(i, y, a, b):
    y[i] = min(max(a[i], -1), 1) + max(0.0, min(b[i] * 2.0, a[i]))


@pk.workunit
def in_a_condition(i, y, a, b):
    y[i] = 0.0
    if i > 2 and max(a[i], b[i], 0.0) > 1:
        y[i] = 1.0


@pk.workunit
def neighbours(i, y, a, b):
    y[i] = 0.0
    for k in range(max(i - 2, 0), min(i + 3, 64)):
        y[i] += k


@pk.workunit
def as_subscripts(i, y, a, b):
    y[i] = a[max(i - 1, 0)] + b[min(i + 1, 63)]


UNITS = [
    of_numbers, least_of_numbers, most_of_four, clipped, in_a_condition, neighbours, as_subscripts,
]  # fmt: skip


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.__name__)
def test_results_are_pythons(unit: Any) -> None:
    a, b = (np.array(part) for part in zip(*PAIRS, strict=True))
    found, expected = np.zeros(N), np.zeros(N)
    with np.errstate(invalid="ignore"):
        for i in range(N):
            unit(i, expected, a, b)
    pk.parallel_for(N, unit, y=found, a=a, b=b)
    np.testing.assert_array_equal(found, expected)
    assert (np.signbit(found) == np.signbit(expected))[~np.isnan(expected)].all()


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.__name__)
def test_the_emitted_source_means_the_same(unit: Any) -> None:
    """PyKokkos' translator has no choices in expressions: they become statements, once."""
    view = ViewType(DType.FLOAT64, 1)
    original = lower(unit, "for", 1, dict.fromkeys("yab", view)).workunit
    verify(original)
    again = lowered_again(original)
    assert canonical(lowered_again(again)) == canonical(again)
    found = []
    for each in (original, again):
        a, b = (np.array(part) for part in zip(*PAIRS, strict=True))
        found.append(np.zeros(N))
        with np.errstate(invalid="ignore"):
            interpret(each, "for", (0,), (N,), (found[-1], a, b))
    np.testing.assert_array_equal(*found)


INTEGERS = [-(2**31), -7, -1, 0, 1, 5, 2**31 - 1]


@pk.workunit
def of_integers(i, y, a, b):
    y[i] = max(a[i], b[i], -5) - min(a[i], 3)


@pytest.mark.parametrize("kinds", [("int32", "int64"), ("int64", "int64"), ("int64", "uint8")])
def test_integers(kinds: tuple[str, str]) -> None:
    a = np.array(INTEGERS, kinds[0])
    b = np.array([abs(n) % 200 for n in INTEGERS], kinds[1])
    found = np.zeros(len(a), np.int64)
    pk.parallel_for(len(a), of_integers, y=found, a=a, b=b)
    expected = [max(x, y, -5) - min(x, 3) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert found.tolist() == expected


def signed_and_unsigned(i, v, u):
    v[i] = max(u[i], i - 3)


def signed_and_a_positive_number(i, v, u):
    v[i] = max(u[i], 3)


def one(i, v, u):
    v[i] = max(v[i])


def named(i, v, u):
    v[i] = max(v[i], 1, key=abs)


def of_a_library(i, v, u):
    v[i] = np.max(v[i], 1)


REFUSED = {
    signed_and_unsigned: "of signed and unsigned integers",
    one: "takes two numbers or more",
    named: "takes two numbers or more",
    of_a_library: "use max\\(a, b\\)",
}
TYPES = {"v": ViewType(DType.FLOAT64, 1), "u": ViewType(DType.UINT32, 1)}


@pytest.mark.parametrize("unit", REFUSED, ids=lambda unit: unit.__name__)
def test_what_is_refused(unit: Callable[..., None]) -> None:
    with pytest.raises(WorkunitError, match=REFUSED[unit]):
        lower(unit, "for", 1, TYPES)


def test_a_positive_number_is_unsigned_too() -> None:
    lower(signed_and_a_positive_number, "for", 1, TYPES)


def test_the_programs_own_function_comes_first() -> None:
    def max(a: float, b: float) -> float:
        return a + b

    @pk.workunit
    def own(i, y):
        y[i] = max(1.0, 2.0)

    y = np.zeros(1)
    pk.parallel_for(1, own, y=y)
    assert y[0] == 3.0
