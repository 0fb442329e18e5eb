"""Divisions by a number that stays the same along a strip of iterations (see `passes.strip_mine`).

A division of vectors takes as long as a dozen other operations. Where all iterations of a strip
divide by one number, as by the thickness of a layer in a trip over layers, its reciprocal is
computed once, and the quotients are multiplications that come out rounded as divisions do (see
reciprocal.h).

It pays in strips only, whose operands are in cache: in loops that stream from memory or keep many
values in registers the calls cost more than divisions, which take their time beside the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from pyfuser.codegen.cost.vectorisable import vectorises
from pyfuser.ir import nodes
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Body, Expr, Stmt
from pyfuser.ir.visit import all_expressions, child_expressions, expressions, map_body
from pyfuser.ir.weights import computed, weight
from pyfuser.support.passes import left_out

BY_RECIPROCAL = "by_reciprocal"
"""The name of the Call of two doubles that stands for a division then."""

OTHER = 10
"""Additions that a loop may have beside each division, and wait for it."""

_PLAIN = (nodes.Const, nodes.Extent, nodes.Read, nodes.Load, nodes.Unary, nodes.Binary, nodes.Cast)


def by_reciprocals(body: Body, stays: Callable[[Expr], bool]) -> Body:
    """The body of a loop over a strip, where divisions pay if computed by reciprocals.

    stays: whether a Read or Load has one value for the whole strip.
    """
    if left_out("reciprocal-division"):
        return body
    if not _waits_for_divisions(body) or not all(vectorises(s, frozenset()) for s in body):
        return body

    def is_same(e: Expr) -> bool:
        return all(
            isinstance(part, _PLAIN)
            and (stays(part) or not isinstance(part, (nodes.Read, nodes.Load)))
            for part in expressions(e)
        )

    def change(e: Expr) -> Expr:
        if not isinstance(e, nodes.Binary) or not _is_division(e):
            return e
        if is_same(e.left) or not is_same(e.right):
            return e
        if isinstance(e.right, nodes.Const) and _is_simple(e.right):
            return e
        return nodes.Call(BY_RECIPROCAL, (e.left, e.right), DType.FLOAT64)

    return tuple(
        part for stmt in body for part in (map_body((stmt,), change) if _always(stmt) else (stmt,))
    )


def _is_division(e: Expr) -> bool:
    return isinstance(e, nodes.Binary) and e.op == "/" and e.dtype is DType.FLOAT64


def _is_simple(number: nodes.Const) -> bool:
    """Whether g++ multiplies by itself, or the reciprocal would be none."""
    assert not isinstance(number.value, str)
    size = abs(number.value)
    return not math.isfinite(size) or math.frexp(size)[0] in (0.0, 0.5)


def _always(stmt: Stmt) -> bool:
    """Whether all of a statement runs in every iteration: reciprocals come before the loop."""
    if isinstance(stmt, nodes.If):
        return False
    kinds = (nodes.Select, nodes.Logical)
    return not any(isinstance(e, kinds) for c in child_expressions(stmt) for e in expressions(c))


def _waits_for_divisions(body: Body) -> bool:
    """Whether a loop's divisions take longer than all the rest: else that hides them."""
    divisions = {e for e in all_expressions(body) if _is_division(e)}
    return computed(body) - sum(map(weight, divisions)) <= OTHER * len(divisions)
