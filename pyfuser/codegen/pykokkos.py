"""ir -> the source of one PyKokkos workunit that a person would have written.

Conversions that C++ inserts by itself are not printed. What the language cannot say in an
expression is computed in an annotated local before the statement:

* a conversion where C++ would insert none (e.g. a rounding to float32 inside a float64 sum);
* a conditional expression: `t: int = 0`, then `if`/`else` with an assignment in each branch;
* a minimum or maximum that is not atomic: an `if` with a store.

A loop whose variable is not a 32-bit int, or whose bound needs such a local, becomes a `while`; an
uninitialised local starts at zero. PyKokkos drops the parentheses around `and`, `or` and loses the
grouping with them, so a grouping that precedence does not give is printed as `not not (a or b)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pyfuser.codegen.pykokkos_text import (
    AND,
    ATOM,
    ATOMICS,
    BINARY,
    CASTS,
    COMPARE,
    NOT,
    OR,
    RESERVED,
    UNARY,
    Text,
    element_annotation,
    identifier,
    literal_dtype,
    local_annotation,
    operand_of_compare,
    operand_of_logical,
    stripped,
    true_division_type,
)
from pyfuser.ir import maths, nodes
from pyfuser.ir.canonical import all_syms
from pyfuser.ir.dtypes import DType, common_type, integral_promotion
from pyfuser.ir.nodes import Body, Expr, Sym, Workunit
from pyfuser.transform.kernel import Kernel


def emit(kernel: Kernel | Workunit) -> str:
    """The source of a module that defines the kernel's workunit; lowering it gives its ir back."""
    return _Emitter(kernel.workunit if isinstance(kernel, Kernel) else kernel).module()


