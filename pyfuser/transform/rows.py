"""Row contraction: a temporary that is used a row or tile an iteration becomes a local array.

    for j: t[i][j] = 2 * a[i][j]                double t[64];
    for j: s = max(s, t[i][j])           ->     for j: t[j] = 2 * a[i][j]
    for j: b[i][j] = t[i][j] - s                for j: s = max(s, t[j]); ...

Loops that must stay apart pass whole rows to each other, which no scalar can hold. Array
contraction (G. Gao et al., "Collective loop fusion for array contraction", 1992) with what is left
of the array in the first-level cache: no row travels to memory, and none is allocated.

A few elements are worth it even if they are read afterwards: registers hold them, and all of them
are stored when the iteration ends.

The law is that of scalar contraction for a range of elements. Nobody may read the view after the
kernel (or all elements are surely stored in it), nothing may overlap it, the axes that vary within
an iteration have known extents whose product is small, and every load must follow a store of the
same iteration to the same element. The elements surely stored so far are kept as a set while the
body is walked in order: a loop over known trips adds its own (along one axis of a tile, with the
others as written, which a loop around them resolves), a branch what both sides add, a loop that may
end early or make no trip nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import prod

from pyfuser.analysis.bounds import bounded_locals
from pyfuser.analysis.intervals import Interval, fits, interval
from pyfuser.ir.accesses import Subscripts, accesses, with_subscripts
from pyfuser.ir.canonical import fresh
from pyfuser.ir.definitions import expand, of_scalars, stable_locals
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Binary,
    Body,
    Cast,
    Const,
    DeclareArray,
    Expr,
    Extent,
    For,
    If,
    Load,
    Store,
    Sym,
    Update,
    While,
)
from pyfuser.ir.visit import (
    all_expressions,
    assigned,
    child_expressions,
    declared,
    expressions,
    leaves_loop,
    reads,
    sym_of,
)
from pyfuser.support.records import dataclass
from pyfuser.trace.shape import RegionShape
from pyfuser.transform.cells import is_simple, is_unread, zero
from pyfuser.transform.flat import as_rows, flat_row
from pyfuser.transform.kernel import Kernel
from pyfuser.tuning.thresholds import NOW


# law
def contract_rows(kernel: Kernel) -> Kernel:
    """The kernel with such temporaries in local arrays; `params` are left as they are."""
    workunit = kernel.workunit
    body = workunit.body
    if not any(isinstance(stmt, For) for stmt in body):
        return kernel
    overlapping = {sym for pair in kernel.overlaps for sym in pair}
    fixed = frozenset((*workunit.indices, *(p.sym for p in workunit.params))) - assigned(body)
    known = kernel.ranges()
    ranges = {**bounded_locals(body, known), **known}
    facts = _Facts(workunit.indices, stable_locals(body), assigned(body), fixed, ranges)
    left = NOW.tuning.row_bytes
    for param, shape in zip(workunit.params, kernel.shapes, strict=True):
        view = param.sym
        if not isinstance(shape, RegionShape) or view in overlapping:
            continue
        found = _row(body, view, shape, facts)
        if found is None:
            continue
        row, rows = found
        dead = view in kernel.dead
        if row.size <= left and (row.pays(rows) if dead else row.pays_kept(rows)):
            body = row.contracted(rows) if dead else row.kept(rows)
            left -= row.size
    return (
        kernel if body is workunit.body else replace(kernel, workunit=replace(workunit, body=body))
    )


@dataclass(frozen=True)
class _Facts:
    """What holds in the whole body: stable locals, what changes, what an iteration keeps."""

    indices: tuple[Sym, ...]
    stable: dict[Sym, Expr]
    changing: set[Sym]
    fixed: frozenset[Sym]
    ranges: dict[Sym, Interval]


def _row(body: Body, view: Sym, shape: RegionShape, facts: _Facts) -> tuple[_Row, Body] | None:
    """The row or tile of an iteration, with the body that names its elements along its axes."""
    if any(isinstance(e, Extent) and e.view == view for e in all_expressions(body)):
        return None
    if not all(map(is_simple, accesses(body, view))):
        return None
    length = 0
    if len(shape.shape) == len(facts.indices) == 1:
        (index,) = facts.indices
        flat = flat_row(body, view, index, facts.stable, facts.ranges)
        if flat is not None:
            body, length = as_rows(body, view, index, flat), flat.length
    axes = _moving_axes(body, view, facts)
    if not axes:
        return None
    extents = (length,) if length else tuple(shape.shape[axis] for axis in axes)
    fits_in = 0 < prod(extents) <= NOW.tuning.row_extent
    return (_Row(view, axes, extents, facts, length > 0), body) if fits_in else None


def _moving_axes(body: Body, view: Sym, facts: _Facts) -> tuple[int, ...]:
    """The axes along which an iteration moves; none if the view is not used by rows or tiles."""
    named: list[Subscripts] = [
        tuple(expand(index, facts.stable) for index in access.indices)
        for access in accesses(body, view)
    ]
    moving = tuple(
        axis
        for axis, column in enumerate(zip(*named, strict=True))
        if len(set(column)) > 1 or not _is_fixed(column[0], facts.fixed)
    )
    others = (index for n, index in enumerate(named[0]) if n not in moving) if moving else ()
    return () if reads(*others).isdisjoint(facts.indices) else moving  # a row of its own


def _is_fixed(index: Expr, fixed: frozenset[Sym]) -> bool:
    return of_scalars(index) and reads(index) <= fixed


Place = tuple[Expr, ...]
"""Subscripts along the axes of a row or tile; an element that is known has constants."""


class _Uncovered(Exception):
    """An element may be loaded before the iteration stores it, or lie outside of the row."""


@dataclass(frozen=True)
class _Row:
    view: Sym
    axes: tuple[int, ...]
    extents: tuple[int, ...]
    facts: _Facts
    flat: bool = False  # rows of a view of one axis, which the body has with two

    @property
    def extent(self) -> int:
        return prod(self.extents)

    @property
    def size(self) -> int:
        return self.extent * self.view.dtype.size

    # ------------------------------------------------------------------ may it?

    def pays(self, body: Body) -> bool:
        """Whether every load follows a store of the same iteration to the element.

        And whether an iteration surely uses most of the row: all of it is made anew each time.
        """
        known = self._stored(body)
        return known is not None and 2 * known >= self.extent

    # law
    def pays_kept(self, body: Body) -> bool:
        """Whether registers may hold the row, which is stored in any case and loaded again."""
        if self.flat or self.extent > NOW.tuning.row_registers or is_unread(body, self.view):
            return False
        return self._stored(body) == self.extent

    # law: not None
    def _stored(self, body: Body) -> int | None:
        """How many elements are surely stored; None if one may be loaded before it is."""
        try:
            stored = self._walk(body, frozenset(), self.facts.ranges)
        except _Uncovered:
            return None
        return sum(all(isinstance(e, Const) for e in place) for place in stored)

    # law
    def _walk(
        self, body: Body, stored: frozenset[Place], ranges: dict[Sym, Interval]
    ) -> frozenset[Place]:
        """What is surely stored after a body, by subscripts that keep their values to its end."""
        for stmt in body:
            for child in child_expressions(stmt):
                self._check_loads(child, stored, ranges)
            if isinstance(stmt, (Store, Update)) and sym_of(stmt) == self.view:
                place = self._place(stmt.indices)
                if isinstance(stmt, Update):
                    self._check_load(place, stored, ranges)
                stored = self._with_store(place, stored, ranges)
            elif isinstance(stmt, If):
                then, orelse = (
                    self._walk(side, stored, ranges) for side in (stmt.then, stmt.orelse)
                )
                stored = then & orelse
            elif isinstance(stmt, For):
                stored = self._after_loop(stmt, stored, ranges)
            elif isinstance(stmt, While):
                self._walk(stmt.body, stored, ranges)
        return stored

    def _place(self, subscripts: Subscripts) -> Place:
        found = (expand(subscripts[axis], self.facts.stable) for axis in self.axes)
        return tuple(_wide(index) if isinstance(index, Const) else index for index in found)

    def _check_loads(
        self, expr: Expr, stored: frozenset[Place], ranges: dict[Sym, Interval]
    ) -> None:
        for part in expressions(expr):
            if isinstance(part, Load) and part.view == self.view:
                self._check_load(self._place(part.indices), stored, ranges)

    # law
    def _check_load(
        self, place: Place, stored: frozenset[Place], ranges: dict[Sym, Interval]
    ) -> None:
        """A load is covered as it is written, or along some axes by all elements it may name."""
        boxes = self._inside(place, ranges)
        if place in stored:
            return
        for resolved in product((False, True), repeat=len(place)):
            choices = [
                [_number(n) for n in range(low, high + 1)] if known else [e]
                for e, (low, high), known in zip(place, boxes, resolved, strict=True)
            ]
            if stored.issuperset(product(*choices)):
                return
        raise _Uncovered

    def _inside(self, place: Place, ranges: dict[Sym, Interval]) -> list[Interval]:
        """The elements that subscripts may name, along each axis."""
        boxes = [interval(index, ranges) for index in place]
        found = [box for box in boxes if box is not None]
        if len(found) < len(boxes) or not all(
            low >= 0 and high < extent
            for (low, high), extent in zip(found, self.extents, strict=True)
        ):
            raise _Uncovered
        return found

    # law
    def _with_store(
        self, place: Place, stored: frozenset[Place], ranges: dict[Sym, Interval]
    ) -> frozenset[Place]:
        boxes = self._inside(place, ranges)
        only = tuple(
            _number(low) if low == high else index
            for index, (low, high) in zip(place, boxes, strict=True)
        )
        return stored.union(each for each in (place, only) if all(map(self._keeps, each)))

    # law: True
    def _keeps(self, index: Expr) -> bool:
        """Whether a subscript means one element until the end of the trip it is computed in."""
        return of_scalars(index) and reads(index).isdisjoint(self.facts.changing)

    # law
    def _after_loop(
        self, loop: For, stored: frozenset[Place], ranges: dict[Sym, Interval]
    ) -> frozenset[Place]:
        """What is stored once the loop is done."""
        trips = self._trips(loop, ranges)
        inner = dict(ranges)
        inner.pop(loop.sym, None)
        if trips is not None:
            if trips[0] >= trips[1]:
                return stored  # no trip at all
            inner[loop.sym] = (trips[0], trips[1] - 1)
        body = self._walk(loop.body, stored, inner)
        exact = self._exact_trips(loop, ranges)
        if not exact or any(map(leaves_loop, loop.body)):
            return stored
        inside = {loop.sym, *declared(loop.body)}
        return stored.union(
            after
            for place in body - stored
            for value in exact
            for after in _after_trip(place, inside, {**inner, loop.sym: (value, value)})
        )

    def _trips(self, loop: For, ranges: dict[Sym, Interval]) -> Interval | None:
        """Bounds on the values of an upward loop's variable: from, and up to but without."""
        step = loop.step.value if isinstance(loop.step, Const) else None
        if not isinstance(step, int) or step <= 0 or loop.sym in self.facts.changing:
            return None
        start, stop = (interval(expr, ranges) for expr in (loop.start, loop.stop))
        if start is None or stop is None or not fits((0, stop[1] + step), loop.sym.dtype):
            return None  # of a variable that may wrap nothing is known
        return start[0], stop[1]

    # law: not None
    def _exact_trips(self, loop: For, ranges: dict[Sym, Interval]) -> range | None:
        """Values that the variable surely takes, if those are known and not too many."""
        if self._trips(loop, ranges) is None:
            return None
        start, stop, step = (interval(expr, ranges) for expr in (loop.start, loop.stop, loop.step))
        if start is None or stop is None or step is None:
            return None
        if start[0] != start[1] or stop[0] - start[0] > NOW.tuning.row_extent:
            return None
        return range(start[0], stop[0], step[0])

    # ------------------------------------------------------------------ do it

    def contracted(self, body: Body) -> Body:
        """The body with the row in a local array."""
        row = fresh(self.view.name, self.view.dtype)
        elements = (Const(zero(row.dtype), row.dtype),) * self.extent

        body = with_subscripts(body, self.view, lambda at: (self._flat(at),), row)
        return (DeclareArray(row, elements), *body)

    # law
    def kept(self, body: Body) -> Body:
        """The body with the row in a local array that is stored at the end."""
        first = next(iter(accesses(body, self.view))).indices
        declaration, *rest = self.contracted(body)
        assert isinstance(declaration, DeclareArray)
        stores = []
        for number, place in enumerate(product(*map(range, self.extents))):
            at = dict(zip(self.axes, map(_number, place), strict=True))
            subscripts = tuple(
                at.get(axis, expand(index, self.facts.stable)) for axis, index in enumerate(first)
            )
            stores.append(Store(self.view, subscripts, Load(declaration.sym, (_number(number),))))
        return (declaration, *rest, *stores)

    def _flat(self, subscripts: Subscripts) -> Expr:
        """The number of an element: that of its row, then of its column, ..."""
        place, *others = (subscripts[axis] for axis in self.axes)
        for index, extent in zip(others, self.extents[1:], strict=True):
            first = Binary("*", _wide(place), _number(extent))
            place = Binary("+", first, _wide(index))
        return place


def _wide(index: Expr) -> Expr:
    if isinstance(index, Const):
        return _number(int(index.value))  # type: ignore[arg-type]
    return index if index.dtype is DType.INT64 else Cast(index, DType.INT64)


def _number(value: int) -> Const:
    return Const(value, DType.INT64)


# law
def _after_trip(place: Place, inside: set[Sym], ranges: dict[Sym, Interval]) -> Iterator[Place]:
    """What is stored after a trip, named by nothing that the trip has `inside`; maybe nothing."""
    result: list[Expr] = []
    for index in place:
        if reads(index).isdisjoint(inside):
            result.append(index)
            continue
        known = interval(index, ranges)
        if known is None or known[0] != known[1]:
            return
        result.append(_number(known[0]))
    yield tuple(result)
