"""Code for a strip of iterations whose loops run trip by trip: see `columns`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyfuser.codegen.columns import Part, Trips, columns, kept_between
from pyfuser.codegen.cpp_context import Context
from pyfuser.codegen.cpp_cost import body_cost
from pyfuser.codegen.cpp_statements import INDENT
from pyfuser.codegen.segments import Segment
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Body, For, Sym
from pyfuser.ir.visit import assigned

LOCALS = frozenset({"step"})

WIDTHS = (2048, 1024, 512, 256, 128, 64)
"""Iterations of a strip: the longer, the better memory is walked along."""

FEWEST = 16
"""Fewer iterations have too few vectors to gain, and too much to do beside them."""

_TOGETHER = 4
"""Trips that share a loop over a strip, if they are light: what they keep stays in registers."""

_LIGHT = 16
"""Additions in a light trip."""

PrintBody = Callable[[Body, int], list[str]]


@dataclass(frozen=True, slots=True)
class Columns:
    """The parts that the iterations of a strip take in turn, and the arrays of what they keep."""

    parts: tuple[Part, ...]
    arrays: dict[Sym, str]

    @property
    def bytes(self) -> int:
        """What is kept for an iteration."""
        return sum(sym.dtype.size for sym in self.arrays)


def columns_of(context: Context) -> Columns | None:
    """How strips of a body's iterations run its loops; None for a body without columns."""
    if not context.independent:
        return None
    workunit, axis = context.workunit, context.spec.order.axes[-1]
    pairs = zip(workunit.params, context.spec.views, strict=True)
    views = {param.sym: view for param, view in pairs if view is not None}
    parts = columns(workunit, workunit.indices[axis], views)
    if parts is None:
        return None
    take, names = context.unique.take, context.names
    return Columns(parts, {s: take(f"{names[s]}_columns") for s in kept_between(parts)})


def memory_lines(columns: Columns, size: int, depth: int) -> list[str]:
    """The declarations of what is kept for strips of a size."""
    return [
        f"{INDENT * depth}alignas(64) {sym.dtype.cpp} {name}[{size}];"
        for sym, name in columns.arrays.items()
    ]


def column_loops(
    context: Context, columns: Columns, axis: int, depth: int, print_body: PrintBody
) -> list[str]:
    """The loops over `count` iterations of an axis from `at`."""
    printer = _Printer(context, columns, axis, print_body)
    return printer.parts(columns.parts, depth, ())


class _Printer:
    def __init__(
        self, context: Context, columns: Columns, axis: int, print_body: PrintBody
    ) -> None:
        self.context = context
        self.columns = columns
        self.axis = axis
        self.print_body = print_body

    def parts(self, parts: Sequence[Part], depth: int, around: tuple[For, ...]) -> list[str]:
        lines: list[str] = []
        for part in parts:
            if isinstance(part, Trips):
                lines += self._trips(part, depth, around)
            else:
                lines += self._strip(part, depth, around)
        return lines

    def _trips(self, trips: Trips, depth: int, around: tuple[For, ...]) -> list[str]:
        loop, indent = trips.loop, INDENT * depth
        names, text = self.context.names, self.context.expressions.text
        k, kind, by = names[loop.sym], loop.sym.dtype.cpp, _step(loop)
        stop = self.context.unique.take(f"{k}_stop")
        sign = "<" if by > 0 else ">"
        lines = [
            f"{indent}{{",
            f"{indent}{INDENT}{kind} {k} = {text(loop.start)};",
            f"{indent}{INDENT}const int64_t {stop} = {text(loop.stop)};",
        ]
        inner = indent + INDENT
        if self._is_light(trips):
            (part,) = trips.parts
            assert isinstance(part, Segment)
            last = f"{k} {'+' if by > 0 else '-'} INT64_C({abs(by) * (_TOGETHER - 1)})"
            lines.append(f"{inner}for (; {last} {sign} {stop}; {k} += {by * _TOGETHER}) {{")
            lines += self._strip(part, depth + 2, (*around, loop), _TOGETHER)
            lines.append(f"{inner}}}")
        lines.append(f"{inner}for (; {k} {sign} {stop}; {k} += {by}) {{")
        lines += self.parts(trips.parts, depth + 2, (*around, loop))
        return [*lines, f"{inner}}}", f"{indent}}}"]

    def _is_light(self, trips: Trips) -> bool:
        """Whether several trips go into one loop over the strip."""
        if len(trips.parts) > 1 or not isinstance(trips.parts[0], Segment):
            return False
        wide = trips.loop.sym.dtype in (DType.INT32, DType.INT64)
        return wide and body_cost(trips.parts[0].body) <= _LIGHT

    def _strip(
        self, part: Segment, depth: int, around: tuple[For, ...], together: int = 1
    ) -> list[str]:
        """A loop over the strip, for so many trips of the loop around it."""
        context, indent = self.context, INDENT * depth
        changed, arrays, names = assigned(part.body), self.columns.arrays, context.names
        print_body = context.statements.print if around else self.print_body
        lines = [
            *context.ivdep(depth),
            f"{indent}for (int64_t step = 0; step < count; ++step) {{",
            f"{indent}{INDENT}const int64_t {context.counter(self.axis)} = at + step;",
            *context.narrowed(depth + 1),
        ]
        for sym in part.arriving:
            kind = ("" if sym in changed else "const ") + sym.dtype.cpp
            lines.append(f"{indent}{INDENT}{kind} {names[sym]} = {arrays[sym]}[step];")
        if together == 1:
            lines += print_body(part.body, depth + 1)
        else:
            lines += self._repeated(part, depth + 1, around[-1], together)
        for sym in part.leaving:
            lines.append(f"{indent}{INDENT}{arrays[sym]}[step] = {names[sym]};")
        return [*lines, f"{indent}}}"]

    def _repeated(self, part: Segment, depth: int, loop: For, together: int) -> list[str]:
        """Trips of a loop one after the other."""
        names, indent, first = self.context.names, INDENT * depth, self.context.names[loop.sym]
        kind, lines = loop.sym.dtype.cpp, list[str]()
        for n in range(together):
            names[loop.sym] = self.context.unique.take(f"{first}_{n}")
            lines += [
                f"{indent}{{",
                f"{indent}{INDENT}const {kind} {names[loop.sym]} = {first} + {n * _step(loop)};",
                *self.context.statements.print(part.body, depth + 1),
                f"{indent}}}",
            ]
        names[loop.sym] = first
        return lines


def _step(loop: For) -> int:
    return int(loop.step.value)  # type: ignore[union-attr, arg-type]
