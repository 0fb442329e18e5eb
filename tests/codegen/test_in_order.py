"""Sums with several terms a trip: of exactly the terms that are written, added in that order."""
# ruff: noqa: F821

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.c.statements import SCALAR
from pyfuser.codegen.cpu.unit import emit
from pyfuser.codegen.kernel import spec_of
from tests.codegen.build import Case, as_interpreted, case

ROWS, N = 16, 37


def backwards(i, s, x, n):
    total: float = 0.0
    for k in range(n):
        total = total + x[i][2 * k + 1]
        total = total + x[i][2 * k]
    s[i] = total


def in_one_expression(i, s, x, n):
    total: float = 0.0
    for k in range(n):
        total = total + x[i][3 * k + 2] + x[i][3 * k] + x[i][3 * k + 1]
    s[i] = total


def by_another_local(i, s, x, n):
    total: float = 0.0
    for k in range(n):
        part: float = total + x[i][2 * k + 1]
        total = part + x[i][2 * k]
    s[i] = total


def in_memory(i, s, x, n):
    for k in range(n):
        s[i] += x[i][2 * k + 1]
        s[i] += x[i][2 * k]


def stored_again(i, s, x, n):
    for k in range(n):
        s[i] = s[i] + x[i][2 * k + 1]
        s[i] = x[i][2 * k] + s[i]


def in_an_array(i, s, x, n):
    totals: List[float] = [0.0, 0.0]
    for k in range(n):
        totals[1] = totals[1] + x[i][2 * k + 1]
        totals[1] = totals[1] + x[i][2 * k]
    s[i] = totals[1]


def by_an_inner_loop(i, s, x, n):
    total: float = 0.0
    for k in range(n):
        for m in range(3):
            total += x[i][3 * k + 2 - m]
    s[i] = total


def of_products(i, s, x, n):
    total: float = 0.0
    for k in range(n):
        total = total + x[i][2 * k + 1] * x[i][2 * k + 1]
        total = total + x[i][2 * k] * x[i][2 * k]
    s[i] = total


def until(i, s, x, n):
    total: float = 0.0
    k: int = 0
    while k < n:
        total = total + x[i][2 * k + 1]
        total = total + x[i][2 * k]
        k += 1
    s[i] = total


def under_a_condition(i, s, x, n):
    total: float = 0.0
    for k in range(n):
        if i > 1:
            total = total + x[i][2 * k + 1]
            total = total + x[i][2 * k]
        else:
            total = 1.0
    s[i] = total


SEVERAL = [
    backwards, in_one_expression, by_another_local, in_memory, stored_again, in_an_array,
    by_an_inner_loop, of_products, until, under_a_condition,
]  # fmt: skip


def one_a_trip(i, s, x, n):
    total: float = 0.0
    for k in range(n):
        total = total + (x[i][2 * k + 1] - x[i][2 * k])
    s[i] = total


def two_sums(i, s, x, n):
    total: float = 0.0
    other: float = 0.0
    for k in range(n):
        total = total + x[i][2 * k + 1]
        other = other + x[i][2 * k]
    s[i] = total - other


def begun_anew(i, s, x, n):
    total: float = 0.0
    for k in range(n):
        total = x[i][2 * k + 1]
        total = total + x[i][2 * k] + 1.0
        x[i][2 * k] = total
    s[i] = total


def at_places_of_their_own(i, s, x, n):
    for k in range(n):
        x[i][k] += x[i][k + n]
        x[i][k] += x[i][k + 2 * n]
    s[i] = x[i][0]


def used_otherwise(i, s, x, n):
    total: float = 0.0
    for k in range(n):
        total = 0.5 * (total + x[i][2 * k + 1]) + x[i][2 * k]
    s[i] = total


FEW = [one_a_trip, two_sums, begun_anew, at_places_of_their_own, used_otherwise]


def of(work: Callable[..., None], dtype: str = "float64") -> Case:
    def arguments() -> list[Any]:
        x = np.random.default_rng(3).uniform(-4, 4, (ROWS, 3 * N)).astype(dtype)
        return [np.zeros(ROWS, dtype), x, N]

    return case(work, [ROWS], arguments)


def without_vectors(given: Case) -> bool:
    return SCALAR in emit(spec_of(given.kernel))


