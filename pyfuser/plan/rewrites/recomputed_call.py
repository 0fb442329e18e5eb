"""One call that computes what it would read of a region that another call stores to.

Whether memory is as it was is not asked here, but by `plan.rewrites.recompute`.
"""

from __future__ import annotations

from typing import NamedTuple

from pyfuser.analysis.accesses import Access, Mode, accesses
from pyfuser.analysis.affine import Interval
from pyfuser.analysis.layout import is_injective
from pyfuser.ir.nodes import Sym
from pyfuser.plan.cost_model import region_of
from pyfuser.plan.rewrites.recomputed_body import Axis, Made, made_by, recomputed
from pyfuser.support.caches import cached
from pyfuser.trace.shape import ArgumentShape, CallShape, RegionShape

MAX_ARGUMENTS = 40
"""Of a call that computes again."""


class _Stored(NamedTuple):
    """What a call certainly stores: to the elements between bounds, along each axis of a view."""

    made: Made
    axes: tuple[Axis, ...]
    bounds: tuple[Interval, ...]


@cached(1024)
# law: not None
def stored_by(call: CallShape, region: RegionShape) -> _Stored | None:
    """What a call stores to a region, if that can be computed again; None if not."""
    places = [n for n, argument in enumerate(call.arguments) if argument == region]
    if len(places) != 1:
        return None
    made = made_by(call.workunit).get(call.workunit.params[places[0]].sym)
    if made is None or not is_injective(region.strides, region.shape, region.dtype.size):
        return None
    writes = [a for a in accesses(call) if a.mode is not Mode.READ]
    mine = [a for a in writes if a.param == places[0]]
    same = [a for a in writes if region_of(call, a).cluster == region.cluster]
    if not mine or len(same) != len(mine):
        return None  # written by another name, too
    relation = mine[0].relation
    if any(a.relation.indices != relation.indices for a in mine):
        return None
    ranges = [(begin, end - 1) for begin, end in zip(relation.begin, relation.end, strict=True)]
    if not made.always:
        if not relation.box:
            return None
        ranges = list(relation.ranges)
    axes: dict[int, Axis] = {}
    bounds = []
    for subscript, index in enumerate(relation.indices):
        if index is None or len(index.terms) != 1 or abs(index.terms[0][1]) != 1:
            return None
        number, sign = index.terms[0]
        if number >= len(relation.begin) or number in axes:
            return None
        axes[number] = Axis(subscript, sign, index.constant)
        bounds.append(index.span(ranges))
    if len(axes) != len(relation.begin):
        return None
    return _Stored(made, tuple(axes[n] for n in range(len(axes))), tuple(bounds))


# law: True
def _inside(access: Access, region: RegionShape, bounds: tuple[Interval, ...]) -> bool:
    """Whether an access reads nothing but elements between bounds."""
    if access.mode is not Mode.READ:
        return False
    relation = access.relation
    for index, extent, (low, high) in zip(relation.indices, region.shape, bounds, strict=True):
        first, last = 0, extent - 1
        if index is not None:
            least, greatest = index.span(relation.ranges)
            first, last = max(first, least), min(last, greatest)
        if first < low or last > high:
            return False
    return True


def _own_iterations(
    call: CallShape, reads: list[Access], source: CallShape, region: RegionShape
) -> bool:
    """Whether each iteration reads what the same one wrote."""
    (write,) = {
        a.relation.indices
        for a in accesses(source)
        if a.mode is not Mode.READ and source.arguments[a.param] == region
    }
    return all(a.relation.indices == write for a in reads) and len(call.space.begin) == len(
        source.space.begin
    )


class _Computing(NamedTuple):
    """A call that computes what it would read of a region.

    given: the places of the other call's arguments that it has for that. times: how many elements
    it computes. own: whether each is one that the same iteration wrote.
    """

    call: CallShape
    given: tuple[int, ...]
    times: int
    own: bool


@cached(1024)
def computing(call: CallShape, source: CallShape, region: RegionShape) -> _Computing | None:
    """The call with what another stored to a region computed again; None if it may not be."""
    if source.space.execution != call.space.execution:
        return None
    stored = stored_by(source, region)
    reads = [a for a in accesses(call) if call.arguments[a.param] == region]
    if stored is None or not all(_inside(a, region, stored.bounds) for a in reads):
        return None
    syms: dict[ArgumentShape, Sym] = {}
    views = set()
    for param, argument in zip(call.workunit.params, call.arguments, strict=True):
        if isinstance(argument, RegionShape):
            syms.setdefault(argument, param.sym)
            if argument == region:
                views.add(param.sym)
    same = {
        param.sym: syms[argument]
        for param, argument in zip(source.workunit.params, source.arguments, strict=True)
        if argument in syms
    }
    found = recomputed(
        call.workunit, frozenset(views), source.workunit, stored.made, stored.axes, same
    )
    if found is None:
        return None
    arguments = (*call.arguments, *(source.arguments[n] for n in found.given))
    if len(arguments) > MAX_ARGUMENTS:
        return None
    made = call._replace(workunit=found.workunit, arguments=arguments)
    own = _own_iterations(call, reads, source, region)
    return _Computing(made, found.given, found.times, own)
