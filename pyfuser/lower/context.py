"""The state of lowering one function body, and the tables that dispatch on syntax.

Other modules register what they lower with `lowers`; so expressions, calls and statements can
need each other without importing each other.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from types import CodeType, FunctionType
from typing import Any, TypeAlias

from pyfuser.ir.canonical import fresh
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    AtomicFetch,
    Body,
    Const,
    Declare,
    Eval,
    Expr,
    Read,
    SourceLocation,
    Stmt,
    Store,
    Sym,
    Update,
)
from pyfuser.ir.visit import contains
from pyfuser.lower import convert
from pyfuser.lower.source import FunctionSource
from pyfuser.lower.team import NestedFunction, Team
from pyfuser.lower.views import LocalArray, ViewRef
from pyfuser.support.errors import WorkunitError, WorkunitWarning, warn
from pyfuser.support.records import dataclass

Handler = Callable[["Context", Any], Any]
Lower = Callable[[ast.expr], Any]
EXPRESSIONS: dict[type[ast.AST], Handler] = {}
STATEMENTS: dict[type[ast.AST], Handler] = {}


def lowers(*kinds: type[ast.AST]) -> Callable[[Handler], Handler]:
    """Register the function that lowers these kinds of node."""

    def register(handler: Handler) -> Handler:
        for kind in kinds:
            table = STATEMENTS if issubclass(kind, ast.stmt) else EXPRESSIONS
            table[kind] = handler
        return handler

    return register


@dataclass(frozen=True, slots=True)
class Variable:
    """A scalar name. kind: "local", "index", "scalar", "accumulator", "last pass" or "pending".

    "pending" is a name inside its own declaration.
    """

    sym: Sym
    kind: str


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """An object of the user's class: a functor, as `self` of its methods, or a classtype's value.

    cls: its class. path: where that is found from the workunit (see `lower.free`). fields: what
    its members are; a classtype's are locals, for ir has no objects.
    """

    cls: type
    path: str
    fields: dict[str, Binding]


Binding: TypeAlias = Variable | ViewRef | LocalArray | Record | Team | NestedFunction


@dataclass(slots=True)
class Shared:
    """What a workunit shares with the functions inlined into it."""

    index_dtype: DType = DType.INT32
    free: dict[str, object] = field(default_factory=dict)
    active: list[CodeType] = field(default_factory=list)
    real: DType = DType.FLOAT64  # what `pk.real` stands for
    pool: Sym | None = None  # the seed of random numbers
    random_state: Sym | None = None  # once one is drawn
    atomic: set[Sym] = field(default_factory=set)  # views whose updates are atomic


class Context:
    """Lowers one function; statements are appended to `out`, the block being built."""

    def __init__(
        self,
        function: FunctionType,
        source: FunctionSource,
        shared: Shared,
        path: str = "",
        result: Sym | Record | None = None,
    ) -> None:
        self.function = function
        self.source = source
        self.shared = shared
        self.path = path  # prefix of the paths of free names
        self.result = result  # where a returned value goes; None: nothing may be returned
        self.receiver: Record | None = None  # of a method; its members have bare names, too
        self.scopes: list[dict[str, Binding]] = [{}]
        self.captured = 0  # so many scopes lie around the nested pattern that is being lowered
        self.running: list[ast.FunctionDef] = []  # nested functions
        self.inferred: dict[Sym, int] = {}  # locals without annotation: where they get their type
        # Those that the other branch of an `if` has begun: the first value here is theirs.
        self.promised: dict[str, Variable] = {}
        self.tested: ast.expr | None = None  # what is lowered as a condition
        self.out: list[Stmt] = []

    # ----------------------------------------------------------------- dispatch

    def expression(self, node: ast.expr) -> Expr:
        """Lower an expression; what must run before it is appended to `out`."""
        return self._lowered(node, EXPRESSIONS)  # type: ignore[no-any-return]

    def statement(self, node: ast.stmt) -> None:
        """Lower a statement into `out`."""
        self._lowered(node, STATEMENTS)

    def _lowered(self, node: Any, handlers: Mapping[Any, Callable[..., Any]]) -> Any:
        handler = handlers.get(type(node))
        if handler is None:
            raise self.unsupported(node)
        try:
            return handler(self, node)
        except convert.TypeMismatch as mismatch:
            raise self.error(node, str(mismatch)) from None

    def condition(self, node: ast.expr) -> Expr:
        """Lower an expression as a bool."""
        self.tested = node
        return convert.condition(self.expression(node))

    def ordered(self, nodes: Iterable[ast.expr], lower: Lower | None = None) -> list[Any]:
        """Lower expressions that are evaluated from left to right.

        C++ leaves the order open. Here a value is kept before a function is inlined to its right
        that changes memory, so that Python's order holds.
        """
        lower = lower or self.expression
        values: list[Any] = []
        for node in nodes:
            mark = len(self.out)
            value = lower(node)
            if len(self.out) > mark and values and _changes_memory(self.out[mark:]):
                later = self.out[mark:]
                del self.out[mark:]
                values = [v if isinstance(v, _PLACES) else self.stable(v, "left") for v in values]
                self.out += later
            values.append(value)
        return values

    @contextmanager
    def hoisted(self) -> Iterator[list[Stmt]]:
        """Collect what is emitted inside, instead of appending it to the block."""
        outer, self.out = self.out, []
        try:
            yield self.out
        finally:
            self.out = outer

    @contextmanager
    def scope(self) -> Iterator[dict[str, Binding]]:
        """A C++ block scope."""
        self.scopes.append({})
        try:
            yield self.scopes[-1]
        finally:
            self.scopes.pop()

    @contextmanager
    def nested(
        self, node: ast.AST, function: NestedFunction, scope: Mapping[str, Binding], parallel: bool
    ) -> Iterator[None]:
        """Lower a nested function's body: in the scopes around its definition, then its own."""
        if function.node in self.running:
            raise self.error(node, f"{function.node.name} runs itself")
        saved = self.scopes, self.captured, self.result, self.promised
        around = len(function.scopes)
        self.scopes = [*function.scopes, dict(scope)]
        self.captured = around if parallel else min(self.captured, around)
        self.result, self.promised = None, {}
        self.running.append(function.node)
        try:
            yield
        finally:
            self.running.pop()
            self.scopes, self.captured, self.result, self.promised = saved

    def is_captured(self, name: str) -> bool:
        """Whether a name belongs to what is around the nested pattern that is being lowered."""
        inner = self.scopes[self.captured :]
        return self.captured > 0 and not any(name in scope for scope in inner)

    def block(self, nodes: list[ast.stmt]) -> Body:
        """Lower statements as a block of their own."""
        with self.scope(), self.hoisted() as out:
            for node in nodes:
                self.statement(node)
        return tuple(out)

    # ----------------------------------------------------------------- names

    def lookup(self, name: str) -> Binding | None:
        """What a name is bound to in the innermost scope that has it."""
        for scope in reversed(self.scopes):
            binding = scope.get(name)
            if binding is not None:
                return binding
        return None if self.receiver is None else self.receiver.fields.get(name)

    def binding(self, node: ast.expr) -> Binding | None:
        """What a name, or a member of an object, is bound to."""
        if isinstance(node, ast.Name):
            return self.lookup(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.binding(node.value)
            return owner.fields.get(node.attr) if isinstance(owner, Record) else None
        return None

    def is_known(self, name: str) -> bool:
        """Whether a name is a parameter, or got a value in a block around."""
        return any(name in scope for scope in self.scopes)

    def check_new(self, node: ast.AST, name: str) -> None:
        """Refuse to declare a name twice in one scope."""
        if name in self.scopes[-1]:
            raise self.error(
                node, f"{name!r} is already declared in this block: assign without annotation"
            )

    def stable(self, expr: Expr, name: str) -> Expr:
        """An expression of the same value that may be evaluated again, later and anywhere."""
        if isinstance(expr, Const):
            return expr
        if isinstance(expr, Read) and self._never_assigned(expr.sym):
            return expr
        sym = fresh(name, expr.dtype)
        self.out.append(Declare(sym, expr))
        return Read(sym)

    def _never_assigned(self, sym: Sym) -> bool:
        constant = ("index", "scalar", "last pass")
        return any(
            isinstance(binding, Variable) and binding.sym == sym and binding.kind in constant
            for scope in self.scopes[:2]
            for binding in scope.values()
        )

    def temporary(self, name: str, dtype: DType, value: Expr | None) -> Sym:
        """Declare a local of our own."""
        sym = fresh(name, dtype)
        self.out.append(Declare(sym, value))
        return sym

    # ----------------------------------------------------------------- errors

    def location(self, node: ast.AST) -> SourceLocation:
        """Where a node stands."""
        return self.source.location(node)

    def error(self, node: ast.AST, message: str) -> WorkunitError:
        """An error that shows the node's line."""
        return self.source.error(node, message)

    def warn(self, node: ast.AST, message: str) -> None:
        """Warn of the node's line."""
        place = self.location(node)
        warn(message, place.file, place.line, WorkunitWarning)

    def unsupported(self, node: ast.AST) -> WorkunitError:
        """The error for syntax that the language does not have."""
        what = _SYNTAX.get(type(node), f"this syntax ({type(node).__name__})")
        instead = _INSTEAD.get(type(node))
        hint = f": {instead}" if instead else ""
        return self.error(node, f"{what} is not supported in a workunit{hint}")


_PLACES = (ViewRef, Record, Team)  # which are passed by reference


def _changes_memory(body: list[Stmt]) -> bool:
    return contains(tuple(body), Store, Update, Eval, AtomicFetch)


_SYNTAX: dict[type[ast.AST], str] = {
    ast.Assert: "assert",
    ast.ClassDef: "class",
    ast.Delete: "del",
    ast.Dict: "a dict",
    ast.DictComp: "a comprehension",
    ast.GeneratorExp: "a generator expression",
    ast.Global: "global",
    ast.Import: "import",
    ast.ImportFrom: "import",
    ast.JoinedStr: "an f-string",
    ast.Lambda: "lambda",
    ast.List: "a list (other than as the value of `name: List[float] = [...]`)",
    ast.ListComp: "a comprehension",
    ast.NamedExpr: "`:=`",
    ast.Raise: "raise",
    ast.Set: "a set",
    ast.SetComp: "a comprehension",
    ast.Slice: "a slice (other than in `name = view[a:b, :]`)",
    ast.Starred: "`*`",
    ast.Try: "try",
    ast.Tuple: "a tuple",
    ast.With: "with",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
    ast.Match: "match",
}
_MARK = "store what is wrong in a view, and look at it after the call"
_INSTEAD: dict[type[ast.AST], str] = {
    ast.Assert: _MARK,
    ast.Dict: "use a name for each entry",
    ast.JoinedStr: 'pk.printf writes text and numbers, as in pk.printf("%g\\n", x)',
    ast.ListComp: "write a for loop over range(...)",
    ast.GeneratorExp: "write a for loop over range(...)",
    ast.Raise: _MARK,
    ast.Try: f"nothing raises in it; test with if, or {_MARK}",
    ast.With: "do this before or after the call",
    ast.ClassDef: "define it outside, with @pk.classtype",
    ast.Delete: "leave it out, as a name ends with its block",
    ast.Import: "import at the top of the file",
    ast.ImportFrom: "import at the top of the file",
    ast.Set: "compare with each element, as in `a == 1 or a == 2`",
    ast.Yield: "store each value in a view",
    ast.YieldFrom: "store each value in a view",
    ast.Global: "add to the accumulator of a parallel_reduce, or store in a view",
    ast.Lambda: "write a function outside, with @pk.function",
    ast.Match: "use if and elif",
    ast.NamedExpr: "assign in a statement of its own",
}