class _Emitter:
    def __init__(self, workunit: Workunit) -> None:
        self.workunit = workunit
        self.function = identifier(workunit.name)
        self.taken = {*RESERVED, self.function}
        self.names: dict[Sym, str] = {}
        for sym in all_syms(workunit):
            self.names[sym] = self.unique(sym.name)
        self.lines: list[str] = []
        self.depth = 1
        self.steps: list[list[str]] = []  # what `continue` does first, by enclosing loop
        self.imports: set[str] = set()

    def unique(self, name: str) -> str:
        """A name like this one that no other Sym has."""
        base = candidate = identifier(name)
        number = 0
        while candidate in self.taken:
            number += 1
            candidate = f"{base}_{number}"
        self.taken.add(candidate)
        return candidate

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def module(self) -> str:
        self.body(self.workunit.body)
        header = [f"def {self.function}({', '.join(self.parameters())}):"]
        imports = ["import pykokkos as pk"]
        if "math" in self.imports:
            imports.insert(0, "import math")
        if "List" in self.imports:
            imports.insert(0, "from typing import List")
        return "\n".join([*imports, "", "", "@pk.workunit", *header, *self.lines, ""])

    def parameters(self) -> list[str]:
        w, name = self.workunit, self.names
        result = [f"{name[s]}: int" for s in w.indices]
        for accumulator in w.accumulators:
            result.append(
                f"{name[accumulator.sym]}: pk.Acc[{element_annotation(accumulator.sym.dtype)}]"
            )
            if accumulator.last_pass is not None:
                result.append(f"{name[accumulator.last_pass]}: bool")
        for param in w.params:
            dtype = param.sym.dtype
            kind = (
                f"pk.View{param.rank}D[{element_annotation(dtype)}]"
                if param.rank
                else local_annotation(dtype)
            )
            result.append(f"{name[param.sym]}: {kind}")
        return result

    # ----------------------------------------------------------------- expressions

    def expr(self, e: Expr) -> Text:
        """An expression that lowering gives exactly `e.dtype`."""
        return _EXPRESSIONS[type(e)](self, e)

    def converted(self, e: Expr) -> Text:
        """An expression where its conversion to `e.dtype` happens by itself."""
        return self.expr(stripped(e))

    def condition(self, e: Expr) -> Text:
        return self.converted(e)

    def hoisted(self, dtype: DType, value: Text, name: str = "t") -> Text:
        """The value in a new local of this dtype."""
        local = self.unique(name)
        self.line(f"{local}: {local_annotation(dtype)} = {value.source}")
        return Text(local)

    def element(self, view: Sym, indices: tuple[Expr, ...]) -> str:
        return self.names[view] + "".join(f"[{self.expr(i).source}]" for i in indices)

    def const(self, e: nodes.Const) -> Text:
        if isinstance(e.value, (bool, str)):
            return Text(repr(e.value))
        if literal_dtype(e) is not e.dtype:
            return self.hoisted(e.dtype, self.number(e.value), "c")
        return self.number(e.value)

    def number(self, value: Any) -> Text:
        if isinstance(value, complex):
            real, imaginary = self.number(value.real), self.number(value.imag)
            return Text(f"pk.complex64({real.source}, {imaginary.source})")
        if math.isfinite(value):
            text = repr(value)
        else:
            self.imports.add("math")
            text = "math.nan" if math.isnan(value) else "-math.inf" if value < 0 else "math.inf"
        return Text(text, UNARY if text.startswith("-") else ATOM)

    def unary(self, e: nodes.Unary) -> Text:
        if e.op == "!":
            return Text(f"not {self.condition(e.operand).within(COMPARE)}", NOT)
        operand = e.operand
        if integral_promotion(stripped(operand).dtype) is e.dtype:
            operand = stripped(operand)
        return Text(f"{e.op}{self.expr(operand).within(UNARY)}", UNARY)

    def operands(
        self, left: Expr, right: Expr, common: Callable[[DType, DType], DType], wanted: DType
    ) -> tuple[Text, Text]:
        """Both operands, each without its conversion where C++ would insert the same one."""
        for a, b in (
            (stripped(left), stripped(right)),
            (stripped(left), right),
            (left, stripped(right)),
        ):
            if common(a.dtype, b.dtype) is wanted:
                return self.expr(a), self.expr(b)
        return self.expr(left), self.expr(right)

    def binary(self, e: nodes.Binary) -> Text:
        if e.op == "/":
            return self.division(e)
        level = BINARY[e.op]
        if e.op in ("<<", ">>"):
            left, right = self.converted(e.left), self.converted(e.right)
            if integral_promotion(stripped(e.left).dtype) is not e.dtype:
                left = self.expr(e.left)
        else:
            left, right = self.operands(e.left, e.right, common_type, e.dtype)
        return Text(f"{left.within(level)} {e.op} {right.within(level + 1)}", level)

    def division(self, e: nodes.Binary) -> Text:
        """`/` where it gives this dtype, `//` for int; else C++'s `/=` on a local."""
        level = BINARY["/"]
        if e.dtype.is_integer and e.dtype is DType.INT32:
            left, right = self.operands(e.left, e.right, common_type, e.dtype)
            return Text(f"{left.within(level)} // {right.within(level + 1)}", level)
        if not e.dtype.is_integer and true_division_type(e.dtype, e.dtype) is e.dtype:
            left, right = self.operands(e.left, e.right, true_division_type, e.dtype)
            return Text(f"{left.within(level)} / {right.within(level + 1)}", level)
        local = self.hoisted(e.dtype, self.converted(e.left), "quotient")
        self.line(f"{local.source} /= {self.expr(e.right).source}")
        return local

    def compare(self, e: nodes.Compare) -> Text:
        left, right = self.operands(e.left, e.right, common_type, e.left.dtype)
        text = f"{operand_of_compare(left, e.left)} {e.op} {operand_of_compare(right, e.right)}"
        return Text(text, COMPARE)

    def logical(self, e: nodes.Logical) -> Text:
        word, level = ("and", AND) if e.op == "&&" else ("or", OR)
        left = self.condition(e.left)
        before, self.lines = self.lines, []
        right = self.condition(e.right)
        inner, self.lines = self.lines, before
        if inner:  # the right side needs statements of its own, and must stay conditional
            return self.short_circuit(e, left, inner, right)
        return Text(
            f"{operand_of_logical(left, level)} {word} {operand_of_logical(right, level + 1)}",
            level,
        )

    def short_circuit(self, e: nodes.Logical, left: Text, inner: list[str], right: Text) -> Text:
        local = self.hoisted(DType.BOOL, left, "test")
        self.line(f"if {local.source}:" if e.op == "&&" else f"if not {local.source}:")
        self.lines += ["    " + text for text in inner]
        self.lines.append("    " * (self.depth + 1) + f"{local.source} = {right.source}")
        return local

    def call(self, e: nodes.Call) -> Text:
        args = list(e.args)
        if maths.is_pure(e.name):
            bare = [stripped(a) for a in args]
            picked = maths.overload(e.name, [a.dtype for a in bare])
            asked = maths.overload(e.name, [a.dtype for a in args])
            args = bare if picked == asked else args
        prefix = "pk."
        if e.name == "abs":
            prefix = ""
        elif hasattr(math, e.name):
            prefix = "math."
            self.imports.add("math")
        name = e.name
        if name == "complex":
            name = "complex32" if e.dtype is DType.COMPLEX64 else "complex64"
        return Text(f"{prefix}{name}({', '.join(self.expr(a).source for a in args)})")

    def cast(self, e: nodes.Cast) -> Text:
        division = e.operand
        if isinstance(division, nodes.Binary) and division.op == "/" and e.dtype is DType.INT32:
            level = BINARY["/"]
            left, right = self.operands(division.left, division.right, common_type, division.dtype)
            return Text(f"{left.within(level)} // {right.within(level + 1)}", level)
        if e.explicit and e.dtype in CASTS:
            return Text(f"{CASTS[e.dtype]}({self.expr(e.operand).source})")
        return self.hoisted(e.dtype, self.expr(e.operand))

    def select(self, e: nodes.Select) -> Text:
        zero = {DType.BOOL: "False"}.get(e.dtype, "0" if e.dtype.is_integer else "0.0")
        condition = self.condition(e.condition)
        local = self.hoisted(e.dtype, Text(zero), "choice")
        self.line(f"if {condition.source}:")
        for side in (e.then, e.orelse):
            self.depth += 1
            self.line(f"{local.source} = {self.converted(side).source}")
            self.depth -= 1
            if side is e.then:
                self.line("else:")
        return local

    def fetch(self, e: nodes.AtomicFetch) -> Text:
        op = ATOMICS[e.op]
        name = op if "exchange" in op else f"fetch_{op}"
        values = [self.converted(v).source for v in (e.expected, e.value) if v is not None]
        return Text(self.atomic(name, e.view, e.indices, values))

    def atomic(self, op: str, view: Sym, indices: tuple[Expr, ...], values: list[str]) -> str:
        index = ", ".join(self.expr(i).source for i in indices)
        return f"pk.atomic_{op}({', '.join([self.names[view], f'[{index}]', *values])})"

    # ----------------------------------------------------------------- statements

    def body(self, body: Body) -> None:
        start = len(self.lines)
        for stmt in body:
            _STATEMENTS[type(stmt)](self, stmt)
        if len(self.lines) == start:
            self.line("pass")

    def block(self, header: str, body: Body) -> None:
        self.line(header)
        self.depth += 1
        self.body(body)
        self.depth -= 1

    def declare(self, s: nodes.Declare) -> None:
        zero = "False" if s.sym.dtype is DType.BOOL else "0"
        value = zero if s.value is None else self.converted(s.value).source
        self.line(f"{self.names[s.sym]}: {local_annotation(s.sym.dtype)} = {value}")

    def declare_array(self, s: nodes.DeclareArray) -> None:
        self.imports.add("List")
        values = ", ".join(self.converted(v).source for v in s.values)
        self.line(f"{self.names[s.sym]}: List[{local_annotation(s.sym.dtype)}] = [{values}]")

    def assign(self, s: nodes.Assign) -> None:
        value = s.value
        if isinstance(value, nodes.Binary) and value.op == "/" and value.left == nodes.Read(s.sym):
            # The one way to say C++'s division in a type other than double and int.
            self.update(nodes.Update("/", s.sym, (), value.right))
            return
        self.line(f"{self.names[s.sym]} = {self.converted(s.value).source}")

    def store(self, s: nodes.Store) -> None:
        value = self.converted(s.value).source
        self.line(f"{self.element(s.view, s.indices)} = {value}")

    def update(self, s: nodes.Update) -> None:
        if s.atomic:
            value = self.converted(s.value).source
            self.line(self.atomic(ATOMICS[s.op], s.target, s.indices, [value]))
            return
        target = self.element(s.target, s.indices)
        bare = stripped(s.value)
        repeated = s.op in ("<<", ">>") or common_type(s.target.dtype, bare.dtype) is s.target.dtype
        value = self.expr(bare if repeated else s.value).source
        if s.op in ("min", "max"):
            local = self.hoisted(s.target.dtype, Text(value)).source
            self.line(f"if {local} {'<' if s.op == 'min' else '>'} {target}:")
            self.line(f"    {target} = {local}")
        else:
            self.line(f"{target} {'' if s.op == 'exchange' else s.op}= {value}")

    def branch(self, s: nodes.If) -> None:
        self.block(f"if {self.condition(s.condition).source}:", s.then)
        if not s.orelse:
            return
        start = len(self.lines)
        self.block("else:", s.orelse)
        if len(s.orelse) == 1 and isinstance(s.orelse[0], nodes.If):
            self.join(start)

    def join(self, start: int) -> None:
        """Make `else:` and the lone `if` in it an `elif`, if nothing stands before that `if`."""
        indent = "    " * self.depth
        if self.lines[start + 1].startswith(f"{indent}    if "):
            nested = [line[4:] for line in self.lines[start + 1 :]]
            self.lines[start:] = [indent + "el" + nested[0].strip(), *nested[1:]]

    def loop(self, s: nodes.For) -> None:
        before, self.lines = self.lines, []
        bounds = [self.converted(s.start), self.expr(s.stop), self.expr(s.step)]
        inner, self.lines = self.lines, before
        if inner or s.sym.dtype is not DType.INT32:
            self.counted_while(s)
            return
        start, stop, step = (bound.source for bound in bounds)
        parts = [start, stop, step] if step != "1" else [start, stop]
        self.steps.append([])
        span = stop if parts == ["0", stop] else ", ".join(parts)
        self.block(f"for {self.names[s.sym]} in range({span}):", s.body)
        self.steps.pop()

    def counted_while(self, s: nodes.For) -> None:
        """The loop as C++ runs it: the bound is evaluated before every iteration."""
        name = self.names[s.sym]
        self.line(f"{name}: {local_annotation(s.sym.dtype)} = {self.converted(s.start).source}")
        self.line("while True:")
        self.depth += 1
        down = isinstance(s.step, nodes.Const) and str(s.step.value).startswith("-")
        stop = self.expr(s.stop).within(COMPARE + 1)
        self.line(f"if {name} {'<=' if down else '>='} {stop}:")
        self.line("    break")
        before, self.lines = self.lines, []
        depth, self.depth = self.depth, 0
        self.line(f"{name} += {self.expr(s.step).source}")
        self.steps.append(self.lines)
        self.lines, self.depth = before, depth
        self.body(s.body)
        for text in self.steps.pop():
            self.line(text)
        self.depth -= 1

    def while_loop(self, s: nodes.While) -> None:
        start = len(self.lines)
        self.line("while True:")
        self.depth += 1
        condition = self.condition(s.condition)
        simple = len(self.lines) == start + 1
        if simple:
            self.lines[start] = "    " * (self.depth - 1) + f"while {condition.source}:"
        else:
            self.line(f"if not {condition.within(COMPARE)}:")
            self.line("    break")
        self.steps.append([])
        self.body(s.body)
        self.steps.pop()
        self.depth -= 1

    def skip(self) -> None:
        for text in self.steps[-1]:
            self.line(text)
        self.line("continue")


