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

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pyfuser.ir import nodes
from pyfuser.ir.effects import effects_of, evaluates_purely
from pyfuser.ir.nodes import Body, Declare, Expr, Stmt, Sym
from pyfuser.ir.visit import (
    assigned,
    declared,
    expressions,
    map_expression,
    statements,
    sym_of,
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
from pyfuser.nest.cost.work import body_cost
from pyfuser.nest.nodes import Fresh
from pyfuser.nest.passes.hoist_calls import speculate
from pyfuser.support.passes import left_out

WORTH = 12
"""Additions in an iteration of a vector segment that are worth a loop of their own."""

_FETCHED_FOR_AN_ADDITION = 10
"""Elements that a loop fetches from the second-level cache, not the first, in that time."""

MAX_STATEMENTS = 600
"""Dependences are tested in pairs."""

MAX_ROW = 16
"""Elements of a local array of which a block has one for each iteration."""

_CHEAP = 3  # additions that are computed again rather than kept


@dataclass(frozen=True, slots=True)
class Segment:
    """Statements that share a loop.

    `arriving` are the locals whose values come from the segments before, `leaving` those that it
    sets and that later ones use. Declarations that are cheaper to repeat than to keep stand in
    every segment that uses them. guard: a local that arrives, and says whether to run the body.
    """

    body: Body
    vector: bool
    arriving: tuple[Sym, ...] = ()
    leaving: tuple[Sym, ...] = ()
    guard: Sym | None = None


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
    passed = arrays & {s for part in result for s in part.arriving}
    return result if passed <= row_lengths(body).keys() else whole


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


def is_zero(value: Expr) -> bool:
    """Whether a value is the constant that `T()` makes."""
    return isinstance(value, nodes.Const) and repr(value.value) in ("0", "0.0", "0j", "False")


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


def expansion(segments: Sequence[Segment]) -> tuple[Sym, ...]:
    """The locals that become arrays, in order of their first segment."""
    return tuple(dict.fromkeys(s for segment in segments for s in segment.leaving))


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
                stmt = _without(stmt, slow, ahead, fresh)
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
            stmt = _without(stmt, partial(_is_scalar, arrays), ahead, fresh)
        yield from ahead
        yield stmt


def _without_costly(stmt: Stmt, ahead: list[Stmt], fresh: Fresh) -> Stmt:
    """With operands that call vector maths computed before."""

    def change(e: Expr) -> Expr:
        return _moved(e, ahead, fresh) if any(map(is_covered, expressions(e))) else e

    return _with_operands(stmt, change)


def _is_scalar(arrays: frozenset[Sym], e: Expr) -> bool:
    return not isinstance(e, nodes.Load) and not has_vector_form(e, arrays)


def _without(stmt: Stmt, wanted: Callable[[Expr], bool], ahead: list[Stmt], fresh: Fresh) -> Stmt:
    """With the operations that are wanted computed before."""

    def change(operand: Expr) -> Expr:
        sometimes = set(conditional(operand))

        def take(e: Expr) -> Expr:
            if e in sometimes or not wanted(e):
                return e
            if isinstance(e, nodes.Cast) and any(map(is_covered, expressions(e))):
                return replace(e, operand=_moved(e.operand, ahead, fresh))
            return _moved(e, ahead, fresh)

        return map_expression(operand, take)

    return _with_operands(stmt, change)


def _moved(e: Expr, ahead: list[Stmt], fresh: Fresh) -> Expr:
    sym = fresh("operand", e.dtype)
    ahead.append(Declare(sym, e))
    return nodes.Read(sym)


def _with_operands(stmt: Stmt, change: Callable[[Expr], Expr]) -> Stmt:
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


# --------------------------------------------------------------------------- grouping


def _accesses(stmt: Stmt) -> tuple[set[Sym], set[Sym]]:
    """The locals and views that a statement reads, and those it writes."""
    reads: set[Sym] = set()
    writes: set[Sym] = set()
    for part in statements((stmt,)):
        sym = sym_of(part)
        if sym is not None:
            writes.add(sym)
        for e in expressions(part):
            if isinstance(e, nodes.Read):
                reads.add(e.sym)
            elif isinstance(e, nodes.Load):
                reads.add(e.view)
            elif isinstance(e, nodes.AtomicFetch):
                writes.add(e.view)
    return reads, writes


def dependences(units: Sequence[Stmt], aliased: frozenset[Sym]) -> list[set[int]]:
    """For each statement those before it that have to stay before it."""

    def places(syms: set[Sym]) -> set[Sym]:
        return (syms - aliased) | {first} if first and syms & aliased else syms

    first = min(aliased, key=lambda sym: sym.uid, default=None)
    accesses = [tuple(map(places, _accesses(stmt))) for stmt in units]
    result: list[set[int]] = []
    for n, (reads, writes) in enumerate(accesses):
        both = reads | writes
        result.append({m for m, (r, w) in enumerate(accesses[:n]) if w & both or (r & writes)})
    return result


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
        reads, writes = _accesses(stmt)
        user.update(dict.fromkeys(reads | writes, kinds[n]))
    return kinds


def grouped(kinds: Sequence[bool], before: Sequence[set[int]]) -> list[list[int]]:
    """The fewest groups of one kind each, in an order that respects the dependences."""
    found = [_greedy(kinds, before, kind) for kind in (kinds[0], not kinds[0])]
    return min(found, key=len)


def _greedy(kinds: Sequence[bool], before: Sequence[set[int]], kind: bool) -> list[list[int]]:
    """Take all statements of a kind that can come now, then of the other, in turns."""
    left, done = list(range(len(kinds))), set[int]()
    groups: list[list[int]] = []
    while left:
        group: list[int] = []
        for n in left:
            if kinds[n] == kind and before[n] <= done:
                group.append(n)
                done.add(n)
        if group:
            groups.append(group)
        left = [n for n in left if n not in done]
        kind = not kind
    return groups


# --------------------------------------------------------------------------- scalar expansion


def expanded(
    parts: Sequence[Body],
    kinds: Sequence[bool],
    repeated: dict[Sym, Declare],
    arriving: Iterable[Sym] = (),
    leaving: Iterable[Sym] = (),
) -> tuple[Segment, ...]:
    """Segments with what passes between them, `arriving` at the first and `leaving` the last."""
    used = [mentioned(part) for part in parts]
    known, wanted = set(arriving), set(leaving)  # locals declared so far, and used afterwards
    local = known | {
        stmt.sym
        for part in parts
        for stmt in part
        if isinstance(stmt, (nodes.Declare, nodes.DeclareArray, nodes.Scratch))
    }
    segments = []
    for n, part in enumerate(parts):
        reads, writes = used[n]
        later = wanted.union(*(r | w for r, w in used[n + 1 :]))
        before = sorted((reads | writes) & known, key=lambda sym: sym.uid)
        after = sorted(writes & local & later, key=lambda sym: sym.uid)
        known |= writes & local
        body = (*needed(part, repeated), *part)
        segments.append(Segment(body, kinds[n], tuple(before), tuple(after)))
    return tuple(segments)


def mentioned(part: Body) -> tuple[set[Sym], set[Sym]]:
    """The locals and views that a part reads, and those it writes."""
    accesses = [_accesses(stmt) for stmt in part]
    reads = set[Sym]().union(*(r for r, _ in accesses))
    return reads, set[Sym]().union(*(w for _, w in accesses))


def needed(part: Body, repeated: dict[Sym, Declare]) -> list[Stmt]:
    """The repeated declarations that a part uses, in order."""
    wanted = mentioned(part)[0]
    result: list[Stmt] = []
    for sym, stmt in reversed(repeated.items()):
        if sym in wanted:
            wanted |= _accesses(stmt)[0]
            result.append(stmt)
    return result[::-1]
