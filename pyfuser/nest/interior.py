"""What a body is where the conditions on its indices hold the same way, and how to find out where.

See `passes.split_conditions` for what it serves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce
from itertools import product
from typing import NamedTuple, cast

from pyfuser.ir import nodes
from pyfuser.ir.affine import Linear, linear
from pyfuser.ir.affine import number as value_of
from pyfuser.ir.definitions import expand, stable_locals
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Binary,
    Body,
    Cast,
    Compare,
    Const,
    Expr,
    For,
    Logical,
    Read,
    Stmt,
    Sym,
    Unary,
    While,
    Workunit,
)
from pyfuser.ir.visit import (
    all_expressions,
    assigned,
    contains,
    expressions,
    map_body,
    map_expression,
    reads,
    statements,
)
from pyfuser.nest.corrections import kept_first
from pyfuser.nest.cost.gathers import chosen
from pyfuser.nest.cost.work import body_cost
from pyfuser.nest.nodes import wide
from pyfuser.nest.settled import settled
from pyfuser.transform.unroll import written_out
from pyfuser.transform.unused import without_unread_locals
from pyfuser.tuning.thresholds import Tuning

FARTHEST = 1 << 30
"""Indices beyond this are never inside: a sum of one and of a few small numbers has 32 bits."""

_SMALL = 1 << 26
"""The most that is little: a constant, a scalar, or the variable of a loop."""

LITTLE = 1 << 28
"""The most that all that is little may be together: less than what FARTHEST leaves."""

EDGE = 64
"""Elements that an edge may have: `i < 2` is one, `i < 1000` is not; a row has more."""

_WHOLE = (DType.INT32, DType.INT64)
_SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


class Interior(NamedTuple):
    """What a block of iterations runs if it is inside.

    tests: of the block's first and last iteration, to be made in order; if all hold it is.
    """

    body: Body
    tests: tuple[Expr, ...]
    first: Sym
    last: Sym


def interior(
    workunit: Workunit, axis: int, fresh: Callable[[str, DType], Sym], tuning: Tuning
) -> Interior | None:
    """How a block of iterations along an axis runs inside; None if little is asked of indices.

    `fresh(name, dtype)` makes the Syms for the first and the last iteration, and in loops.
    """
    body, indices = workunit.body, workunit.indices
    if not assigned(body).isdisjoint(indices) or contains(body, While):
        return None
    found = _Conditions(workunit, axis)
    inside_body = found.count(found.settle(body), fresh, tuning)
    index = indices[axis]
    cost, gathers = body_cost(inside_body), chosen(body, index) - chosen(inside_body, index)
    saved = body_cost(body) - cost + gathers * tuning.gather
    less = found.conditions and saved * tuning.condition_gain >= cost
    if not less and not found.counted:
        return None
    first, last = fresh("first", DType.INT64), fresh("last", DType.INT64)
    return Interior(inside_body, tuple(found.tests(first, last)), first, last)


class _Condition(NamedTuple):
    """`varying op limit`, where the first is monotone, or made of indices of other axes.

    inside: whether it holds there. core: of the first, without what is little; see `_core`.
    """

    varying: Expr
    op: str
    limit: Expr
    inside: bool
    core: Expr | None


class _Conditions:
    """The conditions of a body that depend on its indices."""

    def __init__(self, workunit: Workunit, axis: int) -> None:
        changing = assigned(workunit.body)
        self._index = workunit.indices[axis]
        self._sums = {accumulator.sym for accumulator in workunit.accumulators}
        self._others = {sym for sym in workunit.indices if sym != self._index}
        self._stable = stable_locals(workunit.body)
        self._scalars = {p.sym for p in workunit.params if not p.rank and p.sym.dtype in _WHOLE}
        self._scalars -= changing
        self._given = self._scalars | self._others
        loops = [s for s in statements(workunit.body) if isinstance(s, For)]
        self._ranges = {
            loop.sym: known
            for loop in loops
            if loop.sym not in changing and (known := self._range_of(loop)) is not None
        }
        self.conditions: dict[_Condition, None] = {}
        self.counted: dict[Expr, Expr] = {}
        self._kept: set[Expr] = set()  # comparisons that hold inside, see `corrections`
        self._firm: set[tuple[Expr | None, str, Expr]] = set()

    def _range_of(self, loop: For) -> tuple[Expr, Expr] | None:
        """Between which values a loop's variable stays, if no iteration changes them."""
        step = value_of(loop.step)
        ends = loop.start, loop.stop
        if not step or not all(map(self._is_bound, ends)):
            return None
        one = Const(1, loop.stop.dtype)
        if step > 0:
            return loop.start, Binary("-", loop.stop, one)
        return Binary("+", loop.stop, one), loop.start

    def settle(self, body: Body) -> Body:
        """The body as it runs inside: where a condition chose a local's value, that value is known
        to the next (`min(max(i - 1, 0), n - 1)`).
        """
        body, self._kept = kept_first(body, lambda e: self._is_bound(expand(e, self._stable)))
        self._firm |= self._firmly(body)
        while (inside_body := settled(body, self._verdict)) != body:
            body, self._stable = inside_body, stable_locals(inside_body)
            self._firm |= self._firmly(body)
        return body

    def _firmly(self, body: Body) -> set[tuple[Expr | None, str, Expr]]:
        """What is compared with what, and which way, if that holds inside (see `_verdict`)."""
        asked = [self._asked(e) for e in all_expressions(body) if isinstance(e, Compare)]
        return {_way(each) for each in asked if each and each.core is not None and each.inside}

    def _verdict(self, e: Compare) -> bool | None:
        """Whether a comparison holds inside; None if it may be any.

        Where `i + 1 < n` does, `i - 1 < n` does.
        """
        condition = self._asked(e)
        if condition is None:
            return None
        if e in self._kept or _way(condition) in self._firm:
            condition = condition._replace(inside=True)
        self.conditions[condition] = None
        return condition.inside

    def _asked(self, e: Compare) -> _Condition | None:
        """A comparison of an index with what is given, and whether it seems to hold inside."""
        left, right = expand(e.left, self._stable), expand(e.right, self._stable)
        op = e.op
        if self._is_bound(left):
            left, right, op = right, left, _SWAPPED[op]
        if not self._is_given(right):
            return None
        core, shift = self._core(left), 0
        if core is None and not (self._is_given(left) and self._asks_others(left)):
            return None
        if core is not None:
            form = linear(left, _keeps)
            shift = sum(form.terms.values()) - 1 + form.constant
        return _Condition(left, op, right, _holds(op, right, shift), core)

    def count(self, body: Body, fresh: Callable[[str, DType], Sym], tuning: Tuning) -> Body:
        """The body as it runs inside, with loops whose bounds grow alike counted from 0: they make
        the same trips in all iterations (`range(i - r, i + r + 1)`).
        """

        def change(stmt: Stmt) -> Stmt | Body:
            if not isinstance(stmt, For) or value_of(stmt.step) != 1:
                return stmt
            if stmt.sym.dtype not in _WHOLE or stmt.sym in assigned(stmt.body):
                return stmt
            start, stop = (expand(e, self._stable) for e in (stmt.start, stmt.stop))
            cores = [self._parts(e)[0] for e in (start, stop)]
            own = [Read(sym) for sym in (self._index, *self._others)]
            if cores[0] != cores[1] or cores[0] not in own:
                return stmt
            trips = linear(stop, _keeps).plus(linear(start, _keeps), -1)
            self.counted |= {start: cores[0], stop: cores[1]}
            made = _counted(stmt, start, trips, fresh)
            if trips.terms or self._adds_freely(stmt.body):
                return made
            return written_out(made, range(trips.constant), tuning, fresh)

        return without_unread_locals(map_body(body, None, change))

    def _adds_freely(self, body: Body) -> bool:
        """Whether the order of a sum depends on which loops are loops (see `nest.sums`)."""
        free = (s for s in statements(body) if isinstance(s, nodes.Update) and not s.indices)
        return not assigned(body).isdisjoint(self._sums) or any(free)

    def _asks_others(self, e: Expr) -> bool:
        return not reads(e).isdisjoint(self._others)

    def _is_bound(self, e: Expr) -> bool:
        """Whether an integer is the same in all iterations."""
        return self._is_given(e) and not self._asks_others(e)

    def _is_given(self, e: Expr) -> bool:
        """Whether an integer is the same in all of a block, and costs nothing to compute again."""
        return all(
            isinstance(part, (Const, nodes.Extent, Cast))
            or (isinstance(part, Read) and part.sym in self._given)
            or (isinstance(part, (Binary, Unary)) and part.op in ("+", "-", "*"))
            or _is_part(part)
            for part in expressions(e)
        ) and all(part.dtype in _WHOLE for part in expressions(e))

    def _core(self, e: Expr) -> Expr | None:
        """The index to which what is little is added, its remainder or quotient, or in loops the
        index of another axis: else that is given.
        """
        core, _ = self._parts(e)
        if isinstance(core, Binary) and core.op in ("%", "/") and self._is_given(core.right):
            left, inner = self._parts(core.left)
            period = value_of(core.right)
            if core.op == "%" and period is not None and period <= EDGE:
                return None  # no block is within one
            return core if self._is_index(left) and inner is not None else None
        if self._is_index(core):
            return core
        other = isinstance(core, Read) and core.sym in self._others
        return core if other and self._loop_variables(e) else None

    def _parts(self, e: Expr) -> tuple[Expr, int | None]:
        """An integer without casts and what is little, and the sum of that; None: no constant."""
        room, added = LITTLE, cast(int | None, 0)
        while True:
            if isinstance(e, Cast) and e.dtype in _WHOLE and e.operand.dtype in _WHOLE:
                e = e.operand
                continue
            if not (isinstance(e, Binary) and e.op in ("+", "-")):
                return e, added
            for part, rest in ((e.right, e.left), (e.left, e.right)):
                size = self._size(part)
                if size is None or size > room or (e.op == "-" and part is e.left):
                    continue
                value, room = value_of(part), room - size
                if added is not None:
                    sign = 1 if e.op == "+" else -1
                    added = None if value is None else added + sign * value
                e = rest
                break
            else:
                return e, added

    def _size(self, e: Expr) -> int | None:
        """How large what is made of constants, scalars and loops' variables may be; else None."""
        value = value_of(e)
        if value is not None:
            return abs(value) if abs(value) <= _SMALL else None
        match e:
            case Read() if e.sym in self._ranges or e.sym in self._scalars:
                return _SMALL  # which is tested
            case Cast() if e.dtype in _WHOLE and e.operand.dtype in _WHOLE:
                return self._size(e.operand)
            case Binary() if _is_part(e) and not self._loop_variables(e):
                return self._size(e.left)  # of one, `t - t // 2 * 2` is neither way along the loop
            case Binary(op="+" | "-" | "*"):
                left, right = self._size(e.left), self._size(e.right)
                if left is not None and right is not None:
                    return left * right if e.op == "*" else left + right
        return None

    def _is_index(self, e: Expr) -> bool:
        return e == Read(self._index)

    def tests(self, first: Sym, last: Sym) -> Iterator[Expr]:
        """All that a block's ends must meet; what would trap comes after what rules it out."""

        def at(end: Sym, e: Expr) -> Expr:
            own: Expr = Read(end)
            if self._index.dtype is not DType.INT64:
                own = Cast(own, self._index.dtype)
            return map_expression(e, lambda part: own if self._is_index(part) else part)

        yield Compare(">=", Read(first), Const(-FARTHEST, DType.INT64))
        yield Compare("<=", Read(last), Const(FARTHEST, DType.INT64))
        yield from self._little()
        cores = dict.fromkeys(c.core for c in self.conditions)
        for core in cores:
            if not isinstance(core, Binary):
                continue
            yield Compare(">", core.right, Const(0, core.dtype))  # below, quotients fall
            if core.op == "%":  # i - i % m never falls: where it is the same, i % m rises with i
                steps = Binary("-", at(last, core), at(first, core))
                yield Compare("==", wide(steps), Binary("-", Read(last), Read(first)))
        for varying, op, limit, inside, _ in self._strictest():
            ends = [*dict.fromkeys(at(e, c) for c in self._corners(varying) for e in (first, last))]
            if op in ("==", "!="):
                above, below = (
                    reduce(both, cast(list[Expr], [Compare(way, end, limit) for end in ends]))
                    for way in "><"
                )
                yield Logical("||", above, below)
                continue
            for end in ends:
                test = Compare(op, end, limit)
                yield test if inside else Unary("!", test, DType.BOOL)

    def _loop_variables(self, e: Expr) -> list[Sym]:
        return [sym for sym in self._ranges if sym in reads(e)]

    def _corners(self, varying: Expr) -> Iterator[Expr]:
        """What is compared, with the least and the largest values of the loops' variables."""
        variables = self._loop_variables(varying)
        for ends in product(*(self._ranges[sym] for sym in variables)):
            corner = varying
            for sym, bound in zip(variables, ends, strict=True):
                corner = _with(corner, sym, _like(bound, sym.dtype))
            yield corner

    def _little(self) -> Iterator[Expr]:
        """Tests that what is added to indices is as little as `_parts` has it, and indices of other
        axes are no larger than this one's.
        """
        cores = self.counted | {c.varying: c.core for c in self.conditions if c.core is not None}
        added = {sym: None for varying, core in cores.items() for sym in _added(varying, core)}
        for bound in dict.fromkeys(end for sym in added for end in self._ends(sym)):
            if not _is_small(bound):
                yield Compare(">=", wide(bound), Const(-_SMALL, DType.INT64))
                yield Compare("<=", wide(bound), Const(_SMALL, DType.INT64))
        for core in dict.fromkeys(cores.values()):
            if isinstance(core, Read) and core.sym in self._others:
                yield Compare(">=", wide(core), Const(-FARTHEST, DType.INT64))
                yield Compare("<=", wide(core), Const(FARTHEST, DType.INT64))

    def _ends(self, sym: Sym) -> tuple[Expr, ...]:
        return (Read(sym),) if sym in self._scalars else self._ranges.get(sym, ())

    def _strictest(self) -> list[_Condition]:
        """The conditions that imply the others: of `i - 1 >= 0` and `i - 2 >= 0` the second."""
        found: dict[object, tuple[int, _Condition]] = {}
        for condition in self.conditions:
            varying, op, limit, inside, core = condition
            if core is None or op in ("==", "!="):
                found[condition] = 0, condition
                continue
            terms, added = linear(varying, _keeps)  # of what is little, no sum wraps around
            key = (core, op, limit, inside, frozenset(terms.items()))
            below = (op in ("<", "<=")) == inside  # it holds below the limit
            if key not in found or (added > found[key][0]) == below:
                found[key] = added, condition
        return [condition for _, condition in found.values()]


