"""Loops over blocks and strips of iterations do what the iterations did, interpreted."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.kernel import spec_of
from pyfuser.ir.arithmetic import UndefinedBehaviour
from pyfuser.ir.nodes import Assign, Binary, Read, Stmt, Store, Update
from pyfuser.ir.verify import IRError
from pyfuser.ir.visit import map_body, statements
from pyfuser.nest.build import nest_of
from pyfuser.nest.nodes import Alloc, Clear, Function, Nest, OrderedSum, Over, Row, Scope
from pyfuser.nest.passes.blocks import lower_blocks
from pyfuser.nest.sums import SHORTEST
from pyfuser.nest.verify import verify
from pyfuser.pipeline import run_nest_passes
from pyfuser.plan.plan import STRIP
from pyfuser.tuning.thresholds import DEFAULT
from tests.codegen.build import Case, case
from tests.nest.interpret import interpret
from tests.vendors import decide_with_maths

BLOCK = 128
FEWEST = DEFAULT.fewest_columns
M = 5


@pytest.fixture(autouse=True)
def vector_maths(monkeypatch: pytest.MonkeyPatch) -> None:
    """The decisions of a machine that has vector maths, wherever the tests run."""
    decide_with_maths(monkeypatch, "exp", "log", "sin")


def kept_row(i, x, y, s, m):
    row: list[float] = [0.0, 0.0, 0.0, 0.0, 0.0]
    total: float = 0.0
    for j in range(m):
        row[j] = row[j] + x[i][j] + 1.0
        total = total + row[j]
    for j in range(m):
        y[i][j] = row[j] / total


def solved(i, x, y, s, m):
    """Trips of several, one by one, and backwards; a row that is kept for each iteration."""
    row: list[float] = [0.0, 0.0, 0.0, 0.0, 0.0]
    last: float = 0.5
    for j in range(m):
        last = x[j][i] - 0.25 * last
        row[j % 5] += last
    for j in range(m - 1, 0, -1):
        last = x[j][i] * last + row[j % 3]
        y[j][i] = last
    s[i] = last + row[4]


def made(function: Any, n: int, begin: int, m: int = M) -> Case:
    shape = (m, n) if function is solved else (n, m)

    def arguments() -> list[Any]:
        x = np.random.default_rng(n).uniform(0.0, 3.0, shape)
        return [x, np.full(shape, -1.0), np.zeros(n), m]

    return case(function, [n], arguments, begin=[begin])


def lowered(given: Case) -> Nest:
    return lower_blocks(run_nest_passes(nest_of(spec_of(given.kernel))))


@pytest.mark.parametrize("function", [kept_row, solved])
def test_what_these_loops_are_made_of(function: Any) -> None:
    given = made(function, 2 * FEWEST + 3, 1)
    assert_same(given)
    kinds = {type(stmt) for stmt in body_of(lowered(given).functions[0])}
    assert {Alloc, Row, Clear, Scope} <= kinds and Over not in kinds


def body_of(function: Function) -> tuple[Stmt, ...]:
    return tuple(statements(function.body))


def assert_same(given: Case, rtol: float = 0.0) -> None:
    nest = lowered(given)
    verify(nest)
    found = given.arguments()
    interpret(nest, given.kernel.space.begin, given.kernel.space.end, found)
    for a, b in zip(found, given.interpreted()[0], strict=True):
        np.testing.assert_allclose(a, b, rtol)


def light(i, x, y, s, m):
    total: float = 0.5
    most: float = 0.0
    for j in range(m):
        total = total + x[i][j] * 2.0
        most = most + x[i][m - 1 - j]
    s[i] = total - most


def heavy(i, x, y, s, m):
    total: float = 0.0
    for j in range(1, m):
        part: float = math.exp(x[i][j])
        if x[i][j] > 1.0:
            total = total + part
        y[i][j] = part
    s[i] = total


def of_rows(function: Any, n: int, m: int) -> Case:
    """The case with sums in an order of ours, as those of nested reductions are."""
    given = made(function, n, 0, m)

    def freed(stmt: Stmt) -> Stmt:
        value = stmt.value if isinstance(stmt, Assign) else None
        if isinstance(value, Binary) and value.op == "+" and value.left == Read(stmt.sym):
            return Update("+", stmt.sym, (), value.right)
        return stmt

    unit = given.kernel.workunit
    unit = replace(unit, body=map_body(unit.body, None, freed))
    return replace(given, kernel=replace(given.kernel, workunit=unit))


def sums_in(nest: Nest) -> list[OrderedSum]:
    return [s for f in nest.functions for s in body_of(f) if isinstance(s, OrderedSum)]


@pytest.mark.parametrize("function", [light, heavy])
@pytest.mark.parametrize("m", [1, SHORTEST - 1, SHORTEST, SHORTEST + 1, 3 * SHORTEST])
def test_rows_are_summed_in_blocks(function: Any, m: int) -> None:
    for n in (1, STRIP + 1):
        given = of_rows(function, n, m)
        (found,) = sums_in(lowered(given))
        assert bool(found.block) is (function is heavy)
        assert_same(given, rtol=1e-13)


def test_a_sum_without_its_terms_is_seen() -> None:
    given = of_rows(light, 3, SHORTEST)
    nest = lowered(given)
    (loop,) = nest.functions
    body = map_body(
        loop.body, None, lambda s: replace(s, trip=()) if isinstance(s, OrderedSum) else s
    )
    found = given.arguments()
    wrong = replace(nest, functions=(replace(loop, body=body),))
    interpret(wrong, given.kernel.space.begin, given.kernel.space.end, found)
    assert (found[2] != given.interpreted()[0][2]).any()


@pytest.mark.parametrize("kind", [Clear, Assign, Store])
def test_columns_without_a_part_are_seen(kind: type) -> None:
    given = made(solved, 2 * FEWEST, 0, 7)
    nest = lowered(given)
    (loop,) = nest.functions
    dropped = next(s for s in body_of(loop) if type(s) is kind)
    body = map_body(loop.body, None, lambda stmt: () if stmt is dropped else stmt)
    wrong = replace(nest, functions=(replace(loop, body=body),))
    found = given.arguments()
    try:
        interpret(wrong, given.kernel.space.begin, given.kernel.space.end, found)
    except (TypeError, UndefinedBehaviour):  # a value that is none
        return
    assert any((a != b).any() for a, b in zip(found[:3], given.interpreted()[0], strict=False))


@pytest.mark.parametrize("kind", [Alloc, Row, Clear])
def test_memory_without_its_declaration_or_its_zeros_is_seen(kind: type) -> None:
    given = made(kept_row, STRIP + 1, 0)
    nest = lowered(given)
    (loop,) = nest.functions
    body = map_body(loop.body, None, lambda stmt: () if type(stmt) is kind else stmt)
    wrong = replace(nest, functions=(replace(loop, body=body),))
    with pytest.raises((IRError, TypeError)):  # a value that is none cannot be added
        verify(wrong)
        interpret(wrong, given.kernel.space.begin, given.kernel.space.end, given.arguments())
