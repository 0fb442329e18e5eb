"""Loop distribution: a body cut into segments that vectorise and segments that cannot.

One statement without a vector form keeps g++ from vectorising the loop that holds it. Iterations of
a parallel pattern are unordered, so a block of them may run the first segment for all, then the
second, ...; within an iteration dependent statements keep their order. Locals that live from one
segment to another become arrays with an element for each iteration of the block (scalar expansion).

R. Allen and K. Kennedy, "Optimizing Compilers for Modern Architectures" (2001), sections 5.2 to
5.4; the grouping is typed fusion with two types: K. Kennedy and K. McKinley, "Typed fusion with
applications to parallel and sequential code generation" (1993).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from pyfuser.ir import nodes
from pyfuser.ir.effects import effects_of, evaluates_purely
from pyfuser.ir.nodes import Body, Declare, Expr, Stmt, Sym
from pyfuser.ir.visit import (
    expressions,
    map_expression,
    statements,
)
from pyfuser.nest.cost.cache_lines import torn
from pyfuser.nest.cost.gathers import apart, slow_operands
from pyfuser.nest.cost.vectorisable import (
    conditional,
    has_vector_form,
    is_covered,
    local_arrays,
    vectorises,
)
from pyfuser.nest.cost.work import body_cost, cheap_declarations
from pyfuser.nest.passes.hoist_calls import speculate
from pyfuser.nest.segments import (
    MAX_STATEMENTS,
    Fresh,
    Segment,
    dependences,
    expanded,
    grouped,
    is_zero,
    touched,
)
from pyfuser.support.passes import left_out

WORTH = 12
"""Additions in an iteration of a vector segment that are worth a loop of their own."""

_FETCHED_FOR_AN_ADDITION = 10
"""Elements that a loop fetches from the second-level cache, not the first, in that time."""

_PASSED = 6
"""Additions for an element of a local array that one segment stores and another loads."""

MAX_ROW = 16
"""Elements of a local array of which a block has one for each iteration."""


def distribute(
    body: Body, aliased: frozenset[Sym], indices: frozenset[Sym], fresh: Fresh
) -> tuple[Segment, ...]:
    """The segments of a body, in order; one, with the body itself, if several do not pay.

    `aliased` are the views that may overlap one another, `indices` those of the space;
    `fresh(name, dtype)` makes Syms.
    """
    whole = (Segment(body, True),)
    if left_out("distribute") or (_all_vectorise(body) and not any(map(apart(body), body))):
        return whole
    if not effects_of(body).may_interleave:
        return whole
    arrays = local_arrays(body)
    own = indices | {stmt.sym for stmt in statements(body) if isinstance(stmt, Declare)}
    body = tuple(_isolated(body, arrays, fresh))
    repeated = cheap_declarations(body)
    units = [stmt for stmt in body if not (isinstance(stmt, Declare) and stmt.sym in repeated)]
    if len(units) > MAX_STATEMENTS:
        return whole
    kinds = _kinds(units, arrays, apart(body))
    before = dependences(units, aliased)
    while True:
        groups = grouped(kinds, before)
        parts = [tuple(units[n] for n in group) for group in groups]
        poor = [
            n
            for place, group in enumerate(groups)
            if kinds[group[0]] and not _pays(parts, place, own)
            for n in group
        ]
        if len(groups) == 1 or len(poor) == sum(kinds):
            return whole
        if not poor:
            break
        for n in poor:
            kinds[n] = False
    result = expanded(parts, [kinds[group[0]] for group in groups], repeated)
    passed = [sym for part in result for sym in part.arriving if sym in arrays]
    lengths = row_lengths(body)
    if not lengths.keys() >= {*passed}:
        return whole
    saved = sum(body_cost(part.body) for part in result if part.vector)
    return result if _PASSED * sum(lengths[sym] for sym in passed) <= saved else whole


def row_lengths(body: Body) -> dict[Sym, int]:
    """The lengths of the local arrays of which each iteration of a block may have its own.

    They are short, and start at zeros.
    """
    return {
        stmt.sym: len(stmt.values)
        for stmt in body
        if isinstance(stmt, nodes.DeclareArray)
        and len(stmt.values) <= MAX_ROW
        and all(is_zero(value) for value in stmt.values)
    }


def _pays(parts: Sequence[Body], place: int, own: frozenset[Sym]) -> bool:
    """Whether to run a vector segment's loop apart saves more than it costs."""
    cost = body_cost(parts[place])
    return cost >= WORTH and torn(parts, place, own) <= _FETCHED_FOR_AN_ADDITION * cost


