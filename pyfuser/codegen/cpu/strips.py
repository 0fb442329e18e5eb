"""Code for a strip of iterations: a loop for each part, waiting loops with their trips jammed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.cpu.context import Context
from pyfuser.codegen.passes.distribute import Segment, expansion, is_zero
from pyfuser.codegen.passes.unroll_and_jam import is_long
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Body, Const, Declare, DeclareArray, For, Stmt, Store, Sym
from pyfuser.ir.visit import assigned
from pyfuser.plan.plan import STRIP

LOCALS = frozenset({"strip", "lanes", "lane", "cell"})

PrintBody = Callable[[Body, int], list[str]]


@dataclass(frozen=True, slots=True)
class Strips:
    """The parts that the iterations of a strip take in turn.

    The memory between parts: `arrays` has the array of each local, with an element an iteration;
    of a local array in `lengths` it has so many. Those in `shared` belong to the whole block.
    """

    parts: tuple[Segment, ...]
    arrays: dict[Sym, str]
    lengths: dict[Sym, int]
    shared: frozenset[Sym]

    def place(self, sym: Sym, lane: str | None) -> str:
        """Which element, or row, of a local's array has an iteration; None: that of `step`."""
        if sym in self.shared:
            return "step" if lane is None else f"strip + {lane}"
        return "step - strip" if lane is None else lane


def strips_of(
    context: Context, parts: tuple[Segment, ...], arrays: dict[Sym, str], lengths: dict[Sym, int]
) -> Strips:
    """Names for the memory between parts (see `passes.unroll_and_jam.strips`).

    `arrays` and `lengths`: what passes between the segments of the whole body.
    """
    own = {
        stmt.sym: len(stmt.values)
        for part in parts
        for stmt in part.body
        if isinstance(stmt, DeclareArray)
    }
    take, names = context.unique.take, context.names
    new = {s: take(f"{names[s]}_strip") for s in expansion(parts) if s not in arrays}
    lengths = lengths | {sym: length for sym, length in own.items() if sym in new}
    return Strips(parts, arrays | new, lengths, frozenset(arrays))


def memory_lines(strips: Strips, depth: int) -> list[str]:
    """The declarations of the memory between parts."""
    return [
        f"{INDENT * depth}alignas(64) {sym.dtype.cpp} {name}[{STRIP * strips.lengths.get(sym, 1)}];"
        for sym, name in strips.arrays.items()
        if sym not in strips.shared
    ]


def strip_loops(
    context: Context, strips: Strips, axis: int, depth: int, print_body: PrintBody
) -> list[str]:
    """The loops over `count` iterations of an axis from `at`, a strip at a time."""
    indent = INDENT * depth
    printer = _Printer(context, strips, axis)
    lines = [
        f"{indent}for (int64_t strip = 0; strip < count; strip += {STRIP}) {{",
        f"{indent}{INDENT}const int64_t lanes = count - strip < {STRIP} ? count - strip : {STRIP};",
    ]
    for part in strips.parts:
        if not part.vector:
            lines += printer.apart(part, depth + 1, print_body)
            continue
        lines.append(f"{indent}{INDENT}if (lanes == {STRIP}) {{")
        together = printer.abreast if any(map(is_long, part.body)) else printer.jammed
        lines += together(part, depth + 2)
        lines.append(f"{indent}{INDENT}}} else {{")
        lines += printer.apart(part, depth + 2, context.statements.print)
        lines.append(f"{indent}{INDENT}}}")
    return [*lines, f"{indent}}}"]


def _stores(stmt: DeclareArray) -> list[Stmt]:
    """What gives a local array its first values."""
    return [
        Store(stmt.sym, (Const(cell, DType.INT64),), value)
        for cell, value in enumerate(stmt.values)
    ]


