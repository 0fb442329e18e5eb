"""ir expressions -> PyKokkos source, with the statements that have to stand before them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pyfuser.codegen.pykokkos.text import (
    AND,
    ATOM,
    ATOMICS,
    BINARY,
    CASTS,
    COMPARE,
    NOT,
    OR,
    UNARY,
    Text,
    identifier,
    literal_dtype,
    local_annotation,
    operand_of_compare,
    operand_of_logical,
    stripped,
    true_division_type,
)
from pyfuser.ir import maths, nodes
from pyfuser.ir.dtypes import DType, common_type, integral_promotion
from pyfuser.ir.nodes import Expr, Sym


class Expressions:
    """Prints expressions; `lines` are the source's, at `depth` levels of indentation."""

    def __init__(self, taken: set[str]) -> None:
        self.taken = taken
        self.names: dict[Sym, str] = {}
        self.lines: list[str] = []
        self.depth = 1
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


_EXPRESSIONS: dict[type, Callable[[Expressions, Any], Text]] = {
    nodes.Const: Expressions.const,
    nodes.Read: lambda m, e: Text(m.names[e.sym]),
    nodes.Load: lambda m, e: Text(m.element(e.view, e.indices)),
    nodes.Extent: lambda m, e: Text(f"{m.names[e.view]}.extent({e.axis})"),
    nodes.Unary: Expressions.unary,
    nodes.Binary: Expressions.binary,
    nodes.Compare: Expressions.compare,
    nodes.Logical: Expressions.logical,
    nodes.Call: Expressions.call,
    nodes.Cast: Expressions.cast,
    nodes.Select: Expressions.select,
    nodes.AtomicFetch: Expressions.fetch,
}
