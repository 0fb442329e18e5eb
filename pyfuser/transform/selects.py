"""Elements of small local arrays, chosen by a local of few possible values, become selections.

    if joint[2] > joint[best]: ...      ->      if joint[2] > (best == 1 ? joint[1] : joint[0]): ...

An array whose elements move lies in memory, and neighbouring iterations that look up different
elements do not run in the lanes of a vector. Compares and selects do. The values that a local may
have are followed along straight code, as constants are (M. Wegman and K. Zadeck, "Constant
propagation with conditional branches", 1991, with small sets in place of one constant).

So do elements of views, next to each other and chosen by data:

    y[i] = x[i + d]              ->      first = x[i], second = x[i + 1]
                                         y[i] = d == 1 ? second : first

The law. An element that is loaded and not used changes nothing if the view has it: intervals must
show that for every value that the local may have, in every iteration.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod

from pyfuser.analysis.affine import Interval
from pyfuser.analysis.bounds import bounded_locals
from pyfuser.analysis.inside import is_element
from pyfuser.ir.canonical import fresh
from pyfuser.ir.effects import evaluates_purely
from pyfuser.ir.nodes import (
    Assign,
    Binary,
    Body,
    Cast,
    Compare,
    Const,
    Declare,
    DeclareArray,
    Expr,
    For,
    If,
    Load,
    Logical,
    Read,
    Select,
    Stmt,
    Store,
    Sym,
    Unary,
    Update,
    While,
    Workunit,
)
from pyfuser.ir.visit import (
    all_expressions,
    assigned,
    map_body,
    map_expression,
    reads,
    statements,
)
from pyfuser.support.caches import cached
from pyfuser.trace.call import GPU_SPACES
from pyfuser.trace.shape import RegionShape
from pyfuser.transform.kernel import Kernel
from pyfuser.tuning.thresholds import NOW

Values = dict[Sym, frozenset[int]]
Views = dict[Sym, tuple[int, ...]]

ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul,
}  # fmt: skip

SIMPLE = (Declare, Assign, Store, Update)
"""Statements that compute all that they load before they change anything."""


def select_elements(kernel: Kernel) -> Kernel:
    """The kernel with such loads as selections, outside of loops."""
    workunit = kernel.workunit
    lengths, moving = _chosen(workunit)
    views: Views = {}
    if moving and kernel.space.execution not in GPU_SPACES:
        pairs = zip(workunit.params, kernel.shapes, strict=True)
        views = {p.sym: s.shape for p, s in pairs if isinstance(s, RegionShape)}
    if not lengths and not views:
        return kernel
    known = kernel.ranges() if views else {}
    ranges = {**bounded_locals(workunit.body, known), **known} if views else {}
    body = _Follower(lengths, views, ranges).body(workunit.body, {})
    return replace(kernel, workunit=replace(workunit, body=body))


@cached(1024)
def _chosen(workunit: Workunit) -> tuple[dict[Sym, int], bool]:
    """The lengths of local arrays, and whether subscripts of views have locals that change."""
    lengths = {s.sym: len(s.values) for s in workunit.body if isinstance(s, DeclareArray)}
    gives = [s for s in statements(workunit.body) if isinstance(s, (Declare, Assign))]
    changing = {
        s.sym
        for s in gives
        if s.sym.dtype.is_integer
        and (isinstance(s, Assign) or isinstance(s.value, (Select, Cast, Compare, Binary)))
    }
    loads = (e for e in all_expressions(workunit.body) if isinstance(e, Load))
    moving = bool(changing) and any(reads(*e.indices) & changing for e in loads)
    return lengths, moving


class _Follower:
    def __init__(
        self, lengths: dict[Sym, int], views: Views, ranges: Mapping[Sym, Interval]
    ) -> None:
        self.lengths = lengths
        self.views = views
        self.ranges = ranges
        self.may_load_early = False
        self.threaded: set[Sym] = set()  # locals that have their values from many paths
        self.early: list[Stmt] = []  # loads that come before the statement at hand

    def body(self, body: Body, values: Values) -> Body:
        """The body rewritten; `values` becomes what locals may be after it."""
        result: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, If):
                self.may_load_early = evaluates_purely(stmt)
                condition = map_expression(stmt.condition, lambda e: self._load(e, values))
                result += self._before()
                sides = [dict(values), dict(values)]
                then = self.body(stmt.then, sides[0])
                orelse = self.body(stmt.orelse, sides[1])
                result.append(replace(stmt, condition=condition, then=then, orelse=orelse))
                _join(values, *sides)
                if _leaves(stmt) > NOW.tuning.paths:
                    self.threaded |= assigned((stmt,))
                continue
            if isinstance(stmt, (For, While)):
                for sym in assigned(stmt.body):
                    values.pop(sym, None)
                result.append(stmt)
                continue
            changed = self._elements(stmt, values)
            result += [*self._before(), *changed]
            if isinstance(stmt, (Declare, Assign)):
                self._note(stmt, values)
            else:
                for sym in assigned((stmt,)):
                    values.pop(sym, None)
        return tuple(result)

    def _note(self, stmt: Declare | Assign, values: Values) -> None:
        found = None if stmt.value is None else _values(stmt.value, values)
        if found is None:
            values.pop(stmt.sym, None)
        else:
            values[stmt.sym] = found

    def _elements(self, stmt: Stmt, values: Values) -> Body:
        self.may_load_early = isinstance(stmt, SIMPLE) and evaluates_purely(stmt)
        return map_body((stmt,), lambda e: self._load(e, values))

    def _before(self) -> list[Stmt]:
        loads, self.early = self.early, []
        return loads

    def _load(self, expr: Expr, values: Values) -> Expr:
        if isinstance(expr, Load) and expr.view in self.views:
            return self._neighbour(expr, values)
        if not isinstance(expr, Load) or expr.view not in self.lengths:
            return expr
        (index,) = expr.indices
        if isinstance(index, Const):
            return expr
        found = _values(index, values)
        if found is None or len(found) > NOW.tuning.choices:
            return expr
        if not all(0 <= value < self.lengths[expr.view] for value in found):
            return expr
        first, *others = sorted(found)
        result: Expr = _element(expr, first)
        for value in others:
            is_it = Compare("==", index, Const(value, index.dtype))
            result = Select(is_it, _element(expr, value), result)
        return result

    def _neighbour(self, load: Load, values: Values) -> Expr:
        """The element of a view: chosen among those that locals of few values may choose."""
        choosers = [sym for sym in reads(*load.indices) if len(values.get(sym, ())) > 1]
        count = prod(len(values[sym]) for sym in choosers)
        if not (self.may_load_early and 1 < count <= NOW.tuning.neighbours):
            return load
        if not self.threaded.isdisjoint(choosers):
            return load
        choosers.sort(key=lambda sym: sym.uid)
        loads: list[Stmt] = []

        def chosen(place: int, known: dict[Sym, Const]) -> Expr | None:
            if place == len(choosers):
                indices = tuple(map_expression(index, known_as(known)) for index in load.indices)
                if not is_element(indices, self.views[load.view], self.ranges):
                    return None
                element = fresh(load.view.name, load.view.dtype)
                loads.append(Declare(element, replace(load, indices=indices)))
                return Read(element)
            sym = choosers[place]
            result: Expr | None = None
            for value in sorted(values[sym]):
                constant = Const(value, sym.dtype)
                found = chosen(place + 1, {**known, sym: constant})
                if found is None:
                    return None
                is_it = Compare("==", Read(sym), constant)
                result = found if result is None else Select(is_it, found, result)
            return result

        result = chosen(0, {})
        if result is None:
            return load
        self.early += loads
        return result


def _leaves(stmt: If) -> int:
    """How many paths lead through a branch."""
    return sum(_paths(side) for side in (stmt.then, stmt.orelse))


def _paths(body: Body) -> int:
    return prod(_leaves(stmt) for stmt in body if isinstance(stmt, If))


def known_as(known: Mapping[Sym, Const]) -> Callable[[Expr], Expr]:
    """Replaces what is known of locals."""
    return lambda e: known.get(e.sym, e) if isinstance(e, Read) else e


def _element(load: Load, place: int) -> Load:
    return replace(load, indices=(Const(place, load.indices[0].dtype),))


def _values(expr: Expr, values: Values) -> frozenset[int] | None:
    """The values that an integer expression may have; None if not known."""
    if not expr.dtype.is_integer:
        return None
    if isinstance(expr, Const):
        return frozenset((int(expr.value),))  # type: ignore[arg-type]
    if isinstance(expr, Read):
        return values.get(expr.sym)
    found: frozenset[int] | None = None
    if isinstance(expr, Cast):
        found = _values(expr.operand, values)
    elif isinstance(expr, (Compare, Logical)):
        found = frozenset((0, 1))
    elif isinstance(expr, Select):
        sides = _values(expr.then, values), _values(expr.orelse, values)
        found = None if sides[0] is None or sides[1] is None else sides[0] | sides[1]
    elif isinstance(expr, Unary) and expr.op == "-":
        known = _values(expr.operand, values)
        found = None if known is None else frozenset(-value for value in known)
    elif isinstance(expr, Binary) and expr.op in ARITHMETIC:
        left, right = _values(expr.left, values), _values(expr.right, values)
        if left is not None and right is not None and len(left) * len(right) <= NOW.tuning.choices:
            found = frozenset(ARITHMETIC[expr.op](a, b) for a in left for b in right)
    low, high = expr.dtype.range()
    return found if found is not None and all(low <= v <= high for v in found) else None


# law
def _join(values: Values, then: Values, orelse: Values) -> None:
    """After a branch a local may be what it is after either side."""
    values.clear()
    for sym in then.keys() & orelse.keys():
        values[sym] = then[sym] | orelse[sym]
