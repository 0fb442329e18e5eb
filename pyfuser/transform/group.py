"""What a group's kernel depends on, apart from the trace around it: the key of fused kernels.

Clusters are numbered by first use and offsets count from the lowest that the group uses, so that
the same few calls make the same kernel wherever they come in a trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyfuser.analysis.liveness import Liveness, liveness
from pyfuser.ir.accesses import accesses
from pyfuser.ir.nodes import Sym, Workunit
from pyfuser.support.caches import cached
from pyfuser.trace.shape import CallShape, FutureShape, RegionShape, ScalarShape, TraceShape


class GroupShape(NamedTuple):
    """The calls of a group, ascending, over one iteration space.

    dead: clusters that it writes, and nobody reads afterwards. fresh: clusters that it reads, and
    whose every element is zero before it. (Of others, neither matters.)
    """

    calls: tuple[CallShape, ...]
    dead: frozenset[int] = frozenset()
    fresh: frozenset[int] = frozenset()


def group_shapes(trace: TraceShape, groups: Sequence[Sequence[int]]) -> list[GroupShape]:
    """The shapes of a trace's groups, each given by its calls' places."""
    lifetimes = liveness(trace)
    known: dict[tuple[int, ...], _Members] = {}  # by the kinds of the calls: most come again
    shapes = []
    for group in groups:
        kinds = tuple([trace.kinds[position] for position in group])
        members = known.get(kinds)
        if members is None:
            members = known[kinds] = _members([trace.calls[position] for position in group])
        shapes.append(_group_shape(trace, group, members, lifetimes))
    return shapes


class _Members(NamedTuple):
    """The calls of a group, as they are in its shape, and the numbers of its clusters there.

    read, written: the clusters whose elements its code reads and writes.
    """

    calls: tuple[CallShape, ...]
    numbers: dict[int, int]
    read: frozenset[int]
    written: frozenset[int]


def _members(members: Sequence[CallShape]) -> _Members:
    regions = [a for call in members for a in call.arguments if isinstance(a, RegionShape)]
    numbers: dict[int, int] = {}
    lowest: dict[int, int] = {}
    for region in regions:
        numbers.setdefault(region.cluster, len(numbers))
        lowest[region.cluster] = min(region.offset, lowest.get(region.cluster, region.offset))
    calls = []
    read: set[int] = set()
    written: set[int] = set()
    for call in members:
        for param, shape in zip(call.workunit.params, call.arguments, strict=True):
            if isinstance(shape, RegionShape):
                reads, writes = _used(call.workunit)
                read |= {shape.cluster} if param.sym in reads else set()
                written |= {shape.cluster} if param.sym in writes else set()
        arguments = tuple(
            argument._replace(
                cluster=numbers[argument.cluster], offset=argument.offset - lowest[argument.cluster]
            )
            if isinstance(argument, RegionShape)
            else ScalarShape(argument.dtype, None)
            if isinstance(argument, FutureShape)
            else argument
            for argument in call.arguments
        )
        calls.append(call._replace(arguments=arguments))
    return _Members(tuple(calls), numbers, frozenset(read), frozenset(written))


@cached(1024)
def _used(workunit: Workunit) -> tuple[frozenset[Sym], frozenset[Sym]]:
    """The views whose elements a workunit reads, and those that it writes."""
    found = list(accesses(workunit.body))
    return frozenset(a.view for a in found if a.reads), frozenset(a.view for a in found if a.writes)


# law
def _group_shape(
    trace: TraceShape,
    group: Sequence[int],
    members: _Members,
    lifetimes: Liveness,
) -> GroupShape:
    numbers = members.numbers
    inside = set(group)
    dead = {numbers[c] for c in members.written if lifetimes.is_dead_after(c, group)}
    fresh = {
        numbers[c]
        for c in members.read
        if trace.clusters[c].fresh and _all_inside(lifetimes.users(c), inside, group[-1])
    }
    return GroupShape(members.calls, frozenset(dead), frozenset(fresh))


def _all_inside(users: Sequence[int], inside: set[int], last: int) -> bool:
    """Whether no call outside a group can write a cluster before the group ends.

    One that comes after everything in the group runs after it, or touches none of its elements.
    """
    for position in users:
        if position > last:
            return True
        if position not in inside:
            return False
    return True
