"""Calls over the edges of a grid, which run between the steps over its inner cells.

`u[0, j] = u[1, j]` over j has no index for the row, so nothing bounds its distance from loops over
rows, and no sweep can hold it (see `sweeps`). All its iterations store to one row. With an
outermost index of one value (see `ir.placed`) they have a place among the rows, and the distances
are those between that row and the others that the call touches. A call of a single iteration,
`u[n - 1] = u[n - 2]` over [0, 1), is moved from its 0 to where it stores.

The law. Iterations of a map are unordered, and so named as one likes: the call does what it did,
under other indices. Whether it may be in a sweep is the law of sweeps for the call in its place,
which need not be a good one: a periodic copy, u[0, j] = u[n - 2, j], has the distance n - 2
from its source or from its readers wherever it is put.

The cost. A place is looked for where some other call walks over the rows of the view. Both plans
are made, the second with those places only that sweeps use, and the cheaper one is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from pyfuser.analysis.accesses import Mode, accesses
from pyfuser.analysis.dependences import DependenceGraph
from pyfuser.analysis.layout import shift
from pyfuser.ir import placed
from pyfuser.ir.visit import assigned
from pyfuser.plan import coarsening, family, hulls
from pyfuser.plan.capabilities import Capabilities
from pyfuser.plan.legality import mergeable
from pyfuser.plan.plan import Placed, Plan
from pyfuser.plan.profit import cost_model, region_of
from pyfuser.plan.window import BEYOND
from pyfuser.trace.call import Space
from pyfuser.trace.shape import CallShape, RegionShape, TraceShape

MAX_RANK = 6
"""Axes of an iteration space."""

REACH = 16
"""Rows that one call may touch apart: sweeps of longer distances do not pay."""

ROUNDS = 3
"""How often calls that no sweep took are put back, and the rest planned anew."""


def planned(
    trace: TraceShape, capabilities: Capabilities
) -> tuple[TraceShape, DependenceGraph, Plan]:
    """The plan of a trace, and the trace as planned: with some calls in places among the rows."""
    fine = family.planned(trace, capabilities)
    chosen = targets(trace) if capabilities.sweeps and _may_sweep(trace) else {}
    for _ in range(ROUNDS):
        if not chosen:
            break
        changed, graph, plan = hulls.planned(in_place(trace, chosen), capabilities)
        useless = _outside(plan, chosen)
        if not useless:
            return (changed, graph, _noted(plan, chosen)) if _pays(fine, changed, plan) else fine
        chosen = {call: row for call, row in chosen.items() if call not in useless}
    return fine


def in_place(trace: TraceShape, rows: Mapping[int, int]) -> TraceShape:
    """The trace with calls (their places) at rows."""
    return trace.with_calls({n: placed_call(trace.calls[n], row) for n, row in rows.items()})


@lru_cache(maxsize=1024)
def placed_call(call: CallShape, row: int) -> CallShape:
    """The call with an outermost index that is the row."""
    begin, end, execution = call.space
    if end[0] - begin[0] == 1:
        workunit, begin, end = placed.moved(call.workunit, begin[0]), begin[1:], end[1:]
    else:
        workunit = placed.placed(call.workunit)
    space = Space((row, *begin), (row + 1, *end), execution)
    return call._replace(space=space, workunit=workunit)


def _outside(plan: Plan, chosen: Mapping[int, int]) -> set[int]:
    """The calls in places whose loop is in no sweep with loops of others."""
    inside: set[int] = set()
    for sweep in plan.sweeps:
        calls = {call for place in sweep.groups for call in plan.groups[place].calls}
        if calls - chosen.keys():
            inside |= calls
    return chosen.keys() - inside


def _noted(plan: Plan, chosen: Mapping[int, int]) -> Plan:
    return replace(plan, placed=tuple(Placed(*item) for item in sorted(chosen.items())))


# --------------------------------------------------------------------------- may it?


class _Row(NamedTuple):
    """A row of a region, along one of its axes."""

    region: RegionShape
    axis: int
    number: int


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


@lru_cache(maxsize=1024)
def _rows(call: CallShape) -> tuple[_Row, ...]:
    """The rows that a call stores to, if it stores to one of each view; those it reads are near."""
    if not may_place(call):
        return ()
    stored: dict[RegionShape, _Row] = {}
    read: list[_Row] = []
    for access in accesses(call):
        region = region_of(call, access)
        axis = _outermost(region)
        index = access.relation.indices[axis]
        row = None
        if index is not None and not index.terms:
            row = _Row(region, axis, index.constant)
        if access.mode is Mode.READ:
            read += [row] if row is not None else []
        elif row is None or stored.setdefault(region, row) != row:
            return ()
    for row in read:
        if row.region in stored and abs(row.number - stored[row.region].number) > REACH:
            return ()
    return tuple(stored.values())


def _outermost(region: RegionShape) -> int:
    """The axis along which a region has its longest step."""
    return max(range(len(region.strides)), key=lambda axis: abs(region.strides[axis]))


# --------------------------------------------------------------------------- should it?


def targets(trace: TraceShape) -> dict[int, int]:
    """Calls that store to one row, each with the iteration of others that has to do with the row.
    """
    distinct = dict(zip(trace.kinds, trace.calls, strict=True))
    edges = {kind: rows for kind, call in distinct.items() if (rows := _rows(call))}
    if not edges or len(edges) == len(distinct):
        return {}
    walks = [_Walk(*walk) for call in distinct.values() for walk in _walks(call)]
    found: dict[int, int] = {}
    for kind, rows in edges.items():
        iterations = {walk.iteration(row) for row in rows for walk in walks} - {None}
        places = sorted(n for n in iterations if n is not None)
        if places and places[-1] - places[0] <= REACH:
            found[kind] = places[len(places) // 2]
    return {
        place: found[kind]
        for place, kind in enumerate(trace.kinds)
        if kind in found and found[kind] != _own(trace.calls[place])
    }


def _own(call: CallShape) -> int | None:
    """The iteration of a call that has one along its first axis."""
    begin, end, _ = call.space
    return begin[0] if end[0] - begin[0] == 1 else None


class _Walk(NamedTuple):
    """An access whose subscript along an axis is the outermost index and a constant."""

    region: RegionShape
    axis: int
    constant: int

    def iteration(self, row: _Row) -> int | None:
        """The outermost index with which it touches the row of another region; None if none does.
        """
        if self.region.cluster != row.region.cluster or self.axis != row.axis:
            return None
        shifts = shift(row.region, self.region)
        return None if shifts is None else row.number + shifts[row.axis] - self.constant


def _walks(call: CallShape) -> Iterator[_Walk]:
    """The accesses of a call that walk over rows, of more than one iteration."""
    begin, end, _ = call.space
    if end[0] - begin[0] < 2:
        return
    for access in accesses(call):
        region = region_of(call, access)
        axis = _outermost(region)
        index = access.relation.indices[axis]
        if index is not None and index.terms == ((0, 1),):
            yield _Walk(region, axis, index.constant)


def _may_sweep(trace: TraceShape) -> bool:
    """Whether the data is large enough that a sweep might pay."""
    model = cost_model(trace)
    return len(trace.calls) > 1 and model.total >= BEYOND * model.machine.cache


def _pays(fine: coarsening.Planned, changed: TraceShape, plan: Plan) -> bool:
    """Whether the trace with calls in places costs less."""
    old, new = coarsening.compared(fine, changed, plan)
    return new < old
