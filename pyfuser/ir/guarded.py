"""A workunit over a box as one over a larger box, whose body runs inside its own box alone.

    over [1, n - 1):             over [0, n):
    y[i] = f(i)           ->     if i >= i_begin and i < i_end:
                                     y[i] = f(i)

The bounds are scalar parameters, so that the code is one for all sizes. Which statement is such a
guard shows in its form (`bounds_of`), and code generation may split the loop there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

from pyfuser.ir.canonical import all_syms
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Body,
    Cast,
    Compare,
    Expr,
    If,
    Logical,
    Param,
    Read,
    Stmt,
    Sym,
    Workunit,
)
from pyfuser.ir.visit import all_expressions, assigned
from pyfuser.support.caches import cached
from pyfuser.support.records import dataclass


@dataclass(frozen=True, slots=True)
class Bound:
    """`sym >= limit`, of an index, or `sym < limit` if it is an upper one.

    The two are compared as values of the limit's type, which may be narrower than the index.
    """

    sym: Sym
    upper: bool
    limit: Sym


Side = tuple[int, bool]  # an axis, and whether its end is meant


def guarded(workunit: Workunit, sides: Iterable[Side]) -> Workunit:
    """The workunit with a guard for each side, and parameters for their bounds after its own."""
    uid = 1 + max(sym.uid for sym in all_syms(workunit))
    bounds = []
    for number, (axis, upper) in enumerate(sides):
        index = workunit.indices[axis]
        name = f"{index.name}_{'end' if upper else 'begin'}"
        bounds.append(Bound(index, upper, Sym(name, uid + number, index.dtype)))
    if not bounds:
        return workunit
    condition = reduce(lambda a, b: Logical("&&", a, b), map(_test, bounds))
    params = (*workunit.params, *(Param(bound.limit) for bound in bounds))
    return replace(workunit, params=params, body=(If(condition, workunit.body),))


# law
def _test(bound: Bound) -> Expr:
    return Compare("<" if bound.upper else ">=", Read(bound.sym), Read(bound.limit))


# law: not []
def bounds_of(condition: Expr, indices: Container[Sym], scalars: Container[Sym]) -> list[Bound]:
    """The bounds that a condition consists of; none if it is any other."""
    if isinstance(condition, Logical) and condition.op == "&&":
        left = bounds_of(condition.left, indices, scalars)
        right = bounds_of(condition.right, indices, scalars)
        return [*left, *right] if left and right else []
    if not isinstance(condition, Compare) or condition.op not in ("<", ">="):
        return []
    index, limit = condition.left, condition.right
    if isinstance(index, Cast) and index.dtype is DType.INT32:  # see `transform.widen`
        index = index.operand
    if not isinstance(index, Read) or not isinstance(limit, Read):
        return []
    if index.sym not in indices or limit.sym not in scalars:
        return []
    return [Bound(index.sym, condition.op == "<", limit.sym)]


_TYPES = (DType.INT32, DType.INT64)  # of indices


class Unguarded(NamedTuple):
    """The body of a workunit inside all boxes of its guards, and the bounds of these."""

    body: Body
    bounds: tuple[Bound, ...]


# law
def _bounds(workunit: Workunit) -> list[tuple[Stmt, list[Bound]]]:
    """The statements of a body, each with the bounds of the guard that it is."""
    changing = assigned(workunit.body)
    indices = frozenset(workunit.indices) - changing
    integers = {p.sym for p in workunit.params if not p.rank and p.sym.dtype in _TYPES} - changing
    return [
        (
            stmt,
            bounds_of(stmt.condition, indices, integers)
            if isinstance(stmt, If) and not stmt.orelse
            else [],
        )
        for stmt in workunit.body
    ]


# law: not None
def unguarded(workunit: Workunit) -> Unguarded | None:
    """The body where every guard holds; None if it has none."""
    body: Body = ()
    found: dict[Bound, None] = {}
    for stmt, bounds in _bounds(workunit):
        found.update(dict.fromkeys(bounds))
        body += stmt.then if bounds and isinstance(stmt, If) else (stmt,)
    return Unguarded(body, tuple(found)) if found else None


@cached(1024)
# law
def upper_limits(workunit: Workunit) -> frozenset[int]:
    """The places of scalars that do nothing but end guards: of a larger one, more runs."""
    ends = Counter(b.limit for _, bounds in _bounds(workunit) for b in bounds if b.upper)
    if not ends:
        return frozenset()
    reads = Counter(e.sym for e in all_expressions(workunit.body) if isinstance(e, Read))
    params = enumerate(workunit.params)
    return frozenset(n for n, p in params if p.sym in ends and ends[p.sym] == reads[p.sym])
