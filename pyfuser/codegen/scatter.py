"""Loops that mostly scatter: vectors would be slower than one iteration after the other.

    if inside[i] == 1: target[place[i] - 1] = source[i]

g++ stores the lanes of a vector to places that were loaded by a scatter, which processors split
into as many stores again: some of them (AMD's) by microcode, at several times the cost. Only what
else the loop computes in vectors is worth that.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyfuser.codegen.cpp_cost import body_cost
from pyfuser.codegen.vectorisable import local_arrays
from pyfuser.ir import nodes
from pyfuser.ir.nodes import Body, Expr, Stmt, Sym
from pyfuser.ir.visit import expressions, statements

_SCATTERED = 12
"""Additions in vectors that are worth one scattered element."""

ONE_BY_ONE = '__asm__ volatile("");  // keeps vectors away, whose stores would be scattered'


def mostly_scatters(body: Body) -> bool:
    """Whether iterations of a loop had better not run in the lanes of vectors."""
    loaded, arrays = _loaded(body), local_arrays(body)
    scattered = sum(
        any(_depends(index, loaded) for index in stmt.indices) and _view(stmt) not in arrays
        for stmt in _straight(body)
        if isinstance(stmt, (nodes.Store, nodes.Update))
    )
    return bool(scattered) and body_cost(body) <= _SCATTERED * scattered


def _view(stmt: nodes.Store | nodes.Update) -> Sym:
    return stmt.view if isinstance(stmt, nodes.Store) else stmt.target


def _loaded(body: Body) -> set[Sym]:
    """The locals whose values depend on what is loaded."""
    found: set[Sym] = set()
    before = -1
    while len(found) > before:
        before = len(found)
        for stmt in statements(body):
            if isinstance(stmt, (nodes.Declare, nodes.Assign)) and stmt.value is not None:
                found |= {stmt.sym} if _depends(stmt.value, found) else set()
    return found


def _depends(e: Expr, loaded: set[Sym]) -> bool:
    return any(
        isinstance(part, nodes.Load) or (isinstance(part, nodes.Read) and part.sym in loaded)
        for part in expressions(e)
    )


def _straight(body: Body) -> Iterator[Stmt]:
    """The statements outside of inner loops, which no vector form would have."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, nodes.If):
            yield from _straight((*stmt.then, *stmt.orelse))
