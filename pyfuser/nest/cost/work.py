"""A rough cost of one iteration, in additions: how many of them are worth another thread."""

from __future__ import annotations

from collections.abc import Iterable

from pyfuser.ir import nodes
from pyfuser.ir.nodes import Body, Declare, Expr, Sym, Workunit
from pyfuser.ir.visit import assigned, child_expressions, declared, expressions
from pyfuser.ir.weights import TRIPS, trips, weight
from pyfuser.nest.shares import Trips, Work

_UNBOUNDED = 4 * TRIPS
"""Trips of a loop that nothing bounds: it has no vectors, and is rarely short."""

_CHEAP = 3
"""Additions that are computed again rather than kept."""


def varies(workunit: Workunit) -> bool:
    """Whether loops are bounded by arguments: how many trips they have is known at a launch."""
    return _varies(workunit.body, frozenset(param.sym for param in workunit.params))


def _varies(body: Body, arguments: frozenset[Sym]) -> bool:
    return any(
        (isinstance(stmt, nodes.For) and _is_bounded(stmt, arguments))
        or (isinstance(stmt, nodes.If) and _varies((*stmt.then, *stmt.orelse), arguments))
        for stmt in body
    )


def work_of(workunit: Workunit) -> Work:
    """The cost of an iteration, where arguments bound loops."""
    return _work(workunit.body, frozenset(param.sym for param in workunit.params))


def _work(body: Body, arguments: frozenset[Sym]) -> Work:
    """The cost of a body as a sum, with the trips of loops bounded by arguments."""
    constant, parts = 0, list[int | Trips]()
    for stmt in body:
        if isinstance(stmt, nodes.If):
            constant += _all(child_expressions(stmt))
            first, *rest = _work((*stmt.then, *stmt.orelse), arguments)
            if rest or isinstance(first, Trips):
                parts += [first, *rest]
            else:
                constant += first
        elif isinstance(stmt, nodes.For) and _is_bounded(stmt, arguments):
            parts.append(Trips(stmt.start, stmt.stop, _work(stmt.body, arguments)))
        else:
            constant += _statement(stmt)
    return (constant, *parts)


def _is_bounded(loop: nodes.For, arguments: frozenset[Sym]) -> bool:
    """Whether the trips are known from arguments, and not before."""
    bounds = (loop.start, loop.stop)
    if not isinstance(loop.step, nodes.Const) or loop.step.value != 1:
        return False
    return all(_is_argument(e, arguments) for e in bounds) and not all(
        isinstance(e, nodes.Const) for e in bounds
    )


def _is_argument(e: Expr, arguments: frozenset[Sym]) -> bool:
    while isinstance(e, nodes.Cast):
        e = e.operand
    if isinstance(e, nodes.Extent):
        return e.view in arguments
    return isinstance(e, nodes.Const) or (isinstance(e, nodes.Read) and e.sym in arguments)


def body_cost(body: Body) -> int:
    """The cost of running a body once; both sides of an If count."""
    return sum(map(_statement, body))


def _statement(stmt: nodes.Stmt) -> int:
    own = _all(child_expressions(stmt))
    if isinstance(stmt, nodes.Store):
        return own + 2
    if isinstance(stmt, nodes.Update):
        return own + (20 if stmt.atomic else 3)
    if isinstance(stmt, nodes.If):
        return own + body_cost(stmt.then) + body_cost(stmt.orelse)
    if isinstance(stmt, nodes.For):
        return own + trips(stmt) * (1 + body_cost(stmt.body))
    if isinstance(stmt, nodes.While):
        return _UNBOUNDED * (own + body_cost(stmt.body))
    return own


def _all(es: Iterable[Expr]) -> int:
    return sum(map(_expression, es))


def _expression(e: Expr) -> int:
    return weight(e) + _all(child_expressions(e))


def cheap_declarations(body: Body, passed: Iterable[Sym] = ()) -> dict[Sym, Declare]:
    """Declarations that are cheap functions of indices and scalar arguments alone.

    passed: locals that come from what stands before the body, or that what comes after it uses
    and may change.
    """
    changing, local = {*assigned(body), *passed}, {*declared(body), *passed}
    result: dict[Sym, Declare] = {}
    for stmt in body:
        if not isinstance(stmt, Declare) or stmt.value is None or stmt.sym in changing:
            continue
        parts = list(expressions(stmt.value))
        known = all(
            isinstance(e, (nodes.Const, nodes.Extent, nodes.Cast, nodes.Unary, nodes.Binary))
            or (isinstance(e, nodes.Read) and (e.sym not in local or e.sym in result))
            for e in parts
        )
        if known and body_cost((stmt,)) <= _CHEAP:
            result[stmt.sym] = stmt
    return result
