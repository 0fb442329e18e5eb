"""Which loops of a kernel a block of threads shares: `sharing`, and `why_not` where none does.

Lowering makes a team one iteration, and loops that are `shared` of what its threads do together.
On a GPU a block stands for the iteration again. Its threads take the trips of a shared loop; where
that holds another one, groups of LANES threads take the outer loop's trips and the lanes of a group
the inner one's. All other code is run by all threads of the block (or group) in step: each computes
the same values, and the first one alone does what others could see.

That keeps what one thread would have computed, if what follows is shown here:

* a shared loop only declares, stores, updates atomically, and adds to locals around it, which it
  does not read: then every thread adds up a part. Its bounds are fixed, and no trip ends it;
* in step, what threads could see differently (a view that the kernel writes, an atomic's old value)
  is read by the first thread for all of them, so they cannot part at a barrier;
* a local array that a shared loop writes is in shared memory; others are copies of each thread.

A loop that the threads run in step and that shares nothing is as slow as one thread. With one, the
whole league is faster by a thread a team: such kernels stay as they are, but for those that need
shared memory, whose size a thread could not have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from pyfuser.analysis.intervals import interval
from pyfuser.ir import nodes
from pyfuser.ir.affine import number
from pyfuser.ir.canonical import MAX_WORKUNITS
from pyfuser.ir.definitions import stable_locals
from pyfuser.ir.dtypes import DType
from pyfuser.ir.effects import only_combines, written_views
from pyfuser.ir.nodes import Body, Expr, Stmt, Sym, Workunit
from pyfuser.ir.visit import (
    assigned,
    breaks_loop,
    child_expressions,
    contains,
    declared,
    expressions,
    map_expression,
    statements,
    sym_of,
    written,
)
from pyfuser.nest.spec import KernelSpec
from pyfuser.support.caches import cached
from pyfuser.support.records import dataclass

TEAM = 128
"""Threads of a block that stands for a team: a part of the order of sums, so it is always this,
unless the team's policy asks for more (`Workunit.threads`).
"""

LANES = 32
"""Threads that share a loop in a shared loop: no more than a warp of any GPU has."""

SHARED_BYTES = 48 << 10
"""Shared memory of a block that every GPU has without being asked."""

_SIGNED = (DType.INT8, DType.INT16, DType.INT32, DType.INT64)
_FIXED = (
    nodes.Const, nodes.Read, nodes.Extent, nodes.Unary, nodes.Binary, nodes.Compare,
    nodes.Logical, nodes.Cast, nodes.Select,
)  # fmt: skip


class Space(NamedTuple):
    """Shared memory that is known when the kernel runs: extents and the bytes of an element.

    The extents are made of the kernel's whole-number parameters and the extents of its views.
    """

    sym: Sym
    extents: tuple[Expr, ...]
    itemsize: int


@dataclass(frozen=True)
class Sharing:
    """How a block runs a kernel: loops by their variables, and what is in shared memory.

    by_threads: loops whose trips all threads of a block take, or all lanes of a group if the loop
    is in one of `by_groups`. spaces: scratch memory of a size that is known when it runs. fixed:
    bytes of all other shared memory. by_one: the views that one thread reads for all in step.
    """

    by_threads: frozenset[Sym]
    by_groups: frozenset[Sym]
    arrays: frozenset[Sym]
    spaces: tuple[Space, ...]
    fixed: int
    by_one: frozenset[Sym]


def team_threads(workunit: Workunit) -> int:
    """The threads of a block that stands for a team."""
    return workunit.threads or TEAM


def sharing(spec: KernelSpec) -> Sharing | None:
    """How a block runs the kernel of a spec; None if one thread runs an iteration."""
    if spec.serial or spec.pattern not in ("for", "reduce") or spec.rank != 1:
        return None
    loose = frozenset(
        param.sym
        for param, view in zip(spec.workunit.params, spec.views, strict=True)
        if view is not None and not view.restrict
    )
    found = _plan(spec.workunit, loose)
    return found if isinstance(found, Sharing) else None


def needs_sharing(workunit: Workunit) -> str:
    """Why no block can run a workunit that has scratch memory of an unknown size; "" if it can."""
    found = _plan(workunit, frozenset())
    return found if isinstance(found, str) else ""


def room_for(
    spaces: Sequence[Space], numbers: Mapping[Sym, int], shapes: Mapping[Sym, Sequence[int]]
) -> int | None:
    """Bytes that scratch memory takes at most, for whole numbers and views' shapes that are known.

    None: a number that it is made of does not fit its type.
    """
    points = {sym: (number, number) for sym, number in numbers.items()}

    def with_shapes(e: Expr) -> Expr:
        if isinstance(e, nodes.Extent):
            return nodes.Const(shapes[e.view][e.axis], e.dtype)
        return e

    total = 0
    for space in spaces:
        size = space.itemsize
        for extent in space.extents:
            known = interval(map_expression(extent, with_shapes), points)
            if known is None:
                return None
            size *= max(known[1], 0)
        total += (size + 15) // 16 * 16
    return total


def scratch_lengths(s: nodes.Scratch) -> tuple[int, ...] | None:
    """The extents of scratch memory if all are constants."""
    lengths = tuple(max(n, 0) for n in map(number, s.shape) if n is not None)
    return lengths if len(lengths) == len(s.shape) else None


def needs_one(expr: Expr, by_one: Collection[Sym]) -> bool:
    """Whether one thread has to compute a value for all."""
    return any(
        isinstance(e, nodes.AtomicFetch) or (isinstance(e, nodes.Load) and e.view in by_one)
        for e in expressions(expr)
    )


def sums_of(loop: nodes.For) -> list[Sym]:
    """The locals and accumulators around a shared loop that it adds to."""
    own = set(declared((loop,)))
    return sorted(assigned(loop.body) - own, key=lambda sym: sym.uid)


class _No(Exception):
    """Why a block cannot run a kernel."""


@cached(MAX_WORKUNITS)
def _plan(workunit: Workunit, loose: frozenset[Sym]) -> Sharing | str:
    try:
        return _Planner(workunit, loose).plan()
    except _No as no:
        return str(no)


@dataclass
class _Planner:
    """`loose`: views that may overlap others."""

    workunit: Workunit
    loose: frozenset[Sym]
    by_threads: set[Sym] = field(default_factory=set)
    by_groups: set[Sym] = field(default_factory=set)
    arrays: set[Sym] = field(default_factory=set)
    in_order: bool = False

    def __post_init__(self) -> None:
        body = self.workunit.body
        self.accumulators = {a.sym for a in self.workunit.accumulators}
        self.local_arrays = {s.sym for s in statements(body) if isinstance(s, nodes.DeclareArray)}
        self.memory = self.local_arrays | {
            s.sym for s in statements(body) if isinstance(s, nodes.Scratch)
        }
        self.by_one = set(written_views(self.workunit))
        if self.by_one & self.loose:
            self.by_one |= self.loose
        self.kinds = {sym.dtype for sym in self.accumulators}

    def plan(self) -> Sharing:
        body = self.workunit.body
        self.step(body, self._shared_loop)
        spaces = self._spaces(body)
        if not self.by_threads and not spaces:
            raise _No("no loop that the threads of a team could share")
        if self.in_order and not spaces:
            raise _No("a loop that the threads of a team cannot share")
        fixed = self._fixed_bytes(body)
        if fixed > SHARED_BYTES:
            raise _No(f"more than {SHARED_BYTES} bytes of shared memory")
        return Sharing(
            frozenset(self.by_threads),
            frozenset(self.by_groups),
            frozenset(self.arrays),
            spaces,
            fixed,
            frozenset(self.by_one),
        )

    # ------------------------------------------------------------------ code in step

    def step(self, body: Body, shared_loop: Callable[[nodes.For], bool]) -> bool:
        """Follow code that threads run in step; whether they share a loop in it.

        Raises _No where they could part.
        """
        found = False
        for stmt in body:
            if isinstance(stmt, nodes.For) and stmt.shared and shared_loop(stmt):
                found = True
                continue
            self._check_step(stmt)
            if isinstance(stmt, nodes.If):
                sides = [self.step(side, shared_loop) for side in (stmt.then, stmt.orelse)]
                found |= any(sides)
            elif isinstance(stmt, (nodes.For, nodes.While)):
                inside = self.step(stmt.body, shared_loop)
                self.in_order |= not inside
                found |= inside
        return found

    def _check_step(self, stmt: Stmt) -> None:
        if isinstance(stmt, nodes.Eval) or self._is_alone(stmt):
            return
        if isinstance(stmt, (nodes.Declare, nodes.Assign, nodes.Store, nodes.Update)):
            if stmt.value is not None and needs_one(stmt.value, self.by_one):
                self.kinds.add(stmt.value.dtype)
            parts = stmt.indices if isinstance(stmt, (nodes.Store, nodes.Update)) else ()
        elif isinstance(stmt, (nodes.If, nodes.While)):
            if needs_one(stmt.condition, self.by_one | self.memory):
                self.kinds.add(DType.BOOL)
            parts = ()
        else:
            parts = tuple(child_expressions(stmt))
        views = self.by_one | (self.memory if isinstance(stmt, nodes.For) else set())
        if any(needs_one(part, views) for part in parts):
            raise _No("a loop or an array of a team depends on what the kernel writes")

    def _is_alone(self, stmt: Stmt) -> bool:
        """Whether one thread does a store or update, which others can see."""
        if isinstance(stmt, nodes.Store) or (isinstance(stmt, nodes.Update) and stmt.indices):
            return sym_of(stmt) not in self.local_arrays
        return isinstance(stmt, nodes.Update) and stmt.target in self.accumulators

    # ------------------------------------------------------------------ shared loops

    def _shared_loop(self, loop: nodes.For) -> bool:
        """Note how a block runs a loop; False: in order."""
        if not self._may_share(loop):
            return False
        if self._in_groups(loop):
            self.by_groups.add(loop.sym)
        self.by_threads.add(loop.sym)
        self.arrays |= self._arrays_written(loop) - set(declared(loop.body))
        return True

    def _in_groups(self, loop: nodes.For) -> bool:
        """Whether groups of lanes can run a loop, with one in it that the lanes share."""
        own = set(declared(loop.body))
        lanes: set[Sym] = set()
        if contains(loop.body, nodes.Scratch):
            return False

        def by_lanes(inner: nodes.For) -> bool:
            if not self._may_share(inner):
                return False
            if self._arrays_written(inner) - set(declared(inner.body)):
                return False  # each lane has a copy
            lanes.add(inner.sym)
            return True

        before, self.in_order = self.in_order, False
        try:
            found = self.step(loop.body, by_lanes) and not self.in_order
        except _No:
            found = False
        self.in_order = before
        # What the trips of all groups write is shared memory, which code in step writes by one.
        if not found or self._arrays_written(loop) - own:
            return False
        self.by_threads |= lanes
        return True

    def _arrays_written(self, loop: nodes.For) -> set[Sym]:
        return written(loop.body) & self.local_arrays

    def _may_share(self, loop: nodes.For) -> bool:
        """Whether threads can take the trips of a loop that is said to be parallel."""
        if not isinstance(loop.step, nodes.Const) or loop.step.value != 1:
            return False
        changed = assigned(loop.body)
        bounds = [e for bound in (loop.start, loop.stop) for e in expressions(bound)]
        if not all(isinstance(e, _FIXED) for e in bounds) or any(
            isinstance(e, nodes.Read) and e.sym in changed for e in bounds
        ):
            return False
        if any(bound.dtype not in _SIGNED for bound in (loop.start, loop.stop)):
            return False
        if loop.sym in changed or any(map(breaks_loop, loop.body)) or not self._only_adds(loop):
            return False
        return not any(
            isinstance(s, nodes.Scratch) and scratch_lengths(s) is None
            for s in statements(loop.body)
        )

    def _only_adds(self, loop: nodes.For) -> bool:
        """Whether a loop does nothing to the locals around it but add to them."""
        sums = set(sums_of(loop))
        local = sums - self.accumulators
        return (
            only_combines(loop.body, sums, nodes.UPDATE_OPS)
            and only_combines(loop.body, local, "+-")
            and not any(sym.dtype is DType.BOOL for sym in local)
        )

    # ------------------------------------------------------------------ shared memory

    def _spaces(self, body: Body) -> tuple[Space, ...]:
        """The scratch memory of a block whose size is not known."""
        own = {id(s) for s in body}
        params = {p.sym for p in self.workunit.params}
        stable = stable_locals(body)
        found = []
        for stmt in statements(body):
            if not isinstance(stmt, nodes.Scratch) or scratch_lengths(stmt) is not None:
                continue
            if id(stmt) not in own:
                raise _No("scratch memory of a size that is known only when it runs, in a branch")
            extents = tuple(_known(extent, stable) for extent in stmt.shape)
            for e in (e for extent in extents for e in expressions(extent)):
                known = isinstance(e, _FIXED) and e.dtype.is_integer
                if not known or sym_of(e) not in (None, *params):
                    raise _No("scratch memory whose size depends on more than arguments")
            found.append(Space(stmt.sym, extents, stmt.sym.dtype.size))
        return tuple(found)

    def _fixed_bytes(self, body: Body) -> int:
        """Shared memory of known size: scratch, arrays, and cells to add up sums in."""
        total = 0
        for stmt in _in_step(body, self.by_threads):
            lengths = scratch_lengths(stmt) if isinstance(stmt, nodes.Scratch) else None
            if isinstance(stmt, nodes.Scratch) and lengths is not None:
                total += math.prod(lengths) * stmt.sym.dtype.size + 16
            elif isinstance(stmt, nodes.DeclareArray) and stmt.sym in self.arrays:
                total += len(stmt.values) * stmt.sym.dtype.size + 16
        loops = [s for s in _in_step(body, self.by_threads) if isinstance(s, nodes.For)]
        kinds = self.kinds | {sym.dtype for loop in loops for sym in sums_of(loop)}
        total += 16 if self.accumulators else 0  # whether a block is the last one
        return total + team_threads(self.workunit) * sum(kind.size for kind in kinds)


def _known(expr: Expr, stable: Mapping[Sym, Expr]) -> Expr:
    """The expression with the values of locals that keep them, if no memory decides these."""

    def value(e: Expr) -> Expr:
        if not isinstance(e, nodes.Read) or e.sym not in stable:
            return e
        found = _known(stable[e.sym], stable)
        return found if all(isinstance(part, _FIXED) for part in expressions(found)) else e

    return map_expression(expr, value)


def _in_step(body: Body, shared: set[Sym]) -> Iterator[Stmt]:
    """The statements of a body, but for those in shared loops."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, nodes.For) and stmt.sym in shared:
            continue
        if isinstance(stmt, nodes.If):
            yield from _in_step((*stmt.then, *stmt.orelse), shared)
        elif isinstance(stmt, (nodes.For, nodes.While)):
            yield from _in_step(stmt.body, shared)
