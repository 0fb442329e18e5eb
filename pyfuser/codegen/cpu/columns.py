"""Code for a strip of iterations whose loops run trip by trip: see `passes.strip_mine`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.cpu.context import Context, fresh_syms
from pyfuser.codegen.passes.distribute import Segment
from pyfuser.codegen.passes.row_sums import SHORTEST
from pyfuser.codegen.passes.scalar_expansion import (
    Branch,
    Part,
    Sums,
    Trips,
    kept_between,
    segments_of,
    shared,
    sums_of,
)
from pyfuser.codegen.passes.strip_mine import columns
from pyfuser.ir.nodes import Assign, Body, Declare, DeclareArray, For, Stmt, Sym
from pyfuser.ir.visit import assigned, declared, statements
from pyfuser.nest.cost.work import body_cost

LOCALS = frozenset({"step", "lane", "half", "cell", "taking"})

_APART = 9
"""Cache lines between the arrays of iterations: rows of two would else begin at one place of a page
(4 KiB), and a load has to wait for earlier stores to the same place of any page."""

PrintBody = Callable[[Body, int], list[str]]


@dataclass(frozen=True, slots=True)
class Columns:
    """The parts that the iterations of a strip take in turn, and the arrays of what they keep.

    lanes: for each total of a loop with sums, the array of the strip's running sums.
    lengths: of those locals that are arrays themselves. The strip has their first elements side by
    side, then the second ones (`pf_column`).
    """

    parts: tuple[Part, ...]
    arrays: dict[Sym, str]
    lanes: dict[Sym, str]
    lengths: dict[Sym, int]

    @property
    def bytes(self) -> int:
        """What is kept for an iteration."""
        named = {name: sym for sym, name in self.arrays.items()}
        own = sum(self.lengths.get(sym, 1) * sym.dtype.size for sym in named.values())
        return own + sum(_count(sym) * sym.dtype.size for sym in self.lanes)


def columns_of(context: Context) -> Columns | None:
    """How strips of a body's iterations run its loops; None for a body without columns."""
    if not context.independent:
        return None
    workunit, axis = context.workunit, context.spec.order.axes[-1]
    pairs = zip(workunit.params, context.spec.views, strict=True)
    views = {param.sym: view for param, view in pairs if view is not None}
    parts = columns(workunit, workunit.indices[axis], views, fresh_syms(context))
    if parts is None:
        return None
    take, names = context.unique.take, context.names
    lengths = {
        stmt.sym: len(stmt.values)
        for stmt in statements(workunit.body)
        if isinstance(stmt, DeclareArray)
    }
    arrays: dict[Sym, str] = {}
    owners = shared(parts, frozenset(lengths))
    for segment in segments_of(parts):
        names |= {sym: take(sym.name) for sym in declared(segment.body) if sym not in names}
    for sym in kept_between(parts):
        if owners.get(sym, sym) is sym:
            arrays[sym] = take(f"{names[sym]}_columns")
    arrays |= {sym: arrays[owner] for sym, owner in owners.items()}
    totals = (pair for sums in sums_of(parts) for pair in sums.totals)
    lanes = {total: take(f"{names[sym]}_lanes") for sym, total in totals}
    names.update({total: f"{name}[step]" for total, name in lanes.items()})
    kept = {sym: length for sym, length in lengths.items() if sym in arrays}
    return Columns(parts, arrays, lanes, kept)


def _count(sym: Sym) -> int:
    """The running sums of an iteration: `pf_lanes<T>::count`."""
    return 256 // sym.dtype.size


def _line(sym: Sym) -> int:
    """The elements of a cache line."""
    return 64 // sym.dtype.size


def _pitch(sym: Sym, size: int) -> int:
    """From the first elements of a strip's arrays to the second ones: for the same reason not a
    power of two.
    """
    return size + _line(sym)


