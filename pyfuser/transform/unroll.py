"""Fully unroll inner loops whose few trips are known for this trace.

A scalar that bounds a loop has a known value in the shape of the arguments. With its trips written
out a loop no longer stands in the way of vectorising the iterations around it. Applied to every
kernel of an engine that emits C++, fused or not.

That is no gain where neighbouring iterations access elements far apart, as the rows of `x[i][f]`:
vectors of them are gathered element by element. Sixteen trips of a distance between rows, divided,
took a third to a fifth of the time left as a loop (see `nest.passes.unroll_and_jam`), which
walks along rows. But where much is computed of each element, as in the factorisation of a small
matrix, vectors pay for gathering them: then all loops of a body are written out, or none of these.
A short loop that stays one has its number of trips as a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from pyfuser.analysis.intervals import interval
from pyfuser.ir.accesses import accesses
from pyfuser.ir.affine import everywhere, linear
from pyfuser.ir.canonical import fresh
from pyfuser.ir.definitions import expand, stable_locals
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Binary,
    Body,
    Cast,
    Const,
    Expr,
    Extent,
    For,
    Read,
    Select,
    Stmt,
    Sym,
    While,
    Workunit,
)
from pyfuser.ir.visit import (
    all_expressions,
    assigned,
    contains,
    declared,
    expressions,
    leaves_loop,
    map_body,
    reads,
    statements,
    substitute_syms,
)
from pyfuser.ir.weights import LOAD, arithmetic
from pyfuser.support.caches import cached
from pyfuser.support.records import dataclass
from pyfuser.trace.shape import RegionShape, known_scalars
from pyfuser.transform.fuse import MAX_FORMS
from pyfuser.transform.kernel import Kernel
from pyfuser.tuning.thresholds import NOW, Tuning

NEAR = 4
"""Elements from what one iteration accesses to what the next one does: vectors are loaded whole and
shuffled (see `nest.short_rows`). Loops over the elements of points in space took half of the time
of those that stayed loops."""

Bounds = tuple[Expr, Expr, Expr]
"""Start, stop and step of a loop."""

Known = dict[Sym, tuple[int, int]]
Trips = tuple[tuple[Bounds, range], ...]
Fresh = Callable[[str, DType], Sym]


# law
def unroll(kernel: Kernel) -> Kernel:
    """The kernel with short loops of known bounds replaced by their trips."""
    scalars = known_scalars(kernel.workunit, kernel.shapes)
    known: Known = {sym: (value, value) for sym, value in scalars.items()}
    views = {
        param.sym: shape
        for param, shape in zip(kernel.workunit.params, kernel.shapes, strict=True)
        if isinstance(shape, RegionShape)
    }
    trips = tuple(_short_loops(kernel.workunit.body, known, views).items())
    if not trips:
        return kernel
    strides = tuple((sym, shape.strides) for sym, shape in views.items())
    pairs = tuple(known.items())
    return replace(kernel, workunit=_unrolled(kernel.workunit, trips, strides, pairs, NOW.tuning))


def _short_loops(body: Body, known: Known, views: dict[Sym, RegionShape]) -> dict[Bounds, range]:
    """The values of the variables of loops with few trips, by the loops' bounds."""
    found: dict[Bounds, range] = {}
    for loop in statements(body):
        if isinstance(loop, For):
            bounds = loop.start, loop.stop, loop.step
            values = _values(bounds, known, views)
            if values is not None and len(values) <= NOW.tuning.counted_trips:
                found[bounds] = values
    return found


@cached(MAX_FORMS)
def _unrolled(
    workunit: Workunit,
    trips: Trips,
    strides: tuple[tuple[Sym, tuple[int, ...]], ...],
    known: tuple[tuple[Sym, tuple[int, int]], ...],
    tuning: Tuning,
) -> Workunit:
    """The workunit with the loops of these bounds unrolled: all that is known of sizes."""
    values = dict(trips)
    scalars = dict(known)
    lanes = _Lanes.of(workunit, dict(strides), scalars)
    body = map_body(workunit.body, None, lambda stmt: _trips(stmt, values, scalars, tuning))
    if not lanes.become_vectors(replace(workunit, body=body), values.values(), tuning):
        body = map_body(
            workunit.body,
            None,
            lambda stmt: (
                stmt
                if isinstance(stmt, For) and (contains(stmt.body, For) or lanes.gathered(stmt))
                else _trips(stmt, values, scalars, tuning)
            ),
        )
    body = map_body(body, None, lambda stmt: _counted(stmt, scalars, tuning))
    return replace(workunit, body=body)


