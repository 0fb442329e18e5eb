"""Compute subscripts in 64 bits where the 32-bit ones provably do not overflow.

The language computes `x[i + 1]` in 32-bit integers. A compiler that has to respect their wrapping
cannot see that neighbouring iterations touch neighbouring elements, and does not vectorise. For
the bounds and scalars of one trace, interval arithmetic shows where nothing wraps; there the
index variables, and stable locals that hold subscripts, become 64-bit. Used by engines that emit
C++; the PyKokkos source keeps the user's types.

What is proved for some bounds holds for narrower ones, as every rule of interval arithmetic keeps
inclusion. So the proof is tried for much wider bounds than asked for: where it still shows the
same, the code is kept for all sizes up to those.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from pyfuser.analysis.intervals import Interval, interval
from pyfuser.ir.canonical import fresh
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    AtomicFetch,
    Binary,
    Body,
    Cast,
    Const,
    Declare,
    Expr,
    For,
    Load,
    Read,
    Select,
    Stmt,
    Store,
    Sym,
    Unary,
    Update,
    Workunit,
)
from pyfuser.ir.visit import assigned, map_body, statements
from pyfuser.support.caches import Table
from pyfuser.transform.kernel import Kernel

_INT32 = (-(2**31), 2**31 - 1)


_LIMITS = (2**30, 2**24, 2**16)
"""Bounds up to which a proof is tried to hold."""

_SMALL = (2, 2)
"""What these cannot show (of an element of a view, plus or times them) no other values can."""

MAX_WORKUNITS = 1024
MAX_PROOFS = 16

Ranges = dict[Sym, Interval]


class Proof(NamedTuple):
    """The widened code of a workunit, right while each Sym stays in its range."""

    ranges: Ranges
    widened: Workunit

    # law: True
    def covers(self, ranges: Ranges) -> bool:
        """Whether it holds for all values in other ranges, of the same Syms."""
        known = self.ranges
        return known.keys() == ranges.keys() and all(
            known[sym][0] <= low and high <= known[sym][1] for sym, (low, high) in ranges.items()
        )


_PROOFS: Table[Workunit, list[Proof]] = Table("widened workunits", MAX_WORKUNITS)


def widen(kernel: Kernel) -> Kernel:
    """The kernel with 64-bit indices and subscripts, wherever that changes no value."""
    return replace(kernel, workunit=proof_of(kernel.workunit, kernel.ranges()).widened)


def proof_of(workunit: Workunit, ranges: Ranges) -> Proof:
    """The widened code of a workunit for some ranges, and for which others it is right."""
    proofs = _PROOFS.get(workunit)
    if proofs is None:
        proofs = _PROOFS.keep(workunit, [])
    proof = next((proof for proof in proofs if proof.covers(ranges)), None)
    if proof is None:
        proof = _prove(workunit, ranges)
        del proofs[: len(proofs) + 1 - MAX_PROOFS]
        proofs.append(proof)
    return proof


# law
def _prove(workunit: Workunit, ranges: Ranges) -> Proof:
    """The workunit widened for these ranges, and for the widest that show the same.

    What these ranges are too wide to show is tried again for others.
    """
    exact = _Widener(workunit, ranges)
    narrow = _Widener(workunit, dict.fromkeys(ranges, _SMALL))
    if all(exact.decisions) or narrow.decisions == exact.decisions:
        for limit in _LIMITS:
            wider = {sym: (min(low, 0), max(high, limit)) for sym, (low, high) in ranges.items()}
            if _Widener(workunit, wider).decisions == exact.decisions:
                return Proof(wider, exact.widened)
    return Proof(ranges, exact.widened)


class _Widener:
    """decisions: what was shown, question by question; the code follows from that."""

    def __init__(self, workunit: Workunit, ranges: Ranges) -> None:
        self.ranges = dict(ranges)
        self.changing = assigned(workunit.body)
        self.wide: dict[Sym, Sym] = {}  # 32-bit symbol -> its 64-bit twin
        self.twins: set[Sym] = set()
        self.decisions: list[bool] = []
        self.learn(workunit.body)
        for sym in workunit.indices:
            self.add(sym)
        body = self.body(workunit.body)
        indices = tuple(self.wide.get(s, s) for s in workunit.indices)
        self.widened = replace(workunit, indices=indices, body=body)

    def add(self, sym: Sym) -> None:
        """Give a 32-bit symbol whose range is known a 64-bit twin."""
        if sym.dtype is DType.INT32 and sym in self.ranges and sym not in self.changing:
            twin = self.wide[sym] = fresh(sym.name, DType.INT64)
            self.twins.add(twin)
            self.ranges[twin] = self.ranges[sym]

    # law
    def learn(self, body: Body) -> None:
        """Find the ranges of loop variables and stable integer locals, outermost first."""
        for stmt in statements(body):
            if isinstance(stmt, Declare) and stmt.sym not in self.changing:
                known = None if stmt.value is None else interval(stmt.value, self.ranges)
            elif isinstance(stmt, For) and stmt.sym not in self.changing:
                known = self._trips(stmt)
            else:
                continue
            self.decisions.append(
                known is not None and stmt.sym.dtype is DType.INT32 and _inside(known)
            )
            if known is not None and self.decisions[-1]:
                self.ranges[stmt.sym] = known
                self.add(stmt.sym)

    # law
    def _trips(self, loop: For) -> Interval | None:
        """The range of an upward loop's variable inside its body."""
        start, stop = interval(loop.start, self.ranges), interval(loop.stop, self.ranges)
        step = loop.step.value if isinstance(loop.step, Const) else None
        if start is None or stop is None or not isinstance(step, int) or step <= 0:
            return None
        if stop[1] + step > _INT32[1]:
            return None  # the increment that ends the loop would wrap
        return start[0], max(start[0], stop[1] - 1)

    # --- rewriting

    def body(self, body: Body) -> Body:
        return map_body(body, self._narrow_reads, self._statement)

    def _narrow_reads(self, expr: Expr) -> Expr:
        """Outside subscripts a widened symbol is still the 32-bit value it was."""
        if isinstance(expr, Read) and expr.sym in self.wide:
            return Cast(Read(self.wide[expr.sym]), DType.INT32)
        if isinstance(expr, (Load, AtomicFetch)):
            return replace(expr, indices=tuple(map(self._index, expr.indices)))
        return expr

    def _statement(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, (Store, Update)) and stmt.indices:
            return replace(stmt, indices=tuple(map(self._index, stmt.indices)))
        if isinstance(stmt, Declare) and stmt.sym in self.wide:
            assert stmt.value is not None
            return Declare(self.wide[stmt.sym], self._subscript(stmt.value))
        if isinstance(stmt, For) and stmt.sym in self.wide:
            return replace(
                stmt,
                sym=self.wide[stmt.sym],
                start=self._subscript(stmt.start),
                stop=self._subscript(stmt.stop),
                step=self._subscript(stmt.step),
            )
        return stmt

    def _index(self, expr: Expr) -> Expr:
        """An element's subscript in 64 bits.

        A sum of what nothing is known of (an element of a view, say) and of a counter that is not
        negative can wrap to negative numbers only, which are no subscripts.
        """
        if not isinstance(expr, Binary) or expr.op != "+" or expr.dtype is not DType.INT32:
            return self._subscript(expr)
        if self._exact(expr) or self._wraps_below(expr):
            return Binary("+", self._subscript(expr.left), self._subscript(expr.right))
        return Cast(expr, DType.INT64)

    # law: True
    def _wraps_below(self, total: Binary) -> bool:
        known = [interval(addend, self.ranges) for addend in (total.left, total.right)]
        counters = [
            low[0] >= 0
            for addend, low in zip((total.left, total.right), known, strict=True)
            if low is not None and isinstance(addend, Cast) and self._is_twin(addend)
        ]
        self.decisions.append(any(low in (None, _INT32) for low in known) and any(counters))
        return self.decisions[-1]

    def _subscript(self, expr: Expr) -> Expr:
        """A 32-bit integer expression (its reads already narrowed) in 64 bits."""
        if expr.dtype is not DType.INT32:
            return expr
        if isinstance(expr, Const):
            return Const(expr.value, DType.INT64)
        if isinstance(expr, Cast) and expr.operand.dtype is DType.INT64 and self._is_twin(expr):
            return expr.operand
        if isinstance(expr, Binary) and expr.op in ("+", "-", "*") and self._exact(expr):
            return Binary(expr.op, self._subscript(expr.left), self._subscript(expr.right))
        if isinstance(expr, Unary) and expr.op == "-" and self._exact(expr):
            return Unary("-", self._subscript(expr.operand), DType.INT64)
        if isinstance(expr, Select):
            return Select(expr.condition, self._subscript(expr.then), self._subscript(expr.orelse))
        return Cast(expr, DType.INT64)

    def _is_twin(self, expr: Cast) -> bool:
        return isinstance(expr.operand, Read) and expr.operand.sym in self.twins

    # law: True
    def _exact(self, expr: Expr) -> bool:
        """Whether the value of an expression of 32 bits never leaves these."""
        self.decisions.append(interval(expr, self.ranges) is not None)
        return self.decisions[-1]


def _inside(known: Interval) -> bool:
    return _INT32[0] <= known[0] and known[1] <= _INT32[1]
