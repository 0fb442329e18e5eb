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

The cost. A place is looked for where some other call walks over the rows of the view. Only places
that sweeps use are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from math import prod
from typing import NamedTuple, TypeAlias

from pyfuser.analysis.accesses import accesses
from pyfuser.analysis.distances import call_distance
from pyfuser.analysis.layout import shift
from pyfuser.ir.effects import written_views
from pyfuser.ir.nodes import Body, Sym
from pyfuser.ir.visit import all_expressions, assigned, statements, sym_of, written
from pyfuser.plan.cost_model import machine_for, region_of
from pyfuser.plan.legality import mergeable
from pyfuser.plan.plan import Note, Told
from pyfuser.plan.rewrite import CHEAPER, Change, Changes, Option, Rewrite
from pyfuser.plan.rewrites import embedded_body
from pyfuser.plan.rewrites.coarsen import may_coarsen
from pyfuser.plan.single_rows import REACH, Row, outermost, row_of, stored_rows
from pyfuser.plan.tile_size import BEYOND
from pyfuser.support.caches import cached
from pyfuser.support.records import dataclass
from pyfuser.trace.call import Space
from pyfuser.trace.shape import CallShape, RegionShape, ScalarShape, TraceShape

MAX_RANK = 6
"""Axes of an iteration space."""

Parts: TypeAlias = tuple[tuple[int, tuple[int, ...]], ...]
"""The rows of a call, ascending, each with the statements (their places) that belong there."""


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


# --------------------------------------------------------------------------- may it?


class _Edge(NamedTuple):
    """Statements of a call (their places), and the rows that they store to or read."""

    rows: tuple[Row, ...]
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
    if any(row is None for _, row in stored_rows(call)):
        return ()  # nor would parts of the call, which store the same
    rows = _rows(call)
    if rows:
        return (_Edge(rows, tuple(range(len(unit.body)))),)
    places = [n for n, stmt in enumerate(unit.body) if written((stmt,)) & written_views(unit)]
    if not may_coarsen(call):
        return ()
    return tuple(_Edge(_rows(_part(call, (n,))), (n,)) for n in places)


def _part(call: CallShape, places: Sequence[int]) -> CallShape:
    """A call that does some of the statements only."""
    return call._replace(workunit=replace(call.workunit, body=_body(call, places)))


def _rows(call: CallShape) -> tuple[Row, ...]:
    """The rows that a call has to do with, if it stores to one of each view."""
    pairs = stored_rows(call)
    stored = {row for _, row in pairs if row is not None}
    if any(row is None for _, row in pairs) or len(stored) != len({region for region, _ in pairs}):
        return ()
    found = [row for access in accesses(call) if (row := row_of(call, access)) is not None]
    return tuple(found) if stored else ()


def _apart(call: CallShape, parts: Parts) -> bool:
    """Whether no part of a call touches what another one changes."""
    calls = [placed_call(_part(call, places), ((row, ()),)) for row, places in parts]
    return all(call_distance(a, b) is None for a, b in combinations(calls, 2))


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
    def iteration(self, row: Row) -> int | None:
        """That which touches the row of some region, or comes close to; None if none does."""
        if self.region.cluster != row.region.cluster:
            return None
        shifts = shift(row.region, self.region)  # whose strides are equal, and so the axes
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
        axis = outermost(region)
        index = access.relation.indices[axis]
        if index is not None and index.terms == ((0, 1),):
            found.append(_Walk(region, axis, index.constant, begin[0], end[0] - 1))
    return tuple(found)


def _may_sweep(trace: TraceShape) -> bool:
    """Whether the data could be large enough for sweeps."""
    regions = {a for call in trace.calls for a in call.arguments if isinstance(a, RegionShape)}
    most = sum(prod(region.shape) * region.dtype.size for region in regions)
    return len(trace.calls) > 1 and most >= BEYOND * machine_for(trace).cache


def _candidates(trace: TraceShape, best: Option) -> Changes:
    """The calls over edges, in their places."""
    if not best.capabilities.sweeps or not _may_sweep(trace):
        return {}
    found = {}
    for place, parts in targets(trace).items():
        call = trace.calls[place]
        note = Placed(place, tuple(row for row, _ in parts), len(call.arguments))
        found[place] = Change(placed_call(call, parts), note)
    return found


def _in_sweeps(given: TraceShape, made: Option, changes: Changes) -> Changes:
    """The calls in places whose loop is in a sweep with loops of others."""
    inside: set[int] = set()
    for sweep in made.plan.sweeps:
        calls = {call for place in sweep.groups for call in made.plan.groups[place].calls}
        if calls - changes.keys():
            inside |= calls
    return {n: change for n, change in changes.items() if n in inside}


# --------------------------------------------------------------------------- the rewrite


@dataclass(frozen=True, slots=True)
class Placed(Note):
    """A call whose statements run at rows among those of other calls.

    given: how many arguments it has without these rows and its own bounds, which are numbers.
    """

    rows: tuple[int, ...]
    given: int

    def source(self, place: int) -> tuple[int, int] | None:
        """What the call had before; nothing for a row or a bound."""
        return (self.call, place) if place < self.given else None

    @classmethod
    def lines(cls, notes: Sequence[Note], told: Told) -> Iterator[str]:
        rows = {told.name(note.call): note.rows for note in notes if isinstance(note, Placed)}
        for name, places in rows.items():
            yield f"boundary update, runs with row {' and '.join(map(str, places))}: {name}"


REWRITE = Rewrite(
    "embed-boundary",
    "boundary updates run at rows of the loops over the interior",
    candidates=_candidates,
    used=_in_sweeps,
    gain=CHEAPER,
    renews=True,
)
