"""The loops of a strip of iterations: one for each part, waiting loops with their trips jammed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

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
    Select,
    Stmt,
    Sym,
)
from pyfuser.ir.visit import assigned, substitute_syms
from pyfuser.nest.build import iteration, iterations, local, noted
from pyfuser.nest.kept import Kept, Place
from pyfuser.nest.nodes import Kind, Loop, Nest, Scope, number
from pyfuser.nest.passes.unroll_and_jam import is_long
from pyfuser.nest.segments import Segment, expansion
from pyfuser.plan.plan import STRIP
from pyfuser.support.records import dataclass

Terms = Callable[[Body], Body]


@dataclass(frozen=True, slots=True)
class Strips:
    """The parts that the iterations of a strip take in turn.

    own: what is kept between them; kept: also what is kept between the segments of a block.
    """

    parts: tuple[Segment, ...]
    own: Kept
    kept: Kept


def strips_of(nest: Nest, parts: tuple[Segment, ...], between: Kept) -> Strips:
    """The memory between parts (see `passes.unroll_and_jam.strips`), and `between` segments."""
    arrays = {
        sym: nest.fresh(f"{nest.name(sym)}_strip", sym.dtype)
        for sym in expansion(parts)
        if sym not in between.arrays
    }
    local_arrays = (s for part in parts for s in part.body if isinstance(s, DeclareArray))
    own = Kept(arrays, {s.sym: len(s.values) for s in local_arrays if s.sym in arrays})
    both = Kept(between.arrays | arrays, between.lengths | own.lengths)
    return Strips(parts, own, both)


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
        place, kept = self._at(Binary("-", step, self.strip)), self.strips.kept
        own, body = kept.in_place(part.body, place)
        trip = (
            *iteration(self.nest, self.axis, Binary("+", self.at, step)),
            *kept.arriving(part.arriving, place),
            *own,
            *terms(body),
            *kept.leaving(part.leaving, place),
        )
        end = Binary("+", self.strip, local("lanes"))
        return iterations(self.nest, step, self.strip, end, trip, Kind.SEQ)

    def jammed(self, part: Segment) -> Body:
        """All iterations of a full strip together, trip by trip."""
        name, fresh, kept = self.nest.name, self.nest.fresh, self.strips.kept
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
            place = self._at(Const(lane, DType.INT32))
            found = (*kept.arriving(part.arriving, place), *again)
            body += (Declare(renamed[self.index], here), *substitute_syms(found, renamed))
        for loop in part.body:
            if isinstance(loop, For):
                trips = (Scope(substitute_syms(loop.body, renamed)) for renamed in lanes)
                body += (replace(loop, body=tuple(trips)),)
        for lane, renamed in enumerate(lanes):
            place = self._at(Const(lane, DType.INT32))
            body += substitute_syms(kept.leaving(part.leaving, place), renamed)
        return body

    def abreast(self, part: Segment) -> Body:
        """All iterations of a full strip, a lane each; what a trip leaves to the next is kept."""
        lane = local("lane")
        again = tuple(stmt for stmt in part.body if isinstance(stmt, Declare))
        kept, place = self.strips.kept, self._at(lane)
        changed = [sym for sym in part.arriving if sym in assigned(part.body)]
        here = Binary("+", Binary("+", self.at, self.strip), lane)
        arriving = kept.arriving(part.arriving, place)
        before = (*iteration(self.nest, self.axis, here), *arriving, *again)
        after = kept.leaving(changed, place)

        def side_by_side(loop: For) -> For:
            trip = (*before, *loop.body, *after)
            lanes = iterations(self.nest, lane, number(0), number(STRIP), trip, Kind.VECTOR)
            return replace(loop, body=(lanes,))

        return tuple(side_by_side(loop) for loop in part.body if isinstance(loop, For))

    def _at(self, place: Expr) -> Place:
        """Where an iteration's memory is: its own in the strip, that of segments in the block."""

        def of(sym: Sym) -> Expr:
            if sym in self.strips.own.arrays:
                return place
            if isinstance(place, Binary):  # step - strip
                return place.left
            wide = Const(place.value, DType.INT64) if isinstance(place, Const) else place
            return Binary("+", self.strip, wide)

        return of
