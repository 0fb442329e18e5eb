"""Sums that several terms a trip are added to, one after the other.

    for k in range(n):
        total = total + x[2 * k + 1]
        total = total + x[2 * k]

g++ 12 makes such a loop one of vectors, whose elements it adds in order. Where the terms are loaded
in another order than they lie in memory it takes wrong ones, and where it does not it may add them
in that order (GCC's bug 110381). Additions of such a loop wait for each other anyway: one that
cannot be made of vectors takes no longer.

Sums of integers, and those with one term a trip, are right, but for one kind: several integers that
are computed in a type of the other signedness, as large as theirs or larger (bug 107212): `int`
locals to which unsigned elements are added, or a uint8 one to which elements of an int8 are, as
C++ adds these as `int`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyfuser.ir import nodes
from pyfuser.ir.dtypes import DType, common_type
from pyfuser.ir.nodes import Body, Expr, Stmt, Sym
from pyfuser.ir.visit import all_expressions, assigned, declared, expressions, statements, sym_of

SCALAR = '__asm__ volatile("");  // no vectors, which g++ 12 makes wrong here'

_FEW = 1
"""Additions a trip that go well."""

Target = Sym | int
"""A local, or an element of an array by a number of its own."""


def miscompiled(body: Body, indices: Iterable[Sym] = ()) -> bool:
    """Whether vectors of a loop with this body may be wrong. indices: what counts the trips."""
    if adds_in_order(body, indices):
        return True
    turned = _Turned(body, indices)
    return sum(_turns_sign(stmt) or turned.is_narrowed(stmt) for stmt in statements(body)) > 1


# law: False
def adds_in_order(body: Body, indices: Iterable[Sym] = ()) -> bool:
    """Whether a trip of a loop adds more than once to a floating-point number of all trips.

    Such numbers are locals that are declared before the loop, sums, and elements whose place is the
    same in all trips.
    """
    trip = _Trip(body, indices)
    trip.body(body)
    return trip.most > _FEW


def _turns_sign(stmt: Stmt) -> bool:
    """Whether an integer becomes a sum that was computed in the other type of its size."""
    if isinstance(stmt, nodes.Update):
        return _is_turned(stmt.target.dtype, common_type(stmt.target.dtype, stmt.value.dtype))
    if not isinstance(stmt, (nodes.Assign, nodes.Store)):
        return False
    value, target = stmt.value, sym_of(stmt) if isinstance(stmt, nodes.Store) else stmt.sym
    while isinstance(value, nodes.Cast):
        value = value.operand
    is_sum = isinstance(value, nodes.Binary) and value.op in ("+", "-")
    return is_sum and target is not None and _is_turned(target.dtype, value.dtype)


class _Turned:
    """Finds integers of all trips that become what was computed in a type as large or larger."""

    def __init__(self, body: Body, indices: Iterable[Sym]) -> None:
        own = set(declared(body))
        self.carried = assigned(body) - own
        self.changing = assigned(body) | own | set(indices)
        self.locals = {s.sym: s.value for s in statements(body) if isinstance(s, nodes.Declare)}

    def is_narrowed(self, stmt: Stmt) -> bool:
        """Whether that type is signed and the number is not, or the reverse.

        Terms that are as signed as the number make no difference: g++ adds them in its type.
        """
        if isinstance(stmt, nodes.Assign):
            target, carried = stmt.sym, stmt.sym in self.carried
        elif isinstance(stmt, nodes.Store):
            target, carried = stmt.view, self._is_sum_in_memory(stmt)
        else:
            return False
        return carried and any(
            _is_turned(target.dtype, value.dtype, or_wider=True)
            and not _has_sign(value, target.dtype.is_signed)
            for value in self._sums(stmt.value, set())
        )

    def _is_sum_in_memory(self, stmt: nodes.Store) -> bool:
        place = nodes.Load(stmt.view, stmt.indices)
        reads = (e for index in stmt.indices for e in expressions(index))
        fixed = not any(isinstance(e, nodes.Read) and e.sym in self.changing for e in reads)
        return fixed and any(e == place for e in self._behind(stmt.value, set()))

    def _behind(self, e: Expr, seen: set[Sym]) -> Iterator[Expr]:
        """The parts of an expression, and of the locals of one trip that it reads."""
        for part in expressions(e):
            yield part
            value = self._first_read(part, seen)
            if value is not None:
                yield from self._behind(value, seen)

    def _sums(self, e: Expr, seen: set[Sym]) -> Iterator[Expr]:
        """The sums that an expression may have its value from, before conversions."""
        value = self._first_read(e, seen)
        if value is not None:
            yield from self._sums(value, seen)
        elif isinstance(e, nodes.Cast):
            yield from self._sums(e.operand, seen)
        elif isinstance(e, nodes.Select):
            yield from self._sums(e.then, seen)
            yield from self._sums(e.orelse, seen)
        elif isinstance(e, nodes.Binary) and e.op in ("+", "-"):
            yield e

    def _first_read(self, e: Expr, seen: set[Sym]) -> Expr | None:
        """The value of a local of one trip that is read, the first time."""
        if not isinstance(e, nodes.Read) or e.sym in seen:
            return None
        seen.add(e.sym)
        return self.locals.get(e.sym)


def _has_sign(e: Expr, signed: bool) -> bool:
    """Whether all terms of a sum are signed, or none is, before they are promoted."""
    if isinstance(e, nodes.Cast):
        return _has_sign(e.operand, signed)
    if isinstance(e, nodes.Binary) and e.op in ("+", "-"):
        return _has_sign(e.left, signed) and _has_sign(e.right, signed)
    return e.dtype.is_signed == signed


def _is_turned(target: DType, dtype: DType, or_wider: bool = False) -> bool:
    if not (target.is_integer and dtype.is_integer) or target.is_signed == dtype.is_signed:
        return False
    return dtype.size == target.size or (or_wider and dtype.size > target.size)


class _Trip:
    """Follows the sums through one trip.

    sums: how many additions are between what a sum was before the trip and what it is. most: the
    largest number of additions to one of them.
    """

    def __init__(self, body: Body, indices: Iterable[Sym]) -> None:
        own = set(declared(body))
        self.changing = assigned(body) | own | set(indices)
        self.numbers: dict[tuple[Sym, tuple[Expr, ...]], int] = {}
        self.cells: dict[int, int | None] = {}  # by id() of an access, as these compare slowly
        self.sums: dict[Target, int] = {
            sym: 0 for sym in assigned(body) - own if _is_floating(sym.dtype)
        }
        loaded = {e.view for e in all_expressions(body) if isinstance(e, nodes.Load)}
        for stmt in statements(body):
            if isinstance(stmt, nodes.Store) and stmt.view in loaded:
                cell = self.cell(stmt)
            else:
                cell = self.cell(stmt) if isinstance(stmt, nodes.Update) and stmt.indices else None
            if cell is not None:
                self.sums[cell] = 0
        self.of_all_trips = frozenset(self.sums)
        self.most = 0

    def body(self, body: Body) -> None:
        for stmt in body:
            self.statement(stmt)

    def statement(self, stmt: Stmt) -> None:
        if isinstance(stmt, (nodes.Declare, nodes.Assign)):
            self.set(stmt.sym, None if stmt.value is None else self.additions(stmt.value))
        elif isinstance(stmt, nodes.Store):
            self.set(self.cell(stmt), self.additions(stmt.value))
        elif isinstance(stmt, nodes.Update):
            self.update(stmt)
        elif isinstance(stmt, nodes.If):
            before = dict(self.sums)
            self.body(stmt.then)
            after, self.sums = self.sums, before
            self.body(stmt.orelse)
            for target, count in after.items():
                self.sums[target] = max(count, self.sums.get(target, 0))
        elif isinstance(stmt, (nodes.For, nodes.While)):
            before = dict(self.sums)
            self.body(stmt.body)
            for target, count in list(self.sums.items()):
                if count > before.get(target, count):  # as often as there are trips
                    self.set(target, count + _FEW)

    def update(self, stmt: nodes.Update) -> None:
        target = self.cell(stmt) if stmt.indices else stmt.target
        before = None if target is None else self.sums.get(target)
        is_sum = before is not None and stmt.op in ("+", "-")
        self.set(target, _total(before, self.additions(stmt.value)) if is_sum else None)

    def set(self, target: Target | None, count: int | None) -> None:
        if target is None:
            return
        if count is None:
            self.sums.pop(target, None)
            return
        self.sums[target] = count
        if target in self.of_all_trips:
            self.most = max(self.most, count)

    def cell(self, access: nodes.Load | nodes.Store | nodes.Update) -> int | None:
        """The number of an element, if it is a floating-point one at one place in all trips."""
        if id(access) not in self.cells:
            self.cells[id(access)] = self._cell(access)
        return self.cells[id(access)]

    def _cell(self, access: nodes.Load | nodes.Store | nodes.Update) -> int | None:
        view = sym_of(access)
        if view is None or not _is_floating(view.dtype):
            return None
        for index in access.indices:
            for e in expressions(index):
                if isinstance(e, (nodes.Load, nodes.AtomicFetch)):
                    return None
                if isinstance(e, nodes.Read) and e.sym in self.changing:
                    return None
        return self.numbers.setdefault((view, access.indices), len(self.numbers))

    def additions(self, e: Expr) -> int | None:
        """How many additions a value is behind a sum; None if no sum is a term of it."""
        if isinstance(e, nodes.Read):
            return self.sums.get(e.sym)
        if isinstance(e, nodes.Load):
            cell = self.cell(e)
            return None if cell is None else self.sums.get(cell)
        if isinstance(e, nodes.Cast):
            return self.additions(e.operand)
        if isinstance(e, nodes.Select):
            return _most(self.additions(e.then), self.additions(e.orelse))
        if isinstance(e, nodes.Binary) and e.op in ("+", "-"):
            return _total(self.additions(e.left), self.additions(e.right))
        return None


def _most(*counts: int | None) -> int | None:
    return max((count for count in counts if count is not None), default=None)


def _total(*terms: int | None) -> int | None:
    """Additions behind a sum, of which one of the terms is some behind it."""
    most = _most(*terms)
    return None if most is None else most + 1


def _is_floating(dtype: DType) -> bool:
    return dtype.is_float or dtype.is_complex
