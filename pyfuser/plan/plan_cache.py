"""Partitions that are taken over from a trace that differs in sizes only, and not in dependences.

What groups are legal follows from the dependences of a trace, the patterns, workunits and links of
its calls, and from which iteration spaces and arguments are equal. So a trace that equals another
one in all of that may have its groups. Whether they are the best may depend on sizes: those within
a power of two count as alike, known scalars too. Sweeps depend on distances, and are never taken
over. (Why neighbours do not sweep is told with the sizes of the trace that was planned.)
"""

from __future__ import annotations

from collections.abc import Hashable

from pyfuser.analysis.dependences import DependenceGraph
from pyfuser.plan.capabilities import Capabilities
from pyfuser.plan.cost_model import machine_for
from pyfuser.plan.partition import partition
from pyfuser.plan.plan import Plan
from pyfuser.support.caches import Table
from pyfuser.trace.call import Space
from pyfuser.trace.shape import ArgumentShape, CallShape, RegionShape, ScalarShape, TraceShape

MAX_PLANS = 256
MIN_CALLS = 32  # to plan less takes little longer than to look for a plan

PLANS: Table[Hashable, tuple[DependenceGraph, Plan]] = Table("plans of long traces", MAX_PLANS)


# law
def partitioned(trace: TraceShape, graph: DependenceGraph, capabilities: Capabilities) -> Plan:
    """What `partition` makes of a trace, or made of one that is alike."""
    if len(trace.calls) < MIN_CALLS:
        return partition(trace, graph, capabilities)
    key = _structure(trace), capabilities, machine_for(trace)
    found = PLANS.get(key)
    if found is not None and found[0] == graph:
        return found[1]
    plan = partition(trace, graph, capabilities)
    if not plan.sweeps:
        PLANS.keep(key, (graph, plan))
    return plan


def _structure(trace: TraceShape) -> Hashable:
    """A trace with its sizes rounded, and what is equal to what."""
    spaces: dict[Space, int] = {}
    arguments: dict[ArgumentShape, int] = {}
    distinct: list[CallShape] = list(dict(zip(trace.kinds, trace.calls, strict=True)).values())
    calls = [
        (
            call.pattern,
            call.workunit,
            spaces.setdefault(call.space, len(spaces)),
            tuple([arguments.setdefault(a, len(arguments)) for a in call.arguments]),
        )
        for call in distinct
    ]
    return (
        trace.kinds,
        trace.clusters,
        tuple(calls),
        tuple([(_rounded(s.begin), _rounded(s.end), s.execution) for s in spaces]),
        tuple(map(_rounded_argument, arguments)),
    )


def _rounded_argument(argument: ArgumentShape) -> Hashable:
    if isinstance(argument, RegionShape):
        cluster, offset, strides, shape, dtype = argument
        return cluster, _rounded((offset, *strides, *shape)), dtype
    if isinstance(argument, ScalarShape) and argument.value is not None:
        return argument.dtype, _rounded((argument.value,))
    return argument


def _rounded(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Numbers up to the next power of two, with their signs."""
    return tuple([n.bit_length() if n > 0 else -n.bit_length() for n in sizes])
