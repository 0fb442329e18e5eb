"""What the branches and loops around an access say of integers, in microseconds.

    for d in range(count):                 d >= 0 and count - 1 - d >= 0
        if d > 0:                          d - 1 >= 0
            y[i] = x[d - 1]                so d - 1 is at least 0

The law. A guard holds wherever its accesses are reached: it is a part of each condition on the way,
and what it reads (parameters, indices, variables of loops) keeps its value in between. It says
something of the mathematical values if no part of it wraps and the comparison is of values of one
type. Then `form >= 0`, so a subscript s is at most `s + form` and at least `s - form`, in which
what both have in common is gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from pyfuser.analysis.affine import Interval
from pyfuser.analysis.intervals import fits, interval
from pyfuser.ir.accesses import ElementAccess, own_accesses
from pyfuser.ir.affine import Linear, everywhere, linear
from pyfuser.ir.definitions import expand, stable_locals
from pyfuser.ir.dtypes import common_type
from pyfuser.ir.nodes import (
    Body,
    Compare,
    Const,
    Expr,
    For,
    If,
    Logical,
    Read,
    Select,
    Stmt,
    Sym,
    Unary,
)
from pyfuser.ir.visit import (
    assigned,
    bodies,
    child_expressions,
    expressions,
    reads,
    statements,
)


class Guard(NamedTuple):
    """`most - least - gap >= 0`, of integers as the code computes them."""

    least: Expr
    most: Expr
    gap: int


Guards: TypeAlias = tuple[Guard, ...]


def guarded_accesses(body: Body, given: frozenset[Sym]) -> Iterator[tuple[ElementAccess, Guards]]:
    """Every access in the order of the code, with the guards around it. given: what has a value."""
    yield from _Walk(body, given).body(body, ())


class _Walk:
    """Gathers guards on the way down. fixed: what keeps its value between a guard and an access.

    Elements of views may change in between; no subscript that is judged is one, and of an element
    in a guard counts only what its type holds.
    """

    def __init__(self, body: Body, given: frozenset[Sym]) -> None:
        loops = Counter(stmt.sym for stmt in statements(body) if isinstance(stmt, For))
        once = {sym for sym, count in loops.items() if count == 1}
        self._fixed = (given | once) - assigned(body)
        self._values = stable_locals(body)

    def body(self, body: Body, guards: Guards) -> Iterator[tuple[ElementAccess, Guards]]:
        for stmt in body:
            yield from self._part(stmt, guards)
            if isinstance(stmt, If):
                yield from self.body(stmt.then, guards + self._of(stmt.condition, True))
                yield from self.body(stmt.orelse, guards + self._of(stmt.condition, False))
                continue
            inner = guards + self._trips(stmt) if isinstance(stmt, For) else guards
            for each in bodies(stmt):
                yield from self.body(each, inner)

    # law
    def _part(self, part: Expr | Stmt, guards: Guards) -> Iterator[tuple[ElementAccess, Guards]]:
        """The accesses of an expression, or of a statement itself."""
        if not any(isinstance(e, (Logical, Select)) for e in expressions(part)):
            yield from ((access, guards) for access in own_accesses(part))
            return
        yield from ((access, guards) for access in own_accesses(part) if access.node is part)
        for child in child_expressions(part):
            under = guards
            if isinstance(part, Select) and child is not part.condition:
                under += self._of(part.condition, child is part.then)
            elif isinstance(part, Logical) and child is part.right:
                under += self._of(part.left, part.op == "&&")
            yield from self._part(child, under)

    # law: ()
    def _of(self, condition: Expr, holds: bool) -> Guards:
        """What follows if a condition holds, or does not."""
        match condition:
            case Logical() if (condition.op == "&&") is holds:
                return self._of(condition.left, holds) + self._of(condition.right, holds)
            case Unary(op="!"):
                return self._of(condition.operand, not holds)
            case Compare():
                op = condition.op if holds else _OPPOSITE[condition.op]
                return self._compared(op, condition.left, condition.right)
        return ()

    # law: ()
    def _compared(self, op: str, left: Expr, right: Expr) -> Guards:
        left, right = expand(left, self._values), expand(right, self._values)
        if not reads(left, right) <= self._fixed:
            return ()
        if op == "==":
            return Guard(left, right, 0), Guard(right, left, 0)
        if op in ("<", "<="):
            return (Guard(left, right, int(op == "<")),)
        return (Guard(right, left, int(op == ">")),) if op in (">", ">=") else ()

    # law: ()
    def _trips(self, loop: For) -> Guards:
        """What holds in a loop that counts up by one; its end is compared in each trip."""
        if not isinstance(loop.step, Const) or loop.step.value != 1:
            return ()
        found = self._compared("<", Read(loop.sym), loop.stop)
        if loop.start.dtype is loop.sym.dtype:
            found += self._compared(">=", Read(loop.sym), loop.start)
        return found


_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


# law: not None
def bounds(
    index: Expr, guards: Sequence[Guard], ranges: Mapping[Sym, Interval], extent: int
) -> Interval | None:
    """Bounds on a subscript where all guards hold, as narrow as is needed for an extent.

    None: a part of it may wrap. index: with stable locals replaced, as those of guards are.
    """
    known = interval(index, ranges)
    if known is None or not guards or (known[0] >= 0 and known[1] < extent):
        return known
    form, (low, high) = linear(index, everywhere), known
    for guard in guards:
        distance = _distance(guard, ranges)
        if distance is not None:
            low = max(low, _span(form.plus(distance, -1), ranges)[0])
            high = min(high, _span(form.plus(distance), ranges)[1])
    return low, high


# law: not None
def _distance(guard: Guard, ranges: Mapping[Sym, Interval]) -> Linear | None:
    """What is at least 0 where a guard holds; None: its values may wrap or be converted."""
    least, most = interval(guard.least, ranges), interval(guard.most, ranges)
    common = common_type(guard.least.dtype, guard.most.dtype)
    if least is None or most is None or not fits(most, common):
        return None  # a negative `least` that is compared as unsigned is more than it is
    form = linear(guard.most, everywhere).plus(linear(guard.least, everywhere), -1)
    return Linear(form.terms, form.constant - guard.gap)


# law
def _span(form: Linear, ranges: Mapping[Sym, Interval]) -> Interval:
    low = high = form.constant
    for term, factor in form.terms.items():
        least, most = interval(term, ranges) or term.dtype.range()
        low += min(factor * least, factor * most)
        high += max(factor * least, factor * most)
    return low, high
