"""ir expressions -> C++ expressions with no more parentheses than a reader wants.

Everything that depends on the target is a method that a subclass may override.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pyfuser.codegen.c.maths import scalar as maths_scalar
from pyfuser.ir import nodes
from pyfuser.ir.accesses import AccessNode
from pyfuser.ir.divisions import Division, may_fail
from pyfuser.ir.dtypes import DType, integral_promotion
from pyfuser.ir.nodes import Expr, Sym
from pyfuser.ir.powers import power_of
from pyfuser.ir.visit import sym_of
from pyfuser.nest.spec import UNIT, ViewSpec

PRIMARY, UNARY, PRODUCT, SUM, RELATION, EQUALITY, AND, OR, CONDITIONAL = range(9, 0, -1)
"""Precedences; a larger one binds tighter. Shifts and bitwise operators are always bracketed."""

_DIVISIONS = {"/": "pf_divided", "%": "pf_rest"}
_BY_DOUBLES = {"/": "pf_quotient", "%": "pf_remainder"}
_WORDS = (DType.INT32, DType.UINT32)
_BINARY = {"*": PRODUCT, "/": PRODUCT, "%": PRODUCT, "+": SUM, "-": SUM}
_FETCH_LAMBDAS = {
    "min": "value < old ? value : old",
    "max": "old < value ? value : old",
    "exchange": "value",
}
_INT_ATOMICS = {"+": "add", "-": "sub", "&": "and", "|": "or", "^": "xor"}

Text = tuple[str, int]


def _tested(condition: nodes.Expr) -> nodes.Expr | None:
    """The integer that a condition compares to a constant."""
    match condition:
        case nodes.Compare("==", left, nodes.Const()) if left.dtype.is_integer:
            return left
        case nodes.Compare("==", nodes.Const(), right) if right.dtype.is_integer:
            return right
    return None


class Expressions:
    """Prints expressions.

    `names` are the C++ names of Syms; `views` says how view parameters are addressed (what is in
    neither is a local array). `serial`: one thread runs the kernel, atomics need not be atomic.
    What the text needs is collected in `functions` and `headers` (see `c.headers`).
    """

    by_doubles: Mapping[str, str] = _BY_DOUBLES
    traps = True  # whether a division of integers by 0 ends the process
    switches = True  # whether the compiler makes no vectors of tests of one integer in turn

    def __init__(
        self,
        names: Mapping[Sym, str],
        views: Mapping[Sym, ViewSpec],
        strides: Mapping[int, str],
        serial: bool,
    ) -> None:
        self.names = names
        self.views = views
        self.strides = strides
        self.serial = serial
        self.rounded = False  # see `nest.nodes.Nest`
        self.own: set[Sym] = set()  # tables of which each thread has a copy
        self.made: set[Sym] = set()  # arrays that passes made, which no program can miss
        self.pairs: set[Sym] = set()  # of them, complex numbers that are arrays of their parts
        self.functions: set[tuple[str, DType]] = set()
        self.headers: set[str] = set()
        self.unaligned: set[DType] = set()  # of elements that may lie at any address

    # ----------------------------------------------------------------- entry points

    def text(self, e: Expr, at_least: int = 0) -> str:
        """The expression, in parentheses if it binds less tightly than its place asks for."""
        text, precedence = _EXPRESSIONS[type(e)](self, e)
        return f"({text})" if precedence < at_least else text

    def element(self, access: AccessNode) -> str:
        """The element of a view or local array that is accessed, as an lvalue."""
        view, indices = sym_of(access), access.indices
        assert view is not None
        name = self.names[view]
        spec = self.views.get(view)
        if view in self.pairs:
            return f"*({view.dtype.cpp}*)&{name}[2 * {self.text(indices[0], PRODUCT)}]"
        if spec is None:
            return f"{name}[{self.text(indices[0])}]"
        terms = [
            self._term(index, stride)
            for index, stride in zip(indices, spec.strides, strict=True)
            if not _is_zero(index)
        ]
        offset = " + ".join(terms) or "0"
        if spec.packed:
            return f"{name}[{offset}]"
        self.unaligned.add(view.dtype)
        qualifier = "" if spec.written else "const "
        return f"*({qualifier}pf_unaligned_{view.dtype.value}*)((char*){name} + {offset})"

    def _term(self, index: Expr, stride: int) -> str:
        if stride == UNIT:
            return self.text(index, SUM)
        step = self.strides[stride] if stride >= 0 else integer(-stride, DType.INT64)
        return f"{self.text(index, PRODUCT)} * {step}"

    # ----------------------------------------------------------------- leaves

    def const(self, e: nodes.Const) -> Text:
        value, dtype = e.value, e.dtype
        if isinstance(value, str):
            return string_literal(value), PRIMARY
        if dtype.is_complex:
            z = complex(value)
            part = DType.FLOAT32 if dtype is DType.COMPLEX64 else DType.FLOAT64
            return (
                f"{dtype.cpp}{{{self.number(z.real, part)}, {self.number(z.imag, part)}}}",
                PRIMARY,
            )
        assert not isinstance(value, complex)
        text = self.number(float(value), dtype) if dtype.is_float else integer(int(value), dtype)
        return text, UNARY if text[0] in "-(" and not text.startswith("(-") else PRIMARY

    def number(self, value: float, dtype: DType) -> str:
        """A literal that reads back as the same bits (NaNs as a quiet one)."""
        f = "f" if dtype is DType.FLOAT32 else ""
        if dtype is DType.FLOAT32:
            with np.errstate(over="ignore"):
                single = np.float32(value)
            value = float(single)
        if math.isnan(value):
            return self.not_a_number(f)
        if math.isinf(value):
            return ("-" if value < 0 else "") + self.infinity(f)
        text = str(single) if f else repr(value)
        return (text if "." in text or "e" in text else text + ".0") + f

    def not_a_number(self, f: str) -> str:
        """A quiet NaN; f: "f" for a float."""
        return f'__builtin_nan{f}("")'

    def infinity(self, f: str) -> str:
        """The positive one; f: "f" for a float."""
        return f"__builtin_inf{f}()"

    def read(self, e: nodes.Read) -> Text:
        return self.names[e.sym], PRIMARY

    def load(self, e: nodes.Load) -> Text:
        text = self.element(e)
        if e.dtype is DType.BOOL:  # of bools in memory g++ makes no vectors
            return f"*(const uint8_t*)&{text}", UNARY
        return text, UNARY if text[0] == "*" else PRIMARY

    def extent(self, e: nodes.Extent) -> Text:
        return self.extent_name(e.view, e.axis), PRIMARY

    def extent_name(self, view: Sym, axis: int) -> str:
        """The variable that holds the extent of a view."""
        return f"{self.names[view]}_extent{axis}"

    # ----------------------------------------------------------------- operators

    def unary(self, e: nodes.Unary) -> Text:
        operand = self.text(e.operand, UNARY)
        space = "" if operand[0] not in "+-" else " "
        return f"{e.op}{space}{operand}", UNARY

    def binary(self, e: nodes.Binary) -> Text:
        precedence = _BINARY.get(e.op)
        if precedence is None:
            left, right = self.text(e.left, UNARY), self.text(e.right, UNARY)
            return f"{left} {e.op} {right}", CONDITIONAL
        if e.op in self.by_doubles and e.dtype in _WORDS and not isinstance(e.right, nodes.Const):
            left, right = self.text(e.left), self.text(e.right)
            self.headers.add("quotient")
            return f"{self.by_doubles[e.op]}<{e.dtype.cpp}>({left}, {right})", PRIMARY
        if self.traps and may_fail(e.op, e.dtype, e.right):
            return self.division(e.op, e.dtype, self.text(e.left), self.text(e.right), e), PRIMARY
        left, right = self._operands(e, precedence)
        if e.op == "*" and self.rounded and e.dtype.is_float:
            self.headers.add("rounded")
            return f"pf_rounded({left} * {right})", PRIMARY
        return f"{left} {e.op} {right}", precedence

    def division(self, op: str, dtype: DType, left: str, right: str, e: Division) -> str:
        """The call that divides integers in a type, if they can be divided."""
        self.headers.add("division")
        return f"{_DIVISIONS[op]}<{dtype.cpp}>({left}, {right})"

    def _operands(self, e: nodes.Binary | nodes.Compare, precedence: int) -> tuple[str, str]:
        """Both sides; a 64-bit constant needs no suffix beside a 64-bit variable."""
        left, right = e.left, e.right
        if left.dtype is DType.INT64:
            if not isinstance(left, nodes.Const):
                right = short(right)
            elif not isinstance(right, nodes.Const):
                left = short(left)
        return self.text(left, precedence), self.text(right, precedence + 1)

    def compare(self, e: nodes.Compare) -> Text:
        precedence = EQUALITY if e.op in ("==", "!=") else RELATION
        left, right = self._operands(e, SUM)
        return f"{left} {e.op} {right}", precedence

    def logical(self, e: nodes.Logical) -> Text:
        precedence = AND if e.op == "&&" else OR
        parts = []
        for side in (e.left, e.right):
            mixed = isinstance(side, nodes.Logical) and side.op != e.op
            parts.append(self.text(side, PRIMARY if mixed else precedence))
        return f" {e.op} ".join(parts), precedence

    def cast(self, e: nodes.Cast) -> Text:
        if e.dtype.is_complex:
            return f"{e.dtype.cpp}({self.text(e.operand)})", PRIMARY
        if e.operand.dtype is DType.BOOL and e.dtype is not DType.BOOL:
            # g++ makes no vectors of bools that become numbers.
            return self.select(
                nodes.Select(e.operand, nodes.Const(1, e.dtype), nodes.Const(0, e.dtype))
            )
        return f"({e.dtype.cpp}){self.text(e.operand, UNARY)}", UNARY

    def select(self, e: nodes.Select) -> Text:
        wide = e.dtype is DType.INT64 and not isinstance(e.then, nodes.Const)
        orelse = short(e.orelse) if wide else e.orelse
        more = e.orelse.condition if isinstance(e.orelse, nodes.Select) else None
        parts = [self.condition(e.condition, more, OR), self.text(e.then, OR)]
        return "{} ? {} : {}".format(*parts, self.text(orelse, OR)), CONDITIONAL

    def condition(self, e: nodes.Expr, more: nodes.Expr | None, precedence: int = 0) -> str:
        """A condition; more: the one that is tested next if it does not hold."""
        tested = _tested(e)
        if not self.switches or more is None or tested is None or tested != _tested(more):
            return self.text(e, precedence)
        self.headers.add("one_of")
        return f"pf_one_of({self.text(e)})"

    # ----------------------------------------------------------------- calls

    def call(self, e: nodes.Call) -> Text:
        if e.name == "printf":
            self.headers.add("printf")
            return f"printf({', '.join(map(self.text, e.args))})", PRIMARY
        if e.name == "complex":
            re, im = map(self.text, e.args)
            return f"{e.dtype.cpp}{{{re}, {im}}}", PRIMARY
        if e.name in ("real", "imag"):
            return f"{self.text(e.args[0], PRIMARY)}.{e.name[:2]}", PRIMARY
        name, args = e.name, e.args
        power = power_of(e)
        if power:
            base = self.text(args[0], UNARY)
            if power == "square" and isinstance(args[0], nodes.Read) and not self.rounded:
                return f"{base} * {base}", PRODUCT
            name, args = power, args[:1]
        operand = args[0].dtype
        self.functions.add((name, operand))
        text = ", ".join(map(self.text, args))
        return f"{maths_scalar.function_name(name, operand)}({text})", PRIMARY

    def fetch(self, e: nodes.AtomicFetch) -> Text:
        """An atomic operation that returns the old value."""
        cell, kind = self.element(e), e.dtype.cpp
        value = self.text(e.value)
        if e.expected is not None:
            expected = self.text(e.expected)
            change = (
                f"[expected = ({kind})({expected})]({kind} old, {kind} value) "
                "{ return old == expected ? value : old; }"
            )
            return self.atomic(cell, e.dtype, value, change), PRIMARY
        return self.atomic_operation(e.op, cell, e.dtype, value, e), PRIMARY

    def atomic_operation(
        self, op: str, cell: str, dtype: DType, value: str, node: nodes.Update | nodes.AtomicFetch
    ) -> str:
        """The call that applies `op` to a cell atomically; its value is the old one."""
        if op in _INT_ATOMICS and dtype.is_integer and dtype is not DType.BOOL and not self.serial:
            return f"__atomic_fetch_{_INT_ATOMICS[op]}(&{cell}, {value}, __ATOMIC_RELAXED)"
        return self.composed_atomic(op, cell, dtype, value, node)

    def own_operation(self, s: nodes.Update) -> str:
        """The call that applies an atomic update to a table that is this thread's own."""
        kind, change = s.target.dtype.cpp, self.change(s.op, s.target.dtype)
        self.headers.add("table")
        return f"pf_own<{kind}>(&{self.element(s)}, {self.text(s.value)}, {change})"

    def change(self, op: str, dtype: DType) -> str:
        """A function of an old value and an operand, which does not divide."""
        kind = dtype.cpp
        result = _FETCH_LAMBDAS.get(op, f"({kind})(old {op} value)")
        return f"[]({kind} old, {kind} value) {{ return {result}; }}"

    def composed_atomic(
        self, op: str, cell: str, dtype: DType, value: str, node: nodes.Update | nodes.AtomicFetch
    ) -> str:
        """The same by a function of the old value and the operand."""
        if not (self.traps and may_fail(op, dtype, node.value)):
            return self.atomic(cell, dtype, value, self.change(op, dtype))
        kind, common = dtype.cpp, integral_promotion(dtype)
        result = f"({kind}){self.division(op, common, 'old', 'value', node)}"
        return self.atomic(
            cell, dtype, value, f"[]({kind} old, {kind} value) {{ return {result}; }}"
        )

    def atomic(self, cell: str, dtype: DType, value: str, change: str) -> str:
        """The call that replaces a cell by `change(old, value)` in one step."""
        wide = dtype is DType.COMPLEX128
        name = "fetch" if self.serial else "locked" if wide else "atomic"
        self.headers.add(name)
        return f"pf_{name}<{dtype.cpp}>(&{cell}, {value}, {change})"


