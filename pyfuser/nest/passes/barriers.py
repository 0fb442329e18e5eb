"""Barriers: where a thread may touch what another one has touched since the last one, to write it.

All threads reach them, as they stand in code that is run in step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from pyfuser.ir import nodes
from pyfuser.ir.accesses import own_accesses
from pyfuser.ir.effects import written_views
from pyfuser.ir.nodes import Body, Stmt, Sym
from pyfuser.ir.visit import statements
from pyfuser.nest.build import with_loops
from pyfuser.nest.nodes import Kind, Loop, Nest
from pyfuser.nest.threads import Alone, Barrier, One, Repeat, Share, Shared


def place_barriers(nest: Nest) -> Nest:
    """The nest with the barriers that it needs, and has not yet."""
    if nest.launch is None or nest.launch.rule != "team":
        return nest
    return with_loops(nest, Kind.BLOCKS, lambda loop: _Placer(nest, loop.body).loop(loop))


class _Touch(NamedTuple):
    """An access since the last barrier: to what, and whether it is only the first thread's."""

    what: Sym | None
    writes: bool
    alone: bool


class _Placer:
    def __init__(self, nest: Nest, body: Body) -> None:
        self.loose = nest.overlapping
        found = list(statements(body))
        self.memory = {s.sym for s in found if isinstance(s, nodes.Scratch)}
        self.memory |= {s.memory.sym for s in found if isinstance(s, Shared)}
        self.watched = {self._same(view) for view in written_views(nest.workunit)} | self.memory
        self.pending = frozenset[_Touch]()

    def loop(self, loop: Loop) -> Loop:
        """The loop over the iterations of a block."""
        # What the block's iteration before it did to shared memory.
        self.pending = frozenset(t for t in self._all(loop.body) if t.what in self.memory)
        return replace(loop, body=self.body(loop.body, Kind.BLOCK))

    def body(self, body: Body, crew: Kind) -> Body:
        """Code in step, with barriers."""
        made: list[Stmt] = []
        for stmt in body:
            touches = self._of(stmt)
            if self._conflict(touches):
                made.append(Barrier(crew))
                self.pending = touches
            self.pending |= touches
            made.append(self._inside(stmt, crew))
        return tuple(made)

    def _inside(self, stmt: Stmt, crew: Kind) -> Stmt:
        """A statement with barriers in it, and what is pending after it."""
        before = self.pending
        match stmt:
            case nodes.If():
                then, after = self.body(stmt.then, crew), self.pending
                self.pending = before
                orelse = self.body(stmt.orelse, crew)
                self.pending |= after | before
                return replace(stmt, then=then, orelse=orelse)
            case nodes.For() | nodes.While() | Repeat():
                around = self.pending = before | self._all((stmt,))
                stmt = replace(stmt, body=self.body(stmt.body, crew))
                self.pending = around
            case Share(loop=Loop(kind=Kind.GROUPS) as loop):
                self.pending = frozenset()
                loop = replace(loop, body=self.body(loop.body, Kind.LANES))
                stmt, self.pending = replace(stmt, body=(*stmt.body[:-1], loop)), before
        has_all = isinstance(stmt, One) or (isinstance(stmt, Share) and bool(stmt.parts))
        if isinstance(stmt, Barrier) or (has_all and crew is Kind.BLOCK):  # these wait, too
            self.pending = frozenset()
        return stmt

    def _conflict(self, touches: frozenset[_Touch]) -> bool:
        """Whether these accesses have to come after some since the last barrier."""
        return any(
            old.what == new.what and (old.writes or new.writes) and not (old.alone and new.alone)
            for new in touches
            for old in self.pending
        )

    def _same(self, view: Sym) -> Sym | None:
        """What stands for a view: None for all that may overlap."""
        return None if view in self.loose else view

    def _of(self, stmt: Stmt) -> frozenset[_Touch]:
        """The accesses of a statement in step, without those of other such statements in it."""
        match stmt:
            case Share():
                return self._all((stmt,))
            case nodes.While():  # what its condition reads nobody writes
                return frozenset()
            case Alone() | Shared():
                return frozenset(self._touched(stmt.body[0], isinstance(stmt, Alone)))
        return frozenset(self._touched(stmt, isinstance(stmt, One)))

    def _all(self, body: Body) -> frozenset[_Touch]:
        """All accesses of a body, by whatever thread."""
        return frozenset(t for stmt in statements(body) for t in self._touched(stmt, False))

    def _touched(self, stmt: Stmt, alone: bool) -> Iterator[_Touch]:
        found = [(access.view, access.writes) for access in own_accesses(stmt)]
        match stmt:
            case nodes.Scratch() | nodes.DeclareArray():
                found.append((stmt.sym, True))
            case nodes.Update():
                found.append((stmt.target, True))
        for view, writes in found:
            if self._same(view) in self.watched:
                yield _Touch(self._same(view), writes, alone)
