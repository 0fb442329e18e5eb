"""Which statements g++ can vectorise along the iterations around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from pyfuser.ir import nodes
from pyfuser.ir.affine import everywhere, linear
from pyfuser.ir.definitions import expand, stable_locals
from pyfuser.ir.dtypes import DType
from pyfuser.ir.maths import FUNCTIONS
from pyfuser.ir.nodes import Body, Expr, For, Stmt, Sym
from pyfuser.ir.powers import power_of
from pyfuser.ir.visit import (
    all_expressions,
    child_expressions,
    expressions,
    reads,
    statements,
)
from pyfuser.tuning.target import host

_INLINES = frozenset(name for name, f in FUNCTIONS.items() if f.inlines)
_WORDS = (DType.INT32, DType.UINT32)
"""Integers that are divided by way of doubles: processors have no other division of vectors."""

_NUMBERS = (nodes.Const, nodes.Unary, nodes.Binary, nodes.Cast)
"""What compilers compute."""

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


def takes_lanes(loop: For, lane: Sym, given: AbstractSet[Sym], arrays: frozenset[Sym]) -> bool:
    """Whether g++ runs the iterations around a loop in the lanes of vectors, trip by trip.

    It does where it knows the number of trips, none stores, and neighbours load neighbouring
    elements or one. lane: the index of the iterations, of the axis along which memory lies. given:
    other indices, and parameters that nothing changes. arrays: local arrays.
    """
    bounds = [part for bound in (loop.start, loop.stop) for part in expressions(bound)]
    if not all(isinstance(part, _NUMBERS) for part in bounds):
        return False
    parts = list(statements(loop.body))
    if any(
        isinstance(s, nodes.Store) or (isinstance(s, nodes.Update) and s.indices) for s in parts
    ):
        return False
    known, stable = {loop.sym, lane, *given}, stable_locals(loop.body)
    loads = [e for e in all_expressions(loop.body) if isinstance(e, nodes.Load)]
    return all(vectorises(stmt, arrays) for stmt in loop.body) and all(
        e.view not in arrays and _is_near(e, lane, known, stable) for e in loads
    )


def _is_near(e: nodes.Load, lane: Sym, known: set[Sym], stable: Mapping[Sym, Expr]) -> bool:
    """Whether neighbours load neighbouring elements, or one."""
    *others, last = (linear(expand(index, stable), everywhere) for index in e.indices)
    return (
        all(reads(*form.terms) <= known for form in (*others, last))
        and all(lane not in reads(*form.terms) for form in others)
        and last.coefficient(lane) in (0, 1)
    )


def is_window(loop: For) -> bool:
    """Whether the trips of a loop walk along memory: each is in one row of what they load."""
    stable = stable_locals(loop.body)
    moves = [
        [loop.sym in reads(expand(index, stable)) for index in e.indices]
        for e in all_expressions(loop.body)
        if isinstance(e, nodes.Load)
    ]
    return any(map(any, moves)) and not any(any(rows) for *rows, _ in moves)


def _computable(e: Expr, arrays: frozenset[Sym]) -> bool:
    return all(has_vector_form(part, arrays) for part in expressions(e)) and not any(
        is_covered(part) for part in conditional(e)
    )


def has_vector_form(e: Expr, arrays: frozenset[Sym]) -> bool:
    """Whether the operation of an expression, its operands aside, has a vector form."""
    if isinstance(e, nodes.Call):
        real = e.name in ("real", "imag") or not any(arg.dtype.is_complex for arg in e.args)
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