def _is_zero(e: Expr) -> bool:
    return isinstance(e, nodes.Const) and e.value == 0


def short(e: Expr) -> Expr:
    """An int64 constant as int32, where it fits."""
    if isinstance(e, nodes.Const) and isinstance(e.value, int) and abs(e.value) < 2**31:
        return nodes.Const(e.value, DType.INT32)
    return e


_INT_SUFFIX = {DType.INT64: "L", DType.UINT32: "u", DType.UINT64: "ul"}


def integer(value: int, dtype: DType) -> str:
    if dtype is DType.BOOL:
        return "true" if value else "false"
    suffix = _INT_SUFFIX.get(dtype, "")
    if value == dtype.range()[0] and dtype in (DType.INT32, DType.INT64):
        return f"({value + 1}{suffix} - 1)"  # the literal 2147483648 is not an int
    return f"{value}{suffix}"


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "?": "\\?"}


def string_literal(text: str) -> str:
    """A C string literal; what is not printable ASCII becomes octal bytes of its UTF-8."""
    parts = []
    for byte in text.encode():
        char = chr(byte)
        parts.append(_ESCAPES.get(char) or (char if 32 <= byte < 127 else f"\\{byte:03o}"))
    return f'"{"".join(parts)}"'


_EXPRESSIONS: dict[type, Callable[[Any, Any], Text]] = {
    nodes.Const: lambda p, e: p.const(e),
    nodes.Read: lambda p, e: p.read(e),
    nodes.Load: lambda p, e: p.load(e),
    nodes.Extent: lambda p, e: p.extent(e),
    nodes.Unary: lambda p, e: p.unary(e),
    nodes.Binary: lambda p, e: p.binary(e),
    nodes.Compare: lambda p, e: p.compare(e),
    nodes.Logical: lambda p, e: p.logical(e),
    nodes.Call: lambda p, e: p.call(e),
    nodes.Cast: lambda p, e: p.cast(e),
    nodes.Select: lambda p, e: p.select(e),
    nodes.AtomicFetch: lambda p, e: p.fetch(e),
}
