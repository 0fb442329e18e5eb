"""ir statements -> lines of C++."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from pyfuser.codegen.c.expressions import SUM, Expressions, short
from pyfuser.ir import nodes
from pyfuser.ir.divisions import may_fail
from pyfuser.ir.dtypes import DType, common_type
from pyfuser.ir.nodes import Body, Stmt, Sym
from pyfuser.ir.visit import assigned
from pyfuser.nest.nodes import (
    Alloc,
    Clear,
    Kind,
    Loop,
    Note,
    NoVectors,
    OrderedSum,
    Prefetch,
    Row,
    Scope,
)
from pyfuser.nest.scratch import stack_cells
from pyfuser.nest.segments import is_zero

INDENT = "    "
SCALAR = '__asm__ volatile("");  // no vectors, which g++ 12 makes wrong here'


class Statements:
    """Prints a body; `constant` locals (assigned once) are declared const."""

    statements: ClassVar[Mapping[type, Callable[..., None]]]
    changing_bool: ClassVar[str] = "uint8_t"
    """The type of bools that branches change: of `bool` g++ makes no vectors."""

    def __init__(self, expressions: Expressions, body: Body) -> None:
        self.expressions = expressions
        self.text = expressions.text
        self.names = expressions.names
        self.changing = assigned(body)
        self.chains = True  # whether there is `else if`
        self.lines: list[str] = []

    def print(self, body: Body, depth: int) -> list[str]:
        """The lines of a body, indented by `depth` levels."""
        kept = self.lines, self.changing
        self.lines, self.changing = [], self.changing | assigned(body)
        self.body(body, depth)
        lines, (self.lines, self.changing) = self.lines, kept
        return lines

    def body(self, body: Body, depth: int) -> None:
        for stmt in body:
            self.statements[type(stmt)](self, stmt, depth)

    def emit(self, depth: int, line: str) -> None:
        self.lines.append(INDENT * depth + line)

    def declare(self, s: nodes.Declare, depth: int) -> None:
        kind, name = s.sym.dtype.cpp, self.names[s.sym]
        if s.sym.dtype is DType.BOOL and s.sym in self.changing:
            kind = self.changing_bool
        if s.value is None:
            # A read of it before any assignment would otherwise depend on what else is fused.
            self.emit(depth, f"{kind} {name}{{}};")
            return
        const = "" if s.sym in self.changing else "const "
        self.emit(depth, f"{const}{kind} {name} = {self.text(s.value)};")

    def declare_array(self, s: nodes.DeclareArray, depth: int) -> None:
        kind = s.sym.dtype.cpp
        values = "" if all(map(is_zero, s.values)) else ", ".join(map(self.text, s.values))
        self.emit(depth, f"{kind} {self.names[s.sym]}[{len(s.values)}] = {{{values}}};")

    def scratch(self, s: nodes.Scratch, depth: int) -> None:
        e, kind, name = self.expressions, s.sym.dtype.cpp, self.names[s.sym]
        e.headers.add("scratch")
        extents = [e.extent_name(s.sym, axis) for axis in range(len(s.shape))]
        for extent, length in zip(extents, s.shape, strict=True):
            self.emit(depth, f"const int64_t {extent} = pf_length({self.text(length)});")
        for axis, stride in enumerate(e.views[s.sym].strides[:-1]):
            product = " * ".join(extents[axis + 1 :])
            self.emit(depth, f"const int64_t {e.strides[stride]} = {product};")
        cells = stack_cells(s)
        if cells is None:
            shape, stack = f"{{{', '.join(extents)}}}", f"pf_{name}_stack"
            self.emit(depth, f"alignas(64) char {stack}[pf_stacked<{kind}>({shape})];")
            self.emit(depth, f"const pf_scratch<{kind}> pf_{name}_memory({shape}, {stack});")
            self.emit(depth, f"{kind}* __restrict__ const {name} = pf_{name}_memory.cells;")
        else:
            self.emit(depth, f"alignas(64) {kind} pf_{name}_memory[{cells}] = {{}};")
            self.emit(depth, f"{kind}* __restrict__ const {name} = pf_{name}_memory;")

    def assign(self, s: nodes.Assign, depth: int) -> None:
        self.emit(depth, f"{self.names[s.sym]} = {self.text(s.value)};")

    def store(self, s: nodes.Store, depth: int) -> None:
        cell = self.expressions.element(s)
        if s.view.dtype is DType.BOOL:  # of bools in memory g++ makes no vectors
            cell = f"(uint8_t&){cell}"
        self.emit(depth, f"{cell} = {self.text(s.value)};")

    def update(self, s: nodes.Update, depth: int) -> None:
        e, dtype = self.expressions, s.target.dtype
        if not s.indices:
            cast = "(bool&)" if dtype is DType.BOOL else ""  # see `declare`
            self.compound(cast + self.names[s.target], dtype, s, depth)
        elif s.target in e.own:
            self.emit(depth, f"{e.own_operation(s)};")
        elif s.atomic and not e.serial:
            cell = e.element(s)
            self.emit(depth, f"{e.atomic_operation(s.op, cell, dtype, self.text(s.value), s)};")
        else:
            self.compound(e.element(s), dtype, s, depth)

    def compound(self, target: str, dtype: DType, s: nodes.Update, depth: int) -> None:
        """`target op= value`, with C++'s conversions."""
        value = self.text(s.value)
        if s.op == "exchange":
            self.emit(depth, f"{target} = {value};")
        elif s.op in ("min", "max"):
            self.expressions.headers.add("minmax")
            common = common_type(dtype, s.value.dtype)
            self.emit(depth, f"{target} = pf_{s.op}<{common.cpp}>({target}, {value});")
        elif dtype.is_complex and s.value.dtype is not dtype:
            self.emit(depth, f"{target} {s.op}= {dtype.cpp}({value});")
        elif self.expressions.traps and may_fail(s.op, dtype, s.value):
            common = common_type(dtype, s.value.dtype)
            value = self.expressions.division(s.op, common, target, value, s)
            self.emit(depth, f"{target} = ({dtype.cpp}){value};")
        else:
            self.emit(depth, f"{target} {s.op}= {value};")

    def branch(self, s: nodes.If, depth: int, opening: str = "") -> None:
        other = s.orelse[0] if len(s.orelse) == 1 else None
        more = other if self.chains and isinstance(other, nodes.If) else None
        test = self.expressions.condition(s.condition, None if more is None else more.condition)
        self.emit(depth, f"{opening}if ({test}) {{")
        self.body(s.then, depth + 1)
        if more is not None:
            self.branch(more, depth, "} else ")
            return
        if s.orelse:
            self.emit(depth, "} else {")
            self.body(s.orelse, depth + 1)
        self.emit(depth, "}")

    def loop(self, s: nodes.For, depth: int) -> None:
        kind, k = s.sym.dtype.cpp, self.names[s.sym]
        down = isinstance(s.step, nodes.Const) and _negative(s.step)
        one = isinstance(s.step, nodes.Const) and s.step.value == 1
        condition = f"{k} {'>' if down else '<'} {self.text(s.stop, SUM)}"
        step = f"++{k}" if one else f"{k} += {self.text(s.step)}"
        self.emit(depth, f"for ({kind} {k} = {self.text(s.start)}; {condition}; {step}) {{")
        self.body(s.body, depth + 1)
        self.emit(depth, "}")

    def counted(self, s: Loop, depth: int) -> None:
        """A loop of a nest."""
        k = self.names[s.sym]
        start, stop, step = (self.text(short(e), SUM) for e in (s.start, s.stop, s.step))
        if s.kind is Kind.VECTOR:
            self.emit(depth, "#pragma GCC ivdep")
        by = f"++{k}" if step == "1" else f"{k} += {step}"
        self.emit(depth, f"for (int64_t {k} = {start}; {k} < {stop}; {by}) {{")
        changing, self.changing = self.changing, self.changing - self._kept(s.body)
        self.body(s.body, depth + 1)
        self.emit(depth, "}")
        self.changing = changing

    def scope(self, s: Scope, depth: int) -> None:
        self.emit(depth, "{")
        self.body(s.body, depth + 1)
        self.emit(depth, "}")

    def alloc(self, s: Alloc, depth: int) -> None:
        self.expressions.made.add(s.sym)
        self.emit(depth, f"alignas(64) {s.sym.dtype.cpp} {self.names[s.sym]}[{s.length}];")

    def _kept(self, body: Body) -> set[Sym]:
        """The locals that the trips of a loop take from an array, and do not change."""
        found = {
            stmt.sym
            for stmt in body
            if isinstance(stmt, nodes.Declare)
            and isinstance(stmt.value, nodes.Load)
            and stmt.value.view in self.expressions.made
        }
        return found - assigned(body) if found else found

    def row(self, s: Row, depth: int) -> None:
        row = f"{self.names[s.array]} + {self.text(s.start, SUM)}"
        self.emit(depth, f"{s.sym.dtype.cpp}* const {self.names[s.sym]} = {row};")

    def clear(self, s: Clear, depth: int) -> None:
        head = f"for (int cell = 0; cell < {s.length}; ++cell)"
        self.emit(depth, f"{head} {self.names[s.sym]}[cell] = {s.sym.dtype.cpp}();")

    def prefetch(self, s: Prefetch, depth: int) -> None:
        place = f"&{self.text(s.load)} + {s.ahead}"
        self.emit(depth, f"__builtin_prefetch({place}, {int(s.writes)});")

    def ordered(self, s: OrderedSum, depth: int) -> None:
        """A loop that is summed in blocks if it is long, else as it was written."""
        loop, (first, last) = s.loop, (self.names[sym] for sym in s.bounds)
        self.expressions.headers.add("sum" if s.block else "lanes")
        if s.straight:
            self.expressions.headers.add("straight")
        bounds = f"{first} = {self.text(loop.start)}, {last} = {self.text(loop.stop)}"
        self.emit(depth, f"const int64_t {bounds};")
        self.emit(depth, f"if ({last} - {first} >= {s.fewest}) {{")
        (self.in_blocks if s.block else self.in_lanes)(s, first, last, depth + 1)
        self.emit(depth, "} else {")
        self.body(s.body, depth + 1)
        self.emit(depth, "}")

    def in_blocks(self, s: OrderedSum, first: str, last: str, depth: int) -> None:
        """With the terms of a block in memory before they are added."""
        size, names = s.block, self.names
        for row in s.rows:
            self.emit(depth, f"pf_sum<{row.dtype.cpp}, {size}> {names[row]};")
        self.emit(depth, f"for (int64_t at = {first}; at < {last}; at += {size}) {{")
        count = f"count = left < {size} ? left : {size}"
        self.emit(depth + 1, f"const int64_t left = {last} - at, {count};")
        self.terms(s, "step < count", "term[step] =", depth + 1)
        for row in s.rows:
            self.emit(depth + 1, f"{names[row]}.add(count);")
        self.emit(depth, "}")
        for total, row in zip(s.sums, s.rows, strict=True):
            self.emit(depth, f"{names[total]} += *{names[row]}.total();")

    def in_lanes(self, s: OrderedSum, first: str, last: str, depth: int) -> None:
        """With each term added to its running sum. They are equally many for all sums."""
        count = f"pf_lanes<{s.rows[0].dtype.cpp}>::count"
        for row in s.rows:
            self.emit(depth, f"pf_lanes<{row.dtype.cpp}> {self.names[row]};")
        self.emit(depth, f"int64_t at = {first};")
        self.emit(depth, f"for (; at + {count} <= {last}; at += {count}) {{")
        self.terms(s, f"step < {count}", "lane[step] +=", depth + 1)
        self.emit(depth, "}")
        self.terms(s, f"at + step < {last}", "lane[step] +=", depth)
        for total, row in zip(s.sums, s.rows, strict=True):
            self.emit(depth, f"{self.names[total]} += {self.names[row]}.total();")

    def terms(self, s: OrderedSum, more: str, kept: str, depth: int) -> None:
        """The loop over the trips of a block, each of which gives the sums' terms."""
        names, k = self.names, s.loop.sym
        self.emit(depth, f"for (int64_t step = 0; {more}; ++step) {{")
        self.emit(depth + 1, f"const {k.dtype.cpp} {names[k]} = at + step;")
        for term in s.terms:
            self.emit(depth + 1, f"{term.dtype.cpp} {names[term]}{{}};")
        self.body(s.trip, depth + 1)
        for term, row in zip(s.terms, s.rows, strict=True):
            self.emit(depth + 1, f"{names[row]}.{kept} {names[term]};")
        self.emit(depth, "}")

    def note(self, s: Note, depth: int) -> None:
        """The report of a mistake will say which iteration it was (see `cpu.checked`)."""
        for axis, counter in enumerate(s.counters):
            self.emit(depth, f"pf_iteration({axis}, {self.names[counter]});")

    def while_loop(self, s: nodes.While, depth: int) -> None:
        self.emit(depth, f"while ({self.text(s.condition)}) {{")
        self.body(s.body, depth + 1)
        self.emit(depth, "}")

    def effect(self, s: nodes.Eval, depth: int) -> None:
        if isinstance(s.expr, nodes.Call) and s.expr.name == "fence":
            return  # a thread sees its own memory operations in order
        self.emit(depth, f"{self.text(s.expr)};")