def prepare(
    body: Body, aliased: frozenset[Sym], indices: frozenset[Sym], fresh: Fresh
) -> tuple[Segment, ...]:
    """The segments of a body, with conditional maths calls made unconditional where that helps."""
    changed = speculate(body, fresh)
    result = distribute(changed, aliased, indices, fresh)
    if changed != body and len(result) == 1 and not _all_vectorise(changed):
        return distribute(body, aliased, indices, fresh)
    return result


def _all_vectorise(body: Body) -> bool:
    arrays = local_arrays(body)
    return all(vectorises(stmt, arrays) for stmt in body)


# --------------------------------------------------------------------------- statements


def _isolated(body: Body, arrays: frozenset[Sym], fresh: Fresh) -> Iterator[Stmt]:
    """The body with declarations of their own for the parts that keep statements from vectorising.

    Also for the costly operands of atomics and of stores to places that were loaded, and for what
    is loaded from such places. Only what is evaluated every time is taken out.
    """
    far, slow = apart(body), slow_operands(body)
    for stmt in body:
        if far(stmt):
            ahead: list[Stmt] = []
            if body_cost((stmt,)) >= WORTH:
                stmt = without(stmt, slow, ahead, fresh)
                stmt = _without_costly(stmt, ahead, fresh) if far(stmt) else stmt
            yield from ahead
            yield stmt
            continue
        if vectorises(stmt, arrays) or isinstance(stmt, (nodes.For, nodes.While, nodes.Eval)):
            yield stmt
            continue
        ahead = []
        if isinstance(stmt, nodes.If) or (isinstance(stmt, nodes.Update) and stmt.atomic):
            stmt = _without_costly(stmt, ahead, fresh)
        elif body_cost((stmt,)) >= WORTH:
            stmt = without(stmt, partial(_is_scalar, arrays), ahead, fresh)
        yield from ahead
        yield stmt


def _without_costly(stmt: Stmt, ahead: list[Stmt], fresh: Fresh) -> Stmt:
    """With operands that call vector maths computed before."""

    def change(e: Expr) -> Expr:
        return moved(e, ahead, fresh) if any(map(is_covered, expressions(e))) else e

    return with_operands(stmt, change)


def _is_scalar(arrays: frozenset[Sym], e: Expr) -> bool:
    return not isinstance(e, nodes.Load) and not has_vector_form(e, arrays)


def without(
    stmt: Stmt,
    wanted: Callable[[Expr], bool],
    ahead: list[Stmt],
    fresh: Fresh,
    known: Mapping[Expr, Expr] | None = None,
) -> Stmt:
    """With the operations that are wanted computed before. known: those that are already."""

    def change(operand: Expr) -> Expr:
        sometimes = set(conditional(operand))

        def take(e: Expr) -> Expr:
            if e in sometimes or not wanted(e):
                return e
            if known and e in known:
                return known[e]
            if isinstance(e, nodes.Cast) and any(map(is_covered, expressions(e))):
                return replace(e, operand=moved(e.operand, ahead, fresh))
            return moved(e, ahead, fresh)

        return map_expression(operand, take)

    return with_operands(stmt, change)


def moved(e: Expr, ahead: list[Stmt], fresh: Fresh) -> Expr:
    sym = fresh("operand", e.dtype)
    ahead.append(Declare(sym, e))
    return nodes.Read(sym)


def with_operands(stmt: Stmt, change: Callable[[Expr], Expr]) -> Stmt:
    """With what a statement evaluates itself, every time, replaced."""
    if not evaluates_purely(stmt):
        return stmt
    if isinstance(stmt, nodes.If):
        return replace(stmt, condition=change(stmt.condition))
    if isinstance(stmt, (nodes.Declare, nodes.Assign)) and stmt.value is not None:
        return replace(stmt, value=change(stmt.value))
    if isinstance(stmt, (nodes.Store, nodes.Update)):
        indices = tuple(map(change, stmt.indices))
        return replace(stmt, indices=indices, value=change(stmt.value))
    return stmt


def _kinds(
    units: Sequence[Stmt], arrays: frozenset[Sym], far: Callable[[Stmt], bool]
) -> list[bool]:
    """Which statements have a vector form; a local's constant first value goes with its user."""
    kinds = [vectorises(stmt, arrays) and not far(stmt) for stmt in units]
    user: dict[Sym, bool] = {}
    for n in reversed(range(len(units))):
        stmt = units[n]
        if isinstance(stmt, Declare) and isinstance(stmt.value, (nodes.Const, type(None))):
            kinds[n] = user.get(stmt.sym, True)
        elif isinstance(stmt, nodes.DeclareArray):
            kinds[n] = kinds[n] and user.get(stmt.sym, True)
        reads, writes = touched(stmt)
        user.update(dict.fromkeys(reads | writes, kinds[n]))
    return kinds
