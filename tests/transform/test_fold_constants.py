"""Operations on constants become their values, and others stay."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Assign,
    Binary,
    Cast,
    Compare,
    Const,
    Declare,
    Expr,
    If,
    Logical,
    Param,
    Read,
    Select,
    Store,
    Sym,
    Unary,
    Workunit,
)
from pyfuser.ir.reference.interpret import UndefinedBehaviour, interpret
from pyfuser.ir.visit import map_body, map_expression, statements
from pyfuser.pipeline import C_PASSES, run_passes
from pyfuser.transform.fold_constants import _taken, fold_constants, folded
from tests.transform.build import Program

I32, I64, U8, U32, F64, BOOL = (
    DType.INT32, DType.INT64, DType.UINT8, DType.UINT32, DType.FLOAT64, DType.BOOL,
)  # fmt: skip
X, TRUTH = Read(Sym("x", 1, I32)), Read(Sym("t", 2, BOOL))
YES, NO = Const(True, BOOL), Const(False, BOOL)


def c(value: int, dtype: DType = I32) -> Const:
    return Const(value, dtype)


FOLDED = [
    (Binary("+", c(2), c(3)), c(5)),
    (Binary("-", c(2, U8), c(2, U8)), c(0, U8)),
    (Binary("/", c(-7), c(2)), c(-3)),  # as C++ rounds, to zero
    (Binary("%", c(-7), c(2)), c(-1)),
    (Binary("&", c(6), c(3)), c(2)),
    (Binary("^", c(6), c(3)), c(5)),
    (Unary("-", c(4), I32), c(-4)),
    (Unary("!", YES, BOOL), NO),
    (Cast(c(7), I64), c(7, I64)),
    (Compare("<", c(2), c(3)), YES),
    (Compare("!=", c(4), c(4)), NO),
    (Logical("&&", YES, TRUTH), TRUTH),
    (Logical("&&", NO, TRUTH), NO),
    (Logical("||", NO, TRUTH), TRUTH),
    (Logical("||", YES, TRUTH), YES),
    (Logical("&&", TRUTH, YES), TRUTH),
    (Logical("||", TRUTH, NO), TRUTH),
    (Select(YES, X, c(1)), X),
    (Select(NO, X, c(1)), c(1)),
]


@pytest.mark.parametrize(("e", "value"), FOLDED, ids=str)
def test_what_is_known(e: Expr, value: Expr) -> None:
    assert folded(e) == value


STAY = [
    Binary("+", X, c(3)),
    Binary("+", c(2**31 - 1), c(1)),
    Binary("-", c(2, U8), c(3, U8)),
    Binary("*", c(2**20, U32), c(2**20, U32)),
    Binary("/", c(1), c(0)),
    Binary("%", c(1), c(0)),
    Binary("<<", c(1), c(2)),
    Binary("+", Const(1.5, F64), Const(1.5, F64)),
    Unary("-", c(-(2**31)), I32),
    Unary("-", c(1, U8), U8),
    Cast(c(300), U8),
    Cast(c(-1), U32),
    Cast(c(1), F64),  # of no use to anybody
    Cast(c(2), BOOL),
    Cast(Const(2.5, F64), I32),
    Compare("<", X, c(3)),
    Compare("<", Const(1.0, F64), Const(2.0, F64)),
    Compare("<", Const(1, F64), Const(2, F64)),
    Compare("==", YES, YES),
    Logical("&&", TRUTH, NO),
    Logical("||", TRUTH, YES),
    Select(TRUTH, c(1), c(2)),
]


@pytest.mark.parametrize("e", STAY, ids=str)
def test_what_is_not(e: Expr) -> None:
    assert folded(e) is e


def expression(rng: random.Random, depth: int) -> Expr:
    """A random one of 32-bit integers."""
    if not depth or rng.random() < 0.2:
        value = rng.choice((0, 1, 2, 3, 7, -1, -5, 2**31 - 1))
        return X if rng.random() < 0.2 else c(value)
    one, other = (expression(rng, depth - 1) for _ in range(2))
    kind = rng.randrange(4)
    if kind == 0:
        return Select(Compare(rng.choice(("<", "==", ">=", "!=")), one, other), other, one)
    if kind == 1:
        way = rng.choice(("&&", "||"))
        sides = Compare("<", one, other), Compare(">", other, expression(rng, depth - 1))
        return Select(Logical(way, *sides), one, other)
    if kind == 2:
        return Cast(Cast(one, I64), I32)
    return Binary(rng.choice("+-*/%&|^"), one, other)


def value_of(e: Expr, x: int) -> int | str:
    out, at = Sym("out", 10, I64), Sym("i", 11, I32)
    body = (Store(out, (c(0),), Cast(e, I64)),)
    unit = Workunit("unit", (at,), (Param(out, 1), Param(X.sym, 0)), body)
    found = np.zeros(1, np.int64)
    try:
        interpret(unit, "for", (0,), (1,), [found, x])
    except UndefinedBehaviour:
        return "undefined"
    return int(found[0])


@pytest.mark.parametrize("seed", range(40))
def test_random_ones_have_the_value_that_they_had(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        e = expression(rng, 4)
        x = rng.choice((0, 1, -1, 3, 2**31 - 1))
        assert value_of(map_expression(e, folded), x) == value_of(e, x)


def test_the_side_that_is_taken() -> None:
    s = Sym("s", 5, I32)
    y = Sym("y", 6, I32)
    body = (
        Declare(s, c(0)),
        If(Compare("==", c(1), c(1)), (Assign(s, c(2)),), (Assign(s, c(3)),)),
        If(Compare("==", c(1), c(2)), (Assign(s, c(4)),)),
        Store(y, (c(0),), Read(s)),
    )
    assert map_body(body, folded, _taken) == (body[0], Assign(s, c(2)), body[3])


def around(i, j, y, x, n):
    total: float = 0.0
    for k in range(9):
        a: int = i + k // 3 - 1
        b: int = j + k % 3 - 1
        if k != 4 and a >= 0 and a < n and b >= 0 and b < n:
            total += x[a][b]
    y[i][j] = total


def test_a_loop_that_is_written_out_leaves_no_constants_to_compute() -> None:
    program = Program(20, 20)
    program.call(around, y=np.zeros((20, 20)), x=np.ones((20, 20)), n=20)
    program.check()
    kernel = run_passes(C_PASSES, program.kernel())
    assert "fold-constants" in kernel.passes
    assert fold_constants(kernel) is kernel
    assert sum(isinstance(s, If) for s in statements(kernel.workunit.body)) == 8
