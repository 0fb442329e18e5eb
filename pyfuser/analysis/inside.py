"""Whether a call surely has no mistake that would end it, in microseconds.

`analysis.mistakes` looks for what is wrong for sure, with sets of integers. Here is the other half:
a test that is cheap, and that nearly all calls pass which have nothing wrong. The law: each
subscript of each access of the code lies inside its view by interval arithmetic, where the branches
and loops around it hold (`analysis.guards`); nothing divides integers by what may be 0, and no loop
has a step that is no number. What elements of views decide, by way of locals too, is left out: of
such an access nothing is ever proved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

from pyfuser.analysis.affine import Interval
from pyfuser.analysis.bounds import bounded_locals
from pyfuser.analysis.divided import has_steps
from pyfuser.analysis.guards import Guards, bounds, guarded_accesses
from pyfuser.analysis.intervals import interval
from pyfuser.analysis.structural import structural_scalars
from pyfuser.ir.accesses import accesses
from pyfuser.ir.canonical import MAX_WORKUNITS
from pyfuser.ir.definitions import expand, stable_locals
from pyfuser.ir.divisions import divisions, divisor_of
from pyfuser.ir.nodes import (
    Assign,
    AtomicFetch,
    Body,
    Declare,
    Expr,
    For,
    Load,
    Read,
    Sym,
    Update,
    Workunit,
)
from pyfuser.ir.visit import assigned, expressions, statements
from pyfuser.support.caches import cached
from pyfuser.trace.call import Call, Space
from pyfuser.trace.shape import CallShape


class Subscripts(NamedTuple):
    """The subscripts of a workunit: for each the place of the view, the axis, the code and guards.

    Locals that keep their value are replaced by it. stable: parameters and indices that nothing
    changes. locals: whether it has locals to look at. divisors: what integers are divided by.
    """

    workunit: Workunit
    found: tuple[tuple[int, int, Expr, Guards], ...]
    stable: frozenset[Sym]
    locals: bool
    divisors: tuple[Expr, ...]


@cached(MAX_WORKUNITS)
# law: not None
def subscripts_of(workunit: Workunit) -> Subscripts | None:
    """The subscripts; None if elements divide integers, or the step of a loop is no number."""
    body = workunit.body
    if has_steps(body):
        return None
    places = {param.sym: place for place, param in enumerate(workunit.params)}
    values = stable_locals(body)
    scalars = (param.sym for param in workunit.params if not param.rank)
    stable = frozenset((*workunit.indices, *scalars)) - assigned(body)
    chosen = _from_elements(body)
    divisors = dict.fromkeys([expand(divisor_of(d), values) for d in divisions(body)])
    if any(_looks_up(divisor, chosen) for divisor in divisors):
        return None
    found: dict[tuple[int, int, Expr, Guards], None] = {}
    for access, guards in guarded_accesses(body, stable):
        indices = [expand(index, values) for index in access.indices]
        if access.view in places and not any(_looks_up(index, chosen) for index in indices):
            for axis, index in enumerate(indices):
                found[places[access.view], axis, index, guards] = None
    inner = any(isinstance(stmt, (Declare, For)) for stmt in statements(body))
    return Subscripts(workunit, tuple(found), stable, inner, tuple(divisors))


@cached(MAX_WORKUNITS)
# law: False
def elements_choose(workunit: Workunit) -> bool:
    """Whether elements of views decide where it accesses memory: then nothing is proved of that."""
    body = workunit.body
    chosen = _from_elements(body)
    return any(_looks_up(index, chosen) for access in accesses(body) for index in access.indices)


def _looks_up(expr: Expr, chosen: Set[Sym]) -> bool:
    """Whether a value is made of elements, or of locals that are."""
    return any(
        isinstance(part, (Load, AtomicFetch)) or (isinstance(part, Read) and part.sym in chosen)
        for part in expressions(expr)
    )


def _from_elements(body: Body) -> set[Sym]:
    """Locals and variables of loops whose values are made of elements."""
    found: set[Sym] = set()
    before = -1
    while len(found) > before:
        before = len(found)
        for stmt in statements(body):
            match stmt:
                case Declare() | Assign():
                    given, sym = [stmt.value] if stmt.value is not None else [], stmt.sym
                case For():
                    given, sym = [stmt.start, stmt.stop, stmt.step], stmt.sym
                case Update(indices=()):
                    given, sym = [stmt.value], stmt.target
                case _:
                    continue
            if any(_looks_up(value, found) for value in given):
                found.add(sym)
    return found


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
    workunit, found, stable, inner, divisors = subscripts
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
    if may_be_0(divisors, ranges):
        return False
    for place, axis, index, guards in found:
        extent = facts[place][axis]
        known = bounds(index, guards, ranges, extent)
        if known is None or known[0] < 0 or known[1] >= extent:
            return False
    return True


# law: True
def is_inside(call: CallShape | Call, facts: Sequence[Any]) -> bool:
    """Whether a call has no mistake that ends it, for sure, and that is known in microseconds.

    facts: as `surely_inside` takes them.
    """
    unit = call.workunit
    subscripts = subscripts_of(unit)
    return subscripts is not None and surely_inside(
        subscripts, call.space, facts, structural_scalars(unit)
    )


# law: True
def may_be_0(divisors: Iterable[Expr], ranges: Mapping[Sym, Interval]) -> bool:
    """Whether a divisor has a value, of those in its range, that is 0."""
    for divisor in divisors:
        known = interval(divisor, ranges)
        if known is None or known[0] <= 0 <= known[1]:
            return True
    return False
