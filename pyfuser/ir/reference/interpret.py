"""The reference interpreter: what a workunit means, one iteration after the other.

It is what fused kernels and emitted code are compared with, bit for bit. A workunit is translated
once to a Python function over Python numbers: int for integers (wrapped to their width), float for
both floating types (float32 results are rounded after each operation, which for + - * / and sqrt
of float64 arithmetic is exactly float32 arithmetic, as 53 >= 2 * 24 + 2; Figueroa, "When is double
rounding innocuous?", 1995). Whatever C++ leaves undefined raises UndefinedBehaviour.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from pyfuser.ir import arithmetic, maths, nodes
from pyfuser.ir.arithmetic import UndefinedBehaviour
from pyfuser.ir.dtypes import DType, common_type, integral_promotion
from pyfuser.ir.nodes import Body, Expr, Sym, Workunit
from pyfuser.ir.reference.elements import Note, Watcher, accessors, scratch_accessors
from pyfuser.support.caches import cached

Array = np.ndarray[Any, Any]
Point = tuple[int, ...]
Value = bool | int | float | complex
Order = int | Iterable[Point] | None

__all__ = ["UndefinedBehaviour", "interpret"]


def interpret(
    workunit: Workunit,
    pattern: str,
    begin: Sequence[int],
    end: Sequence[int],
    arguments: Sequence[Array | Value],
    order: Order = None,
    races: Watcher | None = None,
    start: Sequence[Value] | None = None,
    last_pass: bool = True,
) -> tuple[Value, ...]:
    """Run a workunit over the box `begin <= index < end` and return its accumulators' values.

    `arguments[k]` is bound to `workunit.params[k]`: a NumPy array of the view's rank and dtype
    (any strides; arrays may overlap; written in place) or a number. `order` is None for ascending
    iterations, a seed for a shuffled order (but a scan ascends then), or the iterations themselves.
    `start` is what the accumulators hold before the first iteration (None: zeros), and `last_pass`
    what a scan is told.

    Raises UndefinedBehaviour for what C++ leaves undefined, an index outside a view included, and
    TypeError for arguments that do not fit.
    """
    points: Iterable[Point] = itertools.product(*map(range, begin, end))
    if pattern != "scan" and isinstance(order, int):
        points = list(points)
        random.Random(order).shuffle(points)
    elif order is not None and not isinstance(order, int):
        points = order
    function, names = _compile(workunit)
    arrays: dict[str, Array] = {}
    bound: list[Any] = []
    for param, argument in zip(workunit.params, arguments, strict=True):
        if not param.rank:
            bound.append(_scalar(argument, param.sym.dtype))
            continue
        if not isinstance(argument, np.ndarray) or argument.ndim != param.rank:
            raise TypeError(f"{param.sym}: expected an array of rank {param.rank}")
        if argument.dtype != param.sym.dtype.numpy:
            raise TypeError(f"{param.sym}: expected {param.sym.dtype.value}, not {argument.dtype}")
        bound.append(argument)
        arrays[names[param.sym]] = argument
    notes: dict[str, Note] = {}
    if races is not None:
        notes = races.watch(arrays)
        points = races.iterations(points)
    for n, param in enumerate(workunit.params):
        if param.rank:
            name = names[param.sym]
            bound[n] = (*accessors(bound[n], name, notes.get(name)), bound[n].shape)
    held = start if start is not None else [0] * len(workunit.accumulators)
    values = [_scalar(v, a.sym.dtype) for v, a in zip(held, workunit.accumulators, strict=True)]
    result: tuple[Value, ...] = function(points, values, last_pass, *bound)
    return result


def _scalar(value: Any, dtype: DType) -> Value:
    """A number as the workunit's parameter holds it."""
    result: Value = np.asarray(value).astype(dtype.numpy).item()
    return result


@cached(4096)
def _compile(workunit: Workunit) -> tuple[Callable[..., Any], dict[Sym, str]]:
    translator = Translator(workunit)
    code = compile(translator.source(), f"<ir of {workunit.name}>", "exec")
    namespace = {**arithmetic.OPERATIONS, **translator.functions, "scratch": scratch_accessors}
    exec(code, namespace)
    return namespace["run"], translator.names


