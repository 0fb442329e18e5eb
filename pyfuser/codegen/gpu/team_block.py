"""Device code of a kernel whose iterations are teams: a block of threads for each of them.

See `gpu.team_analysis` for what the threads do together and why that is right. Barriers stand where
a thread may touch what another one has touched since the last barrier, one of them writing; all
threads reach them, as they stand in code that is run in step. Sums of shared loops are joined in
halves, so their bits depend on the number of trips alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.gpu.context import GpuContext, GpuStatements, indented
from pyfuser.codegen.gpu.reduce import joined
from pyfuser.codegen.gpu.team_analysis import (
    LANES,
    Sharing,
    needs_one,
    scratch_lengths,
    sums_of,
    team_threads,
)
from pyfuser.ir import nodes
from pyfuser.ir.accesses import own_accesses
from pyfuser.ir.canonical import fresh
from pyfuser.ir.effects import written_views
from pyfuser.ir.nodes import Body, Expr, Stmt, Sym
from pyfuser.ir.visit import declared, statements
from pyfuser.nest.segments import is_zero
from pyfuser.nest.spec import KernelSpec
from pyfuser.support.records import dataclass


def emit(context: GpuContext, entry: str, sharing: Sharing) -> str:
    """The entry point: a block takes iterations that are a whole grid apart."""
    context.shares_views = True
    context.uses("team", "lanes", "joins")
    block = context.statements = BlockStatements(context, sharing)
    accumulators = context.workunit.accumulators
    lines = [f"{INDENT}{a.sym.dtype.cpp} {context.names[a.sym]}{{}};" for a in accumulators]
    i, first, last = context.counter(0), context.begin[0], context.end[0]
    lines.append(
        f"{INDENT}for (int64_t {i} = {first} + pf_block(x); {i} < {last}; {i} += pf_blocks(x)) {{"
    )
    lines += context.narrowed(2)
    lines += block.team(2)
    lines.append(f"{INDENT}}}")
    if accumulators:
        lines += indented(joined(context, block.threads))
    return context.head(entry, block.threads) + "\n".join(lines) + "\n}\n"


class Touch(NamedTuple):
    """An access since the last barrier: to what, and whether it is only the first thread's."""

    what: Sym | None
    writes: bool
    alone: bool


@dataclass(frozen=True, slots=True)
class _Crew:
    """Threads that run code in step: what their first one, a barrier and a sum are called.

    number: of a thread among them. total: of their values; first: what the first one has; both for
    all of them. waits: whether memory is in order after these two, as after a barrier.
    """

    number: str
    size: int
    barrier: str
    total: str
    first: str
    waits: bool


_GROUP = _Crew(
    "pf_lane()",
    LANES,
    "pf_lanes_barrier();",
    f"pf_lanes_total<{LANES}, pf_plus>",
    "pf_lanes_first",
    False,
)


def _block(threads: int) -> _Crew:
    return _Crew(
        "pf_thread(x)",
        threads,
        "pf_barrier();",
        f"pf_team_total<{threads}, pf_plus>",
        f"pf_team_first<{threads}>",
        True,
    )


