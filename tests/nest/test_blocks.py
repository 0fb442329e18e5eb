"""Loops over blocks and strips of iterations do what the iterations did, interpreted."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.c.statements import Printed
from pyfuser.codegen.cpu.context import Context
from pyfuser.codegen.cpu.map import LOCALS, lowered, map_nest
from pyfuser.codegen.kernel import spec_of
from pyfuser.ir.nodes import Stmt
from pyfuser.ir.verify import IRError
from pyfuser.ir.visit import map_body, statements
from pyfuser.nest.interpret import interpret
from pyfuser.nest.nodes import Alloc, Clear, Function, Nest, Over, Row, Scope
from pyfuser.nest.verify import verify
from pyfuser.plan.plan import STRIP
from tests.codegen.build import Case, case
from tests.vendors import decide_with_maths

BLOCK = 128
M = 5


@pytest.fixture(autouse=True)
def vector_maths(monkeypatch: pytest.MonkeyPatch) -> None:
    """The decisions of a machine that has vector maths, wherever the tests run."""
    decide_with_maths(monkeypatch, "exp", "log", "sin")


def chain(i, x, y, s, m):
    total: float = 1.0
    for j in range(m):
        total = total * 0.5 + x[i][j]
    for j in range(m):
        y[i][j] = x[i][j] - total
    last: float = 0.25
    for j in range(m):
        y[i][j] = y[i][j] * last
        last = y[i][j] - total
    s[i] = total + last


def kept_row(i, x, y, s, m):
    row: list[float] = [0.0, 0.0, 0.0, 0.0, 0.0]
    total: float = 0.0
    for j in range(m):
        row[j] = row[j] + x[i][j] + 1.0
        total = total + row[j]
    for j in range(m):
        y[i][j] = row[j] / total


def scattered(i, x, y, s, m):
    value: float = math.exp(x[i][0]) * math.sin(x[i][1])
    place: int = int(x[i][2]) % 3
    if place == 1:
        y[i][place] = value
    s[i] = math.log(value * value + 2.0) * math.exp(value)


def called_in_loop(i, x, y, s, m):
    value: float = math.exp(x[i][0]) * math.exp(x[i][1]) + math.log(x[i][2] + 9.0)
    for j in range(m):
        y[i][j] = value * x[i][j] // 2.0
    s[i] = math.exp(value) + math.log(value * value + 1.0)


FUNCTIONS = [chain, kept_row, scattered, called_in_loop]


def made(function: Any, n: int, begin: int) -> Case:
    def arguments() -> list[Any]:
        x = np.random.default_rng(n).uniform(0.0, 3.0, (n, M))
        return [x, np.full((n, M), -1.0), np.zeros(n), M]

    return case(function, [n], arguments, begin=[begin])


def nest_of(given: Case) -> Nest:
    context = Context(spec_of(given.kernel), LOCALS)
    return lowered(context, map_nest(context))


def body_of(function: Function) -> tuple[Stmt, ...]:
    return tuple(statements(function.body))


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("n", [1, STRIP - 1, STRIP, STRIP + 1, BLOCK - 1, BLOCK, BLOCK + 1])
def test_as_one_iteration_after_the_other(function: Any, n: int) -> None:
    for begin in (0, n // 3):
        given = made(function, n, begin)
        nest = nest_of(given)
        verify(nest)
        found = given.arguments()
        interpret(nest, given.kernel.space.begin, given.kernel.space.end, found, n)
        for a, b in zip(found, given.interpreted()[0], strict=True):
            np.testing.assert_array_equal(a, b)


def test_what_these_loops_are_made_of() -> None:
    found: Counter[type] = Counter()
    for function in FUNCTIONS:
        (loop,) = nest_of(made(function, 9, 0)).functions
        found.update(type(stmt) for stmt in body_of(loop))
    assert all(found[kind] for kind in (Alloc, Row, Clear, Scope))
    assert not found[Over] and not found[Printed]


@pytest.mark.parametrize("kind", [Alloc, Row, Clear])
def test_memory_without_its_declaration_or_its_zeros_is_seen(kind: type) -> None:
    given = made(kept_row, STRIP + 1, 0)
    nest = nest_of(given)
    (loop,) = nest.functions
    body = map_body(loop.body, None, lambda stmt: () if type(stmt) is kind else stmt)
    wrong = replace(nest, functions=(replace(loop, body=body),))
    with pytest.raises((IRError, TypeError)):  # a value that is none cannot be added
        verify(wrong)
        interpret(wrong, given.kernel.space.begin, given.kernel.space.end, given.arguments())
