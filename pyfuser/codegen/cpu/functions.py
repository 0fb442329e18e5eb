"""The functions of a nest as C++."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyfuser.codegen.c.statements import INDENT, Statements
from pyfuser.codegen.cpu.context import Context, function
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Accumulator, Expr, Logical, Sym
from pyfuser.ir.visit import contains
from pyfuser.nest.nodes import Ask, Function, Give, Nest, Run, RunningSums, TiledSums, Trimmed

LOCALS = frozenset({"at", "stop", "next", "whole", "part", "upto", "low", "high", "piece", "strip"})
"""Names of locals that passes make."""

VECTORS = 4
"""Of a `pf_sum`."""


_PARTS = {DType.COMPLEX64: "float", DType.COMPLEX128: "double"}


def part_of(sym: Sym) -> str:
    """The C++ type of a term's parts."""
    return _PARTS.get(sym.dtype, sym.dtype.cpp)


class SumNames:
    """Its names, and the types of its sums and terms."""

    def __init__(self, context: Context, accumulator: Accumulator, terms: Sym, block: int) -> None:
        """terms: the array for those of a block, which has so many."""
        dtype, take = accumulator.sym.dtype, context.unique.take
        self.kind, self.part, self.wide = dtype.cpp, part_of(terms), dtype.is_complex
        self.term, self.terms = context.names[accumulator.sym], context.names[terms]
        self.sum, self.partial, self.few = (
            take(f"{self.term}_{what}") for what in ("sum", "partial", "few")
        )
        self.type = f"pf_sum<{self.part}, {block}{', 2' * self.wide}>"
        context.expressions.made.add(terms)
        if self.wide:
            context.expressions.pairs.add(terms)

    def times(self, count: str) -> str:
        """The offset of so many terms; a complex one is two numbers."""
        return f" + {'2 * ' * self.wide}{count}" if count else ""


class Tiled(NamedTuple):
    """Tiled sums, the names of the accumulators, and the code that sums up a tile.

    That is `pf_terms`, `pf_running` (the sums of a tile that is not complete) and `pf_more`, which
    continues it over a box.
    """

    node: TiledSums
    sums: Sequence[SumNames]
    code: str


def functions_code(
    context: Context, nest: Nest, functions: Sequence[Function], sums: Mapping[Sym, SumNames] = {}
) -> str:
    """Functions of a nest."""
    printer = _Functions(context, nest, sums)
    return "".join(map(printer.code, functions))


