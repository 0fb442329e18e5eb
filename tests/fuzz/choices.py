"""What clocks or sizes would decide, decided by the seed: cuts of groups, orders of loops."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator

import pytest

from pyfuser import driver
from pyfuser.analysis.dependences import DependenceGraph
from pyfuser.arbitration import cut_plan
from pyfuser.codegen import order, spec
from pyfuser.codegen.order import LoopOrder
from pyfuser.plan.capabilities import Capabilities
from pyfuser.plan.partition import partition
from pyfuser.plan.plan import Plan
from pyfuser.trace.shape import TraceShape
from pyfuser.transform.kernel import Kernel

_CUT = 3  # one program in so many has its groups cut


def cut_for(seed: int, plan: Plan) -> Plan:
    """The plan, whose groups (those of sweeps apart) are cut anywhere for some of the seeds."""
    rng = random.Random(seed)
    swept = {place for sweep in plan.sweeps for place in sweep.groups}
    groups = [group.calls for n, group in enumerate(plan.groups) if n not in swept]
    for calls in groups if seed % _CUT == 0 else ():
        if len(calls) > 1:
            plan = cut_plan(plan, calls, rng.randint(1, len(calls) - 1))
    return plan


@contextlib.contextmanager
def forced_for(seed: int) -> Iterator[None]:
    """Inside, compiled programs have their groups cut, and maps run in any order that may be."""
    rng = random.Random(seed)

    def planned(trace: TraceShape, graph: DependenceGraph, capabilities: Capabilities) -> Plan:
        return cut_for(seed, partition(trace, graph, capabilities))

    def ordered(kernel: Kernel) -> LoopOrder:
        rank = len(kernel.space.begin)
        if rank == 1 or rng.random() < 0.3 or not order.may_reorder(kernel):
            return order.loop_order(kernel)
        axes = rng.sample(range(rank), rank)
        return LoopOrder(tuple(axes), rng.choice((0, 2, 3, 5)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "partition", planned)
        patch.setattr(spec, "loop_order", ordered)
        yield
