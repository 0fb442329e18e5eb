"""The effects of bodies, each beside a twin that lacks it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pykokkos as pk
import pytest

from pyfuser.ir.canonical import fresh
from pyfuser.ir.dtypes import DType
from pyfuser.ir.effects import (
    Effects,
    atomics,
    effects,
    evaluates_purely,
    only_combines,
    operations,
    written_views,
)
from pyfuser.ir.nodes import (
    Assign,
    Body,
    Compare,
    Const,
    Declare,
    If,
    Read,
    Update,
    Workunit,
)
from pyfuser.ir.visit import assigned
from pyfuser.lower.lower import ScalarType, ViewType, lower

TYPES: dict[str, Any] = {
    "x": ViewType(DType.FLOAT64, 1),
    "y": ViewType(DType.FLOAT64, 1),
    "count": ViewType(DType.INT32, 1),
    "n": ScalarType(DType.INT32),
}


def lowered(function: Callable[..., Any], pattern: str = "for") -> Workunit:
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    return lower(
        function, pattern, 1, {name: TYPES[name] for name in names if name in TYPES}
    ).workunit


def copies(i, x, y):
    y[i] = x[i]


def prints(i, x):
    pk.printf("%d\n", i)


def fences(i, x):
    pk.fence()


def calls_maths_for_nothing(i, x):
    pk.sqrt(x[i])


def adds(i, y):
    pk.atomic_add(y, [0], 1.0)


def takes_numbers(i, y, count):
    k: int = pk.atomic_fetch_add(count, [0], 1)
    y[k] = 1.0


def counts_trips(i, x, y, n):
    k: int = 0
    while k < n:
        y[i] += x[k]
        k += 1


def reads_a_bound(i, y, count):
    k: int = 0
    while k < count[i]:
        y[i] += 1.0
        k += 1


def spins(i, y, count):
    while count[0] < i:
        y[i] += 1.0
    count[0] = i + 1


def spins_on_tickets(i, y, count, n):
    k: int = pk.atomic_fetch_add(count, [0], 1)
    while count[0] < n:
        k += 1
    y[i] = k


def locks(i, y, count, n):
    for _ in range(n):
        if pk.atomic_exchange(count, [0], 1) == 0:
            y[0] += 1.0


def loops(i, y, count, n):
    for _ in range(count[0]):
        pk.atomic_add(count, [0], 1)


NOTHING = Effects(output=False, fetches=False, atomics=False, waits=False)

EFFECTS: dict[Callable[..., Any], Effects] = {
    copies: NOTHING,
    prints: NOTHING._replace(output=True),
    fences: NOTHING._replace(output=True),
    calls_maths_for_nothing: NOTHING,
    adds: NOTHING._replace(atomics=True),
    takes_numbers: NOTHING._replace(atomics=True, fetches=True),
    counts_trips: NOTHING,
    reads_a_bound: NOTHING,
    spins: NOTHING._replace(waits=True),
    spins_on_tickets: NOTHING._replace(atomics=True, fetches=True, waits=True),
    locks: NOTHING._replace(atomics=True, fetches=True, waits=True),
    loops: NOTHING._replace(atomics=True),
}


@pytest.mark.parametrize("function", EFFECTS, ids=lambda f: f.__name__)
def test_effects(function: Callable[..., Any]) -> None:
    unit = lowered(function)
    found = effects(unit)
    assert found == EFFECTS[function]
    assert found.atomics == any(atomics(unit.body))
    assert found.observable == any(found)
    assert found.may_interleave == (not found.output and not found.waits)


def test_what_a_statement_evaluates() -> None:
    pure, fetch = lowered(counts_trips).body, lowered(takes_numbers).body
    assert all(map(evaluates_purely, pure))
    assert [evaluates_purely(stmt) for stmt in fetch] == [False, True]


def test_views_that_are_written() -> None:
    for function, names in ((copies, {"y"}), (adds, {"y"}), (takes_numbers, {"y", "count"})):
        assert {sym.name for sym in written_views(lowered(function))} == names


ACC, OTHER = fresh("acc", DType.FLOAT64), fresh("other", DType.FLOAT64)
ONE = Const(1.0, DType.FLOAT64)
ADD, OTHERS = Update("+", ACC, (), ONE), Update("max", OTHER, (), ONE)
SUBTRACT, MULTIPLY = replace(ADD, op="-"), replace(ADD, op="*")
ADD_ITSELF = replace(ADD, value=Read(ACC))


@pytest.mark.parametrize(
    ("body", "allowed", "answer"),
    [
        ((ADD,), "+", True),
        ((), "+", True),
        ((ADD, OTHERS), "+", True),
        ((If(Compare("<", Read(OTHER), ONE), (ADD,)),), "+", True),
        ((If(Compare("<", Read(ACC), ONE), (ADD,)),), "+", False),
        ((ADD, SUBTRACT), "+-", True),
        ((ADD, SUBTRACT), "+", False),
        ((MULTIPLY,), "+-", False),
        ((ADD, MULTIPLY), "+", False),
        ((ADD_ITSELF,), "+", False),
        ((ADD, Assign(ACC, ONE)), "+", False),
        ((ADD, Assign(OTHER, ONE)), "+", True),
        ((ADD, Declare(OTHER, Read(ACC))), "+", False),
    ],
)
def test_what_is_only_combined(body: Body, allowed: str, answer: bool) -> None:
    assert only_combines(body, (ACC,), allowed) == answer


def test_operations() -> None:
    body = (ADD, If(Compare("<", Read(OTHER), ONE), (MULTIPLY, Assign(OTHER, ONE))), OTHERS)
    assert operations(body) == {ACC: {"+", "*"}, OTHER: {"=", "max"}}
    assert set(operations(body)) == assigned(body)
