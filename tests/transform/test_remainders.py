"""Remainders of what wraps at most once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyfuser.ir.nodes import Binary, Select
from pyfuser.ir.visit import all_expressions
from pyfuser.transform.kernel import Kernel
from pyfuser.transform.remainders import reduce_remainders
from tests.codegen.build import as_interpreted, case
from tests.transform.build import Program
from tests.transform.test_rows import outcome

N = 7


def before(i, b, a, n):
    b[i] = a[(i + n - 1) % n]


def before_swapped(i, b, a, n):
    b[i] = a[(n + i - 1) % n]


def after(i, b, a, n):
    b[i] = a[(i + 1) % n]


def after_local(i, b, a, n):
    k: int = i + 3
    b[i] = a[k % n]


def after_extent(i, b, a, n):
    b[i] = a[(i + 1) % a.extent(0)]


def inside(i, b, a, n):
    b[i] = a[i % n]


def constant(i, b, a, n):
    b[i] = a[n - 1 - (i + 2) % 7]


def either_way(i, b, a, n):
    total: float = 0.0
    for k in range(-2, 3):
        total += a[(i + k + n) % n]
    b[i] = total


def thrice(i, b, a, n):
    b[i] = a[(i + n + n + 1) % n]


def negative(i, b, a, n):
    b[i] = (i - n - 1) % n + a[i]


def changing(i, b, a, n):
    k: int = i
    for _ in range(3):
        k = k + 1
    b[i] = a[k % n]


def divisor_of_data(i, b, a, n):
    m: int = int(a[0]) + n
    b[i] = (i + 1) % m


def kernel_of(function: Callable[..., Any], **scalars: int) -> tuple[Kernel, int]:
    """The kernel after the pass, which computes what it did, and its remainders."""
    program = Program(N)
    program.call(function, b=np.zeros(N), a=np.arange(1.0, N + 1.0), n=N, **scalars)
    kernel = program.check()
    changed = reduce_remainders(kernel)
    for found, wanted in zip(outcome(program, changed), outcome(program, kernel), strict=True):
        np.testing.assert_array_equal(found, wanted)
    parts = all_expressions(changed.workunit.body)
    return changed, sum(isinstance(e, Binary) and e.op == "%" for e in parts)


@pytest.mark.parametrize(
    "function", [before, before_swapped, after, after_local, after_extent, constant]
)
def test_neighbours_on_a_ring_take_a_select(function: Callable[..., Any]) -> None:
    kernel, remainders = kernel_of(function)
    assert remainders == 0
    assert sum(isinstance(e, Select) for e in all_expressions(kernel.workunit.body)) == 1


def test_what_never_wraps_stays_itself() -> None:
    kernel, remainders = kernel_of(inside)
    assert remainders == 0
    assert not any(isinstance(e, Select) for e in all_expressions(kernel.workunit.body))


@pytest.mark.parametrize("function", [thrice, negative, changing, divisor_of_data])
def test_what_may_wrap_thrice_or_is_not_known_stays(function: Callable[..., Any]) -> None:
    assert kernel_of(function)[1] == 1


@pytest.mark.parametrize(("extent", "left"), [(2 * N - 1, 0), (2 * N, 1)])
def test_the_space_decides_how_often(extent: int, left: int) -> None:
    program = Program(extent)
    program.call(after, b=np.zeros(extent), a=np.arange(1.0, N + 1.0), n=N)
    kernel = reduce_remainders(program.check())
    parts = all_expressions(kernel.workunit.body)
    assert sum(isinstance(e, Binary) and e.op == "%" for e in parts) == left


def test_in_a_loop_either_end_may_be_passed() -> None:
    kernel, remainders = kernel_of(either_way)
    assert remainders == 0
    assert sum(isinstance(e, Select) for e in all_expressions(kernel.workunit.body)) == 2


@pytest.mark.parametrize("function", [before, after, either_way])
@pytest.mark.parametrize("extent", [1, 2, 3, 300])
def test_compiled_rings(function: Callable[..., Any], extent: int) -> None:
    rng = np.random.default_rng(2)
    a = rng.random(extent)
    given = case(function, [extent], lambda: [np.zeros(extent), a.copy(), extent])
    as_interpreted(replace(given, kernel=reduce_remainders(given.kernel)))
