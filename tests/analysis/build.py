"""Workunits and traces by hand, in a few characters.

i, n = index(), scalar("n")
x = View("x")
workunit("w", [i], [x, n], [x[i + n] << 2.0 * x[i]])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyfuser.analysis.accesses import structural_scalars
from pyfuser.ir import nodes
from pyfuser.ir.canonical import fresh
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Param, SourceLocation, Sym, Workunit
from pyfuser.trace.call import Space
from pyfuser.trace.memory import contiguous
from pyfuser.trace.shape import (
    ArgumentShape,
    CallShape,
    ClusterShape,
    RegionShape,
    ScalarShape,
    TraceShape,
)


class E:
    """An integer or float expression with Python's operators; `//` and `%` are C's."""

    def __init__(self, node: Any) -> None:
        self.node = node

    def _binary(self, op: str, other: Any, swap: bool = False) -> E:
        left, right = self.node, expr(other, self.node.dtype).node
        if swap:
            left, right = right, left
        return E(nodes.Binary(op, left, right))

    def __add__(self, other: Any) -> E:
        return self._binary("+", other)

    def __radd__(self, other: Any) -> E:
        return self._binary("+", other, True)

    def __sub__(self, other: Any) -> E:
        return self._binary("-", other)

    def __rsub__(self, other: Any) -> E:
        return self._binary("-", other, True)

    def __mul__(self, other: Any) -> E:
        return self._binary("*", other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> E:
        return E(nodes.Cast(self._binary("/", other).node, DType.INT32))

    def __mod__(self, other: Any) -> E:
        return self._binary("%", other)

    def __and__(self, other: Any) -> E:
        return self._binary("&", other)

    def __rshift__(self, other: Any) -> E:
        return self._binary(">>", other)

    def compare(self, op: str, other: Any) -> E:
        return E(nodes.Compare(op, self.node, expr(other, self.node.dtype).node))

    def __lt__(self, other: Any) -> E:
        return self.compare("<", other)

    def __gt__(self, other: Any) -> E:
        return self.compare(">", other)

    def __le__(self, other: Any) -> E:
        return self.compare("<=", other)

    def __ge__(self, other: Any) -> E:
        return self.compare(">=", other)

    def eq(self, other: Any) -> E:
        return self.compare("==", other)

    def ne(self, other: Any) -> E:
        return self.compare("!=", other)

    def cast(self, dtype: DType) -> E:
        return E(nodes.Cast(self.node, dtype))


class S(E):
    """A named scalar: an index, parameter or local."""

    def __init__(self, name: str, dtype: DType = DType.INT32) -> None:
        self.sym: Sym = fresh(name, dtype)
        super().__init__(nodes.Read(self.sym))


class View:
    """A view parameter; `v[i]` loads, `v[i] << e` stores."""

    def __init__(self, name: str, rank: int = 1, dtype: DType = DType.FLOAT64) -> None:
        self.sym: Sym = fresh(name, dtype)
        self.rank = rank

    def __getitem__(self, indices: Any) -> Cell:
        return Cell(self, indices if isinstance(indices, tuple) else (indices,))


_lines = iter(range(1, 10**9))


class Cell(E):
    def __init__(self, view: View, indices: tuple[Any, ...]) -> None:
        self.view = view
        self.indices = tuple(expr(i).node for i in indices)
        where = SourceLocation("user.py", next(_lines))
        super().__init__(nodes.Load(view.sym, self.indices, where))

    def _location(self) -> SourceLocation:
        return SourceLocation("user.py", next(_lines))

    def __lshift__(self, value: Any) -> nodes.Store:
        value = expr(value, self.view.sym.dtype).node
        return nodes.Store(self.view.sym, self.indices, value, self._location())

    def update(self, op: str, value: Any, atomic: bool = False) -> nodes.Update:
        value = expr(value, self.view.sym.dtype).node
        return nodes.Update(op, self.view.sym, self.indices, value, atomic, self._location())

    def fetch(self, op: str, value: Any) -> E:
        value = expr(value, self.view.sym.dtype).node
        return E(nodes.AtomicFetch(op, self.view.sym, self.indices, value))


def expr(value: Any, dtype: DType = DType.INT32) -> E:
    if isinstance(value, E):
        return value
    if isinstance(value, bool):
        return E(nodes.Const(value, DType.BOOL))
    if isinstance(value, float) or not dtype.is_integer:
        return E(nodes.Const(float(value), dtype if not dtype.is_integer else DType.FLOAT64))
    return E(nodes.Const(value, dtype))


def both(left: E, right: E) -> E:
    return E(nodes.Logical("&&", left.node, right.node))


def any_of(left: E, right: E) -> E:
    return E(nodes.Logical("||", left.node, right.node))


def no(condition: E) -> E:
    return E(nodes.Unary("!", condition.node, DType.BOOL))


def select(condition: E, then: Any, orelse: Any) -> E:
    return E(nodes.Select(condition.node, expr(then).node, expr(orelse).node))


def when(condition: E, then: Sequence[Any], orelse: Sequence[Any] = ()) -> nodes.If:
    return nodes.If(condition.node, tuple(then), tuple(orelse))


def loop(sym: S, start: Any, stop: Any, body: Sequence[Any], step: int = 1) -> nodes.For:
    return nodes.For(sym.sym, expr(start).node, expr(stop).node, expr(step).node, tuple(body))


def let(sym: S, value: Any) -> nodes.Declare:
    return nodes.Declare(sym.sym, expr(value, sym.sym.dtype).node)


def assign(sym: S, value: Any) -> nodes.Assign:
    return nodes.Assign(sym.sym, expr(value, sym.sym.dtype).node)


def workunit(
    name: str,
    indices: Sequence[S],
    params: Sequence[View | S],
    body: Sequence[Any],
    accumulators: Sequence[nodes.Accumulator] = (),
) -> Workunit:
    return Workunit(
        name,
        tuple(i.sym for i in indices),
        tuple(Param(p.sym, p.rank if isinstance(p, View) else 0) for p in params),
        tuple(body),
        tuple(accumulators),
    )


def region(
    cluster: int,
    shape: int | tuple[int, ...],
    offset: int = 0,
    strides: tuple[int, ...] | None = None,
    dtype: DType = DType.FLOAT64,
) -> RegionShape:
    """A region; offset and strides are in bytes."""
    shape = (shape,) if isinstance(shape, int) else shape
    return RegionShape(cluster, offset, strides or contiguous(shape, dtype.size), shape, dtype)


def known(value: int | None, dtype: DType = DType.INT32) -> ScalarShape:
    return ScalarShape(dtype, value)


def call(
    unit: Workunit,
    size: int | tuple[int, ...] | Space,
    *arguments: ArgumentShape,
    pattern: str = "for",
) -> CallShape:
    if not isinstance(size, Space):
        size = (size,) if isinstance(size, int) else size
        size = Space((0,) * len(size), size)
    return CallShape(pattern, size, unit, arguments)


def call_on(unit: Workunit, n: int, *arguments: RegionShape | float) -> CallShape:
    """A call over n iterations as the tracer would see it: of scalars, only what decides counts."""
    matters = structural_scalars(unit)
    shapes: list[ArgumentShape] = [
        a
        if isinstance(a, RegionShape)
        else known(int(a) if k in matters else None, unit.params[k].sym.dtype)
        for k, a in enumerate(arguments)
    ]
    return call(unit, n, *shapes)


def trace(*calls: CallShape, temporary: Sequence[int] = ()) -> TraceShape:
    numbers = [a.cluster for c in calls for a in c.arguments if isinstance(a, RegionShape)]
    return TraceShape(
        tuple(calls),
        tuple(
            ClusterShape(n in temporary, n in temporary)
            for n in range(max(numbers, default=-1) + 1)
        ),
    )
