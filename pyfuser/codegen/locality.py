"""Rows that several loops of an iteration walk along, while they are in the first-level cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyfuser.ir import nodes
from pyfuser.ir.nodes import Body, Expr, Stmt, Sym
from pyfuser.ir.visit import expressions

_TRIPS = 256
"""Assumed for a loop whose bounds are not constant."""


def torn(parts: Sequence[Body], place: int, own: frozenset[Sym]) -> int:
    """How many elements of rows are walked along again after a part, in an iteration.

    If the part gets a loop of its own, the rows of all iterations of a block come in between, and
    each of these elements is fetched from a slower cache. `own` are the indices of the space and
    the locals: elements without one in their subscripts are the same for all iterations, and near.
    """
    before = {view for part in parts[:place] for view, _ in _rows(part, own)}
    return sum(
        max((trips for view, trips in _rows((stmt,), own) if view in before), default=0)
        for part in parts[place + 1 :]
        for stmt in part
    )


def _rows(part: Body, own: frozenset[Sym]) -> Iterator[tuple[Sym, int]]:
    for view, subscripts, trips in _walks(part, 1):
        found = (e for index in subscripts for e in expressions(index))
        if any(isinstance(e, nodes.Read) and e.sym in own for e in found):
            yield view, trips


def _walks(part: Body, trips: int) -> Iterator[tuple[Sym, tuple[Expr, ...], int]]:
    """What the loops of a part access, and how many times in an iteration."""
    for stmt in part:
        if isinstance(stmt, nodes.If):
            yield from _walks((*stmt.then, *stmt.orelse), trips)
        elif isinstance(stmt, (nodes.For, nodes.While)):
            yield from _walks(stmt.body, trips * _trips(stmt))
        if trips > 1:
            yield from ((view, subscripts, trips) for view, subscripts in _accesses(stmt))


def _accesses(stmt: Stmt) -> Iterator[tuple[Sym, tuple[Expr, ...]]]:
    for e in expressions(stmt):
        if isinstance(e, nodes.Load):
            yield e.view, e.indices
    if isinstance(stmt, nodes.Store):
        yield stmt.view, stmt.indices
    elif isinstance(stmt, nodes.Update) and stmt.indices:
        yield stmt.target, stmt.indices


def _trips(loop: nodes.For | nodes.While) -> int:
    if isinstance(loop, nodes.While):
        return _TRIPS
    bounds = (loop.start, loop.stop, loop.step)
    values = [e.value for e in bounds if isinstance(e, nodes.Const) and isinstance(e.value, int)]
    return len(range(*values)) if len(values) == 3 and values[2] else _TRIPS
