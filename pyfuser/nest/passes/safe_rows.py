"""Conditions that are the same all along a row: what they guard keeps to rows that are there.

    if i > 0:                          row = i - 1 if i > 0 else i
        s += m[i - 1][j]         ->    if i > 0:
                                           s += m[row][j]

g++ makes masked vector operations of what is guarded. In the first row no lane of theirs is used,
but their addresses are those of a row before the array, and where no memory lies there, the
processor takes some hundred cycles for each to find out that nothing was to be read: on an EPYC the
last layer of a stencil in three dimensions took 45 times as long as one inside.

The law: an index changes only where its condition does not hold, and so nothing is accessed. Which
row it is then is a guess, the iteration's own, and costs time at the most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce

from pyfuser.ir.affine import everywhere, linear
from pyfuser.ir.definitions import expand, stable_locals
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Binary,
    Body,
    Cast,
    Compare,
    Const,
    Declare,
    Expr,
    Extent,
    If,
    Load,
    Logical,
    Read,
    Select,
    Stmt,
    Store,
    Sym,
    Unary,
    Update,
)
from pyfuser.ir.visit import (
    assigned,
    contains,
    declared,
    expressions,
    map_body,
    map_expression,
    reads,
)
from pyfuser.nest.interior import both
from pyfuser.nest.nodes import Nest, Over

_OF_ROWS = (Const, Read, Cast, Unary, Compare)
_ARITHMETIC = ("+", "-", "*")
"""What may be computed where it was not: it cannot trap."""


def safe_rows(nest: Nest) -> Nest:
    """The nest with other rows where conditions on rows do not hold."""
    if nest.rank == 1 or nest.spec.checked:
        return nest

    def safe(stmt: Stmt) -> Stmt:
        return replace(stmt, body=_safe(nest, stmt.body)) if isinstance(stmt, Over) else stmt

    functions = tuple(replace(f, body=map_body(f.body, None, safe)) for f in nest.functions)
    if functions == nest.functions:
        return nest
    made, unit = replace(nest, functions=functions), nest.workunit
    if not unit.accumulators:
        return made
    # The tiles of sums are made of the workunit.
    unit = replace(unit, body=_safe(nest, unit.body))
    return replace(made, spec=replace(nest.spec, workunit=unit))


def _safe(nest: Nest, body: Body) -> Body:
    """The body with the rows that it names declared first."""
    return _Rows(nest, body).named(body) if contains(body, If, Select, Logical) else body


class _Rows:
    """The rows that iterations of a box access under conditions that all of a row share."""

    def __init__(self, nest: Nest, body: Body) -> None:
        changing, params = assigned(body), nest.workunit.params
        *outer, _ = nest.spec.order.axes
        self._nest = nest
        self._own = {nest.workunit.indices[axis] for axis in outer} - changing
        self._given = self._own | {p.sym for p in params if not p.rank} - changing
        self._views = {p.sym for p in params if p.rank}
        twice = {sym for sym, count in Counter(declared(body)).items() if count > 1}
        self._stable = {s: e for s, e in stable_locals(body).items() if s not in twice}
        self._rows: dict[tuple[Expr, Expr], Sym] = {}
        self._origin: dict[Sym, Sym] = {}  # of a row, the index that it is found from

    def named(self, body: Body) -> Body:
        """The body with the rows that it names declared first."""
        body = map_body(body, self._of_expression, self._of_statement)
        return (*self._declared(), *body)

    def _declared(self) -> Iterator[Stmt]:
        for (condition, index), sym in self._rows.items():
            instead: Expr = Read(self._origin[sym])
            if instead.dtype is not index.dtype:
                instead = Cast(instead, index.dtype)
            yield Declare(sym, Select(condition, index, instead))

    def _of_statement(self, stmt: Stmt) -> Stmt:
        if not isinstance(stmt, If):
            return stmt
        yes, no = (self._facts(stmt.condition, holds) for holds in (True, False))
        then, orelse = self._guarded(stmt.then, yes), self._guarded(stmt.orelse, no)
        return replace(stmt, then=then, orelse=orelse)

    def _of_expression(self, e: Expr) -> Expr:
        if isinstance(e, Select):
            then, orelse = (self._facts(e.condition, holds) for holds in (True, False))
            return replace(
                e, then=self._operand(e.then, then), orelse=self._operand(e.orelse, orelse)
            )
        if isinstance(e, Logical):
            return replace(e, right=self._operand(e.right, self._facts(e.left, e.op == "&&")))
        return e

    def _guarded(self, body: Body, facts: Sequence[Expr]) -> Body:
        """What is done where facts are known."""

        def store(stmt: Stmt) -> Stmt:
            if isinstance(stmt, Store) and stmt.view in self._views:
                return replace(stmt, indices=self._indices(stmt.indices, facts))
            if isinstance(stmt, Update) and stmt.target in self._views:
                return replace(stmt, indices=self._indices(stmt.indices, facts))
            return stmt

        return map_body(body, lambda e: self._load(e, facts), store) if facts else body

    def _operand(self, e: Expr, facts: Sequence[Expr]) -> Expr:
        return map_expression(e, lambda e: self._load(e, facts)) if facts else e

    def _load(self, e: Expr, facts: Sequence[Expr]) -> Expr:
        if isinstance(e, Load) and e.view in self._views:
            return replace(e, indices=self._indices(e.indices, facts))
        return e

    def _indices(self, indices: tuple[Expr, ...], facts: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple(self._row(index, facts) for index in indices)

    def _row(self, index: Expr, facts: Sequence[Expr]) -> Expr:
        """An index of a view; a row's own name where it has one."""
        expanded = expand(index, self._stable)
        own = self._own_of(expanded)
        told = [fact for fact in facts if own in reads(fact)]
        if own is None or not told:
            return index
        condition = reduce(both, told)
        if (condition, expanded) not in self._rows:
            sym = self._nest.fresh(f"pf_row_{len(self._rows)}", index.dtype)
            self._rows[condition, expanded], self._origin[sym] = sym, own
        return Read(self._rows[condition, expanded])

    def _own_of(self, index: Expr) -> Sym | None:
        """The index of an axis that a row is a few steps from; None if it is that index."""
        if isinstance(index, Read):
            return self._origin.get(index.sym)
        if not self._is_given(index):
            return None
        terms = linear(index, everywhere).terms
        found = reads(*terms) & self._own
        steps = [terms[e] for e in terms if not reads(e).isdisjoint(self._own)]
        return found.pop() if len(found) == 1 and steps == [1] else None

    # law
    def _facts(self, condition: Expr, holds: bool) -> list[Expr]:
        """What is known of rows where a condition holds, or where it does not."""
        if isinstance(condition, Read):
            condition = self._stable.get(condition.sym, condition)
        if isinstance(condition, Unary) and condition.op == "!":
            return self._facts(condition.operand, not holds)
        if isinstance(condition, Logical):
            if (condition.op == "&&") is not holds:
                return []
            return self._facts(condition.left, holds) + self._facts(condition.right, holds)
        if not isinstance(condition, Compare):
            return []
        left, right = (expand(e, self._stable) for e in (condition.left, condition.right))
        fact: Expr = replace(condition, left=left, right=right)
        if not self._is_given(fact) or reads(fact).isdisjoint(self._own):
            return []
        return [fact if holds else Unary("!", fact, DType.BOOL)]

    # law
    def _is_given(self, e: Expr) -> bool:
        """Whether a value is the same along a row, and may be computed anywhere."""
        return reads(e) <= self._given and all(
            isinstance(part, _OF_ROWS)
            or (isinstance(part, Extent) and part.view in self._views)
            or (isinstance(part, Binary) and part.op in _ARITHMETIC)
            for part in expressions(e)
        )