def _way(condition: _Condition) -> tuple[Expr | None, str, Expr]:
    way = condition.op if condition.op in ("==", "!=") else condition.op[0]
    return condition.core, way, condition.limit


def both(one: Expr, other: Expr) -> Expr:
    return Logical("&&", one, other)


def _added(e: Expr, core: Expr) -> Iterator[Sym]:
    """What an expression reads beside its core."""
    own = Counter(part.sym for part in expressions(core) if isinstance(part, Read))
    for sym, count in Counter(p.sym for p in expressions(e) if isinstance(p, Read)).items():
        if count > own[sym]:
            yield sym


# law: True
def _is_part(e: Expr) -> bool:
    """Whether it is a part of an integer, by a constant: half of a window, no larger than that."""
    divisor = value_of(e.right) if isinstance(e, Binary) and e.op == "/" else None
    return divisor is not None and divisor > 0


def _with(e: Expr, sym: Sym, value: Expr) -> Expr:
    return map_expression(e, lambda part: value if part == Read(sym) else part)


def _like(e: Expr, dtype: DType) -> Expr:
    return e if e.dtype is dtype else Cast(e, dtype)


def _is_small(e: Expr) -> bool:
    return (value := value_of(e)) is not None and abs(value) <= _SMALL


def _counted(loop: For, start: Expr, trips: Linear, fresh: Callable[[str, DType], Sym]) -> For:
    """A loop counted from 0."""
    k = loop.sym
    turn = fresh(k.name, k.dtype)
    value = Binary("+", _like(start, k.dtype), Read(turn))
    count: Expr = Const(trips.constant, k.dtype)
    for term, factor in trips.terms.items():
        part: Expr = _like(term, k.dtype)
        part = part if factor == 1 else Binary("*", part, Const(factor, k.dtype))
        count = Binary("+", part, count)
    body = map_body(loop.body, lambda e: value if e == Read(k) else e)
    return replace(loop, sym=turn, start=Const(0, k.dtype), stop=count, body=body)


def _keeps(e: Cast) -> bool:
    """Whether a conversion keeps the values of places inside."""
    return e.dtype in _WHOLE and e.operand.dtype in _WHOLE


def _holds(op: str, limit: Expr, shift: int) -> bool:
    """Whether an index is so inside: at neither end. shift: beyond the index if it is positive."""
    while isinstance(limit, Cast):
        limit = limit.operand
    if op in ("==", "!="):
        return op == "!="
    if op in ("<", "<="):
        if isinstance(limit, Const) and type(limit.value) is int:
            return limit.value > EDGE
        return shift >= 0
    near_end = isinstance(limit, Binary) and limit.op == "-" and _is_small(limit.right)
    beyond = shift > 0 and not isinstance(limit, Const)
    return not (near_end or beyond or isinstance(limit, nodes.Extent))
