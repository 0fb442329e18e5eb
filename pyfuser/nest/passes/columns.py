"""The loops of a strip of iterations that run trip by trip: see `passes.strip_mine`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Assign,
    Binary,
    Body,
    Cast,
    Compare,
    Const,
    Declare,
    DeclareArray,
    Expr,
    For,
    If,
    Load,
    Read,
    Stmt,
    Store,
    Sym,
    Update,
    While,
)
from pyfuser.ir.visit import map_body, statements, substitute_syms, sym_of
from pyfuser.nest.build import iteration, iterations, local
from pyfuser.nest.cost.work import body_cost
from pyfuser.nest.kept import times
from pyfuser.nest.nodes import Alloc, Clear, Kind, Loop, Nest, Row, Scope, number
from pyfuser.nest.passes.copy_rows import copied_rows
from pyfuser.nest.passes.scalar_expansion import (
    Branch,
    Part,
    Sums,
    Trips,
    kept_between,
    shared,
    sums_of,
)
from pyfuser.nest.passes.strip_mine import columns
from pyfuser.nest.segments import Segment
from pyfuser.nest.sums import SHORTEST
from pyfuser.support.records import dataclass

_APART = 9
"""Cache lines between the arrays of iterations: rows of two would else begin at one place of a page
(4 KiB), and a load has to wait for earlier stores to the same place of any page."""

Terms = Callable[[Body], Body]

_NONE: Mapping[Sym, Sym] = {}


@dataclass(frozen=True, slots=True)
class Columns:
    """The parts that the iterations of a strip take in turn, and the arrays of what they keep.

    lanes: for each total of a loop with sums, the array of the strip's running sums.
    lengths: of those locals that are arrays themselves. The strip has their first elements side by
    side, then the second ones. copies: those of them that are rows of views (see
    `passes.copy_rows`), which are written before they are read; ahead: the parts that do that,
    unless they are among the others. fits: what must hold for all that. outer: the axis whose
    iterations come after the copies; None where each makes its own.
    """

    parts: tuple[Part, ...]
    arrays: dict[Sym, Sym]
    lanes: dict[Sym, Sym]
    lengths: dict[Sym, int]
    copies: frozenset[Sym] = frozenset()
    ahead: tuple[Part, ...] = ()
    fits: Expr | None = None
    outer: int | None = None

    @property
    def bytes(self) -> int:
        """What is kept for an iteration."""
        named = {array: sym for sym, array in self.arrays.items()}
        own = sum(self.lengths.get(sym, 1) * sym.dtype.size for sym in named.values())
        return own + sum(_count(sym) * sym.dtype.size for sym in self.lanes)


def columns_of(nest: Nest) -> Columns | None:
    """How strips of a body's iterations run its loops; None for a body without columns."""
    if nest.serial:
        return None
    index = nest.workunit.indices[nest.spec.order.axes[-1]]
    found = _columns(nest, index)
    copied = copied_rows(nest, index) if found is None else None
    if copied is None:
        return found
    found = _columns(nest.of((*copied.ahead, *copied.body)), index, copied.rows)
    if found is None:
        return None
    ahead = len(copied.ahead) if copied.outer is not None else 0
    first, rest = found.parts[:ahead], found.parts[ahead:]
    if not all(map(_makes, copied.ahead[:ahead], first)):
        return None
    made = replace(found, parts=rest, copies=frozenset(copied.rows), ahead=first)
    return replace(made, fits=copied.fits, outer=copied.outer)


def _makes(stmt: Stmt, part: Part) -> bool:
    """Whether a part is what became of a statement of its own."""
    if isinstance(stmt, For):
        return isinstance(part, Trips) and part.loop.sym == stmt.sym
    return isinstance(part, Segment) and part.body == (stmt,)


