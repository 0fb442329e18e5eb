"""Which views of a sweep need no memory of their own while it runs.

What one loop of a sweep writes and later ones read close behind is needed only from the front back
to the slowest reader. A thread keeps just those steps, in a buffer that stays in cache (the storage
folding of J. Ragan-Kelley et al., "Halide", 2013).

The law: nobody but the sweep reads what it writes to the view, as a temporary's, or as the next
step of a loop overwrites it; the first call that writes it does so in exactly one element an
iteration (once or more often), at the outermost index plus a constant; whatever later calls of the
sweep read, update or write again lies in what that one wrote (what was in memory before is not
there); and all accesses keep a bounded distance from the outermost index. What is read at a place
that stands still, as a clamped neighbour is by the iterations at the end, is as near as the rest.

A kernel may lack that first store, where later ones overwrite it before anybody reads. The window
is right for those, too: by the output dependence they stay at least as far behind the front and
begin at least as far inside a share, and what they leave around a cut they store after the barrier.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pyfuser.analysis.accesses import Access, Mode, accesses
from pyfuser.analysis.affine import Affine, Interval
from pyfuser.analysis.liveness import liveness
from pyfuser.plan.cost_model import region_of
from pyfuser.plan.plan import Group, Rolling, Stage
from pyfuser.trace.shape import CallShape, RegionShape, TraceShape

_OUTERMOST = Affine(((0, 1),), 0)


class _Use(NamedTuple):
    """An access of a loop (by its number) of the sweep; order: the call's place among all."""

    loop: int
    stage: Stage
    order: int
    access: Access


# law
def rolling_views(
    trace: TraceShape, loops: Sequence[Group], stages: Sequence[Stage]
) -> tuple[Rolling, ...]:
    """The views that a sweep of these loops may keep a window of."""
    inside = [n for loop in loops for n in loop.calls]
    lifetimes = liveness(trace)
    regions: dict[int, set[RegionShape]] = {}
    uses: dict[int, list[_Use]] = {}
    loop_of = {n: k for k, loop in enumerate(loops) for n in loop.calls}
    for order, position in enumerate(inside):
        call = trace.calls[position]
        for region in _regions(call):
            regions.setdefault(region.cluster, set()).add(region)
        loop = loop_of[position]
        for access in accesses(call):
            region = region_of(call, access)
            use = _Use(loop, stages[loop], order, access)
            uses.setdefault(region.cluster, []).append(use)
    found = []
    for cluster, known in uses.items():
        if len(regions[cluster]) == 1 and lifetimes.is_dead_after(cluster, inside):
            (region,) = regions[cluster]
            found.append(_rolling(cluster, region, known))
    return tuple(view for view in found if view is not None)


def _regions(call: CallShape) -> Iterator[RegionShape]:
    return (argument for argument in call.arguments if isinstance(argument, RegionShape))


# law: not None
def _rolling(cluster: int, region: RegionShape, uses: Sequence[_Use]) -> Rolling | None:
    """How a view that is used so rolls on; None if that is not possible."""
    writes = [use for use in uses if use.access.mode is not Mode.READ]
    axis = _outermost(region)
    if axis is None or len(writes) in (0, len(uses)):
        return None
    writer = min(writes, key=lambda use: use.order)
    made = _written(writer.access, axis)
    if made is None or len({use.loop for use in uses}) == 1:
        return None
    moving, still = list[Interval](), list[Interval]()
    for use in uses:
        if use is not writer and not _lies_in_what_is_written(use, writer):
            return None
        index = use.access.relation.indices[axis]
        assert index is not None  # it lies there
        moves = dict(index.terms).get(0) == 1
        if not moves and use.access.mode is not Mode.READ:
            return None
        low, high = index.plus(_OUTERMOST, -1).span(use.access.relation.ranges)
        reaches = moving if moves else still
        reaches.append((low - use.stage.lag, high + use.stage.ahead))
    oldest, until = min(low for low, _ in moving), max(high for _, high in moving)
    if any(low < oldest or high > until for low, high in still):
        return None
    begun = made + writer.stage.ahead
    return Rolling(cluster, region.strides[axis], oldest, made - writer.stage.lag, begun, until)


def _outermost(region: RegionShape) -> int | None:
    """The axis whose stride steps over everything else of a region that starts its buffer."""
    if region.offset or any(stride <= 0 for stride in region.strides):
        return None
    axis = max(range(len(region.strides)), key=region.strides.__getitem__)
    rest = region.dtype.size + sum(
        (extent - 1) * stride
        for n, (extent, stride) in enumerate(zip(region.shape, region.strides, strict=True))
        if n != axis
    )
    return axis if rest <= region.strides[axis] else None


# law: not None
def _written(access: Access, axis: int) -> int | None:
    """The constant of a write's subscript along an axis; `_rolling` asks what it is added to.

    The write must happen in every iteration and cover a whole box of elements.
    """
    relation = access.relation
    if access.mode is not Mode.WRITE or not relation.everywhere:
        return None
    seen: set[int] = set()
    for index in relation.indices:
        if index is None or len(index.terms) > 1:
            return None
        for number, factor in index.terms:
            if abs(factor) != 1 or number in seen:
                return None
            seen.add(number)
    index = relation.indices[axis]
    assert index is not None
    return index.constant


# law: True
def _lies_in_what_is_written(use: _Use, writer: _Use) -> bool:
    """Whether every element that is used lies in the box that is written, by an earlier call.

    Or by the same one: if that stores to it in the same iteration, before or after.
    """
    mine, other = use.access.relation, writer.access.relation
    if use.order < writer.order:
        return False
    if use.order == writer.order and not (
        use.access.mode is Mode.WRITE and mine.indices == other.indices
    ):
        return False
    for index, written in zip(mine.indices, other.indices, strict=True):
        if index is None or written is None:
            return False
        low, high = index.span(mine.ranges)
        first, last = written.span(other.ranges)
        if low < first or high > last:
            return False
    return True
