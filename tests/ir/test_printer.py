"""`show` is stable, and unambiguous enough to read."""

from __future__ import annotations

import itertools
import math

from pyfuser.ir import nodes
from pyfuser.ir.canonical import fresh
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Binary, Cast, Const, Declare, Expr, Load, Param, Read, Store, Workunit
from pyfuser.ir.printer import show, show_node

INDEX = fresh("i", DType.INT32)
X = fresh("x", DType.FLOAT64)


def store(value: Expr) -> Workunit:
    """`x[i] = value` over one index."""
    return Workunit("w", (INDEX,), (Param(X, 1),), (Store(X, (Read(INDEX),), value),))


def test_text() -> None:
    t, other = fresh("t", DType.FLOAT32), fresh("t", DType.INT32)
    body = (
        Declare(t, Cast(Load(X, (Read(INDEX),)), DType.FLOAT32)),
        Declare(other, Cast(Read(t), DType.INT32, explicit=True)),
        nodes.If(
            nodes.Compare("<", Read(other), Const(3, DType.INT32)),
            (nodes.Update("min", X, (Read(INDEX),), Const(1.0, DType.FLOAT64), atomic=True),),
        ),
    )
    assert show(Workunit("w", (INDEX,), (Param(X, 1),), body)) == (
        "workunit w(i: int32; x: float64[:]):\n"
        "    let t: float32 = (float32)x[i]\n"
        "    let t.1: int32 = int32(t)\n"
        "    if t.1 < 3:\n"
        "        atomic x[i] min= 1.0\n"
    )
    assert show_node(body[0]) == "let t: float32 = (float32)x[i]"


def test_different_workunits_have_different_texts() -> None:
    a, b, c = (Const(v, DType.FLOAT64) for v in (1.0, 2.0, 3.0))
    x = Load(X, (Read(INDEX),))
    values: list[Expr] = [
        Const(0.0, DType.FLOAT64),
        Const(-0.0, DType.FLOAT64),
        Const(math.nan, DType.FLOAT64),
        Const(1.0, DType.FLOAT32),
        a,
        Const(1, DType.INT32),
        Const(1, DType.INT64),
        Const(True, DType.BOOL),
        Binary("+", Binary("+", a, b), c),
        Binary("+", a, Binary("+", b, c)),
        Cast(x, DType.FLOAT32),
        Cast(x, DType.FLOAT32, explicit=True),
        nodes.Call("sqrt", (x,), DType.FLOAT64),
        nodes.Call("sqrt", (x,), DType.FLOAT32),
        nodes.Extent(X, 0),
        nodes.Unary("-", x, DType.FLOAT64),
    ]
    workunits = [store(value) for value in values]
    for first, second in itertools.combinations(workunits, 2):
        assert show(first) != show(second)
