"""What operations cost, in additions: roughly, and on any machine."""

from __future__ import annotations

from collections.abc import Mapping, Set
from types import MappingProxyType

from pyfuser.ir.affine import linear, number
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
    Update,
    While,
    Workunit,
)
from pyfuser.ir.powers import power_of
from pyfuser.ir.visit import as_written, assigned, child_expressions, expressions
from pyfuser.support.caches import cached

LOAD = 2

TRIPS = 8
"""Assumed for a loop whose bounds are not constant."""


def weight(e: Expr) -> int:
    """The cost of an operation, its operands apart."""
    if isinstance(e, Call):
        return FUNCTIONS["sqrt" if power_of(e) else e.name].flops
    if isinstance(e, Load):
        return LOAD
    if isinstance(e, AtomicFetch):
        return 20
    if isinstance(e, Binary):
        return _of_operator(e.op)
    return 0 if isinstance(e, (Const, Read, Cast)) else 1


def _of_operator(op: str) -> int:
    return 8 if op in ("/", "%") else 1


NOTHING: Mapping[Sym, int] = MappingProxyType({})


def trips(loop: For, scalars: Mapping[Sym, int] = NOTHING) -> int:
    """How often a loop's body runs. scalars: those that are known, which may bound it."""

    def value(e: Expr) -> int | None:
        e = as_written(e)
        return scalars.get(e.sym) if isinstance(e, Read) else number(e)

    bounds = [linear(e, value=value) for e in (loop.start, loop.stop, loop.step)]
    start, stop, step = (form.constant for form in bounds)
    known = step and not any(form.terms for form in bounds)
    return len(range(start, stop, step)) if known else TRIPS


def arithmetic(workunit: Workunit, scalars: Mapping[Sym, int]) -> int:
    """What an iteration computes: equal expressions once, conversions between types as well.

    scalars: those of the call that are known, which may bound loops. Subscripts cost nothing: a
    compiler makes one pointer for neighbours. Nor does what is the same in all iterations.
    """
    return _arithmetic(workunit, frozenset(scalars.items()))


@cached(1024)
def _arithmetic(workunit: Workunit, scalars: frozenset[tuple[Sym, int]]) -> int:
    given = {param.sym for param in workunit.params if not param.rank} - assigned(workunit.body)
    return _Arithmetic(given, {s: n for s, n in scalars if s in given}).of(workunit.body, set())


class _Arithmetic:
    """given: arguments that keep their values, and those of them that are known."""

    def __init__(self, given: Set[Sym], scalars: Mapping[Sym, int]) -> None:
        self._given, self._scalars = given, scalars

    def of(self, body: Body, known: set[Expr]) -> int:
        """The cost of a body; to `known` comes what it computes."""
        total = 0
        for stmt in body:
            total += self._own(stmt, known)
            if isinstance(stmt, If):
                total += sum(self.of(side, set(known)) for side in (stmt.then, stmt.orelse))
            elif isinstance(stmt, For):
                total += trips(stmt, self._scalars) * self.of(stmt.body, set(known))
            elif isinstance(stmt, While):
                total += TRIPS * self.of(stmt.body, set(known))
        return total

    def _own(self, stmt: Stmt, known: set[Expr]) -> int:
        found = [e for child in child_expressions(stmt) for e in expressions(child)]
        loads = [index for e in found if isinstance(e, Load) for index in e.indices]
        indices = (*loads, *getattr(stmt, "indices", ()))
        subscripts = {part for index in indices for part in expressions(index)}
        total = _of_operator(stmt.op) if isinstance(stmt, Update) else 0
        for e in found:
            if e in known:
                continue
            known.add(e)
            if isinstance(e, Load) or not (e in subscripts or _is_given(e, self._given)):
                total += max(weight(e), _converts(e))
        return total


def _is_given(e: Expr, given: Set[Sym]) -> bool:
    """Whether an expression is one of scalar arguments and numbers alone."""
    if isinstance(e, Read):
        return e.sym in given
    return not isinstance(e, (Load, AtomicFetch)) and all(
        _is_given(child, given) for child in child_expressions(e)
    )


def _converts(e: Expr) -> int:
    """Whether an expression is a conversion that an instruction makes."""
    return int(isinstance(e, Cast) and e.dtype.is_float and not isinstance(e.operand, Const))
