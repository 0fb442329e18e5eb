"""Signed integers that certainly leave their type, or are rounded as Python would not, somewhere.

The iterations at the corners of a call's iteration space are gone through with Python's integers,
as far as that takes no branch, no loop and no element of a view: what overflows there, overflows
for sure. Unsigned integers may mean to wrap, unless it is a difference of constants; signed ones
hardly ever do. Quotients are rounded towards 0, where Python rounds down. What a local gets counts
where it is read outside branches:
`p = (i - 1) // 2` is no mistake if only `if i > 0:` uses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple, TypeAlias

from pyfuser.analysis.evaluate import Fact
from pyfuser.analysis.intervals import fits
from pyfuser.ir import nodes
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Binary, Body, Cast, Compare, Expr, SourceLocation, Stmt, Sym, Workunit
from pyfuser.ir.powers import whole_power
from pyfuser.ir.visit import assigned, child_expressions, expressions, reads

MAX_AXES = 3  # of iteration spaces: each doubles the corners
_MAX_SHIFT = 256
_STRAIGHT = (nodes.Declare, nodes.Assign, nodes.Store, nodes.Update)


class Overflow(NamedTuple):
    """An operation, the value that Python computes, and the iteration that computes another.

    iteration: empty if every one does. A Cast is that of a value to its element's type, which it is
    stored to. Of quotients and remainders the value is of its type, and another than the kernel's.
    A Compare is of unsigned integers, and the value, of one side, is below 0.
    """

    operation: Binary | Cast | Compare
    value: int
    iteration: tuple[int, ...]
    location: SourceLocation | None


def overflows(
    unit: Workunit, begin: tuple[int, ...], end: tuple[int, ...], facts: tuple[Fact, ...]
) -> Iterator[Overflow]:
    """The operations of a workunit that overflow or round for sure, each once."""
    if len(begin) > MAX_AXES or any(b >= e for b, e in zip(begin, end, strict=True)):
        return
    found: set[tuple[Binary | Cast | Compare, SourceLocation | None]] = set()
    for operation, value, location in _Corner(unit, None, facts).overflows(unit.body):
        found.add((operation, location))
        yield Overflow(operation, value, (), location)
    ends = [dict.fromkeys((b, e - 1)) for b, e in zip(begin, end, strict=True)]
    for corner in product(*ends):
        for operation, value, location in _Corner(unit, corner, facts).overflows(unit.body):
            if (operation, location) not in found:
                found.add((operation, location))
                yield Overflow(operation, value, corner, location)


class _Corner:
    """One iteration: the values of its integer locals, as far as they are known; without a corner
    those that are made of constants alone.
    """

    def __init__(
        self, unit: Workunit, corner: tuple[int, ...] | None, facts: tuple[Fact, ...]
    ) -> None:
        self._constants = corner is None
        self._values: dict[Sym, int] = {}
        self._shapes: dict[Sym, tuple[int, ...]] = {}
        self._arguments = {param.sym for param in unit.params} - assigned(unit.body)
        self._found: list[_Found] = []
        self._unread: dict[Sym, list[_Found]] = {}  # found in what locals got
        if corner is None:
            return
        self._values.update(zip(unit.indices, corner, strict=True))
        for param, fact in zip(unit.params, facts, strict=True):
            if isinstance(fact, tuple):
                self._shapes[param.sym] = fact
            elif fact is not None and param.sym.dtype.is_integer:
                self._values[param.sym] = fact

    def overflows(self, body: Body) -> list[_Found]:
        for stmt in body:
            if isinstance(stmt, _STRAIGHT):
                self._step(stmt)
            else:
                for sym in reads(*_outside_branches(stmt)):
                    self._found += self._unread.pop(sym, ())
                if isinstance(stmt, nodes.If):
                    self._compare(stmt.condition)
                for sym in assigned((stmt,)):
                    self._values.pop(sym, None)
                    self._unread.pop(sym, None)
        return self._found

    def _step(self, stmt: Stmt) -> None:
        before = len(self._found)
        results = [self._value(expr) for expr in child_expressions(stmt)]
        for expr in child_expressions(stmt):
            self._compare(expr)
        if isinstance(stmt, (nodes.Store, nodes.Declare, nodes.Assign)):
            self._store(stmt)
        if isinstance(stmt, (nodes.Store, nodes.Update)):
            self._remainder(stmt)
        if isinstance(stmt, (nodes.Declare, nodes.Assign)):
            self._unread[stmt.sym] = self._found[before:]
            del self._found[before:]
            self._values.pop(stmt.sym, None)
            value = results[-1] if results else None
            if value is not None and stmt.sym.dtype.is_integer:
                self._values[stmt.sym] = value
        elif isinstance(stmt, nodes.Update):
            self._values.pop(stmt.target, None)

    def _store(self, stmt: nodes.Store | nodes.Declare | nodes.Assign) -> None:
        """Note a known value that its element, of a signed type, cannot hold; an argument of the
        call also if the type is unsigned, and a power, which is a double, wherever it is stored.
        """
        cast = stmt.value
        if not isinstance(cast, Cast) or not cast.dtype.is_integer:
            return
        operand = cast.operand
        location = stmt.location if isinstance(stmt, nodes.Store) else None
        if operand.dtype.is_float:
            value = self._value(operand)
            if value is not None and not fits((value, value), cast.dtype):
                self._found.append((cast, value, location))
            return
        if isinstance(operand, nodes.Const) or cast.explicit or location is None:
            return  # a constant is told of when it is lowered
        is_argument = isinstance(operand, nodes.Read) and operand.sym in self._arguments
        told = cast.dtype.is_signed or is_argument or self._constants
        if cast.dtype is DType.BOOL or not told:
            return
        value = self._known(operand)
        if value is not None and not fits((value, value), cast.dtype):
            self._found.append((cast, value, location))

    def _compare(self, expr: Expr) -> None:
        """Note numbers below 0 that are compared with unsigned integers, which they become."""
        for compare in _compares(expr):
            for side in (compare.left, compare.right):
                if not isinstance(side, Cast) or side.explicit or side.dtype.is_signed:
                    continue
                if not (side.dtype.is_integer and side.operand.dtype.is_integer):
                    continue
                value = self._known(side.operand)
                if value is not None and value < 0:
                    loads = [e.location for e in expressions(compare) if isinstance(e, nodes.Load)]
                    self._found.append((compare, value, loads[0] if loads else None))

    def _remainder(self, stmt: nodes.Store | nodes.Update) -> None:
        """Note a negative remainder that an element gets, as it is or times something, where
        Python's is positive.

        Programs that know of it make it positive first: `(x % n + n) % n`.
        """
        for value in _factors(stmt.value):
            if isinstance(value, Binary) and value.op == "%":
                self._negative(value, stmt.location)

    def _negative(self, value: Binary, location: SourceLocation | None) -> None:
        left, right = self._known(value.left), self._known(value.right)
        if (
            left is not None
            and right
            and value.dtype.is_signed
            and self._divided(value, left, right) != left % right
        ):
            self._found.append((value, left % right, value.location or location))

    def _known(self, expr: Expr) -> int | None:
        """`_value` of what was looked at already: nothing is found a second time."""
        before = len(self._found)
        value = self._value(expr)
        del self._found[before:]
        return value

    def _value(self, expr: Expr) -> int | None:
        """An integer's value, if it is known and of its type."""
        if isinstance(expr, (nodes.Select, nodes.Logical)):
            return None  # parts of it are not computed
        if isinstance(expr, nodes.Const):
            return expr.value if type(expr.value) is int else None
        if isinstance(expr, nodes.Call):
            return self._power(expr)
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
        below = self._constants and isinstance(expr, Binary) and expr.op == "-"
        if isinstance(expr, Binary) and (expr.dtype.is_signed or below):
            self._found.append((expr, value, expr.location))
        return None

    def _power(self, expr: nodes.Call) -> int | None:
        """The value of a power of integers, which is a double: a cast to an integer may not fit."""
        values = [
            self._value(arg.operand) if isinstance(arg, Cast) else self._value(arg)
            for arg in expr.args
        ]
        return whole_power(*values) if expr.name == "pow" else None

    def _divided(self, expr: Binary, left: int, right: int) -> int | None:
        """A quotient or remainder as C++ rounds it."""
        if right == 0:
            return None
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        if expr.op == "%":  # where it matters: `_remainder`
            return left - quotient * right
        if quotient != left // right:
            self._found.append((expr, left // right, expr.location))
        return quotient

    def _computed(self, expr: Expr, parts: list[int | None]) -> int | None:
        if None in parts:
            return None
        if isinstance(expr, Cast):
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


def _factors(value: Expr) -> Iterator[Expr]:
    """What a value is the product of, converted or not."""
    while isinstance(value, Cast):
        value = value.operand
    if isinstance(value, Binary) and value.op == "*":
        yield from _factors(value.left)
        yield from _factors(value.right)
    else:
        yield value


def _compares(expr: Expr) -> Iterator[Compare]:
    """The comparisons that an expression makes whatever happens."""
    if isinstance(expr, Compare):
        yield expr
    first = expr.condition if isinstance(expr, nodes.Select) else None
    first = expr.left if isinstance(expr, nodes.Logical) else first
    for child in child_expressions(expr) if first is None else (first,):
        yield from _compares(child)


def _outside_branches(stmt: Stmt) -> Iterator[Expr]:
    """What a statement and those in its loops evaluate, without those in branches."""
    yield from child_expressions(stmt)
    for inner in stmt.body if isinstance(stmt, nodes.For) else ():
        yield from _outside_branches(inner)


_Found: TypeAlias = tuple[Binary | Cast | Compare, int, SourceLocation | None]
_OPERATIONS = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}
