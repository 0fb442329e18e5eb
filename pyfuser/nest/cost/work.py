"""A rough cost of one iteration, in additions: how many of them are worth another thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyfuser.ir import nodes
from pyfuser.ir.nodes import Body, Declare, Expr, Sym, Workunit
from pyfuser.ir.visit import assigned, child_expressions, declared, expressions
from pyfuser.ir.weights import TRIPS, trips, weight

WORTH_A_THREAD = 131072
"""Additions per thread: 4 us, as vectors do several at a time and compilers drop some.

Two threads that wait for work are level with one at a quarter of that, measured on an EPYC. But
what other small kernels stored is in the cache of the core that ran them: with a sum over 1,000
short rows between them, a step of six kernels took 53 us on two threads, 42 us on one.
"""

_UNBOUNDED = 4 * TRIPS
"""Trips of a loop that nothing bounds: it has no vectors, and is rarely short."""

_CHEAP = 3
"""Additions that are computed again rather than kept."""


def grain(workunit: Workunit) -> int:
    """The number of iterations that is worth another thread."""
    return max(WORTH_A_THREAD // max(body_cost(workunit.body), 1), 1)


def varies(workunit: Workunit) -> bool:
    """Whether loops are bounded by arguments: how many trips they have is known at a launch."""
    return _varies(workunit.body, frozenset(param.sym for param in workunit.params))


def _varies(body: Body, arguments: frozenset[Sym]) -> bool:
    return any(
        (isinstance(stmt, nodes.For) and _is_bounded(stmt, arguments))
        or (isinstance(stmt, nodes.If) and _varies((*stmt.then, *stmt.orelse), arguments))
        for stmt in body
    )


def grain_text(workunit: Workunit, text: Callable[[Expr], str]) -> str:
    """`grain` as C++ that computes it at a launch; `text` prints expressions."""
    arguments = frozenset(param.sym for param in workunit.params)
    return f"pf_grain({WORTH_A_THREAD}, {_sum(workunit.body, arguments, text)})"


def _sum(body: Body, arguments: frozenset[Sym], text: Callable[[Expr], str]) -> str:
    """The cost of a body as a sum, with the trips of loops bounded by arguments."""
    constant, parts = 0, []
    for stmt in body:
        if isinstance(stmt, nodes.If):
            constant += _all(child_expressions(stmt))
            parts.append(_sum((*stmt.then, *stmt.orelse), arguments, text))
        elif isinstance(stmt, nodes.For) and _is_bounded(stmt, arguments):
            trips = f"pf_trips({text(stmt.start)}, {text(stmt.stop)})"
            parts.append(f"{trips} * (1 + {_sum(stmt.body, arguments, text)})")
        else:
            constant += _statement(stmt)
    numbers = [int(part) for part in parts if part.isdecimal()]
    parts = [part for part in parts if not part.isdecimal()]
    return " + ".join([str(constant + sum(numbers)), *parts])


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
