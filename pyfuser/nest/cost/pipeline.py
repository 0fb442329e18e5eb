"""Loop distribution where an iteration is a long chain of operations that wait for each other.

    m = ...; v = ...; w -= m / sqrt(v)     (of one step, then of the next with this w, ...)

A processor starts operations out of order, but looks only so far ahead: where the operations of
one iteration fill what it can see, its arithmetic waits for the chain. Cut into loops over a block
of iterations, each with a part of the chain, several iterations are in sight at once, for a store
and a load of the locals that pass from loop to loop. Statements keep their order.

The model is that of T. S. Karkhanis and J. E. Smith, "A First-Order Superscalar Processor Model"
(2004): a window of operations takes the latency of its longest chain, or what its units need.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from pyfuser.ir import nodes
from pyfuser.ir.dtypes import DType
from pyfuser.ir.maths import FUNCTIONS
from pyfuser.ir.nodes import Body, Expr, Stmt, Sym
from pyfuser.ir.powers import power_of
from pyfuser.ir.visit import child_expressions, expressions, statements, sym_of
from pyfuser.nest.cost.vectorisable import is_covered, vectorises
from pyfuser.nest.cost.work import cheap_declarations
from pyfuser.nest.segments import MAX_STATEMENTS, Segment, expanded, expansion, mentioned
from pyfuser.support.passes import left_out
from pyfuser.support.records import dataclass

WINDOW = 128
"""Vector operations that wait or run at a time; of Zen 3, whose schedulers hold 64 and 64 more."""

MOST = 4
"""Parts that a chain is cut into."""

GAIN = 0.75
"""What the time of an iteration has to come down to: the model is rough."""


class _Kind(NamedTuple):
    """Operations of one kind: the latency, and for how long they take their unit, in cycles.

    There is one unit for divisions and roots, and two for others. operations: how many one is.
    """

    latency: int
    busy: float
    divides: bool = False
    operations: int = 1


_SQRT, _DIVISION = _Kind(18, 8.0, True), _Kind(13, 6.0, True)
_CAST, _OTHER = _Kind(5, 1.0), _Kind(4, 0.5)
_INTEGER = _Kind(1, 0.5)  # but for products
_TIMED = frozenset(name for name, f in FUNCTIONS.items() if f.timed)
_MATHS = _Kind(80, 20.0, operations=40)  # a vector maths function: about what exp is


@dataclass(slots=True)
class _Cost:
    """Of some statements: operations, the time that units need, and when locals are known."""

    ready: dict[Sym, int]
    operations: int = 0
    waits: bool = False  # for a division, a root or a maths function
    divider: float = 0.0
    others: float = 0.0

    def count(self, kind: _Kind) -> int:
        """Note an operation; returns its latency."""
        self.operations += kind.operations
        self.waits |= kind.latency >= _DIVISION.latency
        if kind.divides:
            self.divider += kind.busy
        else:
            self.others += kind.busy
        return kind.latency

    @property
    def chain(self) -> int:
        return max(self.ready.values(), default=0)


def cut(body: Body) -> tuple[Segment, ...]:
    """The parts of a body that vectorises; none where it is better off in one loop."""
    if left_out("split-chains"):
        return ()
    if not 2 <= len(body) <= MAX_STATEMENTS or not all(map(_is_plain, body)):
        return ()
    if cheap_declarations(body):  # places of elements, perhaps, which vectors need to see
        return ()
    if not _cost(body).waits:  # measured for chains with such operations only
        return ()
    width, sizes = _vectors(body), [_cost((stmt,)).operations for stmt in body]
    before, passing = [0, *accumulate(sizes)], _passing(body)
    best = _time([body], 0, width) * GAIN
    found: tuple[Segment, ...] = ()
    for count in range(2, MOST + 1):
        segments = _parts(body, count, before, passing)
        if not segments:
            continue
        kept = len(expansion(segments))
        time = _time([part.body for part in segments], kept, width)
        if time < best:
            best, found = time, segments
    return found


def keeps_busy(trip: Body) -> bool:
    """Whether trips of a loop need their units for as long as they wait for the trip before."""
    cost = _cost(trip)
    return cost.chain <= max(cost.divider, cost.others)


def _is_plain(stmt: Stmt) -> bool:
    """Whether a statement is arithmetic of real numbers that vectorises, or sides of an If are."""
    if not isinstance(stmt, (nodes.Declare, nodes.Assign, nodes.Store, nodes.Update, nodes.If)):
        return False
    if isinstance(stmt, nodes.If):
        sides = (*stmt.then, *stmt.orelse)
        calls = any(is_covered(e) for s in statements(sides) for e in expressions(s))
        if calls or not all(map(_is_plain, sides)):
            return False
    return vectorises(stmt, frozenset()) and not any(
        e.dtype.is_complex
        or (isinstance(e, nodes.Call) and not (e.name in _TIMED or power_of(e) or is_covered(e)))
        for e in expressions(stmt)
    )


def _vectors(body: Body) -> int:
    """How many vectors of its widest numbers a loop takes at a time, to fill one of others."""
    found = [
        e.dtype.size
        for stmt in statements(body)
        for child in _values(stmt)
        for e in _arithmetic(child)
        if e.dtype is not DType.BOOL  # a mask, as wide as what was compared
    ]
    return max(found) // min(found) if found else 1


def _values(stmt: Stmt) -> list[Expr]:
    """What a statement computes, subscripts apart."""
    value = getattr(stmt, "value", None)
    return [] if value is None else [value]


def _arithmetic(e: Expr) -> list[Expr]:
    """The operations and operands of an expression, without those of subscripts."""
    below = [] if isinstance(e, nodes.Load) else list(child_expressions(e))
    return [e, *(part for child in below for part in _arithmetic(child))]


def _cost(body: Body) -> _Cost:
    """Of statements that begin with all that they read known."""
    cost = _Cost({})
    _add(body, 0, cost)
    return cost


def _add(body: Body, known: int, cost: _Cost) -> None:
    """Count statements; known: when it is that what they run under holds, 0 if they always run."""
    for stmt in body:
        if isinstance(stmt, nodes.If):
            holds = max(_ready(stmt.condition, cost), known)
            _add((*stmt.then, *stmt.orelse), holds, cost)
            continue
        at = max((_ready(value, cost) for value in _values(stmt)), default=0)
        if known and not isinstance(stmt, nodes.Declare):  # the old value, or the new one
            at = max(at, known) + cost.count(_OTHER)
        if isinstance(stmt, nodes.Update):
            at = max(at, cost.ready.get(stmt.target, 0)) + cost.count(_OTHER)
        sym = sym_of(stmt)
        if sym is not None:
            cost.ready[sym] = at


def _ready(e: Expr, cost: _Cost) -> int:
    """When an expression's value is known; its operations are counted."""
    if isinstance(e, (nodes.Read, nodes.Load)):
        return cost.ready.get(e.sym if isinstance(e, nodes.Read) else e.view, 0)
    below = max((_ready(child, cost) for child in child_expressions(e)), default=0)
    if isinstance(e, (nodes.Const, nodes.Extent)):
        return 0
    if isinstance(e, nodes.Cast):
        if e.dtype is e.operand.dtype or isinstance(e.operand, nodes.Const):
            return below
        return below + cost.count(_CAST)
    if is_covered(e):
        return below + cost.count(_MATHS)
    if isinstance(e, nodes.Call) and e.name == "sqrt":
        return below + cost.count(_SQRT)
    if isinstance(e, nodes.Binary) and e.op in ("/", "%"):
        return below + cost.count(_DIVISION)
    integer = e.dtype.is_integer and not (isinstance(e, nodes.Binary) and e.op == "*")
    return below + cost.count(_INTEGER if integer else _OTHER)