class BlockStatements(GpuStatements):
    """Prints the body of a team for all threads of its block."""

    def __init__(self, context: GpuContext, sharing: Sharing) -> None:
        super().__init__(context.expressions, context.workunit.body)
        self.context = context
        self.shared = context.device.dialect.shared
        self.sharing = sharing
        self.crew: _Crew | None = None  # who runs code in step; None: a thread on its own
        self.pending: frozenset[Touch] = frozenset()
        workunit = context.workunit
        self.threads = team_threads(workunit)
        self.alone = {a.sym for a in workunit.accumulators}  # what the first thread adds to
        arrays = {s.sym for s in statements(workunit.body) if isinstance(s, nodes.DeclareArray)}
        self.private = arrays - sharing.arrays
        self.loose = _loose(context.spec)
        self.watched = {self._same(sym) for sym in written_views(workunit)} | sharing.arrays
        self.memory = {s.sym for s in statements(workunit.body) if isinstance(s, nodes.Scratch)}
        self.memory |= sharing.arrays
        self.watched |= self.memory
        self.spaces = [space.sym for space in sharing.spaces]

    def team(self, depth: int) -> list[str]:
        """The lines of an iteration."""
        body = self.context.workunit.body
        kept, self.lines = self.lines, []
        self.crew = _block(self.threads)
        # What the block's iteration before it did to shared memory.
        self.pending = frozenset(t for t in self._touches(body) if t.what in self.memory)
        self.body(body, depth)
        lines, self.lines = self.lines, kept
        return lines

    # ------------------------------------------------------------------ code in step

    def body(self, body: Body, depth: int) -> None:
        for stmt in body:
            if self.crew is None:
                super().body((stmt,), depth)
            else:
                self._step(stmt, self.crew, depth)

    def _step(self, stmt: Stmt, crew: _Crew, depth: int) -> None:
        if isinstance(stmt, nodes.For) and stmt.sym in self.sharing.by_threads:
            self._wait(self._touches((stmt,)), crew, depth)
            self._shared_loop(stmt, crew, depth)
            return
        if isinstance(stmt, nodes.While):
            self._while(stmt, crew, depth)
            return
        stmt = self._with_values(stmt, crew, depth)
        self._wait(self._own_touches(stmt), crew, depth)
        if isinstance(stmt, nodes.If):
            self._branch(stmt, depth)
        elif isinstance(stmt, nodes.For):
            around = self.pending = self.pending | self._touches((stmt,))
            super().body((stmt,), depth)
            self.pending = around
        elif self._is_alone(stmt):
            self.emit(depth, f"if ({crew.number} == 0) {{")
            super().body((stmt,), depth + 1)
            self.emit(depth, "}")
        else:
            super().body((stmt,), depth)

    def _while(self, loop: nodes.While, crew: _Crew, depth: int) -> None:
        around = self.pending = self.pending | self._touches((loop,))
        if needs_one(loop.condition, self.sharing.by_one | self.memory):
            self.emit(depth, "for (;;) {")
            value = self._value(loop.condition, crew, depth + 1)
            self.emit(depth + 1, f"if (!{self.text(value)}) break;")
            self.body(loop.body, depth + 1)
            self.emit(depth, "}")
        else:
            super().body((loop,), depth)
        self.pending = around

    def _with_values(self, stmt: Stmt, crew: _Crew, depth: int) -> Stmt:
        """The statement with a local for what one thread has to compute for all."""
        if isinstance(stmt, nodes.If):
            if needs_one(stmt.condition, self.sharing.by_one):
                return replace(stmt, condition=self._value(stmt.condition, crew, depth))
        elif isinstance(stmt, (nodes.Declare, nodes.Assign, nodes.Store, nodes.Update)):
            value = None if self._is_alone(stmt) else stmt.value
            if value is not None and needs_one(value, self.sharing.by_one):
                return replace(stmt, value=self._value(value, crew, depth))
        return stmt

    def _value(self, value: Expr, crew: _Crew, depth: int) -> nodes.Read:
        """A local that all threads get from the first one."""
        self._wait(frozenset(self._touched(value, True)), crew, depth)
        sym = fresh("value", value.dtype)
        name = self.context.names[sym] = self.context.unique.take("value")
        self.emit(depth, f"{sym.dtype.cpp} {name}{{}};")
        self.emit(depth, f"if ({crew.number} == 0) {name} = {self.text(value)};")
        self.emit(depth, f"{name} = {crew.first}({name});")
        if crew.waits:
            self.pending = frozenset()
        return nodes.Read(sym)

    def _branch(self, stmt: nodes.If, depth: int) -> None:
        before, after = self.pending, self.pending
        self.emit(depth, f"if ({self.text(stmt.condition)}) {{")
        for n, side in enumerate((stmt.then, stmt.orelse)):
            self.pending = before
            if n and side:
                self.emit(depth, "} else {")
            self.body(side, depth + 1)
            after |= self.pending
        self.emit(depth, "}")
        self.pending = after

    def _is_alone(self, stmt: Stmt) -> bool:
        """Whether the first thread does a statement: others could see it, or it is not a value."""
        if isinstance(stmt, nodes.Store):
            return stmt.view not in self.private
        if isinstance(stmt, nodes.Update):
            private = self.private if stmt.indices else None
            return stmt.target not in private if private is not None else stmt.target in self.alone
        return isinstance(stmt, nodes.Eval)

    # ------------------------------------------------------------------ barriers

    def _wait(self, touches: frozenset[Touch], crew: _Crew, depth: int) -> None:
        """A barrier, if these accesses have to come after some since the last one."""
        for new in touches:
            for old in self.pending:
                if old.what == new.what and (old.writes or new.writes):
                    if old.alone and new.alone:
                        continue
                    self.emit(depth, crew.barrier)
                    self.pending = touches
                    return
        self.pending |= touches

    def _same(self, view: Sym) -> Sym | None:
        """What stands for a view: None for all that may overlap."""
        return None if view in self.loose else view

    def _own_touches(self, stmt: Stmt) -> frozenset[Touch]:
        """The accesses of a statement in step itself, without those nested in it."""
        return frozenset(self._touched(stmt, self._is_alone(stmt)))

    def _touches(self, body: Body) -> frozenset[Touch]:
        """All accesses of a body, by whatever thread."""
        return frozenset(t for stmt in statements(body) for t in self._touched(stmt, False))

    def _touched(self, part: Expr | Stmt, alone: bool) -> Iterator[Touch]:
        found = [(access.view, access.writes) for access in own_accesses(part)]
        match part:
            case nodes.Scratch() | nodes.DeclareArray():
                found.append((part.sym, True))
            case nodes.Update():
                found.append((part.target, True))
        for view, writes in found:
            if self._same(view) in self.watched:
                yield Touch(self._same(view), writes, alone)

    # ------------------------------------------------------------------ shared loops

    def _shared_loop(self, loop: nodes.For, crew: _Crew, depth: int) -> None:
        """The trips of a loop, each by one thread or by one group of them."""
        groups = loop.sym in self.sharing.by_groups
        own = set(declared(loop.body))
        # What groups add to for the block's sum, a lane adds to as well: it has a part already.
        sums = [sym for sym in sums_of(loop) if sym not in self.alone]
        sums = [sym for sym in sums if sym not in own]
        names = dict(self.names)
        parts = {sym: self.context.unique.take(f"{self.names[sym]}_part") for sym in sums}
        for sym, part in parts.items():
            self.emit(depth, f"{sym.dtype.cpp} {part}{{}};")
        with self._inside(_GROUP if groups else None, parts):
            self._trips(loop, crew, groups, depth)
        for sym, part in parts.items():
            kind, name = sym.dtype.cpp, names[sym]
            self.emit(depth, f"{name} = pf_plus::join<{kind}>({name}, {crew.total}({part}));")
        if parts and crew.waits:
            self.pending = frozenset()

    @contextmanager
    def _inside(self, crew: _Crew | None, parts: dict[Sym, str]) -> Iterator[None]:
        """Print what is in a shared loop: for `crew`, sums as parts."""
        kept = self.crew, self.pending, self.alone, {sym: self.names[sym] for sym in parts}
        self.crew, self.pending = crew, frozenset()
        self.alone = self.alone | set(parts)
        self.context.names.update(parts)
        yield
        self.crew, self.pending, self.alone, names = kept
        self.context.names.update(names)

    def _trips(self, loop: nodes.For, crew: _Crew, groups: bool, depth: int) -> None:
        take, kind, name = self.context.unique.take, loop.sym.dtype.cpp, self.names[loop.sym]
        narrow = kind != "int64_t"
        wide = take(f"{name}_wide") if narrow else name
        stop = take(f"{name}_stop")
        number, step = ("pf_group()", crew.size // LANES) if groups else (crew.number, crew.size)
        self.emit(depth, f"const int64_t {stop} = {self.text(loop.stop)};")
        zero = isinstance(loop.start, nodes.Const) and loop.start.value == 0
        first = number if zero else f"(int64_t)({self.text(loop.start)}) + {number}"
        self.emit(depth, f"for (int64_t {wide} = {first}; {wide} < {stop}; {wide} += {step}) {{")
        if narrow:
            self.emit(depth + 1, f"const {kind} {name} = ({kind}){wide};")
        self.body(loop.body, depth + 1)
        self.emit(depth, "}")

    # ------------------------------------------------------------------ shared memory

    def declare_array(self, s: nodes.DeclareArray, depth: int) -> None:
        if s.sym not in self.sharing.arrays:
            super().declare_array(s, depth)
            return
        kind, name, length = s.sym.dtype.cpp, self.names[s.sym], len(s.values)
        self.emit(depth, f"{self.shared} {kind} {name}[{max(length, 1)}];")
        if all(map(is_zero, s.values)):
            self._clear(s.sym, str(length), depth)
            return
        self.emit(depth, "if (pf_thread(x) == 0) {")
        for n, value in enumerate(s.values):
            self.emit(depth + 1, f"{name}[{n}] = {self.text(value)};")
        self.emit(depth, "}")

    def scratch(self, s: nodes.Scratch, depth: int) -> None:
        if self.crew is None:
            super().scratch(s, depth)
            return
        kind, name, lengths = s.sym.dtype.cpp, self.names[s.sym], scratch_lengths(s)
        if lengths is not None:
            self.emit(depth, f"{self.shared} {self.cells(s, depth)};")
            self._clear(s.sym, str(math.prod(lengths)), depth)
            return
        e = self.expressions
        e.headers.add("dynamic")
        texts = [f"pf_length({self.text(length)})" for length in s.shape]
        extents = [e.extent_name(s.sym, axis) for axis in range(len(s.shape))]
        for extent, text in zip(extents, texts, strict=True):
            self.emit(depth, f"const int64_t {extent} = {text};")
        for axis, stride in enumerate(e.views[s.sym].strides[:-1]):
            product = " * ".join(extents[axis + 1 :])
            self.emit(depth, f"const int64_t {e.strides[stride]} = {product};")
        place = self.spaces.index(s.sym)
        before = f"pf_after_{place - 1}" if place else "0"
        cells = " * ".join(extents)
        self.emit(depth, f"{kind}* const {name} = ({kind}*)(pf_dynamic + {before});")
        if place + 1 < len(self.spaces):
            room = f"({cells} * (int64_t)sizeof({kind}) + 15) / 16 * 16"
            self.emit(depth, f"const int64_t pf_after_{place} = {before} + {room};")
        self._clear(s.sym, cells, depth)

    def _clear(self, sym: Sym, cells: str, depth: int) -> None:
        """Make shared memory zero, by all threads."""
        k = self.context.unique.take("k")
        head = f"for (int64_t {k} = pf_thread(x); {k} < {cells}; {k} += {self.threads})"
        self.emit(depth, f"{head} {self.names[sym]}[{k}] = {sym.dtype.cpp}();")


def _loose(spec: KernelSpec) -> set[Sym]:
    """The views that may overlap others."""
    pairs = zip(spec.workunit.params, spec.views, strict=True)
    return {param.sym for param, view in pairs if view is not None and not view.restrict}
