"""Races that are all but certain: one element, changed under a guard that many iterations pass.

Nobody can prove them, as memory decides who passes the guard. So only two forms are mentioned,
which make sense for no memory in which two iterations pass: an element that is compared with a
value of each iteration and then changed, as a maximum that is looked for, and a counter or sum
under one comparison. A guard with `==` or `and` may let one iteration through, which is looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyfuser.ir import nodes
from pyfuser.ir.nodes import Compare, Expr, Load, Sym, Workunit
from pyfuser.ir.visit import assigned, expressions

Place = tuple[Sym, tuple[Expr, ...]]


def likely_races(
    unit: Workunit, is_harmless: Callable[[nodes.Store | nodes.Update], bool]
) -> Iterator[nodes.Store | nodes.Update]:
    """Statements by which iterations change one element; `is_harmless`: each to the same value."""
    fixed = {param.sym for param in unit.params} - assigned(unit.body)
    for guard in unit.body:
        if not isinstance(guard, nodes.If) or guard.orelse:
            continue
        condition = guard.condition
        if not isinstance(condition, Compare) or condition.op in ("==", "!="):
            continue
        sides = [_is_fixed(side, fixed) for side in (condition.left, condition.right)]
        loads = [e for e in expressions(condition) if isinstance(e, Load)]
        if sum(sides) != 1 or all(_is_fixed(load, fixed) for load in loads):
            continue
        compared = {(load.view, load.indices) for load in loads}
        for stmt in guard.then:
            if isinstance(stmt, nodes.Store):
                place: Place = (stmt.view, stmt.indices)
                changes = place in compared
            elif isinstance(stmt, nodes.Update) and stmt.target in fixed and not stmt.atomic:
                place, changes = (stmt.target, stmt.indices), True
            else:
                continue
            one = bool(place[1]) and all(_is_fixed(index, fixed) for index in place[1])
            if one and changes and place[0] in fixed and not is_harmless(stmt):
                yield stmt


def _is_fixed(expr: Expr, fixed: set[Sym]) -> bool:
    """Whether an expression names the same in every iteration."""
    return not any(
        isinstance(e, (nodes.AtomicFetch, nodes.Call))
        or (isinstance(e, nodes.Read) and e.sym not in fixed)
        for e in expressions(expr)
    )
