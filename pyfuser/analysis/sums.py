"""Along which axis the neighbouring threads of a GPU run, and so in which order they add up.

Threads of a warp are to touch neighbouring memory. In a map that is a matter of speed. In a sum it
decides which iterations a thread adds up, and the bits of a sum must not depend on the calls that
share its loop, nor on the loads that sharing saves. So a call's own accesses say it, before
anything is fused (`Accumulator.along`), and sums of different axes share no loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from pyfuser.ir import nodes
from pyfuser.ir.accesses import accesses
from pyfuser.ir.nodes import Sym, Workunit
from pyfuser.ir.visit import expressions
from pyfuser.support.caches import cached
from pyfuser.trace.call import GPU_SPACES
from pyfuser.trace.shape import CallShape, RegionShape


def added_along(call: CallShape) -> int | None:
    """The axis of a call's sum, if a GPU adds it up over several axes."""
    rank = len(call.space.begin)
    if rank < 2 or call.space.execution not in GPU_SPACES or not call.workunit.accumulators:
        return None
    return _added_along(call)


@cached(1024)
# law
def _added_along(call: CallShape) -> int:
    workunit = call.workunit
    if any(accumulator.flat for accumulator in workunit.accumulators):
        return len(workunit.indices) - 1
    units = {
        param.sym: shape.strides.index(shape.dtype.size)
        for param, shape in zip(workunit.params, call.arguments, strict=True)
        if isinstance(shape, RegionShape) and shape.dtype.size in shape.strides
    }
    return contiguous_axis(workunit, units)


def with_axes(call: CallShape) -> Workunit:
    """A call's workunit, whose sums know their axis."""
    along = added_along(call)
    if along is None:
        return call.workunit
    marked = tuple(replace(a, along=along) for a in call.workunit.accumulators)
    return replace(call.workunit, accumulators=marked)


def contiguous_axis(workunit: Workunit, units: Mapping[Sym, int]) -> int:
    """The axis of the space along which most accesses move by one element; the last of equals.

    units: the axis of each view along which its elements are neighbours.
    """
    axes = {sym: axis for axis, sym in enumerate(workunit.indices)}
    votes: Counter[int] = Counter()

    for access in accesses(workunit.body):
        unit = units.get(access.view)
        if unit is not None:
            moving = (e for e in expressions(access.indices[unit]) if isinstance(e, nodes.Read))
            votes.update(axes[e.sym] for e in moving if e.sym in axes)
    return max(axes.values(), key=lambda axis: (votes[axis], axis))
