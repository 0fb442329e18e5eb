"""What a call touches: for each access, the elements as a set over iterations.

The contract of the analysis: an access that is not `exact` may describe more elements or more
iterations than the code touches, never fewer. So it can show that two calls do not conflict, and
must never be used to show that a value is overwritten.
"""

from __future__ import annotations

from pyfuser.analysis.evaluate import Fact
from pyfuser.analysis.interpret import Interpreter
from pyfuser.analysis.relation import Access, Mode, Relation
from pyfuser.analysis.structural import structural_scalars
from pyfuser.ir.nodes import Workunit
from pyfuser.support.caches import cached
from pyfuser.trace.shape import CallShape, RegionShape, ScalarShape

__all__ = ["Access", "Mode", "Relation", "accesses", "structural_scalars"]


def facts_of(call: CallShape) -> tuple[Fact, ...]:
    """What is known of a call's arguments: the shapes of views, and numbers that decide shapes."""
    return tuple(
        argument.shape
        if type(argument) is RegionShape
        else argument.value
        if type(argument) is ScalarShape
        else None
        for argument in call.arguments
    )


def accesses(call: CallShape) -> tuple[Access, ...]:
    """All accesses to memory of a call's iterations, in the order of the code."""
    return _accesses(call.workunit, call.space.begin, call.space.end, facts_of(call))


@cached(4096)
def _accesses(
    workunit: Workunit,
    begin: tuple[int, ...],
    end: tuple[int, ...],
    facts: tuple[Fact, ...],
) -> tuple[Access, ...]:
    if any(b >= e for b, e in zip(begin, end, strict=True)):
        return ()
    return Interpreter(workunit, begin, end, facts).run()
