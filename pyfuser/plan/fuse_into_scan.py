"""Maps that run in the last pass of the scan before them.

    place[i] = sum of inside[..i]        if inside[i] == 1: target[place[i] - 1] = source[i]

A scan goes on from sum to sum, and a map that stores to places it has loaded has no vectors to
lose: in one loop what the scan found stays in registers. The law is that of a sweep beside a scan,
which these loops already are: iterations that touch one element are the same iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from pyfuser.analysis.accesses import accesses
from pyfuser.analysis.relation import Mode
from pyfuser.ir import nodes
from pyfuser.ir.accesses import accesses as element_accesses
from pyfuser.ir.nodes import Workunit
from pyfuser.ir.visit import assigned, contains
from pyfuser.plan.plan import Group, Plan, Sweep
from pyfuser.support.caches import cached
from pyfuser.support.passes import left_out
from pyfuser.trace.shape import CallShape, TraceShape

Fits = Callable[[tuple[int, ...]], bool]


def join_tails(trace: TraceShape, plan: Plan, fits: Fits) -> Plan:
    """The plan with scans and the maps behind them, in one sweep, as one group where that pays.

    fits: whether calls do not make too large a kernel.
    """
    if left_out("fuse-into-scan"):
        return plan
    tails = [place for sweep in plan.sweeps for place in _tails(trace, plan, sweep, fits)]
    for place in reversed(tails):
        plan = _joined(plan, place)
    return plan


# law
def _tails(trace: TraceShape, plan: Plan, sweep: Sweep, fits: Fits) -> Iterator[int]:
    """The groups that may join the one before them."""
    for place in sweep.groups[1:]:
        before, calls = plan.groups[place - 1].calls, plan.groups[place].calls
        scan = trace.calls[before[0]]
        if (
            place - 1 in sweep.groups
            and scan.pattern == "scan"
            and before[0] < calls[0]
            and _keeps_its_flag(scan.workunit)
            and all(_scatters(trace.calls[n]) for n in calls)
            and fits((*before, *calls))
        ):
            yield place


@cached(1024)
# law: True
def _keeps_its_flag(workunit: Workunit) -> bool:
    """Whether it is known in a scan's body, to its end, which pass this is."""
    changed = assigned(workunit.body)
    return all(
        accumulator.last_pass is not None and accumulator.last_pass not in changed
        for accumulator in workunit.accumulators
    )


def _scatters(call: CallShape) -> bool:
    """Whether a map computes little, and stores to places that nothing is known of."""
    body = call.workunit.body
    if contains(body, nodes.For, nodes.While, nodes.Call, nodes.AtomicFetch):
        return False
    if any(access.reads and access.writes for access in element_accesses(body)):
        return False  # a tile's last pass would have to wait for all first ones
    writes = [access for access in accesses(call) if access.mode is not Mode.READ]
    return bool(writes) and all(None in access.relation.indices for access in writes)


def _joined(plan: Plan, place: int) -> Plan:
    """The plan with the group at `place` as a part of the one before."""
    calls = (*plan.groups[place - 1].calls, *plan.groups[place].calls)
    inside = {*calls}
    return replace(
        plan,
        groups=(*plan.groups[: place - 1], Group(calls), *plan.groups[place + 1 :]),
        rejections=tuple(r for r in plan.rejections if not {r.first, r.second} <= inside),
        sweeps=tuple(s for sweep in plan.sweeps for s in _without(sweep, place)),
    )


def _without(sweep: Sweep, place: int) -> Iterator[Sweep]:
    """The sweep without a group that joined the one before; none if that is left alone."""
    if place not in sweep.groups:
        yield replace(sweep, groups=_moved(sweep.groups, place))
    elif len(sweep.groups) > 2:
        at = sweep.groups.index(place)
        stages = (*sweep.stages[:at], *sweep.stages[at + 1 :])
        yield replace(sweep, groups=_moved(sweep.groups, place), stages=stages)


def _moved(places: tuple[int, ...], joined: int) -> tuple[int, ...]:
    """Places of groups after the one at `joined` has become a part of the one before."""
    return tuple(dict.fromkeys(n - (n >= joined) for n in places))
