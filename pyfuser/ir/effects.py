"""What running a body does besides computing the values of locals: one answer for every pass.

The law. Iterations of a parallel pattern are unordered, so a pass may change when one runs, unless
that can be observed: by what it prints, by an atomic (whose old value, or last bits, depend on the
order), or by another iteration that waits for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from pyfuser.ir import maths, nodes
from pyfuser.ir.canonical import MAX_WORKUNITS
from pyfuser.ir.nodes import Body, Expr, Stmt, Sym, Workunit
from pyfuser.ir.visit import all_expressions, expressions, reads, statements, written
from pyfuser.support.caches import cached

ASSIGNED = "="
"""The operation of an assignment, among those that change a local."""


class Effects(NamedTuple):
    """The effects of a body.

    output: it prints, or calls another function for its effect. fetches: it uses the old value of
    an atomic. atomics: it has atomics of either kind. waits: an iteration may wait for another, as
    for a lock: a loop has an atomic's old value, or a `while` loads what the body writes.
    """

    output: bool
    fetches: bool
    atomics: bool
    waits: bool

    @property
    # law: False
    def observable(self) -> bool:
        """Whether the order of iterations shows, even of a parallel pattern."""
        return self.output or self.atomics or self.waits

    @property
    # law: True
    def may_interleave(self) -> bool:
        """Whether iterations may run side by side, statement by statement.

        None waits for another, and nothing shows in which order they run them.
        """
        return not self.output and not self.waits


# law
def effects_of(body: Body) -> Effects:
    """The effects of a body; those of a workunit's are kept, see `effects`."""
    changed = written(body)
    output = fetches = atomics = waits = False
    for stmt in statements(body):
        impure = [e for e in expressions(stmt) if not is_pure(e)]
        output |= any(isinstance(e, nodes.Call) for e in impure)
        fetches |= any(isinstance(e, nodes.AtomicFetch) for e in impure)
        match stmt:
            case nodes.Update(atomic=True):
                atomics = True
            case nodes.For() | nodes.While():
                waits |= _may_wait(stmt, changed)
    return Effects(output, fetches, atomics or fetches, waits)


# law: False
def _may_wait(loop: nodes.For | nodes.While, changed: set[Sym]) -> bool:
    for e in (*expressions(loop), *all_expressions(loop.body)):
        match e:
            case nodes.AtomicFetch():
                return True
            case nodes.Load() if isinstance(loop, nodes.While) and e.view in changed:
                return True
    return False


@cached(MAX_WORKUNITS)
def effects(workunit: Workunit) -> Effects:
    """The effects of an iteration."""
    return effects_of(workunit.body)


# law: True
def is_pure(e: Expr) -> bool:
    """Whether an operation, its operands aside, may be moved, repeated or dropped."""
    match e:
        case nodes.Call():
            return maths.is_pure(e.name)
        case nodes.AtomicFetch():
            return False
    return True


def evaluates_purely(node: Expr | Stmt) -> bool:
    """Whether an expression, or what a statement evaluates itself, has no effect."""
    return all(map(is_pure, expressions(node)))


def atomics(body: Body) -> Iterator[nodes.Update | nodes.AtomicFetch]:
    """Every atomic of a body."""
    for stmt in statements(body):
        if isinstance(stmt, nodes.Update) and stmt.atomic:
            yield stmt
        yield from (e for e in expressions(stmt) if isinstance(e, nodes.AtomicFetch))


@cached(MAX_WORKUNITS)
def written_views(workunit: Workunit) -> frozenset[Sym]:
    """The view parameters that a workunit writes, atomically or not."""
    return frozenset(written(workunit.body) & {p.sym for p in workunit.params if p.rank})


@cached(MAX_WORKUNITS)
def measured_views(workunit: Workunit) -> frozenset[int]:
    """The places of the views whose extents the code asks for."""
    asked = {e.view for e in all_expressions(workunit.body) if isinstance(e, nodes.Extent)}
    return frozenset([n for n, param in enumerate(workunit.params) if param.sym in asked])


# law
def operations(body: Body) -> dict[Sym, set[str]]:
    """By what a body changes each local and accumulator after its declaration."""
    found: dict[Sym, set[str]] = {}
    for stmt in statements(body):
        match stmt:
            case nodes.Assign():
                found.setdefault(stmt.sym, set()).add(ASSIGNED)
            case nodes.Update(indices=()):
                found.setdefault(stmt.target, set()).add(stmt.op)
    return found


# law: True
def only_combines(body: Body, syms: Collection[Sym], allowed: Collection[str]) -> bool:
    """Whether a body does nothing with accumulators but change them by the allowed operations.

    Parts of the iterations can then be added up, each from zero, in any order.
    """
    changes = operations(body)
    if not all(changes.get(sym, set()).issubset(allowed) for sym in syms):
        return False
    return reads(*statements(body)).isdisjoint(syms)