class Translator:
    """ir -> the source of `run(points, start, last_pass, *arguments)`, which has the loop in it."""

    statements: ClassVar[Mapping[type, Callable[..., None]]]

    def __init__(self, workunit: Workunit) -> None:
        self.workunit = workunit
        self.names: dict[Sym, str] = {}
        self.lengths: dict[Sym, int | str] = {}  # of local arrays
        self.functions: dict[str, Callable[..., Any]] = {}
        self.lines: list[str] = []
        self.increments: list[str] = []  # what `continue` does first, by enclosing loop

    def name(self, sym: Sym) -> str:
        """A Python name nobody else has; it ends in the Sym's number, so it is no keyword."""
        if sym not in self.names:
            self.names[sym] = f"{sym.name or 'v'}_{len(self.names)}"
        return self.names[sym]

    def emit(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def source(self) -> str:
        w = self.workunit
        named = (self.name(param.sym) for param in w.params)
        parameters = ", ".join(["points", "start", "last_pass", *named])
        self.emit(0, f"def run({parameters}):")
        for param in w.params:
            if param.rank:
                name = self.name(param.sym)
                self.emit(1, f"{name}_load, {name}_store, {name}_atomic, {name}_shape = {name}")
        for n, accumulator in enumerate(w.accumulators):
            self.emit(1, f"{self.name(accumulator.sym)} = start[{n}]")
            if accumulator.last_pass is not None:
                self.emit(1, f"{self.name(accumulator.last_pass)} = last_pass")
        self.emit(1, f"for {''.join(self.name(s) + ', ' for s in w.indices)[:-1]} in points:")
        self.body(w.body, 2)
        results = "".join(self.name(a.sym) + ", " for a in w.accumulators)
        self.emit(1, f"return ({results})")
        return "\n".join(self.lines) + "\n"

    # ----------------------------------------------------------------- numbers

    def wrap(self, text: str, dtype: DType) -> str:
        """The exact integer result, or the float64 one, brought into the dtype."""
        if dtype in (DType.FLOAT64, DType.COMPLEX128):
            return text
        if dtype is DType.BOOL:
            return f"(({text}) != 0)"
        return f"wrap_{dtype.value}({text})"

    def convert(self, text: str, source: DType, target: DType) -> str:
        """A C++ conversion."""
        if source is target:
            return text
        if target is DType.BOOL:
            return f"(({text}) != 0)"
        if target.is_integer:
            if not source.is_integer:
                return f"truncate(({text}), {target.range()})"
            low, high = source.range()
            least, most = target.range()
            if least <= low and high <= most:
                return f"int({text})" if source is DType.BOOL else text
            return f"wrap_{target.value}({text})"
        if source.is_integer and target is DType.FLOAT32:
            return f"float32_of_int({text})"
        if target.is_complex:
            return self.wrap(f"complex({text})", target)
        if target is DType.FLOAT32:
            return f"wrap_float32({text})"
        return f"float({text})" if source.is_integer else text

    def binary(self, op: str, dtype: DType, left: str, right: str) -> str:
        """An operation on two operands that have the dtype already."""
        if op in ("min", "max"):
            return f"c_{op}({left}, {right})"
        if op == "exchange":
            return right
        if op in ("<<", ">>"):
            return self.wrap(f"(({left}) {op} shift_count({right}, {8 * dtype.size}))", dtype)
        if op in ("/", "%"):
            kind = "integer" if dtype.is_integer else dtype.value
            name = {"/": "divide", "%": "remainder"}[op]
            return self.wrap(f"{name}_{kind}({left}, {right})", dtype)
        if op == "*" and dtype.is_complex:
            return f"multiply_{dtype.value}({left}, {right})"
        return self.wrap(f"({left} {op} {right})", dtype)

    # ----------------------------------------------------------------- expressions

    def expr(self, e: Expr) -> str:
        return _EXPRESSIONS[type(e)](self, e)

    def indices(self, indices: tuple[Expr, ...]) -> str:
        return "".join(", " + self.expr(i) for i in indices)

    def const(self, e: nodes.Const) -> str:
        if isinstance(e.value, str):
            return repr(e.value)
        value = _scalar(e.value, e.dtype)
        return f"({_special(value)})"

    def load(self, e: nodes.Load) -> str:
        name = self.name(e.view)
        if e.view in self.lengths:
            return f"{name}[inside({self.expr(e.indices[0])}, {self.lengths[e.view]})]"
        return f"{name}_load({self.indices(e.indices)[2:]})"

    def unary(self, e: nodes.Unary) -> str:
        operand = self.expr(e.operand)
        if e.op == "!":
            return f"(not {operand})"
        return operand if e.op == "+" else self.wrap(f"({e.op}{operand})", e.dtype)

    def infix(self, e: nodes.Binary) -> str:
        return self.binary(e.op, e.dtype, self.expr(e.left), self.expr(e.right))

    def relation(self, e: nodes.Compare | nodes.Logical) -> str:
        op = {"&&": "and", "||": "or"}.get(e.op, e.op)
        return f"({self.expr(e.left)} {op} {self.expr(e.right)})"

    def call(self, e: nodes.Call) -> str:
        args = ", ".join(self.expr(a) for a in e.args)
        if not maths.is_pure(e.name):
            return f"c_{e.name}({args})"
        name = f"{e.name}_{'_'.join(a.dtype.value for a in e.args)}_{e.dtype.value}"
        self.functions[name] = arithmetic.function(e.name, tuple(a.dtype for a in e.args), e.dtype)
        return f"{name}({args})"

    def select(self, e: nodes.Select) -> str:
        return f"({self.expr(e.then)} if {self.expr(e.condition)} else {self.expr(e.orelse)})"

    def fetch(self, e: nodes.AtomicFetch) -> str:
        value = self.expr(e.value)
        if e.expected is not None:
            change = f"lambda old: {value} if old == {self.expr(e.expected)} else old"
        else:
            change = f"lambda old: {self.updated(e.op, e.dtype, 'old', e.dtype, value)}"
        return f"{self.name(e.view)}_atomic({e.op!r}, {change}{self.indices(e.indices)})"

    def updated(self, op: str, target: DType, old: str, dtype: DType, value: str) -> str:
        """`old op value` in the operands' common type, converted back to the target's."""
        if op in ("<<", ">>"):
            common = integral_promotion(target)
        else:
            common = common_type(target, dtype)
            value = self.convert(value, dtype, common)
        result = self.binary(op, common, self.convert(old, target, common), value)
        return self.convert(result, common, target)

    # ----------------------------------------------------------------- statements

    def body(self, body: Body, depth: int) -> None:
        if not body:
            self.emit(depth, "pass")
        for stmt in body:
            self.statements[type(stmt)](self, stmt, depth)

    def declare(self, s: nodes.Declare, depth: int) -> None:
        value = "uninitialised" if s.value is None else self.value(s.value, s.sym.dtype)
        self.emit(depth, f"{self.name(s.sym)} = {value}")

    def value(self, e: Expr, dtype: DType) -> str:
        return self.convert(self.expr(e), e.dtype, dtype)

    def declare_array(self, s: nodes.DeclareArray, depth: int) -> None:
        self.lengths[s.sym] = len(s.values)
        values = ", ".join(self.value(v, s.sym.dtype) for v in s.values)
        self.emit(depth, f"{self.name(s.sym)} = [{values}]")

    def scratch(self, s: nodes.Scratch, depth: int) -> None:
        name = self.name(s.sym)
        extents = ", ".join(self.expr(e) for e in s.shape)
        numpy_type = repr(s.sym.dtype.value)
        accessors = f"{name}_load, {name}_store, {name}_atomic, {name}_shape"
        self.emit(depth, f"{accessors} = scratch({name!r}, {numpy_type}, {extents})")

    def assign(self, s: nodes.Assign, depth: int) -> None:
        self.emit(depth, f"{self.name(s.sym)} = {self.value(s.value, s.sym.dtype)}")

    def store(self, s: nodes.Store, depth: int) -> None:
        name, value = self.name(s.view), self.value(s.value, s.view.dtype)
        if s.view in self.lengths:
            index = f"inside({self.expr(s.indices[0])}, {self.lengths[s.view]})"
            self.emit(depth, f"{name}[{index}] = {value}")
        else:
            self.emit(depth, f"{name}_store({value}{self.indices(s.indices)})")

    def update(self, s: nodes.Update, depth: int) -> None:
        name, dtype, value = self.name(s.target), s.target.dtype, self.expr(s.value)
        if s.atomic:
            change = self.updated(s.op, dtype, "old", s.value.dtype, value)
            indices = self.indices(s.indices)
            self.emit(depth, f"{name}_atomic({s.op!r}, lambda old: {change}{indices})")
        elif s.indices:
            load = self.expr(nodes.Load(s.target, s.indices))
            change = self.updated(s.op, dtype, load, s.value.dtype, value)
            if s.target in self.lengths:
                self.emit(depth, f"{load} = {change}")
            else:
                self.emit(depth, f"{name}_store({change}{self.indices(s.indices)})")
        else:
            self.emit(depth, f"{name} = {self.updated(s.op, dtype, name, s.value.dtype, value)}")

    def branch(self, s: nodes.If, depth: int) -> None:
        self.emit(depth, f"if {self.expr(s.condition)}:")
        self.body(s.then, depth + 1)
        if s.orelse:
            self.emit(depth, "else:")
            self.body(s.orelse, depth + 1)

    def loop(self, s: nodes.For, depth: int) -> None:
        """C's loop: the bound is evaluated before every iteration."""
        name, dtype = self.name(s.sym), s.sym.dtype
        common = common_type(dtype, s.stop.dtype)
        left = self.convert(name, dtype, common)
        right = self.value(s.stop, common)
        down = isinstance(s.step, nodes.Const) and _negative(s.step.value)
        self.emit(depth, f"{name} = {self.value(s.start, dtype)}")
        self.emit(depth, f"while {left} {'>' if down else '<'} {right}:")
        step = self.updated("+", dtype, name, s.step.dtype, self.expr(s.step))
        self.increments.append(f"{name} = {step}")
        self.body(s.body, depth + 1)
        self.emit(depth + 1, self.increments.pop())

    def while_loop(self, s: nodes.While, depth: int) -> None:
        self.emit(depth, f"while {self.expr(s.condition)}:")
        self.increments.append("pass")
        self.body(s.body, depth + 1)
        self.increments.pop()

    def skip(self, s: nodes.Continue, depth: int) -> None:
        self.emit(depth, self.increments[-1])
        self.emit(depth, "continue")


def _negative(value: object) -> bool:
    return isinstance(value, int) and value < 0


def _special(value: Value) -> str:
    """A number as Python source; `repr` of inf and nan is no source."""
    if isinstance(value, complex):
        return f"complex({_special(value.real)}, {_special(value.imag)})"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value!r}')"
    return repr(value)


