"""Text of the ir, for people and golden files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from pyfuser.ir import nodes
from pyfuser.ir.canonical import all_syms
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Body, Expr, Stmt, Sym, Workunit
from pyfuser.ir.visit import expressions, statements, sym_of

_INDENT = "    "


def show(workunit: Workunit) -> str:
    """A workunit as readable, stable text: one statement a line, every conversion visible.

    Two Syms of one name are told apart by a number in order of appearance (`x`, `x.1`), so the
    text depends neither on uids nor on what else the process did. An explicit cast is printed
    `int32(x)`, one that C++ would insert `(int32)x`; a constant that is neither int32, float64
    nor bool carries its dtype (`1.0:float32`).
    """
    return Printer(workunit).text()


Line = tuple[int, str]


class Printer:
    """Prints one workunit; `names` are the Syms' texts."""

    statements: ClassVar[Mapping[type, Callable[..., Iterator[Line]]]]

    def __init__(self, workunit: Workunit) -> None:
        self.workunit = workunit
        self.names: dict[Sym, str] = {}
        seen: Counter[str] = Counter()
        for sym in all_syms(workunit):
            self._name(sym, seen)

    def _name(self, sym: Sym, seen: Counter[str]) -> None:
        if sym in self.names:
            return
        base = sym.name or "_"
        self.names[sym] = f"{base}.{seen[base]}" if seen[base] else base
        seen[base] += 1

    def text(self) -> str:
        lines = [(0, self._header()), *self._body(self.workunit.body, 1)]
        return "".join(f"{_INDENT * depth}{line}\n" for depth, line in lines)

    def _header(self) -> str:
        w = self.workunit
        parts = [", ".join(self._typed(s) for s in w.indices)]
        for accumulator in w.accumulators:
            text = f"accumulator {self._typed(accumulator.sym)}"
            if accumulator.last_pass is not None:
                text += f" last {self._sym(accumulator.last_pass)}"
            parts.append(text)
        parts += [
            self._typed(p.sym) + ("[" + ",".join(":" * p.rank) + "]") * bool(p.rank)
            for p in w.params
        ]
        return f"workunit {w.name}({'; '.join(parts)}):"

    def _sym(self, sym: Sym) -> str:
        # An undeclared Sym breaks a rule of the ir: show it, do not fail while debugging.
        return self.names.get(sym) or f"?{sym.name}#{sym.uid}"

    def _typed(self, sym: Sym) -> str:
        return f"{self._sym(sym)}: {sym.dtype.value}"

    def _body(self, body: Body, depth: int) -> Iterator[Line]:
        if not body:
            yield depth, "pass"
        for stmt in body:
            yield from self.statements[type(stmt)](self, stmt, depth)

    def _element(self, view: Sym, indices: tuple[Expr, ...]) -> str:
        if not indices:
            return self._sym(view)
        return f"{self._sym(view)}[{', '.join(self.expr(e, outer=True) for e in indices)}]"

    def expr(self, e: Expr, outer: bool = False) -> str:
        """The expression's text; operations are parenthesised unless `outer`."""
        text = _EXPRESSIONS[type(e)](self, e)
        compound = isinstance(e, (nodes.Binary, nodes.Compare, nodes.Logical, nodes.Select))
        return f"({text})" if compound and not outer else text

    # ----------------------------------------------------------------- expressions

    def _const(self, e: nodes.Const) -> str:
        if isinstance(e.value, bool):
            text = "true" if e.value else "false"
            return text if e.dtype is DType.BOOL else f"{text}:{e.dtype.value}"
        natural = {int: DType.INT32, float: DType.FLOAT64}.get(type(e.value))
        return repr(e.value) if e.dtype is natural else f"{e.value!r}:{e.dtype.value}"

    def _unary(self, e: nodes.Unary) -> str:
        suffix = "" if e.dtype is e.operand.dtype else f":{e.dtype.value}"
        return f"{e.op}{suffix}{self.expr(e.operand)}"

    def _infix(self, e: nodes.Binary | nodes.Compare | nodes.Logical) -> str:
        return f"{self.expr(e.left)} {e.op} {self.expr(e.right)}"

    def _call(self, e: nodes.Call) -> str:
        suffix = "" if e.args and e.args[0].dtype is e.dtype else f":{e.dtype.value}"
        return f"{e.name}{suffix}({', '.join(self.expr(a, outer=True) for a in e.args)})"

    def _cast(self, e: nodes.Cast) -> str:
        if e.explicit:
            return f"{e.dtype.value}({self.expr(e.operand, outer=True)})"
        return f"({e.dtype.value}){self.expr(e.operand)}"

    def _select(self, e: nodes.Select) -> str:
        parts = (e.condition, e.then, e.orelse)
        condition, then, orelse = (self.expr(p) for p in parts)
        return f"{condition} ? {then} : {orelse}"

    def _fetch(self, e: nodes.AtomicFetch) -> str:
        args = [self._element(e.view, e.indices), self.expr(e.value, outer=True)]
        if e.expected is not None:
            args.append(f"expected {self.expr(e.expected, outer=True)}")
        return f"atomic_fetch[{e.op}]({', '.join(args)})"

    # ----------------------------------------------------------------- statements

    def _declare(self, s: nodes.Declare, depth: int) -> Iterator[Line]:
        value = "" if s.value is None else f" = {self.expr(s.value, outer=True)}"
        yield depth, f"let {self._typed(s.sym)}{value}"

    def _declare_array(self, s: nodes.DeclareArray, depth: int) -> Iterator[Line]:
        shown = s.values if len(set(s.values)) > 1 else s.values[:1]
        values = ", ".join(self.expr(v, outer=True) for v in shown)
        values += ", ..." * (len(shown) < len(s.values))
        yield depth, f"let {self._typed(s.sym)}[{len(s.values)}] = [{values}]"

    def _scratch(self, s: nodes.Scratch, depth: int) -> Iterator[Line]:
        extents = ", ".join(self.expr(e, outer=True) for e in s.shape)
        yield depth, f"scratch {self._typed(s.sym)}[{extents}]"

    def _assign(self, s: nodes.Assign, depth: int) -> Iterator[Line]:
        yield depth, f"{self._sym(s.sym)} = {self.expr(s.value, outer=True)}"

    def _store(self, s: nodes.Store, depth: int) -> Iterator[Line]:
        yield depth, f"{self._element(s.view, s.indices)} = {self.expr(s.value, outer=True)}"

    def _update(self, s: nodes.Update, depth: int) -> Iterator[Line]:
        prefix = "atomic " if s.atomic else ""
        target = self._element(s.target, s.indices)
        yield depth, f"{prefix}{target} {s.op}= {self.expr(s.value, outer=True)}"

    def _if(self, s: nodes.If, depth: int) -> Iterator[Line]:
        yield depth, f"if {self.expr(s.condition, outer=True)}:"
        yield from self._body(s.then, depth + 1)
        if s.orelse:
            yield depth, "else:"
            yield from self._body(s.orelse, depth + 1)

    def _for(self, s: nodes.For, depth: int) -> Iterator[Line]:
        bounds = ", ".join(self.expr(e, outer=True) for e in (s.start, s.stop, s.step))
        shared = " shared" if s.shared else ""
        yield depth, f"for {self._typed(s.sym)} in range({bounds}){shared}:"
        yield from self._body(s.body, depth + 1)

    def _while(self, s: nodes.While, depth: int) -> Iterator[Line]:
        yield depth, f"while {self.expr(s.condition, outer=True)}:"
        yield from self._body(s.body, depth + 1)

    def _eval(self, s: nodes.Eval, depth: int) -> Iterator[Line]:
        yield depth, f"do {self.expr(s.expr, outer=True)}"


