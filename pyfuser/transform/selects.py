"""Elements of small local arrays, chosen by a local of few possible values, become selections.

    if joint[2] > joint[best]: ...      ->      if joint[2] > (best == 1 ? joint[1] : joint[0]): ...

An array whose elements move lies in memory, and neighbouring iterations that look up different
elements do not run in the lanes of a vector. Compares and selects do. The values that a local may
have are followed along straight code, as constants are (M. Wegman and K. Zadeck, "Constant
propagation with conditional branches", 1991, with small sets in place of one constant).
"""

from __future__ import annotations

from dataclasses import replace

from pyfuser.ir.nodes import (
    Assign,
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
    Read,
    Select,
    Stmt,
    Sym,
    While,
    Workunit,
)
from pyfuser.ir.visit import assigned, map_body, map_expression
from pyfuser.support.caches import cached
from pyfuser.transform.kernel import Kernel
from pyfuser.tuning.thresholds import DEFAULT

Values = dict[Sym, frozenset[int]]


def select_elements(kernel: Kernel) -> Kernel:
    """The kernel with such loads as selections, outside of loops."""
    return replace(kernel, workunit=_selected(kernel.workunit))


@cached(1024)
def _selected(workunit: Workunit) -> Workunit:
    lengths = {s.sym: len(s.values) for s in workunit.body if isinstance(s, DeclareArray)}
    if not lengths:
        return workunit
    return replace(workunit, body=_Follower(lengths).body(workunit.body, {}))


class _Follower:
    def __init__(self, lengths: dict[Sym, int]) -> None:
        self.lengths = lengths

    def body(self, body: Body, values: Values) -> Body:
        """The body rewritten; `values` becomes what locals may be after it."""
        result: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, If):
                condition = map_expression(stmt.condition, lambda e: self._load(e, values))
                sides = [dict(values), dict(values)]
                then = self.body(stmt.then, sides[0])
                orelse = self.body(stmt.orelse, sides[1])
                result.append(replace(stmt, condition=condition, then=then, orelse=orelse))
                _join(values, *sides)
                continue
            if isinstance(stmt, (For, While)):
                for sym in assigned(stmt.body):
                    values.pop(sym, None)
                result.append(stmt)
                continue
            result += self._elements(stmt, values)
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
        return map_body((stmt,), lambda e: self._load(e, values))

    def _load(self, expr: Expr, values: Values) -> Expr:
        if not isinstance(expr, Load) or expr.view not in self.lengths:
            return expr
        (index,) = expr.indices
        if isinstance(index, Const):
            return expr
        found = _values(index, values)
        if found is None or len(found) > DEFAULT.choices:
            return expr
        if not all(0 <= value < self.lengths[expr.view] for value in found):
            return expr
        first, *others = sorted(found)
        result: Expr = _element(expr, first)
        for value in others:
            is_it = Compare("==", index, Const(value, index.dtype))
            result = Select(is_it, _element(expr, value), result)
        return result


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
    if isinstance(expr, Cast):
        found = _values(expr.operand, values)
        low, high = expr.dtype.range()
        return found if found is not None and all(low <= v <= high for v in found) else None
    return None


# law
def _join(values: Values, then: Values, orelse: Values) -> None:
    """After a branch a local may be what it is after either side."""
    values.clear()
    for sym in then.keys() & orelse.keys():
        values[sym] = then[sym] | orelse[sym]
