"""Sums with several terms a trip: of exactly the terms that are written, added in that order."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent, indent
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.c.statements import SCALAR
from pyfuser.codegen.cpu.unit import emit
from pyfuser.codegen.kernel import spec_of
from tests.codegen.build import Case, as_interpreted, case, from_text

ROWS, N = 16, 37


def bodies(head: str, texts: dict[str, str]) -> dict[str, Callable[..., None]]:
    return {
        name: from_text(f"def {name}({head}):\n{indent(dedent(text), '    ')}\n")
        for name, text in texts.items()
    }


def trips(text: str) -> str:
    """A sum over trips of these statements."""
    return f"total: float = 0.0\nfor k in range(n):\n{indent(text, '    ')}\ns[i] = total"


SEVERAL = bodies("i, s, x, n", {
    "backwards": trips("total = total + x[i][2 * k + 1]\ntotal = total + x[i][2 * k]"),
    "in_one_expression": trips("total = total + x[i][3 * k + 2] + x[i][3 * k] + x[i][3 * k + 1]"),
    "by_another_local": trips(
        "part: float = total + x[i][2 * k + 1]\ntotal = part + x[i][2 * k]"
    ),
    "in_memory": "for k in range(n):\n    s[i] += x[i][2 * k + 1]\n    s[i] += x[i][2 * k]",
    "stored_again": """
        for k in range(n):
            s[i] = s[i] + x[i][2 * k + 1]
            s[i] = x[i][2 * k] + s[i]""",
    "in_an_array": """
        totals: List[float] = [0.0, 0.0]
        for k in range(n):
            totals[1] = totals[1] + x[i][2 * k + 1]
            totals[1] = totals[1] + x[i][2 * k]
        s[i] = totals[1]""",
    "by_an_inner_loop": trips("for m in range(3):\n    total += x[i][3 * k + 2 - m]"),
    "of_products": trips(
        "total = total + x[i][2 * k + 1] * x[i][2 * k + 1]\n"
        "total = total + x[i][2 * k] * x[i][2 * k]"
    ),
    "until": """
        total: float = 0.0
        k: int = 0
        while k < n:
            total = total + x[i][2 * k + 1]
            total = total + x[i][2 * k]
            k += 1
        s[i] = total""",
    "under_a_condition": trips("""\
if i > 1:
    total = total + x[i][2 * k + 1]
    total = total + x[i][2 * k]
else:
    total = 1.0"""),
})  # fmt: skip
FEW = bodies("i, s, x, n", {
    "one_a_trip": trips("total = total + (x[i][2 * k + 1] - x[i][2 * k])"),
    "two_sums": "other: float = 0.0\n"
    + trips("total = total + x[i][2 * k + 1]\nother = other + x[i][2 * k]") + " - other",
    "begun_anew": trips("""\
