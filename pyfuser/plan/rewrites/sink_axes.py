"""Short innermost axes become loops of an iteration: three colours of a pixel, nine entries of a
matrix.

    over (n, 3):                           over n:
    x[i][c] += dt * v[i][c]         ->     for c in range(3):
                                               x[i][c] += dt * v[i][c]

The innermost loop of a processor's code is the one that becomes vectors, and three iterations are
none. As a loop with a constant number of trips the axis is written out (`transform.unroll`), and
neighbours along the next axis become vectors (`nest.short_rows`); and calls over pixels can share
the loop.

The law is that of coarsening (see `plan.rewrites.coarsen`), of which this is a case. A sum of
integers has the same bits whatever is one of its iterations, so it may go along; one of
floating-point numbers may not, and keeps the calls of its space that share memory with it.

The cost. What a loop is worth without vectors is not in the model, so this is made before anything
is planned; where it was a mistake, `runtime.rivals` finds out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from pyfuser.ir.affine import values_of
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Body, For, While
from pyfuser.ir.visit import statements
from pyfuser.plan.plan import Note, Told
from pyfuser.plan.rewrite import Change, Changes, Option, Rewrite
from pyfuser.plan.rewrites.coarse_body import folded
from pyfuser.plan.rewrites.coarsen import may_coarsen
from pyfuser.support.caches import cached
from pyfuser.support.records import dataclass
from pyfuser.trace.call import GPU_SPACES, Space
from pyfuser.trace.shape import CallShape, TraceShape
from pyfuser.tuning.thresholds import NOW

SHORT = 4
"""Iterations along an axis that are no vector; processors shuffle rows of so many, at most."""

JOINING = 8
"""The same of an axis whose loop joins others over the axes outside of it: a vector, at most."""

MOST = 9
"""Iterations that one stands for, at most: the code has as many copies of the body."""

_INTEGERS = {dtype for dtype in DType if dtype.is_integer} - {DType.BOOL}


@cached(1024)
def sunk_call(call: CallShape, axes: int) -> CallShape:
    """The call with loops over its last axes."""
    begin, end, execution = call.space
    bounds = tuple(zip(begin[-axes:], end[-axes:], strict=True))
    space = Space(begin[:-axes], end[:-axes], execution)
    return call._replace(space=space, workunit=folded(call.workunit, bounds))


def short_axes(space: Space, short: int = SHORT) -> int:
    """How many of the last axes of a space are short, and together few iterations.

    They begin at 0: a part of an axis that moves on would be another loop, and kernel, each time.
    """
    found, many = 0, 1
    for begin, extent in zip(reversed(space.begin[1:]), reversed(space.end[1:]), strict=True):
        many *= extent
        if begin or not 1 < extent <= short or many > MOST:
            break
        found += 1
    if not found or space.execution in GPU_SPACES:
        return 0
    return found if prod(space.shape[:-found]) >= NOW.tuning.sunk_rows else 0


# law: True
def may_sink(call: CallShape) -> bool:
    """Whether iterations along an axis may run one after the other, as one."""
    kinds = {accumulator.sym.dtype for accumulator in call.workunit.accumulators}
    if call.pattern == "reduce" and not kinds - _INTEGERS:
        call = call._replace(pattern="for")
    return may_coarsen(call)


def _sunk(trace: TraceShape, best: Option) -> Changes:
    """The calls over short innermost axes, unless one that must stay uses the memory of others."""
    axes = {space: _axes(trace, space) for space in {call.space for call in trace.calls}}
    short = {place: call for place, call in enumerate(trace.calls) if axes[call.space]}
    moving = {place: call for place, call in short.items() if may_sink(call)}
    staying: dict[Space, set[int]] = {}
    for place in short.keys() - moving.keys():
        staying.setdefault(short[place].space, set()).update(short[place].clusters)
    torn = {
        call.space for call in moving.values() if staying.get(call.space, set()) & call.clusters
    }
    return {
        place: Change(sunk_call(call, axes[call.space]), Sunk(place))
        for place, call in moving.items()
        if call.space not in torn
    }


def _axes(trace: TraceShape, space: Space) -> int:
    """How many axes of a space become loops."""
    short, joining = short_axes(space), short_axes(space, JOINING)
    if short == joining:
        return short
    outer = space._replace(begin=space.begin[:-joining], end=space.end[:-joining])
    calls = [call for call in trace.calls if call.space == space]
    if not all(_is_short(call.workunit.body) for call in calls):
        return short
    others = set[int]().union(*(call.clusters for call in trace.calls if call.space == outer))
    return joining if any(call.clusters & others for call in calls) else short


def _is_short(body: Body) -> bool:
    """Whether all loops of a body have few trips, as `transform.unroll` writes them out."""
    loops = [stmt for stmt in statements(body) if isinstance(stmt, (For, While))]
    counts = [values_of(loop) if isinstance(loop, For) else None for loop in loops]
    return all(values is not None and len(values) <= JOINING for values in counts)


@dataclass(frozen=True, slots=True)
class Sunk(Note):
    """A call whose short innermost axes are loops of an iteration."""

    alone = True

    @classmethod
    def lines(cls, notes: Sequence[Note], told: Told) -> Iterator[str]:
        yield f"the short innermost axis is a loop of each iteration: {told.names(notes)}"


REWRITE = Rewrite(
    "sink-axes",
    "short innermost axes become loops of an iteration",
    candidates=_sunk,
    gain=None,
)
