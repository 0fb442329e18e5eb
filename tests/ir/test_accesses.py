"""The accesses of a body, in the order of the code."""

from __future__ import annotations

from typing import Any

import pytest

from pyfuser.ir.accesses import accesses, own_accesses
from pyfuser.ir.canonical import fresh
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    AtomicFetch,
    Body,
    Compare,
    Const,
    Declare,
    DeclareArray,
    Eval,
    Extent,
    For,
    If,
    Load,
    Read,
    SourceLocation,
    Store,
    Sym,
    Update,
    While,
)

I, K = fresh("i", DType.INT32), fresh("k", DType.INT32)
X, Y, A = (fresh(name, DType.FLOAT64) for name in "xya")
P, T = fresh("p", DType.INT32), fresh("t", DType.FLOAT64)
ONE, ZERO = Const(1.0, DType.FLOAT64), Const(0, DType.INT32)
HERE, THERE = (Read(I),), (Load(P, (Read(I),)),)
READ, WRITE, UPDATE, ATOMIC = "r", "w", "rw", "rwa"

BODIES: list[tuple[Body, list[tuple[Sym, Any, str]]]] = [
    ((Declare(T, Load(X, HERE)),), [(X, HERE, READ)]),
    ((Declare(T, None), Declare(T, Extent(X, 0)), Declare(T, Read(X))), []),
    ((Store(Y, HERE, Load(X, HERE)),), [(X, HERE, READ), (Y, HERE, WRITE)]),
    ((Store(Y, THERE, ONE),), [(P, HERE, READ), (Y, THERE, WRITE)]),
    ((Update("+", Y, HERE, ONE),), [(Y, HERE, UPDATE)]),
    ((Update("+", Y, HERE, ONE, atomic=True),), [(Y, HERE, ATOMIC)]),
    ((Update("+", T, (), Load(X, HERE)),), [(X, HERE, READ)]),  # a local has no elements
    ((Eval(AtomicFetch("+", Y, THERE, ONE)),), [(Y, THERE, ATOMIC), (P, HERE, READ)]),
    ((DeclareArray(A, (ONE,)), Store(A, (ZERO,), ONE)), [(A, (ZERO,), WRITE)]),
    (
        (If(Compare("<", Load(X, HERE), ONE), (Store(X, HERE, ONE),), (Store(Y, HERE, ONE),)),),
        [(X, HERE, READ), (X, HERE, WRITE), (Y, HERE, WRITE)],
    ),
    (
        (For(K, ZERO, Load(P, HERE), ZERO, (While(Compare("<", Load(X, HERE), ONE), ()),)),),
        [(P, HERE, READ), (X, HERE, READ)],
    ),
]


@pytest.mark.parametrize(("body", "expected"), BODIES)
def test_accesses(body: Body, expected: list[tuple[Sym, Any, str]]) -> None:
    found = list(accesses(body))
    marks = ["r" * access.reads + "w" * access.writes + "a" * access.atomic for access in found]
    assert [(a.view, a.indices, mark) for a, mark in zip(found, marks, strict=True)] == expected
    for view in (X, Y, P):
        assert list(accesses(body, view)) == [a for a in found if a.view == view]


def test_a_statement_s_own_accesses() -> None:
    place = SourceLocation("user.py", 3)
    branch = If(Compare("<", Load(X, HERE, place), ONE), (Store(Y, HERE, ONE),))
    (own,) = own_accesses(branch)
    assert (own.view, own.location) == (X, place)
    assert own.node is branch.condition.left