_EXPRESSIONS: dict[type, Callable[[_Emitter, Any], Text]] = {
    nodes.Const: _Emitter.const,
    nodes.Read: lambda m, e: Text(m.names[e.sym]),
    nodes.Load: lambda m, e: Text(m.element(e.view, e.indices)),
    nodes.Extent: lambda m, e: Text(f"{m.names[e.view]}.extent({e.axis})"),
    nodes.Unary: _Emitter.unary,
    nodes.Binary: _Emitter.binary,
    nodes.Compare: _Emitter.compare,
    nodes.Logical: _Emitter.logical,
    nodes.Call: _Emitter.call,
    nodes.Cast: _Emitter.cast,
    nodes.Select: _Emitter.select,
    nodes.AtomicFetch: _Emitter.fetch,
}
_STATEMENTS: dict[type, Callable[[_Emitter, Any], None]] = {
    nodes.Declare: _Emitter.declare,
    nodes.DeclareArray: _Emitter.declare_array,
    nodes.Assign: _Emitter.assign,
    nodes.Store: _Emitter.store,
    nodes.Update: _Emitter.update,
    nodes.If: _Emitter.branch,
    nodes.For: _Emitter.loop,
    nodes.While: _Emitter.while_loop,
    nodes.Break: lambda m, s: m.line("break"),
    nodes.Continue: lambda m, s: m.skip(),
    nodes.Eval: lambda m, s: m.line(m.expr(s.expr).source),
}
