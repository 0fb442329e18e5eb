"""Whether a call surely has no mistake that would end it, in microseconds.

`analysis.mistakes` looks for what is wrong for sure, with sets of integers. Here is the other half:
a test that is cheap, and that nearly all calls pass which have nothing wrong. The law: each
subscript of each access of the code lies inside its view by interval arithmetic, where the branches
and loops around it hold (`analysis.guards`); and nothing divides integers, and no loop has a step
that is no number. What elements of views decide is left out: of such an access nothing is ever
proved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pyfuser.analysis.affine import Interval
from pyfuser.analysis.bounds import bounded_locals
from pyfuser.analysis.divided import has_steps
from pyfuser.analysis.guards import Guards, bounds, guarded_accesses
from pyfuser.analysis.intervals import interval
from pyfuser.ir.definitions import expand, stable_locals
from pyfuser.ir.divisions import divisions
from pyfuser.ir.nodes import AtomicFetch, Declare, Expr, For, Load, Sym, Workunit
from pyfuser.ir.visit import assigned, expressions, statements
from pyfuser.trace.call import Space


class Subscripts(NamedTuple):
    """The subscripts of a workunit: for each the place of the view, the axis, the code and guards.

    Locals that keep their value are replaced by it. stable: parameters and indices that nothing
    changes. locals: whether it has locals to look at.
    """

    workunit: Workunit
    found: tuple[tuple[int, int, Expr, Guards], ...]
    stable: frozenset[Sym]
    locals: bool


# law: not None
def subscripts_of(workunit: Workunit) -> Subscripts | None:
    """The subscripts; None if integers are divided, or the step of a loop is no number."""
    body = workunit.body
    if any(divisions(body)) or has_steps(body):
        return None
    places = {param.sym: place for place, param in enumerate(workunit.params)}
    values = stable_locals(body)
    scalars = (param.sym for param in workunit.params if not param.rank)
    stable = frozenset((*workunit.indices, *scalars)) - assigned(body)
    found: dict[tuple[int, int, Expr, Guards], None] = {}
    for access, guards in guarded_accesses(body, stable):
        indices = [expand(index, values) for index in access.indices]
        if access.view in places and not any(map(_looks_up, indices)):
            for axis, index in enumerate(indices):
                found[places[access.view], axis, index, guards] = None
    inner = any(isinstance(stmt, (Declare, For)) for stmt in statements(body))
    return Subscripts(workunit, tuple(found), stable, inner)


# law: True
def _looks_up(index: Expr) -> bool:
    """Whether a subscript depends on an element, whose value is not known."""
    return any(isinstance(part, (Load, AtomicFetch)) for part in expressions(index))


# law: True
def is_element(
    indices: Sequence[Expr], shape: Sequence[int], ranges: Mapping[Sym, Interval]
) -> bool:
    """Whether a view has an element at some indices, whatever the values in their ranges."""
    for index, extent in zip(indices, shape, strict=True):
        found = interval(index, ranges)
        if found is None or not 0 <= found[0] <= found[1] < extent:
            return False
    return True


# law: True
def surely_inside(
    subscripts: Subscripts, space: Space, facts: Sequence[Any], scalars: frozenset[int]
) -> bool:
    """Whether every subscript is inside its view in every iteration.

    facts: the shapes of views, and the values of integers, None if one is not known. scalars: the
    places of those integers that can influence a subscript.
    """
    workunit, found, stable, inner = subscripts
    ranges: dict[Sym, Interval] = {}
    for sym, low, high in zip(workunit.indices, space.begin, space.end, strict=True):
        if low >= high:
            return True  # no iteration
        if sym in stable:
            ranges[sym] = low, high - 1
    for place in scalars:
        sym, value = workunit.params[place].sym, facts[place]
        if sym in stable and value is not None:
            ranges[sym] = int(value), int(value)
    if inner:
        ranges |= bounded_locals(workunit.body, ranges)
    for place, axis, index, guards in found:
        extent = facts[place][axis]
        known = bounds(index, guards, ranges, extent)
        if known is None or known[0] < 0 or known[1] >= extent:
            return False
    return True
