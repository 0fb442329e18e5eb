"""Every rule of the ir has a workunit that keeps it and one that breaks it."""

from __future__ import annotations

import pytest

from pyfuser.ir import nodes
from pyfuser.ir.canonical import fresh
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Accumulator,
    Assign,
    Binary,
    Break,
    Cast,
    Compare,
    Const,
    Declare,
    For,
    If,
    Load,
    Logical,
    Param,
    Read,
    Scratch,
    Select,
    Stmt,
    Store,
    Update,
    Workunit,
)
from pyfuser.ir.verify import IRError, verify

INDEX = fresh("i", DType.INT32)
X = fresh("x", DType.FLOAT64)
F = fresh("f", DType.FLOAT32)
B = fresh("b", DType.INT8)
A = fresh("a", DType.FLOAT64)
S = fresh("s", DType.FLOAT64)
T = fresh("t", DType.FLOAT64)
K = fresh("k", DType.INT32)

HERE = (Read(INDEX),)
ONE, ZERO, STEP = Const(1.0, DType.FLOAT64), Const(0, DType.INT32), Const(1, DType.INT32)
TRUE = Const(True, DType.BOOL)


def workunit(*body: Stmt) -> Workunit:
    params = (Param(X, 1), Param(F, 1), Param(B, 1), Param(A))
    return Workunit("w", (INDEX,), params, body, (Accumulator(S),))


LEGAL: list[tuple[Stmt, ...]] = [
    (Store(X, HERE, Binary("+", Read(A), ONE)),),
    (Store(X, HERE, Cast(Load(F, HERE), DType.FLOAT64)),),
    (Declare(T, ONE), Assign(T, Read(T))),
    (Update("+", S, (), Load(X, HERE)), Update("max", X, HERE, ONE, atomic=True)),
    (Update("+", F, HERE, ONE),),
    (For(K, ZERO, Read(INDEX), STEP, (If(Compare("<", Read(K), ZERO), (Break(),)),)),),
    (Store(X, HERE, Select(Logical("&&", TRUE, TRUE), ONE, Read(A))),),
    (Assign(S, ONE),),
    (Scratch(T, (Read(INDEX), STEP)), Store(T, (ZERO, Read(INDEX)), ONE)),
]

ILLEGAL: list[tuple[str, tuple[Stmt, ...]]] = [
    ("expected float64, found int32", (Store(X, HERE, Binary("+", Read(A), ZERO)),)),
    ("expected float64, found float32", (Store(X, HERE, Load(F, HERE)),)),
    ("not declared here", (Assign(T, ONE), Declare(T, ONE))),
    ("not declared here", (If(TRUE, (Declare(T, ONE),)), Assign(T, ONE))),
    ("declared twice", (Declare(T, ONE), If(TRUE, (Declare(T, ONE),)))),
    ("not a local variable", (Assign(A, ONE),)),
    ("outside of a loop", (If(TRUE, (Break(),)),)),
    ("expected an integer", (Store(X, (ONE,), ONE),)),
    ("is indexed by 2", (Store(X, (Read(INDEX), Read(INDEX)), ONE),)),
    ("a view is read without indices", (Store(X, HERE, Read(X)),)),
    ("unknown update", (Update("pow", X, HERE, ONE),)),
    ("only an element of a view", (Update("+", S, (), ONE, atomic=True),)),
    ("expected float32, found float64", (Update("+", F, HERE, ONE, atomic=True),)),
    ("expected bool, found int32", (If(ZERO, ()),)),
    ("step is not zero", (For(K, ZERO, Read(INDEX), ZERO, ()),)),
    ("ends it", (For(K, ZERO, ZERO, Const(1, DType.INT32), (If(TRUE, (Break(),)),), shared=True),)),
    ("needs integers", (Store(X, HERE, Binary("%", ONE, ONE)),)),
    ("must be promoted", (Store(B, HERE, Binary("+", Load(B, HERE), Load(B, HERE))),)),
    ("cannot be a constant", (Store(X, HERE, Const(1, DType.FLOAT64)),)),
    ("does not fit int8", (Store(B, HERE, Const(300, DType.INT8)),)),
    ("no such axis", (Declare(T, Cast(nodes.Extent(X, 1), DType.FLOAT64)),)),
    ("at least one axis", (Scratch(T, ()),)),
    ("expected an integer", (Scratch(T, (ONE,)),)),
    ("is indexed by 1", (Scratch(T, (STEP, STEP)), Store(T, HERE, ONE))),
    ("not declared here", (If(TRUE, (Scratch(T, (STEP,)),)), Store(T, HERE, ONE))),
    ("unknown function", (Declare(T, nodes.Call("sqroot", (ONE,), DType.FLOAT64)),)),
    ("takes float64", (Declare(T, nodes.Call("sqrt", (ZERO,), DType.FLOAT64)),)),
]


@pytest.mark.parametrize("body", LEGAL)
def test_legal(body: tuple[Stmt, ...]) -> None:
    verify(workunit(*body))


@pytest.mark.parametrize(("message", "body"), ILLEGAL)
def test_illegal(message: str, body: tuple[Stmt, ...]) -> None:
    with pytest.raises(IRError, match=message):
        verify(workunit(*body))


def test_the_error_shows_the_workunit() -> None:
    with pytest.raises(IRError, match="workunit w"):
        verify(workunit(Break()))
