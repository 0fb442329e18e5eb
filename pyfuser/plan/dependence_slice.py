"""Which calls of a trace must run for some of them to run; the others may wait.

The law. A set of calls that holds, with a call, all that the call must follow (by flow, anti and
output dependences, by a result that it takes, by the order of output) may run before the rest of
the trace: for no pair of calls whose order matters does that change the order. The rest, with what
is recorded later, is then a trace like any other.

Only maps wait. What shows in more than memory is seen when it happens, and atomic updates commute
for the law of fusion, but not to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyfuser.analysis.dependences import dependences
from pyfuser.ir.effects import effects
from pyfuser.plan.legality import reasons
from pyfuser.trace.shape import CallShape, TraceShape


# law
def needed(trace: TraceShape, wanted: Iterable[int]) -> frozenset[int]:
    """The places of calls that must run before, or with, those at the places `wanted`."""
    before = reasons(trace, dependences(trace)).predecessors
    found: set[int] = set()
    rest = list(wanted)
    while rest:
        place = rest.pop()
        if place not in found:
            found.add(place)
            rest += (n for n in range(place) if before[place] >> n & 1)
    return frozenset(found)


# law: True
def may_wait(call: CallShape) -> bool:
    """Whether nobody can tell when a call runs, but by the memory that it writes."""
    return call.pattern == "for" and not effects(call.workunit).observable
