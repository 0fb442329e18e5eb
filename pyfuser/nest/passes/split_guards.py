"""Index set splitting: where every guard of a body holds, its loops run without them.

A body may have parts for a smaller box than its loop's (see `ir.guarded`). The box that all these
have in common runs a body without guards, which vectorises as the parts do alone; what lies around
it, a slab before and one behind along each axis, runs the body with all guards, so that it does not
matter which box begins or ends first. Iterations of a map are unordered, and of one axis the order
stays as it is. Where there are sums, their blocks stay as they are, and each is asked whether it is
in the middle (see `passes.tile_sums`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pyfuser.ir.dtypes import DType
from pyfuser.ir.guarded import Bound, unguarded
from pyfuser.ir.nodes import (
    Assign,
    Binary,
    Body,
    Cast,
    Compare,
    Continue,
    Declare,
    Expr,
    If,
    Logical,
    Read,
    Select,
    Stmt,
    Sym,
    Unary,
    Workunit,
)
from pyfuser.ir.visit import assigned
from pyfuser.nest.build import LOOP, at_axis, box, over_box, values, whole
from pyfuser.nest.interior import Interior
from pyfuser.nest.nodes import Function, Loop, Nest, Run, number, wide
from pyfuser.support.records import dataclass

ALIGNED = 8
"""Elements that fill cache lines: the middle begins at a multiple, so as to store whole lines."""

AROUND, MIDDLE = "pf_around", "pf_middle"
"""The functions that run the body with all guards, and without."""

STRIP = 16
"""Steps of the outermost of two axes that are split at a time: the slabs' lines stay in cache."""


@dataclass(frozen=True, slots=True)
class _Limits:
    """The bounds of the guards of an axis.

    narrow: whether some of them are compared with 32 bits of the index.
    """

    lower: tuple[Sym, ...]
    upper: tuple[Sym, ...]
    narrow: bool


def split_guards(nest: Nest) -> Nest:
    """The nest with its loop split where guards begin and end to hold, if there are any."""
    over = whole(nest)
    if over is None or not _may_split(nest):
        return nest
    found = unguarded(replace(nest.workunit, body=over.body))
    if found is None:
        return nest
    parts = tuple(
        over_box(nest, name, body) for name, body in ((AROUND, over.body), (MIDDLE, found.body))
    )
    low, high = box(nest)
    limits = [_limits(found.bounds, sym) for sym in nest.workunit.indices]
    if nest.rank == 1:
        body = _line(nest, limits[0], values(low), values(high))
    else:
        body = (_boxes(nest, limits, values(low), values(high)),)
    return replace(nest, functions=(*parts, Function(LOOP, low, high, body=body)))


# law
def inside_of_guards(
    workunit: Workunit, axis: int, fresh: Callable[[str, DType], Sym]
) -> Interior | None:
    """How blocks of iterations along an axis run where all guards hold; None if there are none.

    Or if an `if` adds terms, whose order must not depend on where guards hold. fresh: as of
    `interior`.
    """
    found = unguarded(workunit)
    sums = {accumulator.sym for accumulator in workunit.accumulators}
    guarded = tuple(stmt for stmt in workunit.body if isinstance(stmt, If))
    if found is None or sums & assigned(guarded):
        return None
    first, last = fresh("first", DType.INT64), fresh("last", DType.INT64)
    tests = [
        _holds(bound, Read(last if bound.upper else first))
        if bound.sym == workunit.indices[axis]
        else _holds(bound, Read(bound.sym))
        for bound in found.bounds
    ]
    if any(bound.limit.dtype is DType.INT32 for bound in found.bounds):
        tests += [Unary("!", _changes(Read(end)), DType.BOOL) for end in (first, last)]
    return Interior(found.body, tuple(tests), first, last)


def _holds(bound: Bound, index: Expr) -> Expr:
    own, limit = index, Read(bound.limit)
    if own.dtype is not limit.dtype:
        own = Cast(own, limit.dtype)
    return Compare("<" if bound.upper else ">=", own, limit)


# law: True
def _may_split(nest: Nest) -> bool:
    """Whether iterations may run in another order; along one axis they keep theirs."""
    spec = nest.spec
    return not spec.checked and spec.pattern == "for" and not (spec.serial and spec.rank > 1)


