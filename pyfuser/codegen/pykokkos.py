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

import keyword
import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from pyfuser.ir import maths, nodes
from pyfuser.ir.canonical import all_syms
from pyfuser.ir.dtypes import DType, common_type, integral_promotion
from pyfuser.ir.nodes import Body, Expr, Sym, Workunit
from pyfuser.transform.kernel import Kernel

_LOCAL = {DType.INT32: "int", DType.BOOL: "bool", DType.FLOAT64: "pk.double"}
_QUALIFIED = {DType.FLOAT64: "pk.double", DType.FLOAT32: "pk.float", DType.BOOL: "bool"}
_CASTS = {
    DType.INT32: "int",
    DType.BOOL: "bool",
    DType.FLOAT32: "float",
    DType.FLOAT64: "pk.double",
}
_ATOMICS = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "%": "mod", "&": "and", "|": "or", "^": "xor",
    "<<": "lshift", ">>": "rshift", "min": "min", "max": "max", "exchange": "exchange",
    "compare_exchange": "compare_exchange",
}  # fmt: skip
_RESERVED = {*keyword.kwlist, "pk", "math", "List", "int", "float", "bool", "range", "abs"}

# Python's precedences; an operand of a left-associative operator stands one higher on the right.
_OR, _AND, _NOT, _COMPARE, _UNARY, _ATOM = 1, 2, 3, 4, 11, 13
_BINARY = {"|": 5, "^": 6, "&": 7, "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10}


class _Text(NamedTuple):
    """Source of an expression, and how tightly its outermost operator binds."""

    source: str
    precedence: int = _ATOM

    def within(self, precedence: int) -> str:
        """The source as an operand of an operator of this precedence."""
        return self.source if self.precedence >= precedence else f"({self.source})"


def emit(kernel: Kernel | Workunit) -> str:
    """The source of a module that defines the kernel's workunit; lowering it gives its ir back."""
    return _Emitter(kernel.workunit if isinstance(kernel, Kernel) else kernel).module()


class _Emitter:
    def __init__(self, workunit: Workunit) -> None:
        self.workunit = workunit
        self.function = _identifier(workunit.name)
        self.taken = {*_RESERVED, self.function}
        self.names: dict[Sym, str] = {}
        for sym in all_syms(workunit):
            self.names[sym] = self.unique(sym.name)
        self.lines: list[str] = []
        self.depth = 1
        self.steps: list[list[str]] = []  # what `continue` does first, by enclosing loop
        self.imports: set[str] = set()

    def unique(self, name: str) -> str:
        """A name like this one that no other Sym has."""
        base = candidate = _identifier(name)
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
            result.append(f"{name[accumulator.sym]}: pk.Acc[{_element(accumulator.sym.dtype)}]")
            if accumulator.last_pass is not None:
                result.append(f"{name[accumulator.last_pass]}: bool")
        for param in w.params:
            dtype = param.sym.dtype
            kind = f"pk.View{param.rank}D[{_element(dtype)}]" if param.rank else _local(dtype)
            result.append(f"{name[param.sym]}: {kind}")
        return result

    # ----------------------------------------------------------------- expressions

    def expr(self, e: Expr) -> _Text:
        """An expression that lowering gives exactly `e.dtype`."""
        return _EXPRESSIONS[type(e)](self, e)

    def converted(self, e: Expr) -> _Text:
        """An expression where its conversion to `e.dtype` happens by itself."""
        return self.expr(_bare(e))

    def condition(self, e: Expr) -> _Text:
        return self.converted(e)

    def hoisted(self, dtype: DType, value: _Text, name: str = "t") -> _Text:
        """The value in a new local of this dtype."""
        local = self.unique(name)
        self.line(f"{local}: {_local(dtype)} = {value.source}")
        return _Text(local)

    def element(self, view: Sym, indices: tuple[Expr, ...]) -> str:
        return self.names[view] + "".join(f"[{self.expr(i).source}]" for i in indices)

    def const(self, e: nodes.Const) -> _Text:
        if isinstance(e.value, (bool, str)):
            return _Text(repr(e.value))
        if _natural(e) is not e.dtype:
            return self.hoisted(e.dtype, self.number(e.value), "c")
        return self.number(e.value)

    def number(self, value: complex) -> _Text:
        if isinstance(value, complex):
            real, imaginary = self.number(value.real), self.number(value.imag)
            return _Text(f"pk.complex64({real.source}, {imaginary.source})")
        if math.isfinite(value):
            text = repr(value)
        else:
            self.imports.add("math")
            text = "math.nan" if math.isnan(value) else "-math.inf" if value < 0 else "math.inf"
        return _Text(text, _UNARY if text.startswith("-") else _ATOM)

    def unary(self, e: nodes.Unary) -> _Text:
        if e.op == "!":
            return _Text(f"not {self.condition(e.operand).within(_COMPARE)}", _NOT)
        operand = e.operand
        if integral_promotion(_bare(operand).dtype) is e.dtype:
            operand = _bare(operand)
        return _Text(f"{e.op}{self.expr(operand).within(_UNARY)}", _UNARY)

    def operands(
        self, left: Expr, right: Expr, common: Callable[[DType, DType], DType], wanted: DType
    ) -> tuple[_Text, _Text]:
        """Both operands, each without its conversion where C++ would insert the same one."""
        for a, b in ((_bare(left), _bare(right)), (_bare(left), right), (left, _bare(right))):
            if common(a.dtype, b.dtype) is wanted:
                return self.expr(a), self.expr(b)
        return self.expr(left), self.expr(right)

    def binary(self, e: nodes.Binary) -> _Text:
        if e.op == "/":
            return self.division(e)
        level = _BINARY[e.op]
        if e.op in ("<<", ">>"):
            left, right = self.converted(e.left), self.converted(e.right)
            if integral_promotion(_bare(e.left).dtype) is not e.dtype:
                left = self.expr(e.left)
        else:
            left, right = self.operands(e.left, e.right, common_type, e.dtype)
        return _Text(f"{left.within(level)} {e.op} {right.within(level + 1)}", level)

    def division(self, e: nodes.Binary) -> _Text:
        """`/` where it gives this dtype, `//` for int; else C++'s `/=` on a local."""
        level = _BINARY["/"]
        if e.dtype.is_integer and e.dtype is DType.INT32:
            left, right = self.operands(e.left, e.right, common_type, e.dtype)
            return _Text(f"{left.within(level)} // {right.within(level + 1)}", level)
        if not e.dtype.is_integer and _true_division(e.dtype, e.dtype) is e.dtype:
            left, right = self.operands(e.left, e.right, _true_division, e.dtype)
            return _Text(f"{left.within(level)} / {right.within(level + 1)}", level)
        local = self.hoisted(e.dtype, self.converted(e.left), "quotient")
        self.line(f"{local.source} /= {self.expr(e.right).source}")
        return local

    def compare(self, e: nodes.Compare) -> _Text:
        left, right = self.operands(e.left, e.right, common_type, e.left.dtype)
        text = f"{_grouped(left, e.left)} {e.op} {_grouped(right, e.right)}"
        return _Text(text, _COMPARE)

    def logical(self, e: nodes.Logical) -> _Text:
        word, level = ("and", _AND) if e.op == "&&" else ("or", _OR)
        left = self.condition(e.left)
        before, self.lines = self.lines, []
        right = self.condition(e.right)
        inner, self.lines = self.lines, before
        if inner:  # the right side needs statements of its own, and must stay conditional
            return self.short_circuit(e, left, inner, right)
        return _Text(f"{_group(left, level)} {word} {_group(right, level + 1)}", level)

    def short_circuit(self, e: nodes.Logical, left: _Text, inner: list[str], right: _Text) -> _Text:
        local = self.hoisted(DType.BOOL, left, "test")
        self.line(f"if {local.source}:" if e.op == "&&" else f"if not {local.source}:")
        self.lines += ["    " + text for text in inner]
        self.lines.append("    " * (self.depth + 1) + f"{local.source} = {right.source}")
        return local

    def call(self, e: nodes.Call) -> _Text:
        args = list(e.args)
        if maths.is_pure(e.name):
            bare = [_bare(a) for a in args]
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
        return _Text(f"{prefix}{name}({', '.join(self.expr(a).source for a in args)})")

    def cast(self, e: nodes.Cast) -> _Text:
        division = e.operand
        if isinstance(division, nodes.Binary) and division.op == "/" and e.dtype is DType.INT32:
            level = _BINARY["/"]
            left, right = self.operands(division.left, division.right, common_type, division.dtype)
            return _Text(f"{left.within(level)} // {right.within(level + 1)}", level)
        if e.explicit and e.dtype in _CASTS:
            return _Text(f"{_CASTS[e.dtype]}({self.expr(e.operand).source})")
        return self.hoisted(e.dtype, self.expr(e.operand))

    def select(self, e: nodes.Select) -> _Text:
        zero = {DType.BOOL: "False"}.get(e.dtype, "0" if e.dtype.is_integer else "0.0")
        condition = self.condition(e.condition)
        local = self.hoisted(e.dtype, _Text(zero), "choice")
        self.line(f"if {condition.source}:")
        for side in (e.then, e.orelse):
            self.depth += 1
            self.line(f"{local.source} = {self.converted(side).source}")
            self.depth -= 1
            if side is e.then:
                self.line("else:")
        return local

    def fetch(self, e: nodes.AtomicFetch) -> _Text:
        op = _ATOMICS[e.op]
        name = op if "exchange" in op else f"fetch_{op}"
        values = [self.converted(v).source for v in (e.expected, e.value) if v is not None]
        return _Text(self.atomic(name, e.view, e.indices, values))

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
        self.line(f"{self.names[s.sym]}: {_local(s.sym.dtype)} = {value}")

    def declare_array(self, s: nodes.DeclareArray) -> None:
        self.imports.add("List")
        values = ", ".join(self.converted(v).source for v in s.values)
        self.line(f"{self.names[s.sym]}: List[{_local(s.sym.dtype)}] = [{values}]")

    def assign(self, s: nodes.Assign) -> None:
        self.line(f"{self.names[s.sym]} = {self.converted(s.value).source}")

    def store(self, s: nodes.Store) -> None:
        value = self.converted(s.value).source
        self.line(f"{self.element(s.view, s.indices)} = {value}")

    def update(self, s: nodes.Update) -> None:
        if s.atomic:
            value = self.converted(s.value).source
            self.line(self.atomic(_ATOMICS[s.op], s.target, s.indices, [value]))
            return
        target = self.element(s.target, s.indices)
        value = self.expr(s.value).source
        if s.op in ("min", "max"):
            local = self.hoisted(s.target.dtype, _Text(value)).source
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
        self.line(f"{name}: {_local(s.sym.dtype)} = {self.converted(s.start).source}")
        self.line("while True:")
        self.depth += 1
        down = isinstance(s.step, nodes.Const) and str(s.step.value).startswith("-")
        stop = self.expr(s.stop).within(_COMPARE + 1)
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
            self.line(f"if not {condition.within(_COMPARE)}:")
            self.line("    break")
        self.steps.append([])
        self.body(s.body)
        self.steps.pop()
        self.depth -= 1

    def skip(self) -> None:
        for text in self.steps[-1]:
            self.line(text)
        self.line("continue")


def _identifier(name: str) -> str:
    text = re.sub(r"\W", "_", name) or "v"
    return f"_{text}" if text[0].isdigit() else text


def _local(dtype: DType) -> str:
    """The annotation of a local or scalar."""
    return _LOCAL.get(dtype) or _element(dtype)


def _element(dtype: DType) -> str:
    """The annotation of a view's or accumulator's element."""
    return _QUALIFIED.get(dtype) or f"pk.{dtype.value}"


def _natural(e: nodes.Const) -> DType:
    """The dtype that lowering gives a constant's literal."""
    if isinstance(e.value, (bool, str)):
        return e.dtype
    if isinstance(e.value, int):
        return DType.INT32 if e.value.bit_length() <= 31 else DType.INT64
    return DType.COMPLEX128 if isinstance(e.value, complex) else DType.FLOAT64


def _bare(e: Expr) -> Expr:
    """The expression without the conversion that its context repeats."""
    if isinstance(e, nodes.Const) and not isinstance(e.value, (bool, str)):
        return nodes.Const(e.value, _natural(e))
    if isinstance(e, nodes.Cast) and not e.explicit:
        return e.operand
    return e


def _true_division(left: DType, right: DType) -> DType:
    return common_type(common_type(left, right), DType.FLOAT64)


def _group(text: _Text, level: int) -> str:
    """An operand of `and` or `or`, grouped in a way that PyKokkos keeps."""
    if text.precedence >= level:
        return text.source
    return f"not not ({text.source})"


def _grouped(text: _Text, e: Expr) -> str:
    """An operand of a comparison."""
    if isinstance(_bare(e), nodes.Logical) and text.precedence < _COMPARE:
        return f"(not not ({text.source}))"
    return text.within(_COMPARE + 1)


_EXPRESSIONS: dict[type, Callable[[_Emitter, Any], _Text]] = {
    nodes.Const: _Emitter.const,
    nodes.Read: lambda m, e: _Text(m.names[e.sym]),
    nodes.Load: lambda m, e: _Text(m.element(e.view, e.indices)),
    nodes.Extent: lambda m, e: _Text(f"{m.names[e.view]}.extent({e.axis})"),
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
