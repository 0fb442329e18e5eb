"""Memory that the loops of an iteration walk through: along rows, which stay near, or columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from pyfuser.ir import nodes
from pyfuser.ir.accesses import accesses, own_accesses
from pyfuser.ir.affine import everywhere, linear, values_of
from pyfuser.ir.nodes import Body, Expr, For, Sym
from pyfuser.ir.visit import all_expressions, assigned, declared, reads, statements
from pyfuser.nest.cost.vectorisable import vectorises

_TRIPS = 256
"""Assumed for a loop whose bounds are not constant."""

_LINE = 64
"""Bytes that come from memory at once."""

_ACROSS = 0.6
"""Where trips run across a strip, they must bring in at most this part of what they did."""

_FAR = 1 << 20  # stands for a factor that is not known


def torn(parts: Sequence[Body], place: int, own: frozenset[Sym]) -> int:
    """How many elements of rows are walked along again after a part, in an iteration.

    If the part gets a loop of its own, the rows of all iterations of a block come in between, and
    each of these elements is fetched from a slower cache. `own` are the indices of the space and
    the locals: elements without one in their subscripts are the same for all iterations, and near.
    """
    before = {view for part in parts[:place] for view, _ in _rows(part, own)}
    return sum(
        max((trips for view, trips in _rows((stmt,), own) if view in before), default=0)
        for part in parts[place + 1 :]
        for stmt in part
    )


def walked(part: Body, own: frozenset[Sym], views: Mapping[Sym, Layout] | None = None) -> set[Sym]:
    """The views that the loops of a part walk through, at places of the iteration itself.

    views: only those of which a step of some loop, or of a local that changes in it, takes the
    rest of a line: not those that are walked across.
    """
    if views is None:
        return {view for view, _ in _rows(part, own)}
    found: set[Sym] = set()
    for loop in statements(part):
        if not isinstance(loop, (nodes.For, nodes.While)):
            continue
        moving = assigned(loop.body) | set(declared((loop,)))
        for view, at, *_ in accesses((loop,)):
            read = reads(*at)
            if view in views and view not in found and read & own:
                unit, size = views[view].unit_axis, view.dtype.size
                steps = (_bytes(at, sym, unit, size, set()) for sym in read & moving)
                if any(step < _LINE for step in steps):
                    found.add(view)
    return found


def _rows(part: Body, own: frozenset[Sym]) -> Iterator[tuple[Sym, int]]:
    for view, subscripts, trips in _walks(part, 1):
        if reads(*subscripts) & own:
            yield view, trips


def _walks(part: Body, trips: int) -> Iterator[tuple[Sym, tuple[Expr, ...], int]]:
    """What the loops of a part access, and how many times in an iteration."""
    for stmt in part:
        if isinstance(stmt, nodes.If):
            yield from _walks((*stmt.then, *stmt.orelse), trips)
        elif isinstance(stmt, (nodes.For, nodes.While)):
            yield from _walks(stmt.body, trips * _trips(stmt))
        if trips > 1:
            yield from ((access.view, access.indices, trips) for access in own_accesses(stmt))


def _trips(loop: nodes.For | nodes.While) -> int:
    values = values_of(loop) if isinstance(loop, nodes.For) else None
    return _TRIPS if values is None else len(values)


# --------------------------------------------------------------------------- columns


class Layout(Protocol):
    """Where the elements of a view that are neighbours in memory lie."""

    @property
    def unit_axis(self) -> int | None: ...


def runs_across(
    nest: Sequence[For],
    index: Sym,
    views: Mapping[Sym, Layout],
    arrays: frozenset[Sym],
    known: frozenset[Sym],
    resolved: Callable[[Expr], Expr],
    *,
    beside: bool,
) -> bool:
    """Whether the trips of the innermost loop had better run for many iterations at once.

    Where a trip walks along, it brings in a line of each array or a part of one, twice that if it
    writes; the same for a step of `index`. One array at least is walked across by the loops, and
    along by the index. `arrays` are an iteration's own, of which a strip has the first elements of
    all iterations side by side, then the second ones. `resolved` gives subscripts in what is
    `known`, indices and arguments, and in loop variables, as far as that is possible.

    A loop that waits runs across as well if iterations are lanes: of each array they share an
    element, or have neighbours. beside: they have neighbours of one at least.
    """
    *_, loop = nest
    moving = assigned(loop.body) | set(declared(loop.body))
    trips = iterations = 0
    column = False
    beside = not beside
    lanes = waits(loop)
    for (view, subscripts), writes in _straight(loop.body).items():
        at = [resolved(e) for e in subscripts]
        if view in arrays:
            unit: int | None = len(at)
            at.append(nodes.Read(index))
        elif view in views:
            unit = views[view].unit_axis
        else:
            continue
        size = view.dtype.size
        along = [_bytes(at, outer.sym, unit, size, moving) for outer in nest]
        read = reads(*at)
        strange = read - known.union(outer.sym for outer in nest)
        across = _bytes(at, index, unit, size, strange)
        trips += along[-1] * writes
        iterations += across * writes
        column = column or (across == size and max(along) == _LINE)
        beside = beside or across == size
        lanes = lanes and across in (0, size)
    return (lanes and beside) or (column and iterations <= _ACROSS * trips)


def waits(loop: For) -> bool:
    """Whether a trip needs a number of the one before, and lanes of a vector could be iterations.

    As in sums whose order is kept: g++ makes vectors of trips only where these are independent.
    """
    outer = assigned(loop.body) - set(declared(loop.body))
    read = {e.sym for e in all_expressions(loop.body) if isinstance(e, nodes.Read)}
    read |= {s.target for s in statements(loop.body) if isinstance(s, nodes.Update)}
    return bool(outer & read) and all(vectorises(stmt, frozenset()) for stmt in loop.body)


def _straight(body: Body) -> dict[tuple[Sym, tuple[Expr, ...]], int]:
    """What a trip accesses outside of inner loops, and 2 for what it writes, 1 for the rest."""
    found: dict[tuple[Sym, tuple[Expr, ...]], int] = {}
    for stmt in body:
        if isinstance(stmt, (nodes.For, nodes.While)):
            continue
        if isinstance(stmt, nodes.If):
            for key, writes in _straight((*stmt.then, *stmt.orelse)).items():
                found[key] = max(found.get(key, 0), writes)
        for access in own_accesses(stmt):
            key = access.view, access.indices
            found[key] = max(found.get(key, 0), 1 + access.writes)
    return found


def _bytes(at: Sequence[Expr], sym: Sym, unit: int | None, size: int, moving: set[Sym]) -> int:
    """What a step of a loop variable or index brings in of a view."""
    factors = [growth(e, sym, moving) for e in at]
    if not any(factors):
        return 0
    others = [factor for axis, factor in enumerate(factors) if axis != unit]
    if unit is None or any(others):
        return _LINE
    return min(abs(factors[unit]) * size, _LINE)


def growth(e: Expr, sym: Sym, moving: set[Sym]) -> int:
    """By how much a subscript grows with a variable; locals of the trip may grow with anything."""
    terms = linear(e, everywhere).terms
    if any(reads(term) & {sym, *moving} for term in terms if term != nodes.Read(sym)):
        return _FAR
    return terms.get(nodes.Read(sym), 0)
