"""Sums that several terms a trip are added to, one after the other.

    for k in range(n):
        total = total + x[2 * k + 1]
        total = total + x[2 * k]

g++ 12 makes such a loop one of vectors, whose elements it adds in order. Where the terms are loaded
in another order than they lie in memory it takes wrong ones, and where it does not it may add them
in that order (GCC's bug 110381). Additions of such a loop wait for each other anyway: one that
cannot be made of vectors takes no longer.

Sums with one term a trip are right, and so are those of integers, but for several of one kind: in a
type of the other signedness than that in which they are computed (bug 107212), such as `int` locals
to which unsigned elements are added, or uint8 ones, as C++ adds small integers as `int`.

The rules look at neither order nor places: more loops than the wrong ones have no vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pyfuser.ir import nodes
from pyfuser.ir.dtypes import common_type
from pyfuser.ir.nodes import Body, Expr, Stmt, Sym
from pyfuser.ir.visit import (
    all_expressions,
    assigned,
    bodies,
    declared,
    expressions,
    statements,
)

_ADDS = ("+", "-")


class _Number(NamedTuple):
    """A number of all trips: a local, or an element of a view whose place is the same in all."""

    sym: Sym
    indices: tuple[Expr, ...] = ()


def miscompiled(body: Body, indices: Iterable[Sym] = ()) -> bool:
    """Whether vectors of a loop with this body may be wrong. indices: what counts the trips."""
    numbers = _changed(body, {*indices})
    return adds_in_order(body, numbers) or _turns_signs(body, numbers)


def _flat(body: Body) -> Iterator[Stmt]:
    """The statements of a body, those of scopes and of ordered sums among them."""
    for stmt in body:
        inner = [*bodies(stmt)] if isinstance(stmt, nodes.Extra) else []
        for part in inner:
            yield from _flat(part)
        if not inner:
            yield stmt


def _changed(body: Body, indices: set[Sym]) -> list[_Number]:
    """The numbers of all trips, once for each statement that changes one."""
    own, changing = {*declared(body)}, indices | {*declared(body)} | assigned(body)
    found = []
    for stmt in statements(body):
        number = _number(stmt)
        if number is not None and (number.indices or number.sym not in own):
            places = [e for index in number.indices for e in expressions(index)]
            moves = any(isinstance(e, nodes.Read) and e.sym in changing for e in places)
            if not moves and not any(isinstance(e, nodes.Load) for e in places):
                found.append(number)
    return found


def _number(stmt: Stmt | Expr) -> _Number | None:
    """What a statement changes or an expression reads."""
    if isinstance(stmt, (nodes.Assign, nodes.Read)):
        return _Number(stmt.sym)
    if isinstance(stmt, (nodes.Store, nodes.Load)):
        return _Number(stmt.view, stmt.indices)
    return _Number(stmt.target, stmt.indices) if isinstance(stmt, nodes.Update) else None


# law: False
def adds_in_order(body: Body, numbers: Iterable[_Number]) -> bool:
    """Whether a trip of a loop adds more than once to a floating-point number of all trips."""
    sums = (n for n in dict.fromkeys(numbers) if not n.sym.dtype.is_integer)
    found = ((n, _derived(body, n)) for n in sums if not _begins_anew(body, n))
    return any(_additions(body, number, derived) > 1 for number, derived in found)


def _begins_anew(body: Body, number: _Number) -> bool:
    """Whether each trip first gives the number a value that is not made of the last one."""
    for stmt in _flat(body):
        if any(_number(e) == number for e in all_expressions((stmt,))):
            return False
        if any(_number(part) == number for part in statements((stmt,))):
            return isinstance(stmt, (nodes.Assign, nodes.Store))
    return False


def _derived(body: Body, number: _Number) -> set[_Number]:
    """The number, and the locals that are computed from it."""
    found, before = {number}, 0
    while len(found) > before:
        before = len(found)
        for stmt in statements(body):
            if isinstance(stmt, (nodes.Declare, nodes.Assign)) and stmt.value is not None:
                found |= {_Number(stmt.sym)} if _reads(stmt.value, found) else set()
    return found


def _reads(e: Expr, numbers: set[_Number]) -> bool:
    """Whether one of the numbers is a term of a value."""
    if isinstance(e, nodes.Cast):
        return _reads(e.operand, numbers)
    if isinstance(e, nodes.Select):
        return _reads(e.then, numbers) or _reads(e.orelse, numbers)
    if isinstance(e, nodes.Binary) and e.op in _ADDS:
        return _reads(e.left, numbers) or _reads(e.right, numbers)
    return _number(e) in numbers


def _additions(body: Body, number: _Number, derived: set[_Number]) -> int:
    """How many additions to a number, or to what is computed from it, a trip makes at most."""
    count = 0
    for stmt in _flat(body):
        if isinstance(stmt, nodes.If):
            count += max(_additions(b, number, derived) for b in (stmt.then, stmt.orelse))
        elif isinstance(stmt, (nodes.For, nodes.While)):
            count += 2 * _additions(stmt.body, number, derived)
        else:
            is_sum = isinstance(stmt, nodes.Update) and stmt.op in _ADDS
            count += is_sum and _number(stmt) == number
            count += sum(
                isinstance(e, nodes.Binary) and e.op in _ADDS and _reads(e, derived)
                for e in expressions(stmt)
            )
    return count


def _turns_signs(body: Body, numbers: Iterable[_Number]) -> bool:
    """Whether several integers of all trips may be sums computed in the other signedness."""
    types = {
        e.dtype for e in all_expressions(body) if isinstance(e, nodes.Binary) and e.op in _ADDS
    } | {
        common_type(stmt.target.dtype, stmt.value.dtype)
        for stmt in statements(body)
        if isinstance(stmt, nodes.Update)
    }
    turned = 0
    for own in (number.sym.dtype for number in numbers if number.sym.dtype.is_integer):
        turned += any(
            dtype.is_integer and dtype.is_signed != own.is_signed and dtype.size >= own.size
            for dtype in types
        )
    return turned > 1
