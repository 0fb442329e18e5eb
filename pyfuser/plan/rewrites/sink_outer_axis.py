"""A short outermost axis becomes a loop of an iteration: the components of a state, each an array.

    over (3, n):                           over n:
    v[c][i] = u[c][i] + h * k[c][i]    ->      for c in range(3):
                                                   v[c][i] = u[c][i] + h * k[c][i]

    over n:
    k[0][i] = s * (v[1][i] - v[0][i])      (shares the loop now)

Programs that keep the components of a point, or the directions of a lattice, in arrays of their own
treat some calls by component, others by point. Their spaces differ, so no loop holds both, and each
passes all components through memory. As the trips of the loop are few and their number is known it
is written out (`transform.unroll`), and vectors run along the next axis, as before.

The law is that of coarsening, as in `plan.rewrites.sink_axes`: iterations of a parallel_for are
unordered, so those of one point may run one after the other. As the others run in another order,
too, it must not show: no atomics, and iterations that run one by one as they come (pk.Serial) stay.

The cost. Only calls that share memory with calls of the smaller space try; the model says what the
loops that both then share save.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pyfuser.ir.effects import effects
from pyfuser.plan.plan import Note, Told
from pyfuser.plan.rewrite import UNSURE, Change, Changes, Option, Rewrite
from pyfuser.plan.rewrites.sink_axes import MOST, may_sink, sunk_call
from pyfuser.support.caches import cached
from pyfuser.support.records import dataclass
from pyfuser.trace.call import GPU_SPACES, Space
from pyfuser.trace.shape import CallShape, TraceShape
from pyfuser.tuning.thresholds import NOW


@cached(1024)
def turned(call: CallShape) -> CallShape:
    """The call with its outermost axis as the innermost one."""
    begin, end, execution = call.space
    first, *others = call.workunit.indices
    space = Space((*begin[1:], begin[0]), (*end[1:], end[0]), execution)
    workunit = replace(call.workunit, indices=(*others, first))
    return call._replace(space=space, workunit=workunit)


def inner_space(space: Space) -> Space | None:
    """The space without its outermost axis, if that is short and begins at 0."""
    begin, end, execution = space
    if len(begin) < 2 or begin[0] or not 1 < end[0] <= MOST or execution in GPU_SPACES:
        return None
    inner = Space(begin[1:], end[1:], execution)
    return inner if inner.size >= NOW.tuning.sunk_rows else None


# law: True
def may_turn(call: CallShape) -> bool:
    """Whether its iterations may run in an order in which the outermost index changes first."""
    observable = effects(call.workunit).observable
    return may_sink(call) and not observable and call.space.execution != "Serial"


def _sunk(trace: TraceShape, best: Option) -> Changes:
    """The calls of a space with a short outermost axis that others use by point."""
    inner = {space: inner_space(space) for space in {call.space for call in trace.calls}}
    touched: dict[Space, set[int]] = {}
    for call in trace.calls:
        touched.setdefault(call.space, set()).update(call.clusters)
    shared = {
        space
        for space, other in inner.items()
        if other is not None and touched[space] & touched.get(other, set())
    }
    return {
        place: Change(sunk_call(turned(call), 1), SunkOuter(place))
        for place, call in enumerate(trace.calls)
        if call.space in shared and may_turn(call)
    }


@dataclass(frozen=True, slots=True)
class SunkOuter(Note):
    """A call whose short outermost axis is a loop of each iteration."""

    alone = True

    @classmethod
    def lines(cls, notes: Sequence[Note], told: Told) -> Iterator[str]:
        yield f"the short outermost axis is a loop of each iteration: {told.names(notes)}"


REWRITE = Rewrite(
    "sink-outer-axis",
    "a short outermost axis becomes a loop of an iteration, where others run by point",
    candidates=_sunk,
    gain=UNSURE,
)