def _negative(e: nodes.Const) -> bool:
    return isinstance(e.value, int) and e.value < 0


_STATEMENTS: dict[type[Stmt], Callable[[Statements, Any, int], None]] = {
    nodes.Declare: Statements.declare,
    nodes.DeclareArray: lambda p, s, depth: p.declare_array(s, depth),
    nodes.Scratch: lambda p, s, depth: p.scratch(s, depth),
    nodes.Assign: Statements.assign,
    nodes.Store: Statements.store,
    nodes.Update: Statements.update,
    nodes.If: lambda p, s, depth: p.branch(s, depth),
    nodes.For: Statements.loop,
    nodes.While: Statements.while_loop,
    nodes.Break: lambda p, s, depth: p.emit(depth, "break;"),
    nodes.Continue: lambda p, s, depth: p.emit(depth, "continue;"),
    nodes.Eval: Statements.effect,
    Loop: Statements.counted,
    Note: Statements.note,
    NoVectors: lambda p, s, depth: p.emit(depth, SCALAR),
    Scope: Statements.scope,
    Alloc: Statements.alloc,
    Row: Statements.row,
    Clear: Statements.clear,
    OrderedSum: Statements.ordered,
    Prefetch: Statements.prefetch,
}
Statements.statements = _STATEMENTS