def _columns(nest: Nest, index: Sym, rows: Mapping[Sym, Sym] = _NONE) -> Columns | None:
    workunit, fresh, name = nest.workunit, nest.fresh, nest.name
    parts = columns(workunit, index, nest.views, fresh, rows)
    if parts is None:
        return None
    lengths = {
        stmt.sym: len(stmt.values)
        for stmt in statements(workunit.body)
        if isinstance(stmt, DeclareArray)
    }
    owners = shared(parts, frozenset(lengths))
    kept = [sym for sym in kept_between(parts) if owners.get(sym, sym) is sym]
    arrays = {sym: fresh(f"{name(sym)}_columns", sym.dtype) for sym in kept}
    arrays |= {sym: arrays[owner] for sym, owner in owners.items()}
    totals = (pair for sums in sums_of(parts) for pair in sums.totals)
    lanes = {total: fresh(f"{name(sym)}_lanes", sym.dtype) for sym, total in totals}
    return Columns(parts, arrays, lanes, {s: n for s, n in lengths.items() if s in arrays})


def _count(sym: Sym) -> int:
    """The running sums of an iteration: `pf_lanes<T>::count`."""
    return 256 // sym.dtype.size


def _line(sym: Sym) -> int:
    """The elements of a cache line."""
    return 64 // sym.dtype.size


def _pitch(sym: Sym, size: int) -> int:
    """From the first elements of a strip's arrays to the second ones: for the same reason not a
    power of two.
    """
    return size + _line(sym)


def allocs(columns: Columns, size: int) -> Body:
    """What is kept for strips of a size."""
    lengths = {
        array: columns.lengths[sym] * _pitch(sym, size) + _APART * _line(sym)
        if sym in columns.lengths
        else size
        for sym, array in columns.arrays.items()
    }
    lengths |= {array: size * _count(array) for array in columns.lanes.values()}
    return tuple(Alloc(array, length) for array, length in lengths.items())


def column_loops(nest: Nest, columns: Columns, size: int, axis: int, terms: Terms) -> Body:
    """The loops over `count` iterations of an axis from `at`; arrays are for strips of `size`.

    terms: what becomes of parts that may have accumulators: those outside of loops and conditions.
    """
    parts: Sequence[Part] = columns.parts
    branches = any(isinstance(part, Branch) for part in parts)
    if (columns.lanes or branches) and nest.workunit.accumulators:
        parts = (Segment((), True), *parts)  # from here on accumulators have a value
    return _Loops(nest, columns, size, axis, terms).parts(parts)


def copying_loops(nest: Nest, columns: Columns, size: int, axis: int) -> Body:
    """The loops that copy rows for `count` iterations of an axis from `at`."""
    return _Loops(nest, columns, size, axis, lambda body: body).parts(columns.ahead)


_ZERO = number(0)


@dataclass(frozen=True, slots=True)
class _Trip:
    """The loop whose trips parts are of; with sums, their running ones and the first trip."""

    loop: For
    lanes: dict[Sym, Sym] = field(default_factory=dict)
    first: Expr = _ZERO

    @property
    def step(self) -> int:
        return int(self.loop.step.value)  # type: ignore[union-attr, arg-type]

    @property
    def here(self) -> Expr:
        return _wide(Read(self.loop.sym))


