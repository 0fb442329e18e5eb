"""Row contraction: a temporary that is used a row an iteration becomes a small local array.

    for j: t[i][j] = 2 * a[i][j]                double t[64];
    for j: s = max(s, t[i][j])           ->     for j: t[j] = 2 * a[i][j]
    for j: b[i][j] = t[i][j] - s                for j: s = max(s, t[j]); ...

Loops that must stay apart pass whole rows to each other, which no scalar can hold. Array
contraction (G. Gao et al., "Collective loop fusion for array contraction", 1992) with what is left
of the array in the first-level cache: no row travels to memory, and none is allocated.

The law is that of scalar contraction for a range of elements. Nobody may read the view after the
kernel, nothing may overlap it, one axis alone may vary within an iteration, its extent is known
and small, and every load must follow a store of the same iteration to the same element. The
elements surely stored so far are kept as a set while the body is walked in order: a loop over known
trips adds its own, a branch what both sides add, a loop that may end early or make no trip nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pyfuser.analysis.bounds import bounded_locals
from pyfuser.analysis.intervals import Interval, fits, interval
from pyfuser.ir.accesses import Subscripts, accesses, with_subscripts
from pyfuser.ir.canonical import fresh
from pyfuser.ir.definitions import expand, of_scalars, stable_locals
from pyfuser.ir.nodes import (
    Body,
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
    expressions,
    leaves_loop,
    reads,
    sym_of,
)
from pyfuser.support.records import dataclass
from pyfuser.trace.shape import RegionShape
from pyfuser.transform.cells import is_simple, zero
from pyfuser.transform.flat import as_rows, flat_row
from pyfuser.transform.kernel import Kernel
from pyfuser.tuning.thresholds import DEFAULT


# law
def contract_rows(kernel: Kernel) -> Kernel:
    """The kernel with such temporaries in local arrays; `params` are left as they are."""
    workunit = kernel.workunit
    body = workunit.body
    if not any(isinstance(stmt, For) for stmt in body):
        return kernel
    candidates = kernel.dead - {sym for pair in kernel.overlaps for sym in pair}
    if not candidates:
        return kernel
    fixed = frozenset((*workunit.indices, *(p.sym for p in workunit.params))) - assigned(body)
    known = kernel.ranges()
    ranges = {**bounded_locals(body, known), **known}
    facts = _Facts(workunit.indices, stable_locals(body), assigned(body), fixed, ranges)
    left = DEFAULT.row_bytes
    for param, shape in zip(workunit.params, kernel.shapes, strict=True):
        view = param.sym
        if not isinstance(shape, RegionShape) or view not in candidates:
            continue
        found = _row(body, view, shape, facts)
        if found is None:
            continue
        row, rows = found
        if row.size <= left and row.pays(rows):
            body = row.contracted(rows)
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
    """The row of an iteration, with the body that names its elements along one axis."""
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
    axis = _moving_axis(body, view, facts)
    if axis is None:
        return None
    extent = length or shape.shape[axis]
    return (_Row(view, axis, extent, facts), body) if 0 < extent <= DEFAULT.row_extent else None


def _moving_axis(body: Body, view: Sym, facts: _Facts) -> int | None:
    """The one axis along which an iteration moves; None if the view is not used by rows."""
    named: list[Subscripts] = [
        tuple(expand(index, facts.stable) for index in access.indices)
        for access in accesses(body, view)
    ]
    moving = [
        axis
        for axis, column in enumerate(zip(*named, strict=True))
        if len(set(column)) > 1 or not _is_fixed(column[0], facts.fixed)
    ]
    if len(moving) != 1:
        return None
    others = (index for n, index in enumerate(named[0]) if n != moving[0])
    if reads(*others).isdisjoint(facts.indices):
        return None  # no row of the iteration's own
    return moving[0]


def _is_fixed(index: Expr, fixed: frozenset[Sym]) -> bool:
    return of_scalars(index) and reads(index) <= fixed


@dataclass
class _Stored:
    """What an iteration surely stored so far.

    elements: of the row. here: subscripts, in terms of variables that keep their values until
    they are taken out again.
    """

    elements: frozenset[int] = frozenset()
    here: frozenset[Expr] = frozenset()


class _Uncovered(Exception):
    """An element may be loaded before the iteration stores it, or lie outside of the row."""


@dataclass(frozen=True)
class _Row:
    view: Sym
    axis: int
    extent: int
    facts: _Facts

    @property
    def size(self) -> int:
        return self.extent * self.view.dtype.size

    # ------------------------------------------------------------------ may it?

    def pays(self, body: Body) -> bool:
        """Whether every load follows a store of the same iteration to the element.

        And whether an iteration surely uses most of the row: all of it is made anew each time.
        """
        try:
            stored = self._walk(body, _Stored(), self.facts.ranges)
        except _Uncovered:
            return False
        return 2 * len(stored.elements) >= self.extent

    # law
    def _walk(self, body: Body, stored: _Stored, ranges: dict[Sym, Interval]) -> _Stored:
        for stmt in body:
            for child in child_expressions(stmt):
                self._check_loads(child, stored, ranges)
            if isinstance(stmt, (Store, Update)) and sym_of(stmt) == self.view:
                index = self._index(stmt.indices)
                if isinstance(stmt, Update):
                    self._check_load(index, stored, ranges)
                stored = self._with_store(index, stored, ranges)
            elif isinstance(stmt, If):
                sides = [self._walk(side, stored, ranges) for side in (stmt.then, stmt.orelse)]
                stored = _Stored(
                    sides[0].elements & sides[1].elements, sides[0].here & sides[1].here
                )
            elif isinstance(stmt, For):
                stored = self._after_loop(stmt, stored, ranges)
            elif isinstance(stmt, While):
                self._walk(stmt.body, stored, ranges)
        return stored

    def _index(self, subscripts: Subscripts) -> Expr:
        return expand(subscripts[self.axis], self.facts.stable)

    def _check_loads(self, expr: Expr, stored: _Stored, ranges: dict[Sym, Interval]) -> None:
        for part in expressions(expr):
            if isinstance(part, Load) and part.view == self.view:
                self._check_load(self._index(part.indices), stored, ranges)

    def _check_load(self, index: Expr, stored: _Stored, ranges: dict[Sym, Interval]) -> None:
        if index not in stored.here:
            low, high = self._inside(index, ranges)
            if not stored.elements.issuperset(range(low, high + 1)):
                raise _Uncovered

    def _inside(self, index: Expr, ranges: dict[Sym, Interval]) -> Interval:
        """The elements that a subscript may name."""
        known = interval(index, ranges)
        if known is None or known[0] < 0 or known[1] >= self.extent:
            raise _Uncovered
        return known

    # law
    def _with_store(self, index: Expr, stored: _Stored, ranges: dict[Sym, Interval]) -> _Stored:
        low, high = self._inside(index, ranges)
        elements = stored.elements | {low} if low == high else stored.elements
        return _Stored(elements, stored.here | {index} if self._keeps(index) else stored.here)

    # law: True
    def _keeps(self, index: Expr) -> bool:
        """Whether a subscript means one element until the end of the trip it is computed in."""
        return of_scalars(index) and reads(index).isdisjoint(self.facts.changing)

    # law
    def _after_loop(self, loop: For, stored: _Stored, ranges: dict[Sym, Interval]) -> _Stored:
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
        elements = set(body.elements)
        for index in body.here - stored.here:
            elements.update(self._over(index, loop.sym, exact, inner))
        return _Stored(frozenset(elements), stored.here)

    def _over(
        self, index: Expr, variable: Sym, trips: range, ranges: dict[Sym, Interval]
    ) -> Iterable[int]:
        """The elements that a subscript surely names in some trip of the loop."""
        for value in trips:
            known = interval(index, {**ranges, variable: (value, value)})
            if known is not None and known[0] == known[1]:
                yield known[0]

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
        """The values of the variable, if they are known and not too many."""
        if self._trips(loop, ranges) is None:
            return None
        start, stop, step = (interval(expr, ranges) for expr in (loop.start, loop.stop, loop.step))
        if start is None or stop is None or step is None:
            return None
        if start[0] != start[1] or stop[0] != stop[1] or stop[0] - start[0] > DEFAULT.row_extent:
            return None
        return range(start[0], stop[0], step[0])

    # ------------------------------------------------------------------ do it

    def contracted(self, body: Body) -> Body:
        """The body with the row in a local array."""
        row = fresh(self.view.name, self.view.dtype)
        elements = (Const(zero(row.dtype), row.dtype),) * self.extent

        body = with_subscripts(body, self.view, lambda at: (at[self.axis],), row)
        return (DeclareArray(row, elements), *body)
