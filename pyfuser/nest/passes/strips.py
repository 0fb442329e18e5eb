"""The loops of a strip of iterations: one for each part, waiting loops with their trips jammed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
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
    Select,
    Stmt,
    Store,
    Sym,
)
from pyfuser.ir.visit import assigned, substitute_syms
from pyfuser.nest.build import iteration, iterations, local, noted, row
from pyfuser.nest.nodes import Alloc, Clear, Kind, Loop, Nest, Scope, number
from pyfuser.nest.passes.unroll_and_jam import is_long
from pyfuser.nest.segments import Segment, expansion, is_zero
from pyfuser.plan.plan import STRIP

LOCALS = frozenset({"strip", "lanes", "lane", "cell"})

Terms = Callable[[Body], Body]


@dataclass(frozen=True, slots=True)
class Strips:
    """The parts that the iterations of a strip take in turn.

    The memory between parts: `arrays` has the array of each local, with an element an iteration;
    of a local array in `lengths` it has so many. Those in `shared` belong to the whole block.
    """

    parts: tuple[Segment, ...]
    arrays: dict[Sym, Sym]
    lengths: dict[Sym, int]
    shared: frozenset[Sym]


def strips_of(
    nest: Nest, parts: tuple[Segment, ...], arrays: dict[Sym, Sym], lengths: dict[Sym, int]
) -> Strips:
    """The memory between parts (see `passes.unroll_and_jam.strips`).

    `arrays` and `lengths`: what passes between the segments of the whole body.
    """
    own = {
        stmt.sym: len(stmt.values)
        for part in parts
        for stmt in part.body
        if isinstance(stmt, DeclareArray)
    }
    kept = [sym for sym in expansion(parts) if sym not in arrays]
    new = {sym: nest.fresh(f"{nest.name(sym)}_strip", sym.dtype) for sym in kept}
    lengths = lengths | {sym: length for sym, length in own.items() if sym in new}
    return Strips(parts, arrays | new, lengths, frozenset(arrays))


def allocs(strips: Strips) -> Body:
    """The memory between parts."""
    return tuple(
        Alloc(array, STRIP * strips.lengths.get(sym, 1))
        for sym, array in strips.arrays.items()
        if sym not in strips.shared
    )


def strip_loops(nest: Nest, strips: Strips, axis: int, terms: Terms) -> Body:
    """The loops over `count` iterations of an axis from `at`, a strip at a time.

    terms: what becomes of the body of a part whose iterations come one after the other.
    """
    loops = _Loops(nest, strips, axis)
    count, strip, lanes = map(local, ("count", "strip", "lanes"))
    left, full = Binary("-", count, strip), number(STRIP)
    body: list[Stmt] = [Declare(lanes.sym, Select(Compare("<", left, full), left, full))]
    for part in strips.parts:
        if not part.vector:
            body.append(loops.apart(part, terms))
            continue
        together = loops.abreast if any(map(is_long, part.body)) else loops.jammed
        alone = (loops.apart(part, lambda found: found),)
        body.append(If(Compare("==", lanes, full), together(part), alone))
    return (Loop(strip.sym, number(0), count, full, tuple(body), not nest.serial),)


def _stores(stmt: DeclareArray) -> list[Stmt]:
    """What gives a local array its first values."""
    return [
        Store(stmt.sym, (Const(cell, DType.INT64),), value)
        for cell, value in enumerate(stmt.values)
    ]


class _Loops:
    """Makes the loops of parts; an iteration's memory is at its `place` in the strip."""

    def __init__(self, nest: Nest, strips: Strips, axis: int) -> None:
        self.nest = nest
        self.strips = strips
        self.axis = axis
        self.index = nest.workunit.indices[axis]
        self.at, self.strip = local("at"), local("strip")

    def apart(self, part: Segment, terms: Terms) -> Stmt:
        """One iteration after the other."""
        step = local("step")
        place = Binary("-", step, self.strip)
        before: list[Stmt] = [*self._arrivals(part, place)]
        body: list[Stmt] = []
        for stmt in part.body:
            if isinstance(stmt, DeclareArray) and stmt.sym in self.strips.lengths:
                before.append(self._row(stmt.sym, place))
                if all(map(is_zero, stmt.values)):
                    before.append(Clear(stmt.sym, len(stmt.values)))
                else:
                    body += _stores(stmt)
            else:
                body.append(stmt)
        trip = (
            *iteration(self.nest, self.axis, Binary("+", self.at, step)),
            *before,
            *terms(tuple(body)),
            *self._departures(part, place),
        )
        end = Binary("+", self.strip, local("lanes"))
        return iterations(self.nest, step, self.strip, end, trip, Kind.SEQ)

    def jammed(self, part: Segment) -> Body:
        """All iterations of a full strip together, trip by trip."""
        name, fresh = self.nest.name, self.nest.fresh
        again = tuple(stmt for stmt in part.body if isinstance(stmt, Declare))
        own = (self.index, *part.arriving, *(stmt.sym for stmt in again))
        lanes = [
            {sym: fresh(f"{name(sym)}_{lane}", sym.dtype) for sym in own} for lane in range(STRIP)
        ]
        first = Binary("+", self.at, self.strip)
        body: Body = tuple(
            s for s in noted(self.nest) if isinstance(s, Declare) and s.sym != self.index
        )
        for lane, renamed in enumerate(lanes):
            here = Cast(Binary("+", first, number(lane)), self.index.dtype)
            found = (*self._arrivals(part, Const(lane, DType.INT32)), *again)
            body += (Declare(renamed[self.index], here), *substitute_syms(found, renamed))
        for loop in part.body:
            if isinstance(loop, For):
                trips = (Scope(substitute_syms(loop.body, renamed)) for renamed in lanes)
                body += (replace(loop, body=tuple(trips)),)
        for lane, renamed in enumerate(lanes):
            body += substitute_syms(self._departures(part, Const(lane, DType.INT32)), renamed)
        return body

    def abreast(self, part: Segment) -> Body:
        """All iterations of a full strip, a lane each; what a trip leaves to the next is kept."""
        lane = local("lane")
        again = tuple(stmt for stmt in part.body if isinstance(stmt, Declare))
        kept = replace(part, leaving=tuple(s for s in part.arriving if s in assigned(part.body)))
        here = Binary("+", Binary("+", self.at, self.strip), lane)
        before = (*iteration(self.nest, self.axis, here), *self._arrivals(part, lane), *again)
        after = self._departures(kept, lane)

        def side_by_side(loop: For) -> For:
            trip = (*before, *loop.body, *after)
            lanes = iterations(self.nest, lane, number(0), number(STRIP), trip, Kind.VECTOR)
            return replace(loop, body=(lanes,))

        return tuple(side_by_side(loop) for loop in part.body if isinstance(loop, For))

    def _arrivals(self, part: Segment, place: Expr) -> Body:
        return tuple(
            self._row(sym, place)
            if sym in self.strips.lengths
            else Declare(sym, Load(self.strips.arrays[sym], (self._place(sym, place),)))
            for sym in part.arriving
        )

    def _departures(self, part: Segment, place: Expr) -> Body:
        return tuple(
            Store(self.strips.arrays[sym], (self._place(sym, place),), Read(sym))
            for sym in part.leaving
            if sym not in self.strips.lengths
        )

    def _row(self, sym: Sym, place: Expr) -> Stmt:
        """An iteration's own array, which is a part of the strip's."""
        return row(sym, self.strips.arrays[sym], self._place(sym, place), self.strips.lengths[sym])

    def _place(self, sym: Sym, place: Expr) -> Expr:
        """Which element, or row, of a local's array an iteration has."""
        if sym not in self.strips.shared:
            return place
        if isinstance(place, Binary):  # step - strip
            return place.left
        if isinstance(place, Const):
            place = Const(place.value, DType.INT64)
        return Binary("+", self.strip, place)
