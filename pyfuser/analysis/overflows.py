"""Signed integers that certainly leave their type, or are rounded as Python would not, somewhere.

The iterations at the corners of a call's iteration space are gone through with Python's integers,
as far as that takes no branch, no loop and no element of a view: what overflows there, overflows
for sure. Unsigned integers may mean to wrap; signed ones hardly ever do. Quotients are rounded
towards 0, where Python rounds down. What a local gets counts where it is read outside branches:
`p = (i - 1) // 2` is no mistake if only `if i > 0:` uses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from pyfuser.analysis.evaluate import Fact
from pyfuser.analysis.intervals import fits
from pyfuser.ir import nodes
from pyfuser.ir.nodes import Binary, Body, Expr, Stmt, Sym, Workunit
from pyfuser.ir.visit import assigned, child_expressions, reads

MAX_AXES = 3  # of iteration spaces: each doubles the corners
_MAX_SHIFT = 256
_STRAIGHT = (nodes.Declare, nodes.Assign, nodes.Store, nodes.Update)


class Overflow(NamedTuple):
    """An operation, the value that Python computes, and the iteration that computes another."""

    operation: Binary
    value: int
    iteration: tuple[int, ...]


def overflows(
    unit: Workunit, begin: tuple[int, ...], end: tuple[int, ...], facts: tuple[Fact, ...]
) -> Iterator[Overflow]:
    """The operations of a workunit that overflow or round for sure, each once."""
    if len(begin) > MAX_AXES or any(b >= e for b, e in zip(begin, end, strict=True)):
        return
    found: set[Binary] = set()
    ends = [dict.fromkeys((b, e - 1)) for b, e in zip(begin, end, strict=True)]
    for corner in product(*ends):
        for operation, value in _Corner(unit, corner, facts).overflows(unit.body):
            if operation not in found:
                found.add(operation)
                yield Overflow(operation, value, corner)


class _Corner:
    """One iteration: the values of its integer locals, as far as they are known."""

    def __init__(self, unit: Workunit, corner: tuple[int, ...], facts: tuple[Fact, ...]) -> None:
        self._values: dict[Sym, int] = dict(zip(unit.indices, corner, strict=True))
        self._shapes: dict[Sym, tuple[int, ...]] = {}
        self._found: list[tuple[Binary, int]] = []
        self._unread: dict[Sym, list[tuple[Binary, int]]] = {}  # found in what locals got
        for param, fact in zip(unit.params, facts, strict=True):
            if isinstance(fact, tuple):
                self._shapes[param.sym] = fact
            elif fact is not None and param.sym.dtype.is_integer:
                self._values[param.sym] = fact

    def overflows(self, body: Body) -> list[tuple[Binary, int]]:
        for stmt in body:
            if isinstance(stmt, _STRAIGHT):
                self._step(stmt)
            else:
                for sym in reads(*_outside_branches(stmt)):
                    self._found += self._unread.pop(sym, ())
                for sym in assigned((stmt,)):
                    self._values.pop(sym, None)
                    self._unread.pop(sym, None)
        return self._found

    def _step(self, stmt: Stmt) -> None:
        before = len(self._found)
        results = [self._value(expr) for expr in child_expressions(stmt)]
        if isinstance(stmt, (nodes.Declare, nodes.Assign)):
            self._unread[stmt.sym] = self._found[before:]
            del self._found[before:]
            self._values.pop(stmt.sym, None)
            value = results[-1] if results else None
            if value is not None and stmt.sym.dtype.is_integer:
                self._values[stmt.sym] = value
        elif isinstance(stmt, nodes.Update):
            self._values.pop(stmt.target, None)

    def _value(self, expr: Expr) -> int | None:
        """An integer's value, if it is known and of its type."""
        if isinstance(expr, (nodes.Select, nodes.Logical)):
            return None  # parts of it are not computed
        if isinstance(expr, nodes.Const):
            return expr.value if type(expr.value) is int else None
        if isinstance(expr, nodes.Extent):
            shape = self._shapes.get(expr.view)
            return None if shape is None else shape[expr.axis]
        if isinstance(expr, nodes.Read):
            self._found += self._unread.pop(expr.sym, ())
            value = self._values.get(expr.sym)
        else:
            value = self._computed(expr, [self._value(child) for child in child_expressions(expr)])
        if value is None or not expr.dtype.is_integer or fits((value, value), expr.dtype):
            return value if expr.dtype.is_integer else None
        if isinstance(expr, Binary) and expr.dtype.is_signed:
            self._found.append((expr, value))
        return None

    def _divided(self, expr: Binary, left: int, right: int) -> int | None:
        """A quotient or remainder as C++ rounds it."""
        if right == 0:
            return None
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        if expr.op == "%":  # programs that know make it positive: (x % n + n) % n
            return left - quotient * right
        if quotient != left // right:
            self._found.append((expr, left // right))
        return quotient

    def _computed(self, expr: Expr, parts: list[int | None]) -> int | None:
        if None in parts:
            return None
        if isinstance(expr, nodes.Cast):
            return parts[0]
        if isinstance(expr, nodes.Unary) and expr.op == "-":
            return -parts[0]  # type: ignore[operator]
        if not isinstance(expr, Binary) or not expr.dtype.is_integer:
            return None
        left, right = parts
        assert left is not None and right is not None
        if expr.op in "/%":
            return self._divided(expr, left, right)
        if expr.op == "<<":
            return left << right if 0 <= right <= _MAX_SHIFT else None
        return _OPERATIONS[expr.op](left, right) if expr.op in _OPERATIONS else None


def _outside_branches(stmt: Stmt) -> Iterator[Expr]:
    """What a statement and those in its loops evaluate, without those in branches."""
    yield from child_expressions(stmt)
    for inner in stmt.body if isinstance(stmt, nodes.For) else ():
        yield from _outside_branches(inner)


_OPERATIONS = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}
