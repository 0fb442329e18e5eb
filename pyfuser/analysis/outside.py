"""Subscripts that are outside for sure: of views, of what is local to an iteration, and from data.

The access is made in some iteration whatever happens, so it can never be meant. Subscripts that are
elements of a view (`x[k[i]]`) are looked at in memory if nothing pending writes them: one pass over
them, once a shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pyfuser.analysis import polyhedra
from pyfuser.analysis.accesses import Mode, accesses
from pyfuser.analysis.affine import Affine, Interval
from pyfuser.analysis.elements import element_at, known_elements
from pyfuser.analysis.evaluate import Fact
from pyfuser.analysis.interpret import Interpreter
from pyfuser.analysis.overlap import variables_of
from pyfuser.analysis.relation import Relation
from pyfuser.ir.canonical import MAX_WORKUNITS
from pyfuser.ir.definitions import loaded
from pyfuser.ir.nodes import (
    Body,
    DeclareArray,
    Expr,
    Load,
    Scratch,
    SourceLocation,
    Store,
    Sym,
    Update,
    Workunit,
)
from pyfuser.ir.visit import all_expressions, as_written, statements
from pyfuser.support.caches import cached
from pyfuser.support.errors import BoundsError, quoted
from pyfuser.trace.call import Call
from pyfuser.trace.shape import CallShape, RegionShape


class _Place(NamedTuple):
    """Elements that are touched for sure, of what has this name and shape."""

    name: str
    shape: tuple[int, ...]
    relation: Relation
    location: SourceLocation | None


class Gather(NamedTuple):
    """A subscript that is an element of a view, for sure; `relation` says of which elements.

    alone: an iteration comes here once at most.
    """

    view: Sym
    axis: int
    element: Load
    relation: Relation
    location: SourceLocation | None
    mode: Mode
    alone: bool


def refuse_outside(shape: CallShape, walk: Walk | None, call: Call, before: Sequence[Call]) -> None:
    """Raise BoundsError if some iteration, for sure, uses a subscript that is outside.

    walk: `walked`. before: calls that run before this one and have not run.
    """
    unit = shape.workunit
    for access in accesses(shape):
        if access.exact:
            region = shape.arguments[access.param]
            assert isinstance(region, RegionShape)
            name = unit.params[access.param].sym.name
            _refuse(_Place(name, region.shape, access.relation, access.location), call)
    if walk is None:
        return
    for place in walk.places:
        _refuse(place, call)
    for gather in walk.gathers:
        region = shape.arguments[walk.views[gather.view]]
        assert isinstance(region, RegionShape)
        _refuse_element(gather, region.shape[gather.axis], call, before)


def walked(shape: CallShape, facts: Sequence[Fact]) -> Walk | None:
    """A walk over a call's workunit; None where it would find nothing."""
    unit = shape.workunit
    if not (shape.space.size and is_worth_a_walk(unit)):
        return None
    walk = Walk(unit, shape.space.begin, shape.space.end, tuple(facts))
    walk.run()
    return walk


@cached(MAX_WORKUNITS)
def is_worth_a_walk(unit: Workunit) -> bool:
    """Whether there is local memory, or a subscript that may be an element."""
    body = unit.body
    if any(isinstance(stmt, (DeclareArray, Scratch)) for stmt in statements(body)):
        return True
    read = [e.indices for e in all_expressions(body) if isinstance(e, Load)]
    changed = [s.indices for s in statements(body) if isinstance(s, (Store, Update))]
    return bool(read) and any(
        loaded(as_written(index), unit) is not None
        for indices in read + changed
        for index in indices
    )


