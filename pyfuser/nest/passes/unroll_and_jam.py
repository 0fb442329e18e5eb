"""Strips: a few iterations side by side where each one waits for its own previous trip.

    for j in range(columns):
        value += x[i][j]

A sum in a local keeps its order, so every addition waits for the one before, four cycles a trip. It
is the processor that overlaps such loops of neighbouring iterations, if the loops follow each other
closely; in a fused kernel other loops lie between. So a strip of iterations runs the first loop of
all its rows, then the second, ..., and the waiting loops trip by trip (unroll and jam: D. Callahan,
S. Carr and K. Kennedy, "Improving register allocation for subscripted variables", 1990). Each
iteration computes what it did, in the order it did.

A long trip is not written out for each iteration of a strip: they take it in the lanes of vectors,
one strip a vector. g++ would do neither, as sums in order keep it from vectorising along the trips,
and branches and subscripts of subscripts from vectorising along the iterations.

Loops are distributed as in `passes.distribute`; locals between the parts become arrays with an
element for each iteration of the strip, and local arrays get a row for each. A body that is cut
into segments has strips in each of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from pyfuser.ir import nodes
from pyfuser.ir.effects import effects_of
from pyfuser.ir.nodes import DeclareArray, Expr, For, Stmt, Sym
from pyfuser.ir.visit import all_expressions, assigned, contains, declared, expressions, statements
from pyfuser.nest.cost.vectorisable import takes_lanes, vectorises
from pyfuser.nest.cost.work import body_cost, cheap_declarations
from pyfuser.nest.segments import MAX_STATEMENTS, Segment, dependences, expanded, grouped
from pyfuser.plan.plan import STRIP
from pyfuser.support.passes import left_out
from pyfuser.support.records import dataclass

STRIP_BYTES = 32768
"""What the rows of a strip may take: a first-level cache."""

_MAX_COST = 40
"""Additions in a trip that is written out for each iteration of a strip."""

_FETCHED = 10
"""Additions of a trip that are worth an element which each lane fetches for itself."""

_TURNED = 25
"""The same of an element that a vector of trips would load at once: `x[i][j]`."""

_SKIPPED = 2
"""What a trip may skip, at most, of what lanes compute: so many times the rest."""


@dataclass(frozen=True, slots=True)
class _Syms:
    """Of a body: the locals, those that change, arguments that do not, the sums, local arrays.

    indices: the last one is the one that neighbours in the lanes of a vector differ by.
    """

    local: frozenset[Sym]
    changing: frozenset[Sym]
    fixed: frozenset[Sym]
    sums: frozenset[Sym]
    arrays: frozenset[Sym]
    indices: tuple[Sym, ...]


_STRAIGHT = (nodes.Declare, nodes.Assign, nodes.Store, nodes.Update, nodes.If)


def strips(
    segment: Segment,
    aliased: frozenset[Sym],
    given: frozenset[Sym],
    sums: Iterable[Sym],
    indices: tuple[Sym, ...],
) -> tuple[Segment, ...] | None:
    """The parts that the iterations of a strip take in turn; None if none of their loops waits.

    `aliased` are the views that may overlap one another, `given` the parameters that no segment
    changes (but not the indices), `sums` the accumulators. indices: the last one is the lanes'.
    """
    body = segment.body
    if (
        len(body) > MAX_STATEMENTS
        or left_out("unroll-and-jam")
        or not effects_of(body).may_interleave
    ):
        return None
    changing = frozenset(assigned(body))
    local = [stmt for stmt in body if isinstance(stmt, DeclareArray)]
    if contains(body, nodes.Scratch):
        return None
    if STRIP * sum(len(s.values) * s.sym.dtype.size for s in local) > STRIP_BYTES:
        return None
    again = cheap_declarations(body, (*segment.arriving, *segment.leaving))
    units = [s for s in body if not (isinstance(s, nodes.Declare) and s.sym in again)]
    syms = _Syms(
        changing.union(declared(body), segment.arriving),
        changing,
        given - changing,
        frozenset(sums),
        frozenset((*segment.arriving, *(stmt.sym for stmt in local))),
        indices,
    )
    kinds = [_waits(stmt, syms) for stmt in units]
    if not any(kinds):
        return None
    groups = [
        list(alike)
        for group in grouped(kinds, dependences(units, aliased))
        for _, alike in groupby(group, lambda n: kinds[n] and is_long(units[n]))
    ]
    parts = [tuple(units[n] for n in group) for group in groups]
    waiting = [kinds[group[0]] for group in groups]
    return expanded(parts, waiting, again, segment.arriving, segment.leaving)


def is_long(loop: Stmt) -> bool:
    """Whether iterations of a strip take a trip of a loop that waits in the lanes of a vector."""
    return isinstance(loop, For) and body_cost(loop.body) > _MAX_COST


def _fills_lanes(loop: For, syms: _Syms) -> bool:
    """Whether lanes pay: they compute together, but mostly fetch element by element.

    What is stored would be scattered element by element, and lanes skip nothing.
    """
    found = {e for e in all_expressions(loop.body) if isinstance(e, nodes.Load)}
    branches = [s for s in loop.body if isinstance(s, nodes.If)]
    skipped, cost = sum(body_cost((*s.then, *s.orelse)) for s in branches), body_cost(loop.body)
    return (
        sum(_lanes_cost(e, loop.sym, syms) for e in found) <= cost
        and skipped <= _SKIPPED * (cost - skipped)
        and syms.arrays.isdisjoint(e.view for e in found)
        and not contains(loop.body, nodes.Store, nodes.Update)
        and all(sym.dtype.is_float for sym in assigned(loop.body) - set(declared(loop.body)))
        and all(vectorises(stmt, syms.arrays) for stmt in loop.body)
    )


def _lanes_cost(e: nodes.Load, trip: Sym, syms: _Syms) -> int:
    """What a load costs if lanes make it; nothing for one element, or neighbouring ones."""
    *others, last = e.indices
    mine = isinstance(last, nodes.Read) and last.sym not in syms.local  # maybe the lanes' index
    alike = syms.fixed | {trip}
    parts = [part for at in (others if mine else e.indices) for part in expressions(at)]
    if all(_is_fixed(part, alike) for part in parts):
        return 0
    return _TURNED if last == nodes.Read(trip) else _FETCHED


def _waits(stmt: Stmt, syms: _Syms) -> bool:
    """Whether a trip of a loop needs what the one before computed, and trips can be interleaved.

    All iterations must make the same trips.
    """
    if not isinstance(stmt, For) or stmt.sym in syms.changing or not _is_step(stmt.step):
        return False
    for bound in (stmt.start, stmt.stop):
        if not all(_is_fixed(e, syms.fixed) for e in expressions(bound)):
            return False
    parts = list(statements(stmt.body))
    if not all(isinstance(s, _STRAIGHT) for s in parts) or _takes_lanes(stmt, syms):
        return False
    if any(isinstance(s, nodes.Update) and (s.atomic or not s.indices) for s in parts):
        return False  # a sum of free order does not wait (see `passes.row_sums`)
    found = list(all_expressions(stmt.body))
    if is_long(stmt):
        if not _fills_lanes(stmt, syms):
            return False
    elif any(isinstance(e, nodes.Call) for e in found):
        return False  # what a call takes hides the waiting
    outer = assigned(stmt.body) - set(declared(stmt.body))
    read = {e.sym for e in found if isinstance(e, nodes.Read)}
    read |= {s.target for s in parts if isinstance(s, nodes.Update)}
    return bool(outer & read) and not outer & syms.sums


def _takes_lanes(loop: For, syms: _Syms) -> bool:
    """Whether g++ does better: its lanes take whole iterations, with no copies between."""
    return takes_lanes(loop, syms.indices[-1], syms.fixed.union(syms.indices), syms.arrays)


def _is_step(step: Expr) -> bool:
    return isinstance(step, nodes.Const) and isinstance(step.value, int) and step.value > 0


# law: True
def _is_fixed(e: Expr, fixed: frozenset[Sym]) -> bool:
    if isinstance(e, nodes.Read):
        return e.sym in fixed
    return isinstance(e, (nodes.Const, nodes.Cast, nodes.Binary, nodes.Extent))