_EXPRESSIONS: dict[type, Callable[[Printer, Any], str]] = {
    nodes.Const: Printer._const,
    nodes.Read: lambda p, e: p._sym(e.sym),
    nodes.Load: lambda p, e: p._element(e.view, e.indices),
    nodes.Extent: lambda p, e: f"{p._sym(e.view)}.extent({e.axis})",
    nodes.Unary: Printer._unary,
    nodes.Binary: Printer._infix,
    nodes.Compare: Printer._infix,
    nodes.Logical: Printer._infix,
    nodes.Call: Printer._call,
    nodes.Cast: Printer._cast,
    nodes.Select: Printer._select,
    nodes.AtomicFetch: Printer._fetch,
}
_STATEMENTS: dict[type, Callable[[Printer, Any, int], Iterator[Line]]] = {
    nodes.Declare: Printer._declare,
    nodes.DeclareArray: Printer._declare_array,
    nodes.Scratch: Printer._scratch,
    nodes.Assign: Printer._assign,
    nodes.Store: Printer._store,
    nodes.Update: Printer._update,
    nodes.If: Printer._if,
    nodes.For: Printer._for,
    nodes.While: Printer._while,
    nodes.Break: lambda p, s, depth: iter([(depth, "break")]),
    nodes.Continue: lambda p, s, depth: iter([(depth, "continue")]),
    nodes.Eval: Printer._eval,
}
Printer.statements = _STATEMENTS


def show_node(node: Expr | Stmt) -> str:
    """One expression or statement alone, by its Syms' plain names (for error messages).

    Of a statement that holds others only the first line is shown.
    """
    if type(node) not in _EXPRESSIONS and type(node) not in _STATEMENTS:
        return type(node).__name__
    printer = Printer(Workunit("", (), (), ()))
    parts = (node,) if type(node) in _EXPRESSIONS else statements((node,))  # type: ignore[arg-type]
    for part in parts:
        for sym in map(sym_of, (part, *expressions(part))):
            if sym is not None:
                printer.names[sym] = sym.name
    if type(node) in _EXPRESSIONS:
        return printer.expr(node, outer=True)  # type: ignore[arg-type]
    return next(_STATEMENTS[type(node)](printer, node, 0))[1]
