"""A block of threads for each team: which loops its threads share, and why none if not.

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
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import TypeGuard

from pyfuser.ir import nodes
from pyfuser.ir.canonical import MAX_WORKUNITS, fresh
from pyfuser.ir.definitions import stable_locals
from pyfuser.ir.dtypes import DType
from pyfuser.ir.effects import only_combines, written_views
from pyfuser.ir.nodes import Body, Expr, For, Read, Stmt, Sym, Workunit
from pyfuser.ir.visit import (
    assigned,
    breaks_loop,
    child_expressions,
    contains,
    declared,
    expressions,
    map_expression,
    statements,
    substitute_syms,
    sym_of,
    written,
)
from pyfuser.nest.build import noted, with_loops
from pyfuser.nest.launch import SHARED_BYTES, Space
from pyfuser.nest.nodes import Kind, Loop, Nest
from pyfuser.nest.nodes import number as integer
from pyfuser.nest.scratch import lengths_of
from pyfuser.nest.segments import is_zero
from pyfuser.nest.threads import Alone, Leave, One, Repeat, Share, Shared
from pyfuser.support.caches import cached

TEAM = 128
"""Threads of a block that stands for a team: a part of the order of sums, so it is always this,
unless the team's policy asks for more (`Workunit.threads`).
"""

_SIGNED = (DType.INT8, DType.INT16, DType.INT32, DType.INT64)
_FIXED = (
    nodes.Const, nodes.Read, nodes.Extent, nodes.Unary, nodes.Binary, nodes.Compare,
    nodes.Logical, nodes.Cast, nodes.Select,
)  # fmt: skip
_VALUED = (nodes.Declare, nodes.Assign, nodes.Store, nodes.Update)


def share_teams(nest: Nest) -> Nest:
    """The nest with a block for each iteration, if its threads can share loops in it."""
    launch = nest.launch
    if launch is None or launch.rule not in ("map", "reduce") or nest.rank != 1:
        return nest
    try:
        team, spaces, fixed = _Planner(nest.workunit, nest.overlapping, nest.name).plan()
    except _No:
        return nest
    body, room = (*noted(nest), *team), SHARED_BYTES - fixed
    threads = nest.workunit.threads or TEAM
    launch = replace(launch, rule="team", threads=threads, spaces=spaces, room=room)
    made = with_loops(nest, Kind.GRID_X, lambda s: replace(s, kind=Kind.BLOCKS, body=body))
    return replace(made, launch=launch)


@cached(MAX_WORKUNITS)
def needs_sharing(workunit: Workunit) -> str:
    """Why no block can run a workunit that has scratch memory of an unknown size; "" if it can."""
    try:
        _Planner(workunit, frozenset(), lambda sym: sym.name).plan()
    except _No as no:
        return str(no)
    return ""


class _No(Exception):
    """Why a block cannot run a kernel."""


class _Planner:
    def __init__(
        self, workunit: Workunit, loose: frozenset[Sym], name: Callable[[Sym], str]
    ) -> None:
        """loose: views that may overlap others."""
        self.workunit, self.name, body = workunit, name, workunit.body
        self.accumulators = {a.sym for a in workunit.accumulators}
        self.local_arrays = {s.sym for s in statements(body) if isinstance(s, nodes.DeclareArray)}
        self.scratch = {s.sym for s in statements(body) if isinstance(s, nodes.Scratch)}
        self.by_one = set(written_views(workunit))  # what one thread reads for all in step
        if self.by_one & loose:
            self.by_one |= loose
        self.alone = set(self.accumulators)  # what the first thread adds to
        self.memory = set(self.scratch)  # of a block
        for stmt in self._in_step(body):
            if self._is_shared(stmt, Kind.BLOCK):
                self.memory |= self._arrays_written(stmt)
        self.in_order = False

    def plan(self) -> tuple[Body, tuple[Space, ...], int]:
        """What a block does for a team; the shared memory of a size that is known when it runs,
        and the bytes of all other.
        """
        body = self.workunit.body
        made, spaces = self.step(body, Kind.BLOCK), self._spaces(body)
        if not contains(made, Share) and not spaces:
            raise _No("no loop that the threads of a team could share")
        if self.in_order and not spaces:
            raise _No("a loop that the threads of a team cannot share")
        fixed = self._fixed_bytes(made)
        if fixed > SHARED_BYTES:
            raise _No(f"more than {SHARED_BYTES} bytes of shared memory")
        return made, spaces, fixed

    def _in_step(self, body: Body) -> Iterator[Stmt]:
        """The statements of a body, but for those in loops that its threads share."""
        for stmt in body:
            yield stmt
            if isinstance(stmt, nodes.If):
                yield from self._in_step((*stmt.then, *stmt.orelse))
            elif isinstance(stmt, nodes.While) or (
                isinstance(stmt, For) and not self._is_shared(stmt, Kind.BLOCK)
            ):
                yield from self._in_step(stmt.body)

    # ------------------------------------------------------------------ code in step

    def step(self, body: Body, crew: Kind) -> Body:
        """Code as a crew runs it in step. Raises _No where they could part."""
        made: list[Stmt] = []
        for stmt in body:
            if self._is_shared(stmt, crew):
                made.append(self._shared_loop(stmt, crew))
                continue
            self._check_step(stmt)
            stmt = self._with_value(stmt, crew, made)
            if isinstance(stmt, nodes.If):
                then, orelse = (self.step(side, crew) for side in (stmt.then, stmt.orelse))
                stmt = replace(stmt, then=then, orelse=orelse)
            elif isinstance(stmt, (For, nodes.While)):
                stmt = self._around(stmt, self.step(stmt.body, crew), crew)
            elif self._is_alone(stmt):
                stmt = Alone((stmt,), crew)
            elif isinstance(stmt, (nodes.DeclareArray, nodes.Scratch)) and stmt.sym in self.memory:
                stmt = Shared((stmt,))
            made.append(stmt)
        return tuple(made)

    def _check_step(self, stmt: Stmt) -> None:
        """See that threads cannot part at what a statement evaluates, besides a value."""
        if isinstance(stmt, (nodes.Eval, nodes.If, nodes.While)) or self._is_seen(stmt):
            return
        parts, views = tuple(child_expressions(stmt)), self.by_one
        if isinstance(stmt, _VALUED):
            parts = stmt.indices if isinstance(stmt, (nodes.Store, nodes.Update)) else ()
        elif isinstance(stmt, For):
            views = views | self.local_arrays | self.scratch
        if any(_needs_one(part, views) for part in parts):
            raise _No("a loop or an array of a team depends on what the kernel writes")

    def _is_seen(self, stmt: Stmt) -> bool:
        """Whether others than its thread can see a store or an update."""
        if isinstance(stmt, nodes.Store) or (isinstance(stmt, nodes.Update) and stmt.indices):
            return sym_of(stmt) not in self.local_arrays
        return isinstance(stmt, nodes.Update) and stmt.target in self.alone

    def _is_alone(self, stmt: Stmt) -> bool:
        """Whether the first thread does a statement: others could see it, or it is not a value."""
        if isinstance(stmt, (nodes.Store, nodes.Update)):
            return self._is_seen(stmt) or sym_of(stmt) in self.memory
        return isinstance(stmt, nodes.Eval)

    def _with_value(self, stmt: Stmt, crew: Kind, made: list[Stmt]) -> Stmt:
        """The statement with a local for what one thread has to compute for all."""
        if isinstance(stmt, nodes.If):
            if _needs_one(stmt.condition, self.by_one):
                made.append(one := _one(stmt.condition, crew))
                return replace(stmt, condition=Read(one.sym))
        elif isinstance(stmt, _VALUED):
            value = None if self._is_alone(stmt) else stmt.value
            if value is not None and _needs_one(value, self.by_one):
                made.append(one := _one(value, crew))
                return replace(stmt, value=Read(one.sym))
        return stmt

    def _around(self, loop: For | nodes.While, body: Body, crew: Kind) -> Stmt:
        """A loop in step."""
        self.in_order |= not contains(body, Share)
        if isinstance(loop, For) or not _needs_one(loop.condition, self.by_one | self.memory):
            return replace(loop, body=body)
        one = _one(loop.condition, crew)
        return Repeat((one, Leave(nodes.Unary("!", Read(one.sym), DType.BOOL)), *body))

    # ------------------------------------------------------------------ shared loops

    def _is_shared(self, loop: Stmt, crew: Kind) -> TypeGuard[For]:
        """Whether a crew takes the trips of a loop that is said to be parallel."""
        if not isinstance(loop, For) or not loop.shared:
            return False
        if crew is Kind.LANES and self._arrays_written(loop):
            return False  # each lane has a copy
        if not isinstance(loop.step, nodes.Const) or loop.step.value != 1:
            return False
        changed = assigned(loop.body)
        bounds = [e for bound in (loop.start, loop.stop) for e in expressions(bound)]
        if not all(isinstance(e, _FIXED) for e in bounds) or any(
            isinstance(e, Read) and e.sym in changed for e in bounds
        ):
            return False
        if any(bound.dtype not in _SIGNED for bound in (loop.start, loop.stop)):
            return False
        if loop.sym in changed or any(map(breaks_loop, loop.body)) or not self._only_adds(loop):
            return False
        return not any(
            isinstance(s, nodes.Scratch) and lengths_of(s) is None for s in statements(loop.body)
        )

    def _only_adds(self, loop: For) -> bool:
        """Whether a loop does nothing to the locals around it but add to them."""
        sums = _sums_of(loop)
        local = [sym for sym in sums if sym not in self.accumulators]
        return (
            only_combines(loop.body, sums, nodes.UPDATE_OPS)
            and only_combines(loop.body, local, "+-")
            and not any(sym.dtype is DType.BOOL for sym in local)
        )

    def _arrays_written(self, loop: For) -> set[Sym]:
        """The arrays around a loop that it writes."""
        return (written(loop.body) & self.local_arrays) - set(declared(loop.body))

    def _shared_loop(self, loop: For, crew: Kind) -> Stmt:
        """The trips of a loop, each by one of a crew, or by one group of them."""
        # What groups add to for the block's sum, a lane adds to as well: it has a part already.
        sums = [sym for sym in _sums_of(loop) if sym not in self.alone]
        parts = {sym: fresh(f"{self.name(sym)}_part", sym.dtype) for sym in sums}
        body = substitute_syms(loop.body, parts)
        grouped = self._in_groups(loop, body, set(parts.values())) if crew is Kind.BLOCK else None
        name, narrow = self.name(loop.sym), loop.sym.dtype is not DType.INT64
        wide = fresh(f"{name}_wide", DType.INT64) if narrow else loop.sym
        stop = fresh(f"{name}_stop", DType.INT64)
        start = integer(0) if is_zero(loop.start) else nodes.Cast(loop.start, DType.INT64)
        kind, body = (crew, body) if grouped is None else (Kind.GROUPS, grouped)
        if narrow:
            body = (nodes.Declare(loop.sym, nodes.Cast(Read(wide), loop.sym.dtype)), *body)
        trips = Loop(wide, start, Read(stop), integer(1), body, True, kind)
        zeros = (nodes.Declare(part, None) for part in parts.values())
        return Share(stop, loop.stop, (*zeros, trips), tuple(sums), tuple(parts.values()), crew)

    def _in_groups(self, loop: For, body: Body, parts: set[Sym]) -> Body | None:
        """A trip as groups of lanes run it, with a loop in it that the lanes share; None: none."""
        # What the trips of all groups write is shared memory, which code in step writes by one.
        if contains(body, nodes.Scratch) or self._arrays_written(loop):
            return None
        kept = self.in_order, self.alone
        self.in_order, self.alone = False, self.alone | parts
        try:
            made = self.step(body, Kind.LANES)
            return made if contains(made, Share) and not self.in_order else None
        except _No:
            return None
        finally:
            self.in_order, self.alone = kept

    # ------------------------------------------------------------------ shared memory

    def _spaces(self, body: Body) -> tuple[Space, ...]:
        """The scratch memory of a block whose size is not known."""
        own = {id(s) for s in body}
        params = {p.sym for p in self.workunit.params}
        stable = stable_locals(body)
        found = []
        for stmt in statements(body):
            if not isinstance(stmt, nodes.Scratch) or lengths_of(stmt) is not None:
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

    def _fixed_bytes(self, made: Body) -> int:
        """Shared memory of known size: scratch, arrays, and cells to add up sums in."""
        total = 16 if self.accumulators else 0  # whether a block is the last one
        kinds = {sym.dtype for sym in self.accumulators}
        for stmt in statements(made):
            if isinstance(stmt, Shared):
                lengths = lengths_of(stmt.memory)
                if lengths is not None:
                    total += math.prod(lengths) * stmt.memory.sym.dtype.size + 16
            elif isinstance(stmt, (One, Share)) and stmt.crew is Kind.BLOCK:
                cells = stmt.parts if isinstance(stmt, Share) else (stmt.sym,)
                kinds |= {sym.dtype for sym in cells}
        return total + (self.workunit.threads or TEAM) * sum(kind.size for kind in kinds)


def _one(value: Expr, crew: Kind) -> One:
    return One(fresh("value", value.dtype), value, crew)


def _needs_one(expr: Expr, by_one: Collection[Sym]) -> bool:
    """Whether one thread has to compute a value for all."""
    return any(
        isinstance(e, nodes.AtomicFetch) or (isinstance(e, nodes.Load) and e.view in by_one)
        for e in expressions(expr)
    )


def _sums_of(loop: For) -> list[Sym]:
    """The locals and accumulators around a shared loop that it adds to."""
    own = set(declared((loop,)))
    return sorted(assigned(loop.body) - own, key=lambda sym: sym.uid)


def _known(expr: Expr, stable: Mapping[Sym, Expr]) -> Expr:
    """The expression with the values of locals that keep them, if no memory decides these."""

    def value(e: Expr) -> Expr:
        if not isinstance(e, Read) or e.sym not in stable:
            return e
        found = _known(stable[e.sym], stable)
        return found if all(isinstance(part, _FIXED) for part in expressions(found)) else e

    return map_expression(expr, value)