def memory_lines(columns: Columns, size: int, depth: int) -> list[str]:
    """The declarations of what is kept for strips of a size."""
    lengths = {
        name: columns.lengths[sym] * _pitch(sym, size) + _APART * _line(sym)
        if sym in columns.lengths
        else size
        for sym, name in columns.arrays.items()
    }
    lengths |= {name: size * _count(sym) for sym, name in columns.lanes.items()}
    named = columns.arrays | columns.lanes
    return [
        f"{INDENT * depth}alignas(64) {sym.dtype.cpp} {name}[{lengths[name]}];"
        for name, sym in {name: sym for sym, name in named.items()}.items()
    ]


def column_loops(
    context: Context, columns: Columns, size: int, axis: int, depth: int, print_body: PrintBody
) -> list[str]:
    """The loops over `count` iterations of an axis from `at`; arrays are for strips of `size`."""
    printer = _Printer(context, columns, size, axis, print_body)
    branches = any(isinstance(part, Branch) for part in columns.parts)
    if not (columns.lanes or branches) or not context.workunit.accumulators:
        return printer.parts(columns.parts, depth, ())
    start = Segment((), True)  # from here on accumulators have a value
    return printer.parts((start, *columns.parts), depth, ())


class _Printer:
    def __init__(
        self,
        context: Context,
        columns: Columns,
        size: int,
        axis: int,
        print_body: PrintBody,
    ) -> None:
        self.context = context
        self.columns = columns
        self.size = size
        self.first = ""
        self.axis = axis
        self.print_body = print_body

    def parts(self, parts: Sequence[Part], depth: int, around: tuple[For, ...]) -> list[str]:
        lines: list[str] = []
        for part in parts:
            if isinstance(part, Trips):
                lines += self._trips(part, depth, around)
            elif isinstance(part, Branch):
                lines += self._branch(part, depth, around)
            else:
                lines += self._strip(part, depth, around)
        return lines

    def _branch(self, branch: Branch, depth: int, around: tuple[For, ...]) -> list[str]:
        """A side of an If: for all iterations, or for those of a strip that take it."""
        indent = INDENT * depth
        if branch.test is not None:
            head = f"{indent}if ({self.context.expressions.text(branch.test)}) {{"
            return [head, *self.parts(branch.parts, depth + 1, around), f"{indent}}}"]
        assert branch.taken is not None and branch.plain is not None
        taken = self.columns.arrays[branch.taken]
        return [
            f"{indent}{{",
            f"{indent}{INDENT}int64_t taking = 0;",
            f"{indent}{INDENT}for (int64_t step = 0; step < count; ++step) "
            f"taking += {taken}[step];",
            f"{indent}{INDENT}if (taking * {self.context.spec.tuning.few_branches} > count) {{",
            *self.parts(branch.parts, depth + 2, around),
            f"{indent}{INDENT}}} else if (taking) {{",
            *self._strip(branch.plain, depth + 2, around),
            f"{indent}{INDENT}}}",
            f"{indent}}}",
        ]

    def _trips(self, trips: Trips, depth: int, around: tuple[For, ...]) -> list[str]:
        loop, indent = trips.loop, INDENT * depth
        names, text = self.context.names, self.context.expressions.text
        k, kind = names[loop.sym], loop.sym.dtype.cpp
        stop = self.context.unique.take(f"{k}_stop")
        lines = [
            f"{indent}{{",
            f"{indent}{INDENT}{kind} {k} = {text(loop.start)};",
            f"{indent}{INDENT}const int64_t {stop} = {text(loop.stop)};",
        ]
        if trips.sums is not None:
            lines += self._sums(trips, trips.sums, depth + 1, stop)
            return [*lines, f"{indent}}}"]
        lines += self._loop(trips, depth + 1, around, stop)
        return [*lines, f"{indent}}}"]

    def _sums(self, trips: Trips, sums: Sums, depth: int, stop: str) -> list[str]:
        """A loop with sums: of what is in the lanes of running sums, or in order if it is short."""
        indent, k = INDENT * depth, self.context.names[trips.loop.sym]
        first = self.context.unique.take(f"{k}_first")
        lines = [
            f"{indent}if ({stop} - {k} >= {SHORTEST}) {{",
            f"{indent}{INDENT}const int64_t {first} = {k};",
        ]
        for _, total in sums.totals:
            name = self.columns.lanes[total]
            head = f"{indent}{INDENT}for (int64_t lane = 0; lane < {_count(total)}; ++lane)"
            lines += [head, f"{indent}{INDENT * 2}for (int64_t step = 0; step < count; ++step)"]
            lines.append(f"{indent}{INDENT * 3}{name}[lane * {self.size} + step] = 0;")
        self.first = first
        lines += self._loop(trips, depth + 1, (), stop)
        for _, total in sums.totals:
            name, pad = self.columns.lanes[total], indent + INDENT
            lines += [
                f"{pad}for (int64_t half = {_count(total) // 2}; half >= 1; half /= 2)",
                f"{pad}{INDENT}for (int64_t lane = 0; lane < half; ++lane)",
                f"{pad}{INDENT * 2}for (int64_t step = 0; step < count; ++step)",
                f"{pad}{INDENT * 3}{name}[lane * {self.size} + step] += "
                f"{name}[(lane + half) * {self.size} + step];",
            ]
        lines += self._strip(sums.added, depth + 1, ())
        lines.append(f"{indent}}} else {{")
        lines += self._strip(sums.plain, depth + 1, ())
        return [*lines, f"{indent}}}"]

    def _loop(self, trips: Trips, depth: int, around: tuple[For, ...], stop: str) -> list[str]:
        """The loop itself, whose variable has its first value."""
        loop, inner = trips.loop, INDENT * depth
        k, by = self.context.names[loop.sym], _step(loop)
        sign = "<" if by > 0 else ">"
        lines: list[str] = []
        totals = trips.sums.totals if trips.sums is not None else ()
        together = self.context.spec.tuning.strip_trips
        if self._is_light(trips):
            (part,) = trips.parts
            assert isinstance(part, Segment)
            last = f"{k} {'+' if by > 0 else '-'} INT64_C({abs(by) * (together - 1)})"
            lines.append(f"{inner}for (; {last} {sign} {stop}; {k} += {by * together}) {{")
            lines += self._strip(part, depth + 1, (*around, loop), together, totals)
            lines.append(f"{inner}}}")
        lines.append(f"{inner}for (; {k} {sign} {stop}; {k} += {by}) {{")
        for part in trips.parts:
            if isinstance(part, Segment):
                lines += self._strip(part, depth + 1, (*around, loop), 1, totals)
            else:
                lines += self.parts((part,), depth + 1, (*around, loop))
        return [*lines, f"{inner}}}"]

    def _is_light(self, trips: Trips) -> bool:
        """Whether several trips go into one loop over the strip."""
        if len(trips.parts) > 1 or not isinstance(trips.parts[0], Segment):
            return False
        return body_cost(trips.parts[0].body) <= self.context.spec.tuning.light_trip

    def _strip(
        self,
        part: Segment,
        depth: int,
        around: tuple[For, ...],
        together: int = 1,
        totals: Sequence[tuple[Sym, Sym]] = (),
    ) -> list[str]:
        """A loop over the strip, for so many trips of the loop around it, which may have sums."""
        context, indent = self.context, INDENT * depth
        arrays, names = self.columns.arrays, context.names
        zeros, part = self._zeroed(part, depth)
        lines = [
            *zeros,
            *context.ivdep(depth),
            f"{indent}for (int64_t step = 0; step < count; ++step) {{",
            f"{indent}{INDENT}const int64_t {context.counter(self.axis)} = at + step;",
            *context.narrowed(depth + 1),
            *self._arriving(part, depth + 1),
        ]
        inner, guard = depth + 1, part.guard
        if guard is not None:
            ahead, part = _declared_ahead(part)
            lines += [f"{indent}{INDENT}{s.dtype.cpp} {names[s]}{{}};" for s in ahead]
            lines.append(f"{indent}{INDENT}if ({names[guard]}) {{")
            inner += 1
        if together == 1:
            plainly = around or guard is not None  # no accumulators under conditions
            print_body = context.statements.print if plainly else self.print_body
            body = print_body(part.body, inner)
            lines += self._with_sums(totals, around, body, inner)
        else:
            lines += self._repeated(part, inner, around, together, totals)
        if guard is not None:
            lines.append(f"{indent}{INDENT}}}")
        for sym in part.leaving:
            if sym not in self.columns.lengths:
                lines.append(f"{indent}{INDENT}{arrays[sym]}[step] = {names[sym]};")
        return [*lines, f"{indent}}}"]

    def _arriving(self, part: Segment, depth: int) -> list[str]:
        """The declarations of what an iteration kept before."""
        arrays, names, indent = self.columns.arrays, self.context.names, INDENT * depth
        changed = assigned(part.body)
        lines: list[str] = []
        guard: tuple[Sym, ...] = () if part.guard is None else (part.guard,)
        for sym in dict.fromkeys((*part.arriving, *guard)):
            if sym in self.columns.lengths:
                self.context.uses("column")
                kind = f"const pf_column<{sym.dtype.cpp}, {_pitch(sym, self.size)}>"
                lines.append(f"{indent}{kind} {names[sym]}{{{arrays[sym]} + step}};")
                continue
            kind = ("" if sym in changed else "const ") + sym.dtype.cpp
            lines.append(f"{indent}{kind} {names[sym]} = {arrays[sym]}[step];")
        return lines

    def _zeroed(self, part: Segment, depth: int) -> tuple[list[str], Segment]:
        """The arrays of a part that start at zeros, and the part without their declarations."""
        lines, body = [], list[Stmt]()
        for stmt in part.body:
            if isinstance(stmt, DeclareArray) and stmt.sym in self.columns.lengths:
                elements = (
                    f"{self.columns.lengths[stmt.sym]} * INT64_C({_pitch(stmt.sym, self.size)})"
                )
                head = f"for (int64_t cell = 0; cell < {elements}; ++cell)"
                name = self.columns.arrays[stmt.sym]
                lines.append(f"{INDENT * depth}{head} {name}[cell] = {stmt.sym.dtype.cpp}();")
            else:
                body.append(stmt)
        return lines, replace(part, body=tuple(body))

    def _with_sums(
        self,
        totals: Sequence[tuple[Sym, Sym]],
        around: tuple[For, ...],
        body: list[str],
        depth: int,
    ) -> list[str]:
        """A trip whose terms go to the running sums."""
        names, indent = self.context.names, INDENT * depth
        before = [f"{indent}{sym.dtype.cpp} {names[sym]}{{}};" for sym, _ in totals]
        after = [
            f"{indent}{self.columns.lanes[total]}[({names[around[-1].sym]} - {self.first} & "
            f"{_count(total) - 1}) * {self.size} + step] += {names[sym]};"
            for sym, total in totals
        ]
        return [*before, *body, *after]

    def _repeated(
        self,
        part: Segment,
        depth: int,
        around: tuple[For, ...],
        together: int,
        totals: Sequence[tuple[Sym, Sym]],
    ) -> list[str]:
        """Trips of a loop one after the other."""
        loop = around[-1]
        names, indent, first = self.context.names, INDENT * depth, self.context.names[loop.sym]
        kind, lines = loop.sym.dtype.cpp, list[str]()
        for n in range(together):
            names[loop.sym] = self.context.unique.take(f"{first}_{n}")
            lines += [
                f"{indent}{{",
                f"{indent}{INDENT}const {kind} {names[loop.sym]} = {first} + {n * _step(loop)};",
                *self._with_sums(
                    totals, around, self.context.statements.print(part.body, depth + 1), depth + 1
                ),
                f"{indent}}}",
            ]
        names[loop.sym] = first
        return lines


def _declared_ahead(part: Segment) -> tuple[list[Sym], Segment]:
    """What a part with a guard leaves, and the part with assignments for their declarations.

    Iterations that do not take the branch leave zeros, which nobody reads but as guards.
    """
    ahead, body = list[Sym](), list[Stmt]()
    for stmt in part.body:
        if isinstance(stmt, Declare) and stmt.sym in part.leaving:
            ahead.append(stmt.sym)
            if stmt.value is not None:
                body.append(Assign(stmt.sym, stmt.value))
        else:
            body.append(stmt)
    return ahead, replace(part, body=tuple(body))


def _step(loop: For) -> int:
    return int(loop.step.value)  # type: ignore[union-attr, arg-type]