def _limits(bounds: Sequence[Bound], index: Sym) -> _Limits:
    own = [b for b in bounds if b.sym == index]
    return _Limits(
        tuple(b.limit for b in own if not b.upper),
        tuple(b.limit for b in own if b.upper),
        any(b.limit.dtype is DType.INT32 for b in own),
    )


def _held(limits: _Limits, begin: Expr, end: Expr, aligned: bool, ends: tuple[Sym, Sym]) -> Body:
    """Finds out between which numbers all guards of an axis hold."""
    low, high = ends
    body: list[Stmt] = [Declare(low, begin), Declare(high, end)]
    body += [
        If(Compare("<", Read(low), wide(Read(limit))), (Assign(low, wide(Read(limit))),))
        for limit in limits.lower
    ]
    if aligned and limits.lower:
        steps = Binary("+", Binary("-", Read(low), begin), number(ALIGNED - 1))
        lines = Binary("*", Binary("/", steps, number(ALIGNED)), number(ALIGNED))
        body.append(Assign(low, Binary("+", begin, lines)))
    body += [
        If(Compare(">", Read(high), wide(Read(limit))), (Assign(high, wide(Read(limit))),))
        for limit in limits.upper
    ]
    if limits.narrow:
        body.append(If(_needs_64_bits(begin, end), (Assign(high, Read(low)),)))
    return tuple(body)


def _line(nest: Nest, limits: _Limits, begin: tuple[Expr, ...], end: tuple[Expr, ...]) -> Body:
    ends = nest.fresh("low", DType.INT64), nest.fresh("high", DType.INT64)
    low, high = values(ends)
    split = (
        If(Compare("<", begin[0], low), (Run(AROUND, begin, (low,)),)),
        Run(MIDDLE, (low,), (high,)),
        If(Compare("<", high, end[0]), (Run(AROUND, (high,), end),)),
    )
    body = _held(limits, begin[0], end[0], True, ends)
    return (*body, If(Compare(">=", low, high), (Run(AROUND, begin, end),), split))


def _boxes(
    nest: Nest,
    limits: Sequence[_Limits],
    begin: tuple[Expr, ...],
    end: tuple[Expr, ...],
) -> Loop:
    """Peel slabs off the box, axis by axis, a few steps of its outermost loop at a time."""
    outer, inner = nest.spec.order.axes[0], nest.spec.order.axes[-1]
    steps = number(nest.spec.order.block or (STRIP if nest.rank == 2 else 1))
    strip, upto = nest.fresh("strip", DType.INT64), nest.fresh("piece", DType.INT64)
    after = Binary("+", Read(strip), steps)
    least = Select(Compare("<", after, end[outer]), after, end[outer])
    low, high = at_axis(begin, outer, Read(strip)), at_axis(end, outer, Read(upto))
    body: Body = (Declare(upto, least),)
    for axis in nest.spec.order.axes:
        if not limits[axis].lower and not limits[axis].upper:
            continue
        name = nest.name(nest.workunit.indices[axis])
        ends = nest.fresh(f"{name}_low", DType.INT64), nest.fresh(f"{name}_high", DType.INT64)
        first, last = values(ends)
        body += (
            *_held(limits[axis], low[axis], high[axis], axis == inner, ends),
            If(Compare(">=", first, last), (Run(AROUND, low, high), Continue())),
            *_slabs(axis, low, high, first, last),
        )
        low, high = at_axis(low, axis, first), at_axis(high, axis, last)
    body += (Run(MIDDLE, low, high),)
    return Loop(strip, begin[outer], end[outer], steps, body)


def _slabs(
    axis: int, low: tuple[Expr, ...], high: tuple[Expr, ...], first: Expr, last: Expr
) -> Body:
    """Run what lies before and behind the middle along an axis."""
    return (
        If(Compare("<", low[axis], first), (Run(AROUND, low, at_axis(high, axis, first)),)),
        If(Compare("<", last, high[axis]), (Run(AROUND, at_axis(low, axis, last), high),)),
    )


def _needs_64_bits(begin: Expr, end: Expr) -> Expr:
    """Whether some index of a range is another one in 32 bits, which it may be compared in."""
    first, last = begin, Binary("-", end, number(1))
    return Logical("||", *(_changes(value) for value in (first, last)))


def _changes(value: Expr) -> Expr:
    return Compare("!=", Cast(Cast(value, DType.INT32), DType.INT64), value)