@pytest.mark.parametrize(
    ("work", "dtype"),
    [(work, dtype) for work in SEVERAL for dtype in ("float64", "float32")]
    + [(in_memory, "complex64"), (stored_again, "complex128")],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_several_terms_a_trip(work: Callable[..., None], dtype: str) -> None:
    given = of(work, dtype)
    assert without_vectors(given)
    as_interpreted(given)


def test_iterations_side_by_side() -> None:
    """The rule looks into the trips of jammed iterations, each of which is a scope."""
    code = emit(spec_of(of(backwards).kernel))
    jammed = code[code.index("if (lanes == 8)") : code.index("} else {")]
    assert jammed.count(SCALAR) == code.count(SCALAR) - jammed.count(SCALAR) == 1


@pytest.mark.parametrize("work", FEW, ids=lambda work: work.__name__)
def test_other_loops_may_have_vectors(work: Callable[..., None]) -> None:
    given = of(work)
    assert not without_vectors(given)
    as_interpreted(given)


def test_sums_of_integers_may_have_vectors() -> None:
    given = of(in_memory, "int64")
    assert not without_vectors(given)
    as_interpreted(given)


@pytest.mark.parametrize(("dtype", "apart"), [("uint32", True), ("int32", False)])
def test_integers_that_unsigned_elements_are_added_to(dtype: str, apart: bool) -> None:
    """As in GCC's bug 107212, where the first comparison was wrong."""

    def work(i, s, x):
        first: int = 0
        second: int = 0
        third: int = 0
        for k in range(8):
            first += x[i][5 * k]
            second += x[i][5 * k + 3]
            third += x[i][5 * k]
        if first < 100 or first > 200:
            s[i] = 1.0
        if first != second:
            s[i] += 2.0
        s[i] += 4.0 * third

    def arguments() -> list[Any]:
        x = np.random.default_rng(3).integers(0, 90, (ROWS, 64)).astype(dtype)
        return [np.zeros(ROWS), x]

    given = case(work, [ROWS], arguments)
    assert without_vectors(given) == apart
    as_interpreted(given)


def in_locals(i, s, x, z):
    if x[i][90] != 77:
        first: pk.cpp_auto = z[i]
        second: pk.cpp_auto = z[i]
        third: pk.cpp_auto = z[i]
        for k in range(40):
            first += x[i][2 * k]
            second += x[i][2 * k + 1]
            third += x[i][2 * k]
        s[i] = (first & 255) + 7 * (second & 255) + 13 * (third & 127)


def by_other_locals(i, s, x, z):
    if x[i][90] != 77:
        first: pk.cpp_auto = z[i]
        second: pk.cpp_auto = z[i]
        for k in range(40):
            one: pk.cpp_auto = first + x[i][k]
            other: pk.cpp_auto = second + x[i][k]
            first = one
            second = other if other != 3 else one
        s[i] = (first & 255) + 7 * (second & 255)


def in_elements(i, s, x, z):
    if x[i][90] != 77:
        for k in range(40):
            z[2 * i] += x[i][2 * k]
            z[2 * i + 1] += x[i][2 * k + 1]
        s[i] = (z[2 * i] & 255) + 7 * (z[2 * i + 1] & 255)


def one_sum(i, s, x, z):
    if x[i][90] != 77:
        first: pk.cpp_auto = z[i]
        for k in range(40):
            first += x[i][k]
        s[i] = first & 255


def elements_of_their_own(i, s, x, z):
    if x[i][90] != 77:
        for k in range(40):
            z[40 * i + k] += x[i][k]
            z[40 * i + k] -= x[i][k + 1]
        s[i] = z[40 * i]


def of_integers(work: Callable[..., None], total: str, term: str) -> Case:
    def arguments() -> list[Any]:
        limits = np.iinfo(term)
        x = np.random.default_rng(3).integers(limits.min, limits.max, (ROWS, 96), term)
        return [np.zeros(ROWS, "int64"), x, np.arange(40 * ROWS).astype(total)]

    return case(work, [ROWS], arguments)


@pytest.mark.parametrize("work", [in_locals, by_other_locals, in_elements])
@pytest.mark.parametrize(
    ("total", "term"),
    [("uint8", "int8"), ("int16", "uint32"), ("int32", "uint64"), ("uint32", "int64"),
     ("uint16", "int16"), ("int32", "uint32")],
)  # fmt: skip
def test_integers_that_are_computed_in_another_larger_type(
    work: Callable[..., None], total: str, term: str
) -> None:
    """g++ 12 makes wrong vectors of some of these loops (GCC's bug 107212)."""
    given = of_integers(work, total, term)
    assert without_vectors(given)
    as_interpreted(given)


@pytest.mark.parametrize(
    ("work", "total", "term"),
    [(in_locals, "int8", "int8"), (in_locals, "int8", "uint8"), (in_elements, "int8", "int16"),
     (one_sum, "uint8", "int8"), (elements_of_their_own, "uint8", "int8")],
)  # fmt: skip
def test_integers_that_g_adds_in_their_type(
    work: Callable[..., None], total: str, term: str
) -> None:
    given = of_integers(work, total, term)
    assert not without_vectors(given)
    as_interpreted(given)


def test_the_sum_of_a_scan() -> None:
    def work(i, acc, last, x):
        acc += x[2 * i + 1]
        acc += x[2 * i]

    def once(i, acc, last, x):
        acc += x[2 * i + 1] + x[2 * i]

    for function, apart in ((work, True), (once, False)):
        given = case(function, [N], lambda: [np.arange(2.0 * N)], "scan")
        assert without_vectors(given) == apart
        as_interpreted(given, rtol=0.0)


def test_a_serial_loop() -> None:
    def work(i, s, x):
        s[0] += x[2 * i + 1]
        s[0] += x[2 * i]

    for space, apart in (("Serial", True), ("OpenMP", False)):  # the second one is a race
        given = case(work, [N], lambda: [np.zeros(1), np.arange(2.0 * N)], execution=space)
        assert without_vectors(given) == apart
        if apart:
            as_interpreted(given)
