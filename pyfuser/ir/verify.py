"""The rules of the ir as a program: what `ir.nodes` promises, checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from pyfuser.ir import maths, nodes
from pyfuser.ir.dtypes import DType, integral_promotion
from pyfuser.ir.nodes import Body, Expr, Stmt, Sym, Workunit
from pyfuser.ir.printer import show, show_node
from pyfuser.ir.visit import breaks_loop
from pyfuser.support.errors import PyFuserError

_INTEGER_OPS = ("%", "<<", ">>", "&", "|", "^")
_FETCH_OPS = (*nodes.UPDATE_OPS, "compare_exchange")


class IRError(PyFuserError):
    """A workunit breaks a rule of the ir: a fault of the pass that made it, not of the user."""


def verify(workunit: Workunit) -> None:
    """Check every rule of `ir.nodes`.

    Raises IRError with the rule, the node and the whole workunit.
    """
    try:
        Verifier(workunit).run()
    except IRError as error:
        raise IRError(f"{error}\n{show(workunit)}") from None


class Verifier:
    """Walks a workunit with the Syms in scope: a dict from Sym to rank (0 for scalars)."""

    statements: ClassVar[Mapping[type, Callable[..., None]]]

    def __init__(self, workunit: Workunit) -> None:
        self.workunit = workunit
        self.ranks: dict[Sym, int] = {}
        self.scopes: list[set[Sym]] = [set()]
        self.constant: set[Sym] = set()  # parameters and last-pass flags
        self.loops = 0

    def run(self) -> None:
        w = self.workunit
        for index in w.indices:
            if index.dtype not in (DType.INT32, DType.INT64):
                self.fail(f"index {index} is neither int32 nor int64")
            self.declare(index, 0)
        for accumulator in w.accumulators:
            self.declare(accumulator.sym, 0)
            if accumulator.last_pass is not None:
                if accumulator.last_pass.dtype is not DType.BOOL:
                    self.fail(f"last-pass flag {accumulator.last_pass} is not a bool")
                self.declare(accumulator.last_pass, 0)
        for param in w.params:
            self.declare(param.sym, param.rank)
        self.constant = set(self.ranks) - {a.sym for a in w.accumulators} - set(w.indices)
        self.body(w.body)

    def fail(self, message: str, node: Expr | Stmt | None = None) -> None:
        raise IRError(message if node is None else f"{message}: {show_node(node)}")

    def declare(self, sym: Sym, rank: int) -> None:
        if sym in self.ranks:
            self.fail(f"{sym.name}#{sym.uid} is declared twice")
        self.ranks[sym] = rank
        self.scopes[-1].add(sym)

    def rank(self, sym: Sym, node: Expr | Stmt) -> int:
        if not any(sym in scope for scope in self.scopes):
            self.fail(f"{sym.name}#{sym.uid} is not declared here", node)
        return self.ranks[sym]

    def body(self, body: Body, *syms: Sym) -> None:
        """Check a nested body, with `syms` declared at its start."""
        self.scopes.append(set())
        for sym in syms:
            self.declare(sym, 0)
        for stmt in body:
            self.statement(stmt)
        self.scopes.pop()

    def statement(self, stmt: Stmt) -> None:
        if type(stmt) not in self.statements:
            self.fail(f"{type(stmt).__name__} has no place here")
        self.statements[type(stmt)](self, stmt)

    # ----------------------------------------------------------------- expressions

    def expr(self, e: Expr, dtype: DType | None = None) -> DType:
        """Check an expression, and that it has `dtype` if one is asked for."""
        _EXPRESSIONS[type(e)](self, e)
        if dtype is not None and e.dtype is not dtype:
            self.fail(f"expected {dtype.value}, found {e.dtype.value}", e)
        return e.dtype

    def integer(self, e: Expr) -> None:
        if not self.expr(e).is_integer:
            self.fail(f"expected an integer, found {e.dtype.value}", e)

    def element(self, view: Sym, indices: tuple[Expr, ...], node: Expr | Stmt) -> None:
        rank = self.rank(view, node)
        if rank != len(indices) or rank == 0:
            self.fail(f"{view} of rank {rank} is indexed by {len(indices)}", node)
        for index in indices:
            self.integer(index)

    def const(self, e: nodes.Const) -> None:
        kinds = {str: True, bool: e.dtype is DType.BOOL, float: e.dtype.is_float}
        kinds[complex] = e.dtype.is_complex
        kinds[int] = e.dtype.is_integer and e.dtype is not DType.BOOL
        if not kinds.get(type(e.value), False):
            self.fail(f"a {type(e.value).__name__} cannot be a constant {e.dtype.value}", e)
        if type(e.value) is int:
            low, high = e.dtype.range()
            if not low <= e.value <= high:
                self.fail(f"the constant does not fit {e.dtype.value}", e)

    def read(self, e: nodes.Read) -> None:
        if self.rank(e.sym, e):
            self.fail("a view is read without indices", e)

    def extent(self, e: nodes.Extent) -> None:
        if not 0 <= e.axis < self.rank(e.view, e):
            self.fail("no such axis", e)

    def unary(self, e: nodes.Unary) -> None:
        dtype = self.expr(e.operand, e.dtype)
        if e.op not in nodes.UNARY_OPS:
            self.fail(f"unknown operator {e.op}", e)
        if e.op == "!":
            if dtype is not DType.BOOL:
                self.fail("'!' needs a bool", e)
        elif dtype.is_integer and integral_promotion(dtype) is not dtype:
            self.fail(f"{dtype.value} must be promoted before '{e.op}'", e)
        elif e.op == "~" and not dtype.is_integer:
            self.fail("'~' needs an integer", e)

    def binary(self, e: nodes.Binary) -> None:
        dtype = self.expr(e.left)
        if e.op not in nodes.ARITHMETIC_OPS:
            self.fail(f"unknown operator {e.op}", e)
        if e.op in ("<<", ">>"):
            self.integer(e.right)
        else:
            self.expr(e.right, dtype)
        if e.op in _INTEGER_OPS and not dtype.is_integer:
            self.fail(f"'{e.op}' needs integers", e)
        if dtype.is_integer and integral_promotion(dtype) is not dtype:
            self.fail(f"{dtype.value} must be promoted before '{e.op}'", e)

    def compare(self, e: nodes.Compare) -> None:
        dtype = self.expr(e.left)
        self.expr(e.right, dtype)
        if e.op not in nodes.COMPARE_OPS:
            self.fail(f"unknown operator {e.op}", e)
        if dtype.is_complex and e.op not in ("==", "!="):
            self.fail("complex numbers have no order", e)

    def logical(self, e: nodes.Logical) -> None:
        self.expr(e.left, DType.BOOL)
        self.expr(e.right, DType.BOOL)
        if e.op not in nodes.LOGICAL_OPS:
            self.fail(f"unknown operator {e.op}", e)

    def call(self, e: nodes.Call) -> None:
        for arg in e.args:
            self.expr(arg)
        if e.name not in maths.FUNCTIONS:
            self.fail(f"unknown function {e.name}", e)
        if not maths.is_pure(e.name):
            return
        overload = maths.overload(e.name, [arg.dtype for arg in e.args])
        if overload is None:
            self.fail("no overload takes these arguments", e)
            return
        for arg in e.args:
            if arg.dtype is not overload.operand:
                self.fail(f"{e.name} takes {overload.operand.value}", e)
        if e.dtype is not overload.result:
            self.fail(f"{e.name} gives {overload.result.value}", e)

    def cast(self, e: nodes.Cast) -> None:
        if self.expr(e.operand).is_complex and not e.dtype.is_complex:
            self.fail("a complex number cannot be converted to a real one", e)

    def select(self, e: nodes.Select) -> None:
        self.expr(e.condition, DType.BOOL)
        self.expr(e.orelse, self.expr(e.then))

    def fetch(self, e: nodes.AtomicFetch) -> None:
        self.element(e.view, e.indices, e)
        self.expr(e.value, e.view.dtype)
        if e.op not in _FETCH_OPS:
            self.fail(f"unknown atomic {e.op}", e)
        if (e.expected is not None) != (e.op == "compare_exchange"):
            self.fail("an expected value belongs to compare_exchange and to nothing else", e)
        if e.expected is not None:
            self.expr(e.expected, e.view.dtype)

    # ----------------------------------------------------------------- statements

    def declaration(self, s: nodes.Declare) -> None:
        if s.value is not None:
            self.expr(s.value, s.sym.dtype)
        self.declare(s.sym, 0)

    def declare_array(self, s: nodes.DeclareArray) -> None:
        for value in s.values:
            self.expr(value, s.sym.dtype)
        self.declare(s.sym, 1)

    def scratch(self, s: nodes.Scratch) -> None:
        for extent in s.shape:
            self.integer(extent)
        if not s.shape:
            self.fail("scratch memory has at least one axis", s)
        self.declare(s.sym, len(s.shape))

    def assign(self, s: nodes.Assign) -> None:
        self.variable(s.sym, s)
        self.expr(s.value, s.sym.dtype)

    def variable(self, sym: Sym, node: Stmt) -> None:
        if self.rank(sym, node) or sym in self.constant:
            self.fail(f"{sym} is not a local variable", node)

    def store(self, s: nodes.Store) -> None:
        self.element(s.view, s.indices, s)
        self.expr(s.value, s.view.dtype)

    def update(self, s: nodes.Update) -> None:
        if s.op not in nodes.UPDATE_OPS:
            self.fail(f"unknown update {s.op}", s)
        if s.indices:
            self.element(s.target, s.indices, s)
        else:
            self.variable(s.target, s)
        if s.atomic and not s.indices:
            self.fail("only an element of a view is updated atomically", s)
        dtype = self.expr(s.value, s.target.dtype if s.atomic else None)
        if dtype.is_complex and not s.target.dtype.is_complex:
            self.fail("a complex number cannot be converted to a real one", s)

    def branch(self, s: nodes.If) -> None:
        self.expr(s.condition, DType.BOOL)
        self.body(s.then)
        self.body(s.orelse)

    def loop(self, s: nodes.For) -> None:
        for bound in (s.start, s.stop, s.step):
            self.integer(bound)
        if not s.sym.dtype.is_integer:
            self.fail("a loop variable is an integer", s)
        if isinstance(s.step, nodes.Const) and s.step.value == 0:
            self.fail("a loop's step is not zero", s)
        if s.shared and any(map(breaks_loop, s.body)):
            self.fail("no trip of a shared loop ends it", s)
        self.loops += 1
        self.body(s.body, s.sym)
        self.loops -= 1

    def while_loop(self, s: nodes.While) -> None:
        self.expr(s.condition, DType.BOOL)
        self.loops += 1
        self.body(s.body)
        self.loops -= 1

    def jump(self, s: Stmt) -> None:
        if not self.loops:
            self.fail("outside of a loop", s)

    def effect(self, s: nodes.Eval) -> None:
        if not isinstance(s.expr, (nodes.Call, nodes.AtomicFetch)):
            self.fail("only a call is evaluated for its effect", s)
        self.expr(s.expr)


_EXPRESSIONS: dict[type, Callable[[Verifier, Any], None]] = {
    nodes.Const: Verifier.const,
    nodes.Read: Verifier.read,
    nodes.Load: lambda v, e: v.element(e.view, e.indices, e),
    nodes.Extent: Verifier.extent,
    nodes.Unary: Verifier.unary,
    nodes.Binary: Verifier.binary,
    nodes.Compare: Verifier.compare,
    nodes.Logical: Verifier.logical,
    nodes.Call: Verifier.call,
    nodes.Cast: Verifier.cast,
    nodes.Select: Verifier.select,
    nodes.AtomicFetch: Verifier.fetch,
}
_STATEMENTS: dict[type, Callable[[Verifier, Any], None]] = {
    nodes.Declare: Verifier.declaration,
    nodes.DeclareArray: Verifier.declare_array,
    nodes.Scratch: Verifier.scratch,
    nodes.Assign: Verifier.assign,
    nodes.Store: Verifier.store,
    nodes.Update: Verifier.update,
    nodes.If: Verifier.branch,
    nodes.For: Verifier.loop,
    nodes.While: Verifier.while_loop,
    nodes.Break: Verifier.jump,
    nodes.Continue: Verifier.jump,
    nodes.Eval: Verifier.effect,
}
Verifier.statements = _STATEMENTS
