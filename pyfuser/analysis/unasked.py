"""Reductions that may run though the program does not ask for them (`runtime.following`)."""

from __future__ import annotations

from pyfuser.analysis.inside import elements_choose
from pyfuser.analysis.outside import is_worth_a_walk
from pyfuser.ir.divisions import scalar_divisors
from pyfuser.ir.effects import effects, written_views
from pyfuser.ir.nodes import Break, For, Load, Read, While, Workunit
from pyfuser.ir.visit import assigned, expressions, statements
from pyfuser.support.caches import cached


@cached(1024)
# law: True
def may_run_unasked(unit: Workunit) -> bool:
    """Whether a reduction may run though the program does not ask for it: nobody can tell.

    Of calls that are `surely_inside` their views.
    """
    divisors, divides = scalar_divisors(unit)
    return not (
        divisors
        or divides
        or effects(unit).output
        or written_views(unit)  # by atomics, too
        or is_worth_a_walk(unit)
        or elements_choose(unit)
        or _may_take_long(unit)
    )


# law: False
def _may_take_long(unit: Workunit) -> bool:
    """Whether anything but the integers of a call decides how often a loop runs."""
    body = list(statements(unit.body))
    loops = [stmt for stmt in body if isinstance(stmt, For)]
    numbers = [param.sym for param in unit.params if param.sym.dtype.is_integer]
    fixed = {*numbers, *unit.indices, *(loop.sym for loop in loops)} - assigned(unit.body)
    ends = [
        e for loop in loops for end in (loop.start, loop.stop, loop.step) for e in expressions(end)
    ]
    return any(isinstance(stmt, (While, Break)) for stmt in body) or any(
        isinstance(e, Load) or (isinstance(e, Read) and e.sym not in fixed) for e in ends
    )
