"""Races that are all but certain: one element, changed under a guard that many iterations pass.

Nobody can prove them, as memory decides who passes the guard. So only three forms are mentioned,
which make sense for no memory in which two iterations pass: an element that is compared with a
value of each iteration and then changed, as a maximum that is looked for, a counter or sum under
one comparison, and there a value of the iteration's own. A guard with `==` or `and` may let one
iteration through, which is looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from pyfuser.ir import nodes
from pyfuser.ir.nodes import Compare, Expr, Load, Sym, Workunit
from pyfuser.ir.visit import assigned, expressions

Place = tuple[Sym, tuple[Expr, ...]]


class Likely(NamedTuple):
    """A statement by which iterations change one element; `loses`: what was there counts."""

    stmt: nodes.Store | nodes.Update
    loses: bool


def likely_races(
    unit: Workunit, is_harmless: Callable[[nodes.Store | nodes.Update], bool]
) -> Iterator[Likely]:
    """Such statements in all guards; `is_harmless`: all iterations make the same change."""
    fixed = {param.sym for param in unit.params} - assigned(unit.body)
    for guard in unit.body:
        if not isinstance(guard, nodes.If) or guard.orelse:
            continue
        condition = guard.condition
        if not isinstance(condition, Compare) or condition.op in ("==", "!="):
            continue
        sides = [is_fixed(side, fixed) for side in (condition.left, condition.right)]
        loads = [e for e in expressions(condition) if isinstance(e, Load)]
        if sum(sides) != 1 or all(is_fixed(load, fixed) for load in loads):
            continue
        compared = {(load.view, load.indices) for load in loads}
        found: list[Likely] = []
        for stmt in guard.then:
            if isinstance(stmt, nodes.Store):
                place: Place = (stmt.view, stmt.indices)
                changes = place in compared
            elif isinstance(stmt, nodes.Update) and stmt.target in fixed and not stmt.atomic:
                place, changes = (stmt.target, stmt.indices), True
            else:
                continue
            one = bool(place[1]) and all(is_fixed(index, fixed) for index in place[1])
            if one and place[0] in fixed and not is_harmless(stmt):
                found.append(Likely(stmt, changes))
        loses = any(race.loses for race in found)
        yield from (race for race in found if race.loses or not loses)


def is_fixed(expr: Expr, fixed: set[Sym]) -> bool:
    """Whether an expression names the same in every iteration."""
    return not any(
        isinstance(e, (nodes.AtomicFetch, nodes.Call))
        or (isinstance(e, nodes.Read) and e.sym not in fixed)
        for e in expressions(expr)
    )
