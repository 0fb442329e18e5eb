"""Branches that become selections, and locals that are renamed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pykokkos as pk
import pytest

from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Assign,
    Body,
    Compare,
    Const,
    Declare,
    If,
    Load,
    Param,
    Read,
    Select,
    Store,
    Sym,
    Workunit,
)
from pyfuser.ir.visit import all_expressions, assigned, statements
from pyfuser.pipeline import for_c
from pyfuser.transform.branches import convert_branches
from pyfuser.transform.kernel import Kernel
from tests.codegen.build import as_interpreted, case
from tests.transform.build import Program
from tests.transform.test_rows import outcome

N = 7


def wrapped(i, b, a, n):
    p = i + 5
    if p >= n:
        p -= n
    b[i] = a[p]


def clamped(i, b, a, n):
    p = i - 2
    if p < 0:
        p = 0
    elif p > n - 4:
        p = n - 4
    b[i] = a[p]


def mirrored(i, b, a, n):
    s = 0.0
    for k in range(-2, 3):
        p = i + k
        if p < 0:
            p = -p
        if p >= n:
            p = 2 * n - 2 - p
        s += a[p]
    b[i] = s


def by_minima(i, b, a, n):
    p = i + 3
    p = max(p, 0)
    p = min(p, n - 1)
    b[i] = a[p]


def declared_before(i, b, a, n):
    p: int = 0
    s: float = 0.0
    for k in range(-1, 2):
        p = i + k
        if p < 0:
            p += n
        if p == n:
            p = 0
        s += a[p]
    b[i] = s


def without_a_value(i, b, a, n):
    p: int
    if i > 0:
        p = i - 1
    else:
        q = n - 3
        p = q + 2
    b[i] = a[p]


def given_anew(i, b, a, n):
    first: int = i + 1
    p: int = 3 * first
    p = n - 1 - i
    if p > 4:
        p = i
    b[i] = a[p]


def on_an_edge(i, b, a, n):
    edge = i == n - 1
    p = i + 1
    if edge:
        p = 0
    b[i] = a[p]


def read_between(i, b, a, n):
    p = i
    q = p
    if p > 3:
        p = p - 3
        q = p + n
    b[i] = a[p] + 10.0 * a[q % n]


def weighted(i, b, a, n):
    p = i - 3
    w = 1.0
    if p < 0:
        p = -p
        w = 0.5
    b[i] = w * a[p]


def swapped(i, b, a, n):
    p = i
    q = n - 1 - i
    if p > q:
        t = p
        p = q
        q = t
    b[i] = a[p] - 3.0 * a[q]


CONVERTED = [
    wrapped, clamped, mirrored, by_minima, declared_before, without_a_value, on_an_edge,
    read_between, weighted, swapped, given_anew,
]  # fmt: skip


def counted(i, b, a, n):
    p = 0
    for k in range(i):
        p = p + 1
        if k > 3:
            p = 2
    b[i] = a[p]


def carried(i, b, a, n):
    """What a trip reads first another has set."""
    p = 0
    s = 0.0
    for k in range(3):
        s += a[p]
        p = i + k
        if p >= n:
            p = 0
    b[i] = s


def read_behind(i, b, a, n):
    p = 0
    for k in range(i):
        p = k
        if p > 3:
            p = 3
        b[i] += a[p]
    b[i] += 10.0 * a[p]


def maybe_read(i, b, a, n):
    """A trip may leave what it was."""
    p = 1
    for k in range(3):
        if i > k:
            p = k
        b[i] += a[p]


def moved_on(i, b, a, n):
    """Assigned where it is declared, and in a loop."""
    p = i
    p = max(p - 1, 0)
    for k in range(2):
        p = (p + k) % n
        b[i] += a[p]


def copied(i, b, a, n):
    """What it is a copy of changes."""
    p = 0
    q = 1
    b[i] = a[q]
    for _ in range(i):
        p = (p + 1) % n
    q = p
    for _ in range(2):
        p = (p + 1) % n
    b[i] += 10.0 * a[q] + 100.0 * a[p]


def counter(i, b, a, n):
    """A loop's variable is declared by its loop."""
    p = 0
    for k in range(4):
        if k == 2:
            k += n - 6
        p = p + k
    b[i] = a[p % n]


STAYING = [counted, carried, read_behind, maybe_read, moved_on, copied, counter]
"""Their locals stay ones that change."""


def by_data(i, b, a, n):
    p = i
    if a[i] > 3.0:
        p = 0
    b[i] = a[p]


def of_data(i, b, a, n):
    p = int(a[i]) % n
    if p > 3:
        p = 0
    b[i] = a[p]


def stores_too(i, b, a, n):
    p = i
    if p > 3:
        p = 0
        b[i] = 5.0
    b[i] += a[p]


def loads(i, b, a, n):
    p = i - 1
    v = 1.0
    if p >= 0:
        v = a[p]
        p = 0
    b[i] = v * a[abs(p)]


def divides(i, b, a, n):
    p = n - i
    if i > 0:
        p = n // i - 1
    b[i] = a[p % n]


def never_a_subscript(i, b, a, n):
    p = i - 3
    if p < 0:
        p = 0
    b[i] = p


def stores_else(i, b, a, n):
    p = i
    if p > 3:
        p = 0
    else:
        b[i] = 5.0
    b[i] += a[p]


def takes_remainders(i, b, a, n):
    p = i
    if i > 0:
        p = n % i
    b[i] = a[p]


def takes_long(i, b, a, n):
    p = i
    if i > 2:
        p = i - 1 + n - i + 1 - n + i - 1 + n - i + 2 - n
    b[i] = a[p]