def _trips(stmt: Stmt, values: dict[Bounds, range], known: Known, tuning: Tuning) -> Stmt | Body:
    """The trips of a loop one after the other, or the statement itself."""
    trips = values.get((stmt.start, stmt.stop, stmt.step)) if isinstance(stmt, For) else None
    if trips is None:
        return stmt
    assert isinstance(stmt, For)
    counted = _with_counts(stmt, [stmt], known)
    made = written_out(counted, trips, tuning)
    return stmt if made is counted else made


def written_out(loop: For, trips: range, tuning: Tuning, make: Fresh = fresh) -> Stmt | Body:
    """The trips of a loop, its variable's values, one after the other, if they are few.

    `make(name, dtype)` makes the Syms of what a trip declares.
    """
    if len(trips) > tuning.unrolled_trips or not _may_unroll(loop):
        return loop
    result: list[Stmt] = []
    size = 0
    for value in trips:
        trip = substitute_syms(loop.body, {s: make(s.name, s.dtype) for s in declared(loop.body)})
        trip = map_body(trip, _setter(loop.sym, value))
        trip = map_body(trip, None, lambda stmt: _inner(stmt, tuning, make))
        size += _size(trip)
        # Around a loop that stays, nothing would be gained: iterations do not vectorise across it.
        if size > tuning.unrolled_nodes or contains(trip, For, While):
            return loop
        result += trip
    return tuple(result)


def _size(body: Body) -> int:
    return len([*all_expressions(body)])


def _inner(stmt: Stmt, tuning: Tuning, make: Fresh) -> Stmt | Body:
    """The trips of a loop inside a trip of another one, whose variable's value may bound it."""
    if not isinstance(stmt, For):
        return stmt
    trips = _values((stmt.start, stmt.stop, stmt.step), {}, {})
    return stmt if trips is None else written_out(stmt, trips, tuning, make)


def _counted(stmt: Stmt, known: Known, tuning: Tuning) -> Stmt:
    """A short loop (or nest of them), which stays one, with the numbers of its trips as constants.

    With them g++ leaves out what handles the rest of other numbers, and takes the outer loop of a
    nest as the lanes of vectors, the inner one in order. Other numbers that are known stay as they
    are, so that one kernel serves all values of them.
    """
    if not isinstance(stmt, For):
        return stmt
    loops = [stmt, *(s for s in statements(stmt.body) if isinstance(s, For))]
    trips = [_values((loop.start, loop.stop, loop.step), known, {}) for loop in loops]
    if any(values is None or len(values) > tuning.counted_trips for values in trips):
        return stmt
    return _with_counts(stmt, loops, known)


def _with_counts(stmt: For, loops: Sequence[For], known: Known) -> For:
    """A loop with constants in place of the known numbers that are bounds of some loops in it."""
    ends = reads(*(end for loop in loops for end in (loop.start, loop.stop, loop.step)))
    counts = (ends & known.keys()) - assigned((stmt,))

    def constant(expr: Expr) -> Expr:
        if isinstance(expr, Read) and expr.sym in counts:
            return Const(known[expr.sym][0], expr.dtype)
        return expr

    (counted,) = map_body((stmt,), constant)
    assert isinstance(counted, For)
    return counted


def _values(loop: Bounds, known: Known, views: dict[Sym, RegionShape]) -> range | None:
    """The values that a loop's variable takes, if they are known."""
    bounds = []
    for expr in loop:
        if isinstance(expr, Extent) and expr.view in views:
            bounds.append(views[expr.view].shape[expr.axis])
            continue
        value = _only_value(expr, known)
        if value is None:
            return None
        bounds.append(value)
    start, stop, step = bounds
    if step == 0 or (step < 0 and not isinstance(loop[2], Const)):
        return None
    return range(start, stop, step)


def _may_unroll(loop: For) -> bool:
    """Whether each trip runs to its end and none changes the loop's variable."""
    return loop.sym not in assigned(loop.body) and not any(map(leaves_loop, loop.body))


