"""Rounds of calls on parts of arrays that move on (`trace.runs`): one call stands for all rounds.

    for k in range(1, rows):                          over rows - 1 rounds and n:
        parallel_for(n, scale, y=a[k], x=b[k])   ->       y[round][i] = ... x[round][i]

The number of the round is an index more, and a view that moves has an axis more, along which one
step is what it moves by in a round. It is a rewrite of calls before there is a trace: planning 512
calls takes a second, planning the one call that they are takes a millisecond.

The law. All rounds of the first call of a round come before all of the second (loop distribution;
R. Allen and K. Kennedy, "Optimizing Compilers for Modern Architectures", 2001, ch. 5): so no call
may touch, in an earlier round, what one before it in its round touches in a later one. Then each is
by itself:
- *Wide*, if no two of its rounds touch one byte (one of them writing): rounds are iterations like
  others, in any order.
- *Serial*, if what two rounds touch is touched by one and the same iteration of each: it runs the
  rounds one after the other, in their order, beside the other iterations.
Both are questions about sets of integers. Whoever prints, waits for others, or updates atomically
stays as it is: there the order shows. So does who divides integers or may leave its views, which
would end the program between two of the calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from pyfuser.analysis.accesses import facts_of
from pyfuser.analysis.dependences import Touch, conflict_kind, touches
from pyfuser.analysis.inside import is_inside
from pyfuser.analysis.overlap import never_meet
from pyfuser.ir.accesses import Subscripts as Indices
from pyfuser.ir.accesses import with_subscripts
from pyfuser.ir.canonical import all_syms
from pyfuser.ir.dtypes import DType
from pyfuser.ir.effects import effects
from pyfuser.ir.nodes import (
    Binary,
    Body,
    Cast,
    Const,
    Declare,
    Expr,
    Extent,
    For,
    Param,
    Read,
    Sym,
    Workunit,
)
from pyfuser.ir.visit import assigned, map_body
from pyfuser.support.caches import cached
from pyfuser.trace.runs import Steps
from pyfuser.trace.shape import CallShape

MAX_RANK = 8
"""Axes of a view."""

MAX_AXES = 3
"""Indices of an iteration."""


# --------------------------------------------------------------------------- may they?


# law: None
def are_serial(calls: tuple[CallShape, ...]) -> bool | None:
    """How the calls of a round may each stand for all rounds: True is serially, False is widely.

    None: they may not. calls: with the wide workunits.
    """
    if not all(map(_may_move, calls)):
        return None
    found = tuple([tuple(touches(call)) for call in calls])
    for place, later in enumerate(found):
        if any(_overtakes(earlier, later) for earlier in found[:place]):
            return None
    serial = [_way(len(call.space.begin), own) for call, own in zip(calls, found, strict=True)]
    if None in serial:
        return None
    return any(serial)  # all alike, so that they may share a loop


# law: True
def _may_move(call: CallShape) -> bool:
    """Whether the calls that one stands for may run in another order, but for memory."""
    unit = call.workunit
    if effects(unit).observable or not _begins_anew(unit):
        return False
    return is_inside(call, facts_of(call))


# law: False
def _overtakes(earlier: Sequence[Touch], later: Sequence[Touch]) -> bool:
    """Whether a call touches, in an earlier round, what one before it does in a later round."""
    return any(
        not _apart(one, other, "q0 < p0")
        for one, other in product(earlier, later)
        if _conflict(one, other)
    )


# law: None
def _way(rank: int, own: Sequence[Touch]) -> bool | None:
    """Whether the rounds of a call depend on each other; None: across iterations."""
    serial = False
    others = " or ".join(f"p{axis} != q{axis}" for axis in range(1, rank))
    for one, other in product(own, own):
        if not _conflict(one, other) or _apart(one, other, "p0 < q0"):
            continue
        if not _apart(one, other, f"p0 < q0 and ({others})"):
            return None
        serial = True
    return serial


# law: True
def _conflict(one: Touch, other: Touch) -> bool:
    """Whether two accesses may touch one byte, and their order matters then."""
    return (
        one.region.cluster == other.region.cluster
        and one.low <= other.high
        and other.low <= one.high
        and conflict_kind(one.access, one.region, other.access, other.region) is not None
    )


# law: True
def _apart(one: Touch, other: Touch, where: str) -> bool:
    return never_meet(one.access.relation, one.region, other.access.relation, other.region, where)


# law: True
def _begins_anew(workunit: Workunit) -> bool:
    """Whether an iteration leaves nothing behind in its own index or in a parameter."""
    kept = {param.sym for param in workunit.params} | {*workunit.indices}
    return kept.isdisjoint(assigned(workunit.body))


# --------------------------------------------------------------------------- what they become


@cached(1024)
# law: not None
def wide(workunit: Workunit, steps: Steps, ahead: Steps) -> Workunit | None:
    """The workunit with the round as its first index; None if it would have too many axes.

    steps: of its arguments; where one is not 0, the view has an axis more, or the integer is that
    of the first round. ahead: of views that move, how many steps before the first round they begin.
    """
    if len(workunit.indices) >= MAX_AXES or any(
        param.rank >= MAX_RANK for param in workunit.params
    ):
        return None
    uid = 1 + max(sym.uid for sym in all_syms(workunit))
    turn = Sym("round", uid, DType.INT32)
    body, params = workunit.body, list(workunit.params)
    counts: list[Declare] = []
    for place, (param, step) in enumerate(zip(workunit.params, steps, strict=True)):
        if not step:
            continue
        sym = param.sym
        if param.rank:
            body = _with_axis(body, sym, turn, ahead[place])
            params[place] = Param(sym, param.rank + 1)
        elif sym.dtype in (DType.INT32, DType.INT64):
            first = Sym(f"first_{sym.name}", uid + 1 + place, sym.dtype)
            number: Expr = Read(turn)
            number = number if sym.dtype is turn.dtype else Cast(number, sym.dtype)
            moved = Binary("*", number, Const(step, sym.dtype))
            counts.append(Declare(sym, Binary("+", Read(first), moved)))
            params[place] = Param(first)
        else:
            return None
    return replace(
        workunit,
        indices=(turn, *workunit.indices),
        params=tuple(params),
        body=(*counts, *body),
    )


# law
def _with_axis(body: Body, view: Sym, turn: Sym, ahead: int) -> Body:
    """The body where a view has the round as its first subscript, and so many rows before."""
    row: Expr = Read(turn)
    if ahead:
        row = Binary("+", row, Const(ahead, turn.dtype))

    def change(indices: Indices) -> Indices:
        return (row, *indices)

    def extent(e: Expr) -> Expr:
        return Extent(view, e.axis + 1) if isinstance(e, Extent) and e.view == view else e

    return map_body(with_subscripts(body, view, change), extent)


@cached(1024)
# law
def serial(workunit: Workunit) -> Workunit:
    """A wide workunit as one over its other indices, each iteration of which runs all rounds.

    How many there are is its last parameter.
    """
    turn, *indices = workunit.indices
    uid = 1 + max(sym.uid for sym in all_syms(workunit))
    rounds = Sym("rounds", uid, turn.dtype)
    start, step = Const(0, turn.dtype), Const(1, turn.dtype)
    loop = For(turn, start, Read(rounds), step, workunit.body)
    return replace(
        workunit, indices=tuple(indices), params=(*workunit.params, Param(rounds)), body=(loop,)
    )
