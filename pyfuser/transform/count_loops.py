"""While loops that count become loops over a range.

    k = 0                               for t in range(0, m):
    while k < m:                            s += x[i + t] * w[t]
        s += x[i + k] * w[k]
        k += 1

How many trips they make is known before they begin, so they are unrolled, run side by side for many
iterations, or lose their conditions as other loops do. The body ends with steps of locals by
constants, changes these nowhere else, and nothing of what they are compared with. A local that is
compared steps by one; several comparisons all have to hold: the strictest ends the loop.

The law. Before trip t each of these locals is what it was plus t steps (integers of n bits are a
ring). One that is below its limit has not wrapped, so the comparison holds in the first `limit -
local` trips: computed in 64 bits, as is the end of the range.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from pyfuser.ir import nodes
from pyfuser.ir.affine import number
from pyfuser.ir.canonical import fresh
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Assign,
    Binary,
    Body,
    Cast,
    Compare,
    Const,
    Declare,
    Expr,
    For,
    If,
    Logical,
    Read,
    Select,
    Stmt,
    Sym,
    While,
    Workunit,
)
from pyfuser.ir.visit import (
    all_expressions,
    assigned,
    contains,
    declared,
    expressions,
    leaves_loop,
    map_body,
    reads,
)
from pyfuser.support.records import dataclass
from pyfuser.transform.kernel import Kernel
from pyfuser.transform.unused import without_unread_locals

_WHOLE = (DType.INT32, DType.INT64)
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ARITHMETIC = (Const, Read, Cast, nodes.Extent, nodes.Unary, Binary)
_LARGE = 1 << 30
_BEYOND = {"<": 0, "<=": 1, ">": 0, ">=": -1}
"""From what a local is compared with to the first value with which the loop ends."""


@dataclass(frozen=True, slots=True)
class _Counting:
    """What a loop counts: by how much locals step, where they end, and the rest of its body."""

    steps: dict[Sym, int]
    ends: tuple[tuple[Sym, Expr], ...]
    body: Body


def count_loops(kernel: Kernel) -> Kernel:
    """The kernel with loops over ranges in place of loops that count."""
    unit = kernel.workunit
    body = counted(unit)
    return kernel if body == unit.body else replace(kernel, workunit=replace(unit, body=body))


def counted(unit: Workunit) -> Body:
    """The body with loops over ranges in place of loops that count."""
    if not contains(unit.body, While):
        return unit.body
    given = {*unit.indices, *(p.sym for p in unit.params if not p.rank)} - assigned(unit.body)
    body = _Ranges(given, _count(unit.body)).of(unit.body, again=False)
    return unit.body if body == unit.body else without_unread_locals(body)


def _count(body: Body) -> Counter[Sym]:
    """How often each Sym is read."""
    return Counter(e.sym for e in all_expressions(body) if isinstance(e, Read))


class _Ranges:
    """given: what no iteration changes. read: how often all is read."""

    def __init__(self, given: set[Sym], read: Counter[Sym]) -> None:
        self._given = given
        self._read = read

    def of(self, body: Body, *, again: bool) -> Body:
        """The body with its loops, and those inside, as loops over ranges. again: in a loop."""
        made: list[Stmt] = []
        for place, stmt in enumerate(body):
            match stmt:
                case If():
                    then, orelse = (self.of(side, again=again) for side in (stmt.then, stmt.orelse))
                    made.append(replace(stmt, then=then, orelse=orelse))
                case While() if (found := _counting(stmt)) is not None:
                    own = _count((stmt,))
                    first = {sym: self._value(sym, body[:place]) for sym in found.steps}
                    later = {
                        sym
                        for sym, value in first.items()
                        if self._read[sym] > own[sym] or (again and value == Read(sym))
                    }
                    made += self._range(found, first, later)
                case For() | While():
                    made.append(replace(stmt, body=self.of(stmt.body, again=True)))
                case _:
                    made.append(stmt)
        return tuple(made)

    def _range(self, loop: _Counting, first: dict[Sym, Expr], later: set[Sym]) -> Body:
        """The loop over a range, and what it leaves to what is read later.

        first: what locals are before the loop.
        """
        (sym, stop), *others = loop.ends
        step, start = loop.steps[sym], first[sym]
        for other, end in others:  # where its trips end, counted from the same start
            trips = _trips(first[other], end, loop.steps[other])
            way = "+" if step > 0 else "-"
            end = Binary(way, _wide(start), trips)
            sooner = Compare("<" if step > 0 else ">", _wide(stop), end)
            stop = Select(sooner, stop, Cast(end, sym.dtype))
        turn = fresh(sym.name, sym.dtype)

        def at(here: Expr, own: Sym) -> Expr:
            """A local where the first one is at a place."""
            if own == sym:
                return here
            steps = Binary("-", here, start)
            factor = Const(loop.steps[own] * step, own.dtype)
            return Binary("+", first[own], Binary("*", factor, steps))

        def change(e: Expr) -> Expr:
            return at(Read(turn), e.sym) if isinstance(e, Read) and e.sym in loop.steps else e

        body = map_body(self.of(loop.body, again=True), change)
        made = For(turn, start, stop, Const(step, sym.dtype), body)
        rest = [own for own in loop.steps if own in later and own != sym]
        left = [Assign(own, at(stop, own)) for own in (*rest, *((sym,) * (sym in later)))]
        ran = Compare("<" if step > 0 else ">", start, stop)
        return (made, If(ran, tuple(left))) if left else (made,)

    def _value(self, sym: Sym, before: Sequence[Stmt]) -> Expr:
        """What a local is before a loop: a value that is known there, or the local itself."""
        for stmt in reversed(before):
            if isinstance(stmt, (Declare, Assign)) and stmt.sym == sym:
                value = stmt.value
                if value is None or value.dtype is not sym.dtype or not reads(value) <= self._given:
                    break
                return value if _is_arithmetic(value) else Read(sym)
            if sym in assigned((stmt,)):
                break
        return Read(sym)


def _counting(loop: While) -> _Counting | None:
    """What a loop counts; None if it does something else."""
    steps: dict[Sym, int] = {}
    body = loop.body
    while body and (found := _step(body[-1])) is not None and found[0] not in steps:
        if len({found[0].dtype, *(sym.dtype for sym in steps)}) > 1:
            break
        steps[found[0]], body = found[1], body[:-1]
    changed = assigned(body) | {*declared(body)}
    if changed & steps.keys() or any(map(leaves_loop, body)):
        return None
    terms = list(_terms(loop.condition))
    ends = [end for e in terms if (end := _end(e, steps)) is not None]
    if len(ends) < len(terms):
        return None
    if len(ends) > 1 and any(e.dtype is DType.INT64 for term in terms for e in expressions(term)):
        return None  # what is left to an end may have more than 64 bits
    if not reads(*(e for _, e in ends)).isdisjoint(changed | steps.keys()):
        return None
    return _Counting(steps, tuple(ends), body)


def _step(stmt: Stmt) -> tuple[Sym, int] | None:
    """A local that a statement adds a constant to, and that."""
    if not (isinstance(stmt, Assign) and stmt.sym.dtype in _WHOLE):
        return None
    match stmt.value:
        case Binary(op="+" | "-" as op, left=Read(sym=stmt.sym), right=right):
            by = number(right)
            if by and stmt.value.dtype is stmt.sym.dtype:
                return stmt.sym, by if op == "+" else -by
    return None


def _terms(e: Expr) -> list[Expr]:
    """What must hold, all of it."""
    if isinstance(e, Logical) and e.op == "&&":
        return [*_terms(e.left), *_terms(e.right)]
    return [e]


def _end(e: Expr, steps: dict[Sym, int]) -> tuple[Sym, Expr] | None:
    """Of a comparison with a local that steps by one: the first value for which it fails."""
    if not isinstance(e, Compare) or e.op not in _TURNED:
        return None
    for own, end, op in ((e.left, e.right, e.op), (e.right, e.left, _TURNED[e.op])):
        if not isinstance(own, Read) or steps.get(own.sym) != (1 if op[0] == "<" else -1):
            continue
        if end.dtype is not own.dtype or not _is_arithmetic(end):
            continue
        if not _BEYOND[op]:
            return own.sym, end
        last = number(end)  # which the largest integer must not be: such a loop never ends
        if last is not None and abs(last) < _LARGE:
            return own.sym, Const(last + _BEYOND[op], end.dtype)
    return None


def _trips(first: Expr, end: Expr, step: int) -> Expr:
    """How many trips a local of 32 bits makes to its end, in 64."""
    known = number(first), number(end)
    if known[0] is not None and known[1] is not None:
        return Const(max((known[1] - known[0]) * step, 0), DType.INT64)
    sides = (_wide(end), _wide(first)) if step > 0 else (_wide(first), _wide(end))
    trips, zero = Binary("-", *sides), Const(0, DType.INT64)
    return Select(Compare("<", trips, zero), zero, trips)


def _is_arithmetic(e: Expr) -> bool:
    """Whether an expression costs little and has the same value wherever what it reads has."""
    return all(isinstance(part, _ARITHMETIC) for part in expressions(e))


def _wide(e: Expr) -> Expr:
    return e if e.dtype is DType.INT64 else Cast(e, DType.INT64)
