"""What operations cost, in additions: roughly, and on any machine."""

from __future__ import annotations

from collections.abc import Mapping

from pyfuser.ir.affine import linear, number, values_of
from pyfuser.ir.maths import FUNCTIONS
from pyfuser.ir.nodes import (
    AtomicFetch,
    Binary,
    Body,
    Call,
    Cast,
    Const,
    Expr,
    For,
    If,
    Load,
    Read,
    Stmt,
    Sym,
    While,
    Workunit,
)
from pyfuser.ir.powers import power_of
from pyfuser.ir.visit import assigned, child_expressions, expressions
from pyfuser.support.caches import cached

TRIPS = 8
"""Assumed for a loop whose bounds are not constant."""


def weight(e: Expr) -> int:
    """The cost of an operation, its operands apart."""
    if isinstance(e, Call):
        return FUNCTIONS["sqrt" if power_of(e) else e.name].flops
    if isinstance(e, Load):
        return 2
    if isinstance(e, AtomicFetch):
        return 20
    if isinstance(e, Binary) and e.op in ("/", "%"):
        return 8
    return 0 if isinstance(e, (Const, Read, Cast)) else 1


def trips(loop: For) -> int:
    """How often a loop's body runs."""
    values = values_of(loop)
    return TRIPS if values is None else len(values)


def arithmetic(workunit: Workunit, scalars: Mapping[Sym, int]) -> int:
    """What an iteration computes: equal expressions once, conversions between types as well.

    scalars: those of the call that are known, which may bound loops. Subscripts cost nothing: a
    compiler makes one pointer for neighbours. Nor does what is the same in all iterations.
    """
    return _arithmetic(workunit, frozenset(scalars.items()))


@cached(1024)
def _arithmetic(workunit: Workunit, scalars: frozenset[tuple[Sym, int]]) -> int:
    given = {param.sym for param in workunit.params if not param.rank} - assigned(workunit.body)
    known = {sym: value for sym, value in scalars if sym in given}
    return _Counter(frozenset(given), known).count(workunit.body, set())


class _Counter:
    def __init__(self, given: frozenset[Sym], scalars: Mapping[Sym, int]) -> None:
        self._given = given
        self._scalars = scalars

    def count(self, body: Body, known: set[Expr]) -> int:
        """The cost of a body; to `known` comes what it computes."""
        total = 0
        for stmt in body:
            total += self._statement(stmt, known)
            if isinstance(stmt, If):
                total += sum(self.count(side, set(known)) for side in (stmt.then, stmt.orelse))
            elif isinstance(stmt, For):
                total += self._trips(stmt) * self.count(stmt.body, set(known))
            elif isinstance(stmt, While):
                total += TRIPS * self.count(stmt.body, set(known))
        return total

    def _statement(self, stmt: Stmt, known: set[Expr]) -> int:
        subscripts: set[Expr] = set()
        for child in child_expressions(stmt):
            for e in expressions(child):
                if isinstance(e, Load):
                    subscripts.update(part for index in e.indices for part in expressions(index))
        indices = getattr(stmt, "indices", ())
        subscripts.update(part for index in indices for part in expressions(index))
        total = 0
        for child in child_expressions(stmt):
            for e in expressions(child):
                if e not in known:
                    known.add(e)
                    if (e not in subscripts and not _is_given(e, self._given)) or isinstance(
                        e, Load
                    ):
                        total += max(weight(e), _converts(e))
        return total

    def _trips(self, loop: For) -> int:
        start, stop, step = (self._number(e) for e in (loop.start, loop.stop, loop.step))
        return TRIPS if start is None or stop is None or not step else len(range(start, stop, step))

    def _number(self, e: Expr) -> int | None:
        form = linear(e, value=self._value)
        return None if form.terms else form.constant

    def _value(self, e: Expr) -> int | None:
        while isinstance(e, Cast) and e.operand.dtype.is_integer:
            e = e.operand
        return self._scalars.get(e.sym) if isinstance(e, Read) else number(e)


def _is_given(e: Expr, given: frozenset[Sym]) -> bool:
    """Whether an expression is one of scalar arguments and numbers alone."""
    if isinstance(e, Read):
        return e.sym in given
    return not isinstance(e, (Load, AtomicFetch)) and all(
        _is_given(child, given) for child in child_expressions(e)
    )


def _converts(e: Expr) -> int:
    """Whether an expression is a conversion that an instruction makes."""
    return int(isinstance(e, Cast) and e.dtype.is_float and not isinstance(e.operand, Const))