def _time(parts: Sequence[Body], kept: int, width: int) -> float:
    """Cycles for `width` vectors of iterations; a local that is kept costs a store and a load."""
    total = float(kept * width)
    for part in parts:
        cost = _cost(part)
        in_sight = max(WINDOW / max(cost.operations * width, 1), 1.0)
        busy = max(cost.divider, cost.others) * width
        total += max(busy, cost.chain / in_sight)
    return total


def _parts(
    body: Body, count: int, before: Sequence[int], passing: Sequence[int]
) -> tuple[Segment, ...]:
    """So many parts of about as many operations each, cut where the fewest locals pass.

    before: the operations before each statement, and all.
    """
    total, places = before[-1], []
    for n in range(1, count):
        first, last = total * (n - 0.3) / count, total * (n + 0.3) / count
        middle = total * n / count
        near = [k for k in range(1, len(body)) if first <= before[k] <= last]
        if not near:  # a statement is long
            near = [min(range(1, len(body)), key=lambda k: abs(before[k] - middle))]
        places.append(min(near, key=lambda k: (passing[k], abs(before[k] - middle))))
    ends = [0, *places, len(body)]
    parts = [body[a:b] for a, b in pairwise(ends)]
    return expanded(parts, [True] * count, {}) if all(parts) else ()


def _passing(body: Body) -> list[int]:
    """For each place, how many locals are declared before it and used behind it."""
    home: dict[Sym, int] = {}
    last: dict[Sym, int] = {}
    for n, stmt in enumerate(body):
        if isinstance(stmt, nodes.Declare):
            home[stmt.sym] = n
        reads, writes = mentioned((stmt,))
        last |= dict.fromkeys(reads | writes, n)
    change = [0] * (len(body) + 1)
    for sym, n in home.items():
        change[n + 1] += 1
        change[last[sym] + 1] -= 1
    return list(accumulate(change))
