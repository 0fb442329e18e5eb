"""Maths calls taken out of conditions, so that the loop around them vectorises::

    if (hit) v = s * cos(phi);        const double cos_value = cos(phi);
                                 ->   if (hit) v = s * cos_value;

g++ turns the conditional into masked operations of vectors, but has no call for some lanes only.
The functions are const and cannot trap, so to call one for nothing costs its time and no more;
a few calls are cheaper as vectors than a scalar call behind a branch (some 3 ns against 20).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from pyfuser.ir import nodes
from pyfuser.ir.effects import is_pure
from pyfuser.ir.nodes import Body, Declare, Expr, Load, Stmt, Sym
from pyfuser.ir.visit import assigned, child_expressions, expressions, map_expression
from pyfuser.nest.cost.vectorisable import is_covered, local_arrays, unconditional, vectorises
from pyfuser.nest.segments import Fresh
from pyfuser.support.passes import left_out

MAX_CALLS = 4
"""Calls that one statement may make for nothing."""

_SAFE = ("+", "-", "*", "&", "|", "^")


def speculate(body: Body, fresh: Fresh) -> Body:
    """The body with conditional calls of the vector maths made unconditional, where that is safe.

    A statement changes only if it then has a vector form. Operands must be computable without a
    trap: no integer division, and no Load but of an element that was surely touched before.
    `fresh(name, dtype)` makes the Syms.
    """
    if left_out("hoist-calls"):
        return body
    return _speculate(body, fresh, local_arrays(body), frozenset(assigned(body)))


def _speculate(body: Body, fresh: Fresh, arrays: frozenset[Sym], changing: frozenset[Sym]) -> Body:
    result: list[Stmt] = []
    touched: set[Load] = set()
    for stmt in body:
        new = stmt
        if isinstance(stmt, nodes.For):
            inner = _speculate(stmt.body, fresh, arrays, changing)
            if all(vectorises(part, arrays) for part in inner):
                new = replace(stmt, body=inner)
        elif not vectorises(stmt, arrays):
            sure = {load for load in _touched(stmt) if not _varies(load, arrays, changing)}
            hoist = _Hoist(fresh, changing, touched | sure)
            changed = hoist.statement(stmt)
            if hoist.safe and len(hoist.ahead) and vectorises(changed, arrays):
                result += hoist.ahead
                new = changed
        result.append(new)
        touched.update(load for load in _touched(stmt) if not _varies(load, arrays, changing))
    return tuple(result)


def _touched(stmt: Stmt) -> Iterator[Load]:
    """The elements that a statement touches whatever the data."""
    if isinstance(stmt, nodes.Store):
        yield Load(stmt.view, stmt.indices)
    elif isinstance(stmt, nodes.Update) and stmt.indices:
        yield Load(stmt.target, stmt.indices)
    for top in child_expressions(stmt):
        yield from (e for e in unconditional(top) if isinstance(e, Load))


def _varies(load: Load, arrays: frozenset[Sym], changing: frozenset[Sym]) -> bool:
    """Whether equal text could mean another element later."""
    parts = (e for index in load.indices for e in expressions(index))
    return load.view in arrays or any(
        isinstance(e, nodes.Load) or (isinstance(e, nodes.Read) and e.sym in changing)
        for e in parts
    )


class _Hoist:
    """Takes the calls out of one statement; `ahead` are their declarations.

    What an arm declares and computes from what is known before the statement goes ahead, too, as
    calls may depend on it. `safe` turns false at the first call that cannot.
    """

    def __init__(self, fresh: Fresh, changing: frozenset[Sym], touched: set[Load]) -> None:
        self.fresh = fresh
        self.changing = changing
        self.touched = touched
        self.ahead: list[Stmt] = []
        self.safe = True
        self._calls: dict[Expr, Sym] = {}
        self._unknown: set[Sym] = set()  # assigned, or declared, within the statement
        self._stored = False

    def statement(self, stmt: Stmt) -> Stmt:
        """The statement without its conditional calls, which are added to `ahead`."""
        if isinstance(stmt, nodes.If):
            condition = self._conditional(stmt.condition)
            return replace(
                stmt, condition=condition, then=self._arm(stmt.then), orelse=self._arm(stmt.orelse)
            )
        return self._simple(stmt, self._conditional)

    def _simple(self, stmt: Stmt, change: Callable[[Expr], Expr]) -> Stmt:
        if isinstance(stmt, (nodes.Declare, nodes.Assign)):
            return stmt if stmt.value is None else replace(stmt, value=change(stmt.value))
        if isinstance(stmt, (nodes.Store, nodes.Update)):
            indices = tuple(map(change, stmt.indices))
            return replace(stmt, indices=indices, value=change(stmt.value))
        self.safe = False
        return stmt

    def _arm(self, body: Body) -> Body:
        result: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, nodes.If):
                condition = self._all(stmt.condition)
                then, orelse = self._arm(stmt.then), self._arm(stmt.orelse)
                result.append(replace(stmt, condition=condition, then=then, orelse=orelse))
                continue
            new = self._simple(stmt, self._all)
            if isinstance(new, Declare):
                if self._early(new):
                    self.ahead.append(new)
                    continue
                self._unknown.add(new.sym)
            elif isinstance(new, nodes.Assign):
                self._unknown.add(new.sym)
            elif isinstance(new, nodes.Update) and not new.indices:
                self._unknown.add(new.target)
            else:
                self._stored = True
            result.append(new)
        return tuple(result)

    def _early(self, stmt: Declare) -> bool:
        if stmt.value is None or stmt.sym in self.changing:
            return False
        return self._computable(stmt.value)

    def _conditional(self, e: Expr) -> Expr:
        """Without the calls that are not made every time."""

        def change(e: Expr) -> Expr:
            if isinstance(e, nodes.Select):
                return replace(e, then=self._all(e.then), orelse=self._all(e.orelse))
            return replace(e, right=self._all(e.right)) if isinstance(e, nodes.Logical) else e

        return map_expression(e, change)

    def _all(self, e: Expr) -> Expr:
        """Without calls."""
        return map_expression(e, self._call)

    def _call(self, e: Expr) -> Expr:
        if not isinstance(e, nodes.Call) or not is_covered(e):
            return e
        if e not in self._calls:
            if len(self._calls) == MAX_CALLS or not self._computable(e):
                self.safe = False
                return e
            self._calls[e] = self.fresh(f"{e.name}_value", e.dtype)
            self.ahead.append(Declare(self._calls[e], e))
        return nodes.Read(self._calls[e])

    def _computable(self, e: Expr) -> bool:
        """Whether an expression may be evaluated before the statement."""
        for part in expressions(e):
            if isinstance(part, nodes.Read) and part.sym in self._unknown:
                return False
            if isinstance(part, Load) and (self._stored or part not in self.touched):
                return False
            if isinstance(part, nodes.Binary) and part.dtype.is_integer and part.op not in _SAFE:
                return False
            if not is_pure(part):
                return False
        return True