class _Functions(Statements):
    def __init__(self, context: Context, nest: Nest, sums: Mapping[Sym, SumNames]) -> None:
        super().__init__(context.expressions, nest.workunit.body)
        self.context, self.rank, self.sums = context, nest.rank, sums
        self.counters = nest.counters

    def code(self, f: Function) -> str:
        names = self.names
        self.context.uses(*f.straight)
        lines = self.print(f.body, 1)
        if f.low:
            return self._of_box(f, lines)
        given = ["pf_running& running"] * bool(f.sums)
        for sym in f.params:
            const = "const " * (sym in self.counters)
            kind = f"{part_of(sym)}*" if sym in f.arrays else f"{const}int64_t"
            given.append(f"{kind} {names[sym]}")
        head = f"void {f.name}"
        if f.result is not None:
            tests = f"\n{INDENT * 2}&& ".join(f"({self.text(e)})" for e in _conjuncts(f.result))
            # With each test g++ believes less that all hold, and makes no vectors of what is rare.
            lines.append(f"{INDENT}return __builtin_expect({tests}, 1);")
            head = f"{f.result.dtype.cpp} {f.name}"
        return function(head, [*given, *self.context.signature], lines, f.inline, f.once)

    def _of_box(self, f: Function, lines: list[str]) -> str:
        context, names = self.context, self.names
        gives = contains(f.body, Give)
        if self.rank == 1 and not gives:
            parameters = [f"int64_t {names[sym]}" for sym in (*f.low, *f.high)]
        else:
            parameters = [f"const int64_t* {end}" for end in ("begin", "end")]
            parameters += ["int64_t* results"] * gives
            lines = [*self._unpacked(f), *lines]
        if f.result is None:
            lines = context.guard() + lines
            return function(f"void {f.name}", [*parameters, *context.signature], lines)
        total, last_pass = f.params  # the compiler knows whether it is the last pass
        kind, name = total.dtype.cpp, names[total]
        parameters += [f"{kind} {name}", *context.signature]
        lines = [*context.guard(f"{kind}()"), *lines, f"{INDENT}return {name};"]
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

    def trimmed(self, s: Trimmed, depth: int) -> None:
        names, first, count = self.names, self.text(s.first), self.text(s.count)
        tail = [*map(self.text, s.others), *self.context.arguments]

        def test(begin: str, end: str) -> str:
            return f"{s.inside}({', '.join([begin, end, *tail])})"

        def run(name: str, skipped: str, count: str, deeper: int = 1) -> None:
            places = (f"{names[a]}{by(a, skipped)}" for a in s.arrays)
            begin = f"{first} + {skipped}" if skipped else first
            self.emit(depth + deeper, f"{name}({', '.join([begin, count, *places, *tail])});")

        def by(array: Sym, skipped: str) -> str:
            return f" + {'2 * ' * array.dtype.is_complex}{skipped}" if skipped else ""

        self.emit(depth, f"if ({test(first, f'{first} + {count} - 1')}) {{")
        run(s.middle, "", count)
        self.emit(depth, "} else {")
        inside, edge = map(self.context.unique.take, ("inside", "edge"))
        self.emit(depth + 1, f"bool {inside} = false;")
        self.emit(depth + 1, f"int64_t {edge} = 1;")
        head = f"for (; {edge} <= {s.widest} && {count} > 2 * {edge}; {edge} *= 2)"
        middle = test(f"{first} + {edge}", f"{first} + {count} - {edge} - 1")
        self.emit(depth + 1, f"{head} if (({inside} = {middle})) break;")
        self.emit(depth + 1, f"if ({inside}) {{")
        run(s.around, "", edge, 2)
        run(s.middle, edge, f"{count} - 2 * {edge}", 2)
        run(s.around, f"({count} - {edge})", edge, 2)
        self.emit(depth + 1, "} else {")
        run(s.around, "", count, 2)
        self.emit(depth + 1, "}")
        self.emit(depth, "}")

    def running(self, s: RunningSums, depth: int) -> None:
        """With the running sums in locals, which stay in registers."""
        done, names, take = self.names[s.sym], self.names, self.context.unique.take
        sums = [(array, self.sums[sym]) for sym, array in zip(s.sums, s.terms, strict=True)]
        vectors = [
            (array, one.type, f"running.{one.sum}.sum[{v}]", take(f"{one.sum}_{v}"), v)
            for array, one in sums
            for v in range(VECTORS)
        ]
        self.emit(depth, "{")
        for _, kind, place, vector, _ in vectors:
            self.emit(depth + 1, f"{kind}::vector {vector} = {place};")
        more = f"{done} < {self.text(s.count)}"
        self.emit(depth + 1, f"for (int64_t {done} = 0; {more}; {done} += {s.lanes}) {{")
        self.body(s.allocs, depth + 2)
        self.body(s.body, depth + 2)
        for turn in range(0, s.lanes * max(a.dtype.size for a in s.terms), VECTORS * 64):
            for array, kind, _, vector, v in vectors:
                if turn < s.lanes * array.dtype.size:
                    place = f"((const {kind}::vector*){names[array]})[{turn // 64 + v}]"
                    self.emit(depth + 2, f"{vector} += {place};")
        self.emit(depth + 1, "}")
        for _, _, place, vector, _ in vectors:
            self.emit(depth + 1, f"{place} = {vector};")
        self.emit(depth, "}")


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
    Trimmed: _Functions.trimmed,
    RunningSums: _Functions.running,
}