total = x[i][2 * k + 1]
total = total + x[i][2 * k] + 1.0
x[i][2 * k] = total"""),
    "at_places_of_their_own": """
        for k in range(n):
            x[i][k] += x[i][k + n]
            x[i][k] += x[i][k + 2 * n]
        s[i] = x[i][0]""",
    "used_otherwise": trips("total = 0.5 * (total + x[i][2 * k + 1]) + x[i][2 * k]"),
})  # fmt: skip


def of(work: Callable[..., None], dtype: str = "float64") -> Case:
    def arguments() -> list[Any]:
        x = np.random.default_rng(3).uniform(-4, 4, (ROWS, 3 * N)).astype(dtype)
        return [np.zeros(ROWS, dtype), x, N]

    return case(work, [ROWS], arguments)


def without_vectors(given: Case) -> bool:
    return SCALAR in emit(spec_of(given.kernel))


@pytest.mark.parametrize(
    ("work", "dtype"),
    [(work, "float64") for work in SEVERAL]
    + [("backwards", "float32"), ("in_memory", "complex64"), ("stored_again", "complex128")],
)
def test_several_terms_a_trip(work: str, dtype: str) -> None:
    given = of(SEVERAL[work], dtype)
    assert without_vectors(given)
    as_interpreted(given)


def test_iterations_side_by_side() -> None:
    """The rule looks into the trips of jammed iterations, each of which is a scope."""
    code = emit(spec_of(of(SEVERAL["backwards"]).kernel))
    jammed = code[code.index("if (lanes == 8)") : code.index("} else {")]
    assert jammed.count(SCALAR) == code.count(SCALAR) - jammed.count(SCALAR) == 1


@pytest.mark.parametrize("work", FEW)
def test_other_loops_may_have_vectors(work: str) -> None:
    given = of(FEW[work])
    assert not without_vectors(given)
    as_interpreted(given)


def test_sums_of_integers_may_have_vectors() -> None:
    given = of(SEVERAL["in_memory"], "int64")
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


def guarded(text: str) -> str:
    return f"if x[i][90] != 77:\n{indent(dedent(text), '    ')}"


OF_INTEGERS = bodies("i, s, x, z", {
    "in_locals": guarded("""
        first: pk.cpp_auto = z[i]
        second: pk.cpp_auto = z[i]
        third: pk.cpp_auto = z[i]
        for k in range(40):
            first += x[i][2 * k]
            second += x[i][2 * k + 1]
            third += x[i][2 * k]
        s[i] = (first & 255) + 7 * (second & 255) + 13 * (third & 127)"""),
    "by_other_locals": guarded("""
        first: pk.cpp_auto = z[i]
        second: pk.cpp_auto = z[i]
        for k in range(40):
            one: pk.cpp_auto = first + x[i][k]
            other: pk.cpp_auto = second + x[i][k]
            first = one
            second = other if other != 3 else one
        s[i] = (first & 255) + 7 * (second & 255)"""),
    "in_elements": guarded("""
        for k in range(40):
            z[2 * i] += x[i][2 * k]
            z[2 * i + 1] += x[i][2 * k + 1]
        s[i] = (z[2 * i] & 255) + 7 * (z[2 * i + 1] & 255)"""),
    "one_sum": guarded("""
        first: pk.cpp_auto = z[i]
        for k in range(40):
            first += x[i][k]
        s[i] = first & 255"""),
    "elements_of_their_own": guarded("""
        for k in range(40):
            z[40 * i + k] += x[i][k]
            z[40 * i + k] -= x[i][k + 1]
        s[i] = z[40 * i]"""),
})  # fmt: skip


def of_integers(work: str, total: str, term: str) -> Case:
    def arguments() -> list[Any]:
        limits = np.iinfo(term)
        x = np.random.default_rng(3).integers(limits.min, limits.max, (ROWS, 96), term)
        return [np.zeros(ROWS, "int64"), x, np.arange(40 * ROWS).astype(total)]

    return case(OF_INTEGERS[work], [ROWS], arguments)


@pytest.mark.parametrize("work", ["in_locals", "by_other_locals", "in_elements"])
@pytest.mark.parametrize(
    ("total", "term"),
    [("uint8", "int8"), ("int16", "uint32"), ("int32", "uint64")],
)
def test_integers_that_are_computed_in_another_larger_type(
    work: str, total: str, term: str
) -> None:
    """g++ 12 makes wrong vectors of some of these loops (GCC's bug 107212)."""
    given = of_integers(work, total, term)
    assert without_vectors(given)
    as_interpreted(given)


@pytest.mark.parametrize(
    ("work", "total", "term"),
    [("in_locals", "int8", "int8"), ("in_locals", "int8", "uint8"),
     ("in_elements", "int8", "int16"), ("one_sum", "uint8", "int8"),
     ("elements_of_their_own", "uint8", "int8")],
)  # fmt: skip
def test_integers_that_g_adds_in_their_type(work: str, total: str, term: str) -> None:
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
