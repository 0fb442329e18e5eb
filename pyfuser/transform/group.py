"""What a group's kernel depends on, apart from the trace around it: the key of fused kernels.

Clusters are numbered by first use and offsets count from the lowest that the group uses, so that
the same few calls make the same kernel wherever they come in a trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyfuser.analysis.liveness import Liveness, liveness
from pyfuser.trace.shape import CallShape, FutureShape, RegionShape, ScalarShape, TraceShape


class GroupShape(NamedTuple):
    """The calls of a group, ascending, over one iteration space.

    dead: clusters of which nobody reads, after the group, what it writes. fresh: clusters whose
    every element is zero before it.
    """

    calls: tuple[CallShape, ...]
    dead: frozenset[int] = frozenset()
    fresh: frozenset[int] = frozenset()


def group_shapes(trace: TraceShape, groups: Sequence[Sequence[int]]) -> list[GroupShape]:
    """The shapes of a trace's groups, each given by its calls' places."""
    users: dict[int, list[int]] = {}
    for position, call in enumerate(trace.calls):
        for shape in call.arguments:
            if isinstance(shape, RegionShape):
                users.setdefault(shape.cluster, []).append(position)
    lifetimes = liveness(trace)
    return [_group_shape(trace, group, users, lifetimes) for group in groups]


def _group_shape(
    trace: TraceShape, group: Sequence[int], users: dict[int, list[int]], lifetimes: Liveness
) -> GroupShape:
    members = [trace.calls[position] for position in group]
    regions = [a for call in members for a in call.arguments if isinstance(a, RegionShape)]
    numbers: dict[int, int] = {}
    lowest: dict[int, int] = {}
    for region in regions:
        numbers.setdefault(region.cluster, len(numbers))
        lowest[region.cluster] = min(region.offset, lowest.get(region.cluster, region.offset))
    calls = []
    for call in members:
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
    inside = set(group)
    dead = {n for c, n in numbers.items() if lifetimes.is_dead_after(c, group)}
    fresh = {
        n
        for c, n in numbers.items()
        if trace.clusters[c].fresh and _all_inside(users[c], inside, group[-1])
    }
    return GroupShape(tuple(calls), frozenset(dead), frozenset(fresh))


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