def declares_more(i, b, a, n):
    p = i
    if i > 2:
        q: int
        if a[i] > 3.0:
            q = 1
            b[i] = 5.0
        else:
            q = 2
        p = q
    b[i] = a[p]


def another_number(i, b, a, n):
    p = i - 3
    if p < 0:
        p = 0
    w = 1.0
    if i < 3:
        w = 0.5
    v = 3.0
    v = v * w
    b[i] = v * a[p]


LEFT = [
    by_data, of_data, stores_too, loads, divides, never_a_subscript, stores_else,
    takes_remainders, takes_long, declares_more, another_number,
]  # fmt: skip
"""Their branches stay."""


def kernel_of(function: Callable[..., Any], pass_: Callable[[Kernel], Kernel]) -> Kernel:
    """The kernel after a pass, which computes what it did."""
    program = Program(N)
    program.call(function, b=np.zeros(N), a=np.arange(1.0, N + 1.0), n=N)
    kernel = program.check()
    changed = pass_(kernel)
    for found, wanted in zip(outcome(program, changed), outcome(program, kernel), strict=True):
        np.testing.assert_array_equal(found, wanted)
    return changed


def whole(body: Body) -> set[Sym]:
    """The integers that change."""
    return {sym for sym in assigned(body) if sym.dtype.is_integer}


def has_branch(body: Body) -> bool:
    return any(isinstance(stmt, If) for stmt in statements(body))


@pytest.mark.parametrize("function", CONVERTED)
def test_branches_become_selections_of_locals_that_keep_their_values(
    function: Callable[..., Any],
) -> None:
    body = kernel_of(function, convert_branches).workunit.body
    assert not has_branch(body) and not whole(body)
    assert any(isinstance(e, Select) for e in all_expressions(body))
    assert not any(isinstance(s, Declare) and s.value is None for s in statements(body))


@pytest.mark.parametrize("function", STAYING)
def test_what_trips_hand_on_stays_one_local(function: Callable[..., Any]) -> None:
    assert whole(kernel_of(function, convert_branches).workunit.body)


@pytest.mark.parametrize("function", LEFT)
def test_what_does_more_or_is_of_data_stays_a_branch(function: Callable[..., Any]) -> None:
    assert has_branch(kernel_of(function, convert_branches).workunit.body)


@pytest.mark.parametrize("function", [*CONVERTED, *STAYING, *LEFT])
def test_all_passes_together(function: Callable[..., Any]) -> None:
    kernel_of(function, for_c)


@pytest.mark.parametrize("function", [*CONVERTED, *STAYING])
def test_compiled(function: Callable[..., Any], extent: int = 300) -> None:
    rng = np.random.default_rng(2)
    a = rng.random(extent)
    given = case(function, [extent], lambda: [np.zeros(extent), a.copy(), extent])
    as_interpreted(replace(given, kernel=for_c(given.kernel)))


def test_a_local_that_has_no_value_on_one_way_stays() -> None:
    """Nothing is known to read it there, but nothing shows that, either."""
    i, p = (Sym(name, n, DType.INT32) for n, name in enumerate("ip"))
    a, b = (Sym(name, n, DType.FLOAT64) for n, name in enumerate("ab", 2))
    early = Compare("<", Read(i), Const(3, DType.INT32))
    copied = Store(b, (Read(i),), Load(a, (Read(p),)))

    def left(*others: Assign) -> bool:
        branch = If(early, (Assign(p, Read(i)),), others)
        body = (Declare(p, None), branch, If(early, (copied,)))
        workunit = Workunit("one", (i,), (Param(a, 1), Param(b, 1)), body)
        program = Program(N)
        program.call(wrapped, b=np.zeros(N), a=np.zeros(N), n=N)
        kernel = replace(program.check(), workunit=workunit)
        return convert_branches(kernel).workunit == workunit

    assert left()
    assert not left(Assign(p, Const(0, DType.INT32)))


def test_of_two_locals_both_need_a_value() -> None:
    i, p, q = (Sym(name, n, DType.INT32) for n, name in enumerate("ipq"))
    a, b = (Sym(name, n, DType.FLOAT64) for n, name in enumerate("ab", 3))
    early = Compare("<", Read(i), Const(3, DType.INT32))
    copied = Store(b, (Read(q),), Load(a, (Read(p),)))
    zero = Const(0, DType.INT32)
    for sides in (((Assign(p, zero), Assign(q, zero)), ()), ((), (Assign(p, zero),))):
        body = (Declare(p, None), Declare(q, Read(i)), If(early, *sides), If(early, (copied,)))
        workunit = Workunit("one", (i,), (Param(a, 1), Param(b, 1)), body)
        program = Program(N)
        program.call(wrapped, b=np.zeros(N), a=np.zeros(N), n=N)
        kernel = replace(program.check(), workunit=workunit)
        assert convert_branches(kernel).workunit == workunit


def test_other_numbers_keep_their_names() -> None:
    body = kernel_of(another_number, convert_branches).workunit.body
    assert {sym.name for sym in assigned(body)} == {"v", "w"}


def test_a_sum_is_none_of_the_locals() -> None:
    @pk.workunit
    def count(i, acc: pk.Acc[pk.int32], a, n):
        p = i
        if i > 3:
            p = 0
            acc += 1
        acc += int(a[p])

    program = Program(N)
    program.call(count, "reduce", a=np.arange(1.0, N + 1.0), n=N)
    assert has_branch(convert_branches(program.kernel()).workunit.body)