def _setter(sym: Sym, value: int) -> Callable[[Expr], Expr]:
    """Replaces reads of a symbol by a constant."""
    constant = Const(value, sym.dtype)
    return lambda expr: constant if isinstance(expr, Read) and expr.sym == sym else expr


@dataclass(frozen=True)
class _Lanes:
    """How neighbouring iterations of a one-dimensional space access memory.

    index: None for other spaces, whose innermost axis is chosen later. `strides` are in bytes.
    """

    index: Sym | None
    fixed: frozenset[Sym]
    strides: dict[Sym, tuple[int, ...]]
    known: Known
    stable: dict[Sym, Expr]

    @classmethod
    def of(cls, workunit: Workunit, strides: dict[Sym, tuple[int, ...]], known: Known) -> _Lanes:
        syms = frozenset(param.sym for param in workunit.params)
        index = workunit.indices[0] if len(workunit.indices) == 1 else None
        fixed = syms - assigned(workunit.body)
        return cls(index, fixed, strides, known, stable_locals(workunit.body))

    def gathered(self, stmt: Stmt) -> bool:
        """Whether most of what a loop accesses is far apart in neighbouring iterations."""
        if not isinstance(stmt, For) or self.index is None:
            return False
        moving = {s.sym for s in statements(stmt.body) if isinstance(s, For)} | {stmt.sym}
        found = {
            (view, tuple(expand(index, self.stable) for index in indices))
            for view, indices, *_ in accesses(stmt.body)
            if view in self.strides
        }
        far = sum(not self._near(view, indices, moving) for view, indices in found)
        return bool(found) and 2 * far >= len(found)

    def become_vectors(self, written: Workunit, trips: Iterable[range], tuning: Tuning) -> bool:
        """Whether a body whose loops of these trips are written out is worth it as a whole.

        It has no loops left, and computes enough of the elements that vectors gather.
        """
        body = written.body
        if contains(body, For, While):
            return False
        if _size(body) > 2 * tuning.unrolled_nodes:
            return False
        stable = stable_locals(body)
        found = {
            (view, tuple(expand(index, stable) for index in indices))
            for view, indices, *_ in accesses(body)
            if view in self.strides
        }
        far = 0
        if self.index is not None:
            far = sum(not self._near(view, indices, set()) for view, indices in found)
        short = all(len(values) <= tuning.gathered_trips for values in trips)
        loaded = LOAD * len(found)
        return not far or (short and arithmetic(written, {}) - loaded >= tuning.gathered_work * far)

    def _near(self, view: Sym, indices: tuple[Expr, ...], moving: set[Sym]) -> bool:
        """Whether neighbouring iterations access one element, or ones with few between."""
        step = 0
        for index, stride in zip(indices, self.strides[view], strict=True):
            factor = self._factor(index, moving)
            if factor is None:
                return False
            step += factor * stride
        return abs(step) <= NEAR * view.dtype.size

    def _factor(self, expr: Expr, moving: set[Sym]) -> int | None:
        """What an integer grows by from one iteration to the next, if always the same.

        Of two that are selected (`min(i + 1, n - 1)`) the one that moves counts: there are more.
        """
        assert self.index is not None
        form = linear(expr, everywhere, lambda e: _only_value(e, self.known))
        total = 0
        for term, count in form.terms.items():
            step = self._step(term, moving)
            if step is None:
                return None
            total += count * step
        return total

    def _step(self, term: Expr, moving: set[Sym]) -> int | None:
        match term:
            case Read() if term.sym == self.index:
                return 1
            case Read() if term.sym in self.stable:
                return self._factor(self.stable[term.sym], moving)
            case Binary(op="%"):
                return self._factor(term.left, moving)  # most neighbours wrap together
            case Select():
                then, orelse = (self._factor(e, moving) for e in (term.then, term.orelse))
                return None if then is None or orelse is None else max(then, orelse, key=abs)
        return 0 if self._is_even(term, moving) else None

    def _is_even(self, term: Expr, moving: set[Sym]) -> bool:
        """Whether a term is made of numbers that neighbouring iterations have in common."""
        return all(
            isinstance(part, (Const, Extent, Cast, Binary))
            or (isinstance(part, Read) and part.sym in self.fixed | moving)
            for part in expressions(term)
        )


def _only_value(expr: Expr, known: Known) -> int | None:
    """The value of an integer that can have one alone."""
    values = interval(expr, known)
    return values[0] if values is not None and values[0] == values[1] else None
