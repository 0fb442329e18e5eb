"""What operations cost, in additions: roughly, and on any machine."""

from __future__ import annotations

from pyfuser.ir.affine import values_of
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


@cached(1024)
def arithmetic(workunit: Workunit) -> int:
    """What an iteration computes: equal expressions once, conversions between types as well.

    Subscripts cost nothing: a compiler makes one pointer for neighbours. Nor does what is the same
    in all iterations.
    """
    given = {param.sym for param in workunit.params if not param.rank} - assigned(workunit.body)
    return _body(workunit.body, set(), frozenset(given))


def _body(body: Body, known: set[Expr], given: frozenset[Sym]) -> int:
    total = 0
    for stmt in body:
        subscripts: set[Expr] = set()
        for child in child_expressions(stmt):
            for e in expressions(child):
                if isinstance(e, Load):
                    subscripts.update(part for index in e.indices for part in expressions(index))
        indices = getattr(stmt, "indices", ())
        subscripts.update(part for index in indices for part in expressions(index))
        for child in child_expressions(stmt):
            for e in expressions(child):
                if e not in known:
                    known.add(e)
                    if (e not in subscripts and not _is_given(e, given)) or isinstance(e, Load):
                        total += max(weight(e), _converts(e))
        if isinstance(stmt, If):
            total += sum(_body(side, set(known), given) for side in (stmt.then, stmt.orelse))
        elif isinstance(stmt, For):
            total += trips(stmt) * _body(stmt.body, set(known), given)
        elif isinstance(stmt, While):
            total += TRIPS * _body(stmt.body, set(known), given)
    return total


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
