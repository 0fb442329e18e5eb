"""Loop distribution where bytes stand beside doubles.

    if a[i] > 3.0: flag[i] = 1        (bytes)
    y[i] = ...                        (many operations on doubles)

g++ takes as many iterations at a time as a vector has of the narrowest elements: 32 bytes, and so
eight vectors of doubles for each value of the statements between, more than there are registers.
In loops of their own, over a block of iterations, the bytes are loaded and stored in whole vectors
and the doubles, too; what passes between them is as wide as the wide. It is the distribution of
`passes.distribute`, by another kind of statement, and follows the same rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pyfuser.ir import nodes
from pyfuser.ir.dtypes import DType
from pyfuser.ir.effects import effects_of
from pyfuser.ir.nodes import Body, Cast, Compare, Const, Declare, Expr, Read, Stmt, Sym
from pyfuser.ir.visit import (
    all_expressions,
    assigned,
    child_expressions,
    declared,
    expressions,
    statements,
    sym_of,
)
from pyfuser.nest.cost.vectorisable import local_arrays, vectorises
from pyfuser.nest.cost.work import body_cost, cheap_declarations
from pyfuser.nest.passes.distribute import moved, with_operands, without
from pyfuser.nest.segments import (
    MAX_STATEMENTS,
    Fresh,
    Segment,
    dependences,
    expanded,
    expansion,
    grouped,
    touched,
)
from pyfuser.support.passes import left_out

NARROW = 4
"""Times that the widest elements are as wide as narrow ones, at least."""

WORTH = 12
"""Additions on wide elements in an iteration that are worth loops of their own ..."""

PASSED = 3
"""... and for each local that passes between them."""

MOST = 5
"""Loops that a segment becomes."""


def split_widths(segment: Segment, aliased: frozenset[Sym], fresh: Fresh) -> tuple[Segment, ...]:
    """The segments of one that vectorises; that itself if several do not pay.

    aliased, fresh: as of `distribute`.
    """
    whole = (segment,)
    if left_out("split-widths") or not segment.vector or segment.guard is not None:
        return whole
    body = segment.body
    narrow = _Narrow(segment, aliased)
    if not narrow.is_mixed or not effects_of(body).may_interleave:
        return whole
    arrays = local_arrays(body)
    if arrays or not all(vectorises(stmt, arrays) for stmt in body):
        return whole
    body = tuple(narrow.isolated(body, fresh))
    repeated = narrow.repeated(body)
    units = [stmt for stmt in body if not (isinstance(stmt, Declare) and stmt.sym in repeated)]
    if len(units) > MAX_STATEMENTS:
        return whole
    wide = [not narrow.touches(stmt) for stmt in units]
    if all(wide) or not any(wide):
        return whole
    groups = grouped(wide, dependences(units, aliased))
    parts = [tuple(units[n] for n in group) for group in groups]
    kinds = [wide[group[0]] for group in groups]
    result = expanded(parts, [True] * len(parts), repeated, segment.arriving, segment.leaving)
    gained = sum(body_cost(part) for part, kind in zip(parts, kinds, strict=True) if kind)
    if len(result) > MOST or gained < WORTH + PASSED * len(expansion(result)):
        return whole
    for part, kind in zip(result, kinds, strict=True):
        passed = {*part.arriving, *part.leaving} if kind else {*part.leaving} - {*segment.leaving}
        if any(map(narrow.is_narrow, passed)):
            return whole
    return result


class _Narrow:
    """What of a body is narrow."""

    def __init__(self, segment: Segment, aliased: frozenset[Sym]) -> None:
        body = segment.body
        written = set().union(*(touched(stmt)[1] for stmt in body))
        self._written = written | (aliased if written & aliased else set())
        subscripts = {e for part in _accesses(body) for i in part for e in expressions(i)}
        values = [e for e in all_expressions(body) if e not in subscripts]
        sizes = [e.dtype.size for e in values if isinstance(e, nodes.Load) or e.dtype.is_float]
        sizes += [
            stmt.view.dtype.size for stmt in statements(body) if isinstance(stmt, nodes.Store)
        ]
        self._widest = min(max(sizes, default=0), 8)  # of a complex number each part
        self._local = {*declared(body)}
        self._arriving = {*segment.arriving}
        self._passed = {*segment.arriving, *segment.leaving}
        self.is_mixed = min(sizes, default=8) * NARROW <= self._widest

    def is_narrow(self, sym: Sym) -> bool:
        """Whether an array of such elements makes vectors long."""
        return sym.dtype.size * NARROW <= self._widest

    def _is_source(self, e: Expr) -> bool:
        if isinstance(e, nodes.Load):
            return self.is_narrow(e.view)
        if not isinstance(e, Read) or not self.is_narrow(e.sym):
            return False
        return e.sym in self._arriving or (e.sym in self._local and e.dtype is not DType.BOOL)

    def _has(self, e: Expr) -> bool:
        return any(map(self._is_source, expressions(e)))

    def touches(self, stmt: Stmt) -> bool:
        """Whether a statement loads, stores or declares something narrow."""
        for part in statements((stmt,)):
            target = sym_of(part)
            kept = isinstance(part, nodes.Store) or (target and target.dtype is not DType.BOOL)
            if target is not None and kept and self.is_narrow(target):
                return True
        return any(self._has(e) for part in statements((stmt,)) for e in child_expressions(part))

    def _takes_wide(self, stmt: Stmt) -> bool:
        """Whether a statement has to do with anything that is not narrow."""
        targets = [sym_of(part) for part in statements((stmt,))]
        return any(sym is not None and not self.is_narrow(sym) for sym in targets) or any(
            (isinstance(e, nodes.Load) and not self.is_narrow(e.view))
            or (isinstance(e, Read) and e.sym in self._local and not self.is_narrow(e.sym))
            for e in all_expressions((stmt,))
        )

    def repeated(self, body: Body) -> dict[Sym, Declare]:
        """The declarations that are cheaper to repeat than to keep, but for narrow ones."""
        found = cheap_declarations(body, (*self._passed, *assigned(body)))
        own = {*declared(body)}
        while True:
            kept = {
                sym: stmt
                for sym, stmt in found.items()
                if not self.touches(stmt)
                and not any(
                    isinstance(e, Read) and e.sym in own and e.sym not in found
                    for e in all_expressions((stmt,))
                )
            }
            if len(kept) == len(found):
                return kept
            found = kept

    def isolated(self, body: Body, fresh: Fresh) -> Iterator[Stmt]:
        """The body with declarations of their own for what narrow and wide pass to each other."""
        known: dict[Expr, Expr] = {}  # what was made wide before, of views that nothing writes
        for stmt in body:
            if not self.touches(stmt) or not self._takes_wide(stmt):
                yield stmt
                continue
            ahead: list[Stmt] = []
            changed = without(stmt, self._becomes_wide, ahead, fresh, known)
            for made in ahead:
                assert isinstance(made, Declare) and made.value is not None
                if self._stays(made.value):
                    known[made.value] = Read(made.sym)
            if self.touches(changed):  # it takes wide values
                changed = self._with_wide_operands(changed, ahead, fresh)
            yield from ahead
            yield changed

    def _becomes_wide(self, e: Expr) -> bool:
        """Whether an expression makes something wide of what is narrow, and of nothing else."""
        return (
            isinstance(e, Cast)
            and e.dtype.size * NARROW > self._widest
            and self._has(e.operand)
            and not any(
                (isinstance(part, nodes.Load) and not self._is_source(part))
                or (
                    isinstance(part, Read) and part.sym in self._local and not self._is_source(part)
                )
                for part in expressions(e.operand)
            )
        )

    def _stays(self, e: Expr) -> bool:
        """Whether an expression has the same value everywhere in the body."""
        return not any(
            (e.view if isinstance(e, nodes.Load) else e.sym) in self._written
            for e in expressions(e)
            if isinstance(e, (nodes.Load, Read))
        )

    def _with_wide_operands(self, stmt: Stmt, ahead: list[Stmt], fresh: Fresh) -> Stmt:
        """With the values and conditions that are wide computed before."""
        if isinstance(stmt, nodes.If):
            if self._has(stmt.condition) or isinstance(stmt.condition, Read):
                return stmt
            return replace(stmt, condition=self._as_number(stmt.condition, ahead, fresh))

        def change(e: Expr) -> Expr:
            if isinstance(e, Cast) and not self._has(e) and not _is_simple(e.operand):
                return replace(e, operand=self._moved(e.operand, ahead, fresh))
            return e

        if isinstance(stmt, (nodes.Store, Declare, nodes.Assign)) and stmt.value is not None:
            return replace(stmt, value=change(stmt.value))
        return with_operands(stmt, change)

    def _moved(self, e: Expr, ahead: list[Stmt], fresh: Fresh) -> Expr:
        if e.dtype is DType.BOOL:
            return self._as_number(e, ahead, fresh)
        return moved(e, ahead, fresh)

    def _as_number(self, e: Expr, ahead: list[Stmt], fresh: Fresh) -> Expr:
        """A condition that passes as a number as wide as the widest elements."""
        dtype = DType.INT64 if self._widest == 8 else DType.INT32
        sym = fresh("condition", dtype)
        ahead.append(Declare(sym, Cast(e, dtype)))
        return Compare("!=", Read(sym), Const(0, dtype))


def _accesses(body: Body) -> Iterator[tuple[Expr, ...]]:
    """The subscripts of all accesses."""
    for e in all_expressions(body):
        if isinstance(e, nodes.Load):
            yield e.indices
    for stmt in statements(body):
        if isinstance(stmt, (nodes.Store, nodes.Update)):
            yield stmt.indices


def _is_simple(e: Expr) -> bool:
    return isinstance(e, (Read, Const)) or (isinstance(e, Cast) and _is_simple(e.operand))
