"""Bounds on integer locals that change: what `best` in an argmin may be, whatever the data.

The intervals of all values that a body ever gives a local, wherever it does (flow-insensitive), as
a least fixed point. A local whose interval still grows after a few rounds, as a counter's does, has
no bounds but its type's (widening: P. Cousot and R. Cousot, "Abstract interpretation", 1977).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pyfuser.analysis.affine import Interval
from pyfuser.analysis.intervals import fits, interval
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Assign, Body, Const, Declare, For, Sym, Update
from pyfuser.ir.visit import assigned, reads, statements

ROUNDS = 3
"""Rounds after which an interval that still grows is given up."""


# law
def bounded_locals(body: Body, known: Mapping[Sym, Interval]) -> dict[Sym, Interval]:
    """The bounds of integer locals and loop variables, as far as there are any.

    known: the bounds of indices and scalars; of those the body changes, nothing is taken.
    """
    changing = assigned(body)
    given = {sym: bounds for sym, bounds in known.items() if sym not in changing}
    open_syms = _candidates(body)
    givers = list(_givers(body, open_syms))
    bounds: dict[Sym, Interval] = {}
    for turn in range(ROUNDS + len(open_syms) + 1):
        found = _once(givers, given, bounds, open_syms, changing)
        if found == bounds:
            break
        if turn >= ROUNDS:
            open_syms -= {sym for sym in found if found[sym] != bounds.get(sym)}
            found = {sym: value for sym, value in found.items() if sym in open_syms}
        bounds = found
    else:
        return {}
    return {sym: value for sym, value in bounds.items() if value != sym.dtype.range()}


def _candidates(body: Body) -> set[Sym]:
    """Integer locals that only ever get whole values."""
    found = {
        stmt.sym
        for stmt in statements(body)
        if isinstance(stmt, (Declare, For)) and _is_counted(stmt.sym)
    }
    return found - {stmt.target for stmt in statements(body) if isinstance(stmt, Update)}


def _is_counted(sym: Sym) -> bool:
    return sym.dtype.is_integer and sym.dtype is not DType.BOOL


class _Giver(NamedTuple):
    """A statement that gives a local its value, and the candidates that it reads for that."""

    stmt: For | Declare | Assign
    reads: frozenset[Sym]


def _givers(body: Body, candidates: set[Sym]) -> Iterator[_Giver]:
    for stmt in statements(body):
        if isinstance(stmt, (For, Declare, Assign)) and stmt.sym in candidates:
            value = () if isinstance(stmt, For) or stmt.value is None else (stmt.value,)
            parts = (stmt.start, stmt.stop) if isinstance(stmt, For) else value
            yield _Giver(stmt, frozenset(reads(*parts) & candidates))


def _once(
    givers: Sequence[_Giver],
    given: Mapping[Sym, Interval],
    bounds: Mapping[Sym, Interval],
    open_syms: set[Sym],
    changing: set[Sym],
) -> dict[Sym, Interval]:
    """The hulls of all values, if those that they are made of lie in `bounds`.

    What is made of a local that has no value yet is left out.
    """
    env = {**given, **bounds}
    found = dict(bounds)
    waiting = open_syms - bounds.keys()
    for stmt, read in givers:
        if stmt.sym not in open_syms or not waiting.isdisjoint(read):
            continue
        value: Interval | None
        if isinstance(stmt, For):
            value = None if stmt.sym in changing else _trips(stmt, env)
        else:
            value = (0, 0) if stmt.value is None else interval(stmt.value, env)
        value = value or stmt.sym.dtype.range()
        old = found.get(stmt.sym, value)
        found[stmt.sym] = min(old[0], value[0]), max(old[1], value[1])
    return found


def _trips(loop: For, env: Mapping[Sym, Interval]) -> Interval | None:
    """The values of an upward loop's variable inside the loop."""
    start, stop = interval(loop.start, env), interval(loop.stop, env)
    step = loop.step.value if isinstance(loop.step, Const) else None
    if start is None or stop is None or not isinstance(step, int) or step <= 0:
        return None
    if not (fits(start, loop.sym.dtype) and fits((start[0], stop[1] + step), loop.sym.dtype)):
        return None
    return start[0], max(start[0], stop[1] - 1)
