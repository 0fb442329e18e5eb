"""The functions of a nest as C++."""

from __future__ import annotations

from collections.abc import Sequence

from pyfuser.codegen.c.statements import INDENT, Statements
from pyfuser.codegen.cpu.context import Bounds, Context, function
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Expr, Logical
from pyfuser.ir.visit import contains
from pyfuser.nest.build import values
from pyfuser.nest.nodes import Ask, Function, Give, Nest, Over, Run
from pyfuser.nest.passes.lower_boxes import loops

LOCALS = frozenset({"at", "stop", "next", "whole", "part", "upto", "low", "high", "piece", "strip"})
"""Names of locals that passes make."""


def functions_code(context: Context, nest: Nest, functions: Sequence[Function]) -> str:
    """Functions of a nest."""
    printer = _Functions(context, nest)
    return "".join(map(printer.code, functions))


class _Functions(Statements):
    def __init__(self, context: Context, nest: Nest) -> None:
        super().__init__(context.expressions, nest.workunit.body, context.statements.apart)
        self.context, self.rank = context, nest.rank
        self.counters = nest.counters

    def code(self, f: Function) -> str:
        context, names = self.context, self.names
        context.uses(*f.straight)
        lines = self.print(f.body, 1)
        if f.result is not None and f.low:
            return self._scan_pass(f, lines)
        if f.result is not None:
            tests = f"\n{INDENT * 2}&& ".join(f"({self.text(e)})" for e in _conjuncts(f.result))
            lines.append(f"{INDENT}return {tests};")
            kinds = ("const " * (sym in self.counters) + "int64_t " for sym in f.params)
            given = [kind + names[sym] for kind, sym in zip(kinds, f.params, strict=True)]
            head = f"{f.result.dtype.cpp} {f.name}"
            return function(head, [*given, *context.signature], lines, inline=True)
        gives = contains(f.body, Give)
        if self.rank == 1 and not gives:
            parameters = [f"int64_t {names[sym]}" for sym in (*f.low, *f.high)]
        else:
            parameters = [f"const int64_t* {end}" for end in ("begin", "end")]
            parameters += ["int64_t* results"] * gives
            lines = [*self._unpacked(f), *lines]
        lines = context.guard() + lines
        return function(f"void {f.name}", [*parameters, *context.signature], lines)

    def _scan_pass(self, f: Function, lines: list[str]) -> str:
        """Also of whether it is the last pass, which the compiler knows."""
        (total, last_pass), names = f.params, self.names
        kind = total.dtype.cpp
        parameters = [f"int64_t {names[sym]}" for sym in (*f.low, *f.high)]
        parameters += [f"{kind} {names[total]}", *self.context.signature]
        lines = [*self.context.guard(f"{kind}()"), *lines, f"{INDENT}return {names[total]};"]
        code = function(f"{kind} {f.name}", parameters, lines)
        return f"template <bool {names[last_pass]}>\n{code}"

    def _unpacked(self, f: Function) -> list[str]:
        """Locals for the bounds of all axes: behind a pointer a store might change them."""
        names = self.names
        return [
            f"{INDENT}const int64_t {names[low]} = begin[{axis}], {names[high]} = end[{axis}];"
            for axis, (low, high) in enumerate(zip(f.low, f.high, strict=True))
        ]

    def run(self, s: Run, depth: int) -> None:
        tail = "".join(", " + a for a in self.context.arguments)
        low, high = (", ".join(map(self.text, ends)) for ends in (s.low, s.high))
        if self.rank == 1:
            self.emit(depth, f"{s.function}({low}, {high}{tail});")
            return
        self.emit(depth, "{")
        self.emit(depth + 1, f"const int64_t part[] = {{{low}}}, upto[] = {{{high}}};")
        self.emit(depth + 1, f"{s.function}(part, upto{tail});")
        self.emit(depth, "}")

    def give(self, s: Give, depth: int) -> None:
        place = f"*({s.value.dtype.cpp}*)(results + {2 * s.place})"
        self.emit(depth, f"{place} = {self.text(s.value)};")

    def ask(self, s: Ask, depth: int) -> None:
        arguments = ", ".join([*map(self.text, s.arguments), *self.context.arguments])
        self.emit(depth, f"const bool {self.names[s.sym]} = {s.function}({arguments});")


def _conjuncts(e: Expr) -> list[Expr]:
    """What all must hold if an expression does, in order."""
    if isinstance(e, Logical) and e.op == "&&":
        return [*_conjuncts(e.left), e.right]
    return [e]


_Functions.statements = {
    **Statements.statements,
    Run: _Functions.run,
    Ask: _Functions.ask,
    Give: _Functions.give,
}


def loop_lines(context: Context, bounds: list[Bounds]) -> list[str]:
    """Loops around the body, between named bounds."""
    ends = [[context.array(name, DType.INT64) for name in pair] for pair in bounds]
    low, high = zip(*ends, strict=True)
    over = Over(values(low), values(high), context.workunit.body)
    return context.print((loops(context.nest, over),), 1)
