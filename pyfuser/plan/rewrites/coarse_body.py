"""Coarsening: one iteration of the result runs a row of the workunit's, one after the other.

    over n * 4:                            over n:
    joint[k] = f(k // 4, k % 4)     ->     for c in range(4):
                                               joint[i * 4 + c] = f(i, c)

Thread coarsening with the strip as a loop (A. Magni, C. Dubach and M. O'Boyle, "A large-scale
cross-architecture evaluation of thread-coarsening", 2013). Iterations are unordered, so any order
within a row is one of theirs; whether the workunit may rely on other iterations being on their way
meanwhile is for the caller to see (`plan.rewrites.coarsen`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyfuser.ir.canonical import all_syms
from pyfuser.ir.nodes import Binary, Body, Cast, Const, Declare, Expr, For, Read, Sym, Workunit
from pyfuser.ir.visit import all_expressions, assigned, map_body

Axis = tuple[int, int]  # first value of an index, and the one after its last


# law
def split(workunit: Workunit, factor: int, extent: int, scalars: Mapping[Sym, int]) -> Workunit:
    """The workunit over [0, extent) as one over [0, extent / factor).

    One index; factor divides extent. scalars: parameters whose value is known.
    """
    (index,) = workunit.indices
    row, column = row_and_column(workunit)
    changing = assigned(workunit.body)
    known = {sym: value for sym, value in scalars.items() if sym not in changing}
    body = workunit.body
    if index not in changing:
        body = map_body(body, Splitter(index, row, column, factor, extent, known).change)
    whole = Binary("+", Binary("*", Read(row), Const(factor, row.dtype)), Read(column))
    loop = _loop(column, (0, factor), (Declare(index, whole), *body))
    return replace(workunit, indices=(row,), body=(loop,))


# law
def boxed(workunit: Workunit, columns: int, extent: int, scalars: Mapping[Sym, int]) -> Workunit:
    """The workunit over [0, extent) as one over [0, extent / columns) by [0, columns).

    One index, which keeps its value; columns divides extent. scalars: as for `split`.
    """
    (index,) = workunit.indices
    row, column = row_and_column(workunit)
    changing = assigned(workunit.body)
    known = {sym: value for sym, value in scalars.items() if sym not in changing}
    body = map_body(workunit.body, Splitter(index, row, column, columns, extent, known).change)
    if Read(index) in all_expressions(body):
        whole = Binary("+", Binary("*", Read(row), Const(columns, row.dtype)), Read(column))
        body = (Declare(index, whole), *body)
    sums = tuple(replace(accumulator, flat=True) for accumulator in workunit.accumulators)
    return replace(workunit, indices=(row, column), body=body, accumulators=sums)


def folded(workunit: Workunit, axes: tuple[Axis, ...]) -> Workunit:
    """The workunit over several axes as one over the first, with loops over the last.

    axes: the bounds of the last.
    """
    first = workunit.indices[: -len(axes)]
    others = workunit.indices[-len(axes) :]
    changing = assigned(workunit.body)
    body = workunit.body
    for index, axis in reversed(list(zip(others, axes, strict=True))):
        variable = index
        if index in changing:  # a loop's variable keeps its value
            (variable,) = _new(workunit, (index, f"{index.name}_column"))
            body = (Declare(index, Read(variable)), *body)
        body = (_loop(variable, axis, body),)
        workunit = replace(workunit, body=body)
    return replace(workunit, indices=first, body=body)


def row_and_column(workunit: Workunit) -> tuple[Sym, Sym]:
    """Syms for the two parts of the only index."""
    (index,) = workunit.indices
    row, column = _new(workunit, (index, f"{index.name}_row"), (index, f"{index.name}_column"))
    return row, column


def _new(workunit: Workunit, *like: tuple[Sym, str]) -> list[Sym]:
    """Syms that the workunit lacks: the same ones each time, so that equal calls stay equal."""
    uid = 1 + max(sym.uid for sym in all_syms(workunit))
    return [Sym(name, uid + n, sym.dtype) for n, (sym, name) in enumerate(like)]


def _loop(sym: Sym, axis: Axis, body: Body) -> For:
    start, stop, step = (Const(value, sym.dtype) for value in (*axis, 1))
    return For(sym, start, stop, step, body)


class Splitter:
    """Replaces quotient and remainder of the index by row and column."""

    def __init__(
        self,
        index: Sym,
        row: Sym,
        column: Sym,
        factor: int,
        extent: int,
        known: Mapping[Sym, int],
    ) -> None:
        self.index = index
        self.parts = {"/": row, "%": column}
        self.factor = factor
        self.extent = extent
        self.known = known

    # law
    def change(self, expr: Expr) -> Expr:
        """`k / C` and `k % C`, of a k that is not negative."""
        if not isinstance(expr, Binary) or expr.op not in self.parts:
            return expr
        part = self.parts[expr.op]
        if self.value(expr.right) != self.factor or not self.is_index(expr.left):
            return expr
        return Read(part) if expr.dtype is part.dtype else Cast(Read(part), expr.dtype)

    def is_index(self, expr: Expr) -> bool:
        while isinstance(expr, Cast) and self._holds(expr, self.extent):
            expr = expr.operand
        return isinstance(expr, Read) and expr.sym == self.index

    def value(self, expr: Expr) -> int | None:
        """The value of a constant or of a scalar that is known."""
        if isinstance(expr, Cast):
            value = self.value(expr.operand)
            return value if value is not None and self._holds(expr, value) else None
        if isinstance(expr, Read):
            return self.known.get(expr.sym)
        if isinstance(expr, Const) and expr.dtype.is_integer:
            return int(expr.value)  # type: ignore[arg-type]
        return None

    def _holds(self, cast: Cast, value: int) -> bool:
        """Whether a conversion keeps the value, and what lies between it and zero."""
        if not cast.dtype.is_integer:
            return False
        low, high = cast.dtype.range()
        return low <= value <= high and high > 1  # not bool
