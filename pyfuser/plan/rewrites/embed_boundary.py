"""Calls over the edges of a grid, which run between the steps over its inner cells.

`u[0, j] = u[1, j]` over j has no index for the row, so nothing bounds its distance from loops over
rows, and no sweep can hold it (see `plan.wavefront`). All its iterations store to one row. With an
outermost index of one value (see `plan.rewrites.embedded_body`) they have a place among the rows,
and the distances are those between that row and the others that the call touches. A call of a
single iteration, `u[n - 1] = u[n - 2]` over [0, 1), is moved from its 0 to where it stores.

The law. Iterations of a map are unordered, and so named as one likes: the call does what it did,
under other indices. Whether it may be in a sweep is the law of sweeps for the call in its place,
which need not be a good one: a periodic copy, u[0, j] = u[n - 2, j], has the distance n - 2
from its source or from its readers wherever it is put.

The cost. A place is looked for where some other call walks over the rows of the view. Both plans
are made, the second with those places only that sweeps use, and the cheaper one is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import prod
from typing import NamedTuple, TypeAlias

from pyfuser.analysis.accesses import Access, Mode, accesses
from pyfuser.analysis.distances import call_distance
from pyfuser.analysis.layout import shift
from pyfuser.ir.effects import written_views
from pyfuser.ir.nodes import Body, Sym
from pyfuser.ir.visit import all_expressions, assigned, statements, sym_of, written
from pyfuser.plan import size_generic
from pyfuser.plan.capabilities import Capabilities
from pyfuser.plan.cost_model import machine_for, region_of
from pyfuser.plan.legality import mergeable
from pyfuser.plan.plan import Declined, Guarded, Placed, Plan
from pyfuser.plan.rewrites import coarsen, embedded_body, enlarge_domain
from pyfuser.plan.rewrites.coarsen import Planned
from pyfuser.plan.tile_size import BEYOND
from pyfuser.support.caches import cached
from pyfuser.support.passes import left_out
from pyfuser.trace.call import Space
from pyfuser.trace.shape import CallShape, RegionShape, ScalarShape, TraceShape

MAX_RANK = 6
"""Axes of an iteration space."""

REACH = 16
"""Rows that one call may touch apart: sweeps of longer distances do not pay."""

ROUNDS = 3
"""How often calls that no sweep took are put back, and the rest planned anew."""


Parts: TypeAlias = tuple[tuple[int, tuple[int, ...]], ...]
"""The rows of a call, ascending, each with the statements (their places) that belong there."""


def planned(trace: TraceShape, capabilities: Capabilities) -> Planned:
    """The plan of a trace, and the trace as planned: with some calls in places among the rows."""
    fine = size_generic.planned(trace, capabilities)
    if not capabilities.sweeps or left_out("embed-boundary") or not _may_sweep(trace):
        return fine
    best, chosen = fine, targets(trace)
    for _ in range(ROUNDS):
        if not chosen:
            break
        changed, graph, plan = enlarge_domain.planned(in_place(trace, chosen), capabilities)
        useless = _outside(plan, chosen)
        if not useless:
            best = changed, graph, _noted(trace, plan, chosen)
            break
        chosen = {call: parts for call, parts in chosen.items() if call not in useless}
    return _explained(trace, best if best is fine or _pays(fine, *best[::2]) else fine)


def _explained(trace: TraceShape, found: Planned) -> Planned:
    """The plan, which says of periodic copies that it is they that end sweeps."""
    changed, graph, plan = found
    why = [_because(trace, plan, declined) for declined in plan.declined]
    notes = tuple(d._replace(why=w or d.why) for d, w in zip(plan.declined, why, strict=True))
    return found if notes == plan.declined else (changed, graph, replace(plan, declined=notes))


def _because(trace: TraceShape, plan: Plan, declined: Declined) -> str:
    """The rows that are too far apart, if it is so."""
    for place in (declined.place, declined.groups[-1]):
        for call in plan.groups[place].calls:
            rows = far_rows(trace.calls[call])
            if rows:
                name = trace.calls[call].workunit.name
                return f"{name} copies to row {rows[0]} from row {rows[1]}, too far for a sweep"
    return ""


def in_place(trace: TraceShape, chosen: Mapping[int, Parts]) -> TraceShape:
    """The trace with calls (their places) at rows."""
    return trace.with_calls({n: placed_call(trace.calls[n], p) for n, p in chosen.items()})


@cached(1024)
def placed_call(call: CallShape, parts: Parts) -> CallShape:
    """The call with an outermost index that is the row."""
    begin, end, execution = call.space
    first, last = parts[0][0], parts[-1][0] + 1
    if len(parts) > 1:
        bodies = [_body(call, places) for _, places in parts]
        workunit = embedded_body.spread(call.workunit, bodies)
        values = [row for row, _ in parts] + [
            n for pair in zip(begin, end, strict=True) for n in pair
        ]
        new = workunit.params[len(call.arguments) :]
        bounds = [ScalarShape(p.sym.dtype, n) for p, n in zip(new, values, strict=True)]
        space = Space((first,), (last,), execution)
        return CallShape(call.pattern, space, workunit, (*call.arguments, *bounds))
    if end[0] - begin[0] == 1:
        workunit, begin, end = embedded_body.moved(call.workunit, begin[0]), begin[1:], end[1:]
    else:
        workunit = embedded_body.placed(call.workunit)
    space = Space((first, *begin), (last, *end), execution)
    return call._replace(space=space, workunit=workunit)


# law
def _body(call: CallShape, places: Sequence[int]) -> Body:
    """Some statements of a call, with those that store nothing but make what they use."""
    body, stored = call.workunit.body, written_views(call.workunit)
    kept, size = set(places), 0
    while len(kept) != size:
        size = len(kept)
        used = _named(tuple(body[n] for n in kept))
        used |= {sym_of(e) for n in kept for e in all_expressions((body[n],))}
        kept |= {
            n
            for n, stmt in enumerate(body)
            if not written((stmt,)) & stored and _named((stmt,)) & used
        }
    return tuple(stmt for n, stmt in enumerate(body) if n in kept)


def _named(body: Body) -> set[Sym | None]:
    """The Syms that statements declare, assign or store to."""
    return {sym_of(stmt) for stmt in statements(body)} - {None}


def _outside(plan: Plan, chosen: Mapping[int, Parts]) -> set[int]:
    """The calls in places whose loop is in no sweep with loops of others."""
    inside: set[int] = set()
    for sweep in plan.sweeps:
        calls = {call for place in sweep.groups for call in plan.groups[place].calls}
        if calls - chosen.keys():
            inside |= calls
    return chosen.keys() - inside


def _noted(trace: TraceShape, plan: Plan, chosen: Mapping[int, Parts]) -> Plan:
    """The plan with notes of what has its place, and of arguments that the program did not give."""
    notes = [Placed(call, tuple(row for row, _ in parts)) for call, parts in sorted(chosen.items())]
    given = [
        Guarded(note.call, len(trace.calls[note.call].arguments))
        for note in notes
        if len(note.rows) > 1
    ]
    return replace(plan, placed=tuple(notes), guarded=tuple(sorted((*plan.guarded, *given))))


# --------------------------------------------------------------------------- may it?


class _Row(NamedTuple):
    """A row of a region, along one of its axes."""

    region: RegionShape
    axis: int
    number: int


class _Edge(NamedTuple):
    """Statements of a call (their places), and the rows that they store to or read."""

    rows: tuple[_Row, ...]
    places: tuple[int, ...]


# law: True
def may_place(call: CallShape) -> bool:
    """Whether the iterations of a call may be named by another index, too."""
    changed = assigned(call.workunit.body) & {param.sym for param in call.workunit.params}
    return (
        call.pattern == "for"
        and mergeable(call)
        and not changed
        and call.space.size > 0
        and len(call.space.begin) < MAX_RANK
    )


@cached(1024)
# law: not ()
def _edges(call: CallShape) -> tuple[_Edge, ...]:
    """The statements of a call by rows, if all that store do so to one row each."""
    if not may_place(call):
        return ()
    unit = call.workunit
    if any(row is None for _, row in _stored(call)):
        return ()  # nor would parts of the call, which store the same
    rows = _rows(call)
    if rows:
        return (_Edge(rows, tuple(range(len(unit.body)))),)
    places = [n for n, stmt in enumerate(unit.body) if written((stmt,)) & written_views(unit)]
    if len(places) < 2 or not coarsen.may_coarsen(call):
        return ()
    found = [_Edge(_rows(_part(call, (n,))), (n,)) for n in places]
    return tuple(found) if all(edge.rows for edge in found) else ()


def _part(call: CallShape, places: Sequence[int]) -> CallShape:
    """A call that does some of the statements only."""
    return call._replace(workunit=replace(call.workunit, body=_body(call, places)))


def _rows(call: CallShape) -> tuple[_Row, ...]:
    """The rows that a call has to do with, if it stores to one of each view."""
    pairs = _stored(call)
    stored = {row for _, row in pairs if row is not None}
    if any(row is None for _, row in pairs) or len(stored) != len({region for region, _ in pairs}):
        return ()
    found = [row for access in accesses(call) if (row := _row_of(call, access)) is not None]
    return tuple(found) if stored else ()


def _stored(call: CallShape) -> list[tuple[RegionShape, _Row | None]]:
    """What a call stores to: regions, each with the row of one store if that is always the same."""
    return [
        (region_of(call, access), _row_of(call, access))
        for access in accesses(call)
        if access.mode is not Mode.READ
    ]


def _row_of(call: CallShape, access: Access) -> _Row | None:
    """The row that an access is always in; indices of one value, as in [7, 8), are that value."""
    region = region_of(call, access)
    axis = _outermost(region)
    index = access.relation.indices[axis]
    if index is None:
        return None
    begin, end, _ = call.space
    row = index.constant
    for variable, factor in index.terms:
        if variable >= len(begin) or end[variable] - begin[variable] != 1:
            return None
        row += factor * begin[variable]
    return _Row(region, axis, row)


@cached(1024)
def far_rows(call: CallShape) -> tuple[int, int] | None:
    """A row that a call stores to, and one that it takes values from, too far away for a sweep."""
    stored = {row.region: row for _, row in _stored(call) if row is not None}
    for access in accesses(call) if stored else ():
        row = _row_of(call, access)
        near = stored.get(row.region) if row is not None else None
        if row is not None and near is not None and abs(row.number - near.number) > REACH:
            return near.number, row.number
    return None


# law: True
def _apart(call: CallShape, parts: Parts) -> bool:
    """Whether no part of a call touches what another one changes."""
    calls = [placed_call(_part(call, places), ((row, ()),)) for row, places in parts]
    return all(call_distance(a, b) is None for a, b in combinations(calls, 2))


def _outermost(region: RegionShape) -> int:
    """The axis along which a region has its longest step."""
    return max(range(len(region.strides)), key=lambda axis: abs(region.strides[axis]))


# --------------------------------------------------------------------------- should it?


def targets(trace: TraceShape) -> dict[int, Parts]:
    """Calls that store to some rows, with the iterations of others that have to do with these."""
    distinct = dict(zip(trace.kinds, trace.calls, strict=True))
    edges = {kind: found for kind, call in distinct.items() if (found := _edges(call))}
    if not edges or len(edges) == len(distinct):
        return {}
    walks = [walk for call in distinct.values() for walk in _walks(call)]
    chosen: dict[int, Parts] = {}
    for kind, found in edges.items():
        parts = _parts(found, walks)
        call = distinct[kind]
        if parts and not (len(parts) == 1 and parts[0][0] == _own(call)) and _apart(call, parts):
            chosen[kind] = parts
    return {place: chosen[kind] for place, kind in enumerate(trace.kinds) if kind in chosen}


# law
def _parts(edges: Iterable[_Edge], walks: Sequence[_Walk]) -> Parts:
    """The edges by the iterations that have to do with them; nothing if one has none.

    Of several iterations the middle one: what others made is there, and nobody has gone past it.
    """
    found: dict[int, tuple[int, ...]] = {}
    for edge in edges:
        near = [walk.iteration(row) for row in edge.rows for walk in walks]
        rows = sorted(row for row in near if row is not None)
        if not rows or rows[-1] - rows[0] > REACH:
            return ()
        row = rows[len(rows) // 2]
        found[row] = (*found.get(row, ()), *edge.places)
    return tuple(sorted(found.items()))


def _own(call: CallShape) -> int | None:
    """The iteration of a call that has one along its first axis."""
    begin, end, _ = call.space
    return begin[0] if end[0] - begin[0] == 1 else None


class _Walk(NamedTuple):
    """An access whose subscript along an axis is the outermost index and a constant."""

    region: RegionShape
    axis: int
    constant: int
    first: int  # iteration
    last: int

    # law: not None
    def iteration(self, row: _Row) -> int | None:
        """That which touches the row of some region, or comes close to; None if none does."""
        if self.region.cluster != row.region.cluster or self.axis != row.axis:
            return None
        shifts = shift(row.region, self.region)
        if shifts is None:
            return None
        wanted = row.number - shifts[row.axis] - self.constant
        near = min(max(wanted, self.first), self.last)
        return near if abs(near - wanted) <= REACH else None


@cached(1024)
def _walks(call: CallShape) -> tuple[_Walk, ...]:
    """The accesses of a call that walk over rows, of more than one iteration."""
    begin, end, _ = call.space
    found = []
    for access in accesses(call) if end[0] - begin[0] > 1 else ():
        region = region_of(call, access)
        axis = _outermost(region)
        index = access.relation.indices[axis]
        if index is not None and index.terms == ((0, 1),):
            found.append(_Walk(region, axis, index.constant, begin[0], end[0] - 1))
    return tuple(found)


def _may_sweep(trace: TraceShape) -> bool:
    """Whether the data could be large enough for sweeps."""
    regions = {a for call in trace.calls for a in call.arguments if isinstance(a, RegionShape)}
    most = sum(prod(region.shape) * region.dtype.size for region in regions)
    return len(trace.calls) > 1 and most >= BEYOND * machine_for(trace).cache


def _pays(fine: Planned, changed: TraceShape, plan: Plan) -> bool:
    """Whether the trace with calls in places costs less."""
    old, new = coarsen.compared(fine, changed, plan)
    return new < old
