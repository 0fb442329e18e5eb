"""Fully unroll inner loops whose few trips are known for this trace.

A scalar that bounds a loop has a known value in the shape of the arguments. With its trips written
out a loop no longer stands in the way of vectorising the iterations around it. Applied to every
kernel of an engine that emits C++, fused or not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyfuser.analysis.intervals import interval
from pyfuser.ir.canonical import fresh
from pyfuser.ir.nodes import (
    Body,
    Const,
    Expr,
    Extent,
    For,
    Read,
    Stmt,
    Sym,
    While,
)
from pyfuser.ir.visit import (
    all_expressions,
    assigned,
    declared,
    leaves_loop,
    map_body,
    statements,
    substitute_syms,
)
from pyfuser.trace.shape import RegionShape, ScalarShape
from pyfuser.transform.kernel import Kernel

MAX_TRIPS = 16
MAX_NODES = 1500  # expressions that one loop may unroll to


def unroll(kernel: Kernel) -> Kernel:
    """The kernel with short loops of known bounds replaced by their trips."""
    known: dict[Sym, tuple[int, int]] = {}
    extents: dict[Sym, tuple[int, ...]] = {}
    for param, shape in zip(kernel.workunit.params, kernel.shapes, strict=True):
        if isinstance(shape, ScalarShape) and shape.value is not None:
            known[param.sym] = (shape.value, shape.value)
        elif isinstance(shape, RegionShape):
            extents[param.sym] = shape.shape
    body = map_body(kernel.workunit.body, None, lambda stmt: _trips(stmt, known, extents))
    return replace(kernel, workunit=replace(kernel.workunit, body=body))


def _trips(
    stmt: Stmt, known: dict[Sym, tuple[int, int]], extents: dict[Sym, tuple[int, ...]]
) -> Stmt | Body:
    """The trips of a loop one after the other, or the statement itself."""
    if not isinstance(stmt, For):
        return stmt
    values = _values(stmt, known, extents)
    if values is None or len(values) > MAX_TRIPS or not _may_unroll(stmt):
        return stmt
    if len(values) * sum(1 for _ in all_expressions(stmt.body)) > MAX_NODES:
        return stmt
    result: list[Stmt] = []
    for value in values:
        trip = substitute_syms(stmt.body, {s: fresh(s.name, s.dtype) for s in declared(stmt.body)})
        result += map_body(trip, _setter(stmt.sym, value))
    return tuple(result)


def _values(
    loop: For, known: dict[Sym, tuple[int, int]], extents: dict[Sym, tuple[int, ...]]
) -> range | None:
    """The values that the loop's variable takes, if they are known."""
    bounds = []
    for expr in (loop.start, loop.stop, loop.step):
        if isinstance(expr, Extent) and expr.view in extents:
            bounds.append(extents[expr.view][expr.axis])
            continue
        values = interval(expr, known)
        if values is None or values[0] != values[1]:
            return None
        bounds.append(values[0])
    start, stop, step = bounds
    if step == 0 or (step < 0 and not isinstance(loop.step, Const)):
        return None
    return range(start, stop, step)


def _may_unroll(loop: For) -> bool:
    """Whether each trip runs to its end and none changes the loop's variable.

    Around a loop that stays, nothing would be gained: iterations do not vectorise across that.
    """
    if any(isinstance(stmt, (For, While)) for stmt in statements(loop.body)):
        return False
    return loop.sym not in assigned(loop.body) and not any(map(leaves_loop, loop.body))


def _setter(sym: Sym, value: int) -> Callable[[Expr], Expr]:
    """Replaces reads of a symbol by a constant."""
    constant = Const(value, sym.dtype)
    return lambda expr: constant if isinstance(expr, Read) and expr.sym == sym else expr