class _Loops:
    def __init__(self, nest: Nest, columns: Columns, size: int, axis: int, terms: Terms) -> None:
        self.nest, self.columns = nest, columns
        self.size, self.axis, self.terms = size, axis, terms
        self.fresh, self.tuning = nest.fresh, nest.spec.tuning
        self.at, self.count, self.step, self.lane = map(local, ("at", "count", "step", "lane"))

    def parts(self, parts: Sequence[Part], trip: _Trip | None = None) -> Body:
        return tuple(stmt for part in parts for stmt in self._part(part, trip))

    def _part(self, part: Part, trip: _Trip | None) -> Body:
        if isinstance(part, Segment):
            return self._strip(part, trip)
        return (self._branch(part, trip) if isinstance(part, Branch) else self._trips(part),)

    def _branch(self, branch: Branch, trip: _Trip | None) -> Stmt:
        """A side of an If: for all iterations, or for those of a strip that take it."""
        trip = trip and _Trip(trip.loop)
        body = self.parts(branch.parts, trip)
        if branch.test is not None:
            return If(branch.test, body)
        assert branch.taken is not None and branch.plain is not None
        taking = self.fresh("taking", DType.INT64)
        taken = Cast(Load(self.columns.arrays[branch.taken], (self.step,)), taking.dtype)
        counted = self._over(self.step, self.count, (Update("+", taking, (), taken),), False)
        many = Binary("*", Read(taking), number(self.tuning.few_branches))
        few = If(Compare("!=", Read(taking), number(0)), self._strip(branch.plain, trip))
        either = If(Compare(">", many, self.count), body, (few,))
        return Scope((Declare(taking, number(0)), counted, either))

    def _trips(self, trips: Trips) -> Stmt:
        k, name = trips.loop.sym, self.nest.name(trips.loop.sym)
        stop = Read(self.fresh(f"{name}_stop", DType.INT64))
        start = _as(trips.loop.start, k.dtype)
        body: Body = (Declare(k, start), Declare(stop.sym, _wide(trips.loop.stop)))
        if trips.sums is None:
            return Scope((*body, *self._turns(trips, _Trip(trips.loop), stop)))
        return Scope((*body, self._sums(trips, trips.sums, stop)))

    def _sums(self, trips: Trips, sums: Sums, stop: Expr) -> Stmt:
        """A loop with sums: of what is in the lanes of running sums, or in order if it is short."""
        name, lanes = self.nest.name(trips.loop.sym), self.columns.lanes
        first = Read(self.fresh(f"{name}_first", DType.INT64))
        trip = _Trip(trips.loop, {sym: lanes[total] for sym, total in sums.totals}, first)
        here = trip.here
        long: list[Stmt] = [Declare(first.sym, here)]
        for sym, array in trip.lanes.items():
            value = Const(0.0 if sym.dtype.is_float else 0, sym.dtype)
            zero = Store(array, (self._at_lane(self.lane),), value)
            long.append(self._of_lanes(number(_count(sym)), zero))
        long += self._turns(trips, trip, stop)
        half = local("half")
        for array in trip.lanes.values():
            other = Load(array, (self._at_lane(Binary("+", self.lane, half)),))
            added = Update("+", array, (self._at_lane(self.lane),), other)
            halved = Assign(half.sym, Binary("/", half, number(2)))
            folded = While(Compare(">=", half, number(1)), (self._of_lanes(half, added), halved))
            long.append(Scope((Declare(half.sym, number(_count(array) // 2)), folded)))

        def total(e: Expr) -> Expr:
            found = isinstance(e, Read) and e.sym in lanes
            return Load(lanes[e.sym], (self.step,)) if found else e  # type: ignore[union-attr]

        long += self._strip(replace(sums.added, body=map_body(sums.added.body, total)))
        many = Compare(">=", Binary("-", stop, here), number(SHORTEST))
        return If(many, tuple(long), self._strip(sums.plain))

    def _at_lane(self, lane: Expr) -> Expr:
        return Binary("+", Binary("*", lane, number(self.size)), self.step)

    def _of_lanes(self, lanes: Expr, stmt: Stmt) -> Loop:
        """For so many running sums of all iterations."""
        return self._over(self.lane, lanes, (self._over(self.step, self.count, (stmt,)),))

    def _over(self, counter: Read, stop: Expr, body: Body, shared: bool = True) -> Loop:
        return Loop(counter.sym, number(0), stop, number(1), body, shared)

    def _turns(self, trips: Trips, trip: _Trip, stop: Expr) -> Body:
        """The loop itself, whose variable has its first value: several light trips at a time."""
        together = self.tuning.strip_trips
        body = self._while(trip, 1, stop, self.parts(trips.parts, trip))
        (part, *more) = trips.parts
        if more or not isinstance(part, Segment) or body_cost(part.body) > self.tuning.light_trip:
            return (body,)
        return self._while(trip, together, stop, self._strip(part, trip, together)), body

    def _while(self, trip: _Trip, together: int, stop: Expr, body: Body) -> While:
        """So many trips in turn as long as there are as many."""
        k, last = trip.loop.sym, number(trip.step * (together - 1))
        end = Binary("+", trip.here, last) if together > 1 else trip.here
        after = Binary("+", Read(k), Const(trip.step * together, k.dtype))
        more = Compare("<" if trip.step > 0 else ">", end, stop)
        return While(more, (*body, Assign(k, after)))

    def _strip(self, part: Segment, trip: _Trip | None = None, together: int = 1) -> Body:
        """A loop over the strip, for so many trips of the loop around it, if there is one."""
        arrays, lengths, guard = self.columns.arrays, self.columns.lengths, part.guard
        own = [s for s in part.body if isinstance(s, DeclareArray) and s.sym in lengths]
        zeroed = (s.sym for s in own if s.sym not in self.columns.copies)
        cells = ((arrays[sym], lengths[sym] * _pitch(sym, self.size)) for sym in zeroed)
        zeros = tuple(Clear(array, length) for array, length in cells)
        rest = tuple(stmt for stmt in part.body if stmt not in own)
        body = self._in_columns(rest, lengths.keys() & {*part.arriving})
        arriving = (*part.arriving, *((guard,) if guard is not None else ()))
        before: list[Stmt] = [self._arriving(sym) for sym in dict.fromkeys(arriving)]
        if guard is not None:
            ahead, body = _declared_ahead(body, part.leaving)
            before += ahead
        if together > 1 and trip is not None:
            inner: Body = tuple(self._trip_again(body, trip, n) for n in range(together))
        elif trip is not None or guard is not None:  # no accumulators under conditions
            inner = self._added(body, trip)
        else:
            inner = self.terms(body)
        kept = (sym for sym in part.leaving if sym not in lengths)
        after = tuple(Store(arrays[sym], (self.step,), Read(sym)) for sym in kept)
        if not inner and not after:
            return zeros
        whole = (
            *iteration(self.nest, self.axis, Binary("+", self.at, self.step)),
            *before,
            *(inner if guard is None else (If(Read(guard), inner),)),
            *after,
        )
        strip = iterations(self.nest, self.step, number(0), self.count, whole, Kind.VECTOR)
        return (*zeros, strip)

    def _arriving(self, sym: Sym) -> Stmt:
        """The declaration of what an iteration kept before."""
        array = self.columns.arrays[sym]
        if sym in self.columns.lengths:
            cells = (self.columns.lengths[sym] - 1) * _pitch(sym, self.size) + 1
            return Row(sym, array, self.step, cells)
        return Declare(sym, Load(array, (self.step,)))

    def _in_columns(self, body: Body, kept: set[Sym]) -> Body:
        """A body that has its own arrays in the strip's: elements lie between those of others."""

        def change(node: Any) -> Any:
            sym = sym_of(node)
            if sym is None or sym not in kept:
                return node
            return replace(node, indices=(times(_wide(node.indices[0]), _pitch(sym, self.size)),))

        return map_body(body, change, change) if kept else body

    def _added(self, body: Body, trip: _Trip | None) -> Body:
        """A trip whose terms go to the running sums."""
        if trip is None:
            return body
        before = (Declare(sym, None) for sym in trip.lanes)
        number_of = Binary("-", trip.here, trip.first)
        after = (
            Update("+", array, (self._at_lane(_masked(number_of, _count(sym))),), Read(sym))
            for sym, array in trip.lanes.items()
        )
        return (*before, *body, *after)

    def _trip_again(self, body: Body, trip: _Trip, n: int) -> Scope:
        """One of several trips that come one after the other."""
        k = trip.loop.sym
        own = self.fresh(f"{self.nest.name(k)}_{n}", k.dtype)
        here = Binary("+", Read(k), Const(n * trip.step, k.dtype))
        return Scope((Declare(own, here), *substitute_syms(self._added(body, trip), {k: own})))


def _declared_ahead(body: Body, leaving: tuple[Sym, ...]) -> tuple[list[Stmt], Body]:
    """What a part with a guard leaves, and the part with assignments for their declarations.

    Iterations that do not take the branch leave zeros, which nobody reads but as guards.
    """
    ahead, rest = list[Stmt](), list[Stmt]()
    for stmt in body:
        if isinstance(stmt, Declare) and stmt.sym in leaving:
            ahead.append(Declare(stmt.sym, None))
            if stmt.value is not None:
                rest.append(Assign(stmt.sym, stmt.value))
        else:
            rest.append(stmt)
    return ahead, tuple(rest)


def _as(e: Expr, dtype: DType) -> Expr:
    return e if e.dtype is dtype else Cast(e, dtype)


def _wide(e: Expr) -> Expr:
    if isinstance(e, Const):
        return Const(e.value, DType.INT64)
    return _as(e, DType.INT64)


def _masked(e: Expr, count: int) -> Expr:
    """The remainder by a power of two."""
    return Binary("&", e, number(count - 1))