_EXPRESSIONS: dict[type, Callable[[Translator, Any], str]] = {
    nodes.Const: Translator.const,
    nodes.Read: lambda t, e: t.name(e.sym),
    nodes.Load: Translator.load,
    nodes.Extent: lambda t, e: f"{t.name(e.view)}_shape[{e.axis}]",
    nodes.Unary: Translator.unary,
    nodes.Binary: Translator.infix,
    nodes.Compare: Translator.relation,
    nodes.Logical: Translator.relation,
    nodes.Call: Translator.call,
    nodes.Cast: lambda t, e: t.value(e.operand, e.dtype),
    nodes.Select: Translator.select,
    nodes.AtomicFetch: Translator.fetch,
}
_STATEMENTS: dict[type, Callable[[Translator, Any, int], None]] = {
    nodes.Declare: Translator.declare,
    nodes.DeclareArray: Translator.declare_array,
    nodes.Scratch: Translator.scratch,
    nodes.Assign: Translator.assign,
    nodes.Store: Translator.store,
    nodes.Update: Translator.update,
    nodes.If: Translator.branch,
    nodes.For: Translator.loop,
    nodes.While: Translator.while_loop,
    nodes.Break: lambda t, s, depth: t.emit(depth, "break"),
    nodes.Continue: Translator.skip,
    nodes.Eval: lambda t, s, depth: t.emit(depth, t.expr(s.expr)),
}
Translator.statements = _STATEMENTS
