"""Which statements g++ can vectorise along the iterations around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyfuser.ir import nodes
from pyfuser.ir.dtypes import DType
from pyfuser.ir.maths import FUNCTIONS
from pyfuser.ir.nodes import Body, Expr, Stmt, Sym
from pyfuser.ir.powers import power_of
from pyfuser.ir.visit import child_expressions, expressions, statements
from pyfuser.tuning.target import host

_INLINES = frozenset(name for name, f in FUNCTIONS.items() if f.inlines)
_WORDS = (DType.INT32, DType.UINT32)
"""Integers that are divided by way of doubles: processors have no other division of vectors."""

_SIMPLE = (nodes.Declare, nodes.DeclareArray, nodes.Assign, nodes.Store, nodes.Update)


def local_arrays(body: Body) -> frozenset[Sym]:
    """The arrays and the scratch memory that a body declares."""
    kinds = (nodes.DeclareArray, nodes.Scratch)
    return frozenset(s.sym for s in statements(body) if isinstance(s, kinds))


def is_covered(e: Expr) -> bool:
    """Whether an expression is a call that the vector maths have a version of."""
    if not isinstance(e, nodes.Call) or power_of(e):
        return False
    return bool(e.args) and (e.name, e.args[0].dtype) in host().vector_maths


def vectorises(stmt: Stmt, arrays: frozenset[Sym]) -> bool:
    """Whether iterations of a statement can run in the lanes of a vector.

    `arrays` are the local arrays. Loops, atomics, output, divisions of integers by variables and
    calls without a vector version cannot; nor can a vector version be called for some lanes only.
    """
    if isinstance(stmt, nodes.If):
        parts = (*stmt.then, *stmt.orelse)
        return (
            all(vectorises(part, arrays) for part in parts)
            and not any(map(is_covered, _nested(parts)))
            and _computable(stmt.condition, arrays)
        )
    if not isinstance(stmt, _SIMPLE) or (isinstance(stmt, nodes.Update) and stmt.atomic):
        return False
    if isinstance(stmt, nodes.Update) and stmt.op in ("/", "%"):
        real = stmt.target.dtype.is_float and stmt.value.dtype.is_float
        return real and all(_computable(e, arrays) for e in child_expressions(stmt))
    if isinstance(stmt, nodes.Store) and stmt.view in arrays and _moves(stmt.indices):
        return False
    return all(_computable(e, arrays) for e in child_expressions(stmt))


def _computable(e: Expr, arrays: frozenset[Sym]) -> bool:
    return all(has_vector_form(part, arrays) for part in expressions(e)) and not any(
        is_covered(part) for part in conditional(e)
    )


def has_vector_form(e: Expr, arrays: frozenset[Sym]) -> bool:
    """Whether the operation of an expression, its operands aside, has a vector form."""
    if isinstance(e, nodes.Call):
        real = not any(arg.dtype.is_complex for arg in e.args)
        return real and (e.name in _INLINES or is_covered(e) or power_of(e) != "")
    if isinstance(e, nodes.Binary):
        if e.op not in ("/", "%"):
            return True
        return e.dtype.is_float or e.dtype in _WORDS
    if isinstance(e, nodes.Load):
        return e.view not in arrays or not _moves(e.indices)
    return not isinstance(e, nodes.AtomicFetch)


def conditional(e: Expr) -> Iterator[Expr]:
    """The expressions within `e` that are not evaluated every time."""
    for part in unconditional(e):
        if isinstance(part, nodes.Select):
            yield from expressions(part.then)
            yield from expressions(part.orelse)
        elif isinstance(part, nodes.Logical):
            yield from expressions(part.right)


def unconditional(e: Expr) -> Iterator[Expr]:
    """The expressions within `e`, and itself, that are evaluated every time."""
    yield e
    if isinstance(e, nodes.Select):
        yield from unconditional(e.condition)
    elif isinstance(e, nodes.Logical):
        yield from unconditional(e.left)
    else:
        for child in child_expressions(e):
            yield from unconditional(child)


def _nested(body: Iterable[Stmt]) -> Iterator[Expr]:
    for stmt in body:
        yield from expressions(stmt)
        if isinstance(stmt, nodes.If):
            yield from _nested((*stmt.then, *stmt.orelse))


def _moves(indices: tuple[Expr, ...]) -> bool:
    """Whether a subscript is more than a constant: such a local array lies in memory."""
    return not all(isinstance(index, nodes.Const) for index in indices)