class Walk(Interpreter):
    """What `accesses` leaves out: memory of an iteration's own, and subscripts from data."""

    def run(self) -> tuple[()]:
        self.places: list[_Place] = []
        self.gathers: list[Gather] = []
        self._extents: dict[Sym, tuple[int, ...]] = {}
        super().run()
        return ()

    def execute(self, body: Body) -> None:
        for stmt in body:
            if isinstance(stmt, DeclareArray):
                self._extents[stmt.sym] = (len(stmt.values),)
            elif isinstance(stmt, Scratch):
                extents = [self.affine(extent) for extent in stmt.shape]
                if all(extent is not None and not extent.terms for extent in extents):
                    shape = tuple(max(extent.constant, 0) for extent in extents if extent)
                    self._extents[stmt.sym] = shape
            super().execute((stmt,))

    def _record(
        self,
        view: Sym,
        indices: tuple[Expr, ...],
        mode: Mode,
        location: SourceLocation | None,
        op: str = "",
    ) -> None:
        if not self.exact:
            return
        extents = self._extents.get(view)
        if extents is not None:
            known = tuple(self.affine(index) for index in indices)
            if None not in known:
                self.places.append(_Place(view.name, extents, self._relation(known), location))
        if view not in self.views:
            return
        for axis, index in enumerate(indices):
            element = loaded(as_written(index), self.workunit)
            if element is None or element.view not in self.views:
                continue
            known = tuple(self.affine(subscript) for subscript in element.indices)
            if None not in known:
                relation = self._relation(known)
                alone = not self.loops
                self.gathers.append(Gather(view, axis, element, relation, location, mode, alone))


def _refuse_element(gather: Gather, extent: int, call: Call, before: Sequence[Call]) -> None:
    found = known_elements(call, gather.element, gather.relation, before)
    if found is None:
        return
    box, values = found
    if not values.size or (values.min() >= 0 and values.max() < extent):
        return
    place = np.argwhere((values < 0) | (values >= extent))[0]
    index = int(values[tuple(place)])
    name, subscripts = gather.element.view.name, ", ".join(map(str, element_at(box, place)))
    view = gather.view.name
    where = f"{gather.location}: " if gather.location else ""
    raise BoundsError(
        f"{where}the index of axis {gather.axis} of {view!r} is {name}[{subscripts}], which is "
        f"{index}, but its extent is {extent}; workunit {call.workunit.name!r}"
        f"{quoted(gather.location)}{_origin(call)}",
        view,
        gather.axis,
        index,
        extent,
        (),
        gather.location,
    )


def _origin(call: Call) -> str:
    return f"\n  called as {call.name!r} at {call.location}"


def _refuse(place: _Place, call: Call) -> None:
    relation = place.relation
    for axis, (index, extent) in enumerate(zip(relation.indices, place.shape, strict=True)):
        if index is None:
            continue
        low, high = index.span(relation.ranges)
        if (low >= 0 and high < extent) or _is_bounded(relation, index, (low, high), extent):
            continue
        known = (low, high) if relation.box else _attained(relation, index, extent)
        if known is not None:
            raise _outside(place, axis, known, extent, call)


def _is_bounded(relation: Relation, index: Affine, span: Interval, extent: int) -> bool:
    """Whether single constraints keep a subscript inside, as those of a remainder do."""
    opposite = index.times(-1).terms
    for part in relation.domain:
        low, high = span
        for expr, _ in part:
            if expr.terms == index.terms:
                low = max(low, index.constant - expr.constant)
            elif expr.terms == opposite:
                high = min(high, index.constant + expr.constant)
        if low < 0 or high >= extent:
            return False
    return True


def _attained(relation: Relation, index: Affine, extent: int) -> Interval | None:
    """The least and greatest value of a subscript; None if all are inside, or isl gives up."""
    names = [f"p{n}" for n in range(len(relation.ranges))]
    variables, constraints = variables_of(relation, names)
    value = index.text(names)
    outside = f"({value} < 0 or {value} >= {extent})"
    if polyhedra.is_empty(variables, [*constraints, outside]) is not False:
        return None
    return polyhedra.extremes(["value", *variables], [f"value = {value}", *constraints])


def _outside(place: _Place, axis: int, known: Interval, extent: int, call: Call) -> BoundsError:
    low, high = known
    index = high if high >= extent else low
    values = f"is {low}" if low == high else f"runs from {low} to {high}"
    where = f"{place.location}: " if place.location else ""
    message = (
        f"{where}the index of axis {axis} of {place.name!r} {values}, but its extent is {extent}; "
        f"workunit {call.workunit.name!r}{quoted(place.location)}"
    )
    if low < 0:
        message += (
            "\n  (in a kernel a negative index does not count from the end, and -1 % n is -1: "
            "a periodic neighbour is (i - 1 + n) % n)"
        )
    return BoundsError(message + _origin(call), place.name, axis, index, extent, (), place.location)
