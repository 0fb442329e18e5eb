"""Fuse equal loops inside one iteration: `for j: A` and `for j: B` become `for j: A; B`.

Fusing calls puts row loops one after the other. In one loop their values can stay in locals, and
a row that only they use needs no memory. The law is that of fusion, one level down: two trips
j of A and k of B that touch one element, at least one of them writing, must have j = k. It is
proved by syntax: both loops name every such element by the same subscripts, one of which is the
loop's variable plus what is fixed during the loops.

A loop that changes a value (a local or an accumulator) is joined to one that does not, or that only
adds to values, only if it does nothing but add, too. Engines add up such sums in blocks
(`nest.passes.row_sums`), so that the terms are vectors; any other value passes from trip to
trip, and would keep the other loop from being vectorised (and itself from running beside other
iterations' loops, see `nest.passes.unroll_and_jam`).
"""

from __future__ import annotations

from dataclasses import replace

from pyfuser.ir.accesses import accesses
from pyfuser.ir.affine import linear
from pyfuser.ir.definitions import expand, stable_locals
from pyfuser.ir.dtypes import DType
from pyfuser.ir.effects import effects_of, only_combines
from pyfuser.ir.nodes import (
    AtomicFetch,
    Binary,
    Body,
    Break,
    Call,
    Cast,
    Const,
    Continue,
    Declare,
    Eval,
    Expr,
    For,
    Load,
    Read,
    Scratch,
    Stmt,
    Sym,
    While,
)
from pyfuser.ir.visit import (
    assigned,
    contains,
    declared,
    expressions,
    leaves_loop,
    reads,
    statements,
    substitute_syms,
)
from pyfuser.support.records import dataclass
from pyfuser.transform.kernel import Kernel


def fuse_inner_loops(kernel: Kernel) -> Kernel:
    """The kernel with neighbouring equal loops of its body joined, where that is legal."""
    body = kernel.workunit.body
    if sum(isinstance(stmt, For) for stmt in body) < 2:
        return kernel
    overlapping = {sym for pair in kernel.overlaps for sym in pair}
    joiner = _Joiner(stable_locals(body), assigned(body), overlapping)
    return replace(kernel, workunit=replace(kernel.workunit, body=joiner.join(body)))


class _Joiner:
    def __init__(self, stable: dict[Sym, Expr], changing: set[Sym], overlapping: set[Sym]) -> None:
        self.stable = stable
        self.changing = changing
        self.overlapping = overlapping

    def join(self, body: Body) -> Body:
        """Append each loop to the last one of its kind, past declarations it does not need."""
        result: list[Stmt] = []
        last: int | None = None  # where in `result` the loop stands that may still grow
        passed: list[Stmt] = []  # declarations after it, which go before it if it grows
        for stmt in body:
            if last is not None and isinstance(stmt, For):
                joined = self._joined(result[last], stmt)
                if joined is not None:
                    result[last:] = [*passed, joined]
                    last += len(passed)
                    passed = []
                    continue
            elif last is not None and _may_move_up(stmt, result[last]):
                passed.append(stmt)
                continue
            result += passed
            passed = []
            last = len(result) if isinstance(stmt, For) else None
            result.append(stmt)
        return (*result, *passed)

    # law: not None
    def _joined(self, first: Stmt, second: For) -> For | None:
        assert isinstance(first, For)
        if not self._same_trips(first, second):
            return None
        body = substitute_syms(second.body, {second.sym: first.sym})
        a, b = _Effects.of(first.body), _Effects.of(body)
        if a is None or b is None:
            return None
        if a.changed & (b.read | b.changed) or b.changed & a.read:
            return None
        if (a.changed or b.changed) and _kinds(first.body) != _kinds(body):
            return None
        if _only_adds(first.body, a) != _only_adds(body, b):
            return None
        views = (a.written & (b.loaded | b.written)) | (b.written & a.loaded)
        touched = (a.written | b.written) & self.overlapping
        if touched or not all(self._own_element(v, (*first.body, *body), first.sym) for v in views):
            return None
        shared = first.shared and second.shared
        return replace(first, body=(*first.body, *body), shared=shared)

    def _same_trips(self, first: For, second: For) -> bool:
        """Whether both loops certainly make the same trips, whatever the first one does."""
        bounds = []
        for loop in (first, second):
            if loop.sym in self.changing or any(map(leaves_loop, loop.body)):
                return False
            parts = (loop.start, loop.stop, loop.step)
            bounds.append(tuple(expand(part, self.stable) for part in parts))
        fixed = all(
            not isinstance(e, (Load, AtomicFetch, Call))
            and not (isinstance(e, Read) and e.sym in self.changing)
            for part in bounds[0]
            for e in expressions(part)
        )
        return fixed and bounds[0] == bounds[1] and first.sym.dtype is second.sym.dtype

    def _own_element(self, view: Sym, body: Body, variable: Sym) -> bool:
        """Whether all accesses name one element, another one in each trip."""
        inside = set(declared(body)) | self.changing
        found = {
            tuple(expand(index, self.stable) for index in access.indices)
            for access in accesses(body, view)
        }
        if len(found) != 1:
            return False
        (subscripts,) = found
        return not (reads(*subscripts) - {variable}) & inside and any(
            linear(index).coefficient(variable) == 1 for index in subscripts
        )


def _only_adds(body: Body, effects: _Effects) -> bool:
    """Whether a trip does nothing with what passes from trip to trip but add real terms to it."""
    return only_combines(body, effects.changed, "+") and not any(
        sym.dtype.is_complex or sym.dtype is DType.BOOL for sym in effects.changed
    )


def _kinds(body: Body) -> list[bool]:
    """Whether a trip holds loops or jumps: engines add up such loops in another order."""
    kinds = [type(stmt) for stmt in statements(body)]
    return [any(kind in kinds for kind in each) for each in ((For, While), (Break, Continue))]


def _may_move_up(stmt: Stmt, loop: Stmt) -> bool:
    """Whether a declaration does not depend on the loop before it."""
    if not isinstance(stmt, (Declare, Scratch)):
        return False
    if isinstance(stmt, Declare) and stmt.value is None:
        return True
    effects = _Effects.of((loop,))
    return effects is not None and all(
        isinstance(e, (Const, Binary, Cast))
        or (isinstance(e, Read) and e.sym not in effects.changed)
        for e in expressions(stmt)
    )


@dataclass(frozen=True)
class _Effects:
    """What a loop's body does to what is declared outside of it.

    read, changed: locals, scalars and accumulators. loaded, written: views and local arrays.
    """

    read: set[Sym]
    changed: set[Sym]
    loaded: set[Sym]
    written: set[Sym]

    @classmethod
    def of(cls, body: Body) -> _Effects | None:
        """None for a body whose effects must keep their order, or that is not understood."""
        if contains(body, Eval, While) or effects_of(body).atomics:
            return None
        own, found = set(declared(body)), list(accesses(body))
        return cls(
            reads(*statements(body)) - own,
            assigned(body) - own,
            {access.view for access in found if access.reads},
            {access.view for access in found if access.writes},
        )