class _Printer:
    def __init__(self, context: Context, strips: Strips, axis: int) -> None:
        self.context = context
        self.strips = strips
        self.counter = context.counter(axis)
        self.index = context.workunit.indices[axis]

    def apart(self, part: Segment, depth: int, print_body: PrintBody) -> list[str]:
        """One iteration after the other."""
        inner = INDENT * (depth + 1)
        lines = [
            f"{INDENT * depth}for (int64_t step = strip; step < strip + lanes; ++step) {{",
            f"{inner}const int64_t {self.counter} = at + step;",
            *self.context.narrowed(depth + 1),
            *self._arrivals(part, None, depth + 1),
        ]
        body: list[Stmt] = []
        for stmt in part.body:
            if isinstance(stmt, DeclareArray) and stmt.sym in self.strips.lengths:
                name, length = self.context.names[stmt.sym], len(stmt.values)
                lines.append(inner + self._row(stmt.sym, None))
                if all(map(is_zero, stmt.values)):
                    lines.append(
                        f"{inner}for (int cell = 0; cell < {length}; ++cell) "
                        f"{name}[cell] = {stmt.sym.dtype.cpp}();"
                    )
                else:
                    body += _stores(stmt)
            else:
                body.append(stmt)
        lines += print_body(tuple(body), depth + 1)
        lines += self._departures(part, None, depth + 1)
        return [*lines, f"{INDENT * depth}}}"]

    def jammed(self, part: Segment, depth: int) -> list[str]:
        """All iterations of a full strip together, trip by trip."""
        names, indent = self.context.names, INDENT * depth
        again = tuple(stmt for stmt in part.body if isinstance(stmt, Declare))
        plain = {s: names[s] for s in (self.index, *part.arriving, *(d.sym for d in again))}
        lanes = [
            {sym: self.context.unique.take(f"{name}_{lane}") for sym, name in plain.items()}
            for lane in range(STRIP)
        ]
        lines = self._outer_indices(depth)
        for lane, renamed in enumerate(lanes):
            names.update(renamed)
            kind, index = self.index.dtype.cpp, names[self.index]
            lines.append(f"{indent}const {kind} {index} = ({kind})(at + strip + {lane});")
            lines += self._arrivals(part, str(lane), depth)
            lines += self.context.statements.print(again, depth)
        for loop in part.body:
            if isinstance(loop, For):
                head, end = self.context.statements.print((replace(loop, body=()),), depth)
                lines.append(head)
                for renamed in lanes:
                    names.update(renamed)
                    trip = self.context.statements.print(loop.body, depth + 2)
                    lines += [f"{indent}{INDENT}{{", *trip, f"{indent}{INDENT}}}"]
                lines.append(end)
        for lane, renamed in enumerate(lanes):
            names.update(renamed)
            lines += self._departures(part, str(lane), depth)
        names.update(plain)
        return lines

    def abreast(self, part: Segment, depth: int) -> list[str]:
        """All iterations of a full strip, a lane each; what a trip leaves to the next is kept."""
        indent, inner = INDENT * depth, INDENT * (depth + 2)
        again = tuple(stmt for stmt in part.body if isinstance(stmt, Declare))
        kept = replace(part, leaving=tuple(s for s in part.arriving if s in assigned(part.body)))
        lines: list[str] = []
        for loop in part.body:
            if isinstance(loop, For):
                head, end = self.context.statements.print((replace(loop, body=()),), depth)
                lines += [
                    head,
                    *self.context.ivdep(depth + 1),
                    f"{indent}{INDENT}for (int64_t lane = 0; lane < {STRIP}; ++lane) {{",
                    f"{inner}const int64_t {self.counter} = at + strip + lane;",
                    *self.context.narrowed(depth + 2),
                    *self._arrivals(part, "lane", depth + 2),
                    *self.context.statements.print((*again, *loop.body), depth + 2),
                    *self._departures(kept, "lane", depth + 2),
                    f"{indent}{INDENT}}}",
                    end,
                ]
        return lines

    def _outer_indices(self, depth: int) -> list[str]:
        """The declarations of narrower indices of the other axes."""
        return [
            f"{INDENT * depth}const {sym.dtype.cpp} {self.context.names[sym]} = "
            f"({sym.dtype.cpp}){self.context.counter(axis)};"
            for axis, sym in enumerate(self.context.workunit.indices)
            if sym is not self.index and sym.dtype is not DType.INT64
        ]

    def _arrivals(self, part: Segment, lane: str | None, depth: int) -> list[str]:
        lines, changed = [], assigned(part.body)
        for sym in part.arriving:
            if sym in self.strips.lengths:
                lines.append(self._row(sym, lane))
            else:
                kind = ("" if sym in changed else "const ") + sym.dtype.cpp
                lines.append(f"{kind} {self.context.names[sym]} = {self._element(sym, lane)};")
        return [INDENT * depth + line for line in lines]

    def _departures(self, part: Segment, lane: str | None, depth: int) -> list[str]:
        return [
            f"{INDENT * depth}{self._element(sym, lane)} = {self.context.names[sym]};"
            for sym in part.leaving
            if sym not in self.strips.lengths
        ]

    def _element(self, sym: Sym, lane: str | None) -> str:
        return f"{self.strips.arrays[sym]}[{self.strips.place(sym, lane)}]"

    def _row(self, sym: Sym, lane: str | None) -> str:
        """The declaration of an iteration's own array, which is a part of the strip's."""
        array, length = self.strips.arrays[sym], self.strips.lengths[sym]
        place = self.strips.place(sym, lane)
        return f"{sym.dtype.cpp}* const {self.context.names[sym]} = {array} + {length} * ({place});"
